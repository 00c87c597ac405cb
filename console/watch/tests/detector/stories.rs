//! Small made jobs, each with all that the detector knows of it: alerts, notes, and block by block what a screen shows.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::fmt::Write;
use std::path::Path;

use super::simulated::words;
use muster_analysis::Chance;
use muster_watch::{NodeIndex, Settings, Standing, Watch};

/// When a story begins, epoch seconds.
const START: f64 = 1_760_000_000.0;
const METRICS: [(&str, f64); 5] =
    [("tensor_active", 0.6), ("gpu_power_w", 500.0), ("net_tx_gbs", 50.0), ("cpu_util_pct", 40.0), ("requests", 900.0)];

/// What a metric of a node shows in a second, beside what a healthy node would; `None` where nothing is reported.
type Hurt = fn(usize, usize, usize) -> Option<f64>;

/// A job that somebody watches.
struct Story {
    name: &'static str,
    nodes: usize,
    seconds: usize,
    settings: Settings,
    hurt: Hurt,
    /// What is said of each node before.
    about: fn(&mut Watch, NodeIndex, usize),
    /// Seconds by which the second half of the recording lies later.
    gap_s: f64,
}

const QUIET: Story = Story {
    name: "",
    nodes: 8,
    seconds: 900,
    settings: Settings { evidence_s: 130.0, false_alarms: None },
    hurt: |_, _, _| Some(1.0),
    about: |_, _, _| {},
    gap_s: 0.0,
};

/// Whether `second` lies between two others, as a factor.
fn while_in(second: usize, from: usize, until: usize, factor: f64) -> Option<f64> {
    Some(if (from..until).contains(&second) { factor } else { 1.0 })
}

/// Node 3 slows at 300 s; at second `at` all stand still but node 5, which is busy.
fn hangs(at: usize, second: usize, node: usize, metric: usize) -> Option<f64> {
    Some(match (node, metric) {
        (5, 1) => 1.0,
        (_, 0..=2) if second >= at => 0.01,
        (3, 0 | 1) if second >= 300 => 0.6,
        _ => 1.0,
    })
}

const STORIES: [Story; 12] = [
    Story { name: "a healthy job", seconds: 400, ..QUIET },
    Story {
        name: "a slow machine comes back, and another one falls ill meanwhile",
        seconds: 1_200,
        hurt: |second, node, metric| match (node, metric) {
            (2, 0 | 1) => while_in(second, 300, 600, 0.6),
            (5, 1) => while_in(second, 420, 9_999, 0.6),
            _ => Some(1.0),
        },
        ..QUIET
    },
    Story {
        name: "a tenth less in two metrics for a long time",
        seconds: 1_800,
        hurt: |second, node, metric| {
            if node == 4 && metric < 2 { while_in(second, 400, 9_999, 0.88) } else { Some(1.0) }
        },
        ..QUIET
    },
    Story {
        name: "a leaf loses its network and gets it back",
        nodes: 12,
        seconds: 1_200,
        hurt: |second, node, metric| if node < 5 && metric == 2 { while_in(second, 300, 600, 0.4) } else { Some(1.0) },
        about: |watch, node, at| watch.label(node, "leaf", if at < 6 { "leaf1" } else { "leaf2" }),
        ..QUIET
    },
    Story {
        name: "a leaf is like the others again as the recording ends, and a machine of another one is not",
        nodes: 16,
        seconds: 700,
        hurt: |second, node, metric| match (node, metric) {
            (0..5, 2) => while_in(second, 300, 600, 0.4),
            (13, 0 | 1) => while_in(second, 400, 9_999, 0.7),
            _ => Some(1.0),
        },
        about: |watch, node, at| watch.label(node, "rack", ["r1", "r2", "r3"][at / 6]),
        ..QUIET
    },
    Story {
        name: "some nodes that share nothing leave together",
        nodes: 12,
        hurt: |second, node, metric| {
            if node % 2 == 1 && metric == 2 { while_in(second, 300, 600, 0.4) } else { Some(1.0) }
        },
        ..QUIET
    },
    Story {
        name: "one machine slows and drags the others a minute later, until both recover",
        seconds: 1_100,
        hurt: |second, node, metric| match (node, metric) {
            (3, 3) => while_in(second, 400, 700, 2.2),
            (_, 0..=2) => while_in(second, 460, 700, 0.6),
            _ => Some(1.0),
        },
        about: |watch, node, at| watch.clock(node, 0.5 + at as f64),
        ..QUIET
    },
    Story {
        name: "the job stands still and goes on, then hangs with one node silent",
        hurt: |second, node, metric| match (node, metric) {
            (6, _) if second >= 600 => None,
            (_, 0..=2) if (300..360).contains(&second) || second >= 600 => Some(0.01),
            _ => Some(1.0),
        },
        ..QUIET
    },
    Story {
        name: "a node writes a checkpoint for longer than the others may wait",
        seconds: 1_200,
        hurt: |second, node, metric| match (node, metric) {
            (1, 2) => Some(1.0),
            (_, 0..=2) if second >= 400 => Some(0.01),
            _ => Some(1.0),
        },
        ..QUIET
    },
    Story {
        name: "the job hangs a minute after a machine was named, which is taken for the cause",
        seconds: 600,
        hurt: |second, node, metric| hangs(430, second, node, metric),
        ..QUIET
    },
    Story {
        name: "the job hangs minutes after a machine was named, and another one is busy in it",
        hurt: |second, node, metric| hangs(700, second, node, metric),
        ..QUIET
    },
    Story {
        name: "a budget of false alarms, a machine that comes back to its peers, and a gap of hours",
        settings: Settings { evidence_s: 130.0, false_alarms: Some(0.01) },
        hurt: |second, node, metric| match (node, metric) {
            (5, 0 | 1) => while_in(second, 0, 280, 0.7),
            (2, 1) => while_in(second, 250, 290, 0.7),
            _ => Some(1.0),
        },
        gap_s: 20_000.0,
        ..QUIET
    },
];

/// The detector after a story.
fn watched(story: &Story) -> Watch {
    let mut watch = Watch::new(story.settings);
    watch.keep(2 * story.seconds / 10);
    let nodes: Vec<_> = (0..story.nodes).map(|node| watch.node(&format!("n{node}")).unwrap()).collect();
    nodes.iter().enumerate().for_each(|(at, node)| (story.about)(&mut watch, *node, at));
    let metrics: Vec<_> = METRICS.iter().map(|(name, _)| watch.metric(name).unwrap()).collect();
    let mut chance = Chance::new(1);
    for second in 0..story.seconds {
        let wave = 1.0 + 0.1 * (second as f64 / 7.0).sin();
        let later = if second >= story.seconds / 2 { story.gap_s } else { 0.0 };
        for (metric, (_, base)) in METRICS.iter().enumerate() {
            for (node, place) in nodes.iter().enumerate() {
                let healthy = base * wave * (1.0 + 0.03 * chance.normal());
                if let Some(factor) = (story.hurt)(second, node, metric) {
                    watch.push(START + second as f64 + later, *place, metrics[metric], factor * healthy);
                }
            }
        }
    }
    watch.finish();
    watch
}

/// Whether machines were compared, in a word or two.
fn standing(of: Standing) -> String {
    match of {
        Standing::Nothing => "nothing".to_owned(),
        Standing::Undecided(lack) => format!("undecided, {lack}"),
        Standing::Learning { left_s } => format!("learns for {left_s:.0} s"),
        Standing::Begins => "begins".to_owned(),
        Standing::Still { for_s } => format!("still for {for_s:.0} s"),
        Standing::Compares { metrics } => format!("compares {metrics}"),
    }
}

/// Block by block: seconds from the start, the standing, and each node with evidence in all metrics or in one of them.
fn blocks(watch: &Watch, text: &mut String) {
    let names: Vec<&str> = watch.node_names().collect();
    let metrics: Vec<&str> = watch.metrics().map(|(name, _)| name).collect();
    for frame in watch.frames() {
        write!(text, "    {:>5.0} {}", frame.at_s - START, standing(frame.standing)).unwrap();
        for (node, name) in names.iter().enumerate() {
            let looks = metrics.iter().enumerate().map(|(metric, name)| (name, frame.look(node, metric)));
            let odd: Vec<String> = looks
                .filter(|(_, look)| look.evidence.abs() >= 15.0)
                .map(|(name, look)| format!("{name} {:.0}", look.evidence))
                .collect();
            if frame.evidence(node) > 0.0 || !odd.is_empty() {
                write!(text, "; {name} {:.0} of {:.0} ({})", frame.evidence(node), frame.needed_s, odd.join(", "))
                    .unwrap();
            }
        }
        text.push('\n');
    }
}

fn told(story: &Story) -> String {
    let watch = watched(story);
    let mut text = format!("{}: {} nodes, {} s\n", story.name, story.nodes, story.seconds);
    for (at, alert) in watch.alerts().iter().enumerate() {
        writeln!(text, "    {}", words(alert, START)).unwrap();
        let like = watch.like_peers_since(at).map(|since| since - START);
        like.into_iter().for_each(|since| writeln!(text, "      like its peers since {since:.0}").unwrap());
    }
    watch.notes().iter().for_each(|note| writeln!(text, "    {note}").unwrap());
    let found = watch.calibration();
    let (rate, days) = (found.false_alarms_per_machine_day, found.machine_days);
    writeln!(
        text,
        "    {:.1} s of evidence, {rate:.4} a machine-day, {days:.3} days, {} excursions",
        found.evidence_s, found.excursions
    )
    .unwrap();
    blocks(&watch, &mut text);
    text
}

/// With `MUSTER_BLESS=1` it is written instead; read the difference before you commit it.
#[test]
fn of_each_story_the_same_is_known_block_by_block() {
    let text: String = STORIES.iter().map(told).collect();
    muster_golden::hold(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/detector/stories.txt"), &text);
}
