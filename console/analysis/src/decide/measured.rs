//! Every metric of a fleet, decided cell by cell.

use std::cell::RefCell;

use super::budget::{self, Shares};
use super::cell::{SMALL, Scene, Slow};
use super::decision::{Cell, View as Look};
use super::peers::{self, Peers};
use super::quantile::Memo;
use super::sorted::Sums;
use super::tails::Tails;
use super::views::{Column, View};
use super::{Fleet, Metric, Settings, against_frozen, clusters};

/// Nodes whose shares are dealt at once: peers lie in memory metric by metric, shares are dealt node by node.
const BLOCK: usize = 64;

/// One metric with what is needed to say more of it together with others.
pub(super) struct Measured {
    pub(super) column: Column,
    /// What each node was compared with, by its index in the column.
    pub(super) peers: Vec<Peers>,
    pub(super) slow: Vec<Slow>,
}

/// What the nodes of a view are compared with, by index.
pub(super) struct Compared {
    pub(super) peers: Vec<Peers>,
    /// By position: whether the others form two clusters; empty where nobody's do.
    pub(super) split: Vec<bool>,
}

impl Compared {
    fn with(peers: Vec<Peers>) -> Self {
        Self { peers, split: Vec::new() }
    }

    fn of(column: &Column, view: &View, settings: &Settings) -> Self {
        let sums = Sums::of(&view.sorted);
        let grid = |index: usize| column.grid(column.index(view, index));
        let split = clusters::of(&sums, settings.effect, settings.floor, &grid);
        Self { peers: peers::of_view(column, view, &sums, settings), split }
    }
}

/// Decides every cell of `fleet`: what was measured, and `cells[metric][node]`.
pub(super) fn decide(fleet: &Fleet<'_>, settings: &Settings) -> (Vec<Measured>, Vec<Vec<Cell>>) {
    let (mut columns, mut medians, mut means, mut tails) = (vec![], vec![], vec![], vec![]);
    for metric in &fleet.metrics {
        let column = Column::of(metric, settings);
        medians.push(match metric.frozen {
            Some(frozen) => Compared::with(against_frozen::peers(&column.median, frozen, metric.direction)),
            None => Compared::of(&column, &column.median, settings),
        });
        let compared = |view: &Option<View>| match view {
            Some(view) => Compared::of(&column, view, settings),
            None => Compared::with(Vec::new()),
        };
        means.push(compared(&column.mean));
        tails.push(compared(&column.tail));
        columns.push(column);
    }
    let shares = Shares::of(fleet.metrics.len());
    let view = |column: usize| Some(&columns[column].median);
    share_out(&shares, fleet.nodes, view, &mut medians);
    share_out(&shares, fleet.nodes, |column| columns[column].mean.as_ref(), &mut means);
    share_out(&shares, fleet.nodes, |column| columns[column].tail.as_ref(), &mut tails);
    let memo = RefCell::new(Memo::new());
    let mut all = Vec::with_capacity(columns.len());
    let mut cells = Vec::with_capacity(columns.len());
    for ((((metric, column), median), mean), tail) in
        fleet.metrics.iter().zip(columns).zip(medians).zip(means).zip(tails)
    {
        let (mut row, slow) = one(fleet, metric, (settings, &memo), (&column, &median, &mean));
        if let Some(view) = &column.tail {
            let run_nodes = fleet.run_nodes.max(fleet.nodes);
            Tails { metric, column: &column, view, settings, run_nodes }.warn(&tail.peers, &mut row);
        }
        cells.push(row);
        all.push(Measured { column, peers: median.peers, slow });
    }
    (all, cells)
}

/// Gives every node's metrics their shares in its chance, the quietest first.
fn share_out<'a>(shares: &Shares, nodes: usize, view: impl Fn(usize) -> Option<&'a View>, compared: &mut [Compared]) {
    let mut keys: Vec<Vec<u64>> = (0..BLOCK).map(|_| Vec::with_capacity(compared.len())).collect();
    let mut logs = vec![[0_f32; BLOCK]; compared.len()];
    let mut done = vec![0_usize; compared.len()];
    for first in (0..nodes).step_by(BLOCK) {
        let last = first + BLOCK;
        // Where every node has the metric, index and node are the same, and which nodes have it is not looked up.
        let upto = |metric: usize| {
            let have = view(metric).map_or(&[][..], |view| &view.nodes);
            if have.len() == nodes { last.min(nodes) } else { have.partition_point(|node| (*node as usize) < last) }
        };
        let place = |metric: usize, index: usize| {
            let have = view(metric).map_or(&[][..], |view| &view.nodes);
            if have.len() == nodes { index - first } else { have[index] as usize - first }
        };
        for (metric, (of, number)) in compared.iter().zip(0..).enumerate() {
            let to = upto(metric).min(of.peers.len());
            for (peer, index) in of.peers[done[metric]..to].iter().zip(done[metric]..) {
                if !peer.scale.is_nan() {
                    keys[place(metric, index)].push(budget::key(peer.scale, number));
                }
            }
        }
        for (at, own) in keys.iter_mut().enumerate() {
            shares.deal(own, |metric, share| logs[metric as usize][at] = share as f32);
            own.clear();
        }
        for (metric, of) in compared.iter_mut().enumerate() {
            let to = upto(metric).min(of.peers.len());
            for (peer, index) in of.peers[done[metric]..to].iter_mut().zip(done[metric]..) {
                if !peer.scale.is_nan() {
                    peer.share = logs[metric][place(metric, index)];
                }
            }
            done[metric] = to;
        }
    }
}

fn one(
    fleet: &Fleet<'_>,
    metric: &Metric<'_>,
    (settings, memo): (&Settings, &RefCell<Memo>),
    (column, median, mean): (&Column, &Compared, &Compared),
) -> (Vec<Cell>, Vec<Slow>) {
    let mut cells = vec![Cell::EMPTY; fleet.nodes];
    let mut slow = Vec::new();
    let scene = |view, look, share| Scene {
        column,
        view,
        sums: (View::len(view) <= SMALL).then(|| Sums::of(&view.sorted)),
        samples: &metric.samples,
        look,
        direction: metric.direction,
        aggregated: metric.aggregated,
        settings,
        chances: Scene::chances(settings, share, View::len(view), fleet.run_nodes.max(fleet.nodes)),
        memo,
    };
    let by_median = scene(&column.median, Look::MedianStep, budget::MEDIAN);
    match metric.frozen {
        Some(frozen) => {
            by_median.decide_frozen(frozen, &median.peers, &mut slow, |node, cell| cells[node as usize] = cell)
        }
        None => by_median.decide(median, &mut slow, |node, cell| cells[node as usize] = cell),
    }
    if let Some(view) = &column.mean {
        let by_mean = scene(view, Look::MeanStep, budget::MEAN);
        by_mean.decide(mean, &mut Vec::new(), |node, cell| {
            let known = &mut cells[node as usize];
            // Frozen criteria decide where a fresh comparison cannot.
            let says = metric.frozen.is_none() || !cell.why.of_the_fleet();
            if says && cell.state > known.state {
                *known = Cell { resolution: known.resolution, ..cell };
            }
        });
    }
    (cells, slow)
}
