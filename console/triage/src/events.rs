//! What the lines said, on one clock, and which of it falls into the job's end.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::case::{Case, Log, Whose};
use super::clock::{Clocks, UNKNOWN_S};
use super::layout::Layout;
use super::report::{Evidence, Source};
use muster_logs::fault::{Cause, Fault};
use muster_logs::stamp::Stamp;
use muster_logs::{Field, Kind, Part, Rule, Rules, Seen};

/// Seconds before the last step in which a cause may lie.
const BEFORE_S: f64 = 60.0;
/// Seconds after the last that the job said in which a machine may tell why.
const AFTER_S: f64 = 600.0;
/// Seconds after which a machine's line is of another time than the job, where nothing tells when the job ended.
const DAY_S: f64 = 86_400.0;
/// Seconds by which a step must be later than the end of a trouble, at most: clocks of one node are its own.
const AFTER_STEP_S: f64 = 5.0;
/// Steps that a program may have printed before it died and that reach its log after its last words: what it prints waits in a
/// buffer of 8 kB, and its last words do not.
const BUFFERED: usize = 200;

/// One line on the common clock.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// What it means.
    pub rule: &'a Rule,
    /// The line.
    pub seen: &'a Seen,
    /// Node that wrote it.
    pub node: Option<String>,
    /// Rank that wrote it, or that it speaks of.
    pub rank: Option<u32>,
    /// GPU that it speaks of.
    pub gpu: Option<u32>,
    /// In what it stands.
    pub source: Source,
    /// When, on the common clock.
    pub at_s: Option<f64>,
    /// By how much that may be wrong, seconds.
    pub error_s: f64,
    /// It speaks of a process of another job (not one of its processes, or written before it began), or of a machine that has no
    /// part in the job.
    pub foreign: bool,
    /// Its log shows that it is long past: its writer went on, or the machine ran for days after it.
    pub past: bool,
    /// When what it tells of was over, as a later line says; on the common clock.
    pub over_s: Option<f64>,
    /// Which log, by its place in the case, and which line of it.
    pub place: (usize, u64),
}

impl Event<'_> {
    /// As evidence.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        let times = if self.seen.count > 1 { format!(" ({} times)", self.seen.count) } else { String::new() };
        let text = format!("{}{times} [{}]", self.rule.meaning, short(&self.seen.text));
        Evidence { source: self.source, node: self.node.clone(), rank: self.rank, at: self.at_s, text }
    }

    /// What exactly is wrong by its rule, with the process and the path that the line names.
    #[must_use]
    pub fn cause(&self) -> Cause {
        let fields = &self.seen.fields;
        let pid = fields.number(Field::Pid).and_then(|pid| u32::try_from(pid).ok());
        Cause { fault: self.rule.fault, pid, path: fields.get(Field::Path).map(str::to_owned) }
    }

    /// Whether it lies in the time of the job's end. What a job itself says is never later than its end.
    #[must_use]
    pub fn in_window(&self, end: &End) -> bool {
        let error_s = self.error_s.min(UNKNOWN_S);
        let before = end.from_s.is_some_and(|from_s| self.is_over_by(from_s));
        let later = |until_s: f64| self.source == Source::Kernel && self.at_s.is_some_and(|at| at - error_s > until_s);
        // The job went on after it was over.
        let got_over = end.last_s.zip(self.over_s).is_some_and(|(last, over)| over + error_s.min(AFTER_STEP_S) < last);
        !before && !self.past && !got_over && !end.until_s.is_some_and(later)
    }

    /// Whether its last line was written before then for certain, whatever the error of its clock.
    fn is_over_by(&self, then_s: f64) -> bool {
        let Some(at) = self.at_s else { return false };
        // The last line is as far from the first on the common clock as on its writer's.
        let after = self.seen.first.zip(self.seen.last).map_or(0.0, |(first, last)| {
            let first = first.seconds_near(at);
            last.seconds_near(first) - first
        });
        at + after.max(0.0) + self.error_s.min(UNKNOWN_S) < then_s
    }

    /// Whether the kernel speaks of what a process did or suffered, and not of what is broken whoever noticed.
    fn is_of_a_process(&self) -> bool {
        self.source == Source::Kernel && (is_of_program(self.rule) || is_killed(self.rule))
    }
}

/// The kernel killed a process for lack of memory.
fn is_killed(rule: &Rule) -> bool {
    rule.kind != Kind::Critical && rule.fault == Some(Fault::OutOfMemory)
}

/// Whether a process that no rank is called by may still be a rank's child, such as one that loads data.
fn may_be_of_a_rank(seen: &Seen) -> bool {
    let name = seen.fields.get(Field::Process).unwrap_or("python");
    ["python", "pt_", "torch"].iter().any(|start| name.starts_with(start))
}

/// An error of a program, which counts only for its own job; broken hardware is broken whoever noticed.
fn is_of_program(rule: &Rule) -> bool {
    rule.kind != Kind::Critical && matches!(rule.part, Part::Gpu | Part::GpuMemory | Part::Program)
}

/// A line, cut to what a screen shows.
pub(super) fn short(text: &str) -> String {
    const SHOWN: usize = 240;
    let cut = text.floor_char_boundary(SHOWN);
    if cut < text.len() { format!("{}…", &text[..cut]) } else { text.to_owned() }
}

/// The end of the job: when it last got on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct End {
    /// Last step, or the beginning of the oldest operation that timed out; on the common clock.
    pub last_s: Option<f64>,
    /// From when on a line may tell the cause.
    pub from_s: Option<f64>,
    /// Until when a line of a machine may.
    pub until_s: Option<f64>,
}

/// All lines that some rule knows, in the order of the common clock.
#[must_use]
pub fn events<'a>(case: &'a Case, rules: &'a Rules, layout: &Layout, clocks: &Clocks) -> Vec<Event<'a>> {
    let mut events: Vec<Event<'a>> = Vec::new();
    let begun_s = begun_s(case, layout, clocks);
    let own = own_machines(case, layout);
    for (place, log) in case.logs.iter().enumerate() {
        let ends: Vec<&Seen> = log.seen.iter().filter(|seen| !rules.rule(seen.rule).ends.is_empty()).collect();
        let went_on = went_on(log, rules);
        for seen in &log.seen {
            let mut event = event(rules.rule(seen.rule), seen, &log.whose, layout, clocks);
            event.place.0 = place;
            event.foreign |= event.is_of_a_process() && begun_s.is_some_and(|begun_s| event.is_over_by(begun_s));
            event.foreign |= own.as_ref().is_some_and(|own| is_elsewhere(&event, own));
            // Of a line that came again, only the first row is known.
            let outlived = seen.count == 1 && seen.first.is_none() && went_on.is_some_and(|from| seen.row < from);
            event.past = outlived || is_of_another_day(log, seen);
            let over = ends
                .iter()
                .filter(|end| tells_the_end_of(rules.rule(end.rule), end, &event))
                .filter_map(|end| end.last);
            let over = over.filter_map(|stamp| clocks.common(event.node.as_deref(), stamp));
            event.over_s = over.max_by(f64::total_cmp);
            events.push(event);
        }
    }
    if let Some(since_s) = case.since_s {
        let newest = events.iter().filter_map(|event| event.at_s).fold(clocks.near_s, f64::max);
        events.retain(|event| event.at_s.is_none_or(|at| at >= newest - since_s));
    }
    events.sort_by(|a, b| a.at_s.unwrap_or(f64::INFINITY).total_cmp(&b.at_s.unwrap_or(f64::INFINITY)));
    events
}

fn event<'a>(rule: &'a Rule, seen: &'a Seen, whose: &Whose, layout: &Layout, clocks: &Clocks) -> Event<'a> {
    let of_line = seen.fields.number(Field::Rank).or(seen.origin.rank.map(u64::from)).map(|rank| rank as u32);
    let host = seen.origin.host.as_deref().map(|host| layout.node(host));
    let (source, rank, node) = match whose {
        Whose::Kernel(node) => (Source::Kernel, None, Some(layout.node(node))),
        Whose::Rank(rank) => (Source::Log, Some(*rank), layout.node_of(*rank).map(str::to_owned).or(host)),
        Whose::Job(_) => {
            let node = of_line.and_then(|rank| layout.node_of(rank)).map(str::to_owned).or(host);
            (Source::Log, of_line, node)
        }
    };
    let pid = seen.fields.number(Field::Pid).map(|pid| pid as u32);
    let named = || node.as_deref();
    let by_pid = named().zip(pid).and_then(|(node, pid)| layout.rank_of_pid(node, pid));
    let of_its_own = if is_killed(rule) { !may_be_of_a_rank(seen) } else { is_of_program(rule) };
    let foreign = of_its_own
        && source == Source::Kernel
        && pid.is_some()
        && by_pid.is_none()
        && named().is_some_and(|node| layout.knows_processes_of(node));
    let by_bus = named().zip(seen.fields.get(Field::Bus)).and_then(|(node, bus)| layout.gpu_at(node, bus));
    let gpu = by_bus.or_else(|| rank.or(by_pid).and_then(|rank| layout.gpu_of(rank)));
    let rank = rank.or_else(|| named().zip(by_bus).and_then(|(node, gpu)| layout.rank_at(node, gpu))).or(by_pid);
    let at_s = seen.first.and_then(|stamp| clocks.common(named(), stamp));
    let error_s = clocks.error_s(named());
    let (past, over_s, place) = (false, None, (0, seen.row));
    Event { rule, seen, node, rank, gpu, source, at_s, error_s, foreign, past, over_s, place }
}

/// The row before which all is past, though it tells no time: its rank went on with the job for long after it.
///
/// Steps behind a line prove that only where they are many, or where the rank had more to say after them.
fn went_on(log: &Log, rules: &Rules) -> Option<u64> {
    const FEW: usize = 2;
    let last = log.steps.last()?.row;
    let says = |seen: &&Seen| seen.row > last && rules.rule(seen.rule).part != Part::Scheduler;
    let spoke = matches!(log.whose, Whose::Rank(_)) && log.seen.iter().any(|seen| says(&seen));
    let behind = if spoke { FEW } else { BUFFERED };
    // The line must have more than so many steps behind it.
    let at = log.steps.len().checked_sub(behind + 1)?;
    Some(log.steps[at].row)
}

/// Whether a machine was up for more than a day after a line that only tells seconds since its boot.
fn is_of_another_day(log: &Log, seen: &Seen) -> bool {
    match (seen.last, log.last) {
        (Some(Stamp::Boot(at)), Some(Stamp::Boot(last))) => last - at > DAY_S,
        _ => false,
    }
}

/// Whether `end`, a line of the same log, says that what `event` tells of is over.
fn tells_the_end_of(rule: &Rule, end: &Seen, event: &Event<'_>) -> bool {
    if !rule.ends.contains(&event.rule.id) {
        return false;
    }
    let same = |field| match (end.fields.get(field), event.seen.fields.get(field)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let later = end.last.zip(event.seen.last).is_some_and(|(end, last)| {
        let last = last.seconds_near(0.0);
        end.seconds_near(last) >= last
    });
    later && [Field::Server, Field::Device, Field::Element].into_iter().all(same)
}

/// The machines of the job by their short names, where somebody wrote down all of them.
fn own_machines(case: &Case, layout: &Layout) -> Option<BTreeSet<String>> {
    let named = case.job.members.iter().filter_map(|member| member.node.as_deref());
    let nodes: Vec<String> =
        named.chain(case.job.nodes.iter().map(String::as_str)).map(|node| layout.node(node)).collect();
    // An address may be any machine's.
    if nodes.iter().any(|node| node.parse::<IpAddr>().is_ok()) {
        return None;
    }
    let own: BTreeSet<String> = nodes.iter().map(|node| short_name(node)).collect();
    let all = !case.job.nodes.is_empty() || case.job.members.iter().all(|member| member.node.is_some());
    (all && !own.is_empty()).then_some(own)
}

/// Whether a kernel's log is of a machine that has no part in the job. An address may be any machine's.
fn is_elsewhere(event: &Event<'_>, own: &BTreeSet<String>) -> bool {
    let Some(node) = event.node.as_deref().filter(|_| event.source == Source::Kernel) else { return false };
    node.parse::<IpAddr>().is_err() && !own.contains(&short_name(node))
}

fn short_name(node: &str) -> String {
    node.split('.').next().unwrap_or_default().to_ascii_lowercase()
}

/// The earliest time at which the job can have begun, on the common clock; nothing where nobody tells.
///
/// A kernel's log holds the end of the job before on that node, which may be seconds away.
fn begun_s(case: &Case, layout: &Layout, clocks: &Clocks) -> Option<f64> {
    let earliest = |node: Option<&str>, at: Stamp| Some(clocks.common(node, at)? - clocks.error_s(node).min(UNKNOWN_S));
    let logs = case.logs.iter().filter_map(|log| {
        let node = if let Whose::Rank(rank) = log.whose { layout.node_of(rank) } else { None };
        earliest(node, log.begun?)
    });
    let processes = case.processes.iter().flat_map(|(node, told)| {
        told.processes
            .iter()
            .filter(|process| process.started_s > 0.0)
            .filter_map(move |process| earliest(Some(node), Stamp::Utc(process.started_s)))
    });
    logs.chain(processes).chain(case.job.start_s).min_by(f64::total_cmp)
}

/// When the job last got on.
#[must_use]
pub fn end(case: &Case, layout: &Layout, clocks: &Clocks, events: &[Event<'_>]) -> End {
    let mut last: Option<f64> = None;
    let mut longest: f64 = 0.0;
    for log in &case.logs {
        let node = match &log.whose {
            Whose::Rank(rank) => layout.node_of(*rank),
            _ => None,
        };
        for step in &log.steps {
            longest = longest.max(step.seconds.unwrap_or(0.0));
            if let Some(at) = step.at.and_then(|at| clocks.common(node, at)) {
                last = Some(last.map_or(at, |last| last.max(at)));
            }
        }
    }
    // A time-out tells how long it waited.
    let waited = |event: &Event<'_>| Some(event.at_s? - event.seen.fields.seconds().filter(|s| *s > 1.0)?);
    let timeouts =
        events.iter().filter(|event| event.seen.fields.get(Field::Seq).is_some() && event.rule.kind != Kind::Benign);
    let last_s = last.or_else(|| timeouts.filter_map(waited).min_by(f64::total_cmp));
    let longest = 2.0 * longest.min(600.0);
    let begun = || begun_s(case, layout, clocks).map(|begun| begun - DAY_S);
    let from_s = last_s.map(|last| last - BEFORE_S - longest).or_else(begun);
    let until_s = last_word_s(case, layout, clocks, last_s).map(|last| last + AFTER_S + longest);
    End { last_s, from_s, until_s }
}

/// When the job itself last said anything with a time; nothing where only its machines do.
fn last_word_s(case: &Case, layout: &Layout, clocks: &Clocks, last_step_s: Option<f64>) -> Option<f64> {
    let said = case.logs.iter().filter_map(|log| {
        let node = match log.whose {
            Whose::Rank(rank) => layout.node_of(rank),
            Whose::Job(_) => None,
            Whose::Kernel(_) => return None,
        };
        clocks.common(node, log.last?)
    });
    let polled = case.polls.iter().filter_map(|poll| clocks.common(None, poll.at?));
    said.chain(polled).chain(last_step_s).max_by(f64::total_cmp)
}
