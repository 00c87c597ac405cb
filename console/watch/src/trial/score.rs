//! Right, wrong, missed and late: what a method's names are worth.

use serde::Serialize;

use super::interval::{of_mean, poisson, wilson};
use super::method::Told;
use super::recorded::Recorded;
use super::truth::{Fault, Truth};

/// Seconds after its end for which a fault may still be seen: what is averaged comes late.
const AFTER_S: f64 = 60.0;

/// Counts over recordings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Recordings, and those of them in which nobody should be named.
    pub recordings: usize,
    /// See there.
    pub clean: usize,
    /// Clean recordings in which somebody was named.
    pub clean_accused: usize,
    /// Faults, and those that can be seen at all.
    pub faults: usize,
    /// See there.
    pub detectable: usize,
    /// Faults whose machine was named, and those of them that can be seen.
    pub found: usize,
    /// See there.
    pub found_detectable: usize,
    /// Names that were wrong.
    pub wrong: usize,
    /// Seconds from onset to alert, of those found.
    pub delays_s: Vec<f64>,
    /// Machines times days.
    pub machine_days: f64,
}

/// A share with its 95 % interval (Wilson).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Nothing where there is nothing to divide by.
    pub value: Option<f64>,
    /// Bounds.
    pub low: f64,
    /// See there.
    pub high: f64,
    /// What was divided by what.
    pub count: usize,
    /// See there.
    pub of: usize,
}

/// A rate with its 95 % interval (Garwood).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Per machine and day.
    pub value: f64,
    /// Bounds.
    pub low: f64,
    /// See there.
    pub high: f64,
    /// What was divided by what.
    pub count: usize,
    /// See there.
    pub machine_days: f64,
}

/// A mean delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delay {
    /// Mean, seconds.
    pub mean_s: f64,
    /// Half the width of its 95 % interval (Student); nothing from one delay.
    pub error_s: Option<f64>,
    /// Delays.
    pub count: usize,
}

/// What some counts come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Names that were right; a fault that is told twice counts once.
    pub precision: Share,
    /// Faults that were found.
    pub recall: Share,
    /// Of the detectable ones.
    pub recall_detectable: Share,
    /// Harmonic mean of precision and recall of all faults.
    pub f1: Option<f64>,
    /// From onset to alert; nothing where nobody was found.
    pub delay: Option<Delay>,
    /// Wrong names.
    pub false_alarms: Rate,
    /// Recordings without a fault in which somebody was named.
    pub clean_accused: Share,
}

impl Tally {
    /// Counts what was told of a recording; the delay of each fault that was found.
    pub fn add(&mut self, recorded: &Recorded, told: &[Told]) -> Vec<Option<f64>> {
        self.machine_days += recorded.machine_days();
        self.count(&recorded.truth, told)
    }

    fn count(&mut self, truth: &Truth, told: &[Told]) -> Vec<Option<f64>> {
        let is_of = |fault: &Fault, told: &Told| {
            told.node == fault.node && (fault.onset_s..=fault.end_s + AFTER_S).contains(&told.seen_s)
        };
        let delay = |fault: &Fault| {
            let first = told.iter().find(|told| is_of(fault, told));
            first.map(|told| told.alerted_s - fault.onset_s)
        };
        let delays: Vec<Option<f64>> = truth.faults.iter().map(delay).collect();
        self.recordings += 1;
        self.clean += usize::from(truth.faults.is_empty());
        self.clean_accused += usize::from(truth.faults.is_empty() && !told.is_empty());
        for (fault, delay) in truth.faults.iter().zip(&delays) {
            self.faults += 1;
            self.detectable += usize::from(fault.detectable);
            self.found += usize::from(delay.is_some());
            self.found_detectable += usize::from(delay.is_some() && fault.detectable);
        }
        self.wrong += told.iter().filter(|told| !truth.faults.iter().any(|fault| is_of(fault, told))).count();
        self.delays_s.extend(delays.iter().flatten());
        delays
    }

    /// Harmonic mean of precision and recall; zero where nothing was found.
    pub(super) fn f1(&self) -> f64 {
        let found = self.found as f64;
        if self.found == 0 { 0.0 } else { 2.0 * found / (found + self.wrong as f64 + self.faults as f64) }
    }

    /// What it comes to.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let share = |count: usize, of: usize| {
            let (low, high) = wilson(count, of);
            Share { value: (of > 0).then(|| count as f64 / of as f64), low, high, count, of }
        };
        let per_day = |count: f64| if self.machine_days > 0.0 { count / self.machine_days } else { 0.0 };
        let (low, high) = poisson(self.wrong);
        let mean_s = self.delays_s.iter().sum::<f64>() / self.delays_s.len().max(1) as f64;
        let delay = Delay { mean_s, error_s: of_mean(&self.delays_s), count: self.delays_s.len() };
        Summary {
            precision: share(self.found, self.found + self.wrong),
            recall: share(self.found, self.faults),
            recall_detectable: share(self.found_detectable, self.detectable),
            f1: (self.faults > 0).then(|| self.f1()),
            delay: (delay.count > 0).then_some(delay),
            false_alarms: Rate {
                value: per_day(self.wrong as f64),
                low: per_day(low),
                high: per_day(high),
                count: self.wrong,
                machine_days: self.machine_days,
            },
            clean_accused: share(self.clean_accused, self.clean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(node: &str, onset_s: f64, end_s: f64, detectable: bool) -> Fault {
        Fault { node: node.into(), onset_s, end_s, detectable }
    }

    fn told(node: &str, seen_s: f64, alerted_s: f64) -> Told {
        Told { node: node.into(), metric: None, since_s: seen_s - 100.0, seen_s, alerted_s }
    }

    #[test]
    fn names_are_right_while_the_fault_lasts_and_a_minute_after_and_wrong_otherwise() {
        let mut tally = Tally { machine_days: 2.0, ..Tally::default() };
        let faults = vec![fault("a", 100.0, 200.0, true), fault("b", 100.0, 200.0, false)];
        let truth = Truth { kind: String::new(), faults };
        // Seen in time and told by a later call; told again; too early; too late; another machine.
        let names = [
            told("a", 230.0, 480.0),
            told("a", 250.0, 500.0),
            told("a", 90.0, 480.0),
            told("b", 261.0, 261.0),
            told("c", 150.0, 150.0),
        ];
        assert_eq!(tally.count(&truth, &names), [Some(380.0), None]);
        assert_eq!((tally.found, tally.found_detectable, tally.wrong, tally.faults), (1, 1, 3, 2));
        tally.count(&Truth::default(), &[told("c", 5.0, 5.0)]);
        tally.count(&Truth::default(), &[]);
        let summary = tally.summary();
        assert_eq!((summary.precision.count, summary.precision.of), (1, 5));
        assert_eq!((summary.recall.value, summary.recall_detectable.value), (Some(0.5), Some(1.0)));
        assert_eq!((summary.clean_accused.count, summary.clean_accused.of), (1, 2));
        assert_eq!((summary.false_alarms.value, summary.delay.map(|delay| delay.mean_s)), (2.0, Some(380.0)));
        assert!((summary.f1.unwrap() - 2.0 * 0.2 * 0.5 / 0.7).abs() < 1e-12);
    }

    #[test]
    fn a_fault_is_found_from_its_onset_to_a_minute_after_its_end() {
        let truth = Truth { kind: String::new(), faults: vec![fault("a", 100.0, 200.0, true)] };
        for (seen_s, found) in [(99.9, false), (100.0, true), (260.0, true), (260.1, false)] {
            let mut tally = Tally::default();
            let delays = tally.count(&truth, &[told("a", seen_s, 300.0)]);
            assert_eq!(delays, [found.then_some(200.0)], "{seen_s}");
            assert_eq!(
                (tally.found, tally.wrong, tally.delays_s.len()),
                (usize::from(found), usize::from(!found), usize::from(found))
            );
        }
    }

    #[test]
    fn where_there_is_nothing_to_divide_by_nothing_is_claimed() {
        let summary = Tally::default().summary();
        assert_eq!(
            (summary.precision.value, summary.recall.value, summary.f1, summary.delay),
            (None, None, None, None)
        );
        assert_eq!((summary.precision.low, summary.precision.high, summary.false_alarms.value), (0.0, 1.0, 0.0));
        let tally = Tally { faults: 3, found: 0, wrong: 2, machine_days: 0.5, ..Tally::default() };
        assert_eq!((tally.f1(), tally.summary().f1, tally.summary().false_alarms.value), (0.0, Some(0.0), 4.0));
        assert_eq!((tally.summary().false_alarms.count, tally.summary().precision.of), (2, 2));
        let (low, high) = poisson(2);
        assert_eq!((tally.summary().false_alarms.low, tally.summary().false_alarms.high), (2.0 * low, 2.0 * high));
    }

    #[test]
    fn a_delay_has_its_mean_and_how_sure_that_is() {
        let tally = Tally { delays_s: vec![100.0, 200.0, 300.0], ..Tally::default() };
        let delay = tally.summary().delay.unwrap();
        assert_eq!((delay.mean_s, delay.count), (200.0, 3));
        // Student's t of two degrees of freedom is 4.3027 at 95 %.
        assert!((delay.error_s.unwrap() - 4.3027 * 100.0 / 3.0_f64.sqrt()).abs() < 0.1, "{delay:?}");
        let tally = Tally { found: 3, faults: 5, wrong: 1, ..Tally::default() };
        let (precision, recall) = (0.75, 0.6);
        assert!((tally.f1() - 2.0 * precision * recall / (precision + recall)).abs() < 1e-12);
    }
}
