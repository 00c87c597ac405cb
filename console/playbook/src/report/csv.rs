//! A run as comma-separated values: one row per node and metric.

use std::borrow::Cow;
use std::fmt::Write;
use std::io;

use super::{NodeReport, RunReport, VerdictReport};

const HEADER: &str = "run,playbook,node,node_state,metric,engine,unit,state,value,similarity,alpha,tau,criterion,n,\
                      criterion_status,node_reason";

/// One row per verdict; a node without verdicts has one row with an empty metric. RFC 4180 quoting with `\n` line
/// ends; missing numbers are empty. `node_reason` is the node's worst reason. Text that a spreadsheet would take for
/// a formula is preceded by an apostrophe, since it may come from a node.
#[must_use]
pub fn csv(report: &RunReport) -> String {
    let mut out = format!("{HEADER}\n");
    report.nodes.iter().for_each(|node| rows(&mut out, report, node));
    out
}

/// The same, node by node to where it goes.
///
/// # Errors
/// When that cannot be written to.
pub fn write_csv(report: &RunReport, to: &mut dyn io::Write) -> io::Result<()> {
    let mut out = format!("{HEADER}\n");
    for node in &report.nodes {
        rows(&mut out, report, node);
        to.write_all(out.as_bytes())?;
        out.clear();
    }
    to.write_all(out.as_bytes())
}

fn rows(out: &mut String, report: &RunReport, node: &NodeReport) {
    if node.verdicts.is_empty() {
        row(out, report, node, None);
    }
    for verdict in &node.verdicts {
        row(out, report, node, Some(verdict));
    }
}

fn row(out: &mut String, report: &RunReport, node: &NodeReport, verdict: Option<&VerdictReport>) {
    let criterion = verdict.and_then(|v| v.of.criterion.as_ref());
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let cells = [
        text(&report.run.id),
        text(&report.run.playbook),
        text(&node.node),
        node.state.name().to_owned(),
        verdict.map_or_else(String::new, |v| text(&v.of.metric)),
        verdict.map_or_else(String::new, |v| text(&v.of.engine)),
        verdict.and_then(|v| v.of.unit).map_or_else(String::new, |unit| text(unit.symbol())),
        verdict.map_or_else(String::new, |v| v.state.name().to_owned()),
        number(verdict.and_then(|v| v.value)),
        number(verdict.and_then(|v| v.similarity)),
        number(verdict.and_then(|v| v.of.alpha)),
        number(verdict.and_then(|v| v.of.tau)),
        criterion.map_or_else(String::new, |c| text(&c.id)),
        criterion.map_or_else(String::new, |c| c.n.to_string()),
        criterion.map_or_else(String::new, |c| c.status.name().to_owned()),
        node.reasons.first().map_or_else(String::new, |why| text(why)),
    ];
    let _ = writeln!(out, "{}", cells.join(","));
}

/// Text that a spreadsheet would take for a formula behind an apostrophe, other text as it is.
#[must_use]
pub fn guarded(value: &str) -> Cow<'_, str> {
    if value.starts_with(['=', '+', '-', '@']) { format!("'{value}").into() } else { value.into() }
}

fn text(value: &str) -> String {
    let value = guarded(value);
    if value.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run::sample;

    /// Cells of one line, by RFC 4180 (no line breaks inside cells here).
    fn cells(line: &str) -> Vec<String> {
        let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if quoted && chars.next_if_eq(&'"').is_some() => cell.push('"'),
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(std::mem::take(&mut cell)),
                c => cell.push(c),
            }
        }
        cells.push(cell);
        cells
    }

    #[test]
    fn every_row_has_the_columns_of_the_header() {
        let text = csv(&sample());
        let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
        assert_eq!(rows.len(), 1 + 7 * 2 + 1);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        let slow = rows.iter().find(|row| row[2] == "n3").unwrap();
        assert_eq!((slow[3].as_str(), slow[4].as_str(), slow[6].as_str()), ("fail", "cpu-stream/triad", "B/s"));
        assert!(slow[15].starts_with("n3 is 50 % slower than 6 peers (cpu-stream/"));
        let silent = rows.last().unwrap();
        assert_eq!((silent[2].as_str(), silent[3].as_str(), silent[4].as_str()), ("n8", "unknown", ""));
    }

    #[test]
    fn quotes_commas_and_formulas_are_harmless() {
        assert_eq!(text("a\"b,c"), "\"a\"\"b,c\"");
        assert_eq!(text("=HYPERLINK(1,2)"), "\"'=HYPERLINK(1,2)\"");
        assert_eq!(text("plain"), "plain");
    }
}
