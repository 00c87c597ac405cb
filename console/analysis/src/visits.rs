//! What several visits of the same nodes come to: one sample per node, with what was common to a visit taken out.

use crate::Sample;
use crate::sample::median_of_sorted;

/// Joins the samples of `visits` (one list per visit, one entry per node, the nodes in the same order) into one sample per
/// node: `None` for a node that missed a visit.
///
/// A busy hour slows every node of a visit alike, so each visit is divided by the median of its nodes and brought back to the
/// level of all visits; what is left is the node's own. Its visits are joined quantile by quantile, by the median of the visits,
/// so that one disturbed visit of three is outvoted in every step and not in the median step alone. All visits together must
/// hold the same nodes, or one visit's hour would be compared with another's.
#[must_use]
pub fn join_visits(visits: &[Vec<Option<&Sample>>]) -> Vec<Option<Sample>> {
    let nodes = visits.first().map_or(0, Vec::len);
    let complete = |at: usize| visits.iter().all(|visit| visit[at].is_some());
    let whole: Vec<usize> = (0..nodes).filter(|at| complete(*at)).collect();
    let level = |visit: &Vec<Option<&Sample>>| middle(whole.iter().filter_map(|at| visit[*at]).map(Sample::median));
    let levels: Vec<f64> = visits.iter().map(level).collect();
    let overall = middle(levels.iter().copied());
    let factor = |level: &f64| if *level > 0.0 && overall > 0.0 { overall / level } else { 1.0 };
    let joined = |at: usize| {
        let own: Vec<(&Sample, f64)> =
            visits.iter().zip(&levels).filter_map(|(visit, level)| Some((visit[at]?, factor(level)))).collect();
        let steps = own.iter().map(|(sample, _)| sample.len()).max().unwrap_or(0);
        let step = |step: usize| {
            let share = if steps > 1 { step as f64 / (steps - 1) as f64 } else { 0.5 };
            middle(own.iter().map(|(sample, factor)| sample.quantile(share) * factor))
        };
        Sample::new(&(0..steps).map(step).collect::<Vec<_>>()).ok()
    };
    (0..nodes).map(|at| complete(at).then(|| joined(at)).flatten()).collect()
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    if values.is_empty() { 0.0 } else { median_of_sorted(&values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(levels: &[f64]) -> Vec<Option<Sample>> {
        levels.iter().map(|level| Sample::new(&[*level, level * 1.01, level * 0.99]).ok()).collect()
    }

    fn joined(visits: &[Vec<Option<Sample>>]) -> Vec<Option<Sample>> {
        join_visits(&visits.iter().map(|visit| visit.iter().map(Option::as_ref).collect()).collect::<Vec<_>>())
    }

    #[test]
    fn what_slows_every_node_of_a_visit_cancels() {
        let both = joined(&[visit(&[100.0, 100.0, 80.0]), visit(&[50.0, 50.0, 40.0])]);
        let medians: Vec<f64> = both.iter().flatten().map(Sample::median).collect();
        assert!((medians[2] / medians[0] - 0.8).abs() < 1e-9 && medians[0] == medians[1], "{medians:?}");
        assert!(both.iter().flatten().all(|sample| sample.len() == 3));
    }

    #[test]
    fn one_burst_is_outvoted_by_the_other_visits() {
        let calm = [100.0, 100.0, 100.0];
        let three = joined(&[visit(&[100.0, 100.0, 40.0]), visit(&calm), visit(&calm)]);
        let burst = three[2].as_ref().unwrap();
        assert!(burst.values().iter().all(|value| (value - 100.0).abs() < 1.5), "{burst:?}");
    }

    #[test]
    fn a_node_that_missed_a_visit_has_no_joint_sample() {
        let mut second = visit(&[100.0, 100.0]);
        second[1] = None;
        let both = joined(&[visit(&[100.0, 100.0]), second]);
        assert!(both[0].is_some() && both[1].is_none());
        assert!(joined(&[]).is_empty());
    }
}
