//! What does the detector know of every machine, now and over the last minutes?
//!
//! A [`Frame`] is what one closed block showed. It never changes and is shared, so that a screen draws old frames while new ones come,
//! and nobody waits for anybody.

use std::collections::VecDeque;
use std::sync::Arc;

use muster_wire::Telemetry;

use super::cell::{Cell, Side};
use super::detector::{Watch, starts};
use super::intake::{MetricIndex, NodeIndex};
use super::job::Phase;
use super::lack::Lack;
use super::name::Case;
use super::settings::{BLOCK, MIN};

/// Blocks of a quarter of an hour, which is what is kept live.
pub const QUARTER: usize = 15 * 60 / BLOCK;
/// Seconds of a block.
pub const BLOCK_S: f64 = BLOCK as f64;

/// What is known of one metric of one machine after a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Value of the block in the unit of recordings; NaN where it is missing.
    pub value: f32,
    /// Deviation in standard deviations, above zero where it is above its peers; NaN where it could not be compared.
    pub score: f32,
    /// Evidence in seconds of full deviation; below zero where it is that the machine is below its peers.
    pub evidence: f32,
}

/// Nothing is known.
const NOTHING: Look = Look { value: f32::NAN, score: f32::NAN, evidence: 0.0 };

/// Whether machines could be compared in a block, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// No telemetry.
    Nothing,
    /// Too few nodes or metrics report, or not at the same time.
    Undecided(Lack),
    /// What is usual is not known yet.
    Learning {
        /// Seconds until it is, if the job goes on.
        left_s: f64,
    },
    /// The job began anew or has just gone on after a standstill: its first seconds compare nobody.
    Begins,
    /// Nothing moves.
    Still {
        /// For how long, seconds.
        for_s: f64,
    },
    /// Machines were compared.
    Compares {
        /// In so many metrics; 0 where every level was too far from the usual one.
        metrics: usize,
    },
}

/// The others of a machine in one metric and block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peers {
    /// How many have a value.
    pub count: usize,
    /// Lower quartile.
    pub low: f32,
    /// Median.
    pub median: f32,
    /// Upper quartile.
    pub high: f32,
}

/// What one block showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Counts the frames of a watch without gaps; a gap in time is one frame without values.
    pub seq: u64,
    /// When the block began, epoch seconds.
    pub at_s: f64,
    /// Whether machines were compared.
    pub standing: Standing,
    nodes: usize,
    /// Metric by metric.
    looks: Box<[Look]>,
    /// By node.
    evidence: Box<[f32]>,
    /// Evidence that names a machine, seconds.
    pub needed_s: f32,
}

impl Frame {
    /// When the block ended, epoch seconds.
    #[must_use]
    pub fn end_s(&self) -> f64 {
        self.at_s + BLOCK_S
    }

    /// One metric of one node, by their places; nothing is known of places that did not exist yet.
    #[must_use]
    pub fn look(&self, node: usize, metric: usize) -> Look {
        if node >= self.nodes {
            return NOTHING;
        }
        self.looks.get(metric * self.nodes + node).copied().unwrap_or(NOTHING)
    }

    /// Evidence against a node from all metrics together, seconds; [`Frame::needed_s`] of it name the node.
    #[must_use]
    pub fn evidence(&self, node: usize) -> f32 {
        self.evidence.get(node).copied().unwrap_or_default()
    }

    /// What the others of `node` show in `metric`; `None` where no other has a value.
    #[must_use]
    pub fn peers(&self, node: usize, metric: usize) -> Option<Peers> {
        let row = self.looks.get(metric * self.nodes..(metric + 1) * self.nodes)?;
        let others = row.iter().enumerate().filter(|(at, look)| *at != node && look.value.is_finite());
        let mut values: Vec<f32> = others.map(|(_, look)| look.value).collect();
        let last = values.len().checked_sub(1)?;
        let mut nth = |at: usize| *values.select_nth_unstable_by(at, f32::total_cmp).1;
        // With few peers the band is as wide as they are apart.
        let (low, high) = (nth(last / 4), nth((3 * last).div_ceil(4)));
        let median = f32::midpoint(nth(last / 2), nth(last.div_ceil(2)));
        Some(Peers { count: last + 1, low, median, high })
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.looks) + size_of_val(&*self.evidence)
    }
}

/// The last frames.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    frames: VecDeque<Arc<Frame>>,
    most: usize,
    next: u64,
    last_block: Option<i64>,
}

impl History {
    fn push(&mut self, frame: Frame, block: i64) {
        if self.last_block.is_some_and(|last| block != last + 1) {
            let gap = Frame {
                seq: self.next,
                at_s: starts(self.last_block.unwrap_or_default() + 1),
                standing: Standing::Nothing,
                looks: Box::default(),
                evidence: Box::default(),
                nodes: 0,
                ..frame
            };
            self.add(gap);
        }
        self.last_block = Some(block);
        let seq = self.next;
        self.add(Frame { seq, ..frame });
    }

    fn add(&mut self, frame: Frame) {
        if self.frames.len() >= self.most {
            self.frames.pop_front();
        }
        self.frames.push_back(Arc::new(frame));
        self.next += 1;
    }
}

impl Watch {
    /// Keeps what the last `blocks` blocks showed from now on; none are kept otherwise. A block takes 12 bytes a cell and 4 a node:
    /// 1,500 nodes with 20 metrics for [`QUARTER`] take 33 MB.
    pub fn keep(&mut self, blocks: usize) {
        self.history.most = blocks;
    }

    /// What is kept, the oldest first.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &Arc<Frame>> {
        self.history.frames.iter()
    }

    /// Frames ever made; it grows when [`Watch::frames`] has a new one.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.history.next
    }

    /// Names of the nodes, by their places in frames.
    pub fn node_names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    /// Names of the metrics and what the catalogue knows of each, by their places in frames.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, &Telemetry)> {
        self.columns.iter().map(|column| (column.name.as_str(), &column.about))
    }

    /// Keeps what `block` showed.
    pub(super) fn look(&mut self, block: i64, phase: Phase) {
        if self.history.most == 0 {
            return;
        }
        let nodes = self.nodes.len();
        let looks = self.columns.iter().flat_map(|column| column.cells.iter().map(look)).collect();
        let disturbed = self.any_open();
        let case = |node| Case::of(node, &self.columns, block, disturbed, self.evidence_s).evidence as f32;
        let frame = Frame {
            seq: 0,
            at_s: starts(block),
            standing: self.standing(phase),
            nodes,
            looks,
            evidence: (0..nodes).map(case).collect(),
            needed_s: self.evidence_s as f32,
        };
        self.history.push(frame, block);
    }

    fn standing(&self, phase: Phase) -> Standing {
        match phase {
            Phase::Began | Phase::Skipped | Phase::Resumed => return Standing::Begins,
            Phase::Still => return Standing::Still { for_s: f64::from(self.job.still) * BLOCK_S },
            Phase::Runs => {}
        }
        match self.lack() {
            Some(Lack::Short(_)) | None => {}
            Some(lack) => return Standing::Undecided(lack),
        }
        let learned = self.columns.iter().flat_map(|column| &column.cells).map(|cell| cell.usual.count()).max();
        match MIN.saturating_sub(learned.unwrap_or_default()) {
            // The block that completes what is usual is not compared yet.
            0 => {
                let compares = |cell: &Cell| cell.now.ready;
                let metrics = self.columns.iter().filter(|column| column.cells.iter().any(compares)).count();
                Standing::Compares { metrics }
            }
            left => Standing::Learning { left_s: left as f64 * BLOCK_S },
        }
    }
}

impl NodeIndex {
    /// Its place in frames.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0
    }
}

impl MetricIndex {
    /// Its place in frames.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0
    }
}

fn look(cell: &Cell) -> Look {
    let (evidence, side): (f64, Side) = cell.evidence();
    let score = if cell.now.ready { cell.now.z as f32 } else { f32::NAN };
    Look { value: cell.now.value as f32, score, evidence: (evidence * side.sign()) as f32 }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Settings;
    use super::*;

    /// Six nodes for 900 s, of which n3 is at 60 % from 400 s on.
    fn watched(blocks: usize) -> Watch {
        let mut watch = Watch::new(Settings::default());
        watch.keep(blocks);
        let nodes: Vec<_> = (0..6).filter_map(|n| watch.node(&format!("n{n}"))).collect();
        let metrics: Vec<_> = ["gpu_power_w", "cpu_util_pct"].iter().filter_map(|name| watch.metric(name)).collect();
        for second in 0..900 {
            for (at, &node) in nodes.iter().enumerate() {
                let hurt = if at == 3 && second > 400 { 0.6 } else { 1.0 };
                let noise = f64::from((second * 7 + at as u32 * 3) % 11) / 10.0;
                watch.push(f64::from(second), node, metrics[0], (500.0 + noise) * hurt);
                watch.push(f64::from(second), node, metrics[1], 40.0 + noise);
            }
        }
        watch.finish();
        watch
    }

    #[test]
    fn a_screen_sees_evidence_grow_until_the_machine_is_named() {
        let watch = watched(QUARTER);
        let frames: Vec<_> = watch.frames().collect();
        assert_eq!((frames.len(), frames[89].seq, watch.seen()), (90, 89, 90));
        let told = watch.alerts()[0].alerted_s;
        let evidence: Vec<f32> = frames.iter().map(|frame| frame.evidence(3)).collect();
        let before = frames.iter().rposition(|frame| frame.end_s() < told - 10.0).unwrap();
        assert!(evidence[..40].iter().all(|seconds| *seconds < 1.0), "{evidence:?}");
        assert!(evidence[before] > 60.0 && evidence[before] < 130.0, "{evidence:?}");
        assert!(evidence[before + 2] >= frames[0].needed_s, "{evidence:?}");
        let look = frames[60].look(3, 0);
        assert!(look.score < -6.0 && look.evidence < 0.0 && (290.0..310.0).contains(&look.value), "{look:?}");
        assert!(frames[60].look(2, 0).score.abs() < 3.0);
    }

    #[test]
    fn the_band_is_of_the_others_alone() {
        let watch = watched(QUARTER);
        let frame = watch.frames().nth(60).unwrap();
        let of_odd = frame.peers(3, 0).unwrap();
        assert_eq!(of_odd.count, 5);
        assert!(of_odd.low > 499.0 && of_odd.low <= of_odd.median && of_odd.median <= of_odd.high, "{of_odd:?}");
        let of_other = frame.peers(2, 0).unwrap();
        assert!(of_other.low > 499.0, "one odd peer of five is outside the quartiles: {of_other:?}");
        assert_eq!(frame.peers(0, 9), None);
        assert!(frame.look(9, 0).value.is_nan() && frame.look(0, 9).value.is_nan());
    }

    #[test]
    fn learning_counts_down_and_then_machines_are_compared() {
        let watch = watched(QUARTER);
        let standing: Vec<Standing> = watch.frames().map(|frame| frame.standing).collect();
        assert_eq!(standing[0], Standing::Learning { left_s: 140.0 });
        assert_eq!(standing[4], Standing::Learning { left_s: 100.0 });
        assert_eq!(standing[20], Standing::Compares { metrics: 2 });
        let mut few = Watch::new(Settings::default());
        few.keep(4);
        let (node, metric) = (few.node("n").unwrap(), few.metric("gpu_power_w").unwrap());
        (0..60).for_each(|second| few.push(f64::from(second), node, metric, 1.0));
        assert_eq!(few.frames().last().unwrap().standing, Standing::Undecided(Lack::Nodes(1)));
    }

    #[test]
    fn the_oldest_frame_gives_way_and_a_gap_of_hours_is_one_frame() {
        let watch = watched(30);
        let frames: Vec<u64> = watch.frames().map(|frame| frame.seq).collect();
        assert_eq!((frames.len(), frames[0], frames[29]), (30, 60, 89));
        let mut gap = watched(QUARTER);
        let (node, metric) = (gap.node("n0").unwrap(), gap.metric("gpu_power_w").unwrap());
        (0..90).for_each(|second| gap.push(90_000.0 + f64::from(second), node, metric, 1.0));
        let frames: Vec<_> = gap.frames().collect();
        let empty = frames.iter().position(|frame| frame.standing == Standing::Nothing).unwrap();
        assert!(frames[empty].look(0, 0).value.is_nan() && frames[empty + 1].at_s > 80_000.0);
        assert!(frames.windows(2).all(|two| two[1].seq == two[0].seq + 1));
        assert_eq!(watched(0).frames().len(), 0);
    }

    #[test]
    fn a_quarter_of_an_hour_of_a_large_job_stays_small() {
        let (nodes, metrics) = (1_500, 20);
        let frame = Frame {
            seq: 0,
            at_s: 0.0,
            standing: Standing::Nothing,
            nodes,
            looks: vec![NOTHING; nodes * metrics].into(),
            evidence: vec![0.0; nodes].into(),
            needed_s: 130.0,
        };
        assert!(frame.bytes() * QUARTER < 34_000_000, "{}", frame.bytes());
    }

    /// A frame of one metric with these values.
    fn framed(values: &[f32]) -> Frame {
        let looks = values.iter().map(|value| Look { value: *value, ..NOTHING }).collect();
        Frame {
            seq: 0,
            at_s: 0.0,
            standing: Standing::Nothing,
            nodes: values.len(),
            looks,
            evidence: vec![0.0; values.len()].into(),
            needed_s: 130.0,
        }
    }

    #[test]
    fn the_band_holds_the_middle_half_of_the_others() {
        let others: [&[f32]; 6] = [
            &[5.0],
            &[1.0, 2.0],
            &[1.0, 2.0, 3.0],
            &[1.0, 2.0, 3.0, 4.0, 5.0],
            &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0],
            &[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0],
        ];
        let bands = [
            (5.0, 5.0, 5.0),
            (1.0, 1.5, 2.0),
            (1.0, 2.0, 3.0),
            (2.0, 3.0, 4.0),
            (20.0, 45.0, 70.0),
            (30.0, 50.0, 70.0),
        ];
        for (others, (low, median, high)) in others.into_iter().zip(bands) {
            // The node itself, and one that shows nothing, are none of them.
            let values = [&[99.0, f32::NAN][..], others].concat();
            assert_eq!(
                framed(&values).peers(0, 0),
                Some(Peers { count: others.len(), low, median, high }),
                "{others:?}"
            );
        }
        assert_eq!((framed(&[1.0]).peers(0, 0), framed(&[1.0, 2.0]).peers(0, 1)), (None, None));
    }

    #[test]
    fn a_frame_takes_twelve_bytes_a_cell_and_four_a_node() {
        let of = |nodes: usize| framed(&vec![1.0; nodes]).bytes();
        assert_eq!(of(100) - of(0), 100 * (12 + 4));
        assert!(of(0) > 0 && (framed(&[1.0]).end_s() - 10.0).abs() < 1e-12);
    }

    /// A job of six nodes that runs, stands still from 300 s to 350 s, runs on, and begins anew at 600 s.
    fn stands_still() -> Watch {
        let mut watch = Watch::new(Settings::default());
        watch.keep(QUARTER);
        let nodes: Vec<_> = (0..6).filter_map(|n| watch.node(&format!("n{n}"))).collect();
        let metrics: Vec<_> = ["tensor_active", "gpu_power_w"].iter().filter_map(|name| watch.metric(name)).collect();
        for second in 0..700_u32 {
            let level = if (300..350).contains(&second) { 0.01 } else { 1.0 } * if second >= 600 { 4.0 } else { 1.0 };
            for (at, &node) in nodes.iter().enumerate() {
                let noise = f64::from((second * 7 + at as u32 * 3) % 11) / 1e3;
                watch.push(f64::from(second), node, metrics[0], 0.2 * level * (1.0 + noise));
                watch.push(f64::from(second), node, metrics[1], 500.0 * level * (1.0 + noise));
            }
        }
        watch.finish();
        watch
    }

    #[test]
    fn a_standstill_is_told_with_how_long_it_lasts_and_the_blocks_after_it_compare_nobody() {
        let watch = stands_still();
        let standing: Vec<Standing> = watch.frames().map(|frame| frame.standing).collect();
        let still: Vec<Standing> = [10.0, 20.0, 30.0, 40.0, 50.0].map(|for_s| Standing::Still { for_s }).to_vec();
        assert_eq!(standing[29], Standing::Compares { metrics: 2 });
        assert_eq!(standing[30..35], still);
        assert_eq!(standing[35..38], [Standing::Begins, Standing::Begins, Standing::Compares { metrics: 2 }]);
        assert_eq!(standing[60..65], [Standing::Begins; 5], "another job");
        assert_eq!(standing[65], Standing::Learning { left_s: 140.0 });
    }

    #[test]
    fn names_and_places_are_those_in_which_nodes_and_metrics_came() {
        let mut watch = Watch::new(Settings::default());
        let nodes: Vec<usize> = ["b", "a", "b"].iter().map(|name| watch.node(name).unwrap().place()).collect();
        let metrics: Vec<usize> =
            ["y", "gpu_power_w", "y"].iter().map(|name| watch.metric(name).unwrap().place()).collect();
        assert_eq!((nodes, metrics), (vec![0, 1, 0], vec![0, 1, 0]));
        assert_eq!(watch.node_names().collect::<Vec<_>>(), ["b", "a"]);
        let titles: Vec<_> = watch.metrics().map(|(name, about)| (name, about.title)).collect();
        assert_eq!(titles, [("y", ""), ("gpu_power_w", "GPU power")]);
        assert_eq!((watch.seen(), QUARTER), (0, 90));
    }

    #[test]
    fn peers_are_those_of_the_metric_that_is_asked_for() {
        let mut frame = framed(&[1.0, 2.0, 10.0, 20.0, 100.0, 200.0]);
        frame.nodes = 2;
        let of_first = |metric: usize| frame.peers(0, metric).map(|peers| (peers.count, peers.median));
        assert_eq!([0, 1, 2, 3].map(of_first), [Some((1, 2.0)), Some((1, 20.0)), Some((1, 200.0)), None]);
        let seen = [(0, 0), (1, 0), (0, 1), (1, 2)].map(|(node, metric)| frame.look(node, metric).value);
        assert_eq!(seen, [1.0, 2.0, 10.0, 200.0]);
    }
}
