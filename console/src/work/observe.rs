//! Who may watch a scan, and the watcher that writes progress to standard error.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use muster_fleet::{Event, EventKind, Failure, LinkState};
use muster_run::Record;
use muster_wire::Frame;
use tokio_util::sync::CancellationToken;

use super::Course;
use crate::clock::now_ms;

/// Something happened.
#[derive(Debug)]
pub enum Update<'a> {
    /// A phase begins; the one after the plan's last measures accused nodes again.
    Phase {
        /// From zero.
        index: usize,
        /// Step id.
        step: &'a str,
        /// Nodes that take part.
        nodes: usize,
        /// Pieces of work over all nodes.
        work: usize,
        /// The same for phases right after it, each of which begins on a node that is through the one before.
        further: &'a [usize],
    },
    /// A node's link changed.
    Link {
        /// Node.
        node: &'a str,
        /// Its state now.
        state: &'a LinkState,
    },
    /// A node says how far it is.
    Working {
        /// Node.
        node: &'a str,
        /// What the probe said.
        progress: &'a muster_wire::Progress,
    },
    /// A node says something for the log.
    Said {
        /// Node.
        node: &'a str,
        /// The line.
        line: &'a muster_wire::LogLine,
    },
    /// A node is left out of the later steps.
    Dropped {
        /// Node.
        node: &'a str,
        /// The step after which it leaves.
        step: &'a str,
        /// Why, in one sentence.
        reason: &'a str,
    },
    /// A record is on disk.
    Recorded(&'a Record),
    /// A round of pairs begins.
    Round {
        /// From zero.
        number: usize,
        /// Rounds and pairs in all, where the method knows them beforehand.
        planned: Option<(usize, u64)>,
        /// Pairs that are measured in it.
        pairs: usize,
        /// Pairs of the rounds before.
        measured: usize,
        /// Nodes left out so far, and why.
        dropped: &'a BTreeMap<String, String>,
    },
    /// The phase under way has this much more work than was announced, in results.
    More(usize),
    /// A node was lost and is waited for.
    Interrupted {
        /// Node.
        node: &'a str,
        /// How.
        failure: &'a Failure,
    },
    /// Several nodes were lost together: what is said of it.
    Outage(&'a str),
    /// What all nodes did together is over: what came of it.
    Together(&'a str),
    /// Nodes are not waited for any longer.
    Late {
        /// What is said of it.
        said: &'a str,
        /// Who.
        nodes: &'a BTreeSet<String>,
    },
    /// A node is done with this phase and those that follow it at once.
    Ended {
        /// Node.
        node: &'a str,
        /// Why it did not get to the end.
        failure: Option<&'a Failure>,
    },
}

/// Watches a scan.
pub trait Observer: Send {
    /// Called on the engine's task; must not block.
    fn see(&mut self, update: &Update<'_>);
}

/// One line on standard error, rewritten in a terminal, repeated every ten seconds elsewhere.
#[derive(Debug)]
pub struct Progress {
    terminal: bool,
    started: Instant,
    /// When a node last said something.
    heard: Instant,
    shown: Option<Instant>,
    step: String,
    work: usize,
    recorded: usize,
    nodes: usize,
    ended: usize,
    failed: usize,
    /// Nodes still at an earlier step, which count for none.
    late: BTreeSet<String>,
    quiet: bool,
    /// How long the run will still take.
    course: Course,
    cancel: CancellationToken,
}

impl Progress {
    /// A watcher of a run that takes this `course` until somebody cancels it; a quiet one only tells failures.
    #[must_use]
    pub fn new(quiet: bool, course: Course, cancel: CancellationToken) -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            started: Instant::now(),
            heard: Instant::now(),
            shown: None,
            step: String::new(),
            work: 0,
            recorded: 0,
            nodes: 0,
            ended: 0,
            failed: 0,
            late: BTreeSet::new(),
            quiet,
            course,
            cancel,
        }
    }

    /// How long ago a node last said something.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.heard.elapsed()
    }

    fn line(&mut self) -> String {
        let elapsed = self.started.elapsed().as_secs_f64();
        let rate = self.recorded as f64 / elapsed.max(0.001);
        let cancelled = self.cancel.is_cancelled();
        let left = if cancelled { "cancelling".to_owned() } else { self.course.shown(now_ms()).words() };
        format!(
            "{}: {}/{} results, {}/{} nodes done, {} failed, {elapsed:.0} s, {rate:.1} results/s, {left}",
            self.step, self.recorded, self.work, self.ended, self.nodes, self.failed
        )
    }

    fn show(&mut self, now: bool) {
        let pause = if self.terminal { Duration::from_millis(200) } else { Duration::from_secs(10) };
        let due = self.shown.is_none_or(|at| at.elapsed() >= pause);
        if self.quiet || !(now || due) {
            return;
        }
        self.shown = Some(Instant::now());
        let (start, end) = if self.terminal { ("\r\x1b[K", "") } else { ("", "\n") };
        // A closed standard error must not end a scan.
        let _ = write!(std::io::stderr(), "{start}{}{end}", self.line());
    }

    fn tell(&self, line: &str) {
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        let _ = writeln!(std::io::stderr(), "{start}{line}");
    }
}

impl Observer for Progress {
    fn see(&mut self, update: &Update<'_>) {
        self.course.see(update, now_ms());
        self.heard = Instant::now();
        match update {
            Update::Phase { step, nodes, work, further, .. } => {
                let more = if further.is_empty() { String::new() } else { format!(" and {} more", further.len()) };
                (self.step, self.nodes) = (format!("{step}{more}"), *nodes);
                self.work = work + further.iter().sum::<usize>();
                (self.recorded, self.ended, self.failed) = (0, 0, 0);
                self.started = Instant::now();
                self.show(false);
            }
            Update::Recorded(record) if muster_run::is_work(&record.work) && !self.late.contains(&record.node) => {
                self.recorded += 1;
                self.show(false);
            }
            Update::More(work) => self.work += work,
            Update::Round { number, planned, pairs, measured, dropped } => {
                let of = planned.map_or_else(String::new, |(rounds, _)| format!(" of {rounds}"));
                let out = if dropped.is_empty() { String::new() } else { format!(", {} nodes out", dropped.len()) };
                self.step = format!("round {}{of}, {pairs} pairs after {measured}{out}", number + 1);
                self.show(false);
            }
            Update::Interrupted { node, failure } => {
                self.tell(&format!("{}; it is waited for", failure_line(node, failure)));
            }
            Update::Outage(said) | Update::Together(said) => self.tell(said),
            Update::Late { said, nodes } => {
                self.late.extend(nodes.iter().cloned());
                self.tell(said);
            }
            Update::Dropped { step, reason, .. } => self.tell(&format!("left out after {step}: {reason}")),
            Update::Ended { node, failure } => {
                let counts = !self.late.remove(*node);
                self.ended += usize::from(counts);
                if let Some(failure) = failure {
                    self.failed += usize::from(counts);
                    self.tell(&failure_line(node, failure));
                }
                self.show(self.ended == self.nodes);
                if self.terminal && !self.quiet && self.ended == self.nodes {
                    let _ = writeln!(std::io::stderr());
                }
            }
            _ => {}
        }
    }
}

/// A failure's sentence, beginning with its node.
#[must_use]
pub fn failure_line(node: &str, failure: &Failure) -> String {
    if failure.message.starts_with(node) { failure.message.clone() } else { format!("{node}: {}", failure.message) }
}

/// Tells the watchers of an event.
pub(super) fn tell(event: &Event, watchers: &mut [&mut dyn Observer]) {
    let node = event.node.as_str();
    let update = match &event.kind {
        EventKind::Link(state) => Update::Link { node, state },
        EventKind::Frame(Frame::Progress(progress)) => Update::Working { node, progress },
        EventKind::Frame(Frame::Log(line)) => Update::Said { node, line },
        EventKind::Interrupted(failure, _) => Update::Interrupted { node, failure },
        EventKind::Frame(_) | EventKind::Clock(_) => return,
        EventKind::Ended(result) => Update::Ended { node, failure: result.as_ref().err() },
    };
    watchers.iter_mut().for_each(|w| w.see(&update));
}

#[cfg(test)]
mod tests {
    use muster_run::{Run, RunState};
    use muster_tui::snapshot::RunPhase;

    use super::*;
    use crate::views::Board;
    use crate::work::Durations;

    #[test]
    fn progress_counts_nodes_of_the_step_and_not_their_works_nor_who_is_late_with_another() {
        let names = ["n1".to_owned(), "n2".to_owned()];
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("cbd-light").unwrap(), &names);
        let course = Course::new(&plan, &Durations::default(), 8, &Default::default());
        let mut progress = Progress::new(true, course, CancellationToken::new());
        let ended = |node| Update::Ended { node, failure: None };
        progress.see(&Update::Phase { index: 0, step: "look", nodes: 2, work: 4, further: &[6, 2] });
        progress.see(&ended("n1"));
        assert!(progress.line().starts_with("look and 2 more: 0/12 results, 1/2 nodes done"), "{}", progress.line());
        progress.see(&Update::Late { said: "n2 is late", nodes: &["n2".to_owned()].into() });
        progress.see(&Update::Phase { index: 3, step: "taste", nodes: 1, work: 5, further: &[] });
        progress.see(&ended("n2"));
        assert!(progress.line().starts_with("taste: 0/5 results, 0/1 nodes done"), "{}", progress.line());
        progress.see(&ended("n1"));
        assert!(progress.line().contains("1/1 nodes done"), "{}", progress.line());
    }

    #[test]
    fn pairs_that_are_visited_again_are_more_of_the_total_and_never_past_it() {
        let names = ["n1".to_owned(), "n2".to_owned()];
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("network-full").unwrap(), &names);
        let course = Course::new(&plan, &Durations::default(), 8, &Default::default());
        let mut progress = Progress::new(true, course, CancellationToken::new());
        progress.see(&Update::Phase { index: 0, step: "pairs", nodes: 2, work: 4, further: &[] });
        let dropped = BTreeMap::new();
        let mut round = |number: usize, more: usize| {
            let planned = Some((number + 1, number as u64 + 1));
            progress.see(&Update::More(more));
            progress.see(&Update::Round { number, planned, pairs: 1, measured: number, dropped: &dropped });
            for (src, dst) in [("n1", "n2"), ("n2", "n1")] {
                let work = crate::judge::pairs::kept::work(dst, number + 1);
                progress.see(&Update::Recorded(&muster_run::noted("r", src, &work, Vec::new(), 1)));
            }
            progress.line()
        };
        let said = round(0, 0);
        assert!(said.starts_with("round 1 of 1, 1 pairs after 0: 2/4 results"), "{said}");
        let said = round(1, 2);
        assert!(said.starts_with("round 2 of 2, 1 pairs after 1: 4/6 results"), "{said}");
    }

    #[test]
    fn the_line_says_the_time_left_in_the_words_of_the_screen_until_the_run_is_cancelled() {
        let names = ["n1".to_owned(), "n2".to_owned()];
        let plan = muster_playbook::plan(&muster_playbook::find_builtin("cbd-light").unwrap(), &names);
        let course = || Course::new(&plan, &Durations::default(), 8, &Default::default());
        let run = Run {
            id: "r".to_owned(),
            playbook: plan.playbook.clone(),
            profile: plan.profile,
            started_ms: now_ms(),
            ended_ms: None,
            nodes: names.to_vec(),
            plan: plan.work_names(),
            state: RunState::Running,
        };
        let mut board = Board::new("two", &names, &[]);
        board.begin(&run, Some(&plan), Vec::new(), RunPhase::Running);
        board.expect(course(), 3);
        let cancel = CancellationToken::new();
        let mut progress = Progress::new(true, course(), cancel.clone());
        let phase = Update::Phase { index: 1, step: "taste", nodes: 2, work: 10, further: &[] };
        board.see(&phase);
        progress.see(&phase);
        board.publish();
        let left = board.snapshot().progress.left.unwrap().words();
        assert!(left.starts_with("planned: "), "{left}");
        assert!(progress.line().ends_with(&format!("results/s, {left}")), "{}", progress.line());
        cancel.cancel();
        assert!(progress.line().ends_with("cancelling"), "{}", progress.line());
    }
}
