//! What is looked at each time, and what only in a whole look.

use muster_wire::WatchOrder;

use super::look::Look;
use super::{cpu, disk, job, links, memory, net, power, pressure, rdma};
use crate::clock;
use crate::collect::Root;
use crate::gpu::Telemetry;

/// What is looked at, with what was found out once.
pub(super) struct Sources {
    power: power::Source,
    cpu: cpu::Source,
    job: job::Source,
    links: links::Source,
    gpus: Option<Telemetry>,
}

impl Sources {
    pub(super) fn new(root: &Root, order: &WatchOrder) -> Self {
        Self {
            power: power::Source::new(root),
            cpu: cpu::Source::new(root),
            job: job::Source::of(order.job.clone()),
            links: links::Source::new(root),
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
