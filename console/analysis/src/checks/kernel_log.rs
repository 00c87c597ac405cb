//! Has the kernel complained about hardware, or about itself, of late?

use super::check::{Found, Shape, some};
use super::{Check, Gap, NodeFacts, Policy, Severity};

/// What an Xid asks for (AWS's tiers for driver r590; AzNHC's list where it is stricter).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// The application's own fault.
    Application,
    /// To be watched.
    Watch,
    /// Reset the GPU.
    Reset,
    /// Reboot the node.
    Reboot,
    /// Take the node out of use.
    Isolate,
}

pub(super) const fn tier(code: u32) -> Tier {
    match code {
        54 | 165 => Tier::Isolate,
        79 | 151 | 168 => Tier::Reboot,
        48 | 56 | 57 | 58 | 62 | 64 | 65 | 68 | 69 | 73 | 74 | 80 | 81 | 95 | 109 | 110 | 119 | 120 | 136 | 140
        | 143 | 155 | 156 | 158 => Tier::Reset,
        13 | 31 | 43 | 45 | 94 => Tier::Application,
        _ => Tier::Watch,
    }
}

const fn log(
    id: &'static str,
    severity: Severity,
    title: &'static str,
    source: &'static str,
    next: &'static str,
) -> Shape {
    Shape { id, area: &["kernel-log"], severity, title, source, next }
}

pub(super) const CHECKS: &[Check] = &[
    log(
        "xid",
        Severity::Critical,
        "no Xid that wants a reset, a reboot or a new GPU",
        "AzNHC azure_gpu_xid.nhc; AWS tiers (r590); awsome-distributed-ai PR#1190",
        "do what the sentence says; after a reset or reboot measure again, and replace the GPU if the Xid comes back",
    )
    .asks(xid),
    log(
        "sxid",
        Severity::Critical,
        "no fatal error of an NVSwitch",
        "DCGM 109; gpud sxid",
        "reset all GPUs together or reboot; if it comes back, have the baseboard replaced",
    )
    .asks(sxid),
    log(
        "pcie-log-uncorrected",
        Severity::Critical,
        "no uncorrected PCIe error in the log",
        "DCGM 3; NVSentinel",
        "reseat the device named in the line; replace it or its riser if it comes back",
    )
    .asks(|node, policy| none_of(node, policy, &["aer-uncorrected"])),
    log(
        "machine-check",
        Severity::Critical,
        "no machine check and no uncorrected memory error in the log",
        "NHC check_hw_mcelog; GCM; Aegis CriticalError",
        "`ras-mc-ctl --errors` or the BMC's log names CPU or module; have it replaced",
    )
    .asks(|node, policy| none_of(node, policy, &["machine-check", "edac-uncorrected"])),
    log(
        "mlx5-health",
        Severity::Critical,
        "no adapter's firmware reports that it is broken",
        "NVSentinel",
        "reset the adapter (mlxfwreset) or power-cycle; update its firmware; replace it if it comes back",
    )
    .asks(|node, policy| none_of(node, policy, &["mlx5-health"])),
    log(
        "nvme-timeout",
        Severity::Critical,
        "no NVMe disk stopped answering",
        "GCM; AzNHC check_nvme",
        "look at the disk's SMART data (`nvme smart-log`); replace it",
    )
    .asks(|node, policy| none_of(node, policy, &["nvme-timeout"])),
    log(
        "disk-error",
        Severity::Critical,
        "no disk or file system error",
        "GCM smartctl; NHC",
        "check the file system and the disk's SMART data; replace the disk if it reports errors",
    )
    .asks(|node, policy| none_of(node, policy, &["disk-error"])),
    log(
        "kernel-stuck",
        Severity::Critical,
        "no CPU or task hung in the kernel",
        "gpud os; GCM",
        "reboot; the lines around it in the log name driver and function",
    )
    .asks(|node, policy| none_of(node, policy, &["lockup", "hung-task"])),
    log(
        "kernel-oops",
        Severity::Critical,
        "the kernel has not failed",
        "gpud; NHC",
        "reboot and keep the log: the trace names driver and function",
    )
    .asks(|node, policy| none_of(node, policy, &["oops"])),
    log(
        "oom-kill",
        Severity::Warn,
        "the kernel did not run out of memory",
        "gpud memory",
        "find out whose memory it was: a job without a limit, or a service that leaks",
    )
    .asks(|node, policy| none_of(node, policy, &["oom-kill"])),
    log(
        "pcie-log-corrected",
        Severity::Warn,
        "no corrected PCIe errors in the log",
        "DCGM 98; NVSentinel",
        "reseat the device named in the line if there are many",
    )
    .asks(|node, policy| none_of(node, policy, &["aer-corrected"])),
    log(
        "link-down-log",
        Severity::Warn,
        "no link went down",
        "AzNHC (lost carrier)",
        "reseat or replace cable and transceiver; compare with the switch port's log",
    )
    .asks(|node, policy| none_of(node, policy, &["link-down"])),
    log(
        "thermal-log",
        Severity::Warn,
        "nothing was slowed down by heat",
        "gpud; GCM",
        "look at fans, air flow and inlet temperature",
    )
    .asks(|node, policy| none_of(node, policy, &["thermal"])),
    log(
        "peermem-log",
        Severity::Info,
        "no error of GPUDirect RDMA's module",
        "gpud peermem",
        "update driver and OFED together; restart the job that printed it",
    )
    .asks(|node, policy| none_of(node, policy, &["peermem"])),
    log(
        "kernel-errors",
        Severity::Info,
        "no line of level error or worse among the newest",
        "imbue dmesg_whitelist.py",
        "read them on the node's screen: nothing else here may know them",
    )
    .asks(errors),
];

/// One event of the log.
struct Event<'a> {
    text: &'a str,
    code: Option<u32>,
}

/// Events of these kinds within the window. A log that cannot be seen is not a clean one.
fn recent<'a>(node: &NodeFacts<'a>, policy: &Policy, kinds: &[&str]) -> Result<Vec<Event<'a>>, Gap> {
    node.number("kernel-log", "lines").map_err(|gap| match gap {
        Gap::Absent(_) => Gap::Denied("no kernel log can be seen here".to_owned()),
        Gap::Denied(_) => Gap::Denied("the kernel's log may not be read by this login".to_owned()),
        gap => gap,
    })?;
    let window = policy.limit("kernel_log_s");
    let mut found = Vec::new();
    for event in node.instances("kernel-log", "event.", ".kind") {
        let key = |fact: &str| format!("event.{event}.{fact}");
        let kind = node.text("kernel-log", &key("kind"))?;
        // Without an age it may be new.
        let age = node.number("kernel-log", &key("age")).unwrap_or(0.0);
        if kinds.contains(&kind) && age <= window {
            let code = node.number("kernel-log", &key("code")).ok().filter(|code| (0.0..1e6).contains(code));
            let text = node.text("kernel-log", &key("text")).unwrap_or(kind);
            found.push(Event { text, code: code.map(|code| code as u32) });
        }
    }
    Ok(found)
}

fn within(policy: &Policy) -> String {
    format!("in the last {:.0} h", policy.limit("kernel_log_s") / 3600.0)
}

fn none_of(node: &NodeFacts<'_>, policy: &Policy, kinds: &[&str]) -> Result<Found, Gap> {
    let events = recent(node, policy, kinds)?;
    Ok(match events.last() {
        None => Found::pass(format!("none {}", within(policy))),
        Some(last) => Found::fail(format!("{} {}, the last: {}", events.len(), within(policy), short(last.text))),
    })
}

fn short(text: &str) -> String {
    const MOST: usize = 120;
    if text.chars().count() > MOST { text.chars().take(MOST).chain(['…']).collect() } else { text.to_owned() }
}

fn xid(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let events = recent(node, policy, &["xid"])?;
    let judged = |event: &Event<'_>| {
        let code = event.code.unwrap_or(0);
        (recovery(code, event.text).unwrap_or_else(|| tier(code)), code)
    };
    let Some((worst, code)) = events.iter().map(judged).max() else {
        return Ok(Found::pass(format!("none {}", within(policy))));
    };
    let last = events.iter().rev().find(|event| event.code.unwrap_or(0) == code).map_or("", |event| event.text);
    let said = |what: &str| format!("Xid {code}: {what} ({} {}; {})", events.len(), within(policy), short(last));
    Ok(match worst {
        Tier::Application => Found::pass(said("the application's own")),
        Tier::Watch => Found::warn(said("watch this GPU")),
        Tier::Reset => Found::fail(said("the GPU wants a reset")),
        Tier::Reboot => Found::fail(said("the node wants a reboot")),
        Tier::Isolate => Found::fail(said("take the node out of use")),
    })
}

/// Xid 154 is the driver's own word on what is needed.
fn recovery(code: u32, text: &str) -> Option<Tier> {
    let (_, to) = text.split_once("recovery action changed").filter(|_| code == 154)?.1.split_once(" to ")?;
    Some(match to {
        to if to.contains("Reboot") => Tier::Reboot,
        to if to.contains("Reset") => Tier::Reset,
        to if to.contains("None") => Tier::Application,
        _ => Tier::Watch,
    })
}

fn sxid(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let events = recent(node, policy, &["sxid"])?;
    let fatal: Vec<String> = events
        .iter()
        .filter(|event| event.text.contains("Fatal") && !event.text.contains("Non-fatal"))
        .map(|event| short(event.text))
        .collect();
    Ok(match (fatal.is_empty(), events.last()) {
        (false, _) => Found::fail(some(&fatal)),
        (true, Some(last)) => Found::warn(format!("{} not fatal, the last: {}", events.len(), short(last.text))),
        (true, None) => Found::pass(format!("none {}", within(policy))),
    })
}

fn errors(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let errors = node.number("kernel-log", "errors")?;
    let said = format!("{errors:.0} of the newest lines");
    Ok(if errors > 0.0 { Found::warn(said) } else { Found::pass(said) })
}

#[cfg(test)]
mod tests {
    use muster_wire::Reading;

    use crate::State;
    use crate::checks::testing::{Fleet, number, text};

    fn log(events: &[(&str, f64, f64, &str)]) -> Fleet {
        let mut fleet = Fleet::new(1, "kernel-log", &[("lines", number(900.0)), ("errors", number(0.0))]);
        for (at, (kind, code, age, line)) in events.iter().enumerate() {
            fleet.set(0, "kernel-log", &format!("event.{at:03}.kind"), text(kind));
            fleet.set(0, "kernel-log", &format!("event.{at:03}.age"), number(*age));
            fleet.set(0, "kernel-log", &format!("event.{at:03}.text"), text(line));
            if *code > 0.0 {
                fleet.set(0, "kernel-log", &format!("event.{at:03}.code"), number(*code));
            }
        }
        fleet
    }

    fn state(fleet: &Fleet, id: &str) -> State {
        fleet.ask(id).remove(0).state
    }

    #[test]
    fn an_xid_says_what_it_wants() {
        for (code, line, state_wanted, words) in [
            (79.0, "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus", State::Fail, "wants a reboot"),
            (119.0, "NVRM: Xid (PCI:0000:9b:00): 119, Timeout", State::Fail, "wants a reset"),
            (63.0, "NVRM: Xid (PCI:0000:9b:00): 63, Row remapping", State::Warn, "watch this GPU"),
            (31.0, "NVRM: Xid (PCI:0000:9b:00): 31, MMU fault", State::Pass, "the application's own"),
            (
                154.0,
                "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
                State::Fail,
                "wants a reboot",
            ),
            (
                154.0,
                "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
                State::Pass,
                "the application's own",
            ),
        ] {
            let found = log(&[("xid", code, 60.0, line)]).ask("xid").remove(0);
            assert_eq!(found.state, state_wanted, "{line}");
            assert!(found.said.contains(words), "{}", found.said);
        }
    }

    #[test]
    fn what_happened_two_days_ago_is_history() {
        let old = [("xid", 79.0, 200_000.0, "old"), ("nvme-timeout", 0.0, 90_000.0, "old")];
        assert_eq!(state(&log(&old), "xid"), State::Pass);
        assert_eq!(state(&log(&old), "nvme-timeout"), State::Pass);
        let new = [("nvme-timeout", 0.0, 90_000.0, "old"), ("nvme-timeout", 0.0, 9.0, "nvme nvme2: I/O 310 timeout")];
        assert_eq!(log(&new).ask("nvme-timeout")[0].said, "1 in the last 24 h, the last: nvme nvme2: I/O 310 timeout");
    }

    #[test]
    fn only_a_fatal_switch_error_fails_and_an_oom_only_warns() {
        let fleet = log(&[
            ("sxid", 12028.0, 1.0, "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32"),
            ("oom-kill", 0.0, 1.0, "Out of memory: Killed process 1"),
        ]);
        assert_eq!((state(&fleet, "sxid"), state(&fleet, "oom-kill")), (State::Warn, State::Warn));
        let fatal = log(&[("sxid", 20034.0, 1.0, "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30")]);
        assert_eq!(state(&fatal, "sxid"), State::Fail);
    }

    #[test]
    fn a_log_that_nobody_may_read_or_see_is_not_a_clean_one() {
        for reading in [Reading::Denied, Reading::Absent] {
            let fleet = Fleet::new(1, "kernel-log", &[("lines", reading.clone()), ("errors", reading)]);
            let found = fleet.ask("machine-check").remove(0);
            assert!(found.state == State::Unknown && found.denied, "{found:?}");
        }
    }
}
