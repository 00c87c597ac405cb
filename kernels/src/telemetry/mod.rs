//! What the GPUs of a node do while a job runs: all of them together, again and again, as ticks.
//!
//! | file | settles |
//! |---|---|
//! | `gpu` | what is read of one GPU |
//! | `node` | what the GPUs of a node are together, so that a single bad one can be seen |

mod gpu;
mod node;

use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{Columns, Frame, Reading, Tick, watched};

use crate::driver::Trouble;
use crate::nvml::Nvml;
use gpu::Gpu;

/// Most GPUs of a node that are looked at.
const GPUS: u32 = 64;

/// How often is looked at everything, and at what changes fast.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    all: Duration,
    fine: Duration,
}

impl Periods {
    /// In milliseconds; zero for `fine` means that nothing is looked at more often than all.
    #[must_use]
    pub fn of_ms(all: u64, fine: u64) -> Self {
        let all = Duration::from_millis(all.max(100));
        let fine = if fine == 0 { all } else { Duration::from_millis(fine.max(10)).min(all) };
        Self { all, fine }
    }
}

/// Looks until nobody listens any more.
///
/// # Errors
/// When the library cannot say which GPUs there are, or there is none.
pub fn run(nvml: &Nvml, periods: Periods, say: &mut dyn FnMut(Frame)) -> Result<(), Trouble> {
    let count = match nvml.count() {
        Reading::Value(count) if count > 0 => count.min(GPUS),
        Reading::Failed(why) => return Err(Trouble::Failed(why)),
        _ => return Err(Trouble::Absent("no GPU to watch".to_owned())),
    };
    let mut gpus: Vec<Gpu> = (0..count).map(|index| Gpu::new(nvml, index)).collect();
    let mut told: Vec<&'static str> = Vec::new();
    let (mut next, mut next_all) = (Instant::now(), Instant::now());
    loop {
        let whole = Instant::now() >= next_all;
        let at_ns = monotonic_ns();
        let looks: Vec<gpu::Look> = gpus.iter_mut().map(|gpu| gpu.look(nvml, at_ns, whole)).collect();
        let found = node::together(&looks, whole);
        if whole {
            let names: Vec<&'static str> = found.iter().map(|(name, _)| *name).collect();
            if names != told {
                say(Frame::Columns(Columns { metrics: names.iter().map(|name| (*name).to_owned()).collect() }));
                told = names;
            }
            next_all = (next_all + periods.all).max(Instant::now());
        }
        // What is looked at finely stands first in the columns; a metric that is missing for once is no number.
        let value = |name: &&str| found.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, value)| *value);
        let wanted = |name: &&&str| whole || watched(name).is_some_and(|known| known.fine);
        let values: Vec<f64> = told.iter().take_while(wanted).map(value).map(|value| f64::from(value as f32)).collect();
        if !values.is_empty() {
            say(Frame::Tick(Tick { at_ns, values }));
        }
        next = (next + periods.fine).max(Instant::now());
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// The clock of the probe's own ticks, nanoseconds.
fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
