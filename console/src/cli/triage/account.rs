//! `muster triage account`: where the time of a job went over its attempts.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use muster_import::Bad;
use muster_import::bundle::logs;
use muster_logs::Rules;
use muster_logs::stamp::Stamp;
use muster_triage::account::{Account, Step, Told, account};
use muster_triage::case;
use muster_wire::clean;

use crate::cases::name_of;
use crate::exit::{Code, Ended, IO, PASS, Problem, UNDECIDED, USAGE};
use crate::out;
use crate::patience::Patience;
use crate::work::bundle;

/// Steps that are kept of one log: 40 bytes each.
const STEPS: usize = 1 << 20;
/// An instant from which years are counted where no stamp has one.
const NO_YEAR_S: f64 = 1.6e9;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster triage account --from job-4711/
  muster triage account --from attempt-1/ attempt-2.tar.gz attempt-3/
  muster triage account --from job-4711/ --json

Of every attempt the log that tells most steps counts. Attempts are the bundles given, folders called attempt_N in one of them (as \
torchrun makes them), and parts of a log after which step numbers go back. Step times come from lines that muster's rules know \
(Megatron, DeepSpeed, NeMo, torchtitan and others), or from the distance of two steps. A step counts as slow from 1.2 times the mean on.

Exit codes: 0 told, 3 no log tells how long steps took")]
pub struct Options {
    /// Bundles, or folders of logs, of one job: one, or one an attempt.
    #[arg(long, value_name = "DIR|FILE", num_args = 1.., required = true)]
    pub from: Vec<PathBuf>,
    /// JSON on standard output (assets/schemas/muster.triage-account.json).
    #[arg(long)]
    pub json: bool,
}

/// Reads the logs and accounts.
pub(super) fn run(options: &Options) -> Ended {
    let rules = Rules::built_in().code(IO)?;
    let waiting = Patience::new("reading the logs");
    let (mut told, mut notes) = (Vec::new(), Vec::new());
    for from in &options.from {
        let (attempts, said) = attempts(from, &rules)?;
        told.extend(attempts);
        notes.extend(said);
    }
    drop(waiting);
    let Some(mut account) = account(told) else {
        notes.iter().for_each(out::note);
        out::note("no log tells how long steps took; docs/TRIAGE.md lists the lines that are known");
        return Ok(UNDECIDED);
    };
    account.notes.extend(notes);
    if options.json {
        out::json(&account)?
    } else {
        tell(&account)?
    }
    Ok(PASS)
}

/// Of each attempt in a bundle the log with most steps; and what could not be read.
fn attempts(from: &Path, rules: &Rules) -> Result<(Vec<Told>, Vec<String>), Problem> {
    let parse = |name: &str, input: &mut dyn BufRead| -> Result<(Vec<case::Step>, u64), Bad> {
        if is_log(name) { logs::steps(input, rules, STEPS) } else { Ok((Vec::new(), 0)) }
    };
    let files = bundle::each(from, &parse, &|_, _| true)?;
    let (mut best, mut notes): (BTreeMap<String, Vec<case::Step>>, Vec<String>) = (BTreeMap::new(), Vec::new());
    let whole = name_of(from);
    if !files.iter().any(|(name, _)| is_log(name)) {
        let error = anyhow!("{}: no log of a job in it (logs/*, or *.log and *.out)", from.display());
        return Err(Problem { code: USAGE, error });
    }
    for (name, read) in files {
        match read.and_then(|read| read) {
            Ok((steps, left_out)) => {
                if left_out > 0 {
                    notes.push(format!("{}: {left_out} more steps were left out.", clean(&name, 120)));
                }
                let attempt = attempt_of(&name).map_or_else(|| whole.clone(), |attempt| format!("{whole}/{attempt}"));
                let known = best.entry(attempt).or_default();
                if steps.len() > known.len() {
                    *known = steps;
                }
            }
            Err(why) => notes.push(format!("{}: not read: {why}.", clean(&name, 120))),
        }
    }
    // The part of a bundle that no attempt is named after tells nothing where attempts are named.
    if best.len() > 1 && best.get(&whole).is_some_and(Vec::is_empty) {
        best.remove(&whole);
    }
    let mut names: Vec<String> = best.keys().cloned().collect();
    names.sort_by_key(|name| (number(name), name.clone()));
    let told = names.into_iter().map(|name| Told { steps: best.get(&name).map_or_else(Vec::new, |s| dated(s)), name });
    Ok((told.collect(), notes))
}

fn is_log(name: &str) -> bool {
    let mut folders = name.rsplit('/');
    let file = folders.next().unwrap_or_default();
    let within = folders.next().unwrap_or_default();
    let ends = [".log", ".out", ".err", ".txt", ".gz"].iter().any(|ending| file.ends_with(ending));
    !file.starts_with('.') && within != "dmesg" && within != "ras" && (within == "logs" || ends)
}

/// The folder that an attempt is called by, as in `run/attempt_1/0/stdout.log`.
fn attempt_of(name: &str) -> Option<String> {
    let is = |folder: &&str| {
        folder.strip_prefix("attempt").is_some_and(|rest| rest.trim_start_matches(['_', '-']).parse::<u32>().is_ok())
    };
    let folders = name.rsplit_once('/')?.0;
    folders.split('/').find(is).map(|folder| clean(folder, 80))
}

/// The number at the end of a name, so that the tenth attempt follows the ninth.
fn number(name: &str) -> u64 {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[name.len() - digits..].parse().unwrap_or(0)
}

/// Steps with their times since 1970; what counts from a boot has none.
fn dated(steps: &[case::Step]) -> Vec<Step> {
    let with_year = |step: &case::Step| match step.at {
        Some(Stamp::Utc(at) | Stamp::Local(at)) => Some(at),
        _ => None,
    };
    let near_s = steps.iter().find_map(with_year).unwrap_or(NO_YEAR_S);
    let at = |stamp: Stamp| if matches!(stamp, Stamp::Boot(_)) { None } else { Some(stamp.seconds_near(near_s)) };
    let step = |step: &case::Step| Step { number: step.step, at_s: step.at.and_then(at), took_s: step.seconds };
    steps.iter().map(step).collect()
}

/// The account for people: an attempt a row, then all of it.
fn tell(account: &Account) -> Result<(), Problem> {
    let s = |seconds: f64| long(seconds);
    let or = |seconds: Option<f64>| seconds.map_or("-".to_owned(), long);
    let row = |attempt: &muster_triage::account::Attempt| {
        vec![
            attempt.name.clone(),
            format!("{}-{}", attempt.first_step, attempt.last_step),
            s(attempt.steps.in_steps_s),
            format!("{:.2} s", attempt.steps.median_step_s),
            format!("{} ({})", attempt.steps.slow_steps, s(attempt.steps.slow_s)),
            format!("{:.1} %", attempt.steps.degradation_percent),
            or(attempt.between_steps_s),
            or(attempt.lost_before_s),
            format!("{} ({})", attempt.repeated_steps, s(attempt.repeated_s)),
        ]
    };
    let rows: Vec<Vec<String>> = account.attempts.iter().map(row).collect();
    let head =
        ["attempt", "steps", "in steps", "median", "slow", "degraded", "between steps", "lost before", "done again"];
    out::line(&out::table(&head, &rows))?;
    let total = &account.total;
    let share = |seconds: f64| {
        let of = total.percent(seconds).map(|percent| format!(" ({percent:.1} %)"));
        format!("{}{}", long(seconds), of.unwrap_or_default())
    };
    out::line(&format!("\n{} in {}", out::counted(total.attempts, "attempt", "attempts"), or(total.elapsed_s)))?;
    for (what, seconds) in [
        ("in steps", Some(total.steps.in_steps_s)),
        ("of these slow", Some(total.steps.slow_s)),
        ("of these done again", Some(total.repeated_s)),
        ("between steps", total.between_steps_s),
        ("between attempts", total.lost_between_s),
        ("useful", Some(total.useful_s)),
    ] {
        let text = seconds.map_or("not told".to_owned(), share);
        out::line(&format!("  {what:<20} {text}"))?;
    }
    out::line(&format!("  {:<20} {:.2} %", "degradation", total.steps.degradation_percent))?;
    account.notes.iter().try_for_each(|note| out::line(note))
}

/// Seconds in at most two units: `3.2 s`, `4 min 10 s`, `2 h 5 min`.
fn long(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_called_by_its_folder() {
        assert_eq!(attempt_of("run7/attempt_1/0/stdout.log").as_deref(), Some("attempt_1"));
        assert_eq!(attempt_of("logs/rank_0.log"), None);
        assert_eq!(attempt_of("attempts/rank_0.log"), None);
        assert!(number("x/attempt_10") > number("x/attempt_9"));
    }

    #[test]
    fn kernel_logs_polls_and_hidden_files_are_no_logs_of_a_job() {
        for (name, is) in [
            ("logs/anything", true),
            ("0/stdout.log", true),
            ("slurm-7.out", true),
            ("dmesg/n1.log", false),
            ("ras/poll1.txt", false),
            ("job.json", false),
            (".hidden.log", false),
        ] {
            assert_eq!(is_log(name), is, "{name}");
        }
    }
}
