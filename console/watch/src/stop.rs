//! Who is named when the job stands still: the one that is idle among the busy or busy among the idle, whose work waits for what its
//! node lacks while the others wait for it, or that fell silent. Who writes meanwhile, such as a checkpoint, is waited for by design:
//! that is noted, and named only where it lasts longer than any checkpoint should.
//!
//! These rules need no history of what nodes are beside each other: in a standstill, levels are far from what was learned.

use muster_wire::{ComponentKind, SaysOfJob};

use super::column::{Column, Work};
use super::job::Job;
use super::node::{Named, Node};
use super::settings::BLOCK;
use super::writes::writers;

/// Difference from the others, relative to the usual level, that makes a node odd.
const ODD: f64 = 0.5;
/// Blocks that it must last, and how much longer than standstills that ended by themselves.
const LASTS: u32 = 50 / BLOCK as u32;
const LONGER: f64 = 1.5;
/// Blocks for which a node may write before it is named all the same. The NCCL watchdog of PyTorch ends a job whose collective waits
/// for ten minutes, so that a job whose ranks wait longer for each checkpoint does not live.
const WRITES: u32 = 600 / BLOCK as u32;
/// Blocks of silence, and of the standstill, after which silence is told; and how far apart they may begin.
const SILENT: u32 = 50 / BLOCK as u32;
const STILL: u32 = 40 / BLOCK as u32;
const APART: u32 = 180 / BLOCK as u32;
/// Score of what no number of standard deviations says.
const CERTAIN: f64 = 9.0;

/// What is said of a standstill.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) named: Vec<Named>,
    pub(super) writers: Vec<Writer>,
}

/// A node that would be named if it did not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) node: usize,
    pub(super) metric: usize,
    /// First block of it, and for how many it may last.
    pub(super) since: i64,
    pub(super) most: u32,
}

/// How a node stands beside the others.
#[derive(Clone, Copy, Debug, Default)]
struct Stands {
    /// The metric in which it is most unlike them, where it is odd at all.
    odd: Option<usize>,
    /// The metric that shows it writing, where it does nothing that a writer would not do.
    writes: Option<usize>,
}

/// What is said after `block` of a standstill, by how long each node was odd and silent.
pub(super) fn said(nodes: &mut [Node], columns: &[Column], job: &mut Job, block: i64, work: &mut Work) -> Said {
    let stands = stands(nodes.len(), columns, work);
    nodes.iter_mut().zip(&stands).for_each(|(node, stands)| keep(node, *stands));
    let nodes: &[Node] = nodes;
    job.wrote += u32::from(stands.iter().any(|stands| stands.writes.is_some()));
    let job: &Job = job;
    let lasts = longer(job.longest_idle, LASTS);
    let long = |node: &Node| node.odd - node.wrote >= lasts || node.odd >= longer(job.longest, WRITES);
    let odd = nodes.iter().filter(|node| node.odd > 0).count();
    if odd > (nodes.len() / 4).max(1) {
        return Said { named: silent(nodes, job, block), ..Said::default() };
    }
    let all = || nodes.iter().enumerate().zip(&stands);
    let since = |node: &Node| block - i64::from(node.odd) + 1;
    let name = |((at, node), stands): ((usize, &Node), &Stands)| Named {
        node: at,
        metric: stands.odd,
        since: since(node),
        score: CERTAIN,
    };
    let write = |((at, node), stands): ((usize, &Node), &Stands)| {
        let metric = stands.writes.filter(|_| !long(node) && node.odd >= lasts)?;
        Some(Writer { node: at, metric, since: since(node), most: longer(job.longest, WRITES) })
    };
    let writers = all().filter_map(write).collect();
    if !nodes.iter().any(long) {
        return Said { named: silent(nodes, job, block), writers };
    }
    Said { named: all().filter(|((_, node), _)| node.open.is_none() && long(node)).map(name).collect(), writers }
}

/// Counts for how long a node has been odd, and for how much of that it wrote.
fn keep(node: &mut Node, stands: Stands) {
    let wrote = if node.odd > 0 { node.wrote } else { 0 };
    (node.odd, node.wrote) = match stands.odd {
        Some(_) => (node.odd.saturating_add(1), wrote + u32::from(stands.writes.is_some())),
        None => (0, 0),
    };
}

/// `least` blocks, or clearly more than `longest`, after which a standstill ended by itself.
fn longer(longest: u32, least: u32) -> u32 {
    least.max((LONGER * f64::from(longest)).ceil() as u32)
}

/// Who fell silent with the job.
fn silent(nodes: &[Node], job: &Job, block: i64) -> Vec<Named> {
    let silent = |node: &Node| node.quiet >= SILENT;
    let count = nodes.iter().filter(|node| silent(node)).count();
    if job.still < STILL || count == 0 || count > (nodes.len() / 8).max(1) {
        return Vec::new();
    }
    let with_it = |node: &Node| node.open.is_none() && silent(node) && node.quiet.abs_diff(job.still) <= APART;
    let name = |(at, node): (usize, &Node)| Named {
        node: at,
        metric: None,
        since: block - i64::from(node.quiet) + 1,
        score: CERTAIN,
    };
    nodes.iter().enumerate().filter(|(_, node)| with_it(node)).map(name).collect()
}

/// How each node stands beside the others.
fn stands(nodes: usize, columns: &[Column], work: &mut Work) -> Vec<Stands> {
    let mut most = vec![(ODD, None, false); nodes];
    for (metric, column) in columns.iter().enumerate().filter(|(_, column)| tells(column)) {
        column.beside_peers(work);
        for (own, (&value, &peers)) in most.iter_mut().zip(work.values.iter().zip(&work.medians)) {
            let unlike = unlike(column, value, peers);
            if !unlike.is_finite() || unlike <= ODD {
                continue;
            }
            own.2 |= is_no_writing(column) && value > peers;
            if unlike > own.0 {
                (own.0, own.1) = (unlike, Some(metric));
            }
        }
    }
    let writers = writers(nodes, columns, work);
    let stands = |((_, odd, other), writes): ((f64, Option<usize>, bool), Option<usize>)| Stands {
        odd,
        writes: writes.filter(|_| !other),
    };
    most.into_iter().zip(writers).map(stands).collect()
}

/// How far a value is from the others, relative to the usual level.
fn unlike(column: &Column, value: f64, peers: f64) -> f64 {
    match column.about.job {
        SaysOfJob::Waits => (value - peers) / column.about.ceiling,
        _ => (value - peers).abs() / column.reference.max(peers),
    }
}

/// Whether to be above the others in a metric is none of what a writer does: its GPUs have nothing to compute, and it lacks no CPU and
/// no memory. A node that swaps writes to its disk, too.
fn is_no_writing(column: &Column) -> bool {
    column.about.job == SaysOfJob::Waits || matches!(column.about.of, ComponentKind::Gpus | ComponentKind::GpuLink)
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

#[cfg(test)]
mod tests {
    use muster_wire::telemetry;

    use super::*;

    /// A metric of eight nodes: what node 0 shows in a standstill, what the others show, and what all showed before.
    type Metric = (&'static str, f64, f64, f64);
    const SPINS: Metric = ("gpu_util_pct", 0.0, 100.0, 92.0);
    const SENT: Metric = ("net_tx_gbs", 11.0, 0.0, 18.0);
    const BUSY: Metric = ("disk_busy_pct", 98.0, 3.0, 3.0);

    fn column((name, own, others, usual): Metric) -> Column {
        let mut column = Column::new(name.to_owned(), *telemetry(name).unwrap(), 8, 0);
        column.reference = usual;
        for (node, cell) in column.cells.iter_mut().enumerate() {
            (cell.now.value, cell.level) = (if node == 0 { own } else { others }, usual);
        }
        column
    }

    #[test]
    fn a_standstill_is_longer_than_the_longest_that_ended_by_itself_by_half() {
        assert_eq!([0, 4, 5, 100].map(|longest| longer(longest, 6)), [6, 6, 8, 150]);
    }

    /// A standstill of eight nodes, block by block.
    struct Still {
        nodes: Vec<Node>,
        block: i64,
    }

    impl Still {
        fn new() -> Self {
            Self { nodes: vec![Node::default(); 8], block: 0 }
        }

        /// Blocks until node 0 is named for what the metrics show, at most 100, and those of them in which it was a writer.
        fn until_named(&mut self, metrics: &[Metric]) -> (u32, u32) {
            let columns: Vec<Column> = metrics.iter().map(|metric| column(*metric)).collect();
            let (mut job, mut work, mut wrote) = (Job::default(), Work::default(), 0);
            for blocks in 1..=100 {
                let said = said(&mut self.nodes, &columns, &mut job, self.block, &mut work);
                self.block += 1;
                wrote += u32::from(!said.writers.is_empty());
                if let Some(named) = said.named.first() {
                    assert_eq!(named.node, 0);
                    return (blocks, wrote);
                }
            }
            (100, wrote)
        }
    }

    fn until_named(metrics: &[Metric]) -> (u32, u32) {
        Still::new().until_named(metrics)
    }

    #[test]
    fn in_a_hang_in_which_nothing_moves_the_idle_one_is_named_after_fifty_seconds() {
        assert_eq!(until_named(&[SPINS]), (LASTS, 0));
        let quiet = [SPINS, ("net_tx_gbs", 0.0, 0.0, 18.0), ("disk_busy_pct", 3.0, 3.0, 3.0)];
        assert_eq!(until_named(&quiet), (LASTS, 0));
        assert_eq!(until_named(&[SPINS, ("job_cpu_pct", 100.0, 4.0, 30.0)]), (LASTS, 0), "a live lock");
    }

    #[test]
    fn a_node_that_writes_while_the_others_wait_is_a_writer_and_named_only_after_ten_minutes() {
        for metrics in [&[SENT][..], &[SPINS, BUSY], &[SPINS, SENT, ("job_cpu_pct", 100.0, 4.0, 30.0)]] {
            assert_eq!(until_named(metrics), (WRITES, WRITES - LASTS), "{metrics:?}");
        }
    }

    #[test]
    fn a_node_that_still_computes_or_lacks_something_is_no_writer() {
        assert_eq!(until_named(&[SENT, ("tensor_active", 0.45, 0.0, 0.45)]), (LASTS, 0));
        let swaps = [SPINS, ("disk_write_gbs", 0.9, 0.0, 0.0), ("memory_pressure_pct", 80.0, 0.0, 0.0)];
        assert_eq!(until_named(&swaps), (LASTS, 0));
    }

    #[test]
    fn a_node_that_wrote_and_then_hangs_is_named_as_long_after_its_last_byte_as_any_other() {
        let mut still = Still::new();
        let writes: Vec<Column> = [SPINS, SENT].into_iter().map(column).collect();
        for _ in 0..12 {
            let said = said(&mut still.nodes, &writes, &mut Job::default(), still.block, &mut Work::default());
            assert!(said.named.is_empty());
            still.block += 1;
        }
        assert_eq!(still.until_named(&[SPINS]), (LASTS, 0));
    }
    /// Who is said to be silent after block 100, and since when, by the blocks of silence of each node and those of the standstill.
    fn silent_by(quiet: &[u32], still: u32) -> Vec<(usize, i64)> {
        let nodes: Vec<Node> = quiet.iter().map(|&quiet| Node { quiet, ..Node::default() }).collect();
        let mut job = Job::default();
        job.still = still;
        let named = silent(&nodes, &job, 100);
        assert!(named.iter().all(|named| named.metric.is_none()));
        named.iter().map(|named| (named.node, named.since)).collect()
    }

    #[test]
    fn who_fell_silent_with_the_job_is_named_where_few_did() {
        assert_eq!(silent_by(&[0, 0, SILENT, 0, 0, 0, 0, 0], STILL), [(2, 101 - i64::from(SILENT))]);
        assert_eq!(silent_by(&[0, 0, SILENT - 1, 0, 0, 0, 0, 0], STILL), []);
        assert_eq!(silent_by(&[0, 0, SILENT, 0, 0, 0, 0, 0], STILL - 1), []);
        assert_eq!(silent_by(&[SILENT, 0, SILENT, 0, 0, 0, 0, 0], STILL), [], "two of eight");
        let two_of = |nodes: usize| {
            let mut quiet = vec![0; nodes];
            quiet[..2].fill(SILENT);
            silent_by(&quiet, STILL).len()
        };
        assert_eq!((two_of(15), two_of(16)), (0, 2));
        assert_eq!(silent_by(&[SILENT, 0, 0], STILL).len(), 1, "one of any number");
        let long_before = |blocks: u32| silent_by(&[0, STILL + blocks, 0], STILL).len();
        assert_eq!((long_before(APART), long_before(APART + 1)), (1, 0));
        assert_eq!(silent_by(&[0, SILENT, 0], SILENT + APART + 1), [], "nor so long after the job");
    }

    #[test]
    fn waiting_is_measured_against_all_of_the_time_and_other_metrics_against_the_usual_level() {
        let waits = column(("cpu_pressure_pct", 60.0, 5.0, 5.0));
        assert!((unlike(&waits, 60.0, 5.0) - 0.55).abs() < 1e-9 && (unlike(&waits, 5.0, 60.0) + 0.55).abs() < 1e-9);
        let power = column(("gpu_power_w", 100.0, 300.0, 500.0));
        assert!((unlike(&power, 100.0, 300.0) - 0.4).abs() < 1e-9, "of 500 W");
        assert!((unlike(&power, 100.0, 1_000.0) - 0.9).abs() < 1e-9, "of what the others show, where that is more");
    }

    #[test]
    fn times_are_those_of_docs_watch() {
        let seconds = [LASTS, WRITES, SILENT, STILL, APART].map(|blocks| blocks as usize * BLOCK);
        assert_eq!(seconds, [50, 600, 50, 40, 180]);
    }

    /// Who is named, and since when, where so many of eight nodes have each been odd for so many blocks, and the busy one still is.
    fn named(odd: &[u32], open: bool, longest_idle: u32) -> Vec<(usize, i64)> {
        let mut still = Still::new();
        for (node, blocks) in still.nodes.iter_mut().zip(odd) {
            (node.odd, node.open) = (blocks.saturating_sub(1), open.then_some(0));
        }
        let mut columns = vec![column(SPINS)];
        columns[0].cells[..odd.len()].iter_mut().for_each(|cell| cell.now.value = 0.0);
        let mut job = Job::default();
        job.longest_idle = longest_idle;
        let said = said(&mut still.nodes, &columns, &mut job, 100, &mut Work::default());
        assert!(said.named.iter().all(|named| named.metric == Some(0)));
        said.named.iter().map(|named| (named.node, named.since)).collect()
    }

    #[test]
    fn the_odd_ones_of_a_standstill_are_named_since_they_were_where_they_are_a_quarter_at_most() {
        assert_eq!(named(&[5], false, 0), [(0, 96)]);
        assert_eq!(named(&[4], false, 0), []);
        assert_eq!(named(&[5, 7], false, 0), [(0, 96), (1, 94)]);
        assert_eq!(named(&[5, 3], false, 0), [(0, 96)]);
        assert_eq!(named(&[9, 9, 9], false, 0), [], "three of eight");
        assert_eq!(named(&[5], true, 0), [], "it is named already");
        assert_eq!(
            (named(&[8], false, 6).len(), named(&[9], false, 6).len()),
            (0, 1),
            "half as long again as one that ended"
        );
    }

    #[test]
    fn to_be_odd_takes_half_of_the_usual_level() {
        let odd = |own: f64, others: f64| {
            let columns = [column(("gpu_power_w", own, others, 500.0))];
            stands(8, &columns, &mut Work::default())[0].odd
        };
        assert_eq!((odd(351.0, 100.0), odd(350.0, 100.0), odd(100.0, 351.0)), (Some(0), None, Some(0)));
        let two = [column(("gpu_power_w", 400.0, 100.0, 500.0)), column(("gpu_util_pct", 90.0, 0.0, 92.0))];
        assert_eq!(stands(8, &two, &mut Work::default())[0].odd, Some(1), "the metric in which it is most unlike");
        let disk = [column(("io_pressure_pct", 90.0, 0.0, 5.0))];
        assert_eq!(
            stands(8, &disk, &mut Work::default())[0].odd,
            None,
            "the writer of a checkpoint waits for its disk"
        );
        let mut silent = column(SPINS);
        silent.cells[0].now.value = f64::NAN;
        assert_eq!(stands(8, &[silent], &mut Work::default())[0].odd, None);
    }

    #[test]
    fn blocks_are_counted_while_a_node_is_odd_and_those_in_which_it_wrote_with_them() {
        let mut node = Node::default();
        let mut keep_all = |odd: bool, writes: bool| {
            keep(&mut node, Stands { odd: odd.then_some(0), writes: writes.then_some(1) });
            (node.odd, node.wrote)
        };
        assert_eq!([keep_all(true, true), keep_all(true, false), keep_all(true, true)], [(1, 1), (2, 1), (3, 2)]);
        assert_eq!([keep_all(false, true), keep_all(true, false)], [(0, 0), (1, 0)]);
    }

    #[test]
    fn who_fell_silent_is_told_also_where_many_are_odd_and_not_where_one_is_named() {
        let of = |odd: &[u32]| {
            let mut still = Still::new();
            still.nodes.iter_mut().zip(odd).for_each(|(node, blocks)| node.odd = blocks.saturating_sub(1));
            still.nodes[7].quiet = SILENT;
            let mut columns = vec![column(SPINS)];
            columns[0].cells[..odd.len()].iter_mut().for_each(|cell| cell.now.value = 0.0);
            columns[0].cells[odd.len()..].iter_mut().for_each(|cell| cell.now.value = 100.0);
            let mut job = Job::default();
            job.still = STILL;
            let said = said(&mut still.nodes, &columns, &mut job, 100, &mut Work::default());
            said.named.iter().map(|named| (named.node, named.metric)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[9, 9, 9]), [(7, None)], "three of eight are odd");
        assert_eq!(of(&[2]), [(7, None)], "one is, and not for long");
        assert_eq!(of(&[9]), [(0, Some(0))]);
    }

    #[test]
    fn blocks_of_a_standstill_in_which_somebody_wrote_are_counted() {
        let mut job = Job::default();
        let mut wrote = |metrics: &[Metric]| {
            let columns: Vec<Column> = metrics.iter().map(|metric| column(*metric)).collect();
            said(&mut vec![Node::default(); 8], &columns, &mut job, 0, &mut Work::default());
            job.wrote
        };
        assert_eq!([wrote(&[SENT]), wrote(&[SPINS]), wrote(&[SPINS, BUSY])], [1, 1, 2]);
    }
}
