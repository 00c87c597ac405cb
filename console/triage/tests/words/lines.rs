//! Jobs of six ranks on three nodes, by what one line in their logs says: the first example of each rule.

use std::collections::BTreeMap;
use std::fmt::Write;

use muster_logs::{Kind, Rule, Stream};
use muster_triage::case::{Case, Job, Log, Member, Whose};
use muster_triage::diagnose;
use muster_triage::report::Source;

use super::{RULES, counts, made::log};

fn job(logs: Vec<Log>) -> Case {
    let member =
        |rank: u32| Member { rank, node: Some(format!("n{}", rank / 2)), pid: Some(100 + rank), gpu: Some(rank % 2) };
    let job = Job { world_size: Some(6), members: (0..6).map(member).collect(), ..Job::default() };
    Case { job, logs, ..Case::default() }
}

/// What is said of a case, in short: one line where nobody is named and nothing else was read, and only where the evidence comes from.
fn said(text: &mut String, name: &str, case: &Case) {
    let report = diagnose(case, &RULES);
    writeln!(text, "{name}: {:?}{}", report.category, if report.drain.is_some() { ", drain" } else { "" }).unwrap();
    let others = report.steps.iter().find(|step| step.step == "other-errors");
    let others = others.map(|step| step.result.as_str()).filter(|result| *result != "no other errors on the nodes");
    if let Some(others) = others {
        writeln!(text, "    other-errors: {others}").unwrap();
    }
    if others.is_some() || !report.suspects.is_empty() {
        writeln!(text, "    do: {}", report.action).unwrap();
    }
    for suspect in &report.suspects {
        let of = (suspect.kind, &suspect.node, suspect.rank, suspect.gpu, &suspect.element);
        writeln!(text, "    {:.2} {of:?} {:?}: {}", suspect.confidence, suspect.cause, suspect.sentence).unwrap();
        let sources: Vec<Source> = suspect.evidence.iter().map(|seen| seen.source).collect();
        writeln!(text, "        by {sources:?}").unwrap();
    }
}

/// Its line in the kernel's log of one node, and of two; in the log of one rank, of both of its node, and of all.
fn tell(text: &mut String, rule: &Rule) {
    let line = format!("{}\n", rule.examples[0]);
    let kernels =
        |nodes: &[u32]| nodes.iter().map(|node| log(Whose::Kernel(format!("n{node}")), &line, &RULES)).collect();
    let ranks = |ranks: &[u32]| ranks.iter().map(|rank| log(Whose::Rank(*rank), &line, &RULES)).collect();
    writeln!(text, "## {}: {:?}", rule.id, rule.kind).unwrap();
    if Stream::Kernel.holds_in(rule.stream) {
        said(text, "kernel of n1", &job(kernels(&[1])));
        said(text, "kernels of n1 and n2", &job(kernels(&[1, 2])));
    }
    if Stream::Job.holds_in(rule.stream) {
        said(text, "rank 3", &job(ranks(&[3])));
        said(text, "ranks 2 and 3", &job(ranks(&[2, 3])));
        said(text, "all ranks", &job(ranks(&[0, 1, 2, 3, 4, 5])));
        let behind = Case { logs: ranks(&[0, 1, 2, 3, 4, 5]), ..counts::one_behind(3) };
        said(text, "all ranks, and RAS tells that rank 3 is behind", &behind);
    }
    writeln!(text).unwrap();
}

/// Rules with an example that a job's trouble may be told by; rows of a table share theirs.
fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().filter(|rule| !rule.examples.is_empty() && !matches!(rule.kind, Kind::Benign | Kind::Progress))
}

#[test]
fn what_one_line_of_each_rule_comes_to_is_said_word_for_word() {
    let mut text = String::new();
    rules().for_each(|rule| tell(&mut text, rule));
    super::hold("lines.txt", &text);
}

/// The logs of these, where lines of kernels are of the kernel's log of rank's node.
fn logs(lines: &[(u32, &Rule)]) -> Vec<Log> {
    let mut of: BTreeMap<Whose, String> = BTreeMap::new();
    for (rank, rule) in lines {
        let whose = if Stream::Job.holds_in(rule.stream) && rule.stream != Stream::Any {
            Whose::Rank(*rank)
        } else {
            Whose::Kernel(format!("n{}", rank / 2))
        };
        writeln!(of.entry(whose).or_default(), "{}", rule.examples[0]).unwrap();
    }
    of.into_iter().map(|(whose, lines)| log(whose, &lines, &RULES)).collect()
}

#[test]
fn what_a_line_and_one_that_follows_it_come_to_is_said_word_for_word() {
    let mut text = String::new();
    for rule in rules() {
        let known = |id: &String| RULES.by_id(id).filter(|first| !first.examples.is_empty());
        let Some(first) = rule.follows.iter().find_map(known) else { continue };
        writeln!(text, "## {} after {}", rule.id, first.id).unwrap();
        said(&mut text, "both of rank 3", &job(logs(&[(3, first), (3, rule)])));
        said(&mut text, "the first of rank 3, the other of rank 2", &job(logs(&[(3, first), (2, rule)])));
        said(
            &mut text,
            "the first of rank 3, the other of ranks 0 and 3",
            &job(logs(&[(3, first), (0, rule), (3, rule)])),
        );
        writeln!(text).unwrap();
    }
    super::hold("follows.txt", &text);
}
