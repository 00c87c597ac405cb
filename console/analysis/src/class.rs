//! What the metrics of one resource class say together about one node, and how slow a node they would have named.

use std::collections::BTreeMap;

use muster_wire::MetricId;

use crate::{Evidence, Grain, NodeVerdict, Offset, State, Status};

/// `ln 1.3`: cost over the peers' that counts as slow; node offsets on shared machines reach 15 %.
const SLOW: f64 = 0.262_364_264_467_491_06;
/// Spreads it must lie beyond as well, each metric taken alone.
const SLOW_SPREADS: f64 = 3.0;
/// `ln 1.7`, and twelve spreads: enough where a run holds too few metrics to confirm each other.
const EXTREME: f64 = 0.530_628_251_062_170_4;
/// See [`EXTREME`].
const EXTREME_SPREADS: f64 = 12.0;
/// Share of a class's metrics that must agree.
const SHARE: f64 = 0.5;
/// Metrics that must agree at least.
pub(crate) const WITNESSES: usize = 3;
/// Where alpha decides nothing, the mildest slowdown (ratio of cost) that may go unseen: a node half as fast is named on any
/// machine, or nothing is said there.
const COARSEST: f64 = 2.0;
/// Chance left that an innocent node of a run is convicted by agreement.
const CHANCE: f64 = 5e-4;
/// Chance above which slow metrics are what a noisy run brings anyway.
const LIKELY: f64 = 0.05;

/// Class of what is measured on every core.
pub(crate) const CORES: &str = "core";

/// Resource class of a benchmark: the first word of its name, such as `cpu` or `disk`. Benchmarks with a metric per core
/// are a class of their own: hundreds of cores would outvote what all of them together say of `cpu`.
#[must_use]
pub fn resource_class(benchmark: &str) -> &str {
    if matches!(benchmark, "cpu-core" | "cpu-burn") {
        return CORES;
    }
    benchmark.split('-').next().unwrap_or(benchmark)
}

/// What a metric measures, whichever part of the node it was measured on: `speed` of `speed:core3`, `core_flops` of
/// `core_3_flops`.
pub(crate) fn kind(name: &str) -> String {
    let words: Vec<&str> = whole(name).split(['-', '_']).collect();
    let numbered = |at: usize| at > 0 && words[at - 1] == "core" && is_digits(words[at]);
    (0..words.len()).filter(|at| !numbered(*at)).map(|at| words[at]).collect::<Vec<_>>().join("_")
}

/// Whether it is a percentile from the 90th on, `rand-read-p99.9` or `rand_read_lat_ns_99`: a tail repeats nowhere, and
/// says nothing of how quiet the place was.
pub(crate) fn is_tail(name: &str) -> bool {
    let last = whole(name).rsplit_once(['-', '_']).map(|(_, last)| last.trim_start_matches('p'));
    let digits =
        |rest: &str| is_digits(rest) || rest.split_once('.').is_some_and(|(a, b)| is_digits(a) && is_digits(b));
    last.and_then(|last| last.strip_prefix('9')).is_some_and(digits)
}

/// Whether a metric is told and accuses nobody. Power and temperature of a GPU differ with card, slot and air, so that
/// limits of checks judge them; its clock says how fast it may be only where the work asks for all of it.
pub(crate) fn is_told(metric: &MetricId) -> bool {
    match whole(&metric.name) {
        "power" | "temperature" => true,
        "clock" => !matches!(metric.benchmark.as_str(), "gpu-burn" | "gemm-flops"),
        _ => false,
    }
}

fn whole(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Weighs the classes of one node against everyone else's metrics, in a run of `nodes`.
pub(crate) fn weigh<'a>(cells: &[Cell<'a>], run: Tally, nodes: usize) -> BTreeMap<&'a str, Class> {
    let mut classes: BTreeMap<&str, Vec<&Cell<'_>>> = BTreeMap::new();
    for cell in cells {
        classes.entry(resource_class(&cell.verdict.metric.benchmark)).or_default().push(cell);
    }
    let all = Tally::of(cells);
    let chance = Chance { others: run.without(all), questions: (nodes * classes.len()) as f64 };
    let judge = |cells: Vec<&Cell<'_>>| {
        let own = Tally::of(cells.iter().copied());
        // A run of one or two metrics has no witnesses to ask: then each must be extreme by itself.
        let few = all.of > 0 && all.of < WITNESSES && cells.iter().all(|c| c.evidence.is_none() || c.extreme());
        Class {
            slow: own.slow[0].max(own.slow[1]),
            of: own.of,
            convicted: few || (0..2).any(|view| chance.convicts(own.slow[view], own.of, view)),
            doubted: (0..2).all(|view| chance.of(own.slow[view], own.of, view) < LIKELY),
            resolution: (0..2).filter_map(|view| chance.resolution(&cells, view)).min_by(f64::total_cmp),
        }
    };
    classes.into_iter().map(|(name, cells)| (name, judge(cells))).collect()
}

/// One metric of one node.
pub(crate) struct Cell<'a> {
    pub(crate) verdict: &'a NodeVerdict,
    pub(crate) evidence: Option<Evidence>,
    pub(crate) status: Status,
    pub(crate) grain: Grain,
    pub(crate) peers: usize,
}

impl Cell<'_> {
    /// By its mean step, and by its median step.
    fn views(&self) -> Option<[Offset; 2]> {
        self.evidence.map(|e| [e.mean, e.median])
    }

    /// Slow by its mean step, and by its median step.
    pub(crate) fn slow(&self) -> [bool; 2] {
        self.views().map_or([false; 2], |v| v.map(|o| o.slowdown >= SLOW && o.spreads() >= SLOW_SPREADS))
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.slow().contains(&true)
    }

    fn extreme(&self) -> bool {
        self.evidence.is_some_and(|e| {
            e.median.slowdown >= EXTREME && e.median.spreads() >= EXTREME_SPREADS && e.mean.slowdown >= EXTREME
        })
    }

    /// Fails by its criterion, not because the benchmark broke.
    pub(crate) fn accused(&self) -> bool {
        self.verdict.state == State::Fail && self.verdict.similarity.is_some()
    }
}

/// What the metrics of one class say together about one node.
pub(crate) struct Class {
    /// Metrics it is slow in.
    pub(crate) slow: usize,
    /// Metrics measured.
    pub(crate) of: usize,
    /// Slow in more of them than chance explains, by far.
    pub(crate) convicted: bool,
    /// Slow in more of them than chance would have it, without enough of them to convict.
    pub(crate) doubted: bool,
    /// Cost, as a multiple of the peers', from which on a node slowed evenly would have been convicted; `None` where
    /// the class holds too few metrics.
    pub(crate) resolution: Option<f64>,
}

impl Class {
    /// Its resolution, where that is fine enough to vouch for a node.
    pub(crate) fn coarse(&self) -> Option<f64> {
        self.resolution.filter(|ratio| *ratio <= COARSEST)
    }
}

/// How often metrics are slow: by mean and by median step.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    slow: [usize; 2],
    of: usize,
}

impl Tally {
    pub(crate) fn of<'a>(cells: impl IntoIterator<Item = &'a Cell<'a>>) -> Self {
        let mut tally = Self::default();
        for cell in cells.into_iter().filter(|c| c.evidence.is_some()) {
            let slow = cell.slow();
            tally.of += 1;
            (0..2).filter(|&view| slow[view]).for_each(|view| tally.slow[view] += 1);
        }
        tally
    }

    fn without(self, part: Self) -> Self {
        Self { slow: [0, 1].map(|view| self.slow[view] - part.slow[view]), of: self.of - part.of }
    }
}

/// What chance does to an innocent node: the rate of everyone else, and how often the question is asked.
struct Chance {
    others: Tally,
    questions: f64,
}

impl Chance {
    /// Expected number of innocent nodes and classes of this run with so many slow metrics.
    fn of(&self, slow: usize, of: usize, view: usize) -> f64 {
        // One more slow metric than seen: a rate of zero would call anything significant.
        let rate = (self.others.slow[view] + 1) as f64 / (self.others.of + 2) as f64;
        binomial_tail(slow, of, rate) * self.questions
    }

    fn convicts(&self, slow: usize, of: usize, view: usize) -> bool {
        slow >= WITNESSES && slow as f64 >= SHARE * of as f64 && self.of(slow, of, view) <= CHANCE
    }

    /// The cost at which just enough metrics would be slow to convict, one spread of luck on the node's side.
    fn resolution(&self, cells: &[&Cell<'_>], view: usize) -> Option<f64> {
        let scales = cells.iter().filter_map(|c| c.views()).map(|views| views[view].scale);
        let mut limits: Vec<f64> = scales.map(|scale| SLOW.max(SLOW_SPREADS * scale) + scale).collect();
        limits.sort_unstable_by(f64::total_cmp);
        let needed = (1..=limits.len()).find(|&slow| self.convicts(slow, limits.len(), view))?;
        Some(limits[needed - 1].exp())
    }
}

/// Chance of at least `k` successes of `n` at `rate` each.
fn binomial_tail(k: usize, n: usize, rate: f64) -> f64 {
    let mut term = (1.0 - rate).powi(n as i32);
    let mut tail = 0.0;
    for i in 0..=n {
        if i >= k {
            tail += term;
        }
        term *= (n - i) as f64 / (i + 1) as f64 * rate / (1.0 - rate);
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sensors_are_told_and_only_the_clock_under_full_load_is_judged() {
        let told = |benchmark, name| is_told(&MetricId::new(benchmark, name, "own"));
        assert!(told("gpu-burn", "power:3") && told("gemm-flops", "temperature:0") && told("gpu-copy-bw", "clock:1"));
        assert!(!told("gpu-burn", "clock:3") && !told("gemm-flops", "clock:0") && !told("gpu-stream", "copy:0"));
    }

    #[test]
    fn parts_of_a_node_are_one_kind_and_tails_are_told() {
        for (name, same) in [("speed:core3", "speed"), ("core_12_flops", "core_flops"), ("fp32_flops:0", "fp32_flops")]
        {
            assert_eq!((kind(name).as_str(), is_tail(name)), (same, false), "{name}");
        }
        for tail in
            ["rand-read-p99", "rand-read-p99.9", "rand-read-p999", "seq_read_lat_ns_99.9:1", "rand-write-latency-p95"]
        {
            assert!(is_tail(tail), "{tail}");
        }
        for whole in ["rand-read-p50", "triad", "allreduce_8192_busbw", "l1"] {
            assert!(!is_tail(whole), "{whole}");
        }
    }
}
