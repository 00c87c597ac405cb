//! What every GPU counted between two looks: errors, and time for which clocks were held down. Aside, since a driver may never answer.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{Counter, Datum, Fact, GPU_COUNTERS, JobOrder, Reading};

use super::{DOZE, LONGEST};
use crate::collect::Root;
use crate::stop::Stop;

/// The collector of GPUs: who does not ask for it does not want its counters.
const COLLECTOR: &str = "gpu";
/// How long the last look may take when all others have ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// One look: when, and every counter by GPU and name; or why there is none.
type Look = Result<(Instant, BTreeMap<(u32, &'static str), f64>), String>;

/// Two looks that are under way.
pub(super) struct Gpus {
    looks: Option<Receiver<Look>>,
}

impl Gpus {
    /// Begins the first look where there may be GPUs; the second follows after the pause that was ordered.
    pub(super) fn begin(order: &JobOrder, root: &Root) -> Self {
        let wanted = root.is_system() && order.collectors.iter().any(|name| name == COLLECTOR);
        let pause = Duration::from_millis(u64::from(order.pause_ms)).min(LONGEST);
        Self { looks: wanted.then(|| twice(pause, || counted(&crate::gpu::health()))).flatten() }
    }

    /// What was counted between both, and what is to be said where it is not known.
    pub(super) fn end(self, stop: &Stop) -> (Vec<Counter>, Option<String>) {
        let Some(looks) = self.looks else { return (Vec::new(), None) };
        let until = Instant::now() + PATIENCE;
        let next = || {
            while Instant::now() < until && !stop.asked() {
                match looks.recv_timeout(DOZE) {
                    Ok(look) => return look,
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                }
            }
            Err("no answer while the job was looked at".to_owned())
        };
        match (next(), next()) {
            (Ok(first), Ok(last)) => (told(&first, &last), None),
            // Without a GPU there is nothing to say.
            (Err(why), _) if why.is_empty() => (Vec::new(), None),
            (Err(why), _) | (_, Err(why)) => (Vec::new(), Some(format!("Counters of its GPUs: {why}."))),
        }
    }
}

/// Looks twice, so that the second look ends about when the pause does; only once where there is nothing to see.
fn twice(pause: Duration, look: impl Fn() -> Look + std::marker::Send + 'static) -> Option<Receiver<Look>> {
    let (give, looks) = channel();
    let looking = thread::Builder::new().name("gpu-counters".to_owned()).spawn(move || {
        let began = Instant::now();
        let first = look();
        let again = first.is_ok();
        if give.send(first).is_err() || !again {
            return;
        }
        thread::sleep(pause.saturating_sub(began.elapsed() * 2));
        // Nobody waits any more: then it is not wanted.
        let _ = give.send(look());
    });
    looking.ok().map(|_| looks)
}

/// The counters among the facts of a look. No reason where there is no GPU or no library.
fn counted(facts: &[Fact]) -> Look {
    let whole = facts.iter().find(|fact| fact.key == "nvml").map(|fact| &fact.reading);
    match whole {
        Some(Reading::Value(_)) => {}
        Some(Reading::Failed(why)) => return Err(why.clone()),
        Some(Reading::Denied) => return Err("denied to this login".to_owned()),
        _ => return Err(String::new()),
    }
    Ok((Instant::now(), facts.iter().filter_map(counter).collect()))
}

/// `nvml.3.ecc.corrected`: GPU, counter, count.
fn counter(fact: &Fact) -> Option<((u32, &'static str), f64)> {
    let (gpu, name) = fact.key.strip_prefix("nvml.")?.split_once('.')?;
    let name = GPU_COUNTERS.into_iter().find(|known| *known == name)?;
    match fact.reading {
        Reading::Value(Datum::Number(count)) => Some(((gpu.parse().ok()?, name), count)),
        _ => None,
    }
}

type Counted = (Instant, BTreeMap<(u32, &'static str), f64>);

fn told(first: &Counted, last: &Counted) -> Vec<Counter> {
    let seconds = Some(last.0.duration_since(first.0).as_secs_f64());
    let both = last.1.iter().filter_map(|(key, last)| Some((key, *first.1.get(key)?, *last)));
    both.map(|((gpu, name), first, last)| Counter {
        device: format!("GPU {gpu}"),
        name: (*name).to_owned(),
        first,
        last,
        seconds,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn fact(key: &str, reading: Reading<Datum>) -> Fact {
        Fact { key: key.to_owned(), reading, unit: None }
    }

    fn facts(errors: f64) -> Vec<Fact> {
        vec![
            fact("nvml.3.ecc.uncorrected", Reading::Value(Datum::Number(errors))),
            fact("nvml.3.ecc.uncorrected.ever", Reading::Value(Datum::Number(77.0))),
            fact("nvml.3.nvlink.lost", Reading::Absent),
            fact("nvml.3.temperature", Reading::Value(Datum::Number(errors))),
            fact("nvml", Reading::Value(Datum::Flag(true))),
        ]
    }

    #[test]
    fn only_counters_that_were_read_twice_are_told_with_the_seconds_between() {
        let looks = AtomicU32::new(0);
        let look = move || counted(&facts(f64::from(looks.fetch_add(3, Ordering::Relaxed))));
        let gpus = Gpus { looks: twice(Duration::from_millis(50), look) };
        let (told, note) = gpus.end(&Stop::default());
        assert_eq!((told.len(), note), (1, None), "{told:?}");
        assert_eq!((told[0].device.as_str(), told[0].name.as_str()), ("GPU 3", "ecc.uncorrected"));
        assert_eq!((told[0].first, told[0].last), (0.0, 3.0));
        assert!(told[0].seconds.is_some_and(|seconds| seconds >= 0.04), "{told:?}");
    }

    #[test]
    fn a_node_without_gpus_says_nothing_and_a_driver_that_fails_is_told() {
        let end = |reading: Reading<Datum>| {
            let look = move || counted(&[fact("nvml", reading.clone())]);
            Gpus { looks: twice(Duration::ZERO, look) }.end(&Stop::default())
        };
        assert_eq!(end(Reading::Absent), (vec![], None));
        let why = "Counters of its GPUs: the worker died.".to_owned();
        assert_eq!(end(Reading::Failed("the worker died".to_owned())), (vec![], Some(why)));
        assert_eq!(Gpus { looks: None }.end(&Stop::default()), (vec![], None));
    }
}
