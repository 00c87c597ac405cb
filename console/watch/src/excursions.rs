//! How long healthy machines of this job are unlike their peers, and so how many would be named by how much evidence.
//!
//! Most excursions are short; how many last longer falls off about exponentially. Their rate and mean length are learned from the
//! job itself; what is known before stands for one machine-day of it, since half an hour of eight machines says little.

use std::collections::VecDeque;

use super::settings::{BLOCK, KEPT};

/// Seconds of evidence from which an excursion counts.
const FROM: f64 = 30.0;
/// What is known before: excursions per machine-day and their mean length past `FROM`, in seconds; docs/WATCH.md says from where.
const RATE: f64 = 8.0;
const LENGTH: f64 = 20.0;
/// Machine-days and excursions that this is worth.
const WORTH_DAYS: f64 = 1.0;
const WORTH_LENGTHS: f64 = 8.0;
/// Least and most evidence that a budget may ask for, in seconds: no figures are known of what lies outside.
const LEAST: f64 = 80.0;
const MOST: f64 = 400.0;
/// Seconds from a clear fault to the alert: what does not depend on the evidence, and how much of it is needed when metrics agree.
const FIXED: f64 = 30.0;
const AGREE: f64 = 1.6;
/// Classes of evidence, in blocks, and the share of a healthy machine's time that is known before for each: 1 in 50 for ten
/// seconds, half as much for every ten more; worth so many blocks of one node.
const CLASSES: usize = 24;
const TIME: f64 = 0.02;
const WORTH_BLOCKS: f64 = 2_000.0;

/// What a budget of false alarms means, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Seconds of evidence that name a machine.
    pub evidence_s: f64,
    /// Healthy machines that are named by that, per machine and day, as far as is known.
    pub false_alarms_per_machine_day: f64,
    /// Seconds from a clear fault to its alert where three metrics show it.
    pub expected_delay_s: f64,
    /// The same where only one does.
    pub slowest_delay_s: f64,
    /// Machine-days of this job that it is learned from, and excursions in them.
    pub machine_days: f64,
    /// See `machine_days`.
    pub excursions: u64,
    /// Whether more or less evidence than [`Settings`](super::Settings) allows would be needed to keep the budget.
    pub is_limited: bool,
}

/// What a node's evidence was, block by block.
#[derive(Clone, Debug, Default)]
pub(super) struct Excursions {
    /// Excursions that ended without a name, and seconds that they exceeded `FROM` by.
    count: u64,
    lengths: f64,
    /// Blocks of a node that were looked at.
    blocks: u64,
    /// Blocks of a node with so much evidence in one metric, and the same of the last minutes, which are not counted yet: who
    /// moved first must not be excused by its own excursion.
    classes: [u64; CLASSES],
    counted: u64,
    waiting: VecDeque<[u32; CLASSES]>,
}

/// The excursion of a node that goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Going {
    peak: f64,
    named: bool,
}

impl Going {
    /// The node was named: what it does is no healthy machine's excursion.
    pub(super) fn name(&mut self) {
        self.named = true;
    }

    /// A group explains what the node did so far: that was no healthy machine's excursion, and it did not end either.
    pub(super) fn excuse(&mut self) {
        self.peak = 0.0;
    }
}

impl Excursions {
    /// A new block begins.
    pub(super) fn begin(&mut self) {
        if self.waiting.len() >= KEPT {
            for (class, count) in self.waiting.pop_front().unwrap_or_default().into_iter().enumerate() {
                self.classes[class] += u64::from(count);
                self.counted += u64::from(count);
            }
        }
        self.waiting.push_back([0; CLASSES]);
    }

    /// Takes a node's evidence of all metrics together and its largest of one metric, in seconds.
    pub(super) fn add(&mut self, going: &mut Going, together: f64, largest: f64) {
        if going.named {
            going.named = together >= FROM;
            going.peak = 0.0;
            return;
        }
        self.blocks += 1;
        let class = ((largest / BLOCK as f64) as usize).min(CLASSES - 1);
        if let Some(newest) = self.waiting.back_mut() {
            newest[class] += 1;
        }
        if together >= FROM {
            going.peak = going.peak.max(together);
        } else if going.peak > 0.0 {
            self.count += 1;
            self.lengths += going.peak - FROM;
            going.peak = 0.0;
        }
    }

    fn machine_days(&self) -> f64 {
        self.blocks as f64 * BLOCK as f64 / 86_400.0
    }

    fn rate(&self) -> f64 {
        (RATE * WORTH_DAYS + self.count as f64) / (WORTH_DAYS + self.machine_days())
    }

    fn length(&self) -> f64 {
        (LENGTH * WORTH_LENGTHS + self.lengths) / (WORTH_LENGTHS + self.count as f64)
    }

    /// Share of the time in which a healthy node has at least so much evidence in some metric.
    pub(super) fn share_of_time(&self, evidence_s: f64) -> f64 {
        let class = ((evidence_s / BLOCK as f64) as usize).min(CLASSES - 1);
        let known: f64 = self.classes[class..].iter().map(|count| *count as f64).sum();
        let before = TIME * 0.5_f64.powf((evidence_s / BLOCK as f64 - 1.0).max(0.0));
        (before * WORTH_BLOCKS + known) / (WORTH_BLOCKS + self.counted as f64)
    }

    /// Evidence that keeps `budget` false alarms per machine-day; `usual` without a budget.
    pub(super) fn evidence(&self, budget: Option<f64>, usual: f64) -> f64 {
        budget.map_or(usual, |budget| self.wanted(budget).clamp(LEAST, MOST))
    }

    fn wanted(&self, budget: f64) -> f64 {
        FROM + self.length() * (self.rate() / budget.max(f64::MIN_POSITIVE)).ln()
    }

    /// What `evidence_s` means and costs.
    pub(super) fn calibration(&self, evidence_s: f64, budget: Option<f64>) -> Calibration {
        Calibration {
            evidence_s,
            false_alarms_per_machine_day: self.rate() * (-(evidence_s - FROM).max(0.0) / self.length()).exp(),
            expected_delay_s: FIXED + evidence_s / AGREE,
            slowest_delay_s: FIXED + evidence_s,
            machine_days: self.machine_days(),
            excursions: self.count,
            is_limited: budget.is_some_and(|budget| !(LEAST..=MOST).contains(&self.wanted(budget))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_analysis::Chance;

    /// A day of `nodes` machines whose excursions come at `rate` a day and last `length` s past the least.
    fn learned(nodes: usize, rate: f64, length: f64) -> Excursions {
        let (mut past, mut chance) = (Excursions::default(), Chance::new(3));
        let mut going = vec![(Going::default(), 0.0_f64); nodes];
        for _ in 0..8_640 {
            past.begin();
            for (going, top) in &mut going {
                if *top <= 0.0 && chance.unit() < rate / 8_640.0 {
                    *top = FROM + length * chance.exponential();
                }
                past.add(going, *top, *top);
                *top = 0.0;
            }
        }
        past
    }

    #[test]
    fn evidence_for_a_budget_is_learned_from_the_job() {
        let past = learned(20, 40.0, 25.0);
        let truth = 30.0 + 25.0 * (40.0_f64 / 0.05).ln();
        let found = past.evidence(Some(0.05), 130.0);
        assert!((found - truth).abs() < 0.08 * truth, "{found} {truth}");
        let told = past.calibration(found, Some(0.05));
        assert!((told.false_alarms_per_machine_day - 0.05).abs() < 1e-9 && (told.machine_days - 20.0).abs() < 1e-9);
        assert!(past.evidence(Some(0.5), 130.0) < found && past.evidence(Some(0.005), 130.0) > found);
        assert!((past.evidence(None, 130.0) - 130.0).abs() < 1e-9);
    }

    #[test]
    fn without_history_what_is_known_before_holds_and_a_budget_that_cannot_be_kept_is_told() {
        let none = Excursions::default();
        let told = none.calibration(none.evidence(Some(0.05), 130.0), Some(0.05));
        assert!((100.0..170.0).contains(&told.evidence_s) && !told.is_limited, "{told:?}");
        assert_eq!((told.machine_days, told.excursions), (0.0, 0));
        let strict = none.calibration(none.evidence(Some(1e-12), 130.0), Some(1e-12));
        assert!(strict.is_limited && (strict.evidence_s - MOST).abs() < 1e-9);
        assert!(strict.expected_delay_s > told.expected_delay_s);
    }

    #[test]
    fn long_excursions_are_rarer_than_short_ones_and_the_last_minutes_do_not_count_yet() {
        let past = learned(20, 40.0, 25.0);
        assert!(past.share_of_time(120.0) < past.share_of_time(30.0));
        let mut one = Excursions::default();
        one.begin();
        one.add(&mut Going::default(), 100.0, 100.0);
        assert_eq!(one.share_of_time(90.0), Excursions::default().share_of_time(90.0));
    }
    #[test]
    fn the_share_of_time_is_a_fiftieth_for_ten_seconds_and_half_as_much_for_every_ten_more() {
        let none = Excursions::default();
        for (evidence_s, share) in [(0.0, 0.02), (10.0, 0.02), (20.0, 0.01), (40.0, 0.0025), (80.0, 0.02 / 128.0)] {
            assert!((none.share_of_time(evidence_s) - share).abs() < 1e-12, "{evidence_s}");
        }
        // Of 500 blocks with 25 s of evidence each, beside what 2,000 are worth.
        let mut seen = Excursions::default();
        for _ in 0..=KEPT {
            seen.begin();
            (0..500).for_each(|_| seen.add(&mut Going::default(), 0.0, 25.0));
        }
        for (evidence_s, share) in [(20.0, (0.01 * 2_000.0 + 500.0) / 2_500.0), (30.0, 0.005 * 2_000.0 / 2_500.0)] {
            assert!((seen.share_of_time(evidence_s) - share).abs() < 1e-12, "{evidence_s}");
        }
    }

    /// What is learned of one machine whose evidence of all metrics together was this, block by block; named before the block `named`.
    fn of(evidence: &[f64], named: Option<usize>) -> Excursions {
        let (mut past, mut going) = (Excursions::default(), Going::default());
        for (block, together) in evidence.iter().enumerate() {
            past.begin();
            if named == Some(block) {
                going.name();
            }
            past.add(&mut going, *together, 0.0);
        }
        past
    }

    #[test]
    fn an_excursion_counts_by_its_peak_past_half_a_minute_once_it_is_over() {
        for (evidence, count, lengths) in [
            (&[0.0, 10.0, 29.9, 0.0][..], 0, 0.0),
            (&[0.0, 30.0, 0.0], 1, 0.0),
            (&[20.0, 40.0, 90.0, 35.0, 29.0, 0.0], 1, 60.0),
            (&[40.0, 0.0, 70.0, 10.0], 2, 50.0),
            (&[40.0, 50.0], 0, 0.0),
        ] {
            let past = of(evidence, None);
            assert_eq!(
                (past.count, past.lengths, past.blocks),
                (count, lengths, evidence.len() as u64),
                "{evidence:?}"
            );
        }
    }

    #[test]
    fn what_a_named_machine_does_is_no_healthy_machine_s_until_its_evidence_is_gone() {
        let evidence = [40.0, 90.0, 60.0, 30.0, 29.0, 40.0, 0.0];
        let past = of(&evidence, Some(1));
        assert_eq!((past.count, past.lengths), (1, 10.0), "the one after it");
        assert_eq!(past.blocks, 1 + 2, "none of the blocks in which it was named");
        assert_eq!((of(&evidence, None).count, of(&evidence, None).lengths), (2, 70.0));
    }

    #[test]
    fn rate_and_length_are_those_seen_and_those_known_before() {
        // Three machine-days with six excursions of 30, 60 and so on seconds past the least.
        let mut past = Excursions::default();
        (past.blocks, past.count, past.lengths) = (3 * 8_640, 6, 630.0);
        assert!((past.machine_days() - 3.0).abs() < 1e-12);
        let (rate, length) = ((8.0 + 6.0) / (1.0 + 3.0), (20.0 * 8.0 + 630.0) / (8.0 + 6.0));
        for evidence_s in [20.0, 30.0, 130.0] {
            let told = past.calibration(evidence_s, None);
            let expected = rate * f64::exp(-f64::max(evidence_s - 30.0, 0.0) / length);
            assert!((told.false_alarms_per_machine_day - expected).abs() < 1e-12, "{told:?}");
            assert!((told.expected_delay_s - (30.0 + evidence_s / 1.6)).abs() < 1e-12, "{told:?}");
            assert!((told.slowest_delay_s - (30.0 + evidence_s)).abs() < 1e-12, "{told:?}");
            assert_eq!((told.evidence_s, told.excursions, told.is_limited), (evidence_s, 6, false));
        }
        let wanted = 30.0 + length * (rate / 0.4).ln();
        assert!((80.0..400.0).contains(&wanted) && (past.evidence(Some(0.4), 130.0) - wanted).abs() < 1e-9);
        for (budget, evidence_s) in [(1e3, 80.0), (1e-9, 400.0), (0.0, 400.0)] {
            assert_eq!(past.evidence(Some(budget), 130.0), evidence_s);
            assert!(past.calibration(evidence_s, Some(budget)).is_limited);
        }
        assert!(!past.calibration(wanted, Some(0.4)).is_limited);
    }

    #[test]
    fn the_last_blocks_are_counted_once_they_are_too_old_to_tell_who_moved_first() {
        let mut past = Excursions::default();
        let mut add = |largest: f64| {
            past.begin();
            past.add(&mut Going::default(), 0.0, largest);
            (past.counted, past.classes.iter().sum::<u64>())
        };
        let counted: Vec<_> = (0..KEPT + 3).map(|_| add(1e9)).collect();
        assert!(counted[..KEPT].iter().all(|counts| *counts == (0, 0)), "{counted:?}");
        assert_eq!(counted[KEPT..], [(1, 1), (2, 2), (3, 3)]);
        assert_eq!(past.classes[CLASSES - 1], 3, "whatever is more than the last class is in it");
    }

    #[test]
    fn what_a_group_explains_is_no_excursion_and_what_comes_after_it_is_one() {
        let (mut past, mut going) = (Excursions::default(), Going::default());
        for (together, explained) in
            [(40.0, false), (60.0, false), (0.0, true), (0.0, true), (0.0, false), (50.0, false), (0.0, false)]
        {
            past.begin();
            if explained {
                going.excuse();
            }
            past.add(&mut going, together, 0.0);
        }
        assert_eq!((past.count, past.lengths), (1, 20.0));
    }
}
