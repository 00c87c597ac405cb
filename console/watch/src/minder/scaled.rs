//! What is one metric, between 0 and 1, in the span of a call?

use std::ops::Range;

use super::grid::Grid;

/// Nodes that must show a metric: with fewer, nobody can say which of two is odd.
pub(super) const NODES: usize = 4;
/// Quartile ranges beyond the quartiles at which values are cut where clipping is asked for: far outside what healthy noise reaches, so that an odd
/// machine stays odd, and one spike no longer flattens everything else.
const REACH: f32 = 5.0;

/// A metric of the nodes that show it, scaled by its smallest and largest value of the span.
#[derive(Clone, Debug)]
pub(super) struct Scaled {
    /// Those nodes.
    pub(super) nodes: Vec<usize>,
    /// Seconds of each.
    pub(super) seconds: usize,
    values: Vec<f64>,
}

impl Scaled {
    /// The seconds `span` of a metric; nothing where fewer than [`NODES`] nodes show it, or all show the same number.
    pub(super) fn of(grid: &Grid, metric: usize, span: Range<usize>, clip: bool) -> Option<Self> {
        let series = |node: usize| grid.series(metric, node).map(|series| &series[span.clone()]);
        let nodes: Vec<usize> = (0..grid.size().0).filter(|node| series(*node).is_some()).collect();
        if nodes.len() < NODES || span.is_empty() {
            return None;
        }
        let all: Vec<f32> = nodes.iter().filter_map(|node| series(*node)).flatten().copied().collect();
        let (low, high) = bounds(&all, clip);
        let width = f64::from(high) - f64::from(low);
        if width <= 0.0 {
            return None;
        }
        let values = all.iter().map(|value| (f64::from(value.clamp(low, high)) - f64::from(low)) / width).collect();
        Some(Self { nodes, seconds: span.len(), values })
    }

    /// The values of the node at `place` of [`Scaled::nodes`].
    pub(super) fn of_node(&self, place: usize) -> &[f64] {
        &self.values[place * self.seconds..(place + 1) * self.seconds]
    }
}

/// Smallest and largest value; with `clip` no farther than [`REACH`] quartile ranges beyond the quartiles.
fn bounds(values: &[f32], clip: bool) -> (f32, f32) {
    let (low, high) = values.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    if !clip {
        return (low, high);
    }
    let mut sorted = values.to_vec();
    let mut at = |share: f64| {
        let place = ((sorted.len() - 1) as f64 * share) as usize;
        *sorted.select_nth_unstable_by(place, f32::total_cmp).1
    };
    let (first, third) = (at(0.25), at(0.75));
    let reach = REACH * (third - first);
    // A metric that is mostly zero has no quartile range: it is left as it is.
    if reach > 0.0 { (low.max(first - reach), high.min(third + reach)) } else { (low, high) }
}

#[cfg(test)]
mod tests {
    use super::super::grid::Tick;
    use super::*;

    fn grid(value: impl Fn(usize, usize) -> f32) -> Grid {
        let ticks: Vec<Tick> = (0..5)
            .flat_map(|node| (0..100).map(move |second| (node, second)))
            .map(|(node, second)| Tick {
                time_s: second as f64,
                value: value(node, second),
                node: node as u16,
                metric: 0,
            })
            .collect();
        Grid::of(5, 1, &ticks).unwrap()
    }

    #[test]
    fn values_lie_between_zero_and_one_and_a_spike_is_cut_where_that_is_asked_for() {
        let spiky = grid(|node, second| if (node, second) == (0, 7) { 1e6 } else { ((node + second) % 10) as f32 });
        let plain = Scaled::of(&spiky, 0, 0..100, false).unwrap();
        assert!(plain.of_node(1).iter().all(|value| *value < 1e-4));
        assert_eq!(plain.of_node(0)[7], 1.0);
        let cut = Scaled::of(&spiky, 0, 0..100, true).unwrap();
        let largest = cut.of_node(1).iter().fold(0.0_f64, |a, b| a.max(*b));
        assert!(largest > 0.2 && cut.of_node(0)[7] == 1.0, "{largest}");
    }

    #[test]
    fn a_metric_that_never_changes_tells_nothing() {
        assert!(Scaled::of(&grid(|_, _| 3.0), 0, 0..100, false).is_none());
    }

    #[test]
    fn each_value_is_its_share_of_the_way_from_the_least_to_the_most_of_the_span() {
        let grid = grid(|node, second| (10 * node + second) as f32);
        let scaled = Scaled::of(&grid, 0, 20..30, false).unwrap();
        assert_eq!((scaled.nodes.clone(), scaled.seconds), (vec![0, 1, 2, 3, 4], 10));
        for node in 0..5 {
            for (second, value) in scaled.of_node(node).iter().enumerate() {
                assert!((value - (10 * node + second) as f64 / 49.0).abs() < 1e-9);
            }
        }
        assert!(Scaled::of(&grid, 0, 20..20, false).is_none());
    }

    #[test]
    fn four_nodes_must_show_a_metric() {
        let of = |nodes: u16| {
            let tick = |node| Tick { time_s: f64::from(node), value: f32::from(node), node, metric: 0 };
            Scaled::of(&Grid::of(9, 1, &(0..nodes).map(tick).collect::<Vec<_>>()).unwrap(), 0, 0..2, false)
        };
        assert_eq!((of(3).map(|one| one.nodes), of(4).map(|one| one.nodes)), (None, Some(vec![0, 1, 2, 3])));
    }

    #[test]
    fn values_are_cut_five_quartile_ranges_beyond_the_quartiles() {
        // With one value more on either side the quartiles are 24 and 75: what is cut lies five times 51 beyond them.
        let values: Vec<f32> = (0..=100).map(|value| value as f32).collect();
        let with = |low: f32, high: f32| bounds(&[&values[..], &[low, high]].concat(), true);
        assert_eq!(bounds(&values, true), (0.0, 100.0));
        assert_eq!((with(-200.0, 300.0), with(-1e6, 1e6)), ((-200.0, 300.0), (-231.0, 330.0)));
        assert_eq!(bounds(&[&values[..], &[-1e6, 1e6]].concat(), false), (-1e6, 1e6));
        let mostly_zero = [&[0.0; 99][..], &[7.0]].concat();
        assert_eq!(bounds(&mostly_zero, true), (0.0, 7.0), "it has no quartile range");
    }
}
