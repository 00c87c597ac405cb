//! Is this the machine, system and configuration that the others of its group are?

use super::check::{Ask, Found};
use super::compare::{Lacking, Same};
use super::{Check, Gap, NodeFacts, Policy, Severity};

const fn differs(collector: &'static str, key: &'static str) -> Same {
    Same { collector, key, lacking: Lacking::Differs }
}

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "os-consistent",
        area: "host",
        title: "distribution and C library are those of the group",
        severity: Severity::Warn,
        source: "cvs host_configs; GCM",
        next: "install the image of the others, or give the node an `sku` of its own in the inventory",
        needs: &["identity"],
        ask: Ask::Equal(&[differs("identity", "os.name"), differs("identity", "libc")]),
    },
    Check {
        id: "kernel-consistent",
        area: "host",
        title: "the kernel is that of the group",
        severity: Severity::Warn,
        source: "cvs host_configs; GCM",
        next: "install the kernel of the others and reboot",
        needs: &["identity"],
        ask: Ask::Equal(&[differs("identity", "kernel.release")]),
    },
    Check {
        id: "cmdline-consistent",
        area: "host",
        title: "the kernel command line is that of the group",
        severity: Severity::Warn,
        source: "cvs host_configs (iommu=pt, pci=realloc=off)",
        next: "compare the boot loader's configuration with another node, correct it and reboot",
        needs: &["kernel"],
        ask: Ask::Equal(&[differs("kernel", "cmdline.*")]),
    },
    Check {
        id: "sysctl-consistent",
        area: "host",
        title: "kernel parameters are those of the group",
        severity: Severity::Warn,
        source: "cvs host_configs",
        next: "compare /etc/sysctl.d with another node and set the parameter as there",
        needs: &["kernel"],
        ask: Ask::Equal(&[differs("kernel", "sysctl.*")]),
    },
    Check {
        id: "modules-consistent",
        area: "host",
        title: "driver versions are those of the group",
        severity: Severity::Warn,
        source: "soperator PR#2684; imbue (OFED)",
        next: "install the driver of the others; reload it or reboot",
        needs: &["kernel"],
        ask: Ask::Equal(&[differs("kernel", "module.*")]),
    },
    Check {
        id: "mitigations-consistent",
        area: "host",
        title: "mitigations of CPU flaws are those of the group, since they cost speed",
        severity: Severity::Warn,
        source: "muster",
        next: "compare `mitigations=` on the kernel command line and the microcode with another node",
        needs: &["kernel"],
        ask: Ask::Equal(&[differs("kernel", "mitigation.*")]),
    },
    Check {
        id: "firmware-consistent",
        area: "host",
        title: "model and BIOS are those of the group",
        severity: Severity::Warn,
        source: "cvs; imbue",
        next: "bring the BIOS to the version of the others; another model wants an `sku` of its own",
        needs: &["identity"],
        ask: Ask::Equal(&[differs("identity", "dmi.product"), differs("identity", "bios.version")]),
    },
    Check {
        id: "recently-booted",
        area: "host",
        title: "the node has been up for a while",
        severity: Severity::Warn,
        source: "GCM (600 s)",
        next: "find out why it rebooted: the end of the last kernel log, the BMC's event log, power",
        needs: &["identity"],
        ask: Ask::Node(recently_booted),
    },
];

fn recently_booted(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let (uptime, least) = (node.number("identity", "uptime")?, policy.limit("booted_s"));
    let said = format!("up for {uptime:.0} s");
    Ok(if uptime < least { Found::warn(format!("{said}, less than {least:.0} s")) } else { Found::pass(said) })
}

#[cfg(test)]
mod tests {
    use crate::State;
    use crate::checks::testing::{Fleet, absent, number, text};

    #[test]
    fn the_node_with_another_kernel_parameter_is_named_with_the_majority_and_its_count() {
        let mut fleet = Fleet::new(6, "kernel", &[("sysctl.net.core.somaxconn", text("4096"))]);
        fleet.set(2, "kernel", "sysctl.net.core.somaxconn", text("128"));
        let found = fleet.ask("sysctl-consistent");
        assert_eq!(found[2].state, State::Warn);
        assert_eq!(found[2].said, "sysctl.net.core.somaxconn is 128, 5 of 6 nodes have 4096");
        assert!(found.iter().enumerate().all(|(at, found)| at == 2 || found.state == State::Pass), "{found:?}");
    }

    #[test]
    fn without_a_clear_majority_nobody_is_accused() {
        let mut fleet = Fleet::new(4, "identity", &[("kernel.release", text("6.1.0"))]);
        fleet.set(0, "identity", "kernel.release", text("6.2.0"));
        fleet.set(1, "identity", "kernel.release", text("6.2.0"));
        assert!(fleet.ask("kernel-consistent").iter().all(|found| found.state == State::Unknown));
        let pair = Fleet::new(1, "identity", &[("kernel.release", text("6.1.0"))]);
        assert!(pair.ask("kernel-consistent").iter().all(|found| found.state == State::NotApplicable));
    }

    #[test]
    fn a_word_that_only_one_node_has_is_a_difference_and_its_root_disk_is_not() {
        let mut fleet = Fleet::new(4, "kernel", &[("cmdline.quiet", text("")), ("cmdline.root", text("UUID=1"))]);
        fleet.set(3, "kernel", "cmdline.nosmt", text("force"));
        fleet.set(1, "kernel", "cmdline.root", text("UUID=2"));
        let found = fleet.ask("cmdline-consistent");
        assert_eq!(found[3].said, "cmdline.nosmt is force, 3 of 4 nodes have none");
        assert!(found[..3].iter().all(|found| found.state == State::Pass), "{found:?}");
    }

    #[test]
    fn nodes_of_another_group_are_not_compared() {
        let mut fleet = Fleet::new(6, "identity", &[("kernel.release", text("6.1.0"))]);
        for node in 0..3 {
            fleet.group(node, "sku=h200");
            fleet.set(node, "identity", "kernel.release", text("6.8.0"));
        }
        assert!(fleet.ask("kernel-consistent").iter().all(|found| found.state == State::Pass));
    }

    #[test]
    fn a_source_that_nobody_has_is_not_applicable_and_one_that_cannot_be_read_is_unknown() {
        let mut fleet = Fleet::new(3, "identity", &[("bios.version", absent()), ("dmi.product", absent())]);
        assert!(fleet.ask("firmware-consistent").iter().all(|found| found.state == State::NotApplicable));
        fleet.deny(1, "identity", "bios.version");
        let states: Vec<State> = fleet.ask("firmware-consistent").into_iter().map(|found| found.state).collect();
        assert_eq!(states, [State::NotApplicable, State::Unknown, State::NotApplicable]);
    }

    #[test]
    fn a_fresh_boot_is_a_warning() {
        let mut fleet = Fleet::new(2, "identity", &[("uptime", number(86_400.0))]);
        fleet.set(1, "identity", "uptime", number(59.0));
        let found = fleet.ask("recently-booted");
        assert_eq!((found[0].state, found[1].state), (State::Pass, State::Warn));
        assert_eq!(found[1].said, "up for 59 s, less than 600 s");
    }
}
