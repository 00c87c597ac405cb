//! From which score on is a machine a candidate? The paper does not say; the number that does best on the labelled recordings.

use super::method::of_looks;
use super::recorded::Recorded;
use super::score::Tally;
use crate::minder::Look;

/// Thresholds that are tried: scores of the windows at these shares from the top, from all of them to one of ten thousand.
const TRIED: usize = 41;
const FEWEST: f64 = 4.0;
/// Most scores that are put in order.
const SCORES: usize = 1 << 20;

/// The threshold with the best F1, of equals that with fewer wrong names, then the highest. Infinite without a window.
pub(super) fn threshold(recordings: &[&Recorded], looks: &[Vec<Look>], continuity_s: f64) -> f64 {
    let all = || looks.iter().flatten().flat_map(Look::scores);
    let every = all().count().div_ceil(SCORES).max(1);
    let mut scores: Vec<f64> = all().step_by(every).collect();
    scores.sort_unstable_by(f64::total_cmp);
    let tried = (0..TRIED).filter_map(|nr| {
        let from_top = 10.0_f64.powf(-FEWEST * nr as f64 / (TRIED - 1) as f64);
        scores.get(((1.0 - from_top) * scores.len() as f64) as usize).copied()
    });
    let worth = |threshold: f64| {
        let mut tally = Tally::default();
        for (recorded, looks) in recordings.iter().zip(looks) {
            tally.add(recorded, &of_looks(recorded, looks, threshold, continuity_s));
        }
        (tally.f1(), tally.wrong)
    };
    let mut best = (f64::INFINITY, (0.0, usize::MAX));
    for threshold in tried {
        let found = worth(threshold);
        if found.0 > best.1.0 || (found.0 == best.1.0 && found.1 <= best.1.1) {
            best = (threshold, found);
        }
    }
    best.0
}
