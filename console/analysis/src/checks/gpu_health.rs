//! What NVIDIA's management library tells of each GPU, at rest and while it was measured.

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
        "gpu-nvml",
        "NVIDIA's management library answers",
        "gpud; GCM",
        "do what its words say: after an update of the driver reboot; GPU is lost: power-cycle",
    )
    .asks(nvml),
    critical(
        "gpu-ecc",
        "no uncorrected memory error since the driver was loaded",
        "GCM 0; AzNHC check_gpu_ecc",
        "reset the GPU; replace it if they come back",
    )
    .asks(|node, _| at_rest(node, &["ecc.uncorrected"], |gpu, [errors]| over(gpu, errors, 0.0, "uncorrected errors"))),
    critical(
        "gpu-remap",
        "no replaced row of memory waits for a reset, and none failed",
        "DCGM; AzNHC; SuperBench paper table 1",
        "pending: reset the GPU when it is idle; failed: replace the GPU",
    )
    .asks(remapped),
    critical(
        "gpu-nvlink",
        "every NVLink is up",
        "AzNHC NHC2016; DCGM 99",
        "look for SXid and Xid 74 in the kernel log; restart the fabric manager; have the baseboard looked at",
    )
    .asks(|node, _| {
        at_rest(node, &["nvlink.links", "nvlink.up"], |gpu, [links, up]| {
            (up < links).then(|| format!("GPU {gpu}: {up:.0} of {links:.0} links are up"))
        })
    }),
    critical(
        "gpu-throttle",
        "no GPU was slowed down by heat or by its power supply while it was measured",
        "DCGM; AzNHC (clocks event reasons 8, 32, 64, 128)",
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
        "no memory error came up while a GPU was measured",
        "AzNHC check_gpu_ecc, over the time of a benchmark",
        "reset the GPU and measure again; replace it if they come back",
    )
    .asks(grown),
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

fn over(gpu: &str, count: f64, most: f64, what: &str) -> Option<String> {
    (count > most).then(|| format!("GPU {gpu}: {count:.0} {what}"))
}

fn nvml(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    node.looked("gpu")?;
    match node.flag("gpu", "nvml") {
        Ok(_) => {
            let gpus = node.instances("gpu", "nvml.", ".temperature");
            // A GPU of which not even this can be said is lost.
            let mute = gpus.iter().filter_map(|gpu| match node.number("gpu", &format!("nvml.{gpu}.temperature")) {
                Err(Gap::Unreadable(why)) => Some(format!("GPU {gpu}: {why}")),
                _ => None,
            });
            Ok(Found::fail_if(&mute.collect::<Vec<_>>(), format!("{} GPUs", gpus.len())))
        }
        Err(Gap::Unreadable(why)) => Ok(Found::fail(why)),
        Err(Gap::Absent(_)) => Ok(Found::not_applicable("no NVIDIA GPU, or no management library")),
        Err(gap) => Err(gap),
    }
}

/// Asks every GPU for some numbers; one that does not have them all is not judged.
fn at_rest<const N: usize>(
    node: &NodeFacts<'_>,
    names: &[&str; N],
    bad: impl Fn(&str, [f64; N]) -> Option<String>,
) -> Result<Found, Gap> {
    node.looked("gpu")?;
    let (mut found, mut asked) = (Vec::new(), 0);
    for gpu in node.instances("gpu", "nvml.", ".temperature") {
        let mut numbers = [0.0; N];
        let mut whole = true;
        for (number, name) in numbers.iter_mut().zip(names) {
            match node.number("gpu", &format!("nvml.{gpu}.{name}")) {
                Ok(read) => *number = read,
                Err(_) => whole = false,
            }
        }
        if whole {
            asked += 1;
            found.extend(bad(gpu, numbers));
        }
    }
    if asked == 0 {
        return Ok(Found::not_applicable("no GPU tells this"));
    }
    Ok(Found::fail_if(&found, format!("{asked} GPUs")))
}

fn remapped(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let broken = at_rest(node, &["remap.pending", "remap.failed"], |gpu, [pending, failed]| {
        let what = if failed > 0.0 { "a replacement failed" } else { "a replacement waits for a reset" };
        (pending + failed > 0.0).then(|| format!("GPU {gpu}: {what}"))
    })?;
    if broken.state != State::Pass {
        return Ok(broken);
    }
    let most = policy.limit("gpu_remapped");
    let many = at_rest(node, &["remap.corrected"], |gpu, [rows]| over(gpu, rows, most, "replaced rows"))?;
    Ok(if many.state == State::Fail { Found::warn(many.said) } else { many })
}

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

fn throttled(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    const BAD: [(u64, &str); 4] = [
        (8, "hardware slowdown"),
        (32, "software thermal slowdown"),
        (64, "hardware thermal slowdown"),
        (128, "power brake"),
    ];
    under_load(node, |load| {
        let reasons = load.word("throttle")? as u64;
        let said: Vec<&str> = BAD.iter().filter(|(bit, _)| reasons & bit != 0).map(|(_, name)| *name).collect();
        (!said.is_empty()).then(|| (State::Fail, load.says(&said.join(", "))))
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
        (corrected > most).then(|| (State::Warn, load.says(&format!("{corrected:.0} corrected memory errors"))))
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
        let replays = load.word("pcie.replays").filter(|replays| *replays > most_replays)?;
        Some((State::Warn, load.says(&format!("{replays:.0} PCIe replays"))))
    })
}

#[cfg(test)]
mod tests {
    use muster_wire::{Datum, Reading};

    use crate::State;
    use crate::checks::testing::{Fleet, absent, number, text};

    fn of(facts: &[(&str, f64)]) -> Fleet {
        let mut fleet = Fleet::new(1, "gpu", &[("nvml", Reading::Value(Datum::Flag(true)))]);
        fleet.set(0, "gpu", "nvml.3.temperature", number(58.0));
        facts.iter().for_each(|(key, value)| fleet.set(0, "gpu", key, number(*value)));
        fleet
    }

    #[test]
    fn at_rest_errors_waiting_rows_and_links_that_are_down_fail() {
        for (facts, id, state, said) in [
            (vec![("nvml.3.ecc.uncorrected", 2.0)], "gpu-ecc", State::Fail, "GPU 3: 2 uncorrected errors"),
            (vec![("nvml.3.ecc.uncorrected", 0.0)], "gpu-ecc", State::Pass, "1 GPUs"),
            (vec![], "gpu-ecc", State::NotApplicable, "no GPU tells this"),
            (
                vec![("nvml.3.remap.pending", 1.0), ("nvml.3.remap.failed", 0.0)],
                "gpu-remap",
                State::Fail,
                "GPU 3: a replacement waits for a reset",
            ),
            (
                vec![("nvml.3.remap.pending", 0.0), ("nvml.3.remap.failed", 0.0), ("nvml.3.remap.corrected", 11.0)],
                "gpu-remap",
                State::Warn,
                "GPU 3: 11 replaced rows",
            ),
            (
                vec![("nvml.3.nvlink.links", 18.0), ("nvml.3.nvlink.up", 17.0)],
                "gpu-nvlink",
                State::Fail,
                "GPU 3: 17 of 18 links are up",
            ),
        ] {
            let found = of(&facts).ask(id).remove(0);
            assert_eq!((found.state, found.said.as_str()), (state, said), "{id}");
        }
    }

    #[test]
    fn a_library_that_fails_or_a_gpu_that_is_lost_fails_and_no_library_is_no_fault() {
        let mut fleet = of(&[]);
        assert_eq!(fleet.ask("gpu-nvml")[0].state, State::Pass);
        fleet.set(0, "gpu", "nvml.3.temperature", Reading::Failed("GPU is lost".into()));
        assert_eq!(fleet.ask("gpu-nvml")[0].said, "GPU 3: nvml.3.temperature cannot be read: GPU is lost");
        fleet.set(0, "gpu", "nvml", Reading::Failed("nvmlInit_v2: Driver/library version mismatch".into()));
        assert_eq!(fleet.ask("gpu-nvml")[0].state, State::Fail);
        fleet.set(0, "gpu", "nvml", absent());
        assert_eq!(fleet.ask("gpu-nvml")[0].state, State::NotApplicable);
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
