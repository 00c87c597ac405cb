//! What is looked at each time, and what only in a whole look.

use muster_wire::{Trip, WatchOrder};

use super::look::Look;
use super::{cpu, disk, job, links, memory, net, peers, power, pressure, rdma};
use crate::clock;
use crate::collect::Root;
use crate::gpu::Telemetry;

/// What is looked at, with what was found out once.
pub(super) struct Sources {
    power: power::Source,
    cpu: cpu::Source,
    job: job::Source,
    links: links::Source,
    peers: Option<peers::Source>,
    gpus: Option<Telemetry>,
}

impl Sources {
    pub(super) fn new(root: &Root, order: &WatchOrder) -> Self {
        Self {
            power: power::Source::new(root),
            cpu: cpu::Source::new(root),
            job: job::Source::of(order.job.clone()),
            links: links::Source::new(root),
            peers: if root.is_system() { peers::Source::open() } else { None },
            gpus: if root.is_system() { Telemetry::start(order) } else { None },
        }
    }

    /// Everything, and what went wrong that a person should know.
    pub(super) fn whole(&mut self, root: &Root) -> (Look, Option<String>) {
        let mut look = Look::at(clock::monotonic_ns());
        network(root, &mut look);
        self.cpu.look(root, &mut look);
        memory::look(root, &mut look);
        pressure::look(root, &mut look);
        disk::look(root, &mut look);
        self.links.look(root, &mut look);
        self.power.look(root, &mut look);
        self.job.look(root, &mut look);
        let (values, trouble) = self.gpus.as_mut().map(Telemetry::all).unwrap_or_default();
        values.into_iter().for_each(|(metric, value)| look.level(metric, value));
        (look, trouble)
    }

    /// How long packets take to those that this node sends to; nothing where the kernel does not say.
    pub(super) fn trips(&mut self) -> Vec<Trip> {
        self.peers.as_mut().map(peers::Source::trips).unwrap_or_default()
    }

    /// Counters of network and GPUs.
    pub(super) fn fine(&mut self, root: &Root) -> Look {
        let mut look = Look::at(clock::monotonic_ns());
        network(root, &mut look);
        let values = self.gpus.as_mut().map(Telemetry::fine).unwrap_or_default();
        values.into_iter().for_each(|(metric, value)| look.level(metric, value));
        look
    }
}

fn network(root: &Root, look: &mut Look) {
    net::look(root, look);
    rdma::look(root, look);
}
