//! Who has been unlike its own past since the start: a fault from before the watch, which within one job looks like another model.
//!
//! What a node usually shows beside its peers is its gain. A machine whose gain differs from that of its earlier recordings, while
//! everybody else's is what it was, has changed in between. Where many changed, roles or software did, and nobody is told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::detector::Watch;
use super::order::{NORMAL, median};
use super::settings::DIRECT;

/// Name and version of the kept form.
const SCHEMA: &str = "muster.watch.gains";
const VERSION: u32 = 1;
/// Earlier recordings of a node that are needed: of one alone nobody knows how much it varies.
const RECORDINGS: usize = 2;
/// Nodes with a past, below which nobody is told.
const NODES: usize = 4;
/// Smallest change, as a logarithm; in standard deviations of all nodes' changes; and times what the node's own past varied.
const APART: f64 = 0.15;
const DEVIATIONS: f64 = 6.0;
const VARIED: f64 = 2.0;
/// Metrics in which a node must have changed; share of the nodes that may have.
const METRICS: usize = 2;
const SHARE: usize = 8;
/// A ratio of zero has no logarithm.
const LEAST: f64 = 1e-6;

/// What every node usually showed beside its peers in one recording: by node, by metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gains {
    schema: String,
    version: u32,
    /// First and last time of the recording, epoch seconds.
    pub span_s: (f64, f64),
    /// Ratio to the peers.
    pub gains: BTreeMap<String, BTreeMap<String, f64>>,
}

/// A node unlike its own past.
#[derive(Clone, Debug, PartialEq)]
pub struct Unlike {
    /// The node.
    pub node: String,
    /// Earlier recordings that it was compared with.
    pub recordings: usize,
    /// Metric, its ratio to the peers now, and what that was before.
    pub metrics: Vec<(String, f64, f64)>,
}

impl Gains {
    /// Whether this program knows that form.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.schema == SCHEMA && self.version == VERSION
    }

    fn of(&self, node: &str, metric: &str) -> Option<f64> {
        let gain = self.gains.get(node)?.get(metric)?;
        (gain.is_finite() && *gain >= 0.0).then(|| gain.max(LEAST).ln())
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.span_s.0 <= other.span_s.1 && other.span_s.0 <= self.span_s.1
    }
}

impl Watch {
    /// What every node usually shows beside its peers, where enough was learned; `None` where it was not of anybody.
    #[must_use]
    pub fn gains(&self) -> Option<Gains> {
        let mut gains = BTreeMap::<String, BTreeMap<String, f64>>::new();
        for column in &self.columns {
            for (node, cell) in self.nodes.iter().zip(&column.cells) {
                let gain = median(&mut cell.usual.kept().to_vec());
                if cell.usual.count() >= DIRECT && gain.is_finite() {
                    gains.entry(node.name.clone()).or_default().insert(column.name.clone(), gain);
                }
            }
        }
        let span_s = self.span().filter(|_| !gains.is_empty())?;
        Some(Gains { schema: SCHEMA.to_owned(), version: VERSION, span_s, gains })
    }
}

/// Nodes that have been unlike their own past since the start, by earlier recordings of the same fleet. Those that overlap with `now`
/// are left out: they are the same recording.
#[must_use]
pub fn unlike_before(now: &Gains, before: &[Gains]) -> Vec<Unlike> {
    let before: Vec<&Gains> = before.iter().filter(|one| one.is_known() && !one.overlaps(now)).collect();
    let metrics: std::collections::BTreeSet<&String> = now.gains.values().flat_map(BTreeMap::keys).collect();
    let mut found = BTreeMap::<&String, Unlike>::new();
    for metric in metrics {
        for changed in changed(now, &before, metric) {
            let unlike = found.entry(changed.node).or_insert_with(|| Unlike {
                node: changed.node.clone(),
                recordings: changed.recordings,
                metrics: Vec::new(),
            });
            unlike.metrics.push((metric.clone(), changed.now.exp(), changed.was.exp()));
        }
    }
    found.into_values().filter(|unlike| unlike.metrics.len() >= METRICS).collect()
}

/// A node in one metric: logarithms of its gain now and before, and how much the earlier ones differ.
struct Changed<'a> {
    node: &'a String,
    recordings: usize,
    now: f64,
    was: f64,
    varied: f64,
}

/// The few nodes whose gain in `metric` is not what it was.
fn changed<'a>(now: &'a Gains, before: &[&Gains], metric: &str) -> Vec<Changed<'a>> {
    let of = |node: &'a String| {
        let mut past: Vec<f64> = before.iter().filter_map(|one| one.of(node, metric)).collect();
        let (recordings, was) = (past.len(), median(&mut past));
        let ends = past.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), one| (a.min(*one), b.max(*one)));
        let now = now.of(node, metric).filter(|_| recordings >= RECORDINGS)?;
        Some(Changed { node, recordings, now, was, varied: ends.1 - ends.0 })
    };
    let mut all: Vec<Changed<'a>> = now.gains.keys().filter_map(of).collect();
    if all.len() < NODES {
        return Vec::new();
    }
    let nodes = all.len();
    let middle = median(&mut all.iter().map(|one| one.now - one.was).collect::<Vec<_>>());
    let apart = |one: &Changed<'_>| (one.now - one.was - middle).abs();
    let spread = NORMAL * median(&mut all.iter().map(apart).collect::<Vec<_>>());
    all.retain(|one| apart(one) > APART.max(DEVIATIONS * spread).max(VARIED * one.varied));
    if all.len() > (nodes / SHARE).max(1) { Vec::new() } else { all }
}

impl Unlike {
    /// The note for people.
    #[must_use]
    pub fn note(&self) -> String {
        let metric = |(name, now, was): &(String, f64, f64)| format!("{name} {now:.2}x its peers, before {was:.2}x");
        let metrics: Vec<String> = self.metrics.iter().map(metric).collect();
        format!(
            "{} has been unlike its own past since the start: {} (median of {} earlier recordings), while the other nodes are as \
             they were. Its role or its hardware changed, or it is faulty: {}",
            self.node,
            metrics.join("; "),
            self.recordings,
            super::sentence::measure(&self.node)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_analysis::Chance;

    /// Gains of `nodes` in three metrics; `hurt` says what a node's are multiplied by.
    fn gains(nodes: usize, day: f64, chance: &mut Chance, hurt: &dyn Fn(usize) -> f64) -> Gains {
        let mut all = BTreeMap::<String, BTreeMap<String, f64>>::new();
        for node in 0..nodes {
            // Node 0 has always been another model.
            let model = if node == 0 { 0.7 } else { 1.0 };
            for metric in ["gpu_power_w", "tensor_active", "net_tx_gbs"] {
                let own = if metric == "net_tx_gbs" { 1.0 } else { hurt(node) };
                let gain = model * own * (1.0 + 0.01 * chance.normal());
                all.entry(format!("n{node}")).or_default().insert(metric.to_owned(), gain);
            }
        }
        let span_s = (86_400.0 * day, 86_400.0 * day + 1_800.0);
        Gains { schema: SCHEMA.to_owned(), version: VERSION, span_s, gains: all }
    }

    fn told(hurt: &dyn Fn(usize) -> f64, recordings: u32) -> Vec<String> {
        let mut chance = Chance::new(9);
        let before: Vec<Gains> = (0..recordings).map(|day| gains(8, f64::from(day), &mut chance, &|_| 1.0)).collect();
        let now = gains(8, 30.0, &mut chance, hurt);
        unlike_before(&now, &before).into_iter().map(|unlike| unlike.node).collect()
    }

    #[test]
    fn a_node_unlike_its_own_past_is_told_and_another_model_is_not() {
        assert_eq!(told(&|node| if node == 3 { 0.75 } else { 1.0 }, 3), ["n3"]);
        assert!(told(&|_| 1.0, 3).is_empty());
        assert!(told(&|node| if node == 3 { 0.95 } else { 1.0 }, 3).is_empty(), "5 % are no change worth telling");
    }

    #[test]
    fn what_is_no_ratio_in_a_kept_recording_is_left_out() {
        let mut kept = gains(1, 0.0, &mut Chance::new(1), &|_| 1.0);
        let mut of = |gain: f64| {
            kept.gains.entry("n0".to_owned()).or_default().insert("gpu_power_w".to_owned(), gain);
            kept.of("n0", "gpu_power_w")
        };
        assert_eq!([1.0, 0.0].map(&mut of), [Some(0.0), Some(LEAST.ln())]);
        assert_eq!([-0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(of), [None; 4]);
        assert_eq!(kept.of("n0", "other").or(kept.of("n1", "gpu_power_w")), None);
    }

    #[test]
    fn with_too_little_past_or_where_many_changed_nobody_is_told() {
        assert!(told(&|node| if node == 3 { 0.75 } else { 1.0 }, 1).is_empty());
        assert!(told(&|node| if node % 2 == 1 { 0.75 } else { 1.0 }, 3).is_empty(), "roles changed");
    }

    #[test]
    fn a_node_that_always_varied_is_not_told_and_neither_is_the_recording_itself_compared() {
        let mut chance = Chance::new(4);
        let swings = |day: u32| move |node: usize| if node == 3 && day % 2 == 1 { 0.8 } else { 1.0 };
        let before: Vec<Gains> = (0..4).map(|day| gains(8, f64::from(day), &mut chance, &swings(day))).collect();
        let now = gains(8, 30.0, &mut chance, &|node| if node == 3 { 0.78 } else { 1.0 });
        assert!(unlike_before(&now, &before).is_empty());
        let same = vec![now.clone(); 3];
        assert!(
            unlike_before(&gains(8, 30.0, &mut chance, &|node| if node == 3 { 0.5 } else { 1.0 }), &same).is_empty()
        );
    }

    #[test]
    fn what_all_nodes_changed_by_is_of_none_of_them() {
        assert!(told(&|_| 0.8, 3).is_empty());
        assert_eq!(told(&|node| if node == 3 { 0.48 } else { 0.8 }, 3), ["n3"]);
        assert_eq!(told(&|node| if node == 3 { 1.0 } else { 0.6 }, 3), ["n3"], "it alone did not change");
    }

    #[test]
    fn a_change_is_told_past_twice_what_the_own_past_varied() {
        let mut chance = Chance::new(5);
        let swings = |day: u32| move |node: usize| if node == 3 && day % 2 == 1 { 0.8 } else { 1.0 };
        let before: Vec<Gains> = (0..4).map(|day| gains(8, f64::from(day), &mut chance, &swings(day))).collect();
        // In logarithms it varied by 0.22 about -0.11; 0.6 is 0.40 from there, and 0.45 is 0.69.
        let mut told = |now: f64| {
            let now = gains(8, 30.0, &mut chance, &|node| if node == 3 { now } else { 1.0 });
            unlike_before(&now, &before).into_iter().map(|unlike| (unlike.node, unlike.recordings)).collect::<Vec<_>>()
        };
        assert_eq!(told(0.6), []);
        assert_eq!(told(0.45), [("n3".to_owned(), 4)]);
    }

    #[test]
    fn two_recordings_of_four_nodes_are_enough() {
        let told = |nodes: usize, recordings: u32| {
            let mut chance = Chance::new(6);
            let before: Vec<Gains> =
                (0..recordings).map(|day| gains(nodes, f64::from(day), &mut chance, &|_| 1.0)).collect();
            let now = gains(nodes, 30.0, &mut chance, &|node| if node == 2 { 0.6 } else { 1.0 });
            unlike_before(&now, &before).len()
        };
        assert_eq!((told(4, 2), told(3, 2), told(4, 1)), (1, 0, 0));
    }

    #[test]
    fn recordings_that_overlap_by_a_moment_are_the_same_recording() {
        let mut chance = Chance::new(7);
        let mut of = |span_s: (f64, f64)| Gains { span_s, ..gains(4, 0.0, &mut chance, &|_| 1.0) };
        let now = of((100.0, 200.0));
        for (span_s, overlaps) in [
            ((0.0, 99.0), false),
            ((0.0, 100.0), true),
            ((120.0, 130.0), true),
            ((200.0, 300.0), true),
            ((201.0, 300.0), false),
        ] {
            let other = of(span_s);
            assert_eq!((now.overlaps(&other), other.overlaps(&now)), (overlaps, overlaps), "{span_s:?}");
        }
    }

    #[test]
    fn the_kept_form_reads_back_and_another_version_is_not_used() {
        let kept = gains(4, 1.0, &mut Chance::new(1), &|_| 1.0);
        let text = serde_json::to_string(&kept).unwrap();
        let read: Gains = serde_json::from_str(&text).unwrap();
        assert!(read == kept && read.is_known());
        let newer: Gains = serde_json::from_str(&text.replace("\"version\":1", "\"version\":2")).unwrap();
        assert!(!newer.is_known());
    }

    /// A recording from `begin` to `end` in which every node's gain is `usual` and n2's is `odd`, in both metrics.
    fn kept((begin, end): (f64, f64), nodes: usize, usual: f64, odd: f64) -> Gains {
        let of = |node: usize| {
            let gain = if node == 2 { odd } else { usual };
            (format!("n{node}"), ["a", "b"].map(|metric| (metric.to_owned(), gain)).into())
        };
        Gains { schema: SCHEMA.to_owned(), version: VERSION, span_s: (begin, end), gains: (0..nodes).map(of).collect() }
    }

    fn told_of(now: &Gains, before: &[Gains]) -> Vec<Unlike> {
        unlike_before(now, before)
    }

    #[test]
    fn recordings_of_the_same_time_or_of_another_form_are_no_past() {
        let now = kept((1_000.0, 2_000.0), 8, 1.0, 0.7);
        let day = |begin: f64| kept((begin, begin + 100.0), 8, 1.0, 1.0);
        let recordings = |before: &[Gains]| told_of(&now, before).first().map(|unlike| unlike.recordings);
        assert_eq!(recordings(&[day(0.0), day(200.0)]), Some(2));
        assert_eq!(recordings(&[day(0.0), day(899.0), day(2_001.0)]), Some(3), "also what came after it");
        assert_eq!(recordings(&[day(0.0), day(900.0)]), None, "they touch");
        assert_eq!(recordings(&[day(0.0), day(1_500.0)]), None);
        assert_eq!(recordings(&[day(0.0), day(2_000.0)]), None);
        let other = Gains { version: 2, ..day(200.0) };
        assert!(!other.is_known() && day(0.0).is_known());
        assert!(!Gains { schema: "x".to_owned(), ..day(0.0) }.is_known());
        assert_eq!(recordings(&[day(0.0), other]), None);
    }

    #[test]
    fn a_change_counts_from_a_seventh_and_beyond_twice_what_the_past_varied() {
        let odd = |now: f64, before: [f64; 2]| {
            let before = [0.0, 200.0].iter().zip(before).map(|(at, odd)| kept((*at, at + 100.0), 8, 1.0, odd));
            !told_of(&kept((1_000.0, 2_000.0), 8, 1.0, now), &before.collect::<Vec<_>>()).is_empty()
        };
        assert!(!odd(1.16, [1.0, 1.0]) && odd(1.17, [1.0, 1.0]) && odd(0.85, [1.0, 1.0]) && !odd(0.87, [1.0, 1.0]));
        // In logarithms the past varied by 0.1, so that a change must be more than 0.2 from the middle of it.
        let past = [1.0, 0.1_f64.exp()];
        assert!(!odd(0.24_f64.exp(), past) && odd(0.26_f64.exp(), past));
    }

    #[test]
    fn four_nodes_with_a_past_and_two_metrics_are_needed_and_an_eighth_may_have_changed() {
        let days = |nodes: usize| [0.0, 200.0].map(|at| kept((at, at + 100.0), nodes, 1.0, 1.0)).to_vec();
        let now = |nodes: usize| kept((1_000.0, 2_000.0), nodes, 1.0, 0.5);
        assert_eq!((told_of(&now(3), &days(3)).len(), told_of(&now(4), &days(4)).len()), (0, 1));
        assert_eq!(told_of(&now(8), &days(3)), [], "of three nodes a past is known");
        let mut one = now(8);
        one.gains.get_mut("n2").unwrap().remove("b");
        assert_eq!(told_of(&one, &days(8)), []);
        let two_of = |nodes: usize| {
            let mut now = now(nodes);
            let odd = now.gains["n2"].clone();
            now.gains.insert("n3".to_owned(), odd);
            told_of(&now, &days(nodes)).len()
        };
        assert_eq!((two_of(15), two_of(16)), (0, 2));
    }

    #[test]
    fn a_note_says_now_and_before_and_what_to_do() {
        let days = [0.0, 200.0].map(|at| kept((at, at + 100.0), 8, 1.0, 1.0));
        let told = told_of(&kept((1_000.0, 2_000.0), 8, 1.0, 0.7), &days);
        assert_eq!(
            told[0].note(),
            "n2 has been unlike its own past since the start: a 0.70x its peers, before 1.00x; b 0.70x its peers, before 1.00x \
             (median of 2 earlier recordings), while the other nodes are as they were. Its role or its hardware changed, or it is \
             faulty: run `muster run cbd-light -w n2`"
        );
    }

    #[test]
    fn gains_are_those_of_cells_that_have_learned_for_four_minutes() {
        let mut watch = Watch::new(crate::Settings::default());
        let (node, other) = (watch.node("n1").unwrap(), watch.node("n2").unwrap());
        let metric = watch.metric("gpu_power_w").unwrap();
        watch.push(5.0, node, metric, 1.0);
        watch.push(7.0, other, metric, 1.0);
        assert_eq!(watch.gains(), None);
        let cells = &mut watch.columns[0].cells;
        (0..24).for_each(|nr| cells[0].usual.push(if nr % 2 == 0 { 0.9 } else { 1.1 }));
        (0..23).for_each(|_| cells[1].usual.push(1.0));
        let gains = watch.gains().unwrap();
        assert_eq!((gains.span_s, gains.is_known()), ((5.0, 7.0), true));
        assert_eq!(gains.gains, BTreeMap::from([("n1".to_owned(), BTreeMap::from([("gpu_power_w".to_owned(), 1.0)]))]));
    }
}
