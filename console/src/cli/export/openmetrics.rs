//! A run as OpenMetrics text, for node_exporter's textfile directory.

use std::io::{Result, Write};

use muster_analysis::State;
use muster_playbook::report::RunReport;
use muster_run::Run;

/// States in the order of their severity.
const STATES: [State; 6] = [State::Pass, State::Warn, State::Fail, State::Unknown, State::NotRun, State::NotApplicable];

/// States of the nodes, medians and similarities of their metrics. What is not known has no line: it is not zero.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(report: &RunReport, run: (&Run, u64), out: &mut dyn Write) -> Result<()> {
    of_run(report, run, out)?;
    family(out, "muster_node_state", "gauge", "What is known of a node.")?;
    for node in &report.nodes {
        for state in STATES {
            let labels = [("node", node.node.as_str()), ("muster_node_state", state.name())];
            line(out, "muster_node_state", &labels, f64::from(u8::from(node.state == state)))?;
        }
    }
    for (name, help) in [
        ("muster_metric_median", "Median of a node's steps, in the unit of its label."),
        ("muster_metric_similarity", "One-sided similarity to the criterion, 0 to 1."),
    ] {
        family(out, name, "gauge", help)?;
        for node in &report.nodes {
            for verdict in &node.verdicts {
                let value = if name == "muster_metric_median" { verdict.value } else { verdict.similarity };
                let Some(value) = value else { continue };
                let unit = verdict.of.unit.map_or("", |unit| unit.symbol());
                let mut labels =
                    vec![("node", node.node.as_str()), ("metric", &verdict.of.metric), ("engine", &verdict.of.engine)];
                if name == "muster_metric_median" {
                    labels.push(("unit", unit));
                }
                line(out, name, &labels, value)?;
            }
        }
    }
    out.write_all(b"# EOF\n")
}

/// Which run it is, how old, and how many nodes ended how.
fn of_run(report: &RunReport, (run, now_ms): (&Run, u64), out: &mut dyn Write) -> Result<()> {
    family(out, "muster_run", "gauge", "The run that the other lines are of.")?;
    let labels = [("run", run.id.as_str()), ("playbook", &run.playbook), ("profile", run.profile.name())];
    line(out, "muster_run", &labels, 1.0)?;
    if let Some(ended_ms) = run.ended_ms {
        let seconds = |ms: u64| ms as f64 / 1000.0;
        family(out, "muster_run_end_timestamp_seconds", "gauge", "When the run ended, in seconds since 1970 UTC.")?;
        line(out, "muster_run_end_timestamp_seconds", &labels[..1], seconds(ended_ms))?;
        family(out, "muster_run_age_seconds", "gauge", "Time from the end of the run until this was written.")?;
        line(out, "muster_run_age_seconds", &labels[..1], seconds(now_ms.saturating_sub(ended_ms)))?;
    }
    family(out, "muster_nodes", "gauge", "How many nodes are in a state; those not run count as unknown.")?;
    // The numbers of the summary, so that two documents of one run never differ.
    let of = &report.summary;
    let counts = [(State::Pass, of.pass), (State::Warn, of.warn), (State::Fail, of.fail), (State::Unknown, of.unknown)];
    counts
        .into_iter()
        .try_for_each(|(state, count)| line(out, "muster_nodes", &[("state", state.name())], count as f64))
}

fn family(out: &mut dyn Write, name: &str, kind: &str, help: &str) -> Result<()> {
    writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}")
}

fn line(out: &mut dyn Write, name: &str, labels: &[(&str, &str)], value: f64) -> Result<()> {
    let label = |(key, value): &(&str, &str)| format!("{key}=\"{}\"", escape(value));
    let labels: Vec<String> = labels.iter().map(label).collect();
    writeln!(out, "{name}{{{}}} {value}", labels.join(","))
}

/// `text` as the value of a label.
pub(in crate::cli) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
