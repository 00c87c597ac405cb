//! What the lines said, on one clock, and which of it falls into the job's end.

use super::case::{Case, Whose};
use super::clock::{Clocks, UNKNOWN_S};
use super::fault::{Cause, Fault};
use super::layout::Layout;
use super::report::{Evidence, Source};
use super::rules::{Field, Kind, Part, Rule, Rules, Seen};
use super::stamp::Stamp;

/// Seconds before the last step in which a cause may lie.
const BEFORE_S: f64 = 60.0;

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
    /// It speaks of a process of another job: not one of its processes, or written before it began.
    pub foreign: bool,
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

    /// Where it lies in the time of the job's end.
    #[must_use]
    pub fn in_window(&self, end: &End) -> bool {
        end.from_s.is_none_or(|from_s| !self.is_over_by(from_s))
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
        let killed = self.rule.kind != Kind::Critical && self.rule.fault == Some(Fault::OutOfMemory);
        self.source == Source::Kernel && (is_of_program(self.rule) || killed)
    }
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
}

/// All lines that some rule knows, in the order of the common clock.
#[must_use]
pub fn events<'a>(case: &'a Case, rules: &'a Rules, layout: &Layout, clocks: &Clocks) -> Vec<Event<'a>> {
    let mut events: Vec<Event<'a>> = Vec::new();
    let begun_s = begun_s(case, layout, clocks);
    for log in &case.logs {
        for seen in &log.seen {
            let mut event = event(rules.rule(seen.rule), seen, &log.whose, layout, clocks);
            event.foreign |= event.is_of_a_process() && begun_s.is_some_and(|begun_s| event.is_over_by(begun_s));
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
    let foreign = is_of_program(rule)
        && source == Source::Kernel
        && pid.is_some()
        && by_pid.is_none()
        && named().is_some_and(|node| layout.knows_processes_of(node));
    let by_bus = named().zip(seen.fields.get(Field::Bus)).and_then(|(node, bus)| layout.gpu_at(node, bus));
    let gpu = by_bus.or_else(|| rank.or(by_pid).and_then(|rank| layout.gpu_of(rank)));
    let rank = rank.or_else(|| named().zip(by_bus).and_then(|(node, gpu)| layout.rank_at(node, gpu))).or(by_pid);
    let at_s = seen.first.and_then(|stamp| clocks.common(named(), stamp));
    let error_s = clocks.error_s(named());
    Event { rule, seen, node, rank, gpu, source, at_s, error_s, foreign }
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
    End { last_s, from_s: last_s.map(|last| last - BEFORE_S - 2.0 * longest.min(600.0)) }
}
