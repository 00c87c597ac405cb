//! Which adapter or GPU counted errors while the job was looked at, as no other node's did?
//!
//! A counter since boot tells of years; what it grew by in ten seconds is of now. Some errors accuse by one (memory that is lost, a
//! link that went down); of the others a working machine counts some, so they must be more than a limit and five times the middle of
//! all nodes. What more than two nodes count is how they are built or used.

use std::collections::BTreeMap;

use muster_wire::{Counter, Processes};

use super::case::Case;
use super::layout::Layout;
use super::report::Kind;
use muster_logs::Category;

/// Nodes without whose counts nothing that grows everywhere is told from a fault.
const PEERS: usize = 3;
/// Times the growth of the middle node.
const APART: f64 = 5.0;
/// More nodes than this that count the same share a cause.
const FEW: usize = 2;
/// Share of the time for which clocks may be held down.
const HELD: f64 = 0.01;

/// When growth is more than a working machine's.
#[derive(Clone, Copy)]
enum Limit {
    /// From one on, whatever others count.
    One,
    /// From this many on in ten seconds, and far above the middle node.
    Most(f64),
    /// Milliseconds, for more than [`HELD`] of the time, and far above the middle node.
    Held,
}

struct Rule {
    name: &'static str,
    limit: Limit,
    what: &'static str,
    category: Category,
}

const fn rule(name: &'static str, limit: Limit, what: &'static str, category: Category) -> Rule {
    Rule { name, limit, what, category }
}

/// Limits of errors in ten seconds: those of the Validator's checks over a benchmark (DCGM), which takes about as long.
const GPU: [Rule; 14] = [
    rule("ecc.uncorrected", Limit::One, "memory errors that could not be corrected", Category::HardwareCritical),
    rule("remap.uncorrected", Limit::One, "rows of memory replaced for uncorrected errors", Category::HardwareCritical),
    rule("pcie.fatal", Limit::One, "fatal PCIe errors", Category::HardwareCritical),
    rule("nvlink.lost", Limit::One, "NVLinks lost", Category::HardwareCritical),
    rule("nvlink.recoveries", Limit::One, "NVLinks trained again", Category::HardwareCritical),
    rule("nvlink.retrained", Limit::One, "NVLinks trained again", Category::HardwareCritical),
    rule("nvlink.crc", Limit::Most(100.0), "NVLink CRC errors", Category::SlowLink),
    rule("nvlink.replays", Limit::Most(100.0), "NVLink replays", Category::SlowLink),
    rule("pcie.replays", Limit::Most(80.0), "PCIe replays", Category::SlowGpu),
    rule("held.heat", Limit::Held, "ms of clocks held down by heat", Category::SlowGpu),
    rule("held.hardware", Limit::Held, "ms of clocks held down by heat, in hardware", Category::SlowGpu),
    rule("held.brake", Limit::Held, "ms of clocks held down by the power brake", Category::SlowGpu),
    rule("held.board", Limit::Held, "ms of clocks held down by the board", Category::SlowGpu),
    rule("held.reliability", Limit::Held, "ms of clocks held down for reliability", Category::SlowGpu),
];
const ADAPTER: [Rule; 9] = [
    rule("link_downed", Limit::One, "times its link went down", Category::SlowLink),
    rule("symbol_error", Limit::Most(10.0), "symbol errors", Category::SlowLink),
    rule("port_rcv_errors", Limit::Most(10.0), "packets received with errors", Category::SlowLink),
    rule("local_ack_timeout_err", Limit::Most(10.0), "acknowledgements that did not come in time", Category::SlowLink),
    rule("out_of_sequence", Limit::Most(100.0), "packets out of sequence", Category::SlowLink),
    rule("rx_errors", Limit::Most(10.0), "packets received with errors", Category::SlowLink),
    rule("tx_errors", Limit::Most(10.0), "packets that could not be sent", Category::SlowLink),
    rule("rx_dropped", Limit::Most(100.0), "received packets dropped", Category::SlowLink),
    rule("tx_dropped", Limit::Most(100.0), "packets to be sent dropped", Category::SlowLink),
];

/// A counter that grew as no other node's did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Grown {
    /// On which node.
    pub node: String,
    /// Of which adapter or GPU: `mlx5_0/1`, `GPU 3`.
    pub device: String,
    /// Number of the GPU.
    pub gpu: Option<u32>,
    /// What is said: `GPU 3 of n7: 2 memory errors that could not be corrected within 10 s; the middle of 8 nodes: 0`.
    pub sentence: String,
    /// What it comes to where nothing else tells.
    pub category: Category,
}

impl Grown {
    /// What is suspected then.
    pub(super) fn kind(&self) -> Kind {
        if self.gpu.is_some() { Kind::Gpu } else { Kind::Nic }
    }

    /// Whether it speaks against what is suspected on its node, and is not some other trouble.
    pub(super) fn fits(&self, kind: Kind, gpu: Option<u32>) -> bool {
        match kind {
            Kind::Node => true,
            Kind::Link | Kind::Nic => self.gpu.is_none() || self.category == Category::SlowLink,
            Kind::Gpu => self.gpu.is_some() && (gpu.is_none() || gpu == self.gpu),
            _ => false,
        }
    }
}

/// What grew, worst first: what is broken before what is slow.
#[derive(Clone, Debug, Default)]
pub(super) struct Growth {
    /// Nodes whose counters were read twice.
    pub nodes: usize,
    /// What accuses.
    pub grown: Vec<Grown>,
}

impl Growth {
    /// Of the nodes of the job.
    pub(super) fn of(case: &Case, layout: &Layout) -> Self {
        let told = case.processes.iter().map(|(node, told)| (layout.node(node), told));
        let told: Vec<(String, &Processes)> = told.filter(|(_, told)| !told.counters.is_empty()).collect();
        let rules = || GPU.iter().map(|rule| (true, rule)).chain(ADAPTER.iter().map(|rule| (false, rule)));
        let mut grown: Vec<Grown> = rules().flat_map(|(gpus, rule)| by_rule(&told, gpus, rule)).collect();
        grown.sort_by(|a, b| (a.category, &a.node).cmp(&(b.category, &b.node)));
        Self { nodes: told.len(), grown }
    }

    /// What grew on a node.
    pub(super) fn of_node<'a>(&'a self, node: Option<&'a str>) -> impl Iterator<Item = &'a Grown> {
        self.grown.iter().filter(move |grown| Some(grown.node.as_str()) == node)
    }
}

/// Seconds between both readings.
fn seconds(told: &Processes, counter: &Counter) -> f64 {
    counter.seconds.unwrap_or(told.seconds)
}

fn by_rule(told: &[(String, &Processes)], gpus: bool, rule: &Rule) -> Vec<Grown> {
    let of = |counter: &&Counter| counter.name == rule.name && number(&counter.device).is_some() == gpus;
    // Counters that went back were set to zero meanwhile.
    let by = |counter: &Counter| (counter.last - counter.first).max(0.0);
    let worst = |told: &Processes| told.counters.iter().filter(of).map(by).fold(0.0, f64::max);
    let middle = {
        let mut all: Vec<f64> = told.iter().map(|(_, told)| worst(told)).collect();
        super::clock::median(&mut all)
    };
    let far = |by: f64| told.len() >= PEERS && by > APART * middle;
    let too_much = |told: &Processes, counter: &Counter| {
        let (by, seconds) = (by(counter), seconds(told, counter));
        match rule.limit {
            Limit::One => by >= 1.0,
            Limit::Most(most) => by > most * (seconds / 10.0).max(1.0) && far(by),
            Limit::Held => by > HELD * seconds * 1e3 && seconds > 0.0 && far(by),
        }
    };
    let mut nodes: BTreeMap<&str, Vec<Grown>> = BTreeMap::new();
    for (node, told) in told {
        for counter in told.counters.iter().filter(of).filter(|counter| too_much(told, counter)) {
            nodes.entry(node).or_default().push(Grown {
                node: node.clone(),
                device: counter.device.clone(),
                gpu: number(&counter.device),
                sentence: format!(
                    "{} of {node}: {:.0} {} within {:.0} s",
                    counter.device,
                    by(counter),
                    rule.what,
                    seconds(told, counter)
                ),
                category: rule.category,
            });
        }
    }
    let others = match told.len() {
        0 | 1 => String::new(),
        nodes => format!("; the middle of {nodes} nodes: {middle:.0}"),
    };
    if nodes.len() > FEW {
        return Vec::new();
    }
    let mut grown: Vec<Grown> = nodes.into_values().flatten().collect();
    grown.iter_mut().for_each(|grown| grown.sentence.push_str(&others));
    grown
}

/// The number of a GPU: `GPU 3`.
fn number(device: &str) -> Option<u32> {
    device.strip_prefix("GPU ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Alerted, Job, Member};
    use crate::diagnose;
    use crate::report::{Report, Source};
    use muster_logs::Rules;

    /// One node for each list of counters, which grew by so much.
    fn case(nodes: &[&[(&str, &str, f64)]]) -> Case {
        let node = |at: usize| format!("n{at}");
        let counter = |(device, name, by): &(&str, &str, f64)| Counter {
            device: (*device).to_owned(),
            name: (*name).to_owned(),
            first: 1000.0,
            last: 1000.0 + by,
            seconds: None,
        };
        let told = |counters: &[(&str, &str, f64)]| Processes {
            seconds: 10.0,
            counters: counters.iter().map(counter).collect(),
            ..Processes::default()
        };
        let member = |at: usize| Member { rank: at as u32, node: Some(node(at)), ..Member::default() };
        Case {
            job: Job { members: (0..nodes.len()).map(member).collect(), ..Job::default() },
            processes: nodes.iter().enumerate().map(|(at, counters)| (node(at), told(counters))).collect(),
            ..Case::default()
        }
    }

    fn told(case: &Case) -> Report {
        diagnose(case, &Rules::built_in().unwrap())
    }

    fn grown(case: &Case) -> Vec<(String, String)> {
        Growth::of(case, &Layout::of(case)).grown.into_iter().map(|grown| (grown.node, grown.device)).collect()
    }

    fn of(node: &str, device: &str) -> Vec<(String, String)> {
        vec![(node.to_owned(), device.to_owned())]
    }

    #[test]
    fn one_error_that_no_working_part_counts_accuses_by_itself() {
        for (device, name) in [("GPU 3", "ecc.uncorrected"), ("GPU 3", "nvlink.lost"), ("mlx5_0/1", "link_downed")] {
            let quiet = (device, name, 0.0);
            assert_eq!(grown(&case(&[&[quiet], &[(device, name, 1.0)]])), of("n1", device), "{name}");
            assert_eq!(grown(&case(&[&[quiet], &[quiet]])), [], "{name}");
        }
    }

    #[test]
    fn errors_that_happen_accuse_only_far_above_the_limit_and_the_other_nodes() {
        let drops = |by| ("eth0", "rx_dropped", by);
        let nodes = |a, b, c, d| grown(&case(&[&[drops(a)], &[drops(b)], &[drops(c)], &[drops(d)]]));
        assert_eq!(nodes(0.0, 3.0, 5000.0, 1.0), of("n2", "eth0"));
        assert_eq!(nodes(0.0, 3.0, 90.0, 1.0), [], "below the limit");
        assert_eq!(nodes(900.0, 1100.0, 3000.0, 1000.0), [], "everybody drops");
        assert_eq!(nodes(5000.0, 5000.0, 5000.0, 0.0), [], "most of them do");
        assert_eq!(
            grown(&case(&[&[drops(0.0)], &[drops(5000.0)]])),
            [],
            "two nodes cannot say who is unlike the others"
        );
    }

    #[test]
    fn a_gpu_that_heat_holds_down_is_told_by_the_share_of_the_time() {
        let held = |by| ("GPU 1", "held.heat", by);
        let mut hot = case(&[&[held(0.0)], &[held(250.0)], &[held(10.0)]]);
        assert_eq!(grown(&hot), of("n1", "GPU 1"));
        // The readings were a minute apart.
        hot.processes.get_mut("n1").unwrap().counters[0].seconds = Some(60.0);
        assert_eq!(grown(&hot), []);
        assert_eq!(grown(&case(&[&[held(250.0)], &[held(240.0)], &[held(260.0)]])), [], "the hall is hot");
    }

    #[test]
    fn corrected_errors_and_power_are_told_of_nobody_and_a_counter_that_went_back_neither() {
        let quiet: &[(&str, &str, f64)] = &[("GPU 0", "ecc.corrected", 0.0)];
        for counter in
            [("GPU 0", "ecc.corrected", 9e6), ("GPU 0", "held.power", 9e3), ("GPU 0", "ecc.uncorrected", -5.0)]
        {
            assert_eq!(grown(&case(&[quiet, &[counter], quiet])), [], "{counter:?}");
        }
        assert_eq!(
            grown(&case(&[&[("eth0", "ecc.uncorrected", 3.0)], quiet, quiet])),
            [],
            "an adapter has no such counter"
        );
    }

    #[test]
    fn where_nothing_else_tells_the_part_is_a_suspect_with_little() {
        let quiet: &[(&str, &str, f64)] = &[("GPU 3", "ecc.uncorrected", 0.0)];
        let report = told(&case(&[quiet, &[("GPU 3", "ecc.uncorrected", 2.0)], quiet]));
        assert_eq!(report.category, Category::HardwareCritical, "{report:#?}");
        let suspect = &report.suspects[0];
        assert_eq!((suspect.kind, suspect.node.as_deref(), suspect.gpu), (Kind::Gpu, Some("n1"), Some(3)));
        assert_eq!((suspect.confidence, suspect.evidence[0].source), (0.60, Source::Counter));
        let text = "GPU 3 of n1: 2 memory errors that could not be corrected within 10 s; the middle of 3 nodes: 0";
        assert_eq!(suspect.evidence[0].text, text);
        let quiet = told(&case(&[quiet, quiet, quiet]));
        let step = quiet.steps.iter().find(|done| done.step == "error-counters").unwrap();
        assert_eq!(
            (step.result.as_str(), quiet.suspects.len()),
            ("on 3 nodes no part counts errors that the others do not", 0)
        );
    }

    #[test]
    fn errors_that_grow_speak_for_a_machine_that_is_suspected_already() {
        let quiet: &[(&str, &str, f64)] = &[("mlx5_0/1", "symbol_error", 0.0)];
        let mut case = case(&[quiet, &[("mlx5_0/1", "symbol_error", 4000.0)], quiet]);
        case.alerts.push(Alerted { node: "n1".to_owned(), since_s: 1e9, ..Alerted::default() });
        let report = told(&case);
        assert_eq!((report.suspects[0].node.as_deref(), report.suspects[0].confidence), (Some("n1"), 0.84));
        case.alerts[0].node = "n2".to_owned();
        assert_eq!(told(&case).suspects[0].confidence, 0.60);
    }

    #[test]
    fn every_counter_of_a_gpu_that_accuses_is_one_that_nodes_send() {
        for rule in &GPU {
            assert!(muster_wire::GPU_COUNTERS.contains(&rule.name), "{}", rule.name);
        }
    }

    #[test]
    fn what_a_part_counts_speaks_against_that_part_and_of_the_node_as_a_whole() {
        let of =
            |gpu, category| Grown { node: "n1".into(), device: String::new(), gpu, sentence: String::new(), category };
        let adapter = of(None, Category::SlowLink);
        let (memory, nvlink) = (of(Some(3), Category::HardwareCritical), of(Some(3), Category::SlowLink));
        assert_eq!((adapter.kind(), memory.kind()), (Kind::Nic, Kind::Gpu));
        let fits = |grown: &Grown| {
            [Kind::Node, Kind::Link, Kind::Nic, Kind::Gpu, Kind::Rank, Kind::Storage].map(|kind| grown.fits(kind, None))
        };
        assert_eq!(fits(&adapter), [true, true, true, false, false, false]);
        assert_eq!(fits(&memory), [true, false, false, true, false, false]);
        assert_eq!(fits(&nvlink), [true, true, true, true, false, false]);
        assert!(memory.fits(Kind::Gpu, Some(3)) && !memory.fits(Kind::Gpu, Some(2)), "another GPU of that node");
    }

    #[test]
    fn growth_is_more_than_the_limit_of_ten_seconds_and_more_than_five_times_the_middle_of_three_nodes_or_more() {
        let drops = |by| [("eth0", "rx_dropped", by)];
        let of = |by: f64, others: f64| grown(&case(&[&drops(others), &drops(by), &drops(others)])).len();
        assert_eq!((of(100.0, 0.0), of(101.0, 0.0)), (0, 1));
        assert_eq!((of(250.0, 50.0), of(251.0, 50.0)), (0, 1));
        let over = |seconds: f64, by: f64| {
            let mut case = case(&[&drops(0.0), &drops(by), &drops(0.0)]);
            case.processes.values_mut().for_each(|told| told.seconds = seconds);
            grown(&case).len()
        };
        assert_eq!((over(30.0, 300.0), over(30.0, 301.0)), (0, 1), "in thirty seconds three times as many");
        assert_eq!((over(2.0, 100.0), over(2.0, 101.0)), (0, 1), "in two seconds no fewer");
        let held = |by| [("GPU 0", "held.heat", by)];
        let of = |by: f64| grown(&case(&[&held(0.0), &held(by), &held(0.0)])).len();
        assert_eq!((of(100.0), of(101.0)), (0, 1), "a hundredth of ten seconds");
        let mut at_once = case(&[&held(0.0), &held(101.0), &held(0.0)]);
        at_once.processes.values_mut().for_each(|told| told.seconds = 0.0);
        assert_eq!(grown(&at_once), [], "of no time nothing has a share");
    }

    #[test]
    fn a_link_that_three_nodes_lose_at_once_accuses_none_of_them_and_one_that_two_lose_both() {
        let lost = |by| [("mlx5_0/1", "link_downed", by)];
        let of = |by: [f64; 4]| grown(&case(&by.map(lost).iter().map(<[_; 1]>::as_slice).collect::<Vec<_>>())).len();
        assert_eq!((of([1.0, 1.0, 0.0, 0.0]), of([1.0, 1.0, 1.0, 0.0])), (2, 0));
    }

    #[test]
    fn nodes_that_sent_no_counters_are_not_among_those_that_are_compared() {
        let drops = |by| [("eth0", "rx_dropped", by)];
        let case = case(&[&drops(0.0), &drops(5000.0), &drops(0.0), &[]]);
        assert_eq!((Growth::of(&case, &Layout::of(&case)).nodes, grown(&case)), (3, of("n1", "eth0")));
    }
}
