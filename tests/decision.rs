//! From a few lines of CSV to the state of every node, through the command line: what must be found, and who must not be accused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::BTreeMap;

use muster_tests::{Draw, Place};
use serde_json::Value;

/// What is said of a fleet that is imported as a run.
fn judge(place: &Place, rows: &str, extra: &[&str]) -> Value {
    let file = place.file("fleet.csv", rows);
    let import = ["import", "--json", "--higher-is-better", "*", &file];
    let report = place.json(0, "muster.import.json", &[&import[..], extra].concat());
    place.results(&[report["run"].as_str().unwrap()])
}

const AVERAGES: &[&str] = &["--aggregated"];
const SIX: [&str; 6] =
    ["cpu-gemm/fp32", "cpu-gemm/fp64", "cpu-stream/copy", "cpu-stream/triad", "disk/seq-read", "disk/seq-write"];

/// A fleet as CSV: nodes around 100, with noise between nodes and between steps.
struct Made {
    nodes: usize,
    steps: usize,
    /// Relative standard deviation between nodes, and between the steps of one.
    noise: [f64; 2],
    seed: u64,
}

const QUIET: Made = Made { nodes: 16, steps: 8, noise: [0.002, 0.002], seed: 1 };

impl Made {
    /// Rows of `metrics`, where node and metric number have a share of the usual speed.
    fn rows(&self, metrics: &[&str], speed: impl Fn(usize, usize) -> f64) -> String {
        let mut draw = Draw::new(self.seed);
        let mut text = String::new();
        for (at, metric) in metrics.iter().enumerate() {
            for node in 0..self.nodes {
                let level = 100.0 * speed(node, at) * (1.0 + self.noise[0] * draw.normal());
                for step in 0..self.steps {
                    let value = (level * (1.0 + self.noise[1] * draw.normal())).max(0.1);
                    text += &format!("n{node:03},{metric}@own,{value},{step}\n");
                }
            }
        }
        text
    }

    fn csv(&self, metrics: &[&str], speed: impl Fn(usize, usize) -> f64) -> String {
        with_header(&self.rows(metrics, speed))
    }
}

fn with_header(rows: &str) -> String {
    format!("node,metric,value,step\n{rows}")
}

fn nodes<'a>(report: &'a Value, state: &str) -> Vec<&'a str> {
    let of = report["nodes"].as_array().unwrap().iter().filter(|node| node["state"] == state);
    of.map(|node| node["node"].as_str().unwrap()).collect()
}

fn node<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["nodes"].as_array().unwrap().iter().find(|node| node["node"] == name).unwrap()
}

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|node| format!("n{node:03}")).collect()
}

fn components(node: &Value) -> BTreeMap<&str, &str> {
    let all = node["components"].as_array().unwrap().iter();
    all.map(|c| (c["component"].as_str().unwrap(), c["state"].as_str().unwrap())).collect()
}

fn exactly_fail(report: &Value, failed: &[String]) {
    assert_eq!(nodes(report, "fail"), failed, "{}", report["summary"]);
    let rest = report["nodes"].as_array().unwrap().len() - failed.len();
    assert_eq!(nodes(report, "pass").len(), rest, "{}", report["summary"]);
}

#[test]
fn a_few_equally_slow_nodes_fail_as_a_group_and_the_others_pass() {
    let place = Place::new();
    // Exactly equal values are a few lines of CSV; noise of 0.2 % is a quiet benchmark.
    for noise in [[0.0, 0.0], [0.002, 0.002]] {
        for (steps, extra) in [(1, AVERAGES), (8, &[])] {
            let made = Made { steps, noise, ..QUIET };
            let two = judge(&place, &made.csv(&SIX, |node, _| if node == 9 || node == 10 { 0.8 } else { 1.0 }), extra);
            exactly_fail(&two, &names(9..11));
            let said = node(&two, "n009")["reasons"].to_string();
            assert!(
                said.contains("2 of 16 nodes alike (n009, n010)") && said.contains("20 % below the others"),
                "{said}"
            );
            let large = Made { nodes: 64, ..made };
            let eight = judge(&place, &large.csv(&SIX, |node, _| if node < 8 { 0.85 } else { 1.0 }), extra);
            exactly_fail(&eight, &names(0..8));
            assert!(node(&eight, "n007")["reasons"].to_string().contains("8 of 64 nodes alike"));
        }
    }
}

#[test]
fn nodes_that_are_slow_to_different_degrees_are_not_called_alike() {
    let speed = |node, _| [1.0, 0.94, 0.7][usize::from(node == 3) + 2 * usize::from(node == 5)];
    let report = judge(&Place::new(), &QUIET.csv(&SIX, speed), &[]);
    assert_eq!(nodes(&report, "fail"), ["n003", "n005"]);
    let said = [node(&report, "n003"), node(&report, "n005")].map(|node| node["reasons"].to_string());
    assert!(said.iter().all(|said| !said.contains("alike")), "{said:?}");
    assert!(said[1].contains("30 % below"), "{said:?}");
}

#[test]
fn a_node_at_half_speed_fails_beside_noisy_metrics_and_more_of_them_change_nothing_for_it() {
    let place = Place::new();
    let disks = ["disk/seq-read", "disk/seq-write", "disk/rand-read"];
    let loud = ["disk/rand-write", "disk/seq-readwrite", "net/a", "net/b", "net/c", "net/d"];
    for (steps, extra) in [(1, AVERAGES), (8, &[]), (32, &[])] {
        let made = |seed, noise| Made { steps, seed, noise, ..QUIET };
        let quiet = made(5, [0.003, 0.003]).rows(&["cpu-gemm/fp32"], |node, _| if node == 3 { 0.5 } else { 1.0 });
        let noisy = made(6, [0.2, 0.2]).rows(&disks, |_, _| 1.0);
        let louder = made(7, [0.3, 0.3]).rows(&loud, |_, _| 1.0);
        let few = judge(&place, &with_header(&(quiet.clone() + &noisy)), extra);
        let many = judge(&place, &with_header(&(quiet + &noisy + &louder)), extra);
        for report in [&few, &many] {
            assert_eq!(nodes(report, "fail"), ["n003"]);
            let cpu = |node: &Value| components(node)["cpu"].to_owned();
            let passing = report["nodes"].as_array().unwrap().iter().filter(|node| cpu(node) == "pass").count();
            assert_eq!(passing, 15, "a noisy disk does not hide that the CPUs are in order");
        }
        let of_cpu = |report: &Value| {
            let all = node(report, "n003")["findings"].as_array().unwrap().clone();
            all.into_iter().filter(|finding| finding["component"] == "cpu").collect::<Vec<_>>()
        };
        assert_eq!(of_cpu(&few), of_cpu(&many));
        assert!(!of_cpu(&few).is_empty());
    }
}

#[test]
fn slower_in_more_metrics_is_never_better() {
    let place = Place::new();
    let eight = [&SIX[..], &["cpu-stream/add", "disk/rand-read"]].concat();
    for size in [8, 16] {
        for slow in 1..=8 {
            let speed = |node, metric| if node == 5 && metric < slow { 0.8 } else { 1.0 };
            let made = Made { nodes: size, noise: [0.001, 0.001], seed: slow as u64, ..QUIET };
            exactly_fail(&judge(&place, &made.csv(&eight, speed), &[]), &names(5..6));
        }
    }
    let five_percent = |node, _| if node == 5 { 0.95 } else { 1.0 };
    for (steps, extra) in [(1, AVERAGES), (32, &[])] {
        let perfect = Made { steps, noise: [0.0, 0.0], ..QUIET };
        exactly_fail(&judge(&place, &perfect.csv(&eight, five_percent), extra), &names(5..6));
    }
}

#[test]
fn frozen_criteria_fail_nobody_of_a_second_healthy_draw_however_large_the_job() {
    let metrics = ["cpu-gemm/fp32", "cpu-stream/triad"];
    for (seed, (steps, extra)) in [(1, AVERAGES), (8, &[]), (1, AVERAGES)].into_iter().enumerate() {
        let place = Place::new();
        let draw = |nodes, seed| Made { nodes, steps, noise: [0.03, 0.003], seed }.csv(&metrics, |_, _| 1.0);
        let seed = 10 * seed as u64;
        judge(&place, &draw(252, seed), extra);
        place.text(0, &["criteria", "learn"]);
        let frozen = place.text(0, &["criteria", "freeze", "--all"]);
        assert!(frozen.contains("nodes differ by 3.") || frozen.contains("nodes differ by 2."), "{frozen}");
        for (nodes, draw) in [(252, draw(252, seed + 1)), (10, draw(10, seed + 2)), (2, draw(2, seed + 3))] {
            let report = judge(&place, &draw, extra);
            assert_eq!(
                (&report["summary"]["fail"], &report["summary"]["warn"]),
                (&0.into(), &0.into()),
                "{nodes} nodes"
            );
            assert!(report["criteria"].as_array().unwrap().iter().all(|c| c["frozen"] == true));
        }
        // And they do find a slow node, also in a job of ten.
        let made = Made { nodes: 10, steps, noise: [0.03, 0.003], seed: seed + 4 };
        let slow = judge(&place, &made.csv(&metrics, |node, _| if node == 7 { 0.5 } else { 1.0 }), extra);
        assert_eq!(nodes(&slow, "fail"), ["n007"]);
    }
}

#[test]
fn a_metric_too_noisy_to_tell_half_speed_is_not_frozen_and_the_reason_has_the_figure() {
    let place = Place::new();
    judge(&place, &Made { noise: [0.3, 0.01], ..QUIET }.csv(&["disk/seq-read"], |_, _| 1.0), &[]);
    place.text(0, &["criteria", "learn"]);
    let said = place.text(64, &["criteria", "freeze", "disk/seq-read"]);
    assert!(said.contains("not even a node at half speed could be detected"), "{said}");
}

#[test]
fn single_values_that_scatter_by_two_to_four_percent_accuse_nobody_and_are_not_called_ok() {
    let place = Place::new();
    for (at, spread) in [0.02, 0.03, 0.04].into_iter().enumerate() {
        for nodes in [10, 64, 252] {
            let made = Made { nodes, steps: 1, noise: [spread, 0.0], seed: 100 + at as u64 };
            for extra in [&[], AVERAGES] {
                let report = judge(&place, &made.csv(&["cpu-gemm/fp32", "cpu-stream/triad"], |_, _| 1.0), extra);
                assert_eq!((&report["summary"]["fail"], &report["summary"]["warn"]), (&0.into(), &0.into()));
                assert!(
                    report["criteria"].as_array().unwrap().iter().all(|c| c["status"] != "ok"),
                    "{nodes}, {spread}"
                );
            }
        }
    }
}

#[test]
fn of_two_to_four_nodes_no_sound_one_is_accused() {
    let place = Place::new();
    for nodes in 2..=4 {
        for (steps, noise) in [(1, 0.003), (8, 0.003), (32, 0.05)] {
            for slow in [1.0, 0.8, 0.5] {
                let made = Made { nodes, steps, noise: [0.003, noise], seed: nodes as u64 };
                let report = judge(&place, &made.csv(&SIX, |node, _| if node == 1 { slow } else { 1.0 }), &[]);
                let accused = [self::nodes(&report, "fail"), self::nodes(&report, "warn")].concat();
                assert!(accused.iter().all(|node| *node == "n001" && slow < 1.0), "{accused:?}");
                assert_eq!(self::nodes(&report, "pass"), [""; 0], "four nodes are too few to vouch for each other");
            }
        }
    }
}

#[test]
fn one_slow_gpu_of_eight_is_named_and_the_other_seven_pass() {
    let benchmarks = ["gpu-stream/triad", "gpu-stream/copy", "gemm-flops/bf16", "gemm-flops/fp32"];
    let metrics: Vec<String> = (0..8).flat_map(|gpu| benchmarks.map(|name| format!("{name}:{gpu}"))).collect();
    let metrics: Vec<&str> = metrics.iter().map(String::as_str).collect();
    let speed = |node, metric| if node == 6 && metric / 4 == 3 { 0.9 } else { 1.0 };
    let report = judge(&Place::new(), &QUIET.csv(&metrics, speed), &[]);
    exactly_fail(&report, &names(6..7));
    let slow = node(&report, "n006");
    let found: Vec<_> = slow["findings"].as_array().unwrap().iter().map(|f| f["component"].as_str().unwrap()).collect();
    assert_eq!(found, ["gpu:3"]);
    for (component, state) in components(slow) {
        assert_eq!(state, if component == "gpu:3" { "fail" } else { "pass" }, "{component}");
    }
}

#[test]
fn a_third_to_a_half_slow_alike_is_contested_both_camps_are_named_and_nobody_passes_or_fails() {
    let place = Place::new();
    for slow in [6, 7, 8] {
        let report = judge(&place, &QUIET.csv(&SIX, |node, _| if node < slow { 0.8 } else { 1.0 }), &[]);
        let summary = &report["summary"];
        // No pass, no fail, something undecided: `run` exits 3.
        assert_eq!((&summary["pass"], &summary["fail"]), (&0.into(), &0.into()), "{slow}: {summary}");
        assert!(summary["unknown"].as_u64() > Some(0), "{slow}: {summary}");
        let both = format!("contested: {slow} nodes (n000, n001, n002 and {} more) at 80", slow - 3);
        for one in ["n000", "n015"] {
            let said = node(&report, one)["reasons"].to_string();
            let fast = format!("{} nodes (n{slow:03}", 16 - slow);
            assert!(said.contains(&both) && said.contains(&fast), "{one}: {said}");
        }
    }
    let third = judge(&place, &QUIET.csv(&SIX, |node, _| if node < 5 { 0.8 } else { 1.0 }), &[]);
    exactly_fail(&third, &names(0..5));
}

#[test]
fn one_value_that_may_have_been_a_stall_fails_a_node_only_as_an_average() {
    let place = Place::new();
    let made = Made { steps: 1, noise: [0.003, 0.0], ..QUIET };
    let file = place.file("one.csv", &made.csv(&["cpu-gemm/fp32"], |node, _| if node == 4 { 0.7 } else { 1.0 }));
    let import = ["import", "--higher-is-better", "*", &file];
    let said = place.text(0, &import);
    assert!(said.contains("fewer than 6 values") && said.contains("import with --aggregated"), "{said}");
    let report = place.results(&[]);
    assert_eq!((nodes(&report, "unknown"), nodes(&report, "fail")), (vec!["n004"], vec![]));
    let why = node(&report, "n004")["reasons"].to_string();
    assert!(why.contains("too few values to exclude a stall"), "{why}");

    let said = place.text(0, &[&import[..], AVERAGES].concat());
    assert!(said.contains("as averages of many steps each (--aggregated)"), "{said}");
    exactly_fail(&place.results(&[]), &names(4..5));
}

#[test]
fn a_job_larger_than_the_cluster_is_an_error() {
    let place = Place::new();
    let jobs = place.file("jobs.csv", "submit_s,duration_s,nodes8\n0,3600,4\n600,7200,32\n");
    let said = place.text(64, &["simulate", "--nodes", "16", "--hours", "48", "--seeds", "1", "--jobs", &jobs]);
    assert!(said.contains("a job needs 32 nodes and the cluster has 16"), "{said}");
}

/// A matrix of pairs: `leaves` of `each` nodes, node `s` to node `d` at a share of 100.
struct Matrix {
    leaves: usize,
    each: usize,
    noise: f64,
    seed: u64,
}

impl Matrix {
    fn leaf(&self, node: usize) -> usize {
        node / self.each
    }

    /// `up` tells which uplink a pair crosses; `speed` gets both nodes and that uplink.
    fn csv(&self, up: bool, speed: impl Fn(usize, usize, &str) -> f64) -> String {
        let (mut draw, nodes) = (Draw::new(self.seed), self.leaves * self.each);
        let mut text = format!("src,dst,metric,value{}\n", if up { ",up" } else { "" });
        for (src, dst) in (0..nodes).flat_map(|src| (0..nodes).map(move |dst| (src, dst))).filter(|(s, d)| s != d) {
            let leaf = self.leaf(src);
            let way = if leaf == self.leaf(dst) {
                String::new()
            } else {
                format!("leaf{}-spine{}", leaf + 1, (src + dst) % 2 + 1)
            };
            let value = 100.0 * speed(src, dst, &way) * (1.0 + self.noise * draw.normal());
            text += &format!("n{src:02},n{dst:02},bandwidth,{value:.4}");
            text += &if up { format!(",{way}\n") } else { "\n".to_owned() };
        }
        text
    }

    /// A topology file; the nodes of `swapped` are told in each other's place.
    fn topology(&self, swapped: Option<(usize, usize)>) -> String {
        let mut places: Vec<usize> = (0..self.leaves * self.each).collect();
        if let Some((a, b)) = swapped {
            places.swap(a, b);
        }
        let row = |(at, node): (usize, &usize)| format!("n{node:02},leaf{}\n", self.leaf(at) + 1);
        "node,leaf\n".to_owned() + &places.iter().enumerate().map(row).collect::<String>()
    }
}

const EIGHT_LEAVES: Matrix = Matrix { leaves: 8, each: 4, noise: 0.02, seed: 1 };

/// Exit code, what is said, and the report.
fn pairs(place: &Place, matrix: &str, topology: Option<&str>) -> (i32, String, Value) {
    let matrix = place.file("matrix.csv", matrix);
    let mut arguments = vec!["pairs", "--from", &matrix];
    let topology = topology.map(|text| place.file("topology.csv", text));
    if let Some(file) = &topology {
        arguments.extend(["--topology", file]);
    }
    let output = place.muster(&arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    arguments.push("--json");
    let code = output.status.code().unwrap();
    (code, said, place.json(code, "muster.pairs.json", &arguments))
}

fn suspects(report: &Value) -> Vec<String> {
    let all = report["suspects"].as_array().unwrap().iter();
    all.map(|s| format!("{} {}", s["kind"].as_str().unwrap(), s["element"].as_str().unwrap())).collect()
}

#[test]
fn without_a_topology_a_bad_leaf_accuses_none_of_its_nodes() {
    let place = Place::new();
    for seed in 0..20 {
        let matrix = Matrix { leaves: 4 + 4 * (seed % 2), seed: seed as u64, ..EIGHT_LEAVES };
        let bad = seed % 4;
        let speed = |src: usize, dst: usize, _: &str| if (src / 4 == bad) == (dst / 4 == bad) { 1.0 } else { 0.5 };
        let (code, said, report) = pairs(&place, &matrix.csv(false, speed), None);
        assert_eq!((code, suspects(&report)), (3, vec![]), "{seed}: {said}");
        let group = format!("n{:02}-n{:02} are slow towards the other", 4 * bad, 4 * bad + 3);
        assert!(said.contains(&group) && said.contains("--topology"), "{seed}: {said}");
    }
}

#[test]
fn two_nodes_swapped_in_the_topology_are_told_first_and_one_uplink_is_accused() {
    let place = Place::new();
    let matrix = EIGHT_LEAVES.csv(true, |_, _, up| if up == "leaf3-spine1" { 0.4 } else { 1.0 });
    for swapped in [None, Some((0, 9))] {
        let (code, said, report) = pairs(&place, &matrix, Some(&EIGHT_LEAVES.topology(swapped)));
        assert_eq!((code, suspects(&report)), (2, vec!["uplink leaf3-spine1".to_owned()]), "{said}");
        let first = said.lines().next().unwrap();
        let told = first.contains("topology says n09 is on leaf1, the measured paths say leaf3: swapped with n00?");
        assert_eq!(told, swapped.is_some(), "{said}");
    }
}

#[test]
fn half_of_the_leaves_slow_is_contested_and_exits_3() {
    let place = Place::new();
    let slow = |src: usize, dst: usize, _: &str| if src / 4 != dst / 4 && (src < 16 || dst < 16) { 0.6 } else { 1.0 };
    let topology = EIGHT_LEAVES.topology(None);
    for (topology, camps) in
        [(None, "contested: 16 of 32 nodes"), (Some(topology.as_str()), "contested: 4 of 8 leaves")]
    {
        let (code, said, report) = pairs(&place, &EIGHT_LEAVES.csv(false, slow), topology);
        assert_eq!((code, suspects(&report)), (3, vec![]), "{said}");
        assert!(said.contains(camps), "{said}");
    }
}

#[test]
fn four_sound_nodes_accuse_nobody_and_one_of_many_five_percent_slow_is_a_warning() {
    let place = Place::new();
    for seed in 0..20 {
        for noise in [0.01, 0.05, 0.15] {
            let (code, said, report) =
                pairs(&place, &Matrix { leaves: 1, each: 4, noise, seed }.csv(false, |_, _, _| 1.0), None);
            assert_eq!(suspects(&report), [""; 0], "{said}");
            assert!(code == 0 || code == 3, "{said}");
        }
    }
    let matrix = Matrix { leaves: 1, each: 31, noise: 0.03, seed: 1 };
    let slow = |src: usize, dst: usize, _: &str| if src == 5 || dst == 5 { 0.95 } else { 1.0 };
    let (code, said, _) = pairs(&place, &matrix.csv(false, slow), None);
    assert!(code == 1 && said.contains("warning: node n05"), "{said}");
}
