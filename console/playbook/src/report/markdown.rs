//! A run as Markdown, to paste into a ticket.

use std::fmt::Write;

use muster_analysis::{State, Status};

use super::{PairsReport, RunReport, text};

/// Most reasons told per node.
const REASONS: usize = 5;

/// Heading, counts, one table of the nodes that did not pass (worst first), what pairs of nodes point at, one table of what to do
/// about failed checks, one of the criteria that may not be fully trusted. Pipes, angle brackets and the like are escaped.
#[must_use]
pub fn markdown(report: &RunReport) -> String {
    let run = &report.run;
    let mut out = format!("## {} on {}\n\n", escape(&run.playbook), text::nodes(report.summary.nodes()));
    let _ = writeln!(
        out,
        "Run `{}`, profile {}, {} to {} (UTC): **{}**.",
        run.id.replace('`', "'"),
        run.profile,
        run.started,
        run.ended.as_deref().unwrap_or("not ended"),
        text::counts(&report.summary, report.network.as_ref())
    );
    if let Some(how) = &report.rejudged {
        let _ = writeln!(out, "\nJudged again, with {}: these are not the verdicts of its time.", escape(how));
    }
    for alarm in &report.alarms {
        let _ = writeln!(out, "\n**{}**", escape(alarm));
    }
    let bad: Vec<_> = text::worst_first(report).into_iter().filter(|node| node.state != State::Pass).collect();
    if !bad.is_empty() {
        out.push_str("\n| node | state | why |\n|---|---|---|\n");
    }
    for node in bad {
        let mut reasons: Vec<String> = node.reasons.iter().take(REASONS).map(|why| escape(why)).collect();
        if node.reasons.len() > REASONS {
            reasons.push(format!("and {} more", node.reasons.len() - REASONS));
        }
        let _ = writeln!(out, "| {} | {} | {} |", escape(&node.node), text::word(node.state), reasons.join("<br>"));
    }
    pairs(&mut out, report);
    if !report.dropped.is_empty() {
        out.push_str("\n| left out | after step | why |\n|---|---|---|\n");
    }
    for left in &report.dropped {
        let _ = writeln!(out, "| {} | {} | {} |", escape(&left.node), escape(&left.step), escape(&left.reason));
    }
    for (index, (id, next)) in text::next_steps(report).into_iter().enumerate() {
        if index == 0 {
            out.push_str("\n| check | next step |\n|---|---|\n");
        }
        let _ = writeln!(out, "| {} | {} |", escape(id), escape(next));
    }
    let doubtful: Vec<_> = report.criteria.iter().filter(|criterion| criterion.status != Status::Ok).collect();
    if !doubtful.is_empty() {
        out.push_str("\n| metric | criterion | nodes | repeatability |\n|---|---|---|---|\n");
    }
    for criterion in doubtful {
        let repeatability = criterion.repeatability.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
        let (metric, status) = (escape(&criterion.metric), text::status(criterion.status));
        let _ = writeln!(out, "| {metric} | {status} | {} | {repeatability} |", criterion.n);
    }
    out
}

/// What the pairs of nodes point at, a finding a line.
fn pairs(out: &mut String, report: &RunReport) {
    for (index, line) in report.network.iter().flat_map(PairsReport::lines).enumerate() {
        if index == 0 {
            out.push_str("\nPairs of nodes:\n\n");
        }
        let _ = writeln!(out, "- {}", escape(line.trim_start()));
    }
}

/// Text of nodes without what Markdown or the ticket system would take for its own.
#[must_use]
pub fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '!' | '@' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run::sample;

    #[test]
    fn the_ticket_names_the_bad_nodes_worst_first_and_no_good_one() {
        let text = markdown(&sample());
        assert!(text.starts_with("## cbd on 8 nodes\n\nRun `r1`, profile quick, 2026-11-21T14:30:08Z to "), "{text}");
        assert!(text.contains("**1 fail, 1 unknown, 6 pass**"), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| n")).collect();
        assert_eq!(rows[0], "| node | state | why |");
        assert!(rows[1].starts_with("| n3 | FAIL | n3 is 50 % slower than 6 peers (cpu-stream/"), "{text}");
        assert_eq!(rows[2], "| n8 | UNKNOWN | n8: cannot connect to 10.0.0.8:22: no route to host |");
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn a_slow_part_of_the_network_stands_in_the_ticket_though_every_node_passes() {
        let mut report = sample();
        assert!(!markdown(&report).contains("Pairs of nodes"));
        report.network = Some(crate::report::run::slow_uplink());
        let text = markdown(&report);
        assert!(
            text.contains("**1 fail, 1 unknown, 6 pass; 1 part of the network between them is accused**"),
            "{text}"
        );
        assert!(text.contains("\nPairs of nodes:\n\n- uplink leaf2-spine1: throughput -57 % "), "{text}");
    }

    #[test]
    fn text_from_a_node_cannot_break_the_table() {
        assert_eq!(escape("a|b <img> [x](y)"), "a\\|b &lt;img&gt; \\[x\\](y)");
    }
}
