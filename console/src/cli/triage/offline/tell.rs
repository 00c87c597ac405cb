//! The answer for whoever is on call.

use muster_triage::offline::{Offline, Tried};

use crate::exit::Problem;
use crate::offline::folded;
use crate::out;

pub(super) fn report(report: &Offline) -> Result<(), Problem> {
    out::line(&report.sentence)?;
    out::line(&format!("Next: {}", report.action))?;
    for accused in report.culprits.iter().skip(1) {
        out::line(&format!("Also: {}", accused.sentence))?;
    }
    for open in report.open.iter().filter(|open| **open != report.sentence) {
        out::line(&format!("Open: {open}"))?;
    }
    out::line("\nSteps")?;
    for step in &report.steps {
        out::line(&format!("  {:<14} {}. {}", step.step, step.result.trim_end_matches('.'), step.why))?;
    }
    if report.trials.len() > 1 {
        out::line("\nReference job")?;
        report.trials.iter().try_for_each(|tried| out::line(&format!("  {}", trial(tried))))?;
    }
    out::line(&format!("\nRuns: {}", report.runs.join(", ")))
}

fn trial(tried: &Tried) -> String {
    let names: Vec<&str> = tried.nodes.iter().map(String::as_str).collect();
    let said = if tried.fails { format!("fails: {}", tried.why) } else { "runs".to_owned() };
    format!("{}: {said}", folded(&names))
}
