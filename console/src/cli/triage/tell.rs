//! The verdict for whoever is on call: the sentence, what to do, what it rests on, how it was found.

use muster_playbook::report::rfc3339;
use muster_triage::report::{Evidence, Report, Suspect};

use crate::exit::Problem;
use crate::out;

/// Suspects that are shown; all are in the JSON.
const SHOWN: usize = 5;

pub(super) fn report(report: &Report) -> Result<(), Problem> {
    let verdict = match report.suspects.first() {
        Some(first) => format!("{}: {}", report.category.name(), first.sentence),
        None => format!("{}: nothing that was read names a cause.", report.category.name()),
    };
    out::line(&verdict)?;
    out::line(&format!("Next: {}", report.action))?;
    if let Some(drain) = &report.drain {
        out::line(&format!("Drain: {drain}"))?;
    }
    for suspect in report.suspects.iter().take(SHOWN) {
        one(suspect)?;
    }
    if report.suspects.len() > SHOWN {
        out::line(&format!("and {} more suspects (--json lists them)", report.suspects.len() - SHOWN))?;
    }
    for suspect in &report.marked_wrong {
        out::line(&format!("\nMarked as wrong: {}", suspect.sentence))?;
    }
    out::line("\nSteps")?;
    for step in &report.steps {
        out::line(&format!("  {:<20} {}. {}", step.step, step.result, step.why))?;
    }
    let ranks = &report.ranks;
    out::line(&format!("\n{} of {} ranks seen, {} nodes", ranks.seen, ranks.n, report.clocks.len()))?;
    let skewed = report.clocks.iter().filter(|clock| clock.offset_s.abs() > clock.error_s);
    for clock in skewed.take(SHOWN) {
        out::line(&format!(
            "  the clock of {} is {:+.2} s off (±{:.2} s), corrected",
            clock.node, clock.offset_s, clock.error_s
        ))?;
    }
    out::line("\nNot looked at")?;
    report.not_looked_at.iter().try_for_each(|missing| out::line(&format!("  {missing}")))
}

fn one(suspect: &Suspect) -> Result<(), Problem> {
    out::line(&format!("\n{} (confidence {:.2})", suspect.sentence, suspect.confidence))?;
    suspect.evidence.iter().try_for_each(|evidence| out::line(&format!("  {}", line(evidence))))
}

fn line(evidence: &Evidence) -> String {
    let at = evidence.at.map_or(String::new(), |at| format!("{} ", rfc3339((at.max(0.0) * 1e3) as u64)));
    let node = evidence.node.as_ref().map_or(String::new(), |node| format!(" {node}"));
    let rank = evidence.rank.map_or(String::new(), |rank| format!(" rank {rank}"));
    format!("{at}{}{node}{rank}: {}", evidence.source.title(), evidence.text)
}
