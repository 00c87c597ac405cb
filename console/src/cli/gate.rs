//! `muster gate`: may a job start on these nodes? For a scheduler's prolog: decides without measuring anything.

use clap::Args;
use muster_analysis::selector::{Decision, Gate, Outcome, gate};
use serde::Serialize;

use super::select::{From, basis};
use crate::config::Config;
use crate::exit::{Ended, FAIL, PASS, UNDECIDED, WARN};
use crate::options::{Ask, Pick};
use crate::out;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster gate -w \"$SLURM_JOB_NODELIST\" --job-hours 72
  muster gate -w 'node[001-064]' --job-hours 24 --p0 0.3 --budget 10 --json
  muster gate -w \"$(hostname -s)\" --job-hours 24 --prolog      in Slurm's Prolog

Exit codes: 0 run, 1 run after the named benchmarks (muster run regular), 2 do not run, 3 too little \
is known. With --budget, a validation that takes longer is a 2.
With --prolog only a node that must not run gives a non-zero exit code: Slurm then drains it and \
requeues the job. What should be validated first, what is unknown, and what kept it from deciding \
goes to standard error.")]
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

/// Decides. In a prolog, what keeps it from deciding stops no job: Slurm would drain every node for a database that cannot be read.
pub fn run(options: &Options, config: &Config) -> Ended {
    match decide(options, config) {
        Err(problem) if options.prolog => {
            eprintln!("muster gate: not decided, so the job may run: {:#}", problem.error);
            Ok(PASS)
        }
        ended => ended,
    }
}

fn decide(options: &Options, config: &Config) -> Ended {
    // The minutes a prolog has bound the decision, not the choice: a cheap half-validation would let a job through.
    let ask = Ask { budget: None, ..options.ask.clone() }.question();
    let basis = basis(&options.pick, &options.from, config, ask.job_hours)?;
    let answer = basis.answer(&ask);
    let out = basis.outlook.nodes().iter().filter(|n| n.down).map(|n| n.node.clone());
    let (failed, down): (Vec<String>, Vec<String>) = out.partition(|node| basis.failed.contains(node));
    let minutes = options.ask.budget.unwrap_or(f64::INFINITY);
    let decision = gate(&Gate { failed: &failed, down: &down, selection: &answer.selection, minutes });
    let code = match &decision {
        Decision::Run { .. } => PASS,
        Decision::Refuse { .. } => FAIL,
        Decision::Validate { .. } if answer.selection.outcome == Outcome::LowConfidence => UNDECIDED,
        Decision::Validate { .. } => WARN,
    };
    let (p0, joint_risk, validate) = (answer.p0, answer.joint, basis.validate(&answer));
    let report =
        Report { schema: "muster.gate", version: 1, job_hours: ask.job_hours, p0, joint_risk, validate, decision };
    if options.json {
        out::json(&report)?;
    } else if options.prolog && code != PASS {
        // What a prolog prints is not shown to the job; its log keeps standard error.
        eprintln!(
            "muster gate: {}{}",
            if code == UNDECIDED { "too little is known: " } else { "" },
            sentence(&report.decision)
        );
    } else {
        out::line(&sentence(&report.decision))?;
    }
    Ok(if options.prolog && code != FAIL { PASS } else { code })
}

fn sentence(decision: &Decision) -> String {
    match decision {
        Decision::Run { reason } => format!("run: {reason}"),
        Decision::Validate { benchmarks, reason, .. } => format!("validate first: {}; {reason}", benchmarks.join(", ")),
        Decision::Refuse { reason, .. } => format!("do not run: {reason}"),
    }
}
