//! Are all processors there, set up for work, and unhindered?

use super::check::{Ask, Found};
use super::compare::{Count, Lacking, Same};
use super::{Check, Gap, NodeFacts, Policy, Severity};

const fn count(key: &'static str, expect: &'static str) -> Count {
    Count { collector: "cpu", key, expect, per: 1.0, tolerance: None }
}

const fn differs(key: &'static str) -> Same {
    Same { collector: "cpu", key, lacking: Lacking::Differs }
}

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "cpu-sockets",
        area: "cpu",
        title: "as many sockets as expected",
        severity: Severity::Critical,
        source: "NHC check_hw_cpuinfo",
        next: "look for a failed or disabled processor in the BMC's log; have it reseated or replaced",
        needs: &["cpu"],
        ask: Ask::Count(count("sockets", "sockets")),
    },
    Check {
        id: "cpu-cores",
        area: "cpu",
        title: "as many cores as expected",
        severity: Severity::Critical,
        source: "NHC check_hw_cpuinfo",
        next: "compare the BIOS's core settings with another node; look for `maxcpus=` and offlined CPUs",
        needs: &["cpu"],
        ask: Ask::Count(count("cores", "cores")),
    },
    Check {
        id: "cpu-threads",
        area: "cpu",
        title: "as many logical CPUs as expected",
        severity: Severity::Critical,
        source: "NHC check_hw_cpuinfo",
        next: "compare hyper-threading (BIOS, `nosmt`) with another node; bring offlined CPUs back",
        needs: &["cpu"],
        ask: Ask::Count(count("cpus.online", "cpus")),
    },
    Check {
        id: "cpu-online",
        area: "cpu",
        title: "every CPU present is online",
        severity: Severity::Warn,
        source: "muster",
        next: "find out who took them offline: machine checks in the kernel log, or `chcpu -e`",
        needs: &["cpu"],
        ask: Ask::Node(online),
    },
    Check {
        id: "cpu-model-consistent",
        area: "cpu",
        title: "model, abilities and hyper-threading are those of the group",
        severity: Severity::Warn,
        source: "NHC; imbue",
        next: "another model wants an `sku` of its own in the inventory; other abilities are BIOS settings",
        needs: &["cpu"],
        ask: Ask::Equal(&[differs("model"), differs("flags"), differs("smt")]),
    },
    Check {
        id: "microcode-consistent",
        area: "cpu",
        title: "the microcode is that of the group",
        severity: Severity::Warn,
        source: "cvs; GCM",
        next: "update the microcode package or the BIOS as on the others and reboot",
        needs: &["cpu"],
        ask: Ask::Equal(&[differs("microcode")]),
    },
    Check {
        id: "cpu-governor",
        area: "cpu",
        title: "every CPU runs under the performance governor",
        severity: Severity::Warn,
        source: "GCM check_cpu_governor",
        next: "cpupower frequency-set -g performance, and make it last over a reboot",
        needs: &["cpu"],
        ask: Ask::Node(governor),
    },
    Check {
        id: "cpu-frequency-limit",
        area: "cpu",
        title: "no CPU is held below the highest frequency it can reach",
        severity: Severity::Warn,
        source: "GCM (minimum 1498 MHz)",
        next: "look for a power limit in the BMC or scaling_max_freq set by a power tool",
        needs: &["cpu"],
        ask: Ask::Node(frequency_limit),
    },
    Check {
        id: "cpu-throttled",
        area: "cpu",
        title: "no CPU has slowed itself down because of heat since boot",
        severity: Severity::Warn,
        source: "GCM; gpud cpu",
        next: "look at fans, air flow and inlet temperature; reseat the heat sink if it comes back",
        needs: &["cpu"],
        ask: Ask::Node(throttled),
    },
    Check {
        id: "cpu-quota",
        area: "cpu",
        title: "this login may use every CPU",
        severity: Severity::Warn,
        source: "muster",
        next: "measure outside the cgroup that limits it: its numbers are those of the quota, not of the node",
        needs: &["cpu"],
        ask: Ask::Node(quota),
    },
    Check {
        id: "numa-nodes",
        area: "cpu",
        title: "as many NUMA nodes as expected",
        severity: Severity::Warn,
        source: "deepops.nhc",
        next: "compare the BIOS settings NPS and sub-NUMA clustering with another node",
        needs: &["cpu"],
        ask: Ask::Count(count("numa.nodes", "numa_nodes")),
    },
    Check {
        id: "numa-balancing",
        area: "cpu",
        title: "the kernel does not move pages between NUMA nodes by itself",
        severity: Severity::Warn,
        source: "deepops.nhc; cvs",
        next: "sysctl kernel.numa_balancing=0, and make it last over a reboot",
        needs: &["cpu", "kernel"],
        ask: Ask::Node(numa_balancing),
    },
];

fn online(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let (online, present) = (node.number("cpu", "cpus.online")?, node.number("cpu", "cpus.present")?);
    let said = format!("{online:.0} of {present:.0} CPUs are online");
    Ok(if online < present { Found::warn(said) } else { Found::pass(said) })
}

fn governor(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let governors = node.text("cpu", "governor")?;
    let said = format!("governor {governors}");
    Ok(if governors == "performance" { Found::pass(said) } else { Found::warn(said) })
}

fn frequency_limit(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    const GHZ: f64 = 1e9;
    let (limit, most) = (node.number("cpu", "freq.limit")?, node.number("cpu", "freq.max")?);
    let said = format!("limited to {:.2} GHz of {:.2} GHz", limit / GHZ, most / GHZ);
    // Firmware rounds: half a percent is no limit.
    Ok(if limit < 0.995 * most { Found::warn(said) } else { Found::pass(said) })
}

fn throttled(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let (core, package) = (node.number("cpu", "throttled.core"), node.number("cpu", "throttled.package"));
    let most = match (core, package) {
        (Ok(core), Ok(package)) => core.max(package),
        (Ok(count), Err(_)) | (Err(_), Ok(count)) => count,
        (Err(gap), Err(_)) => return Err(gap),
    };
    let said = format!("slowed down {most:.0} times since boot");
    Ok(if most > 0.0 { Found::warn(said) } else { Found::pass(said) })
}

fn quota(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let online = node.number("cpu", "cpus.online")?;
    let limits = [node.number("cpu", "cgroup.quota_cpus"), node.number("cpu", "affinity.cpus")];
    // No quota is no limit; a quota that cannot be read may be one.
    let mut allowed = online;
    for limit in limits {
        match limit {
            Ok(cpus) => allowed = allowed.min(cpus),
            Err(Gap::Absent(_)) => {}
            Err(gap) => return Err(gap),
        }
    }
    let said = format!("{allowed:.1} of {online:.0} CPUs may be used");
    Ok(if allowed < online { Found::warn(said) } else { Found::pass(said) })
}

fn numa_balancing(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    if node.number("cpu", "numa.nodes")? < 2.0 {
        return Ok(Found::not_applicable("one NUMA node"));
    }
    let set = node.text("kernel", "sysctl.kernel.numa_balancing")?;
    let said = format!("kernel.numa_balancing is {set}");
    Ok(if set == "0" { Found::pass(said) } else { Found::warn(said) })
}

#[cfg(test)]
mod tests {
    use crate::State;
    use crate::checks::Policy;
    use crate::checks::testing::{Fleet, absent, number, text};

    #[test]
    fn a_missing_socket_is_seen_against_the_group_and_against_the_inventory() {
        let mut fleet = Fleet::new(5, "cpu", &[("sockets", number(2.0))]);
        fleet.set(4, "cpu", "sockets", number(1.0));
        let found = fleet.ask("cpu-sockets");
        assert_eq!((found[0].state, found[4].state), (State::Pass, State::Fail));
        assert_eq!(found[4].said, "sockets: 1, 4 of 5 nodes have 2");
        let mut one = Fleet::new(1, "cpu", &[("sockets", number(1.0))]);
        assert_eq!(one.ask("cpu-sockets")[0].state, State::NotApplicable);
        one.label(0, "sockets", "2");
        assert_eq!(one.ask("cpu-sockets")[0].said, "sockets: 1, 2 expected");
        one.label(0, "sockets", "two");
        assert_eq!(one.ask("cpu-sockets")[0].state, State::Unknown);
    }

    #[test]
    fn what_the_playbook_expects_holds_where_the_inventory_says_nothing() {
        let fleet = Fleet::new(1, "cpu", &[("cores", number(96.0))]);
        let mut policy = Policy::default();
        policy.expect("cores", 128.0);
        assert_eq!(fleet.ask_with("cpu-cores", &policy)[0].said, "cores: 96, 128 expected");
    }

    #[test]
    fn settings_that_cost_speed_are_warnings() {
        let bad = Fleet::new(
            1,
            "cpu",
            &[
                ("governor", text("performance powersave")),
                ("freq.max", number(3.7e9)),
                ("freq.limit", number(2.1e9)),
                ("throttled.core", number(3.0)),
                ("throttled.package", absent()),
                ("cpus.online", number(2.0)),
                ("cpus.present", number(4.0)),
                ("cgroup.quota_cpus", number(0.6)),
            ],
        );
        for (id, said) in [
            ("cpu-governor", "governor performance powersave"),
            ("cpu-frequency-limit", "limited to 2.10 GHz of 3.70 GHz"),
            ("cpu-throttled", "slowed down 3 times since boot"),
            ("cpu-online", "2 of 4 CPUs are online"),
            ("cpu-quota", "0.6 of 2 CPUs may be used"),
        ] {
            let found = bad.ask(id).remove(0);
            assert_eq!((found.state, found.said.as_str()), (State::Warn, said), "{id}");
        }
    }

    #[test]
    fn a_virtual_machine_without_frequencies_is_not_applicable_and_not_a_pass() {
        let guest = Fleet::new(1, "cpu", &[("governor", absent()), ("cpus.online", number(2.0))]);
        for id in ["cpu-governor", "cpu-frequency-limit", "cpu-throttled"] {
            assert_eq!(guest.ask(id)[0].state, State::NotApplicable, "{id}");
        }
        assert_eq!(guest.ask("cpu-quota")[0].state, State::Pass);
    }

    #[test]
    fn numa_balancing_matters_from_two_nodes_on() {
        let mut fleet = Fleet::new(2, "cpu", &[("numa.nodes", number(2.0))]);
        fleet.set(0, "kernel", "sysctl.kernel.numa_balancing", text("1"));
        fleet.set(1, "kernel", "sysctl.kernel.numa_balancing", text("1"));
        fleet.set(1, "cpu", "numa.nodes", number(1.0));
        let states: Vec<State> = fleet.ask("numa-balancing").into_iter().map(|found| found.state).collect();
        assert_eq!(states, [State::Warn, State::NotApplicable]);
    }
}
