//! The whole of triage: the steps in their order, and what is said at the end.

use std::collections::BTreeSet;

use super::action::{action, drain};
use super::case::{Case, Whose};
use super::confidence::SURE;
use super::events::short;
use super::facts::Facts;
use super::report::{Done, Ranks, Report, Source, Subject, Suspect, Told};
use super::steps::{STEPS, Verdict, others};
use super::tested;
use muster_logs::Category;
use muster_logs::{Kind, Rules};
use muster_run::is_host;

/// Events that the report shows.
const TIMELINE: usize = 500;
/// Most nodes that a command spells out.
const COMMAND_NODES: usize = 8;
/// Confidence under which nothing is called by its category.
pub(super) const GUESS: f64 = 0.5;

/// Diagnoses a job from what its files said.
#[must_use]
pub fn diagnose(case: &Case, rules: &Rules) -> Report {
    concluded(&Facts::of(case, rules), &[])
}

/// The verdict over what was worked out; what a person has marked as `wrong` is passed over.
pub(super) fn concluded(facts: &Facts<'_>, wrong: &[Subject]) -> Report {
    let (mut steps, mut marked_wrong) = (Vec::new(), Vec::new());
    let mut verdict: Option<Verdict> = None;
    for step in STEPS {
        let (mut done, found) = step(facts);
        let found = found.and_then(|found| without(found, wrong, &mut done, &mut marked_wrong));
        steps.push(done);
        // What is hardly likely does not end the search; the likelier of two is kept.
        if let Some(found) = found {
            let better = verdict.as_ref().is_none_or(|kept| top(&found.suspects) > top(&kept.suspects));
            verdict = if better { Some(found) } else { verdict };
            if verdict.as_ref().is_some_and(|kept| top(&kept.suspects) >= GUESS) {
                break;
            }
        }
    }
    let likely = verdict.as_ref().is_some_and(|verdict| top(&verdict.suspects) >= GUESS);
    let (category, mut suspects) = match verdict {
        Some(verdict) if likely => (verdict.category, verdict.suspects),
        Some(verdict) => (Category::Undecided, verdict.suspects),
        None => (Category::Undecided, Vec::new()),
    };
    suspects.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let command = command(&facts.case.nodes());
    let (mut verdict, mut next) = (Verdict { category, suspects }, None);
    match &facts.case.tested {
        Some(tested) => {
            steps.extend(tested::steps(tested));
            next = tested::weigh(tested, &mut verdict, (wrong, &mut marked_wrong));
        }
        None => steps.push(offline(category, (&verdict.suspects, command.as_deref()))),
    }
    let Verdict { category, suspects } = verdict;
    let unknown = suspects.is_empty() && marked_wrong.is_empty() && category == Category::Undecided;
    let next = next.or_else(|| suspects.first().and_then(|first| advice(facts, first)));
    let next = next.or_else(|| others::advice(facts).filter(|_| unknown));
    Report {
        schema: "muster.triage",
        version: 1,
        action: next.unwrap_or_else(|| action(category, suspects.first())),
        drain: drain(category, suspects.first()),
        offline: command,
        timeline: timeline(facts),
        ranks: ranks(facts),
        clocks: facts.clocks.report(&facts.layout),
        not_looked_at: super::missing::missing(facts),
        category,
        suspects,
        marked_wrong,
        steps,
    }
}

/// What the failed check itself advises, where nothing but health checks speaks against the suspect.
fn advice(facts: &Facts<'_>, suspect: &Suspect) -> Option<String> {
    let only_checks = suspect.evidence.iter().all(|seen| seen.source == Source::Check);
    let ailing = facts.health.of_node(suspect.node.as_deref().filter(|_| only_checks)).next()?;
    Some(format!("On {}: {}.", ailing.node, ailing.check.next))
}

/// A verdict without the suspects that a person has marked as wrong; nothing where that is all of them.
fn without(
    mut verdict: Verdict,
    wrong: &[Subject],
    done: &mut Done,
    marked_wrong: &mut Vec<Suspect>,
) -> Option<Verdict> {
    let (left, marked): (Vec<Suspect>, Vec<Suspect>) =
        verdict.suspects.into_iter().partition(|suspect| !wrong.contains(&suspect.subject()));
    if marked.is_empty() {
        verdict.suspects = left;
        return Some(verdict);
    }
    marked_wrong.extend(marked);
    verdict.suspects = left;
    if verdict.suspects.is_empty() {
        "A person has marked this as wrong: go on.".clone_into(&mut done.why);
        return None;
    }
    Some(verdict)
}

fn top(suspects: &[Suspect]) -> f64 {
    suspects.iter().map(|suspect| suspect.confidence).fold(0.0, f64::max)
}

fn offline(category: Category, (suspects, command): (&[Suspect], Option<&str>)) -> Done {
    let sure = top(suspects) >= SURE;
    let command = command.unwrap_or("muster triage offline");
    let (result, why) = match category {
        Category::None => ("not needed", "Nothing is wrong with machines or program.".to_owned()),
        Category::Undecided => ("not run", format!("Next, once the job has left its nodes: {command}")),
        _ if sure => ("not needed", "The cause is named with confidence.".to_owned()),
        _ => (
            "not run",
            format!(
                "The cause is likely and not certain; before the machine is drained, once the job has left: {command}"
            ),
        ),
    };
    Done { step: "offline-diagnosis", result: result.to_owned(), why }
}

/// The command that tests `nodes` without the job; the list is left to the reader where it is long.
fn command(nodes: &[String]) -> Option<String> {
    let short = nodes.len() <= COMMAND_NODES && nodes.iter().all(|node| is_host(node));
    let list = if short { nodes.join(",") } else { "NODES".to_owned() };
    (nodes.len() > 1).then(|| format!("muster triage offline -w {list}"))
}

fn timeline(facts: &Facts<'_>) -> Vec<Told> {
    let worth = |event: &&super::events::Event<'_>| {
        !matches!(event.rule.kind, Kind::Benign | Kind::Progress) && !event.foreign && event.in_window(&facts.end)
    };
    let told = |event: &super::events::Event<'_>| Told {
        at: event.at_s,
        node: event.node.clone(),
        rank: event.rank,
        source: event.source,
        event: event.rule.id.clone(),
        text: short(&event.seen.text),
    };
    facts.events.iter().filter(worth).take(TIMELINE).map(told).collect()
}

fn ranks(facts: &Facts<'_>) -> Ranks {
    let mut seen: BTreeSet<u32> = facts.case.dumps.iter().map(|dump| dump.rank).collect();
    seen.extend(
        facts
            .case
            .logs
            .iter()
            .filter_map(|log| if let Whose::Rank(rank) = log.whose { (log.lines > 0).then_some(rank) } else { None }),
    );
    let polled = facts.case.polls.iter().flat_map(|poll| poll.comms.iter().flat_map(|comm| &comm.ranks));
    seen.extend(polled.filter_map(|rank| facts.layout.rank_of(&rank.process)));
    let n = facts.layout.world();
    let missing = facts.layout.members.keys().copied().filter(|rank| !seen.contains(rank)).collect();
    Ranks { n, seen: seen.len(), missing }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::case::{Alerted, Comm, CommRank, Dump, Job, Member, Poll, Process};
    use crate::made;
    use crate::report::Kind as What;
    use muster_logs::fault::Cause;
    use muster_wire::{Datum, Fact, Looked, Outcome, Reading};

    static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::built_in().unwrap());

    /// A job with so many ranks on as many nodes, and these logs.
    fn case(ranks: u32, logs: &[(Whose, &str)]) -> Case {
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), pid: Some(100 + rank), gpu: None };
        let log = |(whose, lines): &(Whose, &str)| made::log(whose.clone(), lines, &RULES);
        let job = Job { members: (0..ranks).map(member).collect(), ..Job::default() };
        Case { job, logs: logs.iter().map(log).collect(), ..Case::default() }
    }

    fn suspect(confidence: f64) -> Suspect {
        Suspect {
            kind: What::Node,
            node: Some("n1".to_owned()),
            rank: None,
            gpu: None,
            element: None,
            cause: Cause::default(),
            confidence,
            sentence: String::new(),
            evidence: Vec::new(),
        }
    }

    #[test]
    fn the_command_that_tests_the_nodes_names_up_to_eight_of_them_and_only_plain_names() {
        let of = |nodes: &[&str]| command(&nodes.iter().map(|node| (*node).to_owned()).collect::<Vec<_>>());
        assert_eq!((of(&[]), of(&["n1"])), (None, None), "one node alone runs no job of several");
        assert_eq!(of(&["n1", "n2"]).as_deref(), Some("muster triage offline -w n1,n2"));
        let nine = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        assert_eq!(of(&nine[..8]).as_deref(), Some("muster triage offline -w a,b,c,d,e,f,g,h"));
        assert_eq!(of(&nine).as_deref(), Some("muster triage offline -w NODES"));
        assert_eq!(of(&["n1", "n2;reboot"]).as_deref(), Some("muster triage offline -w NODES"));
    }

    #[test]
    fn a_test_of_the_nodes_is_proposed_where_nobody_or_nobody_surely_is_named() {
        let of = |category, confidence: f64| {
            offline(category, (&[suspect(confidence)], Some("muster triage offline -w n1,n2")))
        };
        let said = |done: Done| (done.result, done.why);
        let open = "Next, once the job has left its nodes: muster triage offline -w n1,n2";
        assert_eq!(said(of(Category::Undecided, 0.4)), ("not run".to_owned(), open.to_owned()));
        let likely = "The cause is likely and not certain; before the machine is drained, once the job has left: muster triage offline -w n1,n2";
        assert_eq!(said(of(Category::Storage, 0.79)), ("not run".to_owned(), likely.to_owned()));
        let sure = "The cause is named with confidence.";
        assert_eq!(said(of(Category::Storage, SURE)), ("not needed".to_owned(), sure.to_owned()));
        let well = "Nothing is wrong with machines or program.";
        assert_eq!(said(of(Category::None, 0.6)), ("not needed".to_owned(), well.to_owned()));
        let without = offline(Category::Undecided, (&[], None));
        assert_eq!(without.why, "Next, once the job has left its nodes: muster triage offline");
    }

    #[test]
    fn ranks_are_seen_that_wrote_a_log_or_a_dump_or_answered_and_the_others_are_missing() {
        let mut case =
            case(6, &[(Whose::Rank(0), "starts\n"), (Whose::Rank(1), ""), (Whose::Kernel("n5".into()), "x\n")]);
        case.dumps = vec![Dump { rank: 2, ..Dump::default() }, Dump { rank: 0, ..Dump::default() }];
        let process = |rank: u32| Process { host: format!("n{rank}"), pid: Some(100 + rank), ..Process::default() };
        let told = CommRank { process: process(3), ..CommRank::default() };
        let comm = Comm { ranks: vec![told], missing: vec![process(4)], ..Comm::default() };
        case.polls = vec![Poll { comms: vec![comm], ..Poll::default() }];
        let ranks = diagnose(&case, &RULES).ranks;
        assert_eq!((ranks.n, ranks.seen, ranks.missing), (6, 3, vec![1, 4, 5]), "a log without a line says nothing");
    }

    #[test]
    fn a_time_line_holds_what_may_matter_in_the_order_of_time_and_no_more_than_a_page_of_it() {
        let line = |at: &str, text: &str| format!("[2026-11-20 10:{at}] {text}\n");
        let kernel = [
            line("10:05", "nfs: server 10.4.0.19 not responding, still trying"),
            line("10:01", "NVRM: Xid (PCI:0000:11:00): 63, pid='<unknown>', name=<unknown>, Row Remapper"),
            line("10:06", "nfs: server 10.4.0.19 OK"),
        ]
        .concat();
        let before = line("00:00", "nfs: server 10.4.0.21 not responding, still trying");
        let elsewhere = line("10:05", "nfs: server 10.4.0.22 not responding, still trying");
        let kernel = before + &kernel;
        let step = line("10:00", "iteration 5/ 100 | elapsed time per iteration (ms): 900.0 |");
        let kernels = [(Whose::Kernel("n1".into()), kernel.as_str()), (Whose::Kernel("n9".into()), elsewhere.as_str())];
        let case_of = case(2, &[&kernels[..], &[(Whose::Rank(0), &step)]].concat());
        let report = diagnose(&case_of, &RULES);
        let events: Vec<(&str, Option<&str>)> =
            report.timeline.iter().map(|told| (told.event.as_str(), told.node.as_deref())).collect();
        assert_eq!(
            events,
            [("xid-63", Some("n1")), ("nfs-not-responding", Some("n1"))],
            "no step, and nothing harmless"
        );
        let many: String =
            (0..600).map(|nr| line("10:05", &format!("nfs: server s{nr} not responding, still trying"))).collect();
        let half = many.lines().count() / 3;
        let logs: Vec<String> = (0..3)
            .map(|of| many.lines().skip(of * half).take(half).map(|line| format!("{line}\n")).collect())
            .collect();
        let logs: Vec<(Whose, &str)> =
            (0..3).zip(&logs).map(|(nr, log)| (Whose::Kernel(format!("n{nr}")), log.as_str())).collect();
        assert_eq!(diagnose(&case(3, &logs), &RULES).timeline.len(), TIMELINE);
    }

    /// RAS saw a job of four ranks get on, in one of whose operations a rank stays behind: between two steps that is normal.
    fn with_a_guess() -> Case {
        let notice = "[2026-11-20 10:10:00] iteration 5/ 100 | elapsed time per iteration (ms): 900.0 |\n";
        let mut case = case(4, &[(Whose::Rank(0), notice)]);
        let process = |rank: u32| Process {
            host: format!("n{rank}"),
            pid: Some(100 + rank),
            rank: Some(rank),
            ..Process::default()
        };
        let rank = |rank: u32, number: u32| CommRank {
            process: process(rank),
            counts: [
                ("AllReduce".to_owned(), 40 + u64::from(number)),
                ("Broadcast".to_owned(), if rank == 2 { 8 } else { 9 }),
            ]
            .into(),
            failed: false,
        };
        let poll = |number: u32| {
            let ranks = (0..4).map(|of| rank(of, number)).collect();
            Poll { number, comms: vec![Comm { hash: "0x1".into(), ranks, ..Comm::default() }], ..Poll::default() }
        };
        case.polls = vec![poll(1), poll(2)];
        case
    }

    #[test]
    fn what_is_hardly_likely_is_kept_as_a_suspicion_and_does_not_end_the_search() {
        let report = diagnose(&with_a_guess(), &RULES);
        let told: Vec<(Option<u32>, f64)> =
            report.suspects.iter().map(|suspect| (suspect.rank, suspect.confidence)).collect();
        assert_eq!((report.category, told), (Category::Undecided, vec![(Some(2), 0.3)]));
        assert_eq!(report.steps.last().map(|done| done.step), Some("offline-diagnosis"));
        assert_eq!(report.steps.len(), STEPS.len() + 1, "every step was taken: {:#?}", report.steps);
        let hang = report.steps.iter().find(|done| done.step == "collective-counters").unwrap();
        assert_eq!(hang.why, "By itself this is no more than a guess (hang-not-launched): go on.");
    }

    #[test]
    fn of_two_that_are_hardly_likely_the_likelier_is_kept() {
        let mut case = with_a_guess();
        case.alerts = vec![Alerted { node: "n1".to_owned(), since_s: 1e9, ..Alerted::default() }];
        let report = diagnose(&case, &RULES);
        let told: Vec<(Option<&str>, f64)> =
            report.suspects.iter().map(|suspect| (suspect.node.as_deref(), suspect.confidence)).collect();
        assert_eq!((report.category, told), (Category::HostStall, vec![(Some("n1"), 0.6)]));
        assert!(report.steps.iter().all(|done| done.step != "health-checks"), "what is likely ends the search");
    }

    #[test]
    fn what_a_person_has_marked_as_wrong_is_passed_over_and_told_beside() {
        let lost = "NVRM: Xid (PCI:0000:11:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n";
        let kernel = |node: &str| (Whose::Kernel(node.to_owned()), lost);
        let case = case(4, &[kernel("n1"), kernel("n2")]);
        let facts = Facts::of(&case, &RULES);
        let nodes = |suspects: &[Suspect]| suspects.iter().map(|one| one.node.clone().unwrap()).collect::<Vec<_>>();
        let all = concluded(&facts, &[]);
        assert_eq!((nodes(&all.suspects), all.marked_wrong.len()), (vec!["n1".to_owned(), "n2".to_owned()], 0));
        let one = concluded(&facts, &[all.suspects[0].subject()]);
        assert_eq!((nodes(&one.suspects), nodes(&one.marked_wrong)), (vec!["n2".to_owned()], vec!["n1".to_owned()]));
        assert_eq!(one.category, Category::HardwareCritical);
        let both = concluded(&facts, &all.suspects.iter().map(Suspect::subject).collect::<Vec<_>>());
        assert_eq!((both.suspects.len(), both.marked_wrong.len(), both.category), (0, 2, Category::Undecided));
        assert_eq!(both.steps[0].why, "A person has marked this as wrong: go on.");
        assert!(both.action.starts_with("Collect what is missing"), "{}", both.action);
    }

    #[test]
    fn where_only_a_health_check_speaks_against_a_node_the_check_says_what_to_do() {
        let mut case = case(4, &[]);
        for rank in 0..4 {
            let mtu = if rank == 2 { 1400.0 } else { 1500.0 };
            let fact = |key: &str, datum| Fact { key: key.to_owned(), reading: Reading::Value(datum), unit: None };
            let text = |text: &str| Datum::Text(text.to_owned());
            let facts = vec![
                fact("eth0.mtu", Datum::Number(mtu)),
                fact("eth0.state", text("up")),
                fact("eth0.driver", text("mlx5_core")),
            ];
            let saw = muster_wire::Facts { collector: "nic".to_owned(), facts };
            case.looked.insert(format!("n{rank}"), vec![Looked { outcome: Outcome::Done, saw }]);
        }
        let by_check = diagnose(&case, &RULES);
        assert!(by_check.action.starts_with("On n2: "), "{}", by_check.action);
        case.alerts = vec![Alerted { node: "n2".to_owned(), since_s: 1e9, ..Alerted::default() }];
        let by_watch = diagnose(&case, &RULES);
        assert!(!by_watch.action.starts_with("On n2: "), "the watch says more than that: {}", by_watch.action);
    }
}
