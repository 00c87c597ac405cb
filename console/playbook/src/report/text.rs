//! A run as text for a terminal: the worst first, in sentences, the good ones folded into one line.

use std::collections::BTreeSet;
use std::fmt::Write;

use muster_analysis::network::localise::SURE;
use muster_analysis::{State, Status};

use super::{CheckReport, NodeReport, PairsReport, RunReport, Summary};

/// Most sentences told per node; the rest is in the JSON.
const SENTENCES: usize = 3;
/// Width of the state column with its gap.
const INDENT: usize = 9;
/// Most metrics named in one sentence.
const NAMED: usize = 3;

/// The run in at most `width` columns (0: no wrapping); `fold` shortens a list of host names, as in `n[1-2,4-8]`.
/// Nodes about which the same is to be said share a line.
#[must_use]
pub fn table(report: &RunReport, width: usize, fold: &dyn Fn(&[&str]) -> String) -> String {
    let run = &report.run;
    let mut out = String::new();
    let _ = writeln!(out, "{}, profile {}, run {}", run.playbook, run.profile, run.id);
    let _ = writeln!(out, "{} to {} UTC", run.started, run.ended.as_deref().unwrap_or("now, not ended,"));
    let _ = writeln!(out, "{}\n", headline(&report.summary, report.network.as_ref()));
    if let Some(how) = &report.rejudged {
        wrap(&mut out, "JUDGED", &format!("again, with {how}: these are not the verdicts of its time"), width);
    }
    for alarm in &report.alarms {
        wrap(&mut out, "CHECK", alarm, width);
    }
    for group in groups(report) {
        let names = fold(&group.names);
        let sentences: Vec<String> = group.tails.iter().map(|tail| sentence(&names, tail, group.names.len())).collect();
        let told = if sentences.is_empty() { vec![names] } else { sentences };
        for (index, text) in told.iter().enumerate() {
            let head = if index == 0 { word(group.state) } else { "" };
            wrap(&mut out, head, text, width);
        }
    }
    pairs(&mut out, report, width);
    dropped(&mut out, report, width, fold);
    steps(&mut out, report, width);
    criteria(&mut out, report, width);
    if let Some(demo) = &report.demo {
        let slowed: Vec<&str> = demo.slowed.iter().map(String::as_str).collect();
        let names = if slowed.is_empty() { "none".to_owned() } else { fold(&slowed) };
        let _ = writeln!(out, "\nslowed on purpose by the demo: {names}");
    }
    out
}

/// Nodes in the same state of which the same is said.
struct Group<'a> {
    state: State,
    /// In the order of the report.
    names: Vec<&'a str>,
    /// What follows the names in each sentence.
    tails: Vec<String>,
}

fn groups(report: &RunReport) -> Vec<Group<'_>> {
    let mut groups: Vec<(State, Vec<usize>, Vec<String>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for at in order(report) {
        let node = &report.nodes[at];
        let tails = tails(node);
        let place = *places.entry((node.state, tails.clone())).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, members, _)) => members.push(at),
            None => groups.push((node.state, vec![at], tails)),
        }
    }
    let named = |(state, mut members, tails): (State, Vec<usize>, Vec<String>)| {
        members.sort_unstable();
        Group { state, names: members.iter().map(|at| report.nodes[*at].node.as_str()).collect(), tails }
    };
    groups.into_iter().map(named).collect()
}

/// What is to be said about a node, each sentence without its name.
fn tails(node: &NodeReport) -> Vec<String> {
    let all = node.reasons.iter().map(|reason| tail(&node.node, reason).to_owned());
    let mut tails: Vec<String> = all.take(SENTENCES).collect();
    if node.reasons.len() > SENTENCES {
        tails.push(format!(": and {} more", node.reasons.len() - SENTENCES));
    }
    tails
}

/// `reason` without the node's name in front: ` is slower …` or `: cannot connect …`.
fn tail<'a>(node: &str, reason: &'a str) -> &'a str {
    match reason.strip_prefix(node) {
        Some(tail) if tail.starts_with([' ', ':']) => tail,
        _ => reason,
    }
}

fn sentence(names: &str, tail: &str, count: usize) -> String {
    match tail.strip_prefix(" is ") {
        Some(rest) if count > 1 => format!("{names} are {rest}"),
        _ if tail.starts_with([' ', ':']) => format!("{names}{tail}"),
        _ => format!("{names}: {tail}"),
    }
}

/// Gravest first, then least similar, then in the order of the report.
pub(super) fn worst_first(report: &RunReport) -> Vec<&NodeReport> {
    order(report).into_iter().map(|at| &report.nodes[at]).collect()
}

fn order(report: &RunReport) -> Vec<usize> {
    let lowest = |node: &NodeReport| {
        let bad = node.verdicts.iter().filter(|verdict| verdict.state == node.state && node.state != State::Pass);
        bad.map(|verdict| verdict.similarity.unwrap_or(f64::NEG_INFINITY)).fold(f64::INFINITY, f64::min)
    };
    let mut order: Vec<usize> = (0..report.nodes.len()).collect();
    order.sort_by_cached_key(|at| {
        let node = &report.nodes[*at];
        // "Not applicable" is milder than a pass only among findings; on the screen the good ones come last.
        (node.state == State::Pass, std::cmp::Reverse(node.state), OrderedF64(lowest(node)))
    });
    order
}

#[derive(PartialEq)]
struct OrderedF64(f64);

impl Eq for OrderedF64 {}

impl PartialOrd for OrderedF64 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedF64 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// `8 nodes`.
pub(super) fn nodes(count: usize) -> String {
    format!("{count} node{}", if count == 1 { "" } else { "s" })
}

/// `8 nodes: 1 fail, 7 pass`, and whether the network between them is in order.
#[must_use]
pub fn headline(summary: &Summary, network: Option<&PairsReport>) -> String {
    format!("{}: {}", nodes(summary.nodes()), counts(summary, network))
}

/// `1 fail, 7 pass`: only what there is, worst first.
pub(super) fn counts(summary: &Summary, network: Option<&PairsReport>) -> String {
    let all = [(summary.fail, "fail"), (summary.warn, "warn"), (summary.unknown, "unknown"), (summary.pass, "pass")];
    let some: Vec<String> =
        all.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    let nodes = match (some.is_empty(), summary.undecided) {
        (true, _) => "nothing to judge".to_owned(),
        (false, 0) => some.join(", "),
        (false, partly) => format!("{}; {partly} of those in part undecided", some.join(", ")),
    };
    match network.and_then(between) {
        Some(pairs) => format!("{nodes}; {pairs}"),
        None => nodes,
    }
}

/// What is not in order between the nodes, in a few words; `None` where nothing stands out. What pairs of nodes point at is no fault of
/// a single node, so no count of nodes has it.
#[must_use]
pub fn between(network: &PairsReport) -> Option<String> {
    let sure = network.suspects.iter().filter(|suspect| suspect.found.confidence >= SURE).count();
    let left_out = network.run.as_ref().is_some_and(|run| !run.left_out.is_empty());
    let doubtful = network.suspects.len() > sure || !network.undecided.is_empty();
    Some(match network.exit_code() {
        0 => return None,
        1 => "the network between them has warnings".to_owned(),
        2 if sure == 1 => "1 part of the network between them is accused".to_owned(),
        2 => format!("{sure} parts of the network between them are accused"),
        _ if left_out && !doubtful => "the network between them was not measured whole".to_owned(),
        _ => "the network between them is in part undecided".to_owned(),
    })
}

/// The word on the screen.
pub(super) const fn word(state: State) -> &'static str {
    match state {
        State::Pass => "PASS",
        State::Warn => "WARN",
        State::Fail => "FAIL",
        State::Unknown => "UNKNOWN",
        State::NotRun => "NOT RUN",
        State::NotApplicable => "N/A",
    }
}

/// What a status means, in a few words.
pub(super) const fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Provisional => "provisional, too few nodes",
        Status::NoConsensus => "the nodes do not agree on what is normal",
        Status::Bimodal => "two groups of nodes",
        Status::NotRepeatable => "not repeatable here",
    }
}

/// What to do about each check that some node did not pass, each once, gravest first.
pub(super) fn next_steps(report: &RunReport) -> Vec<(&str, &str)> {
    let bad = |check: &&CheckReport| matches!(check.state, State::Fail | State::Warn) && !check.next.is_empty();
    let mut open: Vec<&CheckReport> = report.nodes.iter().flat_map(|node| &node.checks).filter(bad).collect();
    open.sort_by_key(|check| std::cmp::Reverse(check.state));
    let mut seen = BTreeSet::new();
    open.retain(|check| seen.insert(&check.id));
    open.into_iter().map(|check| (check.id.as_str(), check.next.as_str())).collect()
}

/// What the pairs of nodes point at, a finding a line.
fn pairs(out: &mut String, report: &RunReport, width: usize) {
    for (index, line) in report.network.iter().flat_map(PairsReport::lines).enumerate() {
        if index == 0 {
            out.push('\n');
        }
        wrap(out, if index == 0 { "pairs" } else { "" }, line.trim_start(), width);
    }
}

/// Who did not get to the end, after which step and why: one line for those that left for the same reason.
fn dropped(out: &mut String, report: &RunReport, width: usize, fold: &dyn Fn(&[&str]) -> String) {
    let mut groups: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for left in &report.dropped {
        let why = tail(&left.node, &left.reason);
        match groups.iter_mut().find(|(step, tail, _)| *step == left.step && *tail == why) {
            Some((_, _, names)) => names.push(&left.node),
            None => groups.push((&left.step, why, vec![&left.node])),
        }
    }
    for (index, (step, why, names)) in groups.into_iter().enumerate() {
        if index == 0 {
            out.push('\n');
        }
        let told = format!("after {step}, {}", sentence(&fold(&names), why, names.len()));
        wrap(out, if index == 0 { "left out" } else { "" }, &told, width);
    }
}

fn steps(out: &mut String, report: &RunReport, width: usize) {
    for (index, (id, next)) in next_steps(report).into_iter().enumerate() {
        if index == 0 {
            out.push('\n');
        }
        wrap(out, if index == 0 { "next" } else { "" }, &format!("{id}: {next}"), width);
    }
}

fn criteria(out: &mut String, report: &RunReport, width: usize) {
    if report.criteria.is_empty() {
        return;
    }
    let all = [Status::Ok, Status::Provisional, Status::Bimodal, Status::NotRepeatable, Status::NoConsensus];
    let mut parts = Vec::new();
    for of in all {
        let metrics: Vec<&str> = report.criteria.iter().filter(|c| c.status == of).map(|c| c.metric.as_str()).collect();
        match (metrics.len(), of) {
            (0, _) => {}
            (count, Status::Ok) => parts.push(format!("{count} ok")),
            (count, of) => parts.push(format!("{count} {} ({})", status(of), some(&metrics))),
        }
    }
    out.push('\n');
    wrap(out, "criteria", &parts.join("; "), width);
}

/// The first few of `names`, and how many more.
fn some(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    if names.len() > NAMED { format!("{shown} and {} more", names.len() - NAMED) } else { shown }
}

/// Writes `text` behind `head`, broken between words, further lines indented.
fn wrap(out: &mut String, head: &str, text: &str, width: usize) {
    let room = if width == 0 { usize::MAX } else { width.saturating_sub(INDENT).max(20) };
    let _ = write!(out, "{head:<INDENT$}");
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            let _ = write!(out, "\n{:INDENT$}", "");
            used = 0;
        }
        if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Demo;
    use crate::report::run::sample;

    fn join(names: &[&str]) -> String {
        names.join("+")
    }

    #[test]
    fn the_worst_comes_first_in_sentences_and_the_good_share_a_line() {
        let mut report = sample();
        report.demo = Some(Demo { slowed: vec!["n3".to_owned()] });
        let text = table(&report, 0, &join);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "cbd, profile quick, run r1",
                "2026-11-21T14:30:08Z to 2026-11-21T14:31:40Z UTC",
                "8 nodes: 1 fail, 1 unknown, 6 pass",
                "",
            ]
        );
        assert!(lines[4].starts_with("FAIL     n3 is 50 % slower than 6 peers (cpu-stream/"), "{text}");
        assert!(lines[5].starts_with("         n3 is 50 % slower than 6 peers (cpu-stream/"), "{text}");
        assert_eq!(
            lines[6..],
            [
                "UNKNOWN  n8: cannot connect to 10.0.0.8:22: no route to host",
                "PASS     n1+n2+n4+n5+n6+n7",
                "",
                "criteria 2 ok",
                "",
                "slowed on purpose by the demo: n3",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_than_asked_and_no_word_is_lost() {
        let report = sample();
        let narrow = table(&report, 60, &join);
        assert!(narrow.lines().skip(4).all(|line| line.chars().count() <= 60), "{narrow}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&narrow), words(&table(&report, 0, &join)));
    }

    #[test]
    fn a_slow_part_of_the_network_is_told_though_every_node_passes() {
        let mut report = sample();
        report.nodes.retain(|node| node.state == State::Pass);
        report.summary = Summary::of(report.nodes.iter().map(|node| (node.state, node.undecided)));
        report.network = Some(crate::report::run::slow_uplink());
        let text = table(&report, 0, &join);
        assert!(text.contains("6 nodes: 6 pass; 1 part of the network between them is accused\n"), "{text}");
        assert!(text.contains("\npairs    uplink leaf2-spine1: throughput -57 % "), "{text}");
        let clean = PairsReport::new(muster_analysis::network::topology::Source::Csv);
        assert_eq!(headline(&report.summary, Some(&clean)), "6 nodes: 6 pass");
    }

    #[test]
    fn nodes_with_the_same_trouble_share_a_line() {
        let mut report = sample();
        let mut twin = report.nodes[7].clone();
        twin.node = "n9".to_owned();
        twin.reasons = vec!["n9: cannot connect to 10.0.0.8:22: no route to host".to_owned()];
        report.nodes.push(twin);
        let text = table(&report, 0, &join);
        assert!(text.contains("UNKNOWN  n8+n9: cannot connect to 10.0.0.8:22: no route to host\n"), "{text}");
    }

    #[test]
    fn a_name_that_begins_another_name_is_not_cut_out_of_it() {
        assert_eq!(tail("n1", "n12: broken"), "n12: broken");
        assert_eq!(tail("n1", "n1 is slow"), " is slow");
        assert_eq!(sentence("n[1-2]", " is slow", 2), "n[1-2] are slow");
        assert_eq!(sentence("n1", "no prefix", 1), "n1: no prefix");
    }

    #[test]
    fn nodes_that_left_are_listed_with_step_and_reason() {
        let mut report = sample();
        for node in ["n3", "n5"] {
            let (step, reason) = ("look".to_owned(), format!("{node}: nic-mtu: eth0.mtu is 1400"));
            report.dropped.push(crate::report::Dropped { node: node.to_owned(), step, reason });
        }
        let text = table(&report, 0, &join);
        assert!(text.contains("\nleft out after look, n3+n5: nic-mtu: eth0.mtu is 1400\n"), "{text}");
        let text = crate::report::markdown(&report);
        assert!(text.contains("\n| n3 | look | n3: nic-mtu: eth0.mtu is 1400 |\n"), "{text}");
    }

    #[test]
    fn what_to_do_about_a_failed_check_is_told_once() {
        let mut report = sample();
        let failed = CheckReport {
            id: "nic-mtu".to_owned(),
            severity: muster_analysis::checks::Severity::Critical,
            state: State::Fail,
            said: "eth0.mtu is 1400".to_owned(),
            next: "set the MTU".to_owned(),
        };
        let passed = CheckReport { id: "swap".to_owned(), state: State::Pass, next: String::new(), ..failed.clone() };
        for node in &mut report.nodes {
            node.checks = vec![passed.clone(), failed.clone()];
        }
        let text = table(&report, 0, &join);
        assert_eq!(text.matches("\nnext     nic-mtu: set the MTU\n").count(), 1, "{text}");
        assert!(!text.contains("swap"));
        assert!(crate::report::markdown(&report).contains("\n| nic-mtu | set the MTU |\n"));
    }

    #[test]
    fn a_run_that_has_not_ended_says_so() {
        let mut report = sample();
        report.run.ended = None;
        assert!(table(&report, 0, &join).contains("14:30:08Z to now, not ended, UTC\n"));
    }
}
