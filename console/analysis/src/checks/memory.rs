//! Is all memory there, whole, and free to be used in large pieces?

use super::check::{Ask, Found};
use super::compare::{Count, Lacking, Same};
use super::{Check, Gap, NodeFacts, Policy, Severity};

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

const fn differs(key: &'static str) -> Same {
    Same { collector: "memory", key, lacking: Lacking::Differs }
}

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "memory-size",
        area: "memory",
        title: "as much memory as expected, within 3 %",
        severity: Severity::Critical,
        source: "AzNHC; NHC check_hw_physmem",
        next: "look for a disabled module in the BMC's log or the BIOS's map-out list; have it replaced",
        needs: &["memory"],
        ask: Ask::Count(Count {
            collector: "memory",
            key: "total",
            expect: "memory_gib",
            per: GIB,
            tolerance: Some("memory_tolerance"),
        }),
    },
    Check {
        id: "dimm-count",
        area: "memory",
        title: "as many memory modules as expected",
        severity: Severity::Critical,
        source: "GCM --dimms",
        next: "look for a disabled module in the BMC's log; have it reseated or replaced",
        needs: &["memory"],
        ask: Ask::Count(Count { collector: "memory", key: "edac.dimms", expect: "dimms", per: 1.0, tolerance: None }),
    },
    Check {
        id: "memory-uncorrected",
        area: "memory",
        title: "no uncorrected memory error since boot",
        severity: Severity::Critical,
        source: "NHC check_hw_mcelog; GCM; Aegis CriticalError",
        next: "take the node out and have the module named by the BMC or `ras-mc-ctl --errors` replaced",
        needs: &["memory"],
        ask: Ask::Node(uncorrected),
    },
    Check {
        id: "memory-corrected",
        area: "memory",
        title: "few corrected memory errors since boot",
        severity: Severity::Warn,
        source: "NHC check_hw_mcelog; GCM",
        next: "watch the module named by `ras-mc-ctl --errors`; replace it when the count keeps growing",
        needs: &["memory"],
        ask: Ask::Node(corrected),
    },
    Check {
        id: "swap",
        area: "memory",
        title: "no swap space",
        severity: Severity::Warn,
        source: "AzNHC; imbue",
        next: "swapoff -a and take it out of /etc/fstab: a swapping rank slows the whole job",
        needs: &["memory"],
        ask: Ask::Node(swap),
    },
    Check {
        id: "hugepages-consistent",
        area: "memory",
        title: "huge pages are set up as in the group",
        severity: Severity::Warn,
        source: "AWS; cvs",
        next: "set vm.nr_hugepages and transparent_hugepage as on the others",
        needs: &["memory"],
        ask: Ask::Equal(&[differs("hugepages.transparent"), differs("hugepages.total"), differs("hugepages.size")]),
    },
    Check {
        id: "memory-fragmentation",
        area: "memory",
        title: "enough of the free memory lies in large pieces",
        severity: Severity::Warn,
        source: "GCM check_buddyinfo",
        next: "echo 1 > /proc/sys/vm/compact_memory, or reboot before a job that pins much memory",
        needs: &["memory"],
        ask: Ask::Node(fragmentation),
    },
];

fn uncorrected(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let errors = node.number("memory", "edac.uncorrected");
    let corrupted = node.number("memory", "corrupted").unwrap_or(0.0);
    let mut bad = Vec::new();
    if let Ok(errors) = &errors
        && *errors > 0.0
    {
        bad.push(format!("{errors:.0} uncorrected errors since boot"));
    }
    if corrupted > 0.0 {
        bad.push(format!("{:.0} KiB taken out of use as corrupted", corrupted / 1024.0));
    }
    if bad.is_empty() {
        errors?;
    }
    Ok(Found::fail_if(&bad, "no uncorrected error since boot"))
}

fn corrected(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let (errors, most) = (node.number("memory", "edac.corrected")?, policy.limit("edac_corrected"));
    let said = format!("{errors:.0} corrected errors since boot");
    Ok(if errors > most { Found::warn(format!("{said}, at most {most:.0}")) } else { Found::pass(said) })
}

fn swap(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let total = node.number("memory", "swap.total")?;
    let said = format!("{:.1} GiB of swap", total / GIB);
    Ok(if total > 0.0 { Found::warn(said) } else { Found::pass("no swap") })
}

fn fragmentation(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let (share, least) = (node.number("memory", "free.huge_share")?, policy.limit("free_huge_share"));
    let said = format!("{:.0} % of free memory lies in blocks of 2 MiB and more", share * 100.0);
    Ok(if share < least { Found::warn(format!("{said}, at least {:.0} %", least * 100.0)) } else { Found::pass(said) })
}

#[cfg(test)]
mod tests {
    use crate::State;
    use crate::checks::testing::{Fleet, absent, number};

    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

    #[test]
    fn three_percent_of_memory_may_be_missing_and_a_module_may_not() {
        let mut fleet = Fleet::new(4, "memory", &[("total", number(2048.0 * GIB))]);
        fleet.set(1, "memory", "total", number(2000.0 * GIB));
        fleet.set(2, "memory", "total", number(1920.0 * GIB));
        let found = fleet.ask("memory-size");
        assert_eq!((found[1].state, found[2].state), (State::Pass, State::Fail));
        assert_eq!(found[2].said, "memory_gib: 1920, 3 of 4 nodes have 2048");
    }

    #[test]
    fn a_node_without_counters_is_not_a_node_without_errors() {
        let fleet = Fleet::new(1, "memory", &[("edac.uncorrected", absent()), ("edac.corrected", absent())]);
        assert_eq!(fleet.ask("memory-uncorrected")[0].state, State::NotApplicable);
        assert_eq!(fleet.ask("memory-corrected")[0].state, State::NotApplicable);
    }

    #[test]
    fn lost_bits_fail_the_node_and_corrected_ones_warn() {
        let fleet = Fleet::new(1, "memory", &[("edac.uncorrected", number(1.0)), ("edac.corrected", number(11.0))]);
        assert_eq!(fleet.ask("memory-uncorrected")[0].state, State::Fail);
        assert_eq!(fleet.ask("memory-corrected")[0].said, "11 corrected errors since boot, at most 10");
        let taken = Fleet::new(1, "memory", &[("edac.uncorrected", absent()), ("corrupted", number(4096.0))]);
        assert_eq!(taken.ask("memory-uncorrected")[0].said, "4 KiB taken out of use as corrupted");
    }

    #[test]
    fn swap_and_fragmentation_warn() {
        let fleet = Fleet::new(1, "memory", &[("swap.total", number(GIB)), ("free.huge_share", number(0.04))]);
        assert_eq!(fleet.ask("swap")[0].said, "1.0 GiB of swap");
        assert_eq!(fleet.ask("memory-fragmentation")[0].state, State::Warn);
    }
}
