//! Offline diagnosis of real nodes with real faults, as root; skipped loudly elsewhere.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::time::Instant;

use muster_tests::{Console, Fabric, Fleet, Lacks, Options, conforms, is_root, no_loss, skip};
use serde_json::{Value, json};

const NODES: u8 = 4;

/// What is said of the nodes, in the published form, and the exit code.
fn diagnosed(console: &Console, more: &[&str]) -> (Value, Option<i32>) {
    let arguments = ["triage", "offline", "--timeout", "6", "--json"];
    let ran = console.run(&[&arguments, more].concat()).unwrap();
    let report = ran.json().unwrap_or_else(|why| panic!("{why}: {}", ran.err));
    conforms("muster.triage-offline.json", &report, &ran.err);
    (report, ran.code)
}

/// Names of the steps that were gone through.
fn steps(report: &Value) -> Vec<&str> {
    report["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect()
}

#[test]
fn what_makes_a_job_hang_is_named_by_halves_be_it_a_node_or_a_way_between_two() {
    let name = "what_makes_a_job_hang_is_named_by_halves_be_it_a_node_or_a_way_between_two";
    if !is_root() {
        return skip(name, Lacks::Root, "for namespaces");
    }
    if let Some(lacks) = no_loss() {
        return skip(name, Lacks::Tool, lacks);
    }
    let mut fleet = Fleet::up(Options { nodes: NODES }).unwrap();
    let console = fleet.console();
    let addresses: Vec<String> = (0..NODES.into()).map(|place| fleet.address(place).to_owned()).collect();
    let others: Vec<&str> = addresses.iter().map(String::as_str).filter(|own| *own != addresses[2]).collect();

    // Connections come about and short messages arrive, and every sum of the training waits for ever.
    fleet.node("n003").drop_long_packets(&others).unwrap();
    let (report, code) = diagnosed(&console, &["--skip-self-tests"]);
    assert_eq!(code, Some(2), "{report:#}");
    assert_eq!(steps(&report), ["reference-job", "halving"]);
    assert_eq!(report["culprits"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!(report["culprits"][0]["nodes"], json!(["n003"]), "{report:#}");

    // The ring of the training goes from each node to the next.
    fleet.node("n003").drop_long_packets(&[&addresses[3]]).unwrap();
    let (report, code) = diagnosed(&console, &["--skip-self-tests"]);
    assert_eq!(code, Some(2), "{report:#}");
    let culprits = report["culprits"].as_array().unwrap();
    assert_eq!(culprits.len(), 1, "{report:#}");
    assert_eq!(
        (&culprits[0]["kind"], &culprits[0]["nodes"], &culprits[0]["with"]),
        (&json!("way"), &json!(["n003"]), &json!(["n004"])),
        "{report:#}"
    );

    let runs = console.run(&["runs", "--json"]).unwrap().json().unwrap();
    assert!(runs["runs"].as_array().unwrap().len() >= 6, "every run of the search is kept: {runs:#}");
}

/// Two leaves of four nodes, under one spine.
const FABRIC: Fabric = Fabric { racks: 2, nodes: 4, spines: 1, rate: 200 };
/// The one that is hurt, and its place in the fabric.
const VICTIM: (&str, (u8, u8)) = ("n006", (2, 2));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    LongPackets,
    SlowCpu,
    SlowLink,
    Uplink,
}

impl Fault {
    const ALL: [Self; 5] = [Self::Nothing, Self::LongPackets, Self::SlowCpu, Self::SlowLink, Self::Uplink];

    const fn done(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::LongPackets => "a node drops packets of more than 1,000 bytes",
            Self::SlowCpu => "half the CPU of a node",
            Self::SlowLink => "link of a node at a tenth (20 Mbit/s)",
            Self::Uplink => "uplink of a leaf lets nothing through",
        }
    }

    fn hurt(self, fleet: &mut Fleet) {
        let (name, place) = VICTIM;
        match self {
            Self::Nothing => {}
            Self::LongPackets => fleet.node(name).drop_long_packets(&["10.80.0.0/15"]).unwrap(),
            Self::SlowCpu => fleet.node(name).limit_cpu(12).unwrap(),
            Self::SlowLink => fleet.nic_rate(place, &FABRIC, FABRIC.rate / 10).unwrap(),
            Self::Uplink => fleet.cut_uplink(2, 1).unwrap(),
        }
    }

    /// Whether `report` names what was hurt and nothing else.
    fn is_named(self, report: &Value) -> bool {
        let culprits = report["culprits"].as_array().unwrap();
        let leaf = |nodes: &Value, first: usize| {
            *nodes == json!((first..first + 4).map(|n| format!("n{n:03}")).collect::<Vec<_>>())
        };
        match (self, culprits.as_slice()) {
            (Self::Nothing, []) => true,
            (Self::Nothing, _) => false,
            (Self::Uplink, [one]) => leaf(&one["nodes"], 1) && leaf(&one["with"], 5),
            (_, [one]) => one["nodes"] == json!([VICTIM.0]),
            _ => false,
        }
    }
}

#[test]
#[ignore = "a campaign: tests/campaign offline"]
fn what_is_wrong_with_the_nodes_of_a_job_is_found_without_the_job() {
    assert!(is_root(), "needs root, for namespaces");
    let setting = |name: &str| std::env::var(name).unwrap_or_default();
    let (only, times) = (setting("MUSTER_FAULTS"), setting("MUSTER_TIMES").parse().unwrap_or(1));
    println!("| done | named | by | exit | trials | seconds |\n|---|---|---|---|---|---|");
    let mut wrong = Vec::new();
    let chosen = |fault: &Fault| only.is_empty() || only.split(',').any(|one| one == format!("{fault:?}"));
    for fault in Fault::ALL.into_iter().filter(chosen).flat_map(|fault| std::iter::repeat_n(fault, times)) {
        let mut fleet = Fleet::up(Options { nodes: 8 }).unwrap();
        fleet.weave(&FABRIC).unwrap();
        let console = fleet.console();
        fault.hurt(&mut fleet);
        let begun = Instant::now();
        let (report, code) = diagnosed(&console, &[]);
        let took = begun.elapsed().as_secs_f64();
        let of = |key: &str| {
            report["culprits"].as_array().unwrap().iter().map(|one| one[key].to_string()).collect::<Vec<_>>()
        };
        println!(
            "| {} | {} | {} | {} | {} | {took:.0} |",
            fault.done(),
            of("sentence").join("; "),
            of("step").join("; "),
            code.unwrap_or(-1),
            report["trials"].as_array().unwrap().len(),
        );
        if !fault.is_named(&report) {
            println!("{report:#}");
            wrong.push(fault);
        }
    }
    assert!(wrong.is_empty(), "not named: {wrong:?}");
}
