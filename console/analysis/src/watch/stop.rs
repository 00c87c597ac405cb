//! Who is named when the job stands still: the one that is idle among the busy or busy among the idle, whose work waits for what its
//! node lacks while the others wait for it, or that fell silent.
//!
//! These rules need no history: in a standstill, levels are far from what was learned.

use muster_wire::{ComponentKind, SaysOfJob};

use super::column::{Column, Work};
use super::job::Job;
use super::node::{Named, Node};
use super::settings::{BLOCK, PEERS};

/// Difference from the others, relative to the usual level, that makes a node odd.
const ODD: f64 = 0.5;
/// Blocks that it must last, and how much longer than standstills that ended by themselves.
const LASTS: u32 = 50 / BLOCK as u32;
const LONGER: f64 = 1.5;
/// Blocks of silence, and of the standstill, after which silence is told; and how far apart they may begin.
const SILENT: u32 = 50 / BLOCK as u32;
const STILL: u32 = 40 / BLOCK as u32;
const APART: u32 = 180 / BLOCK as u32;
/// Score of what no number of standard deviations says.
const CERTAIN: f64 = 9.0;

/// Who is named after `block` of a standstill, by how long each was odd and silent.
pub(super) fn named(nodes: &mut [Node], columns: &[Column], job: &Job, block: i64, work: &mut Work) -> Vec<Named> {
    let odd = odd_metrics(nodes.len(), columns, work);
    for (node, odd) in nodes.iter_mut().zip(&odd) {
        node.odd = if odd.is_some() { node.odd.saturating_add(1) } else { 0 };
    }
    let lasts = LASTS.max((LONGER * f64::from(job.longest)).ceil() as u32);
    let long = |node: &Node| node.odd >= lasts;
    let free = |(_, node): &(usize, &Node)| node.open.is_none();
    if nodes.iter().any(long) && nodes.iter().filter(|node| node.odd > 0).count() <= (nodes.len() / 4).max(1) {
        let culprits = nodes.iter().enumerate().filter(free).filter(|(_, node)| long(node));
        let name = |(at, node): (usize, &Node)| Named {
            node: at,
            metric: odd[at],
            since: block - i64::from(node.odd) + 1,
            score: CERTAIN,
        };
        return culprits.map(name).collect();
    }
    let silent = |node: &Node| node.quiet >= SILENT;
    let count = nodes.iter().filter(|node| silent(node)).count();
    if job.still < STILL || count == 0 || count > (nodes.len() / 8).max(1) {
        return Vec::new();
    }
    let with_it = |node: &Node| silent(node) && node.quiet.abs_diff(job.still) <= APART;
    let name = |(at, node): (usize, &Node)| Named {
        node: at,
        metric: None,
        since: block - i64::from(node.quiet) + 1,
        score: CERTAIN,
    };
    nodes.iter().enumerate().filter(free).filter(|(_, node)| with_it(node)).map(name).collect()
}

/// For each node the metric in which it is most unlike the others, where it is odd at all.
fn odd_metrics(nodes: usize, columns: &[Column], work: &mut Work) -> Vec<Option<usize>> {
    let mut most = vec![(ODD, None); nodes];
    for (metric, column) in columns.iter().enumerate().filter(|(_, column)| tells(column)) {
        work.values.clear();
        work.values.extend(column.cells.iter().map(|cell| cell.now.value));
        work.others.medians(&work.values, PEERS, &mut work.medians);
        for (at, (&value, &peers)) in work.values.iter().zip(&work.medians).enumerate() {
            let unlike = match column.about.job {
                SaysOfJob::Waits => (value - peers) / column.about.ceiling,
                _ => (value - peers).abs() / column.reference.max(peers),
            };
            if unlike.is_finite() && unlike > most[at].0 {
                most[at] = (unlike, Some(metric));
            }
        }
    }
    most.into_iter().map(|(_, metric)| metric).collect()
}

/// Whether a metric tells nodes apart while nothing moves. Waiting for a disk does not: one node writes the checkpoint for which the
/// others wait.
fn tells(column: &Column) -> bool {
    match column.about.job {
        SaysOfJob::Nothing => false,
        SaysOfJob::Waits => column.about.of != ComponentKind::Disk,
        SaysOfJob::Moves | SaysOfJob::Busy => true,
    }
}
