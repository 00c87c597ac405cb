//! A failed job as an operator has it: logs, kernel logs, RAS polls, flight-recorder dumps and Inspector files, each optional.
//!
//! [`part`] reads one file of a bundle by its path into a [`Part`], without knowing the others, so that files can be read side by side;
//! [`gather`] puts the parts together. Nothing a file contains is run: dumps are read by an interpreter of a few pickle opcodes
//! ([`pickle`]). What is too long, too deep or too much is cut, counted and said, and the rest stands.
//!
//! | path | reader |
//! |---|---|
//! | `job.json` | [`job`] |
//! | `logs/rank_N.log`, other `logs/*` | [`logs`] |
//! | `dmesg/NODE.log` | [`logs`] |
//! | `ras/pollK.json`, `ras/pollK.txt` | [`ras`] |
//! | `fr/*` | [`recorder`] |
//! | `inspector/*.jsonl` | [`inspector`] |
//! | `watch.json` | what `muster watch --json` alerted of |
//! | `facts/NODE.json` | what collectors saw of a node, for health checks |
//! | `processes/NODE.json`, `collected.json` | what live nodes told of processes, and which nodes were asked |
//!
//! Logs, polls, dumps and Inspector's files may lie in a folder of their node: `ras/n1/poll1.json` is what the process asked on `n1` saw.

mod collected;
pub mod inspector;
pub mod job;
pub mod logs;
pub mod pickle;
pub mod ras;
pub mod recorder;
mod watched;

use std::io::{BufRead, Read};

use muster_logs::Rules;
use muster_triage::case::{Alerted, Case, Dump, Job, Log, OPERATIONS, Poll, Reached, Timed};
use muster_wire::{Looked, Processes, clean};

use crate::Bad;
use crate::lines::Limits;

/// Bytes of one document that is read whole: a dump of 2,000 entries with stacks takes a few megabytes.
const DOCUMENT: usize = 64 << 20;

/// What one file says.
#[derive(Clone, Debug)]
pub enum Part {
    /// Who runs where.
    Job(Job),
    /// A log.
    Log(Box<Log>),
    /// A poll of RAS.
    Poll(Poll),
    /// A dump of the flight recorder.
    Dump(Dump),
    /// Timed operations, and how many were not kept.
    Timed(Vec<Timed>, u64),
    /// What a node said of the job's processes.
    Processes(String, Box<Processes>),
    /// What collectors saw of a node.
    Looked(String, Vec<Looked>),
    /// Which nodes were asked.
    Reached(Vec<Reached>),
    /// What a watch alerted of.
    Alerts(Vec<Alerted>),
    /// The file is no part of a bundle.
    Other,
}

/// Reads one file of a bundle by its path within it.
///
/// # Errors
/// When it cannot be read, or is not what its place says.
pub fn part(path: &str, input: impl BufRead, rules: &Rules) -> Result<Part, Bad> {
    let path = path.trim_start_matches("./");
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let Some((file, folders)) = names.split_last() else { return Ok(Part::Other) };
    if file.starts_with('.') {
        return Ok(Part::Other);
    }
    // The innermost folder that says what it holds; below it, that of a node.
    let known = ["logs", "dmesg", "ras", "fr", "inspector", "processes", "facts"];
    let place = folders.iter().rposition(|folder| known.contains(folder));
    let node = place.and_then(|place| folders.get(place + 1));
    match place.and_then(|place| folders.get(place).copied()) {
        _ if *file == "collected.json" => Ok(Part::Reached(collected::reached(&text(input)?)?)),
        _ if *file == "watch.json" => Ok(Part::Alerts(watched::alerts(&text(input)?)?)),
        Some("processes") => collected::processes(file, &bytes(input)?),
        Some("facts") => collected::looked(file, &bytes(input)?),
        _ if *file == "job.json" => Ok(Part::Job(job::read(&text(input)?)?)),
        Some("logs") => Ok(Part::Log(Box::new(logs::read(logs::whose(file), input, rules)?))),
        Some("dmesg") => Ok(Part::Log(Box::new(logs::read(logs::kernel(file), input, rules)?))),
        Some("ras") => {
            let mut poll = ras::read(file, &text(input)?)?;
            poll.asked = node.map(|node| clean(node, muster_wire::limits::NAME_BYTES));
            Ok(Part::Poll(poll))
        }
        Some("fr") => recorder::read(file, &bytes(input)?).map(|dump| dump.map_or(Part::Other, Part::Dump)),
        Some("inspector") => inspector::read(input).map(|(timed, left_out)| Part::Timed(timed, left_out)),
        _ => Ok(Part::Other),
    }
}

/// Puts parts together; those that could not be read are said.
#[must_use]
pub fn gather(parts: impl IntoIterator<Item = (String, Result<Part, Bad>)>) -> Case {
    let mut case = Case::default();
    for (path, part) in parts {
        match part {
            Ok(Part::Job(job)) => case.job = job,
            Ok(Part::Log(log)) => case.logs.push(*log),
            Ok(Part::Poll(poll)) => case.polls.push(poll),
            Ok(Part::Dump(dump)) => case.dumps.push(dump),
            Ok(Part::Timed(timed, left_out)) => {
                let room = OPERATIONS.saturating_sub(case.timed.len());
                case.timed_left_out += left_out + timed.len().saturating_sub(room) as u64;
                case.timed.extend(timed.into_iter().take(room));
            }
            Ok(Part::Processes(node, told)) => drop(case.processes.insert(node, *told)),
            Ok(Part::Looked(node, looked)) => drop(case.looked.insert(node, looked)),
            Ok(Part::Reached(reached)) => case.reached.extend(reached),
            Ok(Part::Alerts(alerts)) => case.alerts.extend(alerts),
            Ok(Part::Other) => {}
            Err(why) => case.damage.push(format!("{}: not read: {why}.", clean(&path, 120))),
        }
    }
    case.logs.sort_by(|a, b| a.whose.cmp(&b.whose));
    case.dumps.sort_by_key(|dump| dump.rank);
    case.dumps.dedup_by_key(|dump| dump.rank);
    case.polls = muster_triage::views::merge(polls(case.polls));
    case
}

/// One poll of each number: JSON tells all counts, the text those of outliers.
fn polls(mut polls: Vec<Poll>) -> Vec<Poll> {
    polls.sort_by(|a, b| (a.number, a.text, &a.name).cmp(&(b.number, b.text, &b.name)));
    // Polls of one form only are comparable.
    let json = polls.iter().filter(|poll| !poll.text).count();
    if json > 1 || json == polls.len() {
        polls.retain(|poll| !poll.text);
    } else if polls.iter().filter(|poll| poll.text).count() > json {
        polls.retain(|poll| poll.text);
    }
    polls
}

fn limits() -> Limits {
    Limits { line: DOCUMENT, ..Limits::default() }
}

fn bytes(mut input: impl BufRead) -> Result<Vec<u8>, Bad> {
    let mut all = Vec::new();
    let read = input.by_ref().take(DOCUMENT as u64 + 1).read_to_end(&mut all);
    read.map_err(|source| Bad::Io { line: 1, source })?;
    if all.len() > DOCUMENT {
        return Err(Bad::TooMuch { line: 1, limit: limits().line, what: "bytes in a document" });
    }
    Ok(all)
}

fn text(input: impl BufRead) -> Result<String, Bad> {
    Ok(String::from_utf8_lossy(&bytes(input)?).into_owned())
}

/// A number that may be written as text.
fn number(value: &serde_json::Value) -> Option<i64> {
    match value {
        serde_json::Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|real| real as i64)),
        serde_json::Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Text, cleaned and bounded.
fn word(value: &serde_json::Value) -> Option<String> {
    value.as_str().map(|text| clean(text, muster_wire::limits::NAME_BYTES))
}

/// The last number in a file's name.
fn last_number(name: &str) -> Option<u32> {
    let digits = name.trim_end_matches(|c: char| !c.is_ascii_digit());
    let start = digits.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    digits[start..].parse().ok()
}
