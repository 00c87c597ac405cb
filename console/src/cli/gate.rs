//! `muster gate`: may a job start on these nodes? For a scheduler's prolog: decides without measuring anything.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::Args;
use muster_analysis::selector::{Decision, Gate, Outcome, gate};
use serde::Serialize;

use super::select::{From, Held, basis, told, unknown};
use crate::config::Config;
use crate::exit::{Ended, FAIL, PASS, UNDECIDED, WARN};
use crate::options::{Ask, Pick};
use crate::out;
use crate::service::Standing;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster gate -w \"$SLURM_JOB_NODELIST\" --job-hours 72
  muster gate -w 'node[001-064]' --job-hours 24 --p0 0.3 --budget 10 --json
  muster gate -w \"$(hostname -s)\" --job-hours 24 --prolog      in Slurm's Prolog

Exit codes: 0 run, 1 run after the named benchmarks (muster run regular), 2 do not run, 3 too little \
is known, such as of a node that never was measured here, however low its risk. With --budget, a validation \
that takes longer is a 2. A node in repair, defective or in the hot buffer (muster swap states) exits 2, whatever \
its risk.
With --prolog only a node that must not run gives a non-zero exit code: Slurm then drains it and \
requeues the job. What should be validated first, what is unknown, and what kept it from deciding \
goes to standard error. It looks into runs for 5 s at most, and says so where that was too short.")]
pub struct Options {
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// About which job.
    #[command(flatten)]
    pub ask: Ask,
    /// Where the history comes from.
    #[command(flatten)]
    pub from: From,
    /// For a scheduler's prolog: non-zero exit code only for a node that must not run.
    #[arg(long)]
    pub prolog: bool,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    job_hours: f64,
    p0: f64,
    joint_risk: f64,
    /// Nodes to validate first, the riskiest first.
    validate: Vec<String>,
    #[serde(flatten)]
    decision: Decision,
}

/// How long a prolog looks into runs for what they say of its nodes: within Slurm's time limit.
const PATIENCE: Duration = Duration::from_secs(5);

/// Decides. In a prolog, what keeps it from deciding stops no job: Slurm would drain every node for a database that cannot be read.
pub fn run(options: &Options, config: &Config) -> Ended {
    match decide(options, config) {
        Err(problem) if options.prolog => {
            out::note(format_args!("muster gate: not decided, so the job may run: {:#}", problem.error));
            Ok(PASS)
        }
        ended => ended,
    }
}

fn decide(options: &Options, config: &Config) -> Ended {
    // The minutes a prolog has bound the decision, not the choice: a cheap half-validation would let a job through.
    let ask = Ask { budget: None, ..options.ask.clone() }.question();
    // Nobody waits longer for a prolog.
    let until = options.prolog.then(|| Instant::now() + PATIENCE);
    let (basis, held) = basis(&options.pick, &options.from, config, (ask.job_hours, until))?;
    let answer = basis.answer(&ask);
    let out = basis.outlook.nodes().iter().filter(|n| n.down).map(|n| n.node.clone());
    let (failed, down): (Vec<String>, Vec<String>) = out.partition(|node| basis.failed.contains(node));
    let minutes = options.ask.budget.unwrap_or(f64::INFINITY);
    let unknown = unknown(&basis, &options.from);
    let known = gate(&Gate {
        failed: &failed,
        down: &down,
        unknown: unknown.as_deref(),
        benchmarks: basis.outlook.benchmarks(),
        selection: &answer.selection,
        minutes,
    });
    // An incident that is open refuses the job even where nothing else can be read.
    let held = match held {
        Err(_) if matches!(known, Decision::Refuse { .. }) => Held::NOBODY,
        held => held?,
    };
    if !held.whole {
        let seconds = PATIENCE.as_secs();
        out::note(format_args!(
            "muster gate: {seconds} s were too short for all runs; an older failure is not known of"
        ));
    }
    let decision = refused(&held.nodes).unwrap_or_else(|| with_unreached(known, &held.unreached));
    let low = unknown.is_some() || answer.selection.outcome == Outcome::LowConfidence;
    let mut validate = basis.validate(&answer);
    let asked: BTreeSet<String> = validate.iter().cloned().collect();
    validate.extend(basis.unmeasured.iter().filter(|node| !asked.contains(*node)).cloned());
    let (p0, joint_risk) = (answer.p0, answer.joint);
    let report =
        Report { schema: "muster.gate", version: 1, job_hours: ask.job_hours, p0, joint_risk, validate, decision };
    tell(&report, options, low)
}

/// Prints the decision; its exit code. With `low`, too little is known for more than the full set.
fn tell(report: &Report, options: &Options, low: bool) -> Ended {
    let code = match &report.decision {
        Decision::Run { .. } => PASS,
        Decision::Refuse { .. } => FAIL,
        Decision::Validate { .. } if low => UNDECIDED,
        Decision::Validate { .. } => WARN,
    };
    if options.json {
        out::json(report)?;
    } else if options.prolog && code != PASS {
        // What a prolog prints is not shown to the job; its log keeps standard error.
        let little = if code == UNDECIDED { "too little is known: " } else { "" };
        out::note(format_args!("muster gate: {little}{}", sentence(&report.decision)));
    } else {
        out::line(&sentence(&report.decision))?;
    }
    Ok(if options.prolog && code != FAIL { PASS } else { code })
}

/// Unreachable nodes that are named; more are counted.
const NAMED: usize = 3;

/// Benchmarks cannot be asked of a node that cannot be reached: said beside them.
fn with_unreached(known: Decision, unreached: &[String]) -> Decision {
    match known {
        Decision::Validate { benchmarks, minutes, mut reason } if !unreached.is_empty() => {
            let said: Vec<&str> = unreached.iter().take(NAMED).map(String::as_str).collect();
            reason += &format!("; the newest attempt could not reach {}", said.join("; nor "));
            if unreached.len() > NAMED {
                reason += &format!("; nor {} more", unreached.len() - NAMED);
            }
            Decision::Validate { benchmarks, minutes, reason }
        }
        other => other,
    }
}

/// Why the job must not run on nodes that are in other hands; `None` where all are in service.
fn refused(held: &[Standing]) -> Option<Decision> {
    let reason = told(held)?;
    Some(Decision::Refuse { nodes: held.iter().map(|one| one.machine.name.clone()).collect(), reason })
}

fn sentence(decision: &Decision) -> String {
    match decision {
        Decision::Run { reason } => format!("run: {reason}"),
        Decision::Validate { benchmarks, reason, .. } => format!("validate first: {}; {reason}", benchmarks.join(", ")),
        Decision::Refuse { reason, .. } => format!("do not run: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use muster_analysis::service::{Known, Machine, Service};

    use super::*;
    use crate::service::Counterpart;

    fn standing(name: &str, service: Service, who: &str, why: &str) -> Standing {
        Standing {
            machine: Machine { name: name.into(), ..Machine::default() },
            known: Known::default(),
            service,
            since_ms: None,
            who: who.into(),
            why: why.into(),
            run: None,
            counterpart: None,
        }
    }

    #[test]
    fn nodes_in_other_hands_are_refused_with_whose_and_why() {
        assert_eq!(refused(&[]), None);
        let mut held = vec![
            standing("n101", Service::HotBuffer, "", ""),
            standing("n003", Service::Defective, "", "n003: disk is slow"),
            standing("n007", Service::InRepair, "kim", "RMA 4711"),
        ];
        let said = |held: &[Standing]| match refused(held) {
            Some(Decision::Refuse { nodes, reason }) => (nodes, reason),
            other => panic!("{other:?}"),
        };
        let (nodes, reason) = said(&held);
        assert_eq!(nodes, ["n101", "n003", "n007"]);
        assert_eq!(
            reason,
            "n007 is in repair, by kim: RMA 4711; n003 is defective: disk is slow; n101 is in the hot buffer"
        );
        let by = Counterpart::ReplacedBy { node: "n102".into(), since_ms: 0, until_ms: None };
        let replaced = Standing { counterpart: Some(by), ..held[2].clone() };
        let (_, reason) = said(&[replaced]);
        assert_eq!(reason, "n007 is in repair, by kim: RMA 4711 (replaced by n102 on 1970-01-01)");
        held.extend(["n004", "n005", "n006", "n008"].map(|name| standing(name, Service::Defective, "", "")));
        let (_, reason) = said(&held);
        assert!(reason.contains("n005 is defective; so are n[006,008]; n101"), "{reason}");
    }

    #[test]
    fn a_validation_is_asked_for_with_whom_nobody_could_reach() {
        let known =
            || Decision::Validate { benchmarks: vec!["disk".into()], minutes: 3.0, reason: "run 1 of 9".into() };
        assert_eq!(with_unreached(known(), &[]), known());
        let lost = ["n007: connect: connection refused".to_owned()];
        let said = sentence(&with_unreached(known(), &lost));
        let expected =
            "validate first: disk; run 1 of 9; the newest attempt could not reach n007: connect: connection refused";
        assert_eq!(said, expected);
        let many: Vec<String> = (1..=5).map(|n| format!("n{n}: connect: timed out")).collect();
        assert!(sentence(&with_unreached(known(), &many)).ends_with("; nor n3: connect: timed out; nor 2 more"));
        let run = Decision::Run { reason: "nothing has to run".into() };
        assert_eq!(with_unreached(run.clone(), &lost), run);
    }
}
