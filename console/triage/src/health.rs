//! Which node of the job fails a health check that the others pass? The Validator's checks, over what collectors saw while the
//! job ran: those of parts that a job needs and that a busy machine passes as well as an idle one.

use std::collections::{BTreeMap, BTreeSet};

use muster_run::Record;
use muster_wire::{Datum, Fact, Looked, Outcome, Reading};

use super::case::Case;
use super::layout::Layout;
use super::report::Kind;
use muster_analysis::State;
use muster_analysis::checks::{Check, CheckResult, Severity, checks};
use muster_analysis::records::checks::{ASKED, examine};
use muster_analysis::records::{Evidence, hardware};
use muster_logs::Category;

/// What a node is asked for, the parts that may never answer last.
pub const COLLECTORS: [&str; 8] = ["identity", "cpu", "memory", "nic", "infiniband", "pcie", "gpu", "disk"];
/// A check that more nodes than this fail tells how they are built or set up.
const FEW: usize = 2;

/// A check that a node fails.
#[derive(Clone, Debug)]
pub(super) struct Ailing {
    /// Which node.
    pub node: String,
    /// Which check.
    pub check: &'static Check,
    /// What is said: `n7: nic-mtu: eth0.mtu is 1400, 5 of 6 nodes have 1500`.
    pub sentence: String,
}

impl Ailing {
    /// What it comes to where nothing else tells.
    pub(super) fn category(&self) -> Category {
        match self.check.area {
            "nic" | "infiniband" => Category::SlowLink,
            "disk" => Category::Storage,
            _ => Category::HardwareCritical,
        }
    }

    /// Whether it speaks against what is suspected, and is not some other trouble of the same node.
    pub(super) fn fits(&self, kind: Kind) -> bool {
        match kind {
            Kind::Node => true,
            Kind::Link | Kind::Nic => matches!(self.check.area, "nic" | "infiniband" | "pcie"),
            Kind::Gpu => matches!(self.check.area, "gpu" | "pcie"),
            Kind::Storage => self.check.area == "disk",
            _ => false,
        }
    }
}

/// What the checks say of the job's nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    /// Nodes that were looked at.
    pub nodes: usize,
    /// What one or two of them fail, by node.
    pub ailing: Vec<Ailing>,
    /// Checks that more of them fail, and how many do.
    pub common: Vec<(&'static Check, usize)>,
    /// What could have failed a node and was not decided: check, how many nodes, why on the first.
    pub open: Vec<(&'static Check, usize, String)>,
}

impl Health {
    /// Asks every check of every node of the job.
    pub(super) fn of(case: &Case, layout: &Layout) -> Self {
        let of_job = |node: &String| layout.members.is_empty() || layout.knows(node);
        let looked: Vec<(String, &Vec<Looked>)> = case
            .looked
            .iter()
            .map(|(node, looked)| (layout.node(node), looked))
            .filter(|(node, looked)| of_job(node) && !looked.is_empty())
            .collect();
        let records: Vec<Record> = looked.iter().flat_map(|(node, looked)| records(node, looked)).collect();
        let nodes: Vec<String> = looked.into_iter().map(|(node, _)| node).collect();
        let evidence = Evidence::new(&records);
        let groups = hardware::groups(&nodes, &evidence);
        let answers = examine(&nodes, &groups, &evidence);
        Self::told(nodes.len(), &answers)
    }

    fn told(nodes: usize, answers: &BTreeMap<&str, Vec<CheckResult>>) -> Self {
        let mut by_check: BTreeMap<&str, Vec<(&str, &CheckResult)>> = BTreeMap::new();
        for (node, results) in answers {
            results.iter().for_each(|result| by_check.entry(result.check.id).or_default().push((*node, result)));
        }
        let mut health = Self { nodes, ..Self::default() };
        for results in by_check.values() {
            let of = |state: State| results.iter().filter(move |(_, result)| result.weight() == state);
            let failed: Vec<&(&str, &CheckResult)> = of(State::Fail).collect();
            let alone = failed.len() <= FEW && (failed.len() < nodes || nodes == 1);
            let ailing = |(node, result): &&(&str, &CheckResult)| Ailing {
                node: (*node).to_owned(),
                check: result.check,
                sentence: result.sentence(node),
            };
            match failed.first() {
                Some(_) if alone => health.ailing.extend(failed.iter().map(ailing)),
                Some((_, first)) => health.common.push((first.check, failed.len())),
                None => {}
            }
            let open = || of(State::Unknown).chain(results.iter().filter(|(_, result)| result.found.denied));
            let nodes: BTreeSet<&str> = open().map(|(node, _)| *node).collect();
            if let Some((_, first)) = open().next() {
                health.open.push((first.check, nodes.len(), first.found.said.clone()));
            }
        }
        health.ailing.sort_by(|a, b| a.node.cmp(&b.node));
        health
    }

    /// What a node fails.
    pub(super) fn of_node<'a>(&'a self, node: Option<&'a str>) -> impl Iterator<Item = &'a Ailing> {
        self.ailing.iter().filter(move |ailing| Some(ailing.node.as_str()) == node)
    }
}

/// What the Validator would have kept of the same looks.
fn records(node: &str, looked: &[Looked]) -> Vec<Record> {
    let seen: BTreeSet<&str> = looked.iter().map(|looked| looked.saw.collector.as_str()).collect();
    // That nobody else computes is none of the critical ones: a node with a job on it may fail it.
    let answerable = |check: &&'static Check| {
        check.severity == Severity::Critical && check.needs.iter().all(|need| seen.contains(need))
    };
    let ids: Vec<&str> = checks().filter(answerable).map(|check| check.id).collect();
    let asked = Fact { key: "checks".to_owned(), reading: Reading::Value(Datum::Text(ids.join(" "))), unit: None };
    let record = |work: String, outcome: &Outcome, facts: Vec<Fact>| Record {
        run: String::new(),
        node: node.to_owned(),
        work,
        outcome: outcome.clone(),
        at_ms: 0,
        elapsed_ns: 0,
        series: Vec::new(),
        facts,
    };
    let of = |looked: &Looked| {
        record(format!("collect/{}", looked.saw.collector), &looked.outcome, looked.saw.facts.clone())
    };
    std::iter::once(record(ASKED.to_owned(), &Outcome::Done, vec![asked])).chain(looked.iter().map(of)).collect()
}

#[cfg(test)]
mod tests {
    use muster_analysis::checks::Found;
    use muster_wire::Facts;

    use super::*;
    use crate::case::{Alerted, Job, Member};
    use crate::diagnose;
    use crate::report::{Report, Source};
    use muster_logs::Rules;

    fn look(collector: &str, facts: &[(&str, Datum)]) -> Looked {
        let fact = |(key, datum): &(&str, Datum)| Fact {
            key: (*key).to_owned(),
            reading: Reading::Value(datum.clone()),
            unit: None,
        };
        let saw = Facts { collector: collector.to_owned(), facts: facts.iter().map(fact).collect() };
        Looked { outcome: Outcome::Done, saw }
    }

    /// Nodes whose interfaces have these MTUs; each runs a rank.
    fn case(mtus: &[f64]) -> Case {
        let node = |at: usize| format!("n{at}");
        let nic = |mtu: f64| {
            let facts = [
                ("eth0.mtu", Datum::Number(mtu)),
                ("eth0.state", Datum::Text("up".to_owned())),
                ("eth0.driver", Datum::Text("mlx5_core".to_owned())),
            ];
            vec![look("nic", &facts)]
        };
        let member = |at: usize| Member { rank: at as u32, node: Some(node(at)), ..Member::default() };
        Case {
            job: Job { members: (0..mtus.len()).map(member).collect(), ..Job::default() },
            looked: mtus.iter().enumerate().map(|(at, mtu)| (node(at), nic(*mtu))).collect(),
            ..Case::default()
        }
    }

    fn told(case: &Case) -> Report {
        diagnose(case, &Rules::built_in().unwrap())
    }

    #[test]
    fn a_node_that_fails_a_check_that_the_others_pass_is_suspected_with_little() {
        let report = told(&case(&[1500.0, 1500.0, 1400.0, 1500.0, 1500.0]));
        assert_eq!((report.category, report.suspects.len()), (Category::SlowLink, 1), "{report:#?}");
        let suspect = &report.suspects[0];
        assert_eq!((suspect.node.as_deref(), suspect.confidence), (Some("n2"), 0.60));
        assert_eq!(suspect.evidence[0].source, Source::Check);
        assert!(suspect.evidence[0].text.starts_with("n2: nic-mtu: "), "{suspect:?}");
    }

    #[test]
    fn what_many_nodes_fail_and_what_nodes_of_other_jobs_fail_accuses_nobody() {
        let healthy = told(&case(&[1500.0; 5]));
        assert_eq!((healthy.category, healthy.suspects.len()), (Category::Undecided, 0));
        let step = healthy.steps.iter().find(|done| done.step == "health-checks").unwrap();
        assert_eq!(step.result, "all 5 nodes pass");
        let mut others = case(&[1500.0, 1500.0, 1500.0, 1500.0, 1400.0]);
        others.job.members.pop();
        assert!(told(&others).suspects.is_empty());
        let layout = Layout::of(&Case::default());
        let mut full = Case::default();
        for at in 0..4 {
            let facts = [
                ("mount./.options", Datum::Text("ro".to_owned())),
                ("mount./.type", Datum::Text("ext4".to_owned())),
                ("fstab./.options", Datum::Text("rw".to_owned())),
            ];
            full.looked.insert(format!("n{at}"), vec![look("disk", &facts)]);
        }
        let health = Health::of(&full, &layout);
        assert!(health.ailing.is_empty());
        assert_eq!(
            health.common.iter().map(|(check, nodes)| (check.id, *nodes)).collect::<Vec<_>>(),
            [("filesystem-writable", 4)]
        );
    }

    #[test]
    fn a_failing_check_speaks_for_a_machine_that_is_suspected_already() {
        let mut case = case(&[1500.0, 1500.0, 1400.0, 1500.0]);
        case.alerts.push(Alerted { node: "n2".to_owned(), since_s: 1e9, ..Alerted::default() });
        let report = told(&case);
        assert_eq!((report.suspects[0].node.as_deref(), report.suspects[0].confidence), (Some("n2"), 0.84));
        case.alerts[0].node = "n1".to_owned();
        assert_eq!(told(&case).suspects[0].confidence, 0.60);
    }

    #[test]
    fn checks_that_nobody_could_decide_are_told() {
        let mut case = case(&[1500.0; 4]);
        for looked in case.looked.values_mut() {
            looked.push(Looked {
                outcome: Outcome::Failed("it did not end while the job was looked at".to_owned()),
                saw: Facts { collector: "disk".to_owned(), facts: Vec::new() },
            });
        }
        case.reached.push(crate::case::Reached { node: "n0".to_owned(), ..Default::default() });
        let report = told(&case);
        assert!(
            report.not_looked_at.iter().any(|said| said.starts_with("Health check ") && said.contains("4 of 4 nodes")),
            "{report:#?}"
        );
    }

    #[test]
    fn a_failing_check_speaks_against_what_it_is_about_and_of_the_node_as_a_whole() {
        let ailing = |area: &str| {
            let check = checks().find(|check| check.area == area).unwrap_or_else(|| panic!("no check of {area}"));
            Ailing { node: "n1".to_owned(), check, sentence: String::new() }
        };
        let kinds = [Kind::Node, Kind::Link, Kind::Nic, Kind::Gpu, Kind::Storage, Kind::Rank, Kind::UserCode];
        for (area, category, fits) in [
            ("nic", Category::SlowLink, vec![Kind::Node, Kind::Link, Kind::Nic]),
            ("infiniband", Category::SlowLink, vec![Kind::Node, Kind::Link, Kind::Nic]),
            ("pcie", Category::HardwareCritical, vec![Kind::Node, Kind::Link, Kind::Nic, Kind::Gpu]),
            ("gpu", Category::HardwareCritical, vec![Kind::Node, Kind::Gpu]),
            ("disk", Category::Storage, vec![Kind::Node, Kind::Storage]),
            ("memory", Category::HardwareCritical, vec![Kind::Node]),
        ] {
            let ailing = ailing(area);
            let told: Vec<Kind> = kinds.into_iter().filter(|kind| ailing.fits(*kind)).collect();
            assert_eq!((ailing.category(), told), (category, fits), "{area}");
        }
    }

    #[test]
    fn two_of_five_nodes_may_fail_a_check_and_three_or_both_of_two_accuse_nobody() {
        let names = |mtus: &[f64]| {
            let case = case(mtus);
            let health = Health::of(&case, &Layout::of(&case));
            let ailing: Vec<String> = health.ailing.iter().map(|ailing| ailing.node.clone()).collect();
            (ailing, health.common.iter().map(|(_, nodes)| *nodes).collect::<Vec<_>>())
        };
        let (ok, bad) = (1500.0, 1400.0);
        assert_eq!(names(&[ok, bad, ok, bad, ok, ok]), (vec!["n1".to_owned(), "n3".to_owned()], vec![]));
        assert_eq!(names(&[ok, ok, ok]), (vec![], vec![]));
    }

    /// What is made of the answers of nodes to one check: who fails it, how many do where that is common, and how many left it open.
    fn answered(states: &[(State, bool)]) -> (Vec<String>, Vec<usize>, Vec<(usize, String)>) {
        let check = checks().find(|check| check.id == "nic-mtu").unwrap();
        let result = |at: usize, &(state, denied): &(State, bool)| CheckResult {
            check,
            found: Found { state, said: format!("said by {at}"), denied },
            demanded: false,
        };
        let names: Vec<String> = (0..states.len()).map(|at| format!("n{at}")).collect();
        let answers = names.iter().zip(states).enumerate();
        let answers = answers.map(|(at, (name, state))| (name.as_str(), vec![result(at, state)])).collect();
        let health = Health::told(states.len(), &answers);
        let ailing = health.ailing.iter().map(|ailing| ailing.sentence.clone()).collect();
        let open = health.open.into_iter().map(|(_, nodes, why)| (nodes, why)).collect();
        (ailing, health.common.iter().map(|(_, nodes)| *nodes).collect(), open)
    }

    #[test]
    fn up_to_two_nodes_that_fail_what_others_pass_are_accused_and_one_that_is_alone() {
        let (pass, fail) = ((State::Pass, false), (State::Fail, false));
        let said = |nodes: &[usize]| nodes.iter().map(|at| format!("n{at}: nic-mtu: said by {at}")).collect::<Vec<_>>();
        assert_eq!(answered(&[pass, fail, pass]), (said(&[1]), vec![], vec![]));
        assert_eq!(answered(&[fail, pass, fail]), (said(&[0, 2]), vec![], vec![]));
        assert_eq!(answered(&[fail, fail]), (vec![], vec![2], vec![]), "they share how they are set up");
        assert_eq!(answered(&[fail, fail, fail, pass]), (vec![], vec![3], vec![]));
        assert_eq!(answered(&[fail]), (said(&[0]), vec![], vec![]));
        assert_eq!(answered(&[pass, pass]), (vec![], vec![], vec![]));
    }

    #[test]
    fn a_check_is_open_on_nodes_that_do_not_know_or_may_not_say() {
        let (pass, unknown, denied) = ((State::Pass, false), (State::Unknown, false), (State::Unknown, true));
        assert_eq!(answered(&[pass, unknown, unknown]).2, [(2, "said by 1".to_owned())]);
        assert_eq!(answered(&[pass, denied, pass]).2, [(1, "said by 1".to_owned())], "which is no more than a warning");
        assert_eq!(answered(&[denied, unknown, pass]).2, [(2, "said by 1".to_owned())]);
    }

    #[test]
    fn only_critical_checks_are_asked_whose_parts_were_looked_at_and_that_a_busy_machine_passes() {
        let asked = |collectors: &[&str]| {
            let looked: Vec<Looked> = collectors.iter().map(|collector| look(collector, &[])).collect();
            let records = records("n1", &looked);
            let works: Vec<String> = collectors.iter().map(|collector| format!("collect/{collector}")).collect();
            assert_eq!(records.iter().skip(1).map(|record| record.work.clone()).collect::<Vec<_>>(), works);
            let Reading::Value(Datum::Text(ids)) = &records[0].facts[0].reading else { panic!("{records:?}") };
            assert_eq!((records[0].work.as_str(), records[0].node.as_str()), (ASKED, "n1"));
            ids.split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>()
        };
        let all = asked(&COLLECTORS);
        let of = |ids: &BTreeSet<String>, is: &dyn Fn(&Check) -> bool| {
            ids.iter().filter(|id| checks().any(|check| check.id == *id && is(check))).count()
        };
        assert_eq!(of(&all, &|check| check.severity != Severity::Critical), 0);
        assert!(all.contains("nic-mtu") && !all.contains("gpu-idle") && all.len() > 10, "{all:?}");
        let of_nic = asked(&["nic"]);
        assert!(of_nic.contains("nic-mtu") && of(&of_nic, &|check| check.needs.contains(&"gpu")) == 0, "{of_nic:?}");
        assert!(of_nic.is_subset(&all) && of_nic.len() < all.len());
    }
}
