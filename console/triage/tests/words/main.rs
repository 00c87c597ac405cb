//! What triage says of jobs, each in many states of one kind, word for word: as it stands in the files beside this one.
//!
//! With `MUSTER_BLESS=1` it is written there instead; read the difference before you commit it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod counts;
mod groups;
mod halving;
mod hosts;
mod lines;
mod lost;
#[path = "../../src/made.rs"]
mod made;
mod processes;
mod program;
mod timed;

use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use muster_logs::Rules;
use muster_triage::case::{self, Case};
use muster_triage::diagnose;
use muster_triage::report::Report;

static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::built_in().unwrap());

/// Who is suspected, and by what.
fn suspects(text: &mut String, report: &Report) {
    for suspect in &report.suspects {
        let of = (suspect.kind, &suspect.node, suspect.rank, suspect.gpu, &suspect.element);
        writeln!(text, "suspect {:.2} {of:?} {:?}", suspect.confidence, suspect.cause).unwrap();
        writeln!(text, "    {}", suspect.sentence).unwrap();
        let lines = suspect.evidence.iter();
        lines.for_each(|of| writeln!(text, "    {:?} {:?} {:?}: {}", of.source, of.node, of.rank, of.text).unwrap());
    }
}

/// Everything that is said of a case but its time line.
fn said(text: &mut String, name: &str, case: &Case) {
    let report = diagnose(case, &RULES);
    writeln!(text, "## {name}: {:?}, {} of {} ranks seen", report.category, report.ranks.seen, report.ranks.n).unwrap();
    writeln!(text, "do: {}", report.action).unwrap();
    writeln!(text, "drain: {:?}; offline: {:?}", report.drain, report.offline).unwrap();
    suspects(text, &report);
    report.steps.iter().for_each(|done| writeln!(text, "{}: {}. {}", done.step, done.result, done.why).unwrap());
    report.not_looked_at.iter().for_each(|line| writeln!(text, "- {line}").unwrap());
    writeln!(text).unwrap();
}

/// What one step of the procedure found, and what all of it came to.
fn in_short(text: &mut String, name: &str, step: &str, case: &Case) {
    let report = diagnose(case, &RULES);
    writeln!(text, "## {name}: {:?}{}", report.category, if report.drain.is_some() { ", drain" } else { "" }).unwrap();
    suspects(text, &report);
    match report.steps.iter().find(|done| done.step == step) {
        Some(done) => writeln!(text, "{}: {}. {}\n", done.step, done.result, done.why).unwrap(),
        None => writeln!(text, "{step} was not reached: ended by {}\n", ended_by(&report)).unwrap(),
    }
}

/// The last step before what is done without the job.
fn ended_by(report: &Report) -> &str {
    report.steps.iter().rev().map(|done| done.step).find(|step| *step != "offline-diagnosis").unwrap_or("nothing")
}

fn hold(name: &str, text: &str) {
    muster_golden::hold(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/words").join(name), text);
}
