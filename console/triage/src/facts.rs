//! Everything that the steps of the procedure look at, worked out once.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{Case, Whose};
use super::clock::Clocks;
use super::counters::{self, Group, Movement};
use super::events::{self, End, Event};
use super::grown::Growth;
use super::health::Health;
use super::layout::Layout;
use super::mismatch::{Mismatch, asked, mismatches, of_lines};
use super::processes::Standings;
use super::report::Source;
use super::rootdiag::{Complaint, RootDiag, diagnose};
use super::slow::{Slow, compare};
use super::waits::{Walk, walk};
use muster_logs::Category;
use muster_logs::{Field, Kind, Part, Rules};

/// Everything that the steps look at.
#[derive(Debug)]
pub struct Facts<'a> {
    /// What the files said.
    pub case: &'a Case,
    /// Who is where.
    pub layout: Layout,
    /// Clocks.
    pub clocks: Clocks,
    /// Lines.
    pub events: Vec<Event<'a>>,
    /// The job's end.
    pub end: End,
    /// Communicators, with the walk over those of each source that tells counts.
    pub walks: Vec<(Source, Vec<Group>, Walk)>,
    /// Whether RAS saw the job move.
    pub movement: Movement,
    /// RAS saw all ranks level.
    pub level: bool,
    /// Ranks that ask for different things.
    pub mismatches: Vec<Mismatch>,
    /// Who lost whom.
    pub lost: RootDiag,
    /// Timed operations.
    pub slow: Slow,
    /// Ranks whose watchdog told a time-out.
    pub timed_out: BTreeSet<u32>,
    /// Ranks that RAS misses.
    pub gone: BTreeSet<u32>,
    /// What health checks say of its nodes.
    pub health: Health,
    /// Counters of its adapters and GPUs that grew as no other node's did.
    pub growth: Growth,
    /// What the job's processes did while they were looked at.
    pub standings: Standings,
}

impl<'a> Facts<'a> {
    /// Works everything out.
    #[must_use]
    pub fn of(case: &'a Case, rules: &'a Rules) -> Self {
        let layout = Layout::of(case);
        let clocks = Clocks::of(case, &layout);
        let events = events::events(case, rules, &layout, &clocks);
        let end = events::end(case, &layout, &clocks, &events);
        let groups = counters::groups(case, &layout, &events, &end);
        let of = |source: Source| groups.iter().filter(|group| group.source == source).cloned().collect::<Vec<_>>();
        let walked = |source| {
            let groups = of(source);
            let walk = walk(&groups);
            (source, groups, walk)
        };
        let walks = [Source::FlightRecorder, Source::Ras, Source::Log].map(walked).into_iter().collect();
        let timed_out = timed_out(&events, &end);
        let mut facts = Self {
            movement: counters::movement(&case.polls),
            level: counters::level(&case.polls),
            mismatches: mismatches(case),
            lost: diagnose(&[]),
            slow: compare(&case.timed, &layout),
            gone: gone(case, &layout),
            health: Health::of(case, &layout),
            growth: Growth::of(case, &layout),
            standings: Standings::of(case, &layout),
            walks,
            timed_out,
            case,
            layout,
            clocks,
            events,
            end,
        };
        facts.lost = diagnose(&facts.complaints());
        if facts.mismatches.is_empty() {
            facts.mismatches = of_lines(&facts.timeouts());
        }
        facts
    }

    /// Lines that may be a root, in the window of the job's end, of the job's own processes.
    pub fn roots(&self) -> impl Iterator<Item = &Event<'a>> {
        let may = |event: &&Event<'a>| event.rule.kind.may_be_root() && !event.foreign && event.in_window(&self.end);
        self.events.iter().filter(may)
    }

    /// Whether the job hung: watchdogs timed out, or RAS saw it stand still with somebody behind.
    #[must_use]
    pub fn hung(&self) -> bool {
        let open = |(_, groups, walk): &(Source, Vec<Group>, Walk)| {
            !groups.is_empty() && (!walk.roots.is_empty() || !walk.stuck.is_empty() || !walk.circle.is_empty())
        };
        !self.timed_out.is_empty() || self.walks.iter().any(open)
    }

    /// Ranks whose log is there and tells no time-out, while nearly all others' do.
    #[must_use]
    pub fn silent(&self) -> Vec<u32> {
        let logs: BTreeSet<u32> = self
            .case
            .logs
            .iter()
            .filter_map(|log| if let Whose::Rank(rank) = log.whose { Some(rank) } else { None })
            .collect();
        let silent: Vec<u32> = logs.difference(&self.timed_out).copied().collect();
        let few = silent.len() <= (logs.len() / 8).max(1) && self.timed_out.len() > 2 * silent.len();
        if few && logs.len() >= self.layout.world() { silent } else { Vec::new() }
    }

    /// When the scheduler or a person ended the job.
    #[must_use]
    pub fn ended(&self) -> Vec<&Event<'a>> {
        self.events
            .iter()
            .filter(|event| {
                event.rule.part == Part::Scheduler
                    && event.rule.kind.may_be_root()
                    && event.rule.category.is_none_or(|c| c == Category::None)
            })
            .collect()
    }

    fn complaints(&self) -> Vec<Complaint> {
        let ended = self
            .ended()
            .iter()
            .filter_map(|event| event.at_s.map(|at| at - event.error_s.min(10.0)))
            .min_by(f64::total_cmp);
        let of = |event: &Event<'_>| {
            let peer = event.seen.fields.get(Field::Peer)?;
            let peer = peer.trim_matches(['[', ']']).trim_start_matches("::ffff:");
            let from = event.node.clone()?;
            if ended.zip(event.at_s).is_some_and(|(ended, at)| at >= ended) || !self.layout.knows(peer) {
                return None;
            }
            let device = event.seen.fields.get(Field::Device).map(str::to_owned);
            Some(Complaint { from, of: self.layout.node(peer), at_s: event.at_s, error_s: event.error_s, device })
        };
        // A closed connection only follows, and still says of whom; a flushed request (a completion's code) says nothing.
        let tells = |event: &&Event<'_>| match event.rule.kind {
            Kind::Distributed => true,
            Kind::Consequence => event.rule.part == Part::Network && event.seen.fields.get(Field::Code).is_none(),
            _ => false,
        };
        let told = self.events.iter().filter(|event| tells(event) && event.in_window(&self.end));
        told.filter_map(of).collect()
    }

    /// What watchdogs say their ranks asked for.
    fn timeouts(&self) -> Vec<(u32, String, u64, String)> {
        let told = || self.events.iter().filter(|event| event.in_window(&self.end));
        let mut groups_of: BTreeMap<(u32, u64), BTreeSet<&str>> = BTreeMap::new();
        for event in told() {
            if let (Some(rank), Some(seq), Some(group)) =
                (event.rank, event.seen.fields.number(Field::Seq), event.seen.fields.get(Field::CommId))
            {
                groups_of.entry((rank, seq)).or_default().insert(group);
            }
        }
        // A rank counts in each of its groups: where two of them are at the same number, a line that names none is of either.
        let only = |rank: u32, seq: u64| {
            let groups = groups_of.get(&(rank, seq)).filter(|groups| groups.len() == 1)?;
            groups.first().copied()
        };
        let of = |event: &Event<'_>| {
            let fields = &event.seen.fields;
            let (rank, seq) = (event.rank?, fields.number(Field::Seq)?);
            let what = asked(fields.get(Field::Op)?, fields.get(Field::Count).unwrap_or_default())?;
            let group = fields.get(Field::CommId).or_else(|| only(rank, seq))?;
            Some((rank, group.to_owned(), seq, what))
        };
        told().filter_map(of).collect()
    }

    /// The root lines of a category.
    pub fn of_category(&self, category: Category) -> impl Iterator<Item = &Event<'a>> {
        self.roots().filter(move |event| event.rule.category == Some(category))
    }

    /// Ranks that others of the job name in lines of a category, with how many name them: at least half of those who name anybody.
    #[must_use]
    pub fn named(&self, category: Category) -> Vec<(u32, usize)> {
        let mut tellers: std::collections::BTreeMap<u32, BTreeSet<Option<u32>>> = std::collections::BTreeMap::new();
        let lines = self.events.iter().filter(|event| {
            matches!(event.rule.kind, Kind::Consequence | Kind::Distributed)
                && event.rule.category == Some(category)
                && event.in_window(&self.end)
        });
        for event in lines {
            // `Ranks 1, 3 failed to pass monitoredBarrier` names both.
            let ranks = event.seen.fields.get(Field::PeerRank).into_iter().flat_map(|ranks| ranks.split(','));
            for rank in
                ranks.filter_map(|rank| rank.trim().parse::<u32>().ok()).filter(|rank| event.rank != Some(*rank))
            {
                tellers.entry(rank).or_default().insert(event.rank);
            }
        }
        let all: BTreeSet<&Option<u32>> = tellers.values().flatten().collect();
        let half = all.len();
        tellers.iter().filter(|(_, by)| by.len() * 2 >= half).map(|(rank, by)| (*rank, by.len())).collect()
    }

    /// The rank that stands behind by any walk.
    #[must_use]
    pub fn behind(&self) -> BTreeSet<u32> {
        let roots = self.walks.iter().flat_map(|(_, _, walk)| walk.roots.iter().map(|root| root.rank));
        roots.chain(self.gone.iter().copied()).chain(self.silent()).collect()
    }
}

/// Ranks whose watchdog told a time-out of a collective.
fn timed_out(events: &[Event<'_>], end: &End) -> BTreeSet<u32> {
    // NCCL's watchdog tells which operation it was; Gloo only that it waited, and how long.
    let waited = |event: &Event<'_>| {
        let fields = &event.seen.fields;
        let gloo = event.rule.kind == Kind::Consequence && fields.get(Field::Millis).is_some();
        gloo || (fields.get(Field::Seq).is_some() && event.rule.kind != Kind::Progress)
    };
    let told = |event: &&Event<'_>| event.source == Source::Log && waited(event) && event.in_window(end);
    events.iter().filter(told).filter_map(|event| event.rank).collect()
}

fn gone(case: &Case, layout: &Layout) -> BTreeSet<u32> {
    let Some(last) = case.polls.last() else { return BTreeSet::new() };
    let missing = last.comms.iter().flat_map(|comm| &comm.missing).chain(&last.gone);
    missing.filter_map(|process| layout.rank_of(process)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Job, Member, Reached};
    use crate::made;

    /// A job of so many ranks, each on a node of its own, whose logs hold these lines.
    fn case(ranks: u32, lines: &[(u32, String)], rules: &Rules) -> Case {
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), ..Member::default() };
        let log = |(rank, line): &(u32, String)| made::log(Whose::Rank(*rank), &format!("{line}\n"), rules);
        let job = Job { members: (0..ranks).map(member).collect(), ..Job::default() };
        Case { job, logs: lines.iter().map(log).collect(), ..Case::default() }
    }

    #[test]
    fn a_rank_is_silent_where_nearly_all_others_told_a_time_out_and_every_log_is_there() {
        let rules = Rules::built_in().unwrap();
        // By rank: whether it tells a time-out.
        let silent = |ranks: u32, told: &[bool]| {
            let line = |rank: u32, told: bool| {
                let line = format!(
                    "[rank{rank}]:[E1120 10:20:10.000000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=61, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600041 milliseconds before timing out."
                );
                (rank, if told { line } else { "starts".to_owned() })
            };
            let lines: Vec<(u32, String)> = (0..).zip(told).map(|(rank, told)| line(rank, *told)).collect();
            let case = case(ranks, &lines, &rules);
            let facts = Facts::of(&case, &rules);
            assert_eq!(facts.hung(), told.contains(&true));
            facts.silent()
        };
        let (yes, no) = (true, false);
        assert_eq!(silent(4, &[yes, no, yes, yes]), [1]);
        assert_eq!(silent(3, &[yes, yes, no]), [0_u32; 0], "two of three are not nearly all");
        assert_eq!(silent(5, &[yes, no, yes, yes]), [0_u32; 0], "of rank 4 there is no log");
        assert_eq!(silent(4, &[yes; 4]), [0_u32; 0]);
        assert_eq!(silent(4, &[no; 4]), [0_u32; 0]);
        let two = [[yes; 8].as_slice(), &[no; 2], &[yes; 6]].concat();
        assert_eq!(silent(16, &two), [8, 9], "an eighth of sixteen");
        assert_eq!(silent(15, &two[..15]), [0_u32; 0], "of fifteen that is more");
    }

    #[test]
    fn who_is_named_by_half_of_those_that_name_anybody_is_named_and_nobody_names_itself() {
        let rules = Rules::built_in().unwrap();
        // Who says of whom that it did not come to the barrier.
        let named = |said: &[(u32, &str)]| {
            let line = |&(by, of): &(u32, &str)| {
                (by, format!("[rank{by}]: RuntimeError: Ranks {of} failed to pass monitoredBarrier in 30000 ms"))
            };
            let lines: Vec<(u32, String)> = said.iter().map(line).collect();
            let case = case(8, &lines, &rules);
            let facts = Facts::of(&case, &rules);
            assert_eq!(facts.named(Category::ProcessExited), []);
            facts.named(Category::HangNotLaunched)
        };
        assert_eq!(named(&[(0, "5"), (1, "5"), (2, "5")]), [(5, 3)]);
        assert_eq!(named(&[(0, "5"), (1, "5"), (2, "6")]), [(5, 2)]);
        assert_eq!(named(&[(0, "5"), (1, "5"), (2, "6"), (3, "6")]), [(5, 2), (6, 2)]);
        assert_eq!(named(&[(0, "5"), (5, "5"), (6, "6")]), [(5, 1)]);
        assert_eq!(named(&[(0, "0, 3, 5")]), [(3, 1), (5, 1)], "all that one line names");
    }

    #[test]
    fn who_is_lost_once_the_job_is_being_ended_is_lost_by_that() {
        let rules = Rules::built_in().unwrap();
        // Rank 0 lost n1 so many seconds before the scheduler ended the job; how far clocks may be off, where that is known.
        let counted = |before: u32, error_s: Option<f64>| {
            let lost = format!(
                "[2026-11-20 10:10:{:02}] n0:1:1 [0] misc/socket.cc:503 NCCL WARN socketProgress: Connection closed by remote peer n1<41825>",
                30 - before
            );
            let mut case = case(3, &[(0, lost)], &rules);
            let ended = "[2026-11-20 10:10:30] slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-20T10:10:30 DUE TO PREEMPTION ***\n";
            case.logs.push(made::log(Whose::Job("out".to_owned()), ended, &rules));
            if let Some(error_s) = error_s {
                let reached =
                    |nr: u32| Reached { node: format!("n{nr}"), clock: Some((0.0, error_s)), ..Reached::default() };
                case.reached = (0..3).map(reached).collect();
                case.logs[1].whose = Whose::Rank(2);
            }
            !Facts::of(&case, &rules).lost.pairs.is_empty()
        };
        assert_eq!((counted(0, Some(0.5)), counted(1, Some(0.5))), (false, true));
        assert_eq!((counted(2, Some(2.5)), counted(3, Some(2.5))), (false, true));
        assert_eq!((counted(10, None), counted(11, None)), (false, true), "of a clock that is not known, ten seconds");
    }
}
