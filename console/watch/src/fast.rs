//! Strong evidence: deviations that add up until somebody is named (a CUSUM with a limit on what one block counts).

use super::settings::BLOCK;

/// Standard deviations past which a block is evidence.
const USUAL: f64 = 3.0;
/// What a block counts at most.
const MOST: f64 = 6.0;
/// What a block takes away at most, before it counts as calm.
const LEAST: f64 = -3.6;
/// Standard deviations below which a block is calm, and what it then takes away in addition.
const CALM: f64 = 1.0;
const CALM_TAKES: f64 = 3.0;
/// What a block of full evidence adds.
const FULL: f64 = MOST - USUAL;
/// Sum past which a node teaches nothing: it may be ill.
const DOUBT: f64 = 4.0 * FULL;
/// How far evidence may exceed what names a machine, so that it also ends in time.
const HEADROOM: f64 = 1.5;

/// Evidence that a node is on one side of its peers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fast {
    sum: f64,
    /// The last block without evidence.
    pub(super) zero: i64,
    /// Whether it began together with the evidence of a whole group: it is then the group's for as long as it lasts.
    pub(super) shared: bool,
    /// Largest sum since `zero`.
    peak: f64,
    /// The last time that there was evidence.
    past: Option<Past>,
}

/// A time in which a node had evidence on one side: the last block before it, its last block, and the most, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Past {
    pub(super) begun: i64,
    pub(super) until: i64,
    pub(super) peak_s: f64,
}

impl Fast {
    pub(super) const fn new(block: i64) -> Self {
        Self { sum: 0.0, zero: block, shared: false, peak: 0.0, past: None }
    }

    pub(super) fn forget(&mut self) {
        (self.sum, self.shared, self.peak, self.past) = (0.0, false, 0.0, None);
    }

    /// Takes the deviation of `block` towards this side, in standard deviations; `evidence_s` is what names a machine.
    pub(super) fn add(&mut self, z: f64, block: i64, evidence_s: f64) {
        let calm = if z < CALM { CALM_TAKES } else { 0.0 };
        let step = (z.clamp(-MOST, MOST) - USUAL).max(LEAST) - calm;
        self.sum = (self.sum + step).clamp(0.0, HEADROOM * FULL * evidence_s / BLOCK as f64);
        self.hold(block);
    }

    /// Nothing is known of `block`.
    pub(super) fn hold(&mut self, block: i64) {
        if self.sum <= 0.0 {
            if self.peak > 0.0 {
                self.past = Some(Past { begun: self.zero, until: block - 1, peak_s: seconds(self.peak) });
            }
            (self.zero, self.shared, self.peak) = (block, false, 0.0);
        }
        self.peak = self.peak.max(self.sum);
    }

    /// The evidence that goes on at `block`, and the last there was before it.
    pub(super) fn times(&self, block: i64) -> impl Iterator<Item = Past> {
        let going = Past { begun: self.zero, until: block, peak_s: seconds(self.peak) };
        self.past.into_iter().chain((self.sum > 0.0).then_some(going))
    }

    /// Evidence as seconds of full deviation.
    pub(super) fn seconds(&self) -> f64 {
        seconds(self.sum)
    }

    /// Whether the node is in too much doubt to be learned from.
    pub(super) fn in_doubt(&self) -> bool {
        self.sum >= DOUBT
    }
}

fn seconds(sum: f64) -> f64 {
    sum / FULL * BLOCK as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_evidence_counts_its_own_time_and_noise_none() {
        let mut fast = Fast::new(0);
        (1..=13).for_each(|block| fast.add(9.0, block, 130.0));
        assert!((fast.seconds() - 130.0).abs() < 1e-9 && fast.zero == 0);
        (14..=99).for_each(|block| fast.add(9.0, block, 130.0));
        assert!((fast.seconds() - 195.0).abs() < 1e-9, "evidence has a ceiling");
        (100..=120).for_each(|block| fast.add(0.5, block, 130.0));
        assert!(fast.seconds() <= 0.0 && fast.zero == 120);
    }

    #[test]
    fn a_block_without_values_changes_nothing() {
        let mut fast = Fast::new(0);
        fast.add(9.0, 1, 130.0);
        let before = fast.seconds();
        fast.hold(2);
        assert!((fast.seconds() - before).abs() < 1e-12 && fast.zero == 0 && !fast.in_doubt());
    }

    #[test]
    fn a_block_adds_and_takes_seconds_by_its_deviation() {
        for (z, seconds) in [
            (9.0, 10.0),
            (6.0, 10.0),
            (4.5, 5.0),
            (3.0, 0.0),
            (2.4, -2.0),
            (1.0, -20.0 / 3.0),
            // Below one it is calm: that takes ten seconds more.
            (0.9, -17.0),
            (-0.6, -22.0),
            (-9.0, -22.0),
        ] {
            let mut fast = Fast::new(0);
            (1..=5).for_each(|block| fast.add(9.0, block, 130.0));
            fast.add(z, 6, 130.0);
            assert!((fast.seconds() - 50.0 - seconds).abs() < 1e-9, "{z}: {}", fast.seconds());
        }
    }

    #[test]
    fn forty_seconds_of_evidence_are_doubt() {
        let mut fast = Fast::new(0);
        let doubts: Vec<bool> = (1..=5)
            .map(|block| {
                fast.add(9.0, block, 130.0);
                fast.in_doubt()
            })
            .collect();
        assert_eq!(doubts, [false, false, false, true, true]);
    }

    #[test]
    fn times_of_evidence_are_remembered_with_their_peak_and_the_group_s_only_while_it_lasts() {
        let mut fast = Fast::new(0);
        let none: Vec<Past> = fast.times(0).collect();
        assert_eq!(none, []);
        fast.add(1.0, 1, 130.0);
        (2..=4).for_each(|block| fast.add(9.0, block, 130.0));
        fast.shared = true;
        fast.add(4.5, 5, 130.0);
        let going = Past { begun: 1, until: 5, peak_s: 35.0 };
        assert_eq!(fast.times(5).collect::<Vec<_>>(), [going]);
        fast.add(2.4, 6, 130.0);
        assert!(fast.shared && fast.times(6).next().is_some_and(|past| (past.peak_s - 35.0).abs() < 1e-9));
        (7..=8).for_each(|block| fast.add(-9.0, block, 130.0));
        let over = Past { begun: 1, until: 7, peak_s: 35.0 };
        assert!(!fast.shared && fast.zero == 8);
        assert_eq!(fast.times(9).collect::<Vec<_>>(), [over]);
        fast.add(9.0, 9, 130.0);
        assert_eq!(fast.times(9).collect::<Vec<_>>(), [over, Past { begun: 8, until: 9, peak_s: 10.0 }]);
        fast.forget();
        assert_eq!(fast.times(9).count(), 0);
    }
}
