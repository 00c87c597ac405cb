//! A run as OpenMetrics text, for node_exporter's textfile directory.

use std::fmt::Write;

use muster_analysis::State;
use muster_playbook::report::RunReport;

/// States in the order of their severity.
const STATES: [State; 6] = [State::Pass, State::Warn, State::Fail, State::Unknown, State::NotRun, State::NotApplicable];

/// States of the nodes, medians and similarities of their metrics. What is not known has no line: it is not zero.
#[must_use]
pub fn text(report: &RunReport) -> String {
    let mut out = String::new();
    let family = |out: &mut String, name: &str, kind: &str, help: &str| {
        let _ = writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}");
    };
    family(&mut out, "muster_run", "gauge", "The run that the other lines are of.");
    let run = &report.run;
    let labels = [("run", run.id.as_str()), ("playbook", &run.playbook), ("profile", run.profile.name())];
    line(&mut out, "muster_run", &labels, 1.0);
    family(&mut out, "muster_node_state", "stateset", "What is known of a node.");
    for node in &report.nodes {
        for state in STATES {
            let labels = [("node", node.node.as_str()), ("muster_node_state", state.name())];
            line(&mut out, "muster_node_state", &labels, f64::from(u8::from(node.state == state)));
        }
    }
    for (name, help) in [
        ("muster_metric_median", "Median of a node's steps, in the unit of its label."),
        ("muster_metric_similarity", "One-sided similarity to the criterion, 0 to 1."),
    ] {
        family(&mut out, name, "gauge", help);
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
                line(&mut out, name, &labels, value);
            }
        }
    }
    out.push_str("# EOF\n");
    out
}

fn line(out: &mut String, name: &str, labels: &[(&str, &str)], value: f64) {
    let label = |(key, value): &(&str, &str)| format!("{key}=\"{}\"", escape(value));
    let labels: Vec<String> = labels.iter().map(label).collect();
    let _ = writeln!(out, "{name}{{{}}} {value}", labels.join(","));
}

/// `text` as the value of a label.
pub(in crate::cli) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
