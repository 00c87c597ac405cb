//! One GPU: its levels, the growth of its counters, and what happened between two samples of its performance counters.

use crate::health::{CLOCK, ECC_CORRECTED, ECC_LOST, MEMORY_TEMPERATURE, POWER, REASONS, Source, TEMPERATURE};
use crate::nvml::{Handle, How, Memory, Nvml, Sample};

/// Performance counters are not sampled more often than this, nanoseconds: closer samples show nothing.
const APART: u64 = 95_000_000;
/// Bytes that all links sent and received, as fields that count in KiB.
const NVLINK: [u32; 2] = [138, 139];
const ALL_LINKS: u32 = u32::MAX;
/// Performance counters, as `nvml.h` numbers them, and what one of each is in the unit of the catalogue. The last two are summed.
const COUNTERS: [(u32, What, f64); 8] = [
    (1, What::Graphics, 0.01),
    (2, What::Sm, 0.01),
    (5, What::Tensor, 0.01),
    (10, What::Dram, 0.01),
    (20, What::PcieSent, MIB),
    (21, What::PcieReceived, MIB),
    (60, What::NvLink, MIB),
    (61, What::NvLink, MIB),
];
/// A MiB in GB.
const MIB: f64 = 1_048_576e-9;
/// Reasons for a low clock that are faults: hardware, heat by software and by hardware, the power supply.
const SLOWED: u64 = 0x08 | 0x20 | 0x40 | 0x80;
/// The power limit, which is usual under load.
const CAPPED: u64 = 0x04;

/// What a number of a GPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Utilisation,
    Power,
    Clock,
    Temperature,
    MemoryTemperature,
    MemoryUsed,
    Slowed,
    Capped,
    Corrected,
    Lost,
    Graphics,
    Sm,
    Tensor,
    Dram,
    PcieSent,
    PcieReceived,
    NvLink,
}

/// What was found of a GPU; what it does not tell is not there.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) values: Vec<(What, f64)>,
    /// It answered at all.
    pub(super) answers: bool,
}

impl Look {
    pub(super) fn of(&self, what: What) -> Option<f64> {
        self.values.iter().find(|(known, _)| *known == what).map(|(_, value)| *value)
    }
}

/// Growth of a counter.
#[derive(Clone, Copy, Debug, Default)]
struct Growth(Option<(u64, f64)>);

impl Growth {
    /// Per second since the last time; nothing the first time, and where the counter began anew.
    fn rate(&mut self, at_ns: u64, total: Option<f64>) -> Option<f64> {
        let total = total?;
        let (before_ns, before) = self.0.replace((at_ns, total))?;
        let seconds = at_ns.saturating_sub(before_ns) as f64 / 1e9;
        (total >= before && seconds > 0.0).then(|| (total - before) / seconds)
    }
}

/// Two samples of performance counters, the older first, and when that was taken.
#[derive(Debug)]
struct Window {
    samples: [Sample; 2],
    since_ns: Option<u64>,
}

impl Window {
    fn new(nvml: &Nvml, device: Handle) -> Option<Self> {
        Some(Self { samples: [nvml.sample_room(device)?, nvml.sample_room(device)?], since_ns: None })
    }

    /// What happened since the last time; nothing where that is too short ago.
    fn turn(&mut self, nvml: &Nvml, device: Handle, at_ns: u64) -> Vec<(What, f64)> {
        if self.since_ns.is_some_and(|since_ns| at_ns.saturating_sub(since_ns) < APART) {
            return Vec::new();
        }
        if !nvml.sample(device, self.samples[1]) {
            self.since_ns = None;
            return Vec::new();
        }
        let known = self.since_ns.replace(at_ns).is_some();
        let ids: Vec<u32> = COUNTERS.iter().map(|(id, ..)| *id).collect();
        let told = if known { nvml.between(self.samples, &ids) } else { Vec::new() };
        self.samples.swap(0, 1);
        let mut values: Vec<(What, f64)> = Vec::new();
        for ((_, what, unit), value) in COUNTERS.iter().zip(told) {
            let Some(value) = value.map(|value| value * unit) else { continue };
            match values.iter_mut().find(|(known, _)| known == what) {
                Some((_, sum)) => *sum += value,
                None => values.push((*what, value)),
            }
        }
        values
    }
}

/// A GPU that is looked at again and again.
#[derive(Debug)]
pub(super) struct Gpu {
    index: u32,
    device: Option<Handle>,
    /// Of whole looks, and of fine ones.
    windows: [Option<Window>; 2],
    links: [Growth; 2],
    corrected: Growth,
}

impl Gpu {
    pub(super) fn new(nvml: &Nvml, index: u32) -> Self {
        let device = nvml.at(index).value().copied();
        let windows = [(); 2].map(|()| device.and_then(|device| Window::new(nvml, device)));
        Self { index, device, windows, links: Default::default(), corrected: Growth::default() }
    }

    /// Looks at everything, or only at what changes fast.
    pub(super) fn look(&mut self, nvml: &Nvml, at_ns: u64, whole: bool) -> Look {
        if whole && self.device.is_none() {
            self.device = nvml.at(self.index).value().copied();
        }
        let Some(device) = self.device else { return Look::default() };
        let mut look = Look::default();
        let mut tell = |what: What, value: Option<f64>| look.values.extend(value.map(|value| (what, value)));
        let read = |source: &Source| source.read(nvml, device).value().copied();
        tell(What::Clock, read(&CLOCK).map(|hertz| hertz / 1e6));
        let link = |id| nvml.number(device, "", How::Field(id, ALL_LINKS)).value().map(|kib| *kib as f64 * 1024e-9);
        let counted = link(NVLINK[0]).zip(link(NVLINK[1])).map(|(sent, received)| sent + received);
        tell(What::NvLink, self.links[usize::from(!whole)].rate(at_ns, counted));
        if whole {
            levels(nvml, device, &mut tell);
            tell(What::Corrected, self.corrected.rate(at_ns, read(&ECC_CORRECTED)));
        }
        let window = self.windows[usize::from(!whole)].as_mut();
        let between = window.map(|window| window.turn(nvml, device, at_ns)).unwrap_or_default();
        // Links that count bytes themselves are more exact.
        let is_new = |(what, _): &(What, f64)| *what != What::NvLink || counted.is_none();
        look.values.extend(between.into_iter().filter(is_new));
        look.answers = !look.values.is_empty();
        look
    }
}

/// What stands as it is.
fn levels(nvml: &Nvml, device: Handle, tell: &mut dyn FnMut(What, Option<f64>)) {
    let read = |source: &Source| source.read(nvml, device).value().copied();
    let busy = nvml.number(device, "nvmlDeviceGetUtilizationRates", How::Pair);
    tell(What::Utilisation, busy.value().map(|percent| *percent as f64));
    for (what, source) in [
        (What::Power, POWER),
        (What::Temperature, TEMPERATURE),
        (What::MemoryTemperature, MEMORY_TEMPERATURE),
        (What::Lost, ECC_LOST),
    ] {
        tell(what, read(&source));
    }
    let memory = nvml.told::<Memory>(device).value().filter(|memory| memory.0[0] > 0).map(|memory| memory.0);
    tell(What::MemoryUsed, memory.map(|[all, _, used]| 100.0 * used as f64 / all as f64));
    let reasons = read(&REASONS).map(|bits| bits as u64);
    let has = |bits: u64| reasons.map(|reasons| if reasons & bits == 0 { 0.0 } else { 100.0 });
    tell(What::Slowed, has(SLOWED));
    tell(What::Capped, has(CAPPED));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_a_rate_from_its_second_value_on_and_none_when_it_begins_anew() {
        let mut growth = Growth::default();
        assert_eq!(growth.rate(0, Some(5.0)), None);
        assert_eq!(growth.rate(2_000_000_000, Some(9.0)), Some(2.0));
        assert_eq!(growth.rate(3_000_000_000, None), None);
        assert_eq!(growth.rate(4_000_000_000, Some(1.0)), None);
        assert_eq!(growth.rate(4_500_000_000, Some(2.0)), Some(2.0));
    }
}
