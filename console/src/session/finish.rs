//! How are the verdicts of a run said, and what is its exit code?

use muster_playbook::report::{self, RunReport};
use muster_run::RunState;

use super::carry::Done;
use crate::exit::{Ended, FAIL, INTERRUPTED, PASS, UNDECIDED, WARN};
use crate::options::{Line, Say};
use crate::out;

/// Prints the verdicts and turns them into an exit code.
///
/// # Errors
/// When standard output cannot be written.
pub fn finish(done: &Done, say: &Say) -> Ended {
    if say.json {
        out::json(&done.report)?;
    } else {
        let fold = |names: &[&str]| muster_fleet::hostlist::fold(names.iter().copied());
        out::line(report::table(&done.report, width(), &fold).trim_end())?;
    }
    Ok(match done.state {
        RunState::Finished | RunState::Incomplete => exit_code(&done.report, say.fail_on),
        RunState::Cancelled => done.signal.unwrap_or(INTERRUPTED),
        _ => UNDECIDED,
    })
}

/// Exit code of the verdicts on nodes, and on pairs of them.
#[must_use]
pub fn exit_code(report: &RunReport, fail_on: Line) -> u8 {
    exit_code_of(&report.summary, report.network.as_ref(), fail_on)
}

/// The same of how many nodes ended how, and of the pairs.
#[must_use]
pub fn exit_code_of(summary: &report::Summary, network: Option<&report::PairsReport>, fail_on: Line) -> u8 {
    let network = match network.map_or(PASS, report::PairsReport::exit_code) {
        WARN if fail_on != Line::Warn => PASS,
        UNDECIDED if fail_on == Line::Fail => PASS,
        code => code,
    };
    worse(report::exit_code(summary, fail_on.into()), network)
}

/// The graver of two exit codes: 2 before 3 before 1.
fn worse(a: u8, b: u8) -> u8 {
    [FAIL, UNDECIDED].into_iter().find(|code| [a, b].contains(code)).unwrap_or(a.max(b))
}

fn width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(100)
}

/// The word of a state as JSON has it.
#[must_use]
pub fn word(state: &impl serde::Serialize) -> String {
    match serde_json::to_value(state) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}
