//! Scans of pairs over a leaf-spine fabric of namespaces, as root; skipped loudly elsewhere.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use muster_tests::{
    Console, Fabric, Fleet, Lacks, Load, Options, Ran, Stalls, Try, decide_where_steady, is_root, no_loss, skip,
    skip_part,
};
use serde_json::Value;

const FABRIC: Fabric = Fabric { racks: 4, nodes: 4, spines: 2, rate: 100 };
const NODES: usize = 16;
const PAIRS: u64 = 120;

fn fleet() -> Fleet {
    let mut fleet = Fleet::up(Options { nodes: 16 }).unwrap();
    fleet.weave(&FABRIC).unwrap();
    fleet
}

fn arguments<'a>(fleet: &'a Fleet, method: &'a str, routes: &'a str) -> Vec<&'a str> {
    let _ = fleet;
    vec!["pairs", "--scan", method, "--routes", routes, "--profile", "smoke", "--quiet", "--json"]
}

fn scan(fleet: &Fleet, console: &Console, method: &str) -> (Value, Option<i32>) {
    let routes = fleet.path("routes.csv");
    let ran = console.run(&[&arguments(fleet, method, &routes)[..], &["--new"]].concat()).unwrap();
    (ran.json().unwrap_or_else(|e| panic!("{e}: {}", ran.err)), ran.code)
}

/// When each direction of each pair of the newest scan was measured in its rounds, without second looks.
struct Visit {
    ends: [String; 2],
    round: String,
    begin_ms: f64,
    end_ms: f64,
}

fn visits(console: &Console) -> Vec<Visit> {
    let ran = console.run(&["pairs", "--run", "--visits"]).unwrap();
    let rows = ran.out.lines().skip(1);
    let visit = |row: &str| {
        let fields: Vec<&str> = row.split(',').collect();
        assert_eq!(fields[6], "done", "{row}");
        let error: f64 = fields[5].parse().unwrap();
        assert!(error < 1000.0, "{row}");
        Visit {
            ends: [fields[0].to_owned(), fields[1].to_owned()],
            round: fields[2].to_owned(),
            begin_ms: fields[3].parse().unwrap(),
            end_ms: fields[4].parse().unwrap(),
        }
    };
    rows.map(visit).filter(|visit| visit.round.parse::<usize>().unwrap() < NODES).collect()
}

#[test]
fn a_full_scan_killed_in_the_middle_ends_in_one_round_less_than_nodes_with_no_node_in_two_pairs_at_once() {
    if !is_root() {
        return skip(
            "a_full_scan_killed_in_the_middle_ends_in_one_round_less_than_nodes_with_no_node_in_two_pairs_at_once",
            Lacks::Root,
            "for namespaces",
        );
    }
    let fleet = fleet();
    let console = fleet.console();
    let routes = fleet.path("routes.csv");
    let arguments = arguments(&fleet, "full", &routes);
    let mut running = console.start(&arguments).unwrap();
    let deadline = Instant::now() + Duration::from_secs(900);
    let before = loop {
        assert!(Instant::now() < deadline, "no round was ever recorded");
        std::thread::sleep(Duration::from_millis(200));
        let seen = console.run(&["pairs", "--run", "--json"]).unwrap();
        let Ok(seen) = seen.json() else { continue };
        if seen["run"]["rounds"].as_u64().unwrap() >= 3 {
            break seen;
        }
    };
    running.kill().unwrap();
    running.wait().unwrap();
    let old: BTreeMap<[String; 2], String> =
        visits(&console).into_iter().map(|v| (v.ends, format!("{:.3}", v.begin_ms))).collect();
    assert!(old.len() < 2 * PAIRS as usize, "the scan was over before it could be killed");

    let ran: Ran = console.start(&arguments).unwrap().wait_with_output().unwrap().into();
    let report = ran.json().unwrap();
    assert_eq!(report["run"]["id"], before["run"]["id"], "the scan is taken up and not begun anew");
    assert_eq!((report["run"]["visits"].as_u64(), report["run"]["failed"].as_u64()), (Some(PAIRS), Some(0)));
    assert_eq!(report["run"]["rounds"].as_u64(), Some(NODES as u64 - 1));
    let all = visits(&console);
    let now: BTreeMap<&[String; 2], String> = all.iter().map(|v| (&v.ends, format!("{:.3}", v.begin_ms))).collect();
    assert!(old.iter().all(|(pair, begin)| now.get(pair) == Some(begin)), "an acknowledged pair was measured again");
    check_rounds(&all);
}

/// From the instants that the nodes themselves told: every node is in one pair at a time, and the pairs of a round overlap.
fn check_rounds(visits: &[Visit]) {
    let mut rounds: BTreeMap<&str, Vec<&Visit>> = BTreeMap::new();
    visits.iter().for_each(|visit| rounds.entry(&visit.round).or_default().push(visit));
    assert_eq!(rounds.len(), NODES - 1);
    for (round, members) in &rounds {
        let pairs: BTreeSet<BTreeSet<&String>> = members.iter().map(|v| v.ends.iter().collect()).collect();
        let nodes: BTreeSet<&String> = pairs.iter().flatten().copied().collect();
        assert_eq!((pairs.len(), nodes.len()), (NODES / 2, NODES), "round {round}");
        let last_begin = members.iter().map(|v| v.begin_ms).fold(0.0, f64::max);
        let first_end = members.iter().map(|v| v.end_ms).fold(f64::INFINITY, f64::min);
        assert!(last_begin < first_end, "the pairs of round {round} did not run at the same time");
    }
    let mut of_node: BTreeMap<&str, BTreeMap<&str, (f64, f64)>> = BTreeMap::new();
    for visit in visits {
        // Both directions of a pair are one visit.
        let peer = of_node.entry(&visit.ends[0]).or_default().entry(&visit.ends[1]).or_insert((f64::MAX, 0.0));
        *peer = (peer.0.min(visit.begin_ms), peer.1.max(visit.end_ms));
    }
    for (node, peers) in of_node {
        let mut times: Vec<(f64, f64)> = peers.into_values().collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{node} was in two pairs at once: {times:?}");
    }
}

/// What is broken.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    UplinkRate,
    UplinkLoss,
    HalfNic,
    SlowReceiver,
    Dead,
    Two,
}

const FAULTS: [Fault; 7] =
    [Fault::None, Fault::UplinkRate, Fault::UplinkLoss, Fault::HalfNic, Fault::SlowReceiver, Fault::Dead, Fault::Two];

const METHODS: [&str; 2] = ["full", "bisect"];

/// The faults that can be made here.
fn faults(test: &str) -> Vec<Fault> {
    let Some(why) = no_loss() else { return FAULTS.to_vec() };
    skip_part(test, "UplinkLoss", Lacks::Tool, why);
    FAULTS.into_iter().filter(|fault| !matches!(fault, Fault::UplinkLoss)).collect()
}

/// Where a fault of this seed is: leaf and spine of an uplink, and a node.
fn places(seed: u8) -> ((u8, u8), (u8, u8)) {
    ((seed % 4 + 1, seed / 4 % 2 + 1), ((seed + 2) % 4 + 1, seed * 3 % 4 + 1))
}

/// Breaks or heals, and says what must be named.
fn set(fleet: &Fleet, fault: Fault, seed: u8, broken: bool) -> BTreeSet<String> {
    let ((leaf, spine), node) = places(seed);
    let rate = FABRIC.rate;
    let slow = |share| if broken { rate * share / 100 } else { rate };
    let uplink = format!("uplink leaf{leaf}-spine{spine}");
    let name = FABRIC.name(node.0, node.1);
    if !broken {
        fleet.heal_uplink(leaf, spine).unwrap();
    }
    let named = match fault {
        Fault::None => Vec::new(),
        Fault::UplinkRate => {
            if broken {
                fleet.uplink_rate(leaf, spine, slow(30)).unwrap();
            }
            vec![uplink]
        }
        Fault::UplinkLoss => {
            if broken {
                fleet.uplink_loss(leaf, spine).unwrap();
            }
            vec![uplink]
        }
        Fault::HalfNic => {
            fleet.nic_rate(node, &FABRIC, slow(50)).unwrap();
            vec![format!("node {name}")]
        }
        Fault::SlowReceiver => {
            fleet.receive_rate(node, slow(40)).unwrap();
            vec![format!("node_rx {name}")]
        }
        Fault::Dead => {
            fleet.plug_fabric(node, !broken).unwrap();
            vec![format!("node {name}")]
        }
        Fault::Two => {
            if broken {
                fleet.uplink_rate(leaf, spine, slow(30)).unwrap();
            }
            fleet.receive_rate(node, slow(40)).unwrap();
            vec![uplink, format!("node_rx {name}")]
        }
    };
    named.into_iter().collect()
}

/// Kind and name of every suspect that a run fails for, whatever metric showed it.
fn named(report: &Value) -> BTreeSet<String> {
    let suspects = report["suspects"].as_array().unwrap();
    let sure = suspects.iter().filter(|s| s["confidence"].as_f64().unwrap() >= 0.9);
    sure.map(|s| format!("{} {}", s["kind"].as_str().unwrap(), s["element"].as_str().unwrap())).collect()
}

/// One scan held against what is expected. A busy machine may leave doubts.
fn tried(fleet: &Fleet, one: &mut dyn FnMut() -> Value, expected: &BTreeSet<String>) -> Try {
    let load = Load::start(Some(fleet));
    let report = one();
    let (found, others) = (named(&report), load.others(Some(fleet)));
    let accused: Vec<String> = found.difference(expected).cloned().collect();
    let open = (found != *expected).then(|| format!("{found:?} instead of {expected:?}"));
    if !accused.is_empty() {
        println!("{report:#}");
    }
    Try { accused, ..Try::new(open, others) }
}

#[test]
fn every_fault_is_named_by_the_bisection_with_fewer_pairs_and_by_the_full_scan() {
    const TEST: &str = "every_fault_is_named_by_the_bisection_with_fewer_pairs_and_by_the_full_scan";
    if !is_root() {
        return skip(TEST, Lacks::Root, "for namespaces");
    }
    let fleet = fleet();
    let console = fleet.console();
    // The others are for the count over many seeds.
    let here = |fault: &Fault| matches!(fault, Fault::None | Fault::UplinkRate | Fault::HalfNic | Fault::Dead);
    for (fault, seed) in FAULTS.into_iter().filter(here).zip(1..) {
        let expected = set(&fleet, fault, seed, true);
        // A full scan takes three times as long: all faults by both are for the count over many seeds.
        let full = matches!(fault, Fault::UplinkRate);
        for method in METHODS.into_iter().filter(|method| full || *method == "bisect") {
            let mut one = || {
                let (report, code) = scan(&fleet, &console, method);
                let pairs = report["run"]["visits"].as_u64().unwrap();
                assert!(method == "full" || pairs < PAIRS, "{fault:?}: {pairs} pairs");
                assert!(named(&report).is_empty() || code == Some(2), "{fault:?} by {method}: {code:?}");
                report
            };
            decide_where_steady(&format!("{TEST}, {fault:?} by {method}"), 3, || tried(&fleet, &mut one, &expected));
        }
        set(&fleet, fault, seed, false);
    }
}

#[test]
fn a_node_that_does_not_answer_is_left_out_and_the_others_are_measured() {
    const TEST: &str = "a_node_that_does_not_answer_is_left_out_and_the_others_are_measured";
    if !is_root() {
        return skip(TEST, Lacks::Root, "for namespaces");
    }
    let mut fleet = fleet();
    fleet.node("n006").kill();
    let console = fleet.console();
    let mut one = || {
        let (report, code) = scan(&fleet, &console, "quick");
        let left_out = report["run"]["left_out"].as_array().unwrap();
        assert_eq!((left_out.len(), left_out[0]["node"].as_str()), (1, Some("n006")), "{report:#}");
        assert_ne!(code, Some(0), "a node of which nothing is known is no pass");
        assert_eq!(code == Some(3), named(&report).is_empty(), "{report:#}");
        report
    };
    decide_where_steady(TEST, 3, || tried(&fleet, &mut one, &BTreeSet::new()));
}

#[test]
fn one_slow_nic_of_several_is_named_with_its_rail() {
    if !is_root() {
        return skip("one_slow_nic_of_several_is_named_with_its_rail", Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 8 }).unwrap();
    fleet.add_rails(8, 2, 100).unwrap();
    fleet.rail_rate(5, 1, 40).unwrap();
    let console = fleet.console();
    let arguments = ["pairs", "--scan", "full", "--profile", "smoke", "--quiet", "--json", "--new"];
    let expected = BTreeSet::from(["nic n005:rail1".to_owned()]);
    let mut one = || {
        let report = console.run(&arguments).unwrap().json().unwrap();
        assert_eq!((report["run"]["rounds"].as_u64(), report["run"]["visits"].as_u64()), (Some(7), Some(56)));
        report
    };
    decide_where_steady("one_slow_nic_of_several_is_named_with_its_rail", 3, || tried(&fleet, &mut one, &expected));
}

/// `MUSTER_FAULT=UplinkLoss MUSTER_SEEDS=10 tests/campaign network`; with `MUSTER_STALL_MS=60` the machine stands still for 60 of
/// every 120 ms.
#[test]
#[ignore = "a campaign: tests/campaign network"]
fn faults_over_many_seeds() {
    if !is_root() {
        return skip("faults_over_many_seeds", Lacks::Root, "for namespaces");
    }
    let number = |name: &str, usual| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (first, seeds) = (number("MUSTER_FIRST_SEED", 0), number("MUSTER_SEEDS", 10));
    let fleet = fleet();
    let console = fleet.console();
    let stalls = number("MUSTER_STALL_MS", 0) as u32;
    let _stalls = (stalls > 0).then(|| Stalls::start(stalls).unwrap());
    println!("| fault | method | exact | something else named | undecided | pairs |\n|---|---|---|---|---|---|");
    let only = |name: &str, of: &str| of.contains(&std::env::var(name).unwrap_or_default());
    for fault in
        faults("faults_over_many_seeds").into_iter().filter(|fault| only("MUSTER_FAULT", &format!("{fault:?}")))
    {
        let methods = METHODS.into_iter().chain(["quick"]);
        for method in methods.filter(|method| only("MUSTER_METHOD", method)) {
            let (mut exact, mut wrong, mut undecided, mut pairs) = (0, 0, 0, 0);
            for seed in first..first + seeds {
                let expected = set(&fleet, fault, seed, true);
                let (report, _) = scan(&fleet, &console, method);
                let found = named(&report);
                exact += u32::from(found == expected);
                wrong += u32::from(!found.is_subset(&expected));
                undecided += u32::from(!report["undecided"].as_array().unwrap().is_empty());
                pairs += ["visits", "again"].iter().map(|key| report["run"][key].as_u64().unwrap()).sum::<u64>();
                let (suspects, run) = (&report["suspects"], &report["run"]);
                eprintln!(
                    "{fault:?} seed {seed} by {method}: wanted {expected:?}, found {found:?} of {suspects}; {run}"
                );
                set(&fleet, fault, seed, false);
            }
            if let Ok(kept) = std::env::var("MUSTER_KEEP") {
                std::process::Command::new("cp").args(["-r", &fleet.path("db"), &kept]).status().unwrap();
            }
            let mean = pairs as f64 / f64::from(seeds);
            println!("| {fault:?} | {method} | {exact} of {seeds} | {wrong} | {undecided} | {mean:.0} |");
        }
    }
}
