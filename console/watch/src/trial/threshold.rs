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

#[cfg(test)]
mod tests {
    use super::super::truth::{Fault, Truth};
    use super::*;
    use crate::minder::{Calls, Embedding, Tick};
    use muster_analysis::Chance;

    /// Five machines for half an hour, of which one is odd by so much from ten minutes on; its truth says so or names nobody.
    fn made(seed: u64, odd: f64, labelled: bool) -> Recorded {
        let mut chance = Chance::new(seed);
        let mut ticks = Vec::new();
        for (second, node) in (0..1_800_u32).flat_map(|second| (0..5_u16).map(move |node| (second, node))) {
            let more = if node == 3 && second >= 600 { odd } else { 0.0 };
            ticks.push(Tick {
                time_s: f64::from(second),
                value: (10.0 + more + chance.normal()) as f32,
                node,
                metric: 0,
            });
        }
        let fault = Fault { node: "n3".into(), onset_s: 600.0, end_s: f64::INFINITY, detectable: true };
        let truth = Truth { kind: String::new(), faults: labelled.then_some(fault).into_iter().collect() };
        let nodes = (0..5).map(|node| format!("n{node}")).collect();
        Recorded::new("r".into(), (nodes, vec!["m".into()]), ticks, truth).unwrap()
    }

    fn looks(recorded: &Recorded) -> Vec<Look> {
        Calls::default().looks(&recorded.grid, &[0], &Embedding::Raw)
    }

    #[test]
    fn the_threshold_finds_what_is_labelled_and_nobody_else() {
        let recordings = [made(1, 6.0, true), made(2, 0.0, false), made(3, 5.0, true)];
        let all: Vec<Vec<Look>> = recordings.iter().map(looks).collect();
        let those: Vec<&Recorded> = recordings.iter().collect();
        let found = threshold(&those, &all, 120.0);
        let worth = |threshold: f64| {
            let mut tally = Tally::default();
            those
                .iter()
                .zip(&all)
                .for_each(|(one, looks)| drop(tally.add(one, &of_looks(one, looks, threshold, 120.0))));
            (tally.f1(), tally.wrong)
        };
        assert_eq!(worth(found), (1.0, 0));
        // It is a score of one of the windows, and no higher one that was tried is as good.
        let mut scores: Vec<f64> = all.iter().flatten().flat_map(Look::scores).collect();
        scores.sort_by(f64::total_cmp);
        assert!(scores.contains(&found));
        for nr in 0..41 {
            let from_top = 10.0_f64.powf(-4.0 * f64::from(nr) / 40.0);
            let place = ((1.0 - from_top) * scores.len() as f64) as usize;
            let tried = scores[place.min(scores.len() - 1)];
            assert!(tried <= found || worth(tried).0 < 1.0, "{tried} {found}");
        }
    }

    #[test]
    fn where_nobody_should_be_named_the_threshold_names_the_fewest_and_without_a_window_it_is_infinite() {
        let clean = made(4, 0.0, false);
        let all = [looks(&clean)];
        let found = threshold(&[&clean], &all, 0.0);
        assert_eq!(of_looks(&clean, &all[0], found, 120.0), []);
        let most = all[0].iter().flat_map(Look::scores).fold(0.0, f64::max);
        assert!(found <= most && found > 0.9 * most, "{found} {most}");
        assert_eq!(threshold(&[], &[], 120.0), f64::INFINITY);
    }
}
