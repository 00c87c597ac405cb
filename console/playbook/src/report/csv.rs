//! A run as comma-separated values: one row per node and metric.

use std::borrow::Cow;
use std::fmt::{Display, Write};
use std::io;

use muster_wire::Unit;

use super::{NodeReport, RunInfo, RunReport, VerdictReport};

const HEADER: &str = "run,playbook,node,node_state,metric,engine,unit,state,value,similarity,alpha,tau,criterion,n,\
                      criterion_status,node_reason";

/// One row per verdict; a node without verdicts has one row with an empty metric. RFC 4180 quoting with `\n` line
/// ends; missing numbers are empty. `node_reason` is the node's worst reason. Text that a spreadsheet would take for
/// a formula is preceded by an apostrophe, since it may come from a node.
#[must_use]
pub fn csv(report: &RunReport) -> String {
    let rows = CsvRows::of(&report.run);
    let texts: Vec<String> = report.nodes.iter().map(|node| rows.of_node(node)).collect();
    format!("{HEADER}\n{}", texts.concat())
}

/// The same, node by node to where it goes.
///
/// # Errors
/// When that cannot be written to, and those of `each_node`, which gives the nodes.
pub fn write_csv<E: From<io::Error>>(
    run: &RunInfo,
    to: &mut dyn io::Write,
    each_node: impl FnOnce(&mut dyn FnMut(&NodeReport) -> Result<(), E>) -> Result<(), E>,
) -> Result<(), E> {
    writeln!(to, "{HEADER}")?;
    let rows = CsvRows::of(run);
    each_node(&mut |node| Ok(to.write_all(rows.of_node(node).as_bytes())?))
}

/// Makes the rows of nodes.
struct CsvRows {
    /// Cells of all rows.
    run: String,
}

impl CsvRows {
    fn of(run: &RunInfo) -> Self {
        let mut cells = String::new();
        text(&mut cells, &run.id);
        text(&mut cells, &run.playbook);
        Self { run: cells }
    }

    fn of_node(&self, node: &NodeReport) -> String {
        let mut before = self.run.clone();
        text(&mut before, &node.node);
        text(&mut before, node.state.name());
        let mut reason = String::new();
        text(&mut reason, node.reasons.first().map_or("", String::as_str));
        // The last cell of a row.
        reason.pop();
        let mut out = String::new();
        let mut row = |verdict: Option<&VerdictReport>| {
            out.push_str(&before);
            of_verdict(&mut out, verdict);
            out.push_str(&reason);
            out.push('\n');
        };
        if node.verdicts.is_empty() {
            row(None);
        }
        node.verdicts.iter().for_each(|verdict| row(Some(verdict)));
        out
    }
}

/// The cells that tell of a metric.
fn of_verdict(out: &mut String, verdict: Option<&VerdictReport>) {
    let criterion = verdict.and_then(|v| v.of.criterion.as_ref());
    text(out, verdict.map_or("", |v| &v.of.metric));
    text(out, verdict.map_or("", |v| &v.of.engine));
    text(out, verdict.and_then(|v| v.of.unit).map_or("", Unit::symbol));
    text(out, verdict.map_or("", |v| v.state.name()));
    number(out, verdict.and_then(|v| v.value));
    number(out, verdict.and_then(|v| v.similarity));
    number(out, verdict.and_then(|v| v.of.alpha));
    number(out, verdict.and_then(|v| v.of.tau));
    text(out, criterion.map_or("", |c| &c.id));
    number(out, criterion.map(|c| c.n));
    text(out, criterion.map_or("", |c| c.status.name()));
}

/// Text that a spreadsheet would take for a formula behind an apostrophe, other text as it is.
#[must_use]
pub fn guarded(value: &str) -> Cow<'_, str> {
    if value.starts_with(['=', '+', '-', '@']) { format!("'{value}").into() } else { value.into() }
}

/// A cell and the comma behind it.
fn text(out: &mut String, value: &str) {
    let value = guarded(value);
    if value.contains(['"', ',', '\n', '\r']) {
        let _ = write!(out, "\"{}\",", value.replace('"', "\"\""));
    } else {
        out.push_str(&value);
        out.push(',');
    }
}

fn number(out: &mut String, value: Option<impl Display>) {
    if let Some(value) = value {
        let _ = write!(out, "{value}");
    }
    out.push(',');
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
        for (value, cell) in
            [("a\"b,c", "\"a\"\"b,c\","), ("=HYPERLINK(1,2)", "\"'=HYPERLINK(1,2)\","), ("plain", "plain,"), ("", ",")]
        {
            let mut out = String::new();
            text(&mut out, value);
            assert_eq!(out, cell);
        }
    }
}
