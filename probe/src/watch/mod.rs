//! What the node does while a job runs: all metrics again and again, read-only, at the price of a few files a second.
//!
//! | file | settles |
//! |---|---|
//! | `look` | how counters become rates, and in which order metrics are told |
//! | `cpu`, `memory`, `pressure`, `disk`, `net`, `rdma`, `power` | what the whole node does |
//! | `peers` | how long packets take to other nodes |
//! | `links` | what is asked of network cards every few seconds, because it costs more: speed, pauses, discards (`ethtool`) |
//! | `job` | what the processes of the job do, taken together |
//! | `sources` | what is looked at each time, and what only in a whole look |

mod cpu;
mod disk;
mod ethtool;
pub(crate) mod job;
mod links;
mod look;
mod memory;
pub(crate) mod net;
mod peers;
mod power;
mod pressure;
mod rdma;
mod sources;

use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{Columns, Frame, Level, LogLine, Peers, Tick, WatchOrder};

use crate::collect::Root;
use crate::stop::Stop;
use look::{Look, is_fine};
use sources::Sources;

/// Shortest time between two whole looks: kernels count CPU time in hundredths of a second.
const SHORTEST: Duration = Duration::from_millis(100);
/// Shortest time between two fine ones.
const FINEST: Duration = Duration::from_millis(10);
/// How long an order to end may go unnoticed.
const DOZE: Duration = Duration::from_millis(100);

/// Looks at the node every `order.period_ms`, and between that every `order.fine_ms` at what changes fast, until the end is ordered.
pub(crate) fn run(order: &WatchOrder, root: &Root, stop: &Stop, say: &mut dyn FnMut(Frame)) {
    let period = Duration::from_millis(u64::from(order.period_ms)).max(SHORTEST);
    let fine = match order.fine_ms {
        0 => period,
        fine_ms => Duration::from_millis(u64::from(fine_ms)).max(FINEST).min(period),
    };
    let mut teller = Teller { sources: Sources::new(root, order), told: Vec::new(), whole: None, fine: None };
    let (mut next, mut next_whole) = (Instant::now(), Instant::now());
    while !stop.asked() {
        let now = Instant::now();
        if now >= next_whole {
            teller.whole(root, say);
            next_whole = (next_whole + period).max(now);
        } else {
            teller.fine(root, say);
        }
        next = (next + fine).max(Instant::now());
        doze(next.min(next_whole), stop);
    }
}

/// What was looked at last, and which metrics were told then.
struct Teller {
    sources: Sources,
    told: Vec<&'static str>,
    whole: Option<Look>,
    fine: Option<Look>,
}

impl Teller {
    /// Looks at everything, and tells the means since the last time.
    fn whole(&mut self, root: &Root, say: &mut dyn FnMut(Frame)) {
        let (look, trouble) = self.sources.whole(root);
        if let Some(text) = trouble {
            say(Frame::Log(LogLine { level: Level::Warn, text }));
        }
        if let Some(before) = &self.whole {
            let values = look.since(before);
            let names: Vec<&'static str> = values.iter().map(|(name, _)| *name).collect();
            if names != self.told {
                say(Frame::Columns(Columns { metrics: names.iter().map(|name| (*name).to_owned()).collect() }));
                self.told = names;
            }
            tell(look.at_ns, values.into_iter().map(|(_, value)| value), say);
            let trips = self.sources.trips();
            if !trips.is_empty() {
                say(Frame::Peers(Peers { at_ns: look.at_ns, trips }));
            }
        }
        self.whole = Some(look);
    }

    /// Looks at what changes fast, as far as a whole look has told it.
    fn fine(&mut self, root: &Root, say: &mut dyn FnMut(Frame)) {
        let look = self.sources.fine(root);
        if let Some(before) = &self.fine {
            let found = look.since(before);
            let value = |name: &&'static str| {
                found.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, value)| *value)
            };
            tell(look.at_ns, self.told.iter().take_while(|name| is_fine(name)).map(value), say);
        }
        self.fine = Some(look);
    }
}

fn tell(at_ns: u64, values: impl Iterator<Item = f64>, say: &mut dyn FnMut(Frame)) {
    // As exact as any sensor, and half as long on the line.
    let values: Vec<f64> = values.map(|value| f64::from(value as f32)).collect();
    if !values.is_empty() {
        say(Frame::Tick(Tick { at_ns, values }));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_real_node_is_looked_at_until_the_end_is_ordered_and_every_metric_stands_in_the_catalogue() {
        let stop = Arc::new(Stop::default());
        let (mut columns, mut ticks) = (Vec::new(), Vec::new());
        let order = WatchOrder { period_ms: 100, ..WatchOrder::default() };
        run(&order, &Root::system(), &stop, &mut |frame| match frame {
            Frame::Columns(new) => columns = new.metrics,
            Frame::Tick(tick) => {
                assert_eq!(tick.values.len(), columns.len());
                ticks.push(tick);
                if ticks.len() == 5 {
                    stop.ask(crate::stop::Cause::Asked, "enough");
                }
            }
            Frame::Peers(_) => {}
            other => panic!("{other:?}"),
        });
        assert!(ticks.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns), "{ticks:?}");
        for name in &columns {
            assert!(muster_wire::watched(name).is_some(), "{name}");
        }
        for name in ["cpu_util_pct", "mem_used_pct", "context_switches_per_s", "job_cpu_pct"] {
            let at = columns.iter().position(|column| column == name).unwrap_or_else(|| panic!("{name}: {columns:?}"));
            assert!(ticks.iter().any(|tick| tick.values[at].is_finite()), "{name}");
        }
    }

    #[test]
    fn fine_looks_tell_the_first_columns_between_whole_ones() {
        let stop = Arc::new(Stop::default());
        let (mut columns, mut whole, mut fine) = (Vec::new(), 0, 0);
        let order = WatchOrder { period_ms: 100, fine_ms: 10, job: None };
        run(&order, &Root::system(), &stop, &mut |frame| match frame {
            Frame::Columns(new) => columns = new.metrics,
            Frame::Tick(tick) if tick.values.len() == columns.len() => {
                whole += 1;
                if whole == 5 {
                    stop.ask(crate::stop::Cause::Asked, "enough");
                }
            }
            Frame::Tick(tick) => {
                fine += 1;
                assert!(columns[..tick.values.len()].iter().all(|name| is_fine(name)), "{columns:?}");
                assert!(columns[tick.values.len()..].iter().all(|name| !is_fine(name)), "{columns:?}");
            }
            Frame::Peers(_) => {}
            other => panic!("{other:?}"),
        });
        assert!(fine > whole, "{fine} {whole}");
    }
}
