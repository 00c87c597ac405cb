//! Simulated runs whose end is known, followed second by second: how far off were the estimates?

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use muster_analysis::checks::Policy;
use muster_fleet::LinkState;
use muster_playbook::{Phase, Plan};
use muster_run::{Record, Summary};
use muster_tui::snapshot::Left;
use muster_wire::{Outcome, Profile, Progress};

use super::{Course, Durations};
use crate::work::Update;

/// What happens at a time, milliseconds from the start.
type Happening = (u64, What);

enum What {
    Phase { index: usize, nodes: usize, work: usize },
    Connects(String),
    Works(String, String, f64),
    Records(Box<Record>),
    Ends(String),
}

/// Factor by which the time of a piece of work differs from node to node: within a quarter of the mean.
fn uneven(nr: usize, work: &str) -> f64 {
    let mixed =
        work.bytes().fold(nr as u64 + 1, |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    1.0 + 0.25 * ((mixed >> 20) % 2001) as f64 / 1000.0 - 0.25
}

/// A run to come.
struct Scene {
    nodes: usize,
    at_once: usize,
    /// Seconds between the connections of two nodes, which wait for each other.
    apart: f64,
    /// Works of each phase with what they take on a sound node, seconds.
    phases: Vec<Vec<(&'static str, f64)>>,
    /// Factor of each node by its number; 1 of all others.
    slow: HashMap<usize, f64>,
    /// Seconds that each node needs besides.
    overhead: f64,
    /// Times of earlier runs relative to those of this one; `None` if nothing was ever measured.
    past: Option<f64>,
    done: BTreeSet<(String, String)>,
}

/// A quarter of the time goes to short benchmarks, the rest to a long one at the end.
const UNEVEN: [(&str, f64); 4] = [("cpu-gemm", 3.0), ("cpu-stream", 1.0), ("cpu-latency", 8.0), ("disk", 40.0)];

impl Scene {
    fn new(nodes: usize, at_once: usize) -> Self {
        let phases = vec![vec![("collect/cpu", 0.2), ("collect/disk", 0.4)], UNEVEN.to_vec()];
        let (slow, done) = (HashMap::new(), BTreeSet::new());
        Self { nodes, at_once, apart: 0.0, phases, slow, overhead: 2.0, past: Some(1.0), done }
    }

    fn names(&self) -> Vec<String> {
        (0..self.nodes).map(|nr| format!("n{nr:03}")).collect()
    }

    fn plan(&self) -> Plan {
        let phase = |works: &Vec<(&str, f64)>| Phase {
            step: "step".to_owned(),
            about: String::new(),
            pairs: None,
            collectives: Vec::new(),
            train: None,
            collectors: works.iter().filter_map(|(work, _)| work.strip_prefix("collect/")).map(str::to_owned).collect(),
            benchmarks: works.iter().map(|(work, _)| *work).filter(|w| !w.contains('/')).map(str::to_owned).collect(),
            checks: Vec::new(),
            profile: Profile::Quick,
            idle: None,
            limit: std::time::Duration::from_secs(600),
            drop_failed: false,
            nodes: self.names(),
        };
        let (playbook, title) = ("made-up".to_owned(), String::new());
        let phases = self.phases.iter().map(phase).collect();
        Plan { policy: Policy::default(), playbook, title, profile: Profile::Quick, phases }
    }

    /// Times of stored runs: the same on all nodes; those that are slow now were not slow then.
    fn durations(&self) -> Durations {
        let mut durations = Durations::default();
        let Some(factor) = self.past else { return durations };
        for (work, seconds) in self.phases.iter().flatten() {
            let of = |(nr, node): (usize, String)| Summary {
                node,
                work: (*work).to_owned(),
                outcome: Outcome::Done,
                at_ms: 0,
                elapsed_ns: (seconds * factor * uneven(self.nodes - nr, work) * 1e9) as u64,
                series: 0,
                values: 0,
                facts: 0,
            };
            durations.add(&self.names().into_iter().enumerate().map(of).collect::<Vec<_>>());
        }
        durations
    }

    /// Everything that happens, in the order of time; the last of it is the end.
    fn happenings(&self) -> Vec<Happening> {
        let mut all: Vec<Happening> = Vec::new();
        let mut start = 0;
        for (index, works) in self.phases.iter().enumerate() {
            let open = |name: &String| -> Vec<(&str, f64)> {
                let left = |(work, _): &&(&str, f64)| !self.done.contains(&(name.clone(), (*work).to_owned()));
                works.iter().filter(left).copied().collect()
            };
            let nodes: Vec<(usize, String)> =
                self.names().into_iter().enumerate().filter(|(_, name)| !open(name).is_empty()).collect();
            let work = nodes.iter().map(|(_, name)| open(name).len()).sum();
            all.push((start, What::Phase { index, nodes: nodes.len(), work }));
            let mut places = vec![start; self.at_once.min(self.nodes)];
            for (at, (nr, name)) in nodes.into_iter().enumerate() {
                let place = places.iter_mut().min().unwrap();
                let begins = (*place).max(start + (at as f64 * self.apart * 1e3) as u64);
                *place = self.turn((nr, &name), &open(&name), begins, &mut all);
            }
            start = places.into_iter().max().unwrap();
        }
        all.sort_by_key(|(at, _)| *at);
        all
    }

    /// The turn of a node that begins at `at`; gives when it ends.
    fn turn(&self, (nr, name): (usize, &str), works: &[(&str, f64)], mut at: u64, all: &mut Vec<Happening>) -> u64 {
        all.push((at, What::Connects(name.to_owned())));
        at += (self.overhead * 1e3) as u64;
        let factor = self.slow.get(&nr).copied().unwrap_or(1.0);
        for (work, seconds) in works {
            let took = seconds * factor * uneven(nr, work);
            // The probe says how far it is a few times a work, and begins slowly.
            for share in [0.0, 0.1, 0.3, 0.6, 0.9_f64] {
                let said = What::Works(name.to_owned(), (*work).to_owned(), share);
                all.push((at + (took * share.powf(0.75) * 1e3) as u64, said));
            }
            let took = (took * 1e3) as u64;
            at += took;
            let record = Record {
                run: "r".to_owned(),
                node: name.to_owned(),
                work: (*work).to_owned(),
                outcome: Outcome::Done,
                at_ms: at,
                elapsed_ns: took * 1_000_000,
                series: Vec::new(),
                facts: Vec::new(),
            };
            all.push((at, What::Records(Box::new(record))));
        }
        all.push((at, What::Ends(name.to_owned())));
        at
    }
}

/// What was shown each second, and when the run ended.
struct Told {
    shown: Vec<Left>,
    end: u64,
}

fn follow(scene: &Scene) -> Told {
    let mut course = Course::new(&scene.plan(), &scene.durations(), scene.at_once, &scene.done);
    let happenings = scene.happenings();
    let end = happenings.last().unwrap().0;
    let mut next = happenings.iter().peekable();
    let mut shown = Vec::new();
    for now in (0..=end).step_by(1_000) {
        while let Some((at, what)) = next.next_if(|(at, _)| *at <= now) {
            see(&mut course, *at, what);
        }
        shown.push(course.shown(now));
    }
    Told { shown, end }
}

fn see(course: &mut Course, at: u64, what: &What) {
    match what {
        What::Phase { index, nodes, work } => {
            course.see(&Update::Phase { index: *index, step: "step", nodes: *nodes, work: *work, further: &[] }, at);
        }
        What::Connects(node) => course.see(&Update::Link { node, state: &LinkState::TcpConnect }, at),
        What::Works(node, benchmark, done) => {
            let progress = Progress { benchmark: benchmark.clone(), done: *done, note: String::new() };
            course.see(&Update::Working { node, progress: &progress }, at);
        }
        What::Records(record) => course.see(&Update::Recorded(record), at),
        What::Ends(node) => course.see(&Update::Ended { node, failure: None }, at),
    }
}

impl Told {
    /// Estimate over true time left at this share of the run; above 1 the estimate was too long.
    fn ratio(&self, share: f64) -> f64 {
        let at = (self.shown.len() as f64 * share) as usize;
        let left = self.end as f64 - at as f64 * 1e3;
        self.shown[at].ms as f64 / left
    }

    /// Number of seconds in which the estimate rose, and the longest stretch of them.
    fn rises(&self) -> (usize, usize) {
        let rose: Vec<bool> = self.shown.windows(2).map(|two| two[1].ms > two[0].ms).collect();
        let longest = rose.split(|rose| !rose).map(<[bool]>::len).max().unwrap_or(0);
        (rose.iter().filter(|rose| **rose).count(), longest)
    }

    /// How far off that was, as a share of the whole run.
    fn error(&self, share: f64) -> f64 {
        (self.ratio(share) - 1.0).abs() * (1.0 - share)
    }

    /// Whether after a third of the run and after half of it what is said is within `factor` of what is left, later within a
    /// tenth of the whole run, rests on measurements, and does not rise for long.
    fn holds(&self, factor: f64) {
        for share in [0.34, 0.5, 0.7, 0.9] {
            let (ratio, error) = (self.ratio(share), self.error(share));
            if std::env::var_os("MUSTER_SHOW").is_some() {
                eprintln!("{share} of {} s: {ratio:.3}, off by {error:.3}, rises {:?}", self.end / 1000, self.rises());
            }
            let within = if share > 0.6 { error < 0.1 } else { (1.0 / factor..factor).contains(&ratio) };
            assert!(within, "{ratio} at {share} of {} s", self.end / 1000);
            assert!(self.shown[(self.shown.len() as f64 * share) as usize].measured);
        }
        let (times, row) = self.rises();
        assert!(times <= 6 && row <= 2, "rose {times} times, {row} in a row of {}", self.shown.len());
    }
}

#[test]
fn works_of_uneven_length_that_were_measured_before_are_known_from_the_first_second() {
    for (nodes, at_once) in [(4, 64), (40, 8), (200, 64)] {
        let told = follow(&Scene::new(nodes, at_once));
        assert!((0.7..1.4).contains(&told.ratio(0.0)), "{}", told.ratio(0.0));
        told.holds(1.3);
    }
}

#[test]
fn nodes_that_are_connected_one_after_another_hold_up_the_end() {
    let short = vec![vec![("collect/cpu", 0.2), ("cpu-gemm", 3.0), ("cpu-stream", 1.0)]];
    let told = follow(&Scene { apart: 0.1, phases: short, ..Scene::new(1200, 2000) });
    assert!(told.end > 110_000);
    told.holds(1.3);
}

#[test]
fn a_run_that_another_console_carries_ends_no_sooner_than_its_nodes_begin() {
    let short = vec![vec![("collect/cpu", 0.2), ("cpu-gemm", 3.0), ("cpu-stream", 1.0)]];
    for (nodes, apart) in [(1200, 0.1), (64, 0.01)] {
        let scene = Scene { apart, phases: short.clone(), ..Scene::new(nodes, usize::MAX >> 1) };
        let happenings = scene.happenings();
        let end = happenings.last().unwrap().0;
        for share in [0.3, 0.5, 0.7] {
            let now = (end as f64 * share) as u64;
            let records = happenings.iter().filter_map(|(at, what)| match what {
                What::Records(record) if *at <= now => Some((0, Arc::new(record.as_ref().clone()))),
                _ => None,
            });
            let records: Vec<_> = records.collect();
            let course = Course::of_records(&scene.plan(), &scene.durations(), scene.at_once, &records);
            let ratio = course.left(now).ms as f64 / (end - now) as f64;
            assert!((0.6..1.5).contains(&ratio), "{nodes} nodes, {share}: {ratio}");
        }
    }
}

#[test]
fn what_was_never_measured_is_a_plan_until_most_of_what_is_left_has_been_seen() {
    let told = follow(&Scene { past: None, ..Scene::new(40, 8) });
    assert!(!told.shown[0].measured);
    told.holds(1.3);
    // Where all nodes do the same at once nothing is known of what comes last, and that is said.
    let once = follow(&Scene { past: None, ..Scene::new(8, 64) });
    assert!(once.shown[..once.shown.len() / 2].iter().all(|left| !left.measured));
    assert!(once.rises().1 <= 2, "{:?}", once.rises());
}

#[test]
fn a_run_that_goes_slower_than_all_before_it_is_said_so_early() {
    for factor in [0.5, 2.0] {
        follow(&Scene { past: Some(factor), ..Scene::new(60, 8) }).holds(1.3);
    }
}

#[test]
fn a_slow_node_holds_up_the_end_and_is_expected_to() {
    for slow in [0, 3] {
        let told = follow(&Scene { slow: HashMap::from([(slow, 3.0)]), ..Scene::new(16, 64) });
        told.holds(1.5);
    }
    let told = follow(&Scene { slow: HashMap::from([(5, 3.0)]), ..Scene::new(80, 8) });
    told.holds(1.3);
}

#[test]
fn a_resumed_run_counts_only_what_is_left() {
    let mut scene = Scene::new(60, 8);
    let whole = follow(&scene).end;
    let names = scene.names();
    for name in &names[..40] {
        scene.done.extend(scene.phases.iter().flatten().map(|(work, _)| (name.clone(), (*work).to_owned())));
    }
    // One was in the middle of it.
    scene.done.insert((names[40].clone(), "cpu-gemm".to_owned()));
    let told = follow(&scene);
    assert!(told.end < whole / 2, "{} of {whole}", told.end);
    assert!((0.7..1.4).contains(&told.ratio(0.0)), "{}", told.ratio(0.0));
    told.holds(1.3);
}

#[test]
fn rounds_of_pairs_are_counted_and_what_is_measured_again_is_expected_where_it_was_before() {
    let scene = Scene::new(4, 4);
    let mut plan = scene.plan();
    plan.phases.push(Phase { pairs: Some(muster_playbook::Pairs::Full), ..plan.phases[1].clone() });
    let mut durations = scene.durations();
    durations.again_ms = 30_000;
    let mut course = Course::new(&plan, &durations, 4, &BTreeSet::new());
    let dropped = std::collections::BTreeMap::new();
    course.see(&Update::Phase { index: 2, step: "pairs", nodes: 4, work: 12, further: &[] }, 0);
    let round = |number| Update::Round { number, planned: Some((3, 6)), pairs: 2, measured: 0, dropped: &dropped };
    course.see(&round(0), 0);
    course.see(&round(1), 10_000);
    let left = course.left(10_000);
    assert_eq!((left.ms / 1000, left.measured), (50, true), "two rounds of ten seconds, and what is measured again");
    course.see(&Update::Phase { index: 3, step: "again", nodes: 2, work: 2, further: &[] }, 30_000);
    let left = course.left(30_000);
    assert!((8_000..30_000).contains(&left.ms), "what is measured again is known now: {left:?}");
}

#[test]
fn rounds_that_are_added_take_as_long_as_those_before_them() {
    let scene = Scene::new(4, 4);
    let mut plan = scene.plan();
    plan.phases.push(Phase { pairs: Some(muster_playbook::Pairs::Full), ..plan.phases[1].clone() });
    let mut course = Course::new(&plan, &scene.durations(), 4, &BTreeSet::new());
    let dropped = std::collections::BTreeMap::new();
    course.see(&Update::Phase { index: 2, step: "pairs", nodes: 4, work: 12, further: &[] }, 0);
    let mut left = |number: usize, rounds: usize, now: u64| {
        course.see(&Update::More(4), now);
        let planned = Some((rounds, 2 * rounds as u64));
        course.see(&Update::Round { number, planned, pairs: 2, measured: 2 * number, dropped: &dropped }, now);
        course.left(now).ms / 1000
    };
    left(0, 3, 0);
    assert_eq!([left(2, 3, 20_000), left(3, 5, 30_000), left(4, 5, 40_000)], [10, 20, 10]);
}

#[test]
fn what_is_measured_again_between_phases_does_not_hide_the_phases_to_come() {
    let scene = Scene::new(8, 8);
    let mut course = Course::new(&scene.plan(), &scene.durations(), 8, &BTreeSet::new());
    let phase = |index, work| Update::Phase { index, step: "step", nodes: 8, work, further: &[] };
    let before = course.left(0).ms;
    course.see(&phase(0, 16), 0);
    course.see(&phase(2, 8), 3_000);
    let (again, second) = (course.left(3_000).ms, UNEVEN.iter().map(|(_, s)| s * 1e3).sum::<f64>() as u64);
    assert!(again > second * 3 / 4 && again > before - 5_000, "{again} of {before}");
    course.see(&phase(1, 32), 9_000);
    assert!(course.left(9_000).ms < again);
}
