//! Do the right services run, and is nothing stuck or left over?

use super::check::{Ask, Found};
use super::compare::{Lacking, Same};
use super::{Check, Gap, NodeFacts, Policy, Severity};

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "services-consistent",
        area: "process",
        title: "the services that run are those of the group",
        severity: Severity::Warn,
        source: "NHC check_ps_service",
        next: "systemctl status of the one that is missing, and start it",
        needs: &["process"],
        ask: Ask::Equal(&[Same { collector: "process", key: "service.*", lacking: Lacking::Differs }]),
    },
    Check {
        id: "zombies",
        area: "process",
        title: "hardly any process is dead and not yet collected by its parent",
        severity: Severity::Warn,
        source: "GCM check_zombies",
        next: "find the parent (`ps -el | grep Z`) and end it",
        needs: &["process"],
        ask: Ask::Node(zombies),
    },
    Check {
        id: "stuck-processes",
        area: "process",
        title: "no program hangs in the kernel",
        severity: Severity::Warn,
        source: "GCM (D state > 300 s); gpud os",
        next: "cat /proc/PID/stack: a driver wants a reset or reboot, a remote file system its server back",
        needs: &["process"],
        ask: Ask::Node(stuck),
    },
    Check {
        id: "memlock",
        area: "process",
        title: "a login may lock enough memory for RDMA",
        severity: Severity::Warn,
        source: "AWS (16 GiB)",
        next: "set `* - memlock unlimited` in /etc/security/limits.d and in the unit of slurmd",
        needs: &["process", "infiniband"],
        ask: Ask::Node(memlock),
    },
];

fn zombies(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let (count, most) = (node.number("process", "zombies")?, policy.limit("zombies"));
    let said = format!("{count:.0} zombies");
    Ok(if count > most { Found::warn(format!("{said}, at most {most:.0}")) } else { Found::pass(said) })
}

fn stuck(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    let count = node.number("process", "stuck")?;
    if count == 0.0 {
        return Ok(Found::pass("none"));
    }
    let first = node.text("process", "stuck.0.comm").unwrap_or("?");
    Ok(Found::warn(format!("{count:.0} processes wait in the kernel and do not run, '{first}' among them")))
}

fn memlock(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    match node.number("infiniband", "devices") {
        Ok(devices) if devices > 0.0 => {}
        Ok(_) | Err(Gap::Absent(_)) => return Ok(Found::not_applicable("no RDMA device that would need it")),
        Err(gap) => return Err(gap),
    }
    if node.flag("process", "limit.memlock.unlimited")? {
        return Ok(Found::pass("unlimited"));
    }
    let (limit, least) = (node.number("process", "limit.memlock")? / GIB, policy.limit("memlock_gib"));
    let said = format!("{limit:.2} GiB may be locked");
    Ok(if limit < least { Found::warn(format!("{said}, at least {least:.0} GiB")) } else { Found::pass(said) })
}

#[cfg(test)]
mod tests {
    use muster_wire::{Datum, Reading};

    use crate::State;
    use crate::checks::testing::{Fleet, number, text};

    #[test]
    fn a_missing_service_is_named() {
        let yes = Reading::Value(Datum::Flag(true));
        let mut fleet = Fleet::new(4, "process", &[("zombies", number(0.0))]);
        for node in [0, 1, 3] {
            fleet.set(node, "process", "service.slurmd", yes.clone());
        }
        assert_eq!(fleet.ask("services-consistent")[2].said, "service.slurmd is none, 3 of 4 nodes have yes");
    }

    #[test]
    fn the_dead_and_the_stuck_warn() {
        let facts = [("zombies", number(40.0)), ("stuck", number(1.0)), ("stuck.0.comm", text("nvidia-smi"))];
        let fleet = Fleet::new(1, "process", &facts);
        assert_eq!(fleet.ask("zombies")[0].said, "40 zombies, at most 10");
        assert_eq!(
            fleet.ask("stuck-processes")[0].said,
            "1 processes wait in the kernel and do not run, 'nvidia-smi' among them"
        );
    }

    #[test]
    fn locked_memory_matters_where_there_is_rdma() {
        let no = Reading::Value(Datum::Flag(false));
        let facts = [("limit.memlock.unlimited", no), ("limit.memlock", number(8_388_608.0))];
        let mut fleet = Fleet::new(2, "process", &facts);
        fleet.set(0, "infiniband", "devices", number(8.0));
        fleet.set(1, "infiniband", "devices", Reading::Absent);
        let found = fleet.ask("memlock");
        assert_eq!((found[0].state, found[1].state), (State::Warn, State::NotApplicable));
    }
}
