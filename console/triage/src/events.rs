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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::case::{Job, Joined, Member, Poll, Reached, Step};
    use crate::facts::Facts;
    use crate::made;
    use muster_wire::{JobProcess, Processes};

    /// 2026-11-20 10:10:00, the last step of the job.
    const LAST: f64 = 1_795_169_400.0;
    const BROKEN: &str = "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 5: be00000000800400";
    const LOST: &str = "nfs: server 10.4.0.19 not responding, still trying";
    const BACK: &str = "nfs: server 10.4.0.19 OK";
    const WRONG: &str = "ValueError: x";

    /// So many seconds after the last step, as lines begin.
    fn at(seconds: i32) -> String {
        let of_day = 10 * 3600 + 600 + seconds;
        format!("[2026-11-20 {:02}:{:02}:{:02}]", of_day / 3600, of_day / 60 % 60, of_day % 60)
    }

    fn step_line(number: u32, seconds: i32) -> String {
        format!("{} iteration {number}/ 100 | elapsed time per iteration (ms): 1000.0 |\n", at(seconds))
    }

    /// Two ranks on two nodes, whose clocks may be off by half a second, and whose last step was at [`LAST`]; with further logs.
    fn case(logs: &[(Whose, String)]) -> Case {
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), pid: Some(100 + rank), gpu: Some(0) };
        let reached = |nr: u32| Reached { node: format!("n{nr}"), clock: Some((0.0, 0.5)), ..Reached::default() };
        let log = |(whose, lines): &(Whose, String)| made::log(whose.clone(), lines, &RULES);
        let own = made::log(Whose::Rank(0), &step_line(5, 0), &RULES);
        Case {
            job: Job { members: (0..2).map(member).collect(), ..Job::default() },
            reached: (0..2).map(reached).collect(),
            logs: logs.iter().map(log).chain([own]).collect(),
            ..Case::default()
        }
    }

    static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::built_in().unwrap());

    fn kernel(lines: &[(i32, &str)]) -> (Whose, String) {
        kernel_of("n1", lines)
    }

    fn kernel_of(node: &str, lines: &[(i32, &str)]) -> (Whose, String) {
        (
            Whose::Kernel(node.to_owned()),
            lines.iter().map(|(seconds, line)| format!("{} {line}\n", at(*seconds))).collect(),
        )
    }

    /// Of each event: its rule, and whether it may tell why the job ended.
    fn told(case: &Case) -> Vec<(String, bool)> {
        let facts = Facts::of(case, &RULES);
        let may = |event: &Event<'_>| !event.foreign && event.in_window(&facts.end);
        facts.events.iter().map(|event| (event.rule.id.clone(), may(event))).collect()
    }

    /// The same of the first.
    fn counts(case: &Case) -> bool {
        told(case)[0].1
    }

    #[test]
    fn a_line_of_a_machine_counts_from_a_minute_and_two_steps_before_the_last_step_to_ten_minutes_and_two_steps_after_it()
     {
        for (seconds, so) in [(-63, false), (-62, true), (0, true), (602, true), (603, false)] {
            assert_eq!(counts(&case(&[kernel(&[(seconds, BROKEN)])])), so, "{seconds} s after it");
        }
        // Half a second of error on either side is not enough to tell; a second is.
        let mut unsure = case(&[kernel(&[(-63, BROKEN)])]);
        unsure.reached[1].clock = Some((0.0, 1.0));
        assert!(counts(&unsure));
        let mut unsure = case(&[kernel(&[(603, BROKEN)])]);
        unsure.reached[1].clock = Some((0.0, 1.0));
        assert!(counts(&unsure));
        // Of a clock that nobody knows it is taken that it is off by a minute.
        for (seconds, so) in [(-123, false), (-122, true), (662, true), (663, false)] {
            let mut unknown = case(&[kernel(&[(seconds, BROKEN)])]);
            unknown.reached.clear();
            assert_eq!(counts(&unknown), so, "{seconds} s after it");
        }
    }

    #[test]
    fn a_step_that_takes_long_makes_the_window_longer_up_to_ten_minutes_a_step() {
        let longest = |step_s: f64| {
            let mut case = case(&[]);
            case.logs[0].steps[0].seconds = Some(step_s);
            let end = Facts::of(&case, &RULES).end;
            assert_eq!(end.last_s, Some(LAST));
            (LAST - end.from_s.unwrap(), end.until_s.unwrap() - LAST)
        };
        assert_eq!(longest(100.0), (260.0, 800.0));
        assert_eq!((longest(600.0), longest(5000.0)), ((1260.0, 1800.0), (1260.0, 1800.0)));
    }

    #[test]
    fn what_a_job_says_itself_is_never_later_than_its_end() {
        let line = format!("{} {WRONG}\n", at(2000));
        let mut with_it = case(&[(Whose::Rank(1), line.clone()), kernel(&[(2600, BROKEN)])]);
        assert_eq!(told(&with_it), [("python-exception".to_owned(), true), ("mce-fatal".to_owned(), true)]);
        // Without what it said, or an answer of RAS, nothing is known of it after its last step.
        with_it.logs.remove(0);
        assert!(!counts(&with_it));
        with_it.polls = vec![Poll { at: Stamp::of(&line), ..Poll::default() }];
        assert!(counts(&with_it));
    }

    #[test]
    fn a_line_that_came_again_counts_by_its_last_time() {
        let again = |last: i32| counts(&case(&[kernel(&[(-900, LOST), (last, LOST)])]));
        assert_eq!((again(-63), again(-62)), (false, true));
    }

    #[test]
    fn what_was_over_before_the_last_step_did_not_end_the_job() {
        let over = |seconds: i32, line: &str| counts(&case(&[kernel(&[(-40, LOST), (seconds, line)])]));
        assert!(!over(-10, BACK) && !over(-1, BACK), "its clock is known to half a second");
        assert!(over(0, BACK), "within that nobody knows");
        assert!(over(20, BACK));
        assert!(over(-10, "nfs: server 10.4.0.20 OK"), "another server");
        let before = case(&[kernel(&[(-50, BACK), (-40, LOST)])]);
        assert!(told(&before).iter().all(|(_, counts)| *counts), "it was away again after that");
        let at_once = case(&[kernel(&[(-40, LOST), (-40, BACK)])]);
        assert!(!counts(&at_once));
        let twice = case(&[kernel(&[(-40, LOST), (-30, BACK), (20, BACK)])]);
        assert!(counts(&twice), "the last word on it counts");
        // Steps and lines of one node have one clock: not more than five seconds lie between what it writes and reads.
        for (seconds, so) in [(-6, false), (-5, true)] {
            let mut unknown = case(&[kernel(&[(-40, LOST), (seconds, BACK)])]);
            unknown.reached.clear();
            assert_eq!(counts(&unknown), so, "over at {seconds} s");
        }
    }

    #[test]
    fn what_happened_to_a_process_before_the_job_began_is_of_another_job_and_what_broke_may_still_be_broken() {
        let xid = |code: u32| {
            let line = format!("NVRM: Xid (PCI:0000:11:00): {code}, pid='<unknown>', name=<unknown>, Ch 00000008");
            move |seconds: i32, begun: i32| {
                let mut case = case(&[kernel(&[(seconds, &line)])]);
                case.job.start_s = Some(LAST + f64::from(begun));
                counts(&case)
            }
        };
        let (of_program, of_machine) = (xid(13), xid(79));
        assert!(!of_program(-31, -30) && of_program(-30, -30), "its clock is known to half a second");
        assert!(of_machine(-31, -30));
        let of_process = |started_s: f64, begun: Option<f64>| {
            let line = "NVRM: Xid (PCI:0000:11:00): 13, pid='<unknown>', name=<unknown>, Ch 00000008";
            let mut case = case(&[kernel(&[(-31, line)])]);
            let process = JobProcess { pid: 101, rank: Some(1), started_s, ..JobProcess::default() };
            case.processes.insert("n1".to_owned(), Processes { processes: vec![process], ..Processes::default() });
            case.logs[1].begun = begun.map(Stamp::Utc);
            counts(&case)
        };
        assert!(!of_process(LAST - 29.5, None), "begun a second later, with half a second of error of each clock");
        assert!(of_process(LAST - 30.5, None));
        assert!(of_process(0.0, None), "a process that does not tell when it began");
        assert!(!of_process(0.0, Some(LAST - 29.5)) && of_process(0.0, Some(LAST - 30.5)), "by its log");
        assert!(of_process(LAST - 20.0, Some(LAST - 30.5)), "the first word of any counts");
    }

    /// Whether the line in the first row of a rank's log counts that has these lines after it; `step` is a step.
    fn undated(whose: Whose, first: &str, after: &[&str]) -> bool {
        let step = |nr: usize, line: &&str| {
            if *line == "step" { step_line(nr as u32, -20).split_off(22) } else { format!("{line}\n") }
        };
        let lines: String = after.iter().enumerate().map(|(nr, line)| step(nr, line)).collect();
        let case = case(&[(whose, format!("{first}\n{lines}"))]);
        let facts = Facts::of(&case, &RULES);
        let event = facts.events.iter().find(|event| event.place == (0, 1)).unwrap();
        event.in_window(&facts.end)
    }

    #[test]
    fn a_rank_that_took_three_more_steps_and_had_more_to_say_outlived_what_it_said_before() {
        let after = |after: &[&str]| undated(Whose::Rank(1), WRONG, after);
        assert!(after(&["step", "step", "KeyError: 'x'"]));
        assert!(!after(&["step", "step", "step", "KeyError: 'x'"]));
        assert!(after(&["step", "step", "step"]), "its last words may have come before them");
        assert!(after(&["step", "KeyError: 'x'", "step", "step"]), "nothing after the last step");
        let cancelled = "slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-20T10:11:00 DUE TO PREEMPTION ***";
        assert!(after(&["step", "step", "step", cancelled]), "that is no word of its own");
        assert!(
            undated(Whose::Job("out".to_owned()), WRONG, &["step", "step", "step", "KeyError: 'x'"]),
            "of all ranks"
        );
        let dated = format!("{} {WRONG}", at(-1));
        assert!(undated(Whose::Rank(1), &dated, &["step", "step", "step", "KeyError: 'x'"]), "it says when it was");
        assert!(after(&["step", "step", "step", WRONG]), "it came again after them");
        let in_a_step = format!("iteration 4/ 100 | elapsed time per iteration (ms): 990.0 |: {WRONG}");
        assert!(undated(Whose::Rank(1), &in_a_step, &["step", "step", "KeyError: 'x'"]), "two steps after its own");
    }

    #[test]
    fn two_hundred_steps_may_wait_in_a_buffer_and_one_more_may_not() {
        assert!(undated(Whose::Rank(1), WRONG, &["step"; 200]));
        assert!(!undated(Whose::Rank(1), WRONG, &["step"; 201]));
        assert!(!undated(Whose::Job("out".to_owned()), WRONG, &["step"; 201]));
    }

    #[test]
    fn a_machine_that_was_up_for_more_than_a_day_after_a_line_is_not_ended_by_it() {
        let up = |last: &str| {
            let lines = format!("[    9.000000] {BROKEN}\n[{last}] {LOST}\n");
            counts(&case(&[(Whose::Kernel("n1".to_owned()), lines)]))
        };
        assert!(up("86409.000000") && !up("86410.000000"));
    }

    #[test]
    fn a_machine_that_is_not_of_the_job_does_not_count_where_all_of_the_job_are_known() {
        let of = |node: &str, change: fn(&mut Case)| {
            let mut case = case(&[kernel_of(node, &[(0, BROKEN)])]);
            change(&mut case);
            counts(&case)
        };
        assert!(of("n1", |_| ()) && of("N1.hall.example", |_| ()) && !of("n7", |_| ()));
        assert!(of("10.0.0.7", |_| ()), "an address may be any machine's");
        assert!(of("n7", |case| case.job.members[0].node = None), "where one of the ranks is, nobody knows");
        assert!(of("n7", |case| case.job.members[0].node = Some("10.0.0.7".to_owned())), "it may have that address");
        assert!(of("n7", |case| case.job.nodes = vec!["n0".into(), "n1".into(), "n7".into()]));
        assert!(!of("n7", |case| {
            case.job.members[0].node = None;
            case.job.nodes = vec!["n0".into(), "n1".into()];
        }));
        assert!(of("n7", |case| case.job.members.clear()), "of a job that nobody wrote down");
    }

    #[test]
    fn a_process_that_is_none_of_the_job_does_not_count_where_all_of_its_processes_are_known() {
        let of = |line: &str, change: fn(&mut Case)| {
            let mut case = case(&[kernel(&[(0, line)])]);
            change(&mut case);
            let facts = Facts::of(&case, &RULES);
            (facts.events[0].foreign, facts.events[0].rank)
        };
        let xid = |pid: u32| format!("NVRM: Xid (PCI:0000:11:00): 13, pid={pid}, name=python3, Ch 00000008");
        assert_eq!(of(&xid(101), |_| ()), (false, Some(1)), "a rank's own");
        assert_eq!(of(&xid(4711), |_| ()), (true, None));
        assert_eq!(
            of(&xid(4711), |case| case.job.members[1].pid = None),
            (false, None),
            "the rank may have that number"
        );
        let nobody = "NVRM: Xid (PCI:0000:11:00): 13, pid='<unknown>', name=<unknown>, Ch 00000008";
        assert_eq!(of(nobody, |_| ()), (false, None));
        let lost = "NVRM: Xid (PCI:0000:11:00): 79, pid=4711, name=python3, GPU has fallen off the bus.";
        assert_eq!(of(lost, |_| ()), (false, None), "what is broken is broken whoever noticed");
        let killed = |name: &str| format!("Out of memory: Killed process 4711 ({name}) total-vm:204800kB");
        for (name, foreign) in [("postgres", true), ("python3", false), ("pt_data_worker", false), ("torchrun", false)]
        {
            assert_eq!(of(&killed(name), |_| ()), (foreign, None), "{name}, which a rank may have started");
        }
    }

    #[test]
    fn a_gpu_that_a_line_names_by_its_address_is_that_of_the_rank_on_it() {
        let xid =
            |node: &str| kernel_of(node, &[(0, "NVRM: Xid (PCI:0000:12:00): 79, pid='<unknown>', name=<unknown>, x")]);
        let joined = Joined {
            host: Some("n1".to_owned()),
            pid: None,
            rank: None,
            ranks: None,
            gpu: Some(3),
            bus: Some("0000:12:00.0".to_owned()),
            comm: None,
        };
        let of = |node: &str, gpu: u32| {
            let mut case = case(&[xid(node)]);
            case.job.members[1].gpu = Some(gpu);
            // In a log of all ranks: its lines are of no rank.
            let log = made::log(Whose::Job("out".to_owned()), "", &RULES);
            case.logs.push(Log { comms: vec![joined.clone()], ..log });
            let facts = Facts::of(&case, &RULES);
            (facts.events[0].rank, facts.events[0].gpu)
        };
        assert_eq!(of("n1", 3), (Some(1), Some(3)));
        assert_eq!(of("n1", 4), (None, Some(3)), "no rank is on it");
        assert_eq!(of("n0", 3), (None, None), "the same address in another machine");
    }

    #[test]
    fn without_steps_the_job_ended_when_the_first_operation_began_that_timed_out() {
        let timed_out = |rank: u32, seconds: i32, waited_ms: u32| {
            let line = format!(
                "{} [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=61, OpType=ALLREDUCE, Timeout(ms)=600000) ran for {waited_ms} milliseconds before timing out.\n",
                at(seconds)
            );
            (Whose::Rank(rank), line)
        };
        let last = |logs: &[(Whose, String)]| {
            let mut case = case(logs);
            case.logs.retain(|log| log.steps.is_empty());
            Facts::of(&case, &RULES).end
        };
        let end = last(&[timed_out(0, 700, 600_000), timed_out(1, 701, 600_000)]);
        assert_eq!((end.last_s, end.from_s), (Some(LAST + 100.0), Some(LAST + 40.0)));
        assert_eq!(end.until_s, Some(LAST + 1301.0), "ten minutes after the last word of the job");
        assert_eq!(last(&[timed_out(0, 700, 1000)]).last_s, None, "a second is no wait");
        let locked = "watchdog: BUG: soft lockup - CPU#18 stuck for 27s! [kworker:77]";
        for line in [BROKEN, locked] {
            assert_eq!(last(&[kernel(&[(0, line)])]), End::default(), "a machine does not tell when the job got on");
        }
    }

    #[test]
    fn where_nothing_tells_the_end_lines_count_from_a_day_before_the_job_began() {
        let mut of_start = case(&[kernel(&[(0, BROKEN)])]);
        of_start.logs.retain(|log| log.steps.is_empty());
        let mut counts = |before_s: f64| {
            of_start.job.start_s = Some(LAST + before_s);
            counts(&of_start)
        };
        assert!(counts(86_400.0) && counts(86_400.5) && !counts(86_401.0));
    }

    #[test]
    fn the_last_step_is_that_of_any_rank_on_the_clock_of_its_node() {
        let mut case = case(&[(Whose::Rank(1), step_line(5, 7) + &step_line(6, 3))]);
        case.reached[1].clock = Some((5.0, 0.5));
        case.reached.push(Reached { node: "n2".to_owned(), clock: Some((0.0, 0.5)), ..Reached::default() });
        assert_eq!(Facts::of(&case, &RULES).end.last_s, Some(LAST + 2.0), "its clock is five seconds ahead");
        case.logs[0].steps = vec![Step { step: 6, row: 1, at: None, seconds: None }];
        assert_eq!(Facts::of(&case, &RULES).end.last_s, Some(LAST));
    }

    #[test]
    fn only_the_seconds_that_are_asked_for_are_looked_at_and_lines_without_a_time() {
        let undated = (Whose::Rank(1), format!("{WRONG}\n"));
        let mut case = case(&[
            kernel(&[(-30, BROKEN), (-20, LOST), (10, "nfs: server 10.4.0.20 not responding, still trying")]),
            undated,
        ]);
        case.since_s = Some(30.0);
        let events = Facts::of(&case, &RULES).events;
        let told: Vec<(&str, Option<f64>)> =
            events.iter().map(|event| (event.rule.id.as_str(), event.at_s.map(|at| at - LAST))).collect();
        let nfs = "nfs-not-responding";
        assert_eq!(
            told,
            [(nfs, Some(-20.0)), (nfs, Some(10.0)), ("python-exception", None)],
            "those without a time last"
        );
    }

    #[test]
    fn a_line_is_told_with_its_meaning_how_often_it_came_and_no_longer_than_a_screen_shows() {
        let long = format!("{LOST} {}", "é".repeat(200));
        let case = case(&[kernel(&[(-2, BROKEN), (-1, &long), (0, &long), (1, &long)])]);
        let events = Facts::of(&case, &RULES).events;
        let (broken, lost) = (events[0].evidence(), events[1].evidence());
        let text = format!("{} [{} {BROKEN}]", events[0].rule.meaning, at(-2));
        assert_eq!((broken.text, broken.at, broken.node.as_deref()), (text, Some(LAST - 2.0), Some("n1")));
        let shown = lost.text.strip_prefix(&format!("{} (3 times) [", events[1].rule.meaning)).unwrap();
        assert_eq!(shown.strip_suffix("…]").map(str::len), Some(239), "a letter of two bytes is not cut: {shown}");
        assert_eq!((short(&"a".repeat(240)), short(&"a".repeat(241))), ("a".repeat(240), "a".repeat(240) + "…"));
    }

    #[test]
    fn what_is_wrong_is_told_with_the_process_and_the_path_that_the_line_names() {
        let of = |line: &str| {
            let case = case(&[kernel(&[(0, line)])]);
            Facts::of(&case, &RULES).events[0].cause()
        };
        let killed = |pid: u64| of(&format!("Out of memory: Killed process {pid} (python3) total-vm:204800kB"));
        assert_eq!(killed(4711), Cause { fault: Some(Fault::OutOfMemory), pid: Some(4711), path: None });
        assert_eq!(killed(1 << 32).pid, None, "no process has that number");
    }
}
