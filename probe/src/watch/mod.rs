//! What the node does while a job runs: all metrics again and again, read-only, at the price of a few files a second.
//!
//! | file | settles |
//! |---|---|
//! | `look` | how counters become rates, and in which order metrics are told |
//! | `cpu`, `memory`, `pressure`, `disk`, `net`, `rdma`, `power` | what the whole node does |
//! | `job` | what its busiest processes do, taken together |

mod cpu;
mod disk;
mod job;
mod look;
mod memory;
mod net;
mod power;
mod pressure;
mod rdma;

use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{Columns, Frame, Tick, WatchOrder};

use crate::clock;
use crate::collect::Root;
use crate::stop::Stop;
use look::Look;

/// Shortest time between two looks: kernels count CPU time in hundredths of a second.
const SHORTEST: Duration = Duration::from_millis(100);
/// How long an order to end may go unnoticed.
const DOZE: Duration = Duration::from_millis(100);

/// Looks at the node every `order.period_ms` until the end is ordered.
pub(crate) fn run(order: &WatchOrder, root: &Root, stop: &Stop, say: &mut dyn FnMut(Frame)) {
    let period = Duration::from_millis(u64::from(order.period_ms)).max(SHORTEST);
    let (mut sources, mut told) = (Sources::new(root), Vec::new());
    let mut next = Instant::now();
    let mut before: Option<Look> = None;
    while !stop.asked() {
        let look = sources.look(root);
        if let Some(before) = &before {
            let values = look.since(before);
            let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
            if names != told {
                say(Frame::Columns(Columns { metrics: names.iter().map(|name| (*name).to_owned()).collect() }));
                told = names;
            }
            let values = values.into_iter().map(|(_, value)| f64::from(value as f32)).collect();
            say(Frame::Tick(Tick { at_ns: look.at_ns, values }));
        }
        before = Some(look);
        next = (next + period).max(Instant::now());
        doze(next, stop);
    }
}

fn doze(until: Instant, stop: &Stop) {
    while !stop.asked() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(DOZE));
    }
}

/// What is looked at, with what was found out once.
struct Sources {
    power: power::Source,
    cpu: cpu::Source,
    job: job::Source,
}

impl Sources {
    fn new(root: &Root) -> Self {
        Self { power: power::Source::new(root), cpu: cpu::Source::new(root), job: job::Source::default() }
    }

    fn look(&mut self, root: &Root) -> Look {
        let mut look = Look::at(clock::monotonic_ns());
        self.cpu.look(root, &mut look);
        memory::look(root, &mut look);
        pressure::look(root, &mut look);
        disk::look(root, &mut look);
        net::look(root, &mut look);
        rdma::look(root, &mut look);
        self.power.look(root, &mut look);
        self.job.look(root, &mut look);
        look
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_real_node_is_looked_at_until_the_end_is_ordered_and_every_metric_stands_in_the_catalogue() {
        let stop = Arc::new(Stop::default());
        let (mut columns, mut ticks) = (Vec::new(), Vec::new());
        let order = WatchOrder { period_ms: 100 };
        run(&order, &Root::system(), &stop, &mut |frame| match frame {
            Frame::Columns(new) => columns = new.metrics,
            Frame::Tick(tick) => {
                assert_eq!(tick.values.len(), columns.len());
                ticks.push(tick);
                if ticks.len() == 5 {
                    stop.ask(crate::stop::Cause::Asked, "enough");
                }
            }
            other => panic!("{other:?}"),
        });
        assert!(ticks.windows(2).all(|pair| pair[0].at_ns + 90_000_000 < pair[1].at_ns), "{ticks:?}");
        for name in &columns {
            assert!(muster_wire::watched(name).is_some(), "{name}");
        }
        for name in ["cpu_util_pct", "mem_used_pct", "context_switches_per_s", "job_cpu_pct"] {
            let at = columns.iter().position(|column| column == name).unwrap_or_else(|| panic!("{name}: {columns:?}"));
            assert!(ticks.iter().any(|tick| tick.values[at].is_finite()), "{name}");
        }
    }
}
