//! Snapshots made of nothing but a seed, for tests, speed and looking. Nothing here was measured.

#[path = "synthetic/network.rs"]
pub(crate) mod network;

#[path = "synthetic/selector.rs"]
pub(crate) mod selector;

#[path = "synthetic/service.rs"]
pub(crate) mod service;

#[path = "synthetic/triage.rs"]
pub(crate) mod triage;

#[path = "synthetic/watch.rs"]
pub(crate) mod watch;

use std::sync::Arc;

use muster_analysis::history::Shift;
use muster_analysis::{Observation, Params, learn};
use muster_tui::judgement::{State, Status, severity};
use muster_tui::snapshot::{
    Band, Before, CheckRow, Counts, Criteria, Curve, EarlierRun, FactRow, Focus, FocusSeries, GpuRow, IncidentRow,
    Left, Link, LinkKind, Load, Message, MetricPast, MetricRow, Metrics, Mode, NodeCurve, NodeLog, NodeRow, Part, Past,
    PlaybookRow, RunInfo, RunPhase, RunProgress, RunRow, Runs, Score, Sm, Snapshot, StepGroup, StepProgress, StepRow,
    VerdictRow, VersionRow, Work, WorkSeen, Worst,
};
use muster_wire::{Direction, Level, MetricId, Profile, Unit};

/// 2026-11-21 14:00 UTC.
pub(crate) const NOW_MS: u64 = 1_795_269_600_000;

/// What kind of fleet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    /// Nodes.
    pub(crate) nodes: usize,
    /// How many of them run at about half speed.
    pub(crate) slow: usize,
    /// Every which one cannot be reached; 0 is none.
    pub(crate) lost_each: usize,
    /// Whether a run is going on.
    pub(crate) running: bool,
}

/// A small fleet in the middle of a run, with one slow node.
pub(crate) const DATA: Fleet = Fleet { nodes: 16, slow: 1, lost_each: 7, running: true };

type MetricSpec = (&'static str, &'static str, Unit, Direction, f64, f64);

const METRICS: &[MetricSpec] = &[
    ("cpu-gemm", "fp32", Unit::FlopPerSec, Direction::HigherIsBetter, 1.41e12, 0.006),
    ("cpu-gemm", "fp64", Unit::FlopPerSec, Direction::HigherIsBetter, 0.702e12, 0.006),
    ("cpu-stream", "copy", Unit::BytesPerSec, Direction::HigherIsBetter, 186e9, 0.008),
    ("cpu-stream", "triad", Unit::BytesPerSec, Direction::HigherIsBetter, 203e9, 0.008),
    ("cpu-latency", "l1", Unit::Nanos, Direction::LowerIsBetter, 1.21, 0.004),
    ("cpu-latency", "dram", Unit::Nanos, Direction::LowerIsBetter, 98.0, 0.02),
    ("cpu-dispatch", "syscall", Unit::Nanos, Direction::LowerIsBetter, 152.0, 0.02),
    ("cpu-dispatch", "futex-wake", Unit::Nanos, Direction::LowerIsBetter, 5_200.0, 0.09),
    ("disk", "sequential-read", Unit::BytesPerSec, Direction::HigherIsBetter, 3.2e9, 0.03),
    ("disk", "random-write", Unit::OpsPerSec, Direction::HigherIsBetter, 212_000.0, 0.03),
    ("net-loopback", "throughput", Unit::BytesPerSec, Direction::HigherIsBetter, 6.1e9, 0.02),
];

/// A snapshot of such a fleet.
pub(crate) fn snapshot(fleet: Fleet) -> Snapshot {
    let mut rng = Rng(0x5eed);
    let lost = |i: usize| fleet.lost_each > 0 && i % fleet.lost_each == fleet.lost_each - 1;
    let slow = |i: usize| {
        i % (fleet.nodes / fleet.slow.max(1)).max(1) == 4 && i / (fleet.nodes / fleet.slow.max(1)).max(1) < fleet.slow
    };
    let nodes: Arc<[Arc<NodeRow>]> =
        (0..fleet.nodes).map(|i| Arc::new(node(i, slow(i), lost(i), fleet.running, &mut rng))).collect();
    let metrics = (0..METRICS.len()).map(|m| Arc::new(metric(m, &nodes, &mut rng))).collect();
    let metrics = Arc::new(Metrics::new(metrics));
    let counts = Counts::of(nodes.iter().map(|n| n.state));
    // Pairs grow with the square.
    let names: Vec<String> = nodes.iter().take(3_000).map(|n| n.name.clone()).collect();
    Snapshot {
        criteria: Part::ready(criteria(&mut rng)),
        selector: Part::ready(selector::selector(&names)),
        runs: Part::ready(runs()),
        network: Part::ready(network::network(&names, fleet.running)),
        triage: Part::ready(triage::triaged(&names)),
        watch: Part::ready(watch::watching(&names[..names.len().min(64)], 640)),
        generation: 1,
        now_ms: NOW_MS,
        title: "prod-a".to_owned(),
        mode: Mode::Live { since_ms: NOW_MS - 63_000 },
        load: Load::Ready,
        last_frame_ms: Some(NOW_MS - 412),
        run: Some(Arc::new(run(fleet))),
        progress: progress(fleet),
        focus: nodes
            .iter()
            .find(|n| n.state == State::Fail)
            .or_else(|| nodes.first())
            .map(|n| Arc::new(focus(n, &mut rng))),
        nodes,
        counts,
        metrics,
        playbooks: playbooks(),
        messages: Arc::from([Message {
            at_ms: NOW_MS - 2_000,
            level: Level::Warn,
            text: "rack1-04 is 41 % slower than its peers (cpu-gemm/fp32, similarity 0.588 below 0.95)".to_owned(),
        }]),
        ..Snapshot::default()
    }
}

/// Before the first answer.
pub(crate) fn loading() -> Snapshot {
    let loading = |what: &str| Load::Loading { what: what.to_owned(), since_ms: NOW_MS - 1_400 };
    Snapshot {
        load: loading("reading the inventory /etc/muster/prod-a.toml"),
        selector: Part { load: loading("fitting a model to 214 incidents"), data: None },
        network: Part { load: loading("reading matrix.csv"), data: None },
        ..empty()
    }
}

/// Nothing in the inventory.
pub(crate) fn empty() -> Snapshot {
    Snapshot { generation: 1, now_ms: NOW_MS, title: "prod-a".to_owned(), ..Snapshot::default() }
}

/// Nothing could be read.
pub(crate) fn error() -> Snapshot {
    let load = Load::Failed {
        what: "reading the inventory /etc/muster/prod-a.toml".to_owned(),
        why: "line 14: unknown key `hots`, perhaps `host`".to_owned(),
        since_ms: NOW_MS - 42_000,
        next: "It is read again when the file changes.".to_owned(),
    };
    let network = Load::Failed {
        what: "reading matrix.csv".to_owned(),
        why: "line 812: `4.1.2` is no number".to_owned(),
        since_ms: NOW_MS - 42_000,
        next: "Start again with a whole file.".to_owned(),
    };
    let selector = Load::Failed {
        what: "fitting a model".to_owned(),
        why: "the incident log has no incident".to_owned(),
        since_ms: NOW_MS - 42_000,
        next: "`muster incidents import FILE` reads one.".to_owned(),
    };
    let (network, selector) = (Part { load: network, data: None }, Part { load: selector, data: None });
    Snapshot { load, network, selector, ..empty() }
}

fn name(i: usize) -> String {
    format!("rack{}-{:02}", i / 40 + 1, i % 40)
}

fn node(i: usize, slow: bool, lost: bool, running: bool, rng: &mut Rng) -> NodeRow {
    let verdicts: Arc<[VerdictRow]> =
        if lost { Arc::from([]) } else { (0..METRICS.len()).map(|m| verdict(i, m, slow, rng)).collect() };
    let worst = verdicts.iter().min_by(|a, b| a.similarity.unwrap_or(2.0).total_cmp(&b.similarity.unwrap_or(2.0)));
    let state = verdicts.iter().map(|v| v.state).min_by_key(|s| severity(*s)).unwrap_or(State::Unknown);
    let (kind, text) = match (lost, running) {
        (true, _) => (LinkKind::Failed, "no answer on 10.3.1.17:22 within 5 s"),
        (false, true) => (LinkKind::Live, "live"),
        (false, false) => (LinkKind::Closed, "closed"),
    };
    let mut reasons: Vec<String> =
        verdicts.iter().filter(|v| v.state == State::Fail).map(|v| v.reason.clone()).collect();
    if lost {
        reasons.push(format!("{} was not reached: no answer on 10.3.1.17:22 within 5 s", name(i)));
    }
    NodeRow {
        name: name(i),
        rack: format!("r{}", i / 40 + 1),
        leaf: format!("leaf{}", i / 80 + 1),
        groups: vec!["gpu".to_owned(), if i.is_multiple_of(2) { "even".to_owned() } else { "odd".to_owned() }],
        link: Link { kind, text: text.to_owned() },
        state,
        provisional: running && !lost && i % 3 == 1,
        worst: worst.map(|v| Worst {
            metric: v.metric.clone(),
            similarity: v.similarity,
            deviation: v.deviation,
            sentence: v.reason.clone(),
        }),
        work: (running && !lost).then(|| Work {
            name: METRICS[i % METRICS.len()].0.to_owned(),
            done: (i * 37 % 100) as f64 / 100.0,
            note: format!("{}, step {} of 40", METRICS[i % METRICS.len()].1, i * 37 % 40),
        }),
        done: if lost {
            0.0
        } else if running {
            0.3 + (i % 5) as f64 / 10.0
        } else {
            1.0
        },
        seen_ms: seen(i, lost),
        result_ms: seen(i, lost),
        reasons: reasons.into(),
        facts: if lost { Arc::from([]) } else { facts(i) },
        verdicts,
        gpus: Arc::from([]),
        checks: if lost { Arc::from([]) } else { checks(slow) },
        service: None,
    }
}

/// When a node was heard.
fn seen(i: usize, lost: bool) -> Option<u64> {
    (!lost).then_some(NOW_MS - (i as u64 % 5) * 300 - if i % 11 == 10 { 8_000 } else { 0 })
}

/// The same where the slow node and some that pass were last measured 41 days ago.
pub(crate) fn with_old_results(mut snapshot: Snapshot) -> Snapshot {
    const AGO: u64 = 41 * 86_400_000;
    let old = |i: usize| matches!(i, 2 | 4 | 5 | 9);
    let of = |(i, node): (usize, &Arc<NodeRow>)| {
        if !old(i) {
            return node.clone();
        }
        let at = NOW_MS - AGO;
        let verdicts = node.verdicts.iter().map(|verdict| VerdictRow { at_ms: at, before: None, ..verdict.clone() });
        let (verdicts, seen_ms) = (verdicts.collect(), Some(at));
        Arc::new(NodeRow { seen_ms, result_ms: seen_ms, verdicts, ..(**node).clone() })
    };
    snapshot.nodes = snapshot.nodes.iter().enumerate().map(of).collect();
    let score = |score: &Score| {
        let at = if old(score.node) { NOW_MS - AGO } else { score.at_ms() };
        Score::new(score.node, score.similarity, score.state, at)
    };
    let metric = |row: &Arc<MetricRow>| {
        Arc::new(MetricRow { scores: row.scores.iter().map(score).collect(), ..(**row).clone() })
    };
    snapshot.metrics = Arc::new(Metrics::new(snapshot.metrics.iter().map(metric).collect()));
    let stale = snapshot.nodes.iter().enumerate().filter(|(i, _)| old(*i));
    snapshot.stale = Counts::of(stale.map(|(_, node)| node.state));
    // Nothing of it is said in the message line.
    snapshot.messages = Arc::from([]);
    snapshot
}

/// The same with GPUs in every node.
pub(crate) fn with_gpus(mut snapshot: Snapshot) -> Snapshot {
    let with = |node: &Arc<NodeRow>| Arc::new(NodeRow { gpus: gpus(), ..(**node).clone() });
    snapshot.nodes = snapshot.nodes.iter().map(with).collect();
    snapshot
}

/// Eight GPUs of 132 multiprocessors: of number 3 one computes wrong bits and one is slow, number 5 is hot.
fn gpus() -> Arc<[GpuRow]> {
    let sm = |index, sm| match (index, sm) {
        (3, 77) => Sm::Wrong,
        (3, 12) => Sm::Slow,
        _ => Sm::Good,
    };
    let row = |index: u32| GpuRow {
        index,
        name: "NVIDIA H200".to_owned(),
        about: Arc::from(["GPU-8a51", "memory 71 °C", "limit 700 W", "0 replaced rows"].map(str::to_owned)),
        state: [State::Pass, State::Fail, State::Warn][usize::from(index == 3) + 2 * usize::from(index == 5)],
        temperature: Some(if index == 5 { 87.0 } else { 61.0 + f64::from(index) }),
        power: Some(612.0 + f64::from(index)),
        clock: Some(1.755e9),
        errors: Some(0.0),
        links: Some((18.0, 18.0)),
        pcie: Some((5.0, 16.0)),
        sms: (0..132).map(|number| sm(index, number)).collect(),
        said: match index {
            3 => Arc::from(["multiprocessor 77 computes wrong bits (ffma: 1 of 2 runs), 131 others agree".to_owned()]),
            5 => Arc::from(["87 °C during gpu-burn".to_owned()]),
            _ => Arc::from([]),
        },
    };
    (0..8).map(row).collect()
}

/// Answers of a handful of checks, worst first.
fn checks(odd: bool) -> Arc<[CheckRow]> {
    let mut rows: Vec<CheckRow> = ["nic-mtu", "sysctl-consistent", "xid", "kernel-consistent", "swap", "gpu-count"]
        .into_iter()
        .filter_map(muster_analysis::checks::check)
        .map(|check| {
            let (state, said) = match (check.id, odd) {
                ("nic-mtu", true) => (State::Fail, "eth0.mtu is 1500, 15 of 16 nodes have 9000"),
                ("sysctl-consistent", true) => {
                    (State::Warn, "sysctl.net.core.somaxconn is 77, 15 of 16 nodes have 4096")
                }
                ("xid", _) => (State::Unknown, "the kernel's log may not be read by this login"),
                ("gpu-count", _) => (State::NotApplicable, "no NVIDIA GPU on the bus"),
                _ => (State::Pass, "the same as on 16 nodes of the group"),
            };
            CheckRow { id: check.id, area: check.area, state, said: said.to_owned(), next: check.next }
        })
        .collect();
    rows.sort_by_key(|row| severity(row.state));
    rows.into()
}

/// How much of its speed a slow node keeps in a metric; disks are spared.
fn factor(m: usize, slow: bool) -> f64 {
    let (benchmark, _, _, direction, _, _) = METRICS[m];
    match (slow && !matches!(benchmark, "disk" | "net-loopback"), direction) {
        (false, _) => 1.0,
        (true, Direction::HigherIsBetter) => 0.59,
        (true, Direction::LowerIsBetter) => 1.7,
    }
}

fn verdict(i: usize, m: usize, slow: bool, rng: &mut Rng) -> VerdictRow {
    let (benchmark, metric, unit, direction, center, spread) = METRICS[m];
    let value = center * factor(m, slow) * (1.0 + spread * rng.normal());
    let bad = factor(m, slow) != 1.0;
    let similarity = if bad { 0.588 + rng.next() * 0.02 } else { 1.0 - rng.next() * 0.02 };
    let deviation = value / center - 1.0;
    let word = if (deviation < 0.0) == (direction == Direction::HigherIsBetter) { "slower" } else { "faster" };
    VerdictRow {
        metric: id(m),
        state: if bad { State::Fail } else { State::Pass },
        similarity: Some(similarity),
        value: Some(value),
        deviation: Some(deviation),
        reason: format!(
            "{} is {:.1} % {word} than its peers ({benchmark}/{metric} {}, similarity {similarity:.3}, alpha 0.95, 64 values)",
            name(i),
            deviation.abs() * 100.0,
            unit.show(value),
        ),
        at_ms: NOW_MS - 3_600_000,
        run: Arc::from("20261121T130000-cbd-light-4f2a"),
        before: before(m, bad, value),
    }
}

/// What it was nine days before: a slow node was none, every disk was slower, and one metric is new.
fn before(m: usize, bad: bool, value: f64) -> Option<Before> {
    let (benchmark, metric, .., center, _) = METRICS[m];
    let (value, shift) = match (benchmark, metric) {
        ("net-loopback", _) => return None,
        _ if bad => (center, Shift::Worse),
        (_, "sequential-read") => (value * 0.4, Shift::Better),
        _ => (value * 1.002, Shift::Same),
    };
    let from = EarlierRun { id: "20261112T130000-cbd-light-1c07".to_owned(), at_ms: NOW_MS - 9 * 86_400_000 };
    Some(Before { state: State::Pass, value: Some(value), shift, from: Arc::new(from) })
}

fn facts(i: usize) -> Arc<[FactRow]> {
    let rows = [
        ("identity", "dmi.product", "PowerEdge XE9680", true),
        ("identity", "dmi.serial", "denied", false),
        ("identity", "kernel.release", "6.8.0-60-generic", true),
        ("identity", "libc", "glibc 2.39", true),
        ("cpu", "model", "Intel(R) Xeon(R) Platinum 8480C", true),
        ("cpu", "cores", "112", true),
        ("cpu", "governor", "performance", true),
        ("memory", "total", "2.15 TB", true),
        ("memory", "ecc.corrected", "0.00", true),
        ("disk", "device.nvme0n1.size", "3.84 TB", true),
        ("disk", "device.nvme0n1.model", "SAMSUNG MZQL23T8", true),
        ("nic", "eth0.speed_mbit", "100000", true),
        ("nic", "eth0.state", "up", true),
        ("nic", "eth1.speed_mbit", "–", false),
        ("load", "load1", "0.31", true),
    ];
    let row = |(c, k, v, known): (&str, &str, &str, bool)| FactRow {
        collector: c.to_owned(),
        key: k.to_owned(),
        value: if k == "load1" { format!("0.{:02}", i % 90 + 10) } else { v.to_owned() },
        known,
    };
    rows.into_iter().map(row).collect()
}

fn id(m: usize) -> MetricId {
    let (benchmark, name, ..) = METRICS[m];
    MetricId::new(benchmark, name, "own")
}

fn place(id: &MetricId) -> usize {
    METRICS.iter().position(|(benchmark, name, ..)| id.benchmark == *benchmark && id.name == *name).unwrap_or_default()
}

fn metric(m: usize, nodes: &[Arc<NodeRow>], rng: &mut Rng) -> MetricRow {
    let (_, metric, unit, direction, center, spread) = METRICS[m];
    let of = |n: &NodeRow| n.verdicts.get(m).cloned();
    let mut scores: Vec<Score> = nodes
        .iter()
        .enumerate()
        .filter_map(|(node, n)| of(n).map(|v| Score::new(node, v.similarity, v.state, v.at_ms)))
        .collect();
    scores.sort_by(|a, b| a.similarity.unwrap_or(2.0).total_cmp(&b.similarity.unwrap_or(2.0)));
    let defects: Arc<[NodeCurve]> = scores
        .iter()
        .filter(|s| s.state == State::Fail)
        .take(8)
        .map(|s| NodeCurve { node: nodes[s.node].name.clone(), curve: curve(center * factor(m, true), spread, rng) })
        .collect();
    let noisy = metric == "futex-wake";
    let status = match (scores.len(), noisy) {
        (0, _) => None,
        (1..5, _) => Some(Status::Provisional),
        (_, true) => Some(Status::NotRepeatable),
        (_, false) => Some(Status::Ok),
    };
    let criterion = if scores.is_empty() { Arc::from([]) } else { curve(center, spread, rng) };
    let band = |by: f64| -> Curve { criterion.iter().map(|(x, y)| (x * (1.0 + by * spread), *y)).collect() };
    MetricRow {
        id: id(m),
        unit,
        direction,
        status,
        version: if scores.is_empty() { String::new() } else { format!("c-{:04x}", 0x4f2a + m) },
        n: scores.len(),
        healthy: scores.iter().filter(|s| s.state == State::Pass).count(),
        repeatability: (scores.len() > 1).then_some(if noisy { 0.911 } else { 0.988 }),
        alpha: 0.95,
        tau: 0.01,
        median: (!scores.is_empty()).then_some(center),
        peers: (scores.len() > 2).then(|| Band { lower: band(1.1), upper: band(-1.1) }),
        criterion,
        defects,
        counts: Counts::of(scores.iter().map(|s| s.state)),
        scores: scores.into(),
    }
}

fn curve(center: f64, spread: f64, rng: &mut Rng) -> Curve {
    let mut values: Vec<f64> = (0..64).map(|_| center * (1.0 + spread * rng.normal())).collect();
    values.sort_by(f64::total_cmp);
    values.iter().enumerate().map(|(i, v)| (*v, (i + 1) as f64 / 64.0)).collect()
}

fn focus(node: &NodeRow, rng: &mut Rng) -> Focus {
    let series = node.verdicts.iter().map(|v| {
        let (_, _, _, _, usual, spread) = METRICS[place(&v.metric)];
        let center = v.value.unwrap_or(usual);
        FocusSeries {
            metric: v.metric.clone(),
            values: (0..96).map(|_| center * (1.0 + spread * rng.normal())).collect(),
            curve: curve(center, spread, rng),
        }
    });
    let line =
        |ago: u64, level: Level, text: &str| NodeLog { at_ms: NOW_MS - ago * 1000, level, text: text.to_owned() };
    Focus {
        node: node.name.clone(),
        series: series.collect(),
        log: Arc::from([
            line(62, Level::Info, "connected, probe 0.1.0, protocol 1"),
            line(61, Level::Info, "identity finished in 12 ms"),
            line(41, Level::Warn, "cpu governor is `performance`, turbo is off"),
            line(3, Level::Info, "cpu-gemm finished in 3.41 s"),
        ]),
        past: Some(Arc::new(past(node, rng))),
        service: None,
    }
}

fn criteria(rng: &mut Rng) -> Criteria {
    const DAY: u64 = 86_400_000;
    let mut version = |m: usize, days: u64, factor: f64, frozen: bool| {
        let (benchmark, name, unit, direction, usual, spread) = METRICS[m];
        let nodes: Vec<(String, Observation)> = (0..24)
            .map(|i| {
                let own = usual * factor * if i == 4 { 0.6 } else { 1.0 };
                let values: Vec<f64> = (0..16).map(|_| own * (1.0 + spread * rng.normal())).collect();
                (self::name(i), Observation::from_values(&values))
            })
            .collect();
        let learned = learn(&MetricId::new(benchmark, name, "own"), unit, direction, &nodes, &Params::default());
        let outside = learned.verdicts.iter().filter(|v| v.state == State::Fail);
        VersionRow {
            outside: outside.map(|v| (v.node.to_string(), v.similarity)).collect(),
            criterion: Arc::new(learned.criterion),
            group: "profile=smoke".to_owned(),
            learned_ms: NOW_MS - days * DAY,
            source: format!("run r-2026{days:04}"),
            frozen,
        }
    };
    let rows = [(0, 40, 1.0, false), (0, 9, 0.97, true), (2, 40, 1.0, true), (5, 9, 1.0, false)];
    Criteria { versions: rows.into_iter().map(|(m, days, factor, frozen)| version(m, days, factor, frozen)).collect() }
}

fn runs() -> Runs {
    const HOUR: u64 = 3_600_000;
    let row =
        |(hours, playbook, profile, minutes, phase, nodes, names, current): (u64, &str, _, _, _, _, &str, bool)| {
            let run = RunInfo {
                id: format!("2026112{}T{:02}0000-{playbook}-4f2a", 1 - hours / 24, 14 - hours % 14),
                playbook: playbook.to_owned(),
                profile,
                started_ms: NOW_MS - hours * HOUR,
                ended_ms: Option::<u64>::map(minutes, |minutes| NOW_MS - hours * HOUR + minutes * 60_000),
                phase,
            };
            RunRow {
                run,
                nodes,
                names: names.to_owned(),
                plan: ["collect/identity", "collect/cpu", "cpu-gemm", "cpu-stream", "cpu-latency"]
                    .map(str::to_owned)
                    .into(),
                current,
            }
        };
    let rows = [
        (1, "cbd-light", Profile::Quick, Some(4), RunPhase::Finished, 1, "rack1-04", true),
        (3, "cbd-light", Profile::Quick, Some(11), RunPhase::Finished, 16, "rack1-[00-15]", true),
        (5, "network-full", Profile::Quick, None, RunPhase::Interrupted, 16, "rack1-[00-15]", false),
        (23, "import-superbench", Profile::Quick, Some(0), RunPhase::Finished, 412, "rack[1-11]-[00-39]", false),
    ];
    Runs { rows: rows.into_iter().map(row).collect() }
}

fn past(node: &NodeRow, rng: &mut Rng) -> Past {
    const DAY: u64 = 86_400_000;
    let seen = |work: &str, days: u64, ended| WorkSeen { work: work.to_owned(), at_ms: NOW_MS - days * DAY, ended };
    let metric = |v: &VerdictRow| {
        let (.., usual, spread) = METRICS[place(&v.metric)];
        let at = |run: u64, rng: &mut Rng| (NOW_MS - run * 9 * DAY, usual * (1.0 + spread * rng.normal()));
        MetricPast {
            metric: v.metric.clone(),
            medians: (1..9).rev().map(|run| at(run, &mut *rng)).chain(v.value.map(|now| (NOW_MS, now))).collect(),
        }
    };
    let incident = |days: u64, hours: Option<u64>, category: &str, reason: &str| IncidentRow {
        start_ms: NOW_MS - days * DAY,
        end_ms: hours.map(|h| NOW_MS - days * DAY + h * 3_600_000),
        category: category.to_owned(),
        reason: reason.to_owned(),
        source: "sacctmgr".to_owned(),
    };
    Past {
        works: Arc::from([
            seen("cpu-gemm", 0, State::Pass),
            seen("cpu-stream", 0, State::Pass),
            seen("cpu-burn", 6, State::Pass),
            seen("disk", 41, State::Pass),
            seen("net-loopback", 2, State::Fail),
            seen("gpu-stream", 2, State::NotApplicable),
            seen("collect/identity", 0, State::Pass),
            seen("collect/cpu", 0, State::Pass),
        ]),
        metrics: node.verdicts.iter().map(metric).collect(),
        incidents: Arc::from([
            incident(3, None, "network", "link down on eth1"),
            incident(31, Some(16), "cpu_memory", "uncorrectable memory error"),
            incident(77, Some(210), "power_thermal", "PSU 2 replaced"),
        ]),
    }
}

fn playbooks() -> Arc<[PlaybookRow]> {
    let step = |id: &str, about: &str, work: &[&str]| StepRow {
        id: id.to_owned(),
        about: about.to_owned(),
        work: work.iter().map(|w| (*w).to_owned()).collect(),
    };
    let steps: Arc<[StepRow]> = Arc::from([
        step("look", "read-only facts of every node", &["identity", "cpu", "memory", "disk", "nic", "load"]),
        step("compute", "cores and memory", &["cpu-gemm", "cpu-stream", "cpu-latency", "cpu-dispatch"]),
        step("storage", "the scratch disk", &["disk"]),
    ]);
    let row = |name: &str, title: &str, profile: Profile| PlaybookRow {
        name: name.to_owned(),
        title: title.to_owned(),
        about: "Compares every node with its peers and names the one that is slower, with its evidence.".to_owned(),
        profile,
        steps: steps.clone(),
    };
    Arc::from([
        row("build-out", "Full scan of new racks", Profile::Standard),
        row("burn-in", "The same work again and again", Profile::Full),
        row("cbd", "Check before delivery", Profile::Quick),
        row("cbd-light", "Check before delivery, short", Profile::Smoke),
    ])
}

fn run(fleet: Fleet) -> RunInfo {
    RunInfo {
        id: "r-20261121-135857".to_owned(),
        playbook: "build-out".to_owned(),
        profile: Profile::Smoke,
        started_ms: NOW_MS - 63_000,
        ended_ms: (!fleet.running).then_some(NOW_MS - 4_000),
        phase: if fleet.running { RunPhase::Running } else { RunPhase::Finished },
    }
}

fn progress(fleet: Fleet) -> RunProgress {
    let total = fleet.nodes * 11;
    let group = |what: &str, count: usize, nodes: &str, done: f64| StepGroup {
        what: what.to_owned(),
        count,
        nodes: nodes.to_owned(),
        done,
    };
    let step = |id: &str, done: usize, failed: usize, total: usize, groups: Vec<StepGroup>| StepProgress {
        id: id.to_owned(),
        done,
        failed,
        total,
        groups: groups.into(),
    };
    let n = fleet.nodes;
    RunProgress {
        left: fleet.running.then_some(Left { ms: 74_000, measured: true }),
        done: if fleet.running { total * 6 / 11 } else { total },
        total,
        steps: Arc::from([
            step("look", n * 6, 0, n * 6, vec![group("done", n, "rack1-[00-15]", 1.0)]),
            step(
                "compute",
                n,
                n.min(2),
                n * 4,
                vec![
                    group("failed: no answer on 10.3.1.17:22 within 5 s", 2, "rack1-[06,13]", 0.0),
                    group("cpu-gemm", n / 2, "rack1-[00-05,07]", 0.25),
                    group("cpu-stream", n / 2, "rack1-[08-12,14-15]", 0.5),
                ],
            ),
            step("storage", 0, 0, n, vec![group("waiting", n, "rack1-[00-15]", 0.0)]),
        ]),
    }
}

/// A small generator, so that pictures are the same everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}
