//! Which lines of the kernel's log speak of broken hardware or a stuck kernel, and of which device.

/// Kinds of events, and what a line of the kind holds: all the parts of one of the alternatives, in any case. The
/// first kind that fits is taken.
const KINDS: &[(&str, &[&[&str]])] = &[
    ("xid", &[&["nvrm: xid"]]),
    ("sxid", &[&["nvidia-nvswitch", "sxid"]]),
    ("aer-corrected", &[&["pcie bus error", "severity=correct"], &["aer:", "corrected error"]]),
    ("aer-uncorrected", &[&["pcie bus error", "severity=uncorrect"], &["aer:", "uncorrectable error"]]),
    ("edac-corrected", &[&["edac mc", " ce "]]),
    ("edac-uncorrected", &[&["edac mc", " ue "]]),
    ("machine-check", &[&["[hardware error]"], &["machine check"]]),
    (
        "mlx5-health",
        &[
            &["mlx5_core", "health compromised"],
            &["mlx5_core", "will cause a leak of a command resource"],
            &["mlx5_core", "unrecoverable"],
        ],
    ),
    ("nvme-timeout", &[&["nvme", "timeout"], &["nvme", "controller is down"], &["nvme", "device not ready"]]),
    (
        "disk-error",
        &[
            &["i/o error, dev "],
            &["buffer i/o error"],
            &["ext4-fs error"],
            &["xfs (", "corruption"],
            &["remounting filesystem read-only"],
        ],
    ),
    ("oom-cgroup", &[&["memory cgroup out of memory"]]),
    ("oom-kill", &[&["out of memory: kill"]]),
    ("lockup", &[&["soft lockup"], &["hard lockup"], &["rcu", "detected stall"], &["rcu", "self-detected stall"]]),
    ("hung-task", &[&["blocked for more than", "seconds"]]),
    ("oops", &[&["kernel bug at"], &["oops:"], &["general protection fault"], &["kernel panic"]]),
    ("thermal", &[&["clock throttled"], &["critical temperature"]]),
    ("link-down", &[&["link is down"], &["link down"], &["lost carrier"]]),
    ("peermem", &[&["nvidia-peermem", "error"]]),
    ("clock-unstable", &[&["clocksource", "unstable"]]),
];

/// What one line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: &'static str,
    /// Number of an Xid or SXid.
    pub(super) code: Option<u32>,
    /// PCI address of an Xid or SXid, as the line has it.
    pub(super) device: Option<String>,
}

/// Every kind.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(kind, _)| *kind)
}

/// The event that `line` tells of.
pub(super) fn event(line: &str) -> Option<Event> {
    let lower = line.to_lowercase();
    let fits = |parts: &&[&str]| parts.iter().all(|part| lower.contains(part));
    let (kind, _) = KINDS.iter().find(|(_, alternatives)| alternatives.iter().any(fits))?;
    let (device, code) = match *kind {
        "xid" | "sxid" => addressed(line),
        _ => (None, None),
    };
    // A line that only mentions the word is no event.
    if matches!(*kind, "xid" | "sxid") && code.is_none() {
        return None;
    }
    Some(Event { kind, code, device })
}

/// Address and number in `Xid (PCI:0000:9b:00): 119, pid=…`.
fn addressed(line: &str) -> (Option<String>, Option<u32>) {
    let Some((device, rest)) = line.split_once("(PCI:").and_then(|(_, rest)| rest.split_once(')')) else {
        return (None, None);
    };
    let is_address = device.len() <= 16 && device.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'));
    let digits: String = rest.trim_start_matches([':', ' ']).chars().take_while(char::is_ascii_digit).collect();
    (is_address.then(|| device.to_owned()), digits.parse().ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_of_real_kernels_are_told_apart() {
        // As kernels and drivers write them.
        for (line, kind) in [
            ("NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting", "xid"),
            ("nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress", "sxid"),
            ("pcieport 0000:80:01.0: AER: Corrected error received: 0000:81:00.0", "aer-corrected"),
            ("mlx5_core 0000:81:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer", "aer-corrected"),
            ("pcieport 0000:80:01.0: AER: Multiple Uncorrectable error received: 0000:81:00.0", "aer-uncorrected"),
            ("nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction", "aer-uncorrected"),
            ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0", "edac-corrected"),
            ("EDAC MC1: 1 UE memory read error on unknown memory", "edac-uncorrected"),
            ("mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: dc00000000800400", "machine-check"),
            (
                "mlx5_core 0000:5e:00.0: poll_health:800: device's health compromised - reached miss count",
                "mlx5-health",
            ),
            ("nvme nvme2: I/O 310 (I/O Cmd) QID 17 timeout, aborting", "nvme-timeout"),
            ("blk_update_request: I/O error, dev sda, sector 1953525120 op 0x0:(READ)", "disk-error"),
            ("EXT4-fs (nvme0n1p2): Remounting filesystem read-only", "disk-error"),
            ("Memory cgroup out of memory: Killed process 4711 (python)", "oom-cgroup"),
            ("Out of memory: Killed process 4711 (python) total-vm:1kB", "oom-kill"),
            ("watchdog: BUG: soft lockup - CPU#17 stuck for 22s! [kworker/17:1]", "lockup"),
            ("rcu: INFO: rcu_sched self-detected stall on CPU", "lockup"),
            ("INFO: task nvidia-smi:8812 blocked for more than 120 seconds.", "hung-task"),
            ("CPU3: Package temperature above threshold, cpu clock throttled (total events = 12)", "thermal"),
            ("mlx5_core 0000:17:00.0 eth2: Link down", "link-down"),
            ("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context", "peermem"),
            (
                "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because",
                "clock-unstable",
            ),
        ] {
            assert_eq!(event(line).map(|event| event.kind), Some(kind), "{line}");
        }
        for line in ["EXT4-fs (sda1): mounted filesystem", "nvme nvme0: 16/0/0 default/read/poll queues", "NVRM: Xid"] {
            assert_eq!(event(line), None, "{line}");
        }
    }

    #[test]
    fn an_xid_has_its_number_and_its_gpu() {
        let found = event("NVRM: Xid (PCI:0000:9b:00): 119, pid=1, Timeout").unwrap();
        assert_eq!((found.code, found.device.as_deref()), (Some(119), Some("0000:9b:00")));
        let hostile = event("NVRM: Xid (PCI:../../../etc/passwd): 79, x").unwrap();
        assert_eq!((hostile.code, hostile.device), (Some(79), None));
        assert_eq!(event("NVRM: Xid (PCI:0000:9b:00): 99999999999999, x"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in ".{0,300}", tail in ".{0,60}") {
            let _ = event(&line);
            let _ = event(&format!("NVRM: Xid (PCI:{tail}"));
        }
    }
}
