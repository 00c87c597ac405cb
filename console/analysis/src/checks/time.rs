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
    let known: Vec<Clock> = clocks.iter().flatten().copied().collect();
    let (middle, others) = match middle(&known) {
        Some(middle) if known.len() >= 3 => (middle, format!("the median of {} nodes", known.len())),
        _ => (Clock { offset: 0.0, uncertainty: 0.0 }, "the console's clock".to_owned()),
    };
    let own = if middle.offset.abs() > policy.limit("clock_fail_s") {
        format!("; the console's own clock is off by {:+.3} s", -middle.offset)
    } else {
        String::new()
    };
    let answer = |clock: Result<Clock, Gap>| match clock {
        Ok(clock) => compare(clock, middle, policy, &format!("{others}{own}")),
        Err(gap) => gap.into(),
    };
    clocks.into_iter().map(answer).collect()
}

/// The median of the offsets, and how far it can be from that of the true ones: the median of the lowest values they can have
/// and that of the highest bound it, so that one node with a slow connection does not make it uncertain for all.
fn middle(clocks: &[Clock]) -> Option<Clock> {
    let median = |of: fn(&Clock) -> f64| {
        let mut values: Vec<f64> = clocks.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let offset = median(|clock| clock.offset)?;
    let (low, high) =
        (median(|clock| clock.offset - clock.uncertainty)?, median(|clock| clock.offset + clock.uncertainty)?);
    Some(Clock { offset, uncertainty: (offset - low).max(high - offset) })
}

fn compare(clock: Clock, middle: Clock, policy: &Policy, others: &str) -> Found {
    let (off, uncertainty) = (clock.offset - middle.offset, clock.uncertainty + middle.uncertainty);
    let (warn, fail) = (policy.limit("clock_warn_s"), policy.limit("clock_fail_s"));
    // Rounded up: what is printed must hold too.
    let said = format!("{off:+.3} s ± {:.3} s from {others}", (uncertainty * 1e3).ceil() / 1e3);
    match off.abs() {
        off if off - uncertainty > fail => Found::fail(said),
        off if off - uncertainty > warn => Found::warn(said),
        off if off + uncertainty <= fail => Found::pass(said),
        _ => Found::unknown(format!("{said}: too slow a connection to tell")),
    }
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
        assert_eq!(fleet.ask("time-offset")[2].said, "+4.999 s ± 0.004 s from the median of 6 nodes");
    }

    #[test]
    fn the_uncertainty_of_the_median_counts_and_one_slow_connection_does_not() {
        let mut fleet = clocks(&[0.0, 0.0, 5.0, 0.0, 0.0], 0.002);
        fleet.set(0, CLOCK, "uncertainty", number(3.0));
        assert_eq!(fleet.ask("time-offset")[2].said, "+5.000 s ± 0.004 s from the median of 5 nodes");
        assert_eq!(states(&fleet)[0], State::Unknown);
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
        // The median may be as wrong as one clock: between 1.1 and 2.1 s off is off, between 0.4 and 2.8 s is more than a little.
        assert_eq!(states(&clocks(&[0.0, 0.2, 1.8], 0.25)), [State::Pass, State::Pass, State::Fail]);
        assert_eq!(states(&clocks(&[0.0, 0.2, 1.8], 0.6)), [State::Unknown, State::Unknown, State::Warn]);
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
