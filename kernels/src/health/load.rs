//! What happens to a GPU while it is measured: a look every second, and what every counter grew by.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::Reading;

use super::rest::names;
use super::source::{CLOCK, COUNTERS, GENERATION, HELD, POWER, REASONS, Source, TEMPERATURE, WIDTH, links};
use crate::nvml::{Handle, Nvml};

/// A GPU is looked at this often while it is measured.
const EVERY: Duration = Duration::from_secs(1);
/// A library that answers later than this does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Fewer looks under load are no series.
const SERIES: usize = 8;

/// What was seen of a GPU while it was measured.
#[derive(Default)]
pub struct Seen {
    seconds: f64,
    looks: Vec<Look>,
    reasons: u64,
    /// Best link that was seen: it is slow at rest.
    pcie: [f64; 2],
    xids: Vec<u64>,
    grown: Vec<(&'static str, f64)>,
    links: u32,
    company: Vec<u32>,
}

/// Temperature, power, clock.
#[derive(Clone, Copy, Default)]
struct Look([Option<f64>; 3]);

/// A look at a GPU every second, from its begin to its end.
pub struct Watch {
    begin: Instant,
    stop: Sender<()>,
    seen: Receiver<Seen>,
}

impl Watch {
    /// Begins to look at the GPU called `uuid`, on which this process has a context; nothing where no library tells of it.
    #[must_use]
    pub fn start(uuid: &str) -> Option<Self> {
        let nvml = Nvml::load().ok()?;
        let gpu = nvml.called(uuid).value().copied()?;
        let ((stop, stopped), (give, seen)) = (channel(), channel());
        thread::spawn(move || drop(give.send(look(&nvml, gpu, &stopped))));
        Some(Self { begin: Instant::now(), stop, seen })
    }

    /// Ends, and says what was seen; nothing when the library does not answer.
    #[must_use]
    pub fn end(self) -> Option<Seen> {
        drop(self.stop);
        let seconds = self.begin.elapsed().as_secs_f64();
        self.seen.recv_timeout(PATIENCE).ok().map(|seen| Seen { seconds, ..seen })
    }
}

/// Every counter that this GPU has, by name.
fn counters(nvml: &Nvml, gpu: Handle, link_count: u32) -> Vec<(&'static str, f64)> {
    let told = |source: &Source| match source.read(nvml, gpu) {
        Reading::Value(value) => Some((source.key, value)),
        _ => None,
    };
    let mut found: Vec<_> = COUNTERS.iter().chain(&HELD).filter_map(told).collect();
    found.extend(links(nvml, gpu, link_count).0);
    found
}

/// Looks until `stopped`, and once more then.
fn look(nvml: &Nvml, gpu: Handle, stopped: &Receiver<()>) -> Seen {
    let events = nvml.listen(gpu);
    let links = nvml.links(gpu).len() as u32;
    let mut seen = Seen { links, company: others(nvml, gpu), ..Seen::default() };
    let before = counters(nvml, gpu, links);
    loop {
        let last = stopped.recv_timeout(if seen.looks.is_empty() { Duration::ZERO } else { EVERY });
        seen.add(nvml, gpu);
        seen.xids.extend(events.into_iter().flat_map(|set| nvml.xids(set)));
        if last == Err(RecvTimeoutError::Disconnected) {
            break;
        }
    }
    let after = counters(nvml, gpu, links);
    let was = |name: &str| before.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    seen.grown = after.into_iter().filter_map(|(name, now)| Some((name, now - was(name)?))).collect();
    seen
}

/// Processes on the GPU that are not this one. One of them is: where the library numbers it otherwise, as it does for a
/// container, the first stands for it.
fn others(nvml: &Nvml, gpu: Handle) -> Vec<u32> {
    let Reading::Value(mut found) = nvml.processes(gpu) else { return Vec::new() };
    let own = found.iter().position(|pid| *pid == std::process::id()).unwrap_or(0);
    if own < found.len() {
        found.remove(own);
    }
    found
}

impl Seen {
    fn add(&mut self, nvml: &Nvml, gpu: Handle) {
        let read = |source: &Source| source.read(nvml, gpu).value().copied();
        self.looks.push(Look([&TEMPERATURE, &POWER, &CLOCK].map(read)));
        self.reasons |= read(&REASONS).unwrap_or(0.0) as u64;
        for (best, source) in self.pcie.iter_mut().zip([GENERATION, WIDTH]) {
            *best = best.max(read(&source).unwrap_or(0.0));
        }
    }

    /// Looks while there was work: before the first and after the last the GPU rests.
    fn under_load(&self, what: usize) -> Vec<f64> {
        let looks = if self.looks.len() > 2 { &self.looks[1..self.looks.len() - 1] } else { &self.looks };
        looks.iter().filter_map(|look| look.0[what]).collect()
    }

    /// Temperature, power and clock, where they were seen often enough to be series.
    #[must_use]
    pub fn series(&self) -> [Option<Vec<f64>>; 3] {
        [0, 1, 2].map(|what| Some(self.under_load(what)).filter(|values| values.len() >= SERIES))
    }

    /// Who else computed on the GPU when the work began.
    #[must_use]
    pub fn company(&self) -> Option<String> {
        (!self.company.is_empty()).then(|| names(&self.company))
    }

    /// `seconds=12.0 looks=12 throttle=8 temperature=71 power=693 clock=1755 clock.least=1410 pcie.generation=5
    /// ecc.uncorrected=+0 held.power=+812 xid=79`. What this GPU or this driver does not tell is not there.
    #[must_use]
    pub fn line(&self) -> String {
        let most = |of: &[f64]| of.iter().copied().max_by(f64::total_cmp);
        let mean = |of: &[f64]| (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
        let mut words = vec![
            format!("seconds={:.1}", self.seconds),
            format!("looks={}", self.looks.len()),
            format!("throttle={}", self.reasons),
        ];
        let mut tell = |name: &str, value: Option<f64>| {
            words.extend(value.map(|value| format!("{name}={}", (value * 10.0).round() / 10.0)));
        };
        let [temperature, power, clock] = [0, 1, 2].map(|what| self.under_load(what));
        tell("temperature", most(&temperature));
        tell("power", mean(&power));
        tell("power.most", most(&power));
        tell("clock", mean(&clock));
        tell("clock.least", clock.iter().copied().min_by(f64::total_cmp));
        tell("pcie.generation", Some(self.pcie[0]).filter(|g| *g > 0.0));
        tell("pcie.width", Some(self.pcie[1]).filter(|w| *w > 0.0));
        tell("nvlink.links", Some(f64::from(self.links)).filter(|links| *links > 0.0));
        words.extend(self.grown.iter().map(|(name, by)| format!("{name}={:+}", (by * 1e3).round() / 1e3)));
        words.extend(self.xids.iter().map(|code| format!("xid={code}")));
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_before_and_after_the_work_is_in_no_series() {
        let look = |clock| Look([Some(60.0), None, Some(clock)]);
        let mut seen = Seen { looks: vec![look(345.0); 10], ..Seen::default() };
        seen.looks[1..9].fill(look(1980.0));
        let [temperature, power, clock] = seen.series();
        assert_eq!((temperature.unwrap().len(), power, clock.unwrap()), (8, None, vec![1980.0; 8]));
        assert!(seen.line().contains("clock=1980 clock.least=1980"), "{}", seen.line());
        seen.looks.truncate(9);
        assert_eq!(seen.series(), [None, None, None], "seven values are no series");
    }

    #[test]
    fn a_line_tells_growth_and_nothing_that_was_not_told() {
        let grown = vec![("ecc.uncorrected", 0.0), ("held.heat", 812.5)];
        let line = Seen { grown, xids: vec![79], ..Seen::default() }.line();
        assert_eq!(line, "seconds=0.0 looks=0 throttle=0 ecc.uncorrected=+0 held.heat=+812.5 xid=79");
    }
}
