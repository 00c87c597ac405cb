//! What happened to each GPU while it was measured: heat, throttling, errors that came up, how its links did.

use std::collections::BTreeMap;

use super::check::{Found, Shape, some};
use super::kernel_log::{Tier, tier};
use super::{Check, Gap, NodeFacts, Policy, Severity};
use crate::State;

const fn critical(id: &'static str, title: &'static str, source: &'static str, next: &'static str) -> Shape {
    Shape { id, area: &["gpu"], severity: Severity::Critical, title, source, next }
}

pub(super) const CHECKS: &[Check] = &[
    critical(
        "gpu-throttle",
        "no GPU was slowed down by heat or by its power supply while it was measured",
        "DCGM; AzNHC (clocks event reasons 8, 32, 64, 128); NVML's violation times",
        "look at fans, air flow and inlet temperature; power brake: at the power supplies",
    )
    .asks(throttled),
    critical(
        "gpu-temperature",
        "no GPU was too hot while it was measured",
        "VESSL (85, 95 °C); gpud",
        "look at fans, air flow, inlet temperature; then have the heat sink reseated",
    )
    .asks(temperature),
    critical(
        "gpu-ecc-growth",
        "no memory error came up and no row was replaced while a GPU was measured",
        "AzNHC check_gpu_ecc, over the time of a benchmark",
        "reset the GPU and measure again; replace it if they come back",
    )
    .asks(grown),
    critical(
        "gpu-nvlink-errors",
        "no NVLink was trained again or lost while a GPU was measured, and they repeated little",
        "DCGM health watch NVLink (recovery fails, CRC and replay warn)",
        "look for SXid and Xid 74 in the kernel log; have the GPU or the baseboard reseated if they come back",
    )
    .asks(nvlink),
    critical(
        "gpu-xid",
        "the driver reported no Xid while a GPU was measured",
        "AWS tiers (r590); AzNHC azure_gpu_xid.nhc",
        "do what the sentence says; after a reset or reboot measure again, and replace the GPU if the Xid comes back",
    )
    .asks(xid),
    critical(
        "gpu-pcie-load",
        "under load every GPU's link is as wide and as fast as it can, and repeats little",
        "DCGM 3 (gen 5 x16; 80 replays); cvs",
        "reseat the GPU or its riser; replace what trains down again",
    )
    .asks(link),
];

/// What was seen of one GPU during one benchmark, as the worker writes it: `looks=12 throttle=8 xid=79`.
struct Load<'a> {
    work: &'a str,
    gpu: &'a str,
    line: &'a str,
}

impl<'a> Load<'a> {
    fn words(&self, name: &str) -> impl Iterator<Item = f64> {
        let of = move |word: &'a str| word.strip_prefix(name)?.strip_prefix('=')?.parse::<f64>().ok();
        self.line.split_whitespace().filter_map(of).filter(|number| number.is_finite())
    }

    fn word(&self, name: &str) -> Option<f64> {
        self.words(name).next()
    }

    fn says(&self, what: &str) -> String {
        format!("GPU {}: {what} during {}", self.gpu, self.work)
    }
}

/// Asks about every GPU and benchmark; the worst answer counts.
fn under_load<'a>(
    node: &NodeFacts<'a>,
    mut ask: impl FnMut(&Load<'a>) -> Option<(State, String)>,
) -> Result<Found, Gap> {
    let loads: Vec<Load<'a>> =
        node.texts("gpu.", ".health").map(|(work, gpu, line)| Load { work, gpu, line }).collect();
    if loads.is_empty() {
        // Without a look nobody knows whether there is a GPU.
        node.looked("gpu")?;
        return Ok(Found::not_applicable("no GPU was watched under load"));
    }
    let mut worst: BTreeMap<State, Vec<String>> = BTreeMap::new();
    for (state, said) in loads.iter().filter_map(&mut ask) {
        worst.entry(state).or_default().push(said);
    }
    Ok(match worst.pop_last() {
        Some((state, said)) => Found { state, ..Found::pass(some(&said)) },
        None => Found::pass(format!("{} GPUs and benchmarks", loads.len())),
    })
}

fn throttled(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    const HELD: [(&str, &str); 3] =
        [("held.heat", "heat"), ("held.hardware", "heat, in hardware"), ("held.brake", "the power brake")];
    const BAD: [(u64, &str); 4] = [
        (8, "hardware slowdown"),
        (32, "software thermal slowdown"),
        (64, "hardware thermal slowdown"),
        (128, "power brake"),
    ];
    let most = policy.limit("gpu_throttled_share");
    under_load(node, |load| {
        let reasons = load.word("throttle").unwrap_or(0.0) as u64;
        let said: Vec<&str> = BAD.iter().filter(|(bit, _)| reasons & bit != 0).map(|(_, name)| *name).collect();
        if !said.is_empty() {
            return Some((State::Fail, load.says(&said.join(", "))));
        }
        // What a look every second misses the driver's own clocks have.
        let (ms, what) = HELD
            .iter()
            .map(|(name, what)| (load.word(name).unwrap_or(0.0), *what))
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let share = ms * 1e-3 / load.word("seconds").filter(|seconds| *seconds > 0.0)?;
        let told = || load.says(&format!("held down by {what} for {:.1} % of the time", share.min(1.0) * 100.0));
        (share > most).then(|| (State::Fail, told()))
    })
}

fn temperature(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let (warm, hot) = (policy.limit("gpu_warm_c"), policy.limit("gpu_hot_c"));
    under_load(node, |load| {
        let degrees = load.word("temperature").filter(|degrees| *degrees >= warm)?;
        let state = if degrees >= hot { State::Fail } else { State::Warn };
        Some((state, load.says(&format!("{degrees:.0} °C"))))
    })
}

fn grown(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let most = policy.limit("gpu_ecc_corrected");
    under_load(node, |load| {
        let by = |name: &str| load.word(name).unwrap_or(0.0);
        let (uncorrected, corrected) = (by("ecc.uncorrected"), by("ecc.corrected"));
        if uncorrected > 0.0 {
            return Some((State::Fail, load.says(&format!("{uncorrected:.0} uncorrected memory errors"))));
        }
        if by("remap.uncorrected") > 0.0 {
            return Some((State::Fail, load.says("a row of memory was replaced for an uncorrected error")));
        }
        if by("remap.corrected") > 0.0 {
            return Some((State::Warn, load.says("a row of memory was replaced for corrected errors")));
        }
        (corrected > most).then(|| (State::Warn, load.says(&format!("{corrected:.0} corrected memory errors"))))
    })
}

fn nvlink(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let most = policy.limit("gpu_nvlink_errors");
    under_load(node, |load| {
        let by = |name: &str| load.word(name).unwrap_or(0.0);
        if by("nvlink.lost") > 0.0 {
            return Some((State::Fail, load.says("an NVLink was lost")));
        }
        let again = by("nvlink.recoveries") + by("nvlink.retrained");
        if again > 0.0 {
            return Some((State::Fail, load.says(&format!("NVLinks were trained again {again:.0} times"))));
        }
        let errors = by("nvlink.crc") + by("nvlink.replays");
        (errors > most).then(|| (State::Warn, load.says(&format!("{errors:.0} NVLink CRC errors and replays"))))
    })
}

fn xid(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    under_load(node, |load| {
        let (worst, code) = load.words("xid").map(|code| (tier(code as u32), code as u32)).max()?;
        let (state, what) = match worst {
            Tier::Application => return None,
            Tier::Watch => (State::Warn, "watch this GPU"),
            Tier::Reset => (State::Fail, "the GPU wants a reset"),
            Tier::Reboot => (State::Fail, "the node wants a reboot"),
            Tier::Isolate => (State::Fail, "take the node out of use"),
        };
        Some((state, format!("{}: {what}", load.says(&format!("Xid {code}")))))
    })
}

fn link(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let most_replays = policy.limit("gpu_replays");
    under_load(node, |load| {
        for (name, unit) in [("pcie.width", "lanes"), ("pcie.generation", "generations")] {
            let most = node.number("gpu", &format!("nvml.{}.{name}.most", load.gpu)).ok();
            // Only copies from and to the host keep the link awake.
            let had = load.word(name).filter(|_| load.work == "gpu-copy-bw");
            if let (Some(had), Some(most)) = (had, most)
                && had < most
            {
                return Some((State::Fail, load.says(&format!("{had:.0} of {most:.0} PCIe {unit}"))));
            }
        }
        if load.word("pcie.fatal").is_some_and(|errors| errors > 0.0) {
            return Some((State::Fail, load.says("fatal PCIe errors")));
        }
        let replays = load.word("pcie.replays").filter(|replays| *replays > most_replays)?;
        Some((State::Warn, load.says(&format!("{replays:.0} PCIe replays"))))
    })
}

#[cfg(test)]
mod tests {
    use muster_wire::{Datum, Reading};

    use crate::State;
    use crate::checks::testing::{Fleet, number, text};

    fn of(facts: &[(&str, f64)]) -> Fleet {
        let mut fleet = Fleet::new(1, "gpu", &[("nvml", Reading::Value(Datum::Flag(true)))]);
        fleet.set(0, "gpu", "nvml.3.temperature", number(58.0));
        facts.iter().for_each(|(key, value)| fleet.set(0, "gpu", key, number(*value)));
        fleet
    }

    #[test]
    fn what_happens_under_load_is_named_with_gpu_and_benchmark() {
        for (line, id, state, said) in [
            ("looks=2 throttle=5", "gpu-throttle", State::Pass, "1 GPUs and benchmarks"),
            ("throttle=72", "gpu-throttle", State::Fail, "hardware slowdown, hardware thermal slowdown"),
            ("temperature=84.9", "gpu-temperature", State::Pass, ""),
            ("temperature=87", "gpu-temperature", State::Warn, "87 °C"),
            ("temperature=96", "gpu-temperature", State::Fail, "96 °C"),
            ("ecc.uncorrected=+1 ecc.corrected=+0", "gpu-ecc-growth", State::Fail, "1 uncorrected memory errors"),
            ("ecc.uncorrected=+0 ecc.corrected=+20000", "gpu-ecc-growth", State::Warn, "20000 corrected"),
            ("xid=31", "gpu-xid", State::Pass, ""),
            ("xid=63 xid=79", "gpu-xid", State::Fail, "Xid 79 during gpu-copy-bw: the node wants a reboot"),
            ("pcie.width=8", "gpu-pcie-load", State::Fail, "8 of 16 PCIe lanes"),
            ("pcie.width=16 pcie.replays=+81", "gpu-pcie-load", State::Warn, "81 PCIe replays"),
            ("seconds=10 held.heat=+90", "gpu-throttle", State::Pass, ""),
            ("seconds=10 held.heat=+250", "gpu-throttle", State::Fail, "held down by heat for 2.5 % of the time"),
            ("seconds=10 held.power=+9000", "gpu-throttle", State::Pass, ""),
            (
                "remap.uncorrected=+1 remap.corrected=+1",
                "gpu-ecc-growth",
                State::Fail,
                "replaced for an uncorrected error",
            ),
            ("remap.corrected=+1", "gpu-ecc-growth", State::Warn, "replaced for corrected errors"),
            ("nvlink.crc=+99 nvlink.replays=+1", "gpu-nvlink-errors", State::Pass, ""),
            ("nvlink.crc=+99 nvlink.replays=+2", "gpu-nvlink-errors", State::Warn, "101 NVLink CRC errors and replays"),
            ("nvlink.recoveries=+1", "gpu-nvlink-errors", State::Fail, "NVLinks were trained again 1 times"),
            ("nvlink.retrained=+1 nvlink.lost=+1", "gpu-nvlink-errors", State::Fail, "an NVLink was lost"),
            ("pcie.fatal=+1", "gpu-pcie-load", State::Fail, "fatal PCIe errors"),
            ("pcie.width=x throttle=\u{1b}", "gpu-pcie-load", State::Pass, ""),
        ] {
            let mut fleet = of(&[("nvml.3.pcie.width.most", 16.0)]);
            fleet.set(0, "gpu-copy-bw", "gpu.3.health", text(line));
            let found = fleet.ask(id).remove(0);
            assert!(found.state == state && found.said.contains(said), "{id} {line}: {found:?}");
            let named = found.said.starts_with("GPU 3: ") && found.said.contains(" during gpu-copy-bw");
            assert_eq!(named, state != State::Pass, "{found:?}");
        }
        assert_eq!(of(&[]).ask("gpu-throttle")[0].state, State::NotApplicable);
    }
}
