//! What is looked at when, and which machine is the farthest in each window?

use std::ops::Range;

use super::distance::farthest;
use super::grid::Grid;
use super::moments;
use super::scaled::Scaled;
use super::vae::{Vae, WIDTH};

/// How often is looked, and how far back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Seconds from one call to the next; the paper's 480.
    pub every_s: usize,
    /// Seconds that a call looks back; the paper's 900.
    pub back_s: usize,
    /// Whether values far outside the quartiles are cut before a metric is scaled, so that one spike does not flatten everything else. Not in the
    /// paper.
    pub clip: bool,
}

impl Default for Calls {
    fn default() -> Self {
        Self { every_s: 480, back_s: 900, clip: false }
    }
}

/// What stands for a window when distances are taken.
#[derive(Clone, Debug)]
pub enum Embedding<'a> {
    /// Its seconds.
    Raw,
    /// Its mean.
    Mean,
    /// What the network of its metric makes of it; by metric of the grid. A metric without one is not looked at.
    Vae(Vec<Option<&'a Vae>>),
    /// Moments of all metrics together, turned into principal components of equal variance: Euclidean distance is then Mahalanobis distance.
    Moments,
}

/// The farthest machine of each window, in one metric or in all together.
#[derive(Clone, Debug)]
pub(super) struct Far {
    pub(super) metric: Option<usize>,
    /// Seconds of a window, and from one window to the next.
    pub(super) width: usize,
    pub(super) stride: usize,
    /// The node and its score, window by window.
    pub(super) tops: Vec<(usize, f64)>,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Look {
    /// Seconds of the grid that it looked at.
    pub(super) span: Range<usize>,
    /// In the order in which metrics are looked at.
    pub(super) far: Vec<Far>,
}

impl Look {
    /// Scores of all windows.
    pub fn scores(&self) -> impl Iterator<Item = f64> {
        self.far.iter().flat_map(|far| far.tops.iter().map(|(_, score)| *score))
    }
}

impl Calls {
    /// Seconds of the grid that each call looks at. One is made every `every_s`, and one more at the end of the recording, which is at most that much
    /// earlier than it would have come.
    pub(super) fn spans(self, seconds: usize) -> impl Iterator<Item = Range<usize>> {
        let every = self.every_s.max(1);
        let regular = (1..=seconds / every).map(move |nr| nr * every);
        let last = (!seconds.is_multiple_of(every)).then_some(seconds);
        regular.chain(last).map(move |at| at.saturating_sub(self.back_s)..at)
    }

    /// All calls over a recording, of the metrics in `order`.
    #[must_use]
    pub fn looks(&self, grid: &Grid, order: &[usize], embedding: &Embedding<'_>) -> Vec<Look> {
        let look = |span: Range<usize>| {
            let far = match embedding {
                Embedding::Moments => moments::far(grid, order, span.clone()).into_iter().collect(),
                _ => order.iter().filter_map(|metric| self.far(grid, *metric, span.clone(), embedding)).collect(),
            };
            Look { span, far }
        };
        self.spans(grid.seconds()).map(look).collect()
    }

    fn far(&self, grid: &Grid, metric: usize, span: Range<usize>, embedding: &Embedding<'_>) -> Option<Far> {
        let scaled = Scaled::of(grid, metric, span, self.clip)?;
        let vae = match embedding {
            Embedding::Vae(all) => Some(all.get(metric).copied().flatten()?),
            _ => None,
        };
        let mut points = Vec::new();
        let tops = (0..(scaled.seconds + 1).saturating_sub(WIDTH)).filter_map(|start| {
            points.clear();
            for window in windows_at(&scaled, start) {
                match (embedding, vae) {
                    (_, Some(vae)) => points.extend(vae.reconstruct(&window)),
                    (Embedding::Mean, _) => points.push(window.iter().sum::<f64>() / WIDTH as f64),
                    _ => points.extend(window),
                }
            }
            let (place, score) = farthest(&points, points.len() / scaled.nodes.len())?;
            Some((scaled.nodes[place], score))
        });
        let tops = tops.collect();
        Some(Far { metric: Some(metric), width: WIDTH, stride: 1, tops })
    }

    /// Windows of a metric to learn from: `count` drawn from all calls, nodes and seconds of the grids, each with the place of the metric in it.
    #[must_use]
    pub fn windows(
        &self,
        of: &[(&Grid, usize)],
        count: usize,
        chance: &mut muster_analysis::Chance,
    ) -> Vec<[f64; WIDTH]> {
        let spans = |(grid, metric): &(&Grid, usize)| {
            let all: Vec<Scaled> = self
                .spans(grid.seconds())
                .filter_map(|span| Scaled::of(grid, *metric, span, self.clip))
                .filter(|scaled| scaled.seconds >= WIDTH)
                .collect();
            all
        };
        let all: Vec<Scaled> = of.iter().flat_map(spans).collect();
        let draw = |_| {
            let scaled = all.get(chance.below(all.len()))?;
            let series = scaled.of_node(chance.below(scaled.nodes.len()));
            let start = chance.below(series.len() - WIDTH + 1);
            Some(window(series, start))
        };
        (0..count).map_while(draw).collect()
    }
}

fn window(series: &[f64], start: usize) -> [f64; WIDTH] {
    std::array::from_fn(|at| series[start + at])
}

/// The window that begins at a second, of every node.
fn windows_at(scaled: &Scaled, start: usize) -> impl Iterator<Item = [f64; WIDTH]> {
    (0..scaled.nodes.len()).map(move |place| window(scaled.of_node(place), start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_every_eight_minutes_and_at_the_end_and_look_back_fifteen() {
        let spans: Vec<_> = Calls::default().spans(1_500).collect();
        assert_eq!(spans, [0..480, 60..960, 540..1_440, 600..1_500]);
        assert_eq!(Calls::default().spans(300).next(), Some(0..300));
        assert_eq!(Calls::default().spans(960).count(), 2);
    }

    /// Five nodes over 30 s whose values are drawn.
    fn drawn(seed: u64) -> Grid {
        let mut chance = muster_analysis::Chance::new(seed);
        let at = (0..30_u16).flat_map(|second| (0..5).map(move |node| (second, node)));
        let ticks: Vec<_> = at
            .map(|(second, node)| crate::minder::Tick {
                time_s: f64::from(second),
                value: chance.normal() as f32,
                node,
                metric: 0,
            })
            .collect();
        Grid::of(5, 1, &ticks).unwrap()
    }

    #[test]
    fn the_farthest_of_a_window_is_the_node_with_the_largest_mean_distance_to_all() {
        let (grid, calls) = (drawn(3), Calls { every_s: 20, back_s: 12, clip: false });
        let vae = Vae::new(&mut muster_analysis::Chance::new(5));
        for embedding in [Embedding::Raw, Embedding::Mean, Embedding::Vae(vec![Some(&vae)])] {
            let looks = calls.looks(&grid, &[0], &embedding);
            let spans: Vec<Range<usize>> = looks.iter().map(|look| look.span.clone()).collect();
            assert_eq!(spans, [8..20, 18..30]);
            for look in &looks {
                let [far] = look.far.as_slice() else { panic!("{look:?}") };
                assert_eq!((far.metric, far.width, far.stride, far.tops.len()), (Some(0), 8, 1, 12 - 8 + 1));
                let scaled = Scaled::of(&grid, 0, look.span.clone(), false).unwrap();
                for (start, top) in far.tops.iter().enumerate() {
                    let point = |node: usize| {
                        let seconds: [f64; WIDTH] = scaled.of_node(node)[start..start + WIDTH].try_into().unwrap();
                        match &embedding {
                            Embedding::Mean => vec![seconds.iter().sum::<f64>() / 8.0],
                            Embedding::Vae(_) => vae.reconstruct(&seconds).to_vec(),
                            _ => seconds.to_vec(),
                        }
                    };
                    let apart = |a: usize, b: usize| {
                        point(a).iter().zip(point(b)).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
                    };
                    let mean = |node: usize| (0..5).map(|other| apart(node, other)).sum::<f64>() / 5.0;
                    let best = (0..5).max_by(|&a, &b| mean(a).total_cmp(&mean(b))).unwrap();
                    assert_eq!(top.0, best);
                    assert!((top.1 - mean(best)).abs() < 1e-9);
                }
                assert_eq!(look.scores().count(), 5);
            }
        }
        assert!(calls.looks(&grid, &[0], &Embedding::Vae(vec![None])).iter().all(|look| look.far.is_empty()));
    }

    #[test]
    fn windows_to_learn_from_are_eight_seconds_of_one_node_within_a_call() {
        let calls = Calls { every_s: 10, back_s: 10, clip: false };
        // Each node counts seconds from a start of its own, so that a window tells where it is from.
        let at = (0..20_u16).flat_map(|second| (0..4).map(move |node| (second, node)));
        let tick = |(second, node): (u16, u16)| crate::minder::Tick {
            time_s: f64::from(second),
            value: f32::from(100 * node + second),
            node,
            metric: 0,
        };
        let grid = Grid::of(4, 1, &at.map(tick).collect::<Vec<_>>()).unwrap();
        let windows = calls.windows(&[(&grid, 0)], 400, &mut muster_analysis::Chance::new(1));
        assert_eq!(windows.len(), 400);
        let mut seen = std::collections::BTreeSet::new();
        for window in windows {
            assert!(window.windows(2).all(|two| (two[1] - two[0] - 1.0 / 309.0).abs() < 1e-9), "{window:?}");
            seen.insert((window[0] * 309.0).round() as u16);
        }
        let starts: std::collections::BTreeSet<u16> =
            (0..4).flat_map(|node| (0..3).map(move |start| 100 * node + start)).collect();
        assert_eq!(seen, starts, "three begin in each of two calls of ten seconds");
        assert!(calls.windows(&[], 9, &mut muster_analysis::Chance::new(1)).is_empty());
    }
}
