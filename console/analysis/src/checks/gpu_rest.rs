//! What NVIDIA's management library tells of each GPU at rest: errors that stay, settings, links, who else is on it.

use super::check::{Ask, Found, Shape};
use super::compare::{Lacking, Same};
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
    .asks(uncorrected),
    critical(
        "gpu-sram",
        "no uncorrected error of on-chip memory, and NVIDIA's limit for a replacement not reached",
        "NVIDIA GPU memory error management (SRAM threshold); nvidia-smi -q -d ECC",
        "limit reached: have the GPU replaced; else reset it, and replace it if they come back",
    )
    .asks(sram),
    critical(
        "gpu-remap",
        "no replaced row of memory waits for a reset, none failed, and every bank has rows left",
        "DCGM; AzNHC; SuperBench paper table 1",
        "pending: reset the GPU when it is idle; failed or no row left: replace the GPU",
    )
    .asks(remapped),
    critical(
        "gpu-retired",
        "no retired page of memory waits for a reboot, and there are few",
        "NVIDIA dynamic page retirement (60 pages); DCGM",
        "pending: reboot the node; many: replace the GPU",
    )
    .asks(retired),
    critical(
        "gpu-recovery",
        "the driver asks for no reset, reboot or repair of a GPU",
        "nvidia-smi -q (GPU Recovery Action); gpud",
        "drain the node and do what the sentence says",
    )
    .asks(recovery),
    critical(
        "gpu-nvlink",
        "every NVLink is up, and as fast as those of the node's other GPUs",
        "AzNHC NHC2016; DCGM 99",
        "look for SXid and Xid 74 in the kernel log; restart the fabric manager; have the baseboard looked at",
    )
    .asks(nvlink),
    critical(
        "gpu-fabric",
        "every GPU has joined the NVLink fabric",
        "gpud fabric-manager; nvidia-smi -q (Fabric)",
        "systemctl status nvidia-fabricmanager and its log; restart it, then reset the GPUs",
    )
    .asks(fabric),
    Shape {
        severity: Severity::Warn,
        ..critical(
            "gpu-power-limit",
            "no GPU is held below the power it is made for",
            "cvs; imbue",
            "nvidia-smi -q -d POWER; set the limit back unless it is meant: every benchmark of this GPU is slower",
        )
    }
    .asks(power_limit),
    Shape {
        severity: Severity::Warn,
        ..critical(
            "gpu-idle",
            "nobody else computes on the GPUs",
            "SuperBench paper 3.1 (nodes are validated when they are idle)",
            "end the processes that the sentence names, then measure again",
        )
    }
    .asks(idle),
    Check {
        id: "gpu-settings-consistent",
        area: "gpu",
        title: "firmware, ECC, MIG, power limit and application clocks are those of the group",
        severity: Severity::Warn,
        source: "imbue (vbios); GCM --gpu_vbios; gpud",
        next: "set it as on the others (nvidia-smi -e, -mig, -pl, -rac), or update the firmware",
        needs: &["gpu"],
        ask: Ask::Equal(&[
            same("nvml.*.name"),
            same("nvml.*.vbios"),
            same("nvml.*.inforom"),
            same("nvml.*.ecc.mode"),
            same("nvml.*.mig"),
            same("nvml.*.power.limit"),
            same("nvml.*.clock.sm.application"),
        ]),
    },
];

const fn same(key: &'static str) -> Same {
    Same { collector: "gpu", key, lacking: Lacking::Skipped }
}

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
    let spent = at_rest(node, &["spares.none"], |gpu, [banks]| {
        (banks > 0.0).then(|| format!("GPU {gpu}: {banks:.0} banks of memory have no row left"))
    })?;
    if spent.state == State::Fail {
        return Ok(spent);
    }
    let most = policy.limit("gpu_remapped");
    let many = at_rest(node, &["remap.corrected"], |gpu, [rows]| over(gpu, rows, most, "replaced rows"))?;
    Ok(if many.state == State::Fail { Found::warn(many.said) } else { many })
}

fn uncorrected(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    const PLACES: [&str; 7] = ["dram", "sram", "l2", "l1", "registers", "shared", "cbu"];
    at_rest(node, &["ecc.uncorrected"], |gpu, [errors]| {
        let there = |place: &&&str| {
            node.number("gpu", &format!("nvml.{gpu}.ecc.uncorrected.{place}")).is_ok_and(|errors| errors > 0.0)
        };
        let places: Vec<&str> = PLACES.iter().filter(there).copied().collect();
        let said = over(gpu, errors, 0.0, "uncorrected errors")?;
        Some(if places.is_empty() { said } else { format!("{said} ({})", places.join(", ")) })
    })
}

fn sram(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let most = policy.limit("gpu_sram_uncorrected");
    at_rest(node, &["sram.exceeded", "sram.parity.ever", "sram.secded.ever"], |gpu, [exceeded, parity, secded]| {
        if exceeded > 0.0 {
            return Some(format!("GPU {gpu}: NVIDIA's limit of on-chip memory errors is reached"));
        }
        over(gpu, parity + secded, most, "uncorrected errors of on-chip memory since it was made")
    })
}

fn retired(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let pending = at_rest(node, &["retired.pending"], |gpu, [pending]| {
        (pending > 0.0).then(|| format!("GPU {gpu}: a page waits for a reboot to be retired"))
    })?;
    if pending.state == State::Fail {
        return Ok(pending);
    }
    let most = policy.limit("gpu_retired");
    at_rest(node, &["retired.single", "retired.double"], |gpu, [single, double]| {
        over(gpu, single + double, most, "retired pages")
    })
}

fn recovery(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let asked = at_rest(node, &["recovery"], |gpu, [action]| {
        let what = match action as u32 {
            0 => return None,
            1 => "a reset of the GPU",
            2 => "a reboot of the node",
            3 => "its peers to be drained",
            4 => "the GPU to be drained and reset",
            5 => "the IMEX domain to be recovered",
            _ => "an action that this version does not know",
        };
        Some(format!("GPU {gpu}: the driver asks for {what}"))
    })?;
    if asked.state == State::Fail {
        return Ok(asked);
    }
    let repair = at_rest(node, &["repair.channel", "repair.tpc"], |gpu, [channel, tpc]| {
        let what = if channel > 0.0 { "a memory channel" } else { "a cluster of multiprocessors" };
        (channel + tpc > 0.0).then(|| format!("GPU {gpu}: the repair of {what} waits for a reset"))
    })?;
    Ok(if repair.state == State::Fail { repair } else { asked })
}

fn nvlink(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let down = at_rest(node, &["nvlink.links", "nvlink.up"], |gpu, [links, up]| {
        let which = node.text("gpu", &format!("nvml.{gpu}.nvlink.down"));
        let which = which.map(|links| format!(", not {}", links.replace(' ', ", "))).unwrap_or_default();
        (up < links).then(|| format!("GPU {gpu}: {up:.0} of {links:.0} links are up{which}"))
    })?;
    if down.state != State::Pass {
        return Ok(down);
    }
    let speed = |gpu: &str| node.number("gpu", &format!("nvml.{gpu}.nvlink.speed")).unwrap_or(0.0);
    let fastest = node.instances("gpu", "nvml.", ".nvlink.speed").into_iter().map(speed).fold(0.0, f64::max);
    let slow = at_rest(node, &["nvlink.speed"], |gpu, [speed]| {
        let gigabytes = |speed: f64| speed / 1e9;
        (speed < fastest)
            .then(|| format!("GPU {gpu}: a link runs at {:.1} of {:.1} GB/s", gigabytes(speed), gigabytes(fastest)))
    })?;
    Ok(if slow.state == State::Fail { slow } else { down })
}

fn fabric(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    at_rest(node, &["fabric.state", "fabric.status", "fabric.degraded"], |gpu, [state, status, degraded]| {
        let what = match state as u32 {
            3 if status > 0.0 => format!("joining the fabric failed with error {status:.0}"),
            3 if degraded > 0.0 => "its bandwidth into the fabric is degraded".to_owned(),
            3 => return None,
            2 => "it is still joining the fabric".to_owned(),
            _ => "it has not begun to join the fabric".to_owned(),
        };
        Some(format!("GPU {gpu}: {what}"))
    })
}

fn power_limit(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    at_rest(node, &["power.limit", "power.limit.usual"], |gpu, [limit, usual]| {
        (limit < usual).then(|| format!("GPU {gpu}: limited to {limit:.0} of {usual:.0} W"))
    })
}

fn idle(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    at_rest(node, &["processes"], |gpu, [count]| {
        let who = node.text("gpu", &format!("nvml.{gpu}.processes.names")).unwrap_or("unknown");
        (count > 0.0).then(|| format!("GPU {gpu}: {count:.0} processes compute on it ({who})"))
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

    /// Facts of GPU 3, the check, its answer.
    const ANSWERS: [(&str, &str, State, &str); 23] = [
        ("ecc.uncorrected=2", "gpu-ecc", State::Fail, "GPU 3: 2 uncorrected errors"),
        ("ecc.uncorrected=0", "gpu-ecc", State::Pass, "1 GPUs"),
        ("", "gpu-ecc", State::NotApplicable, "no GPU tells this"),
        ("ecc.uncorrected=1 ecc.uncorrected.sram=1", "gpu-ecc", State::Fail, "GPU 3: 1 uncorrected errors (sram)"),
        ("remap.pending=1 remap.failed=0", "gpu-remap", State::Fail, "GPU 3: a replacement waits for a reset"),
        ("remap.pending=0 remap.failed=0 remap.corrected=11", "gpu-remap", State::Warn, "GPU 3: 11 replaced rows"),
        (
            "remap.pending=0 remap.failed=0 spares.none=2",
            "gpu-remap",
            State::Fail,
            "GPU 3: 2 banks of memory have no row left",
        ),
        ("nvlink.links=18 nvlink.up=17", "gpu-nvlink", State::Fail, "GPU 3: 17 of 18 links are up"),
        (
            "sram.exceeded=1 sram.parity.ever=0 sram.secded.ever=0",
            "gpu-sram",
            State::Fail,
            "GPU 3: NVIDIA's limit of on-chip memory errors is reached",
        ),
        (
            "sram.exceeded=0 sram.parity.ever=1 sram.secded.ever=1",
            "gpu-sram",
            State::Fail,
            "GPU 3: 2 uncorrected errors of on-chip memory since it was made",
        ),
        ("sram.exceeded=0", "gpu-sram", State::NotApplicable, "no GPU tells this"),
        ("retired.pending=1", "gpu-retired", State::Fail, "GPU 3: a page waits for a reboot to be retired"),
        ("retired.pending=0 retired.single=58 retired.double=3", "gpu-retired", State::Fail, "GPU 3: 61 retired pages"),
        ("recovery=2", "gpu-recovery", State::Fail, "GPU 3: the driver asks for a reboot of the node"),
        (
            "recovery=0 repair.channel=0 repair.tpc=1",
            "gpu-recovery",
            State::Fail,
            "GPU 3: the repair of a cluster of multiprocessors waits for a reset",
        ),
        ("recovery=0", "gpu-recovery", State::Pass, "1 GPUs"),
        (
            "fabric.state=2 fabric.status=0 fabric.degraded=0",
            "gpu-fabric",
            State::Fail,
            "GPU 3: it is still joining the fabric",
        ),
        (
            "fabric.state=3 fabric.status=9 fabric.degraded=0",
            "gpu-fabric",
            State::Fail,
            "GPU 3: joining the fabric failed with error 9",
        ),
        (
            "fabric.state=3 fabric.status=0 fabric.degraded=1",
            "gpu-fabric",
            State::Fail,
            "GPU 3: its bandwidth into the fabric is degraded",
        ),
        ("fabric.state=3 fabric.status=0 fabric.degraded=0", "gpu-fabric", State::Pass, "1 GPUs"),
        ("", "gpu-fabric", State::NotApplicable, "no GPU tells this"),
        ("power.limit=500 power.limit.usual=700", "gpu-power-limit", State::Warn, "GPU 3: limited to 500 of 700 W"),
        ("processes=2", "gpu-idle", State::Warn, "GPU 3: 2 processes compute on it (unknown)"),
    ];

    #[test]
    fn what_stays_at_rest_is_judged_and_what_a_card_does_not_tell_is_not() {
        for (facts, id, state, said) in ANSWERS {
            let facts = facts.split_whitespace().filter_map(|word| word.split_once('='));
            let mut fleet = of(&[]);
            facts
                .for_each(|(key, value)| fleet.set(0, "gpu", &format!("nvml.3.{key}"), number(value.parse().unwrap())));
            let found = fleet.ask(id).remove(0);
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
    fn a_link_is_named_and_a_slow_one_is_told_by_the_other_gpus() {
        let mut fleet = of(&[("nvml.3.nvlink.links", 18.0), ("nvml.3.nvlink.up", 16.0), ("nvml.3.nvlink.speed", 20e9)]);
        fleet.set(0, "gpu", "nvml.3.nvlink.down", text("4 11"));
        assert_eq!(fleet.ask("gpu-nvlink")[0].said, "GPU 3: 16 of 18 links are up, not 4, 11");
        fleet.set(0, "gpu", "nvml.3.nvlink.up", number(18.0));
        assert_eq!(fleet.ask("gpu-nvlink")[0].state, State::Pass);
        fleet.set(0, "gpu", "nvml.4.temperature", number(58.0));
        fleet.set(0, "gpu", "nvml.4.nvlink.speed", number(26.562e9));
        assert_eq!(fleet.ask("gpu-nvlink")[0].said, "GPU 3: a link runs at 20.0 of 26.6 GB/s");
    }

    #[test]
    fn a_gpu_with_other_settings_than_its_group_is_told() {
        let mut fleet =
            Fleet::new(3, "gpu", &[("nvml.0.ecc.mode", number(1.0)), ("nvml.0.power.limit", number(700.0))]);
        assert!(fleet.ask("gpu-settings-consistent").iter().all(|found| found.state == State::Pass));
        fleet.set(1, "gpu", "nvml.0.ecc.mode", number(0.0));
        let found = fleet.ask("gpu-settings-consistent").remove(1);
        assert_eq!((found.state, found.said.contains("nvml.0.ecc.mode is 0")), (State::Warn, true), "{found:?}");
    }
}
