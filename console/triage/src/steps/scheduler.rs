//! Did the scheduler or a person end a job that was well?

use super::{Draft, Verdict, found, nothing, seen};
use crate::confidence::Weight;
use crate::counters::Movement;
use crate::facts::Facts;
use crate::report::{Done, Kind as What, Source};
use muster_logs::Category;
use muster_logs::Kind;

const STEP: &str = "ended-by-scheduler";
/// The rule for a job that reached its time limit.
const TIME_LIMIT: &str = "slurm-time-limit";
/// Seconds between the last step and the end that a job without further word may take for a hang.
const GAP_S: f64 = 600.0;
/// Seconds between the last step and the end within which nobody can have noticed a hang.
const STEPPED_S: f64 = 10.0;

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    let ended = facts.ended();
    let Some(first) = ended.first() else {
        return nothing(STEP, "no line says that the scheduler ended the job", "It ended or stands by itself: go on.");
    };
    let first_s = ended.iter().filter_map(|event| event.at_s).min_by(f64::total_cmp);
    // What broke before the end is the cause, and the end only follows.
    let before = facts.roots().find(|event| {
        let earlier = event.at_s.zip(first_s).is_some_and(|(at, end)| at + event.error_s.min(10.0) < end);
        event.rule.part != muster_logs::Part::Scheduler && event.rule.kind != Kind::Distributed && earlier
    });
    if let Some(before) = before {
        return nothing(
            STEP,
            "the scheduler ended the job, after something else went wrong",
            format!("{} came first: go on.", before.rule.id),
        );
    }
    let gap = first_s.zip(facts.end.last_s).map(|(end, last)| end - last);
    // Dumps that ranks write as they are ended show them in the middle of a step, which is no hang.
    let stepped = gap.is_some_and(|gap| gap <= STEPPED_S) && facts.timed_out.is_empty();
    let hung = facts.hung() && facts.movement != Movement::Moved && !stepped;
    if hung {
        return nothing(STEP, "the scheduler ended a job that hung already", "The end is not the cause: go on.");
    }
    let well = facts.movement == Movement::Moved || facts.level;
    // A job that nothing is known of may have stood until its time was over.
    if !well && gap.is_none() && ended.iter().all(|event| event.rule.id == TIME_LIMIT) {
        return nothing(
            STEP,
            "the job reached its time limit, and no log shows whether it still got on",
            "It may have hung before the limit: go on.",
        );
    }
    if !well && gap.is_some_and(|gap| gap > GAP_S) {
        return nothing(
            STEP,
            format!("the scheduler ended the job {:.0} s after its last step", gap.unwrap_or(0.0)),
            "It may have hung before: go on.",
        );
    }
    let mut draft = Draft::new(What::None, None, None);
    draft.add(Weight::Scheduler, ended.iter().take(4).map(|event| event.evidence()));
    if well {
        let text = match facts.movement {
            Movement::Moved => "the job got on between two polls",
            _ => "all ranks were level",
        };
        draft.add(Weight::Moving, [seen(Source::Ras, &None, None, text.to_owned())]);
    }
    let suspect = draft.say(format!("The job was ended from outside: {}", first.rule.meaning));
    found(
        STEP,
        "the scheduler ended a job in which nothing was wrong before",
        Verdict { category: Category::None, suspects: vec![suspect] },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Comm, CommRank, Job, Member, Poll, Process, Whose};
    use crate::made;
    use muster_logs::Rules;

    /// Counts of four ranks in two polls: the job stands still with the last rank behind, stands level, or moves.
    const BEHIND: Option<[[u64; 4]; 2]> = Some([[9, 9, 9, 8], [9, 9, 9, 8]]);
    const LEVEL: Option<[[u64; 4]; 2]> = Some([[9; 4], [9; 4]]);
    const MOVES: Option<[[u64; 4]; 2]> = Some([[8; 4], [9; 4]]);
    const TIMED_OUT: &str = "[rank1]:[E1120 10:09:50.000000 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=61, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.";

    /// What the step makes of a job that was preempted so many seconds after its last step, with another line in a log.
    fn ended(after_s: u32, (whose, line): (Whose, &str), polls: Option<[[u64; 4]; 2]>) -> (Done, Option<Verdict>) {
        let rules = Rules::built_in().unwrap();
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), pid: Some(rank), gpu: None };
        let (minute, second) = (10 + after_s / 60, after_s % 60);
        let own = format!(
            "[2026-11-20 10:10:00] iteration 5/ 100 | elapsed time per iteration (ms): 900.0 |\n\
             slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-20T10:{minute}:{second:02} DUE TO PREEMPTION ***\n"
        );
        let rank = |(rank, count): (u32, u64)| {
            let (host, pid) = (format!("n{rank}"), Some(rank));
            let process = Process { host, pid, rank: Some(rank), ..Process::default() };
            CommRank { process, counts: [("AllReduce".to_owned(), count)].into(), failed: false }
        };
        let poll = |(number, counts): (u32, [u64; 4])| {
            let comm = Comm { hash: "0x1".to_owned(), ranks: (0..).zip(counts).map(rank).collect(), ..Comm::default() };
            Poll { number, comms: vec![comm], ..Poll::default() }
        };
        let case = Case {
            job: Job { members: (0..4).map(member).collect(), ..Job::default() },
            logs: vec![made::log(Whose::Rank(0), &own, &rules), made::log(whose, &format!("{line}\n"), &rules)],
            polls: (1..).zip(polls.into_iter().flatten()).map(poll).collect(),
            ..Case::default()
        };
        step(&Facts::of(&case, &rules))
    }

    /// The same with nothing else in the logs: the confidence that nothing was wrong, or what was found instead.
    fn well(after_s: u32, polls: Option<[[u64; 4]; 2]>) -> Result<f64, String> {
        of(ended(after_s, (Whose::Rank(1), "quiet"), polls))
    }

    fn of((done, verdict): (Done, Option<Verdict>)) -> Result<f64, String> {
        let verdict = verdict.ok_or(done.result)?;
        assert_eq!((verdict.category, verdict.suspects.len()), (Category::None, 1));
        Ok(verdict.suspects[0].confidence)
    }

    #[test]
    fn a_job_that_stood_still_was_hung_but_for_the_moment_between_two_steps() {
        let hung = Err("the scheduler ended a job that hung already".to_owned());
        assert_eq!(well(10, BEHIND), Ok(0.88));
        assert_eq!(well(11, BEHIND), hung);
        assert_eq!(of(ended(5, (Whose::Rank(1), TIMED_OUT), None)), hung, "its watchdogs had noticed");
        assert_eq!(of(ended(5, (Whose::Rank(1), TIMED_OUT), MOVES)), Ok(0.94), "and it got on after that");
    }

    #[test]
    fn a_job_of_which_nothing_else_is_known_may_have_hung_for_ten_minutes() {
        assert_eq!(well(600, None), Ok(0.88));
        assert_eq!(well(601, None), Err("the scheduler ended the job 601 s after its last step".to_owned()));
        assert_eq!((well(601, MOVES), well(601, LEVEL)), (Ok(0.94), Ok(0.94)));
        let told = |polls| {
            let (_, verdict) = ended(601, (Whose::Rank(1), "quiet"), polls);
            verdict.unwrap().suspects[0].evidence.last().map(|last| last.text.clone())
        };
        assert_eq!(told(MOVES).as_deref(), Some("the job got on between two polls"));
        assert_eq!(told(LEVEL).as_deref(), Some("all ranks were level"));
    }

    #[test]
    fn what_broke_clearly_before_the_end_is_the_cause() {
        let lost = |at: &str| {
            let line = format!(
                "[2026-11-20 10:{at}] NVRM: Xid (PCI:0000:11:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
            );
            ended(5, (Whose::Kernel("n1".to_owned()), &line), None)
        };
        let (done, verdict) = lost("09:50");
        assert!(verdict.is_none() && done.result.ends_with("after something else went wrong"), "{done:?}");
        assert_eq!(done.why, "xid-79 came first: go on.");
        assert_eq!(of(lost("09:56")), Ok(0.88), "its clock may be off by ten seconds");
        assert_eq!(of(lost("09:55")), Ok(0.88));
    }
}
