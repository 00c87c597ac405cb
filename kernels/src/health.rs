//! How a GPU is: everything that the management library tells of it at rest, and what changes while it is measured.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{Datum, Fact, Reading, Unit};

use crate::nvml::{Handle, How, Nvml};

/// A GPU is looked at this often while it is measured.
const EVERY: Duration = Duration::from_secs(1);
/// A library that answers later than this does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One number, its call, and what one of it is in the unit.
#[derive(Clone, Copy)]
struct Source {
    key: &'static str,
    call: &'static str,
    how: How,
    scale: f64,
    unit: Unit,
}

const fn source(key: &'static str, call: &'static str, how: How, scale: f64, unit: Unit) -> Source {
    Source { key, call, how, scale, unit }
}

const TEMPERATURE: Source = source("temperature", "nvmlDeviceGetTemperature", How::NarrowOf(0), 1.0, Unit::Celsius);
const POWER: Source = source("power", "nvmlDeviceGetPowerUsage", How::Narrow, 1e-3, Unit::Watts);
const CLOCK: Source = source("clock.sm", "nvmlDeviceGetClockInfo", How::NarrowOf(1), 1e6, Unit::Hertz);
/// A bit for every reason why clocks are below their most.
const REASONS: Source = source("throttle", "nvmlDeviceGetCurrentClocksThrottleReasons", How::Wide, 1.0, Unit::Count);
const GENERATION: Source =
    source("pcie.generation", "nvmlDeviceGetCurrPcieLinkGeneration", How::Narrow, 1.0, Unit::Count);
const WIDTH: Source = source("pcie.width", "nvmlDeviceGetCurrPcieLinkWidth", How::Narrow, 1.0, Unit::Count);

/// What is read at rest, beside texts, remapped rows and links.
const AT_REST: [Source; 15] = [
    TEMPERATURE,
    POWER,
    source("power.limit", "nvmlDeviceGetEnforcedPowerLimit", How::Narrow, 1e-3, Unit::Watts),
    CLOCK,
    source("clock.sm.most", "nvmlDeviceGetMaxClockInfo", How::NarrowOf(1), 1e6, Unit::Hertz),
    source("clock.memory", "nvmlDeviceGetClockInfo", How::NarrowOf(2), 1e6, Unit::Hertz),
    REASONS,
    COUNTERS[0],
    COUNTERS[1],
    source("ecc.uncorrected.ever", "nvmlDeviceGetTotalEccErrors", How::WideOf(1, 1), 1.0, Unit::Count),
    GENERATION,
    source("pcie.generation.most", "nvmlDeviceGetMaxPcieLinkGeneration", How::Narrow, 1.0, Unit::Count),
    WIDTH,
    source("pcie.width.most", "nvmlDeviceGetMaxPcieLinkWidth", How::Narrow, 1.0, Unit::Count),
    COUNTERS[2],
];

/// What only ever grows.
const COUNTERS: [Source; 3] = [
    source("ecc.corrected", "nvmlDeviceGetTotalEccErrors", How::WideOf(0, 0), 1.0, Unit::Count),
    source("ecc.uncorrected", "nvmlDeviceGetTotalEccErrors", How::WideOf(1, 0), 1.0, Unit::Count),
    source("pcie.replays", "nvmlDeviceGetPcieReplayCounter", How::Narrow, 1.0, Unit::Count),
];

const TEXTS: [(&str, &str); 3] =
    [("uuid", "nvmlDeviceGetUUID"), ("name", "nvmlDeviceGetName"), ("serial", "nvmlDeviceGetSerial")];

impl Source {
    fn read(&self, nvml: &Nvml, gpu: Handle) -> Reading<f64> {
        match nvml.number(gpu, self.call, self.how) {
            // What it cannot tell some functions say with all bits set.
            Reading::Value(number) if number == u64::MAX || number == u64::from(u32::MAX) => Reading::Absent,
            Reading::Value(number) => Reading::Value(number as f64 * self.scale),
            other => reading(other, |_| 0.0),
        }
    }
}

fn reading<T, U>(of: Reading<T>, map: impl FnOnce(T) -> U) -> Reading<U> {
    match of {
        Reading::Value(value) => Reading::Value(map(value)),
        Reading::Absent => Reading::Absent,
        Reading::Denied => Reading::Denied,
        Reading::Failed(why) => Reading::Failed(why),
    }
}

fn number(key: String, of: Reading<f64>, unit: Unit) -> Fact {
    Fact { key, reading: reading(of, Datum::Number), unit: Some(unit) }
}

/// Everything that is told of GPU number `index` at rest.
pub fn facts(nvml: &Nvml, index: u32) -> Vec<Fact> {
    let key = |name: &str| format!("nvml.{index}.{name}");
    let gpu = match nvml.at(index) {
        Reading::Value(gpu) => gpu,
        other => return vec![number(key("temperature"), reading(other, |_| 0.0), Unit::Celsius)],
    };
    let text = |(name, call): (&str, &str)| Fact {
        key: key(name),
        reading: reading(nvml.text(gpu, call), Datum::Text),
        unit: None,
    };
    let mut facts: Vec<Fact> = TEXTS.into_iter().map(text).collect();
    facts.extend(AT_REST.iter().map(|source| number(key(source.key), source.read(nvml, gpu), source.unit)));
    for (name, at) in [("remap.corrected", 0), ("remap.uncorrected", 1), ("remap.pending", 2), ("remap.failed", 3)] {
        let rows: Reading<[u32; 4]> = nvml.remapped(gpu);
        facts.push(number(key(name), reading(rows, |rows| f64::from(rows[at])), Unit::Count));
    }
    let links = nvml.links(gpu);
    let up = links.iter().filter(|up| **up).count();
    for (name, count) in [("nvlink.links", links.len()), ("nvlink.up", up)] {
        let count = if links.is_empty() { Reading::Absent } else { Reading::Value(count as f64) };
        facts.push(number(key(name), count, Unit::Count));
    }
    facts
}

/// What was seen of a GPU while it was measured.
#[derive(Default)]
struct Seen {
    looks: usize,
    temperature: Vec<f64>,
    power: Vec<f64>,
    clock: Vec<f64>,
    reasons: u64,
    /// Best link that was seen: it is slow at rest.
    pcie: [f64; 2],
    xids: Vec<u64>,
    grown: Vec<(&'static str, f64)>,
}

/// A look at a GPU every second, from its begin to its end.
pub struct Watch {
    begin: Instant,
    stop: Sender<()>,
    seen: Receiver<Seen>,
}

impl Watch {
    /// Begins to look at the GPU called `uuid`; nothing where no library tells of it.
    #[must_use]
    pub fn start(uuid: &str) -> Option<Self> {
        let nvml = Nvml::load().ok()?;
        let gpu = nvml.called(uuid).value().copied()?;
        let ((stop, stopped), (give, seen)) = (channel(), channel());
        thread::spawn(move || drop(give.send(look(&nvml, gpu, &stopped))));
        Some(Self { begin: Instant::now(), stop, seen })
    }

    /// Ends, and says in one line what was seen.
    #[must_use]
    pub fn end(self) -> String {
        drop(self.stop);
        let seconds = self.begin.elapsed().as_secs_f64();
        match self.seen.recv_timeout(PATIENCE) {
            Ok(seen) => format!("seconds={seconds:.1} {}", seen.line()),
            Err(_) => "silent: the management library did not answer".to_owned(),
        }
    }
}

/// Looks until `stopped`, and once more then.
fn look(nvml: &Nvml, gpu: Handle, stopped: &Receiver<()>) -> Seen {
    let mut seen = Seen::default();
    let events = nvml.listen(gpu);
    let before = COUNTERS.map(|source| source.read(nvml, gpu));
    loop {
        let last = stopped.recv_timeout(if seen.looks == 0 { Duration::ZERO } else { EVERY });
        seen.add(nvml, gpu);
        seen.xids.extend(events.into_iter().flat_map(|set| nvml.xids(set)));
        if last == Err(RecvTimeoutError::Disconnected) {
            break;
        }
    }
    for (source, before) in COUNTERS.iter().zip(before) {
        if let (Reading::Value(before), Reading::Value(after)) = (before, source.read(nvml, gpu)) {
            seen.grown.push((source.key, after - before));
        }
    }
    seen
}

impl Seen {
    fn add(&mut self, nvml: &Nvml, gpu: Handle) {
        self.looks += 1;
        let read = |source: &Source| source.read(nvml, gpu).value().copied();
        self.temperature.extend(read(&TEMPERATURE));
        self.power.extend(read(&POWER));
        self.clock.extend(read(&CLOCK));
        self.reasons |= read(&REASONS).unwrap_or(0.0) as u64;
        for (best, source) in self.pcie.iter_mut().zip([GENERATION, WIDTH]) {
            *best = best.max(read(&source).unwrap_or(0.0));
        }
    }

    /// `looks=12 temperature=71 power=693 clock.least=1410 clock=1755 throttle=8 pcie.generation=5 ecc.uncorrected=+0 xid=79`.
    fn line(&self) -> String {
        let most = |of: &[f64]| of.iter().copied().max_by(f64::total_cmp);
        let mean = |of: &[f64]| (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
        let mut words = vec![format!("looks={}", self.looks), format!("throttle={}", self.reasons)];
        let mut tell = |name: &str, value: Option<f64>| {
            words.extend(value.map(|value| format!("{name}={}", (value * 10.0).round() / 10.0)));
        };
        tell("temperature", most(&self.temperature));
        tell("power", mean(&self.power));
        tell("power.most", most(&self.power));
        tell("clock", mean(&self.clock));
        tell("clock.least", self.clock.iter().copied().min_by(f64::total_cmp));
        tell("pcie.generation", Some(self.pcie[0]).filter(|g| *g > 0.0));
        tell("pcie.width", Some(self.pcie[1]).filter(|w| *w > 0.0));
        words.extend(self.grown.iter().map(|(name, by)| format!("{name}={by:+}")));
        words.extend(self.xids.iter().map(|code| format!("xid={code}")));
        words.join(" ")
    }
}
