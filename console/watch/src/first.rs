//! Who moved first where one machine drags the others: the whole job slowed, and one machine had left its peers before.
//!
//! A machine is named only where its change came before the job's by more than what is uncertain about both, its clock included, and
//! where no other machine may have changed before; and only where a healthy machine is too rarely unlike its peers for so long to
//! have been so by chance as the job slowed.

use super::cell::Side;
use super::change::{Change, change};
use super::column::Column;
use super::excursions::Excursions;
use super::fast::Past;
use super::node::Node;
use super::order::{NORMAL, median};
use super::settings::{BLOCK, HISTORY, PEERS};
use muster_wire::SaysOfJob;

/// Levels that must be known before one is called low; share below the usual level, and in median deviations of it.
const KNOWN: usize = 18;
const LOW: f64 = 0.08;
const DEVIATIONS: f64 = 3.0;
/// Blocks of low level after which it is asked who moved first, and asked again: later ones know the job's step better.
const ASKED: [u32; 3] = [4, 7, 10];
/// Seconds of evidence that make a machine a candidate, and how much its metric must have changed.
const EVIDENCE: f64 = 20.0;
const WORTH: f64 = 0.08;
/// Chance, over all nodes, that a healthy one is unlike its peers for so long.
const CHANCE: f64 = 0.01;
/// Part of its change that must be left after the job slowed.
const STAYS: f64 = 0.5;
/// Seconds that the clock of a node may be off where nobody said how far it is.
const CLOCK: f64 = 15.0;
/// Machines of a job that may move first, as a share of its nodes: more are a group.
const SHARE: usize = 8;

/// A machine that changed before the job did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct First {
    pub(super) node: usize,
    /// Its metric, when that changed (epoch second), and to how much of what it was.
    pub(super) metric: usize,
    pub(super) since_s: f64,
    pub(super) ratio: f64,
    /// The metric of the job, and to how much of what it was it fell.
    pub(super) job: usize,
    pub(super) job_ratio: f64,
    /// Fewest and most seconds from the machine's change to the job's.
    pub(super) lead: (f64, f64),
}

/// A machine whose change may be the first: seconds within the window.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    node: usize,
    metric: usize,
    evidence: f64,
    change: Change,
    clock_s: f64,
}

impl Column {
    /// Counts the blocks in which all nodes together are clearly below their usual level.
    pub(super) fn keep_pace(&mut self, scratch: &mut Vec<f64>) {
        scratch.clear();
        scratch.extend(self.usual_levels().iter().map(|level| (level / self.reference - 1.0).abs()));
        let spread = NORMAL * median(scratch);
        let low = scratch.len() >= KNOWN && self.level < self.reference * (1.0 - LOW.max(DEVIATIONS * spread));
        self.low = if low { self.low.saturating_add(1) } else { 0 };
    }

    fn tells_pace(&self) -> bool {
        matches!(self.about.job, SaysOfJob::Moves | SaysOfJob::Busy)
    }

    /// A second's value on every node but those `without`.
    fn at(&self, second: i64, without: &[usize], out: &mut Vec<f64>) {
        out.clear();
        let others = self.cells.iter().enumerate().filter(|(node, _)| !without.contains(node));
        out.extend(others.map(|(_, cell)| cell.seconds.at(second)));
    }

    /// Median of every second of `window` over the nodes but those `without`.
    fn medians(&self, window: (i64, i64), without: &[usize]) -> Vec<f64> {
        let mut values = Vec::new();
        let mut one = |second| {
            self.at(second, without, &mut values);
            let enough = values.iter().filter(|value| value.is_finite()).count() >= PEERS;
            if enough { median(&mut values) } else { f64::NAN }
        };
        (window.0..window.1).map(&mut one).collect()
    }
}

/// Whether the job slowed so many blocks ago that it is time to ask.
pub(super) fn is_time(columns: &[Column]) -> bool {
    columns.iter().any(|column| column.tells_pace() && ASKED.contains(&column.low))
}

/// Who moved first before the job slowed; `block` was just closed.
pub(super) fn mover(nodes: &[Node], columns: &[Column], block: i64, past: &Excursions) -> Option<First> {
    let end = (block + 1) * BLOCK as i64;
    let window = (end - (HISTORY * BLOCK) as i64, end);
    let slowed = block + 1 - i64::from(columns.iter().filter(|column| column.tells_pace()).map(|c| c.low).max()?);
    let suspects = suspects(columns, block, slowed);
    if suspects.is_empty() || suspects.len() > (nodes.len() / SHARE).max(1) {
        return None;
    }
    let (job, step) = job_step(columns, window, &suspects)?;
    let until = window.0 + step.low as i64;
    let others = clock_of_others(nodes, &suspects);
    let mut found: Vec<Candidate> = Vec::new();
    for &node in &suspects {
        let clock_s = nodes[node].clock_s.map_or(CLOCK, |own| own + others);
        let metrics =
            (0..columns.len()).filter_map(|metric| candidate((node, metric), columns, (window.0, until, end), clock_s));
        // Where a metric may be fed late, the earliest sure one tells most.
        found.extend(metrics.min_by_key(|one| one.change.high));
    }
    let first = *found.iter().min_by_key(|one| one.change.high)?;
    let sure_by = first.change.high as f64 + first.clock_s;
    let lead = (step.low as f64 - sure_by, (step.high - first.change.low.min(step.high)) as f64 + first.clock_s);
    let alone = found.iter().all(|one| one.node == first.node || one.change.low as f64 - one.clock_s > sure_by);
    let by_chance = nodes.len() as f64 * past.share_of_time(first.evidence);
    (lead.0 > 0.0 && alone && by_chance <= CHANCE).then(|| First {
        node: first.node,
        metric: first.metric,
        since_s: (window.0 + first.change.at as i64) as f64,
        ratio: first.change.ratio(),
        job,
        job_ratio: step.ratio(),
        lead,
    })
}

/// Nodes that were clearly unlike their peers in a metric before the block `slowed`, until then or longer.
fn suspects(columns: &[Column], block: i64, slowed: i64) -> Vec<usize> {
    let nodes = columns.first().map_or(0, |column| column.cells.len());
    let was_odd = |node: &usize| {
        let cells = columns.iter().map(|column| &column.cells[*node]).filter(|cell| !cell.alike.is_alike());
        let mut times = cells.flat_map(|cell| &cell.fast).flat_map(|fast| fast.times(block));
        times.any(|past| past.begun < slowed - 1 && past.until >= slowed - 1 && past.peak_s >= EVIDENCE)
    };
    (0..nodes).filter(was_odd).collect()
}

/// The metric of the job whose step is the surest, and the step.
fn job_step(columns: &[Column], window: (i64, i64), without: &[usize]) -> Option<(usize, Change)> {
    let slow = columns.iter().enumerate().filter(|(_, column)| column.tells_pace() && column.low >= ASKED[0]);
    let steps = slow.filter_map(|(metric, column)| Some((metric, change(&column.medians(window, without))?)));
    let fell = |step: &Change| step.before > 0.0 && step.ratio() <= 1.0 - LOW;
    steps.filter(|(_, step)| fell(step)).min_by_key(|(_, step)| step.high - step.low)
}

/// How far the clocks of most other nodes may be off; 0 where nobody said, as time is then what most of them show.
fn clock_of_others(nodes: &[Node], without: &[usize]) -> f64 {
    let others = nodes.iter().enumerate().filter(|(node, _)| !without.contains(node));
    let mut errors: Vec<f64> = others.filter_map(|(_, node)| node.clock_s).collect();
    let middle = median(&mut errors);
    if middle.is_finite() { middle } else { 0.0 }
}

/// When a metric of a node left the peers before the job slowed, `until` which it must have been unlike them; and it must be so still,
/// which a healthy machine's excursion rarely is.
fn candidate(
    (node, metric): (usize, usize),
    columns: &[Column],
    times: (i64, i64, i64),
    clock_s: f64,
) -> Option<Candidate> {
    let (column, (from, until, end)) = (&columns[metric], times);
    if column.about.leads == 0.0 || column.cells[node].alike.is_alike() {
        return None;
    }
    let quantum = column.about.quantum;
    let last = until.div_euclid(BLOCK as i64);
    let was = |side: Side| {
        let before = |past: &Past| past.begun < last && past.until >= last - 1 && past.peak_s >= EVIDENCE;
        column.cells[node].fast[side as usize].times(last).find(before).map(|past| (past.peak_s, side))
    };
    let (peak, side) = Side::BOTH.into_iter().filter_map(was).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let peers = column.medians((from, end), &[node]);
    let own = (from..end).map(|second| column.cells[node].seconds.at(second) + quantum);
    let beside: Vec<f64> = own.zip(peers).map(|(own, peers)| own / (peers + quantum)).collect();
    let (before, mut since) = (&beside[..(until - from) as usize], beside[(until - from) as usize..].to_vec());
    let change = change(before)?;
    let moved = side.sign() * (change.ratio() - 1.0);
    let stays = (median(&mut since) - change.before) / (change.after - change.before) >= STAYS;
    let evidence = peak.min((end - from) as f64 - change.high as f64);
    (moved >= WORTH && stays).then_some(Candidate { node, metric, evidence, change, clock_s })
}

#[cfg(test)]
mod tests {
    use muster_wire::telemetry;

    use super::super::column::Work;
    use super::*;

    /// The block that was just closed; seconds of the window in which one machine left its peers, and in which the job slowed.
    const LAST: i64 = HISTORY as i64 - 1;
    const LEFT: usize = 160;
    const SLOWED: usize = 200;

    fn dragged(nodes: usize) -> (Vec<Node>, [Column; 2]) {
        dragged_by_who_left(LEFT, nodes)
    }

    /// Nodes of which n2 uses twice the CPU of the others from second `left` on, and all of which take 30 % less power from `SLOWED` on.
    fn dragged_by_who_left(left: usize, nodes: usize) -> (Vec<Node>, [Column; 2]) {
        let column = |name: &str| Column::new(name.to_owned(), *telemetry(name).unwrap(), nodes, 0);
        let mut columns = ["cpu_util_pct", "gpu_power_w"].map(column);
        for second in 0..HISTORY * BLOCK {
            let (block, within) = ((second / BLOCK) as i64, second % BLOCK);
            for node in 0..nodes {
                let cpu = if node == 2 && second >= left { 80.0 } else { 40.0 };
                let power = if second >= SLOWED { 350.0 } else { 500.0 };
                columns[0].cells[node].seconds.put(block, within, cpu);
                columns[1].cells[node].seconds.put(block, within, power);
            }
        }
        for block in 0..=LAST {
            let z = if block >= (left / BLOCK) as i64 { 9.0 } else { 0.0 };
            columns[0].cells[2].fast[Side::Above as usize].add(z, block, 130.0);
        }
        columns[1].low = ASKED[0];
        (vec![Node::default(); nodes], columns)
    }

    fn found(nodes: &[Node], columns: &[Column]) -> Option<First> {
        mover(nodes, columns, LAST, &Excursions::default())
    }

    #[test]
    fn who_left_its_peers_before_the_job_slowed_moved_first() {
        let (nodes, columns) = dragged(8);
        let first = found(&nodes, &columns).unwrap();
        assert_eq!((first.node, first.metric, first.job, first.since_s), (2, 0, 1, 160.0));
        // 2 % are no utilisation, so that 80 % beside 40 % are 82 of 42.
        assert!((first.ratio - 82.0 / 42.0).abs() < 1e-9 && (first.job_ratio - 0.7).abs() < 1e-9, "{first:?}");
        assert_eq!(first.lead, (25.0, 55.0), "40 s, of a clock that may be off by 15 s");
    }

    #[test]
    fn who_left_its_peers_in_the_block_before_the_job_slowed_moved_first_where_clocks_are_good() {
        let lead = |left: usize| {
            let (mut nodes, columns) = dragged_by_who_left(left, 6);
            nodes.iter_mut().for_each(|node| node.clock_s = Some(1.0));
            found(&nodes, &columns).map(|first| first.lead)
        };
        assert_eq!((lead(190), lead(200)), (Some((8.0, 12.0)), None));
    }

    #[test]
    fn nobody_moved_first_where_clocks_do_not_tell() {
        let (mut nodes, columns) = dragged(8);
        for (own, others, lead) in [
            (None, None, Some((25.0, 55.0))),
            (None, Some(1.0), Some((25.0, 55.0))),
            (Some(3.0), None, Some((37.0, 43.0))),
            (Some(3.0), Some(30.0), Some((7.0, 73.0))),
            (Some(3.0), Some(37.0), None),
            (Some(40.0), None, None),
        ] {
            nodes.iter_mut().for_each(|node| node.clock_s = others);
            nodes[2].clock_s = own;
            assert_eq!(found(&nodes, &columns).map(|first| first.lead), lead, "{own:?} {others:?}");
        }
    }

    #[test]
    fn nobody_moved_first_where_several_did_or_it_is_as_its_peers_again_or_chance_explains_it() {
        let (nodes, mut columns) = dragged(8);
        columns[0].cells[5].fast = columns[0].cells[2].fast;
        assert_eq!(found(&nodes, &columns), None, "two of eight");
        let (nodes, mut columns) = dragged(8);
        for second in SLOWED..HISTORY * BLOCK {
            columns[0].cells[2].seconds.put((second / BLOCK) as i64, second % BLOCK, 40.0);
        }
        assert_eq!(found(&nodes, &columns), None, "it was an excursion");
        // Of 80 s of evidence a healthy node has any in 1 of 6,400 blocks.
        let of_many = |many: usize| {
            let (nodes, columns) = dragged(many);
            found(&nodes, &columns).is_some()
        };
        assert!(of_many(56) && !of_many(72));
    }

    #[test]
    fn it_is_asked_after_forty_seconds_of_a_slow_job_and_twice_again() {
        let (_, mut columns) = dragged(4);
        let asked = (0..15).filter(|low| {
            (columns[0].low, columns[1].low) = (4, *low);
            is_time(&columns)
        });
        assert_eq!(asked.collect::<Vec<u32>>(), ASKED, "how much the CPU is used says nothing of the job");
    }

    #[test]
    fn a_job_is_slow_at_eight_per_cent_below_its_usual_level_once_that_is_known() {
        let slow = |known: usize, level: f64| {
            let [_, mut column] = dragged(4).1;
            (column.level, column.low) = (500.0, 0);
            (0..known).for_each(|_| column.keep_level(&mut Work::default()));
            column.level = level;
            (0..3).for_each(|_| column.keep_pace(&mut Vec::new()));
            column.low
        };
        assert_eq!((slow(KNOWN, 459.0), slow(KNOWN, 461.0), slow(KNOWN - 1, 100.0)), (3, 0, 0));
    }

    /// A metric in whose node 2 there was so much evidence from one block on, until another.
    fn was_odd(begun: i64, until: i64, z: f64) -> [Column; 1] {
        let mut column = Column::new("cpu_util_pct".into(), *telemetry("cpu_util_pct").unwrap(), 4, 0);
        let fast = &mut column.cells[2].fast[0];
        (0..=begun).for_each(|block| fast.hold(block));
        (begun + 1..=until).for_each(|block| fast.add(z, block, 130.0));
        (until + 1..=LAST).for_each(|block| fast.add(-99.0, block, 0.0));
        [column]
    }

    #[test]
    fn who_was_clearly_unlike_its_peers_before_the_job_slowed_and_until_then_is_a_suspect() {
        let suspected = |begun, until, z| suspects(&was_odd(begun, until, z), LAST, 20) == [2];
        assert!(suspected(10, 19, 9.0));
        // The block before the one in which the job slowed is the last in which it must have been.
        assert!(suspected(18, 23, 9.0) && !suspected(19, 23, 9.0), "it began with the job");
        assert!(!suspected(10, 18, 9.0) && !suspected(10, 12, 9.0), "it was over");
        // 4.5 deviations are five seconds a block.
        assert!(suspected(15, 19, 4.5) && !suspected(16, 19, 4.5), "20 s of evidence");
        let mut alike = was_odd(10, 19, 9.0);
        for cell in &mut alike[0].cells {
            let now = &mut cell.now;
            (now.value, now.peers, now.gain, now.sigma, now.ratio, now.ready) = (40.0, 40.0, 0.5, 0.02, 1.0, true);
            cell.fast[1].add(9.0, LAST, 130.0);
        }
        (0..3).for_each(|_| alike[0].find_alike(&mut Work::default()));
        assert_eq!(suspects(&alike, LAST, 20), Vec::<usize>::new(), "it came to where its peers are");
    }

    #[test]
    fn what_follows_from_others_what_is_small_and_what_moved_the_other_way_is_no_first_move() {
        let (nodes, columns) = dragged(8);
        assert!(found(&nodes, &columns).is_some());
        let with = |change: &dyn Fn(&mut [Column; 2])| {
            let (nodes, mut columns) = dragged(8);
            change(&mut columns);
            found(&nodes, &columns).is_some()
        };
        assert!(!with(&|columns| columns[0].about.leads = 0.0));
        let shows = |columns: &mut [Column; 2], cpu: f64| {
            for second in LEFT..HISTORY * BLOCK {
                columns[0].cells[2].seconds.put((second / BLOCK) as i64, second % BLOCK, cpu);
            }
        };
        // 2 % are no utilisation: 43.4 beside 40 are 45.4 of 42.
        assert!(
            with(&|columns| shows(columns, 43.4)) && !with(&|columns| shows(columns, 43.3)),
            "less than 8 % are not worth it"
        );
        assert!(!with(&|columns| shows(columns, 20.0)), "its evidence is that it is above");
        let below = |columns: &mut [Column; 2]| {
            shows(columns, 20.0);
            columns[0].cells[2].fast.swap(0, 1);
        };
        assert!(with(&below));
    }

    #[test]
    fn the_job_slowed_where_it_fell_by_eight_per_cent_in_a_metric_that_tells_its_pace() {
        let with = |power: f64, metric: &'static str, low: u32| {
            let (nodes, mut columns) = dragged(8);
            columns[1].about = *telemetry(metric).unwrap();
            columns[1].low = low;
            for (second, node) in (SLOWED..HISTORY * BLOCK).flat_map(|second| (0..8).map(move |node| (second, node))) {
                columns[1].cells[node].seconds.put((second / BLOCK) as i64, second % BLOCK, power);
            }
            found(&nodes, &columns).map(|first| (first.job_ratio * 1e3).round() / 1e3)
        };
        assert_eq!((with(460.0, "gpu_power_w", 4), with(461.0, "gpu_power_w", 4)), (Some(0.92), None));
        assert_eq!(with(600.0, "gpu_power_w", 4), None, "it became faster");
        assert_eq!((with(350.0, "mem_used_pct", 4), with(350.0, "gpu_power_w", 3)), (None, None));
    }

    #[test]
    fn half_of_its_change_must_be_left_after_the_job_slowed() {
        let then = |cpu: f64| {
            let (nodes, mut columns) = dragged(8);
            for second in SLOWED..HISTORY * BLOCK {
                columns[0].cells[2].seconds.put((second / BLOCK) as i64, second % BLOCK, cpu);
            }
            found(&nodes, &columns).is_some()
        };
        assert!(then(60.5) && !then(59.5), "from 40 to 80, and half of the way back");
    }

    #[test]
    fn of_clocks_the_median_of_those_that_are_known_counts() {
        let nodes = |clocks: &[Option<f64>]| -> Vec<Node> {
            clocks.iter().map(|clock_s| Node { clock_s: *clock_s, ..Node::default() }).collect()
        };
        assert_eq!(clock_of_others(&nodes(&[Some(1.0), Some(9.0), None, Some(4.0)]), &[]), 4.0);
        assert_eq!(clock_of_others(&nodes(&[Some(1.0), Some(9.0), None, Some(4.0)]), &[1]), 2.5);
        assert_eq!(clock_of_others(&nodes(&[None, Some(9.0)]), &[1]), 0.0);
    }
}
