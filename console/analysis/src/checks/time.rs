//! Does the node's clock tell the time that the others' do?

use super::check::{Ask, Found};
use super::{CLOCK, Check, Gap, NodeFacts, Policy, Severity};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "time-offset",
        area: "time",
        title: "the clock agrees with those of the group",
        severity: Severity::Critical,
        source: "Tsubame's hourly list; GCM",
        next: "chronyc tracking, then chronyc makestep; look whether the time servers can be reached",
        needs: &[CLOCK],
        ask: Ask::Group(offset),
    },
    Check {
        id: "time-synchronised",
        area: "time",
        title: "the kernel says that its clock is kept by a time service",
        severity: Severity::Warn,
        source: "NHC check_ps_service chronyd",
        next: "start chronyd (or ptp4l with phc2sys) and see that it has a source",
        needs: &["time"],
        ask: Ask::Node(synchronised),
    },
    Check {
        id: "clocksource",
        area: "time",
        title: "the kernel reads its clock from the CPU",
        severity: Severity::Warn,
        source: "GCM check_clocksource",
        next: "look in the kernel log for `clocksource: Marking ... unstable`; reading a slow clock costs microseconds",
        needs: &["identity"],
        ask: Ask::Node(clocksource),
    },
];

/// Offset and half the round trip in which it was measured, seconds.
#[derive(Clone, Copy)]
struct Clock {
    offset: f64,
    uncertainty: f64,
}

fn clock(node: &NodeFacts<'_>) -> Result<Clock, Gap> {
    let number = |key: &str| node.number(CLOCK, key);
    Ok(Clock { offset: number("offset")?, uncertainty: number("uncertainty")?.max(0.0) })
}

/// Every node against the middle of the group; below three nodes, against the console. A console whose own clock is
/// wrong would otherwise accuse the whole fleet.
fn offset(group: &[&NodeFacts<'_>], policy: &Policy) -> Vec<Found> {
    let clocks: Vec<Result<Clock, Gap>> = group.iter().map(|node| clock(node)).collect();
    let mut offsets: Vec<f64> = clocks.iter().flatten().map(|clock| clock.offset).collect();
    offsets.sort_by(f64::total_cmp);
    let n = offsets.len();
    let (middle, others) = match offsets.get(n / 2) {
        Some(median) if n >= 3 => (*median, format!("the median of {n} nodes")),
        _ => (0.0, "the console's clock".to_owned()),
    };
    let own = if middle.abs() > policy.limit("clock_fail_s") {
        format!("; the console's own clock is off by {:+.3} s", -middle)
    } else {
        String::new()
    };
    let answer = |clock: Result<Clock, Gap>| {
        let Clock { offset, uncertainty } = match clock {
            Ok(clock) => clock,
            Err(gap) => return gap.into(),
        };
        let (off, warn, fail) = (offset - middle, policy.limit("clock_warn_s"), policy.limit("clock_fail_s"));
        let said = format!("{off:+.3} s ± {uncertainty:.3} s from {others}{own}");
        match off.abs() {
            off if off - uncertainty > fail => Found::fail(said),
            off if off - uncertainty > warn => Found::warn(said),
            off if off + uncertainty <= fail => Found::pass(said),
            _ => Found::unknown(format!("{said}: too slow a connection to tell")),
        }
    };
    clocks.into_iter().map(answer).collect()
}

fn synchronised(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    Ok(if node.flag("time", "synchronised")? {
        Found::pass("kept by a time service")
    } else {
        Found::warn("the kernel's clock is not kept by any time service")
    })
}

fn clocksource(node: &NodeFacts<'_>, _: &Policy) -> Result<Found, Gap> {
    // Read in the program itself, without a call into the kernel.
    const FAST: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
    let source = node.text("identity", "clock.source")?;
    let said = format!("clocksource {source}");
    Ok(if FAST.contains(&source) { Found::pass(said) } else { Found::warn(said) })
}

#[cfg(test)]
mod tests {
    use muster_wire::{Datum, Reading};

    use crate::State;
    use crate::checks::CLOCK;
    use crate::checks::testing::{Fleet, number, text};

    fn clocks(offsets: &[f64], uncertainty: f64) -> Fleet {
        let mut fleet = Fleet::new(offsets.len(), CLOCK, &[("uncertainty", number(uncertainty))]);
        for (node, offset) in offsets.iter().enumerate() {
            fleet.set(node, CLOCK, "offset", number(*offset));
        }
        fleet
    }

    fn states(fleet: &Fleet) -> Vec<State> {
        fleet.ask("time-offset").into_iter().map(|found| found.state).collect()
    }

    #[test]
    fn a_clock_five_seconds_off_is_named_and_nobody_else() {
        let fleet = clocks(&[0.001, -0.002, 5.0, 0.0, 0.003, 0.001], 0.002);
        assert_eq!(states(&fleet)[2], State::Fail);
        assert_eq!(states(&fleet).iter().filter(|state| **state == State::Pass).count(), 5);
        assert_eq!(fleet.ask("time-offset")[2].said, "+4.999 s ± 0.002 s from the median of 6 nodes");
    }

    #[test]
    fn a_console_whose_clock_is_wrong_accuses_itself() {
        let fleet = clocks(&[-30.0, -30.001, -30.0, -30.4], 0.002);
        assert_eq!(states(&fleet), [State::Pass, State::Pass, State::Pass, State::Warn]);
        assert!(fleet.ask("time-offset")[0].said.ends_with("; the console's own clock is off by +30.000 s"));
        assert_eq!(states(&clocks(&[-30.0], 0.002)), [State::Fail], "one node has nobody else to be compared with");
    }

    #[test]
    fn what_a_slow_connection_cannot_tell_is_not_decided() {
        // Between 0.3 and 2.3 s off is off; between -0.8 and 1.2 s may be.
        assert_eq!(states(&clocks(&[0.0, 0.2, 1.5], 1.0)), [State::Unknown, State::Pass, State::Warn]);
    }

    #[test]
    fn a_slow_clock_source_and_a_clock_without_a_service_warn() {
        let mut fleet = Fleet::new(2, "identity", &[("clock.source", text("tsc"))]);
        fleet.set(1, "identity", "clock.source", text("hpet"));
        fleet.set(0, "time", "synchronised", Reading::Value(Datum::Flag(true)));
        fleet.set(1, "time", "synchronised", Reading::Value(Datum::Flag(false)));
        for id in ["clocksource", "time-synchronised"] {
            let found = fleet.ask(id);
            assert_eq!((found[0].state, found[1].state), (State::Pass, State::Warn), "{id}");
        }
    }
}
