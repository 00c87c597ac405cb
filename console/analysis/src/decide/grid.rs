//! On which grid values lie: a clock of whole microseconds, a tool that prints two digits. Where most values are equal
//! to their neighbours, the spread between nodes says less than the grid's step.

use super::reference::median_without;
use super::sorted::Sorted;
use crate::Sample;

/// Values looked at: of longer series, evenly spaced order statistics.
const ENOUGH: usize = 4096;
/// Share of values equal to their neighbour from which on a grid is visible.
const TIES: f64 = 0.4;
/// Fleets of this size have enough values to ask for [`REPEATS`] of each, so that one odd value makes no grid.
const LARGE: usize = 24;
const REPEATS: usize = 3;
/// Two levels so far apart, and no node between them, are a slow node or two among steady ones and no grid: from the loss on that
/// fails a node. A grid that coarse shows three levels, or nodes whose steps lie on two.
const WIDE: f64 = 0.05 - 1e-9;
/// Levels that many of the last common decimal apart are no neighbours on a grid of printed digits or clock ticks: values in
/// between would have been seen.
const TICKS: f64 = 1.5;
/// Values of fewer levels have one significant digit, of which one unit is no measurement: 4 and 5 may be the same value rounded.
const COARSE: f64 = 10.0;
/// Digits of a value that are looked at for its last one.
const DIGITS: i32 = 12;
/// Closer than this, relative to the middle value, is equal.
const EQUAL: f64 = 1e-9;

/// Equal values.
struct Group {
    value: f64,
    count: usize,
    /// Nodes that have it, and how often; ascending by node.
    owners: Vec<(u32, usize)>,
}

/// For every node, the relative step of the grid on which the others' values lie; 0 where none is visible, and empty
/// where none is visible to anybody. `medians` are those of the samples, in any unit.
pub(super) fn steps(samples: &[&Sample], medians: &Sorted) -> Vec<f64> {
    // Single values are their own medians: most metrics are done without another sort.
    if samples.iter().all(|sample| sample.len() == 1) && few_ties(medians.values().iter().copied(), medians.pivot()) {
        return Vec::new();
    }
    let (groups, all) = group(samples);
    let ties = |groups: usize, values: usize| 1.0 - (groups - 1) as f64 / ((values - 1).max(1)) as f64;
    if samples.len() < 4 || groups.len() < 2 || ties(groups.len(), all) <= TIES / 2.0 {
        return Vec::new();
    }
    let need = if samples.len() < LARGE { 1 } else { REPEATS };
    let mut own = vec![Own::default(); samples.len()];
    for (at, group) in groups.iter().enumerate() {
        for &(node, count) in &group.owners {
            let own = &mut own[node as usize];
            own.values += count;
            own.alone += usize::from(count == group.count);
            if group.count >= need && group.count - count < need {
                own.missing.push(at);
            }
        }
    }
    let kept: Vec<bool> = groups.iter().map(|group| group.count >= need).collect();
    let common = smallest_step(&groups, &kept, &[]);
    let between: Vec<bool> = on_two(&groups, &kept, samples.len());
    let mixing = between.iter().filter(|two| **two).count();
    let medians = Sorted::of(&samples.iter().map(|sample| sample.median()).collect::<Vec<_>>());
    let mut steps = vec![0.0; samples.len()];
    for (position, &node) in medians.order().iter().enumerate() {
        let own = &own[node as usize];
        if ties((groups.len() - own.alone).max(1), all - own.values) > TIES {
            let (step, levels, last) =
                if own.missing.is_empty() { common } else { smallest_step(&groups, &kept, &own.missing) };
            let centre = median_without(&medians, position);
            let steady = levels == 2 && mixing == usize::from(between[node as usize]);
            let apart = || step >= WIDE * centre && step >= TICKS * last_decimal(last - step, last);
            let grid = centre > 0.0 && !(steady && apart());
            let step = if levels == 1 { last_digit(&groups, medians.at(position), last) } else { step };
            steps[node as usize] = if grid { step / centre } else { 0.0 };
        }
    }
    if steps.iter().all(|step| *step == 0.0) { Vec::new() } else { steps }
}

/// What one node contributes to the groups.
#[derive(Clone, Default)]
struct Own {
    values: usize,
    /// Groups that nobody else is in.
    alone: usize,
    /// Groups that would be too small without it.
    missing: Vec<usize>,
}

fn group(samples: &[&Sample]) -> (Vec<Group>, usize) {
    let each = ENOUGH.div_ceil(samples.len().max(1));
    let mut values: Vec<(f64, u32)> = Vec::with_capacity(samples.len());
    for (sample, node) in samples.iter().zip(0..) {
        let of = sample.values();
        if of.len() <= each {
            values.extend(of.iter().map(|value| (*value, node)));
        } else {
            values.extend((0..each).map(|k| (of[(2 * k + 1) * of.len() / (2 * each)], node)));
        }
    }
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let middle = values.get(values.len() / 2).map_or(0.0, |(value, _)| *value);
    if few_ties(values.iter().map(|(value, _)| *value), middle) {
        return (Vec::new(), values.len());
    }
    let tolerance = tolerance(middle);
    let mut groups = Vec::new();
    for run in values.chunk_by(|a, b| b.0 - a.0 < tolerance) {
        let mut nodes: Vec<u32> = run.iter().map(|(_, node)| *node).collect();
        nodes.sort_unstable();
        let owners = nodes.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect();
        groups.push(Group { value: run[0].0, count: run.len(), owners });
    }
    (groups, values.len())
}

/// Values closer than this are equal.
fn tolerance(middle: f64) -> f64 {
    (middle.abs() * EQUAL).max(f64::MIN_POSITIVE)
}

/// Whether so few of the ascending `values` are equal that no grid is visible to anybody.
fn few_ties(values: impl ExactSizeIterator<Item = f64>, middle: f64) -> bool {
    let (tolerance, count) = (tolerance(middle), values.len());
    let (mut last, mut distinct) = (f64::NEG_INFINITY, 0_usize);
    for value in values {
        distinct += usize::from(value - last >= tolerance);
        last = value;
    }
    distinct as f64 > (1.0 - TIES / 2.0) * count as f64
}

/// Which nodes have steps on more than one of the groups that are kept.
fn on_two(groups: &[Group], kept: &[bool], nodes: usize) -> Vec<bool> {
    let mut seen = vec![0_u8; nodes];
    for (group, _) in groups.iter().zip(kept).filter(|(_, kept)| **kept) {
        for &(node, _) in &group.owners {
            seen[node as usize] = seen[node as usize].saturating_add(1);
        }
    }
    seen.into_iter().map(|levels| levels > 1).collect()
}

/// Smallest distance between neighbouring groups that are kept and not `missing` (ascending), how many there are, and the value
/// of the last.
fn smallest_step(groups: &[Group], kept: &[bool], missing: &[usize]) -> (f64, usize, f64) {
    let (mut last, mut least, mut levels) = (None, f64::INFINITY, 0);
    let mut skip = missing.iter().peekable();
    for (at, group) in groups.iter().enumerate() {
        if skip.next_if(|next| **next == at).is_some() || !kept[at] {
            continue;
        }
        levels += 1;
        if let Some(before) = last.replace(group.value) {
            least = least.min(group.value - before);
        }
    }
    (if least.is_finite() { least } else { 0.0 }, levels, last.unwrap_or(0.0))
}

/// The step from `own` to the one level that all others are on, where it is one unit of the last digit printed: all values are
/// multiples of it, and have one digit. Otherwise 0: a node farther off is slow, and one between two units shows that more
/// is printed.
fn last_digit(groups: &[Group], own: f64, level: f64) -> f64 {
    let step = (own - level).abs();
    let whole = |value: f64| ((value / step) - (value / step).round()).abs() < 1e-6;
    let printed = own > 0.0 && step > 0.0 && step < TICKS * last_decimal(own.min(level), own.max(level));
    let coarse = printed && groups.iter().all(|group| group.value < COARSE * step && whole(group.value));
    if coarse { step } else { 0.0 }
}

/// The last decimal place that either of two values needs: 1 for 10 and 11, 0.1 for 2 and 2.5, 10 for 80 and 100. 0 where they
/// need more than [`DIGITS`].
fn last_decimal(a: f64, b: f64) -> f64 {
    let first = b.abs().max(f64::MIN_POSITIVE).log10().floor() as i32;
    let places = (0..DIGITS).map(|digit| 10_f64.powi(first - digit));
    let whole = |value: f64, place: f64| ((value / place) - (value / place).round()).abs() < 1e-6;
    places.into_iter().find(|place| whole(a, *place) && whole(b, *place)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&[f64]]) -> Vec<f64> {
        let samples: Vec<Sample> = values.iter().map(|v| Sample::new(v).unwrap()).collect();
        let medians = Sorted::of(&samples.iter().map(Sample::median).collect::<Vec<_>>());
        steps(&samples.iter().collect::<Vec<_>>(), &medians)
    }

    /// Of five nodes that print `level`, and one that prints `own`.
    fn printed(level: f64, own: f64) -> Vec<f64> {
        of(&[[level], [level], [level], [level], [level], [own]].each_ref().map(|v| &v[..]))
    }

    #[test]
    fn the_last_decimal_is_the_finer_of_two_values_in_any_unit() {
        for (a, b, place) in
            [(10.0, 11.0, 1.0), (1e-5, 1.1e-5, 1e-6), (2.0, 2.5, 0.1), (80.0, 100.0, 10.0), (95.0, 100.0, 1.0)]
        {
            assert!((last_decimal(a, b) / place - 1.0).abs() < 1e-9, "{a} {b}: {}", last_decimal(a, b));
        }
        assert_eq!(last_decimal(1.0 / 3.0, 2.0 / 3.0), 0.0);
    }

    #[test]
    fn a_grid_is_seen_where_others_tie_and_not_in_ones_own_values() {
        let found = of(&[&[100.0, 102.0], &[100.0, 100.0], &[102.0, 100.0], &[100.0, 102.0], &[99.1, 100.7]]);
        assert!((found[4] - 0.02 / 1.01).abs() < 1e-3, "{found:?}");
        assert!(found[0] < 0.01, "{found:?}");
        assert!(of(&[&[1.0], &[1.1], &[1.2], &[1.3]]).is_empty());
        assert!(of(&[&[1.0], &[1.0], &[1.0], &[1.0]]).is_empty());
    }

    #[test]
    fn values_hardly_any_of_which_are_equal_show_no_grid() {
        assert!(few_ties((0..40).map(f64::from), 20.0));
        assert!(!few_ties((0..40).map(|at| f64::from(at / 2)), 10.0));
    }

    #[test]
    fn two_levels_far_apart_are_slow_nodes_unless_they_are_neighbours_or_a_node_lies_on_both_or_there_are_three() {
        let fleet = |slow: f64| -> Vec<f64> {
            of(&[[100.0; 1], [100.0], [100.0], [100.0], [100.0], [slow]].each_ref().map(|v| &v[..]))
        };
        assert!(fleet(80.0).is_empty() && fleet(95.0).is_empty());
        assert!((fleet(98.0)[0] - 0.02).abs() < 1e-9);
        // One unit of the last digit: whole microseconds, say, of healthy nodes at 9.6 and 9.4.
        assert!((fleet(90.0)[0] - 0.1).abs() < 1e-9);
        // The odd one sees nothing but one level, and is one unit of it away.
        assert!((printed(0.05, 0.04)[5] - 0.2).abs() < 1e-9);
        assert_eq!(fleet(90.0)[5], 0.0, "a round number of more digits may be exact");
        assert!((printed(5e7, 4e7)[5] - 0.2).abs() < 1e-9, "in another unit");
        assert!(printed(0.05, 0.03).is_empty(), "two units away");
        assert!(printed(0.05, 0.041).is_empty(), "three digits are printed");
        assert!(printed(1.01, 1.0).iter().all(|step| *step < 0.011), "three digits are printed");
        assert!(printed(1.0, 0.0).last().is_none_or(|step| *step == 0.0), "nothing is no rounded value");
        let both = of(&[&[100.0, 80.0], &[100.0, 100.0], &[100.0, 100.0], &[80.0, 80.0], &[100.0, 100.0]]);
        assert!((both[1] - 20.0 / 95.0).abs() < 1e-9, "{both:?}");
        let three = of(&[&[100.0], &[100.0], &[100.0], &[120.0], &[80.0], &[100.0], &[100.0]]);
        assert!((three[0] - 0.2).abs() < 0.01, "{three:?}");
    }
}
