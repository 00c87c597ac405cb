//! Did the scheduler or a person end a job that was well?

use super::{Draft, Verdict, found, nothing, seen};
use crate::triage::Category;
use crate::triage::confidence::Weight;
use crate::triage::counters::Movement;
use crate::triage::facts::Facts;
use crate::triage::report::{Done, Kind as What, Source};
use crate::triage::rules::Kind;

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
        event.rule.part != crate::triage::rules::Part::Scheduler && event.rule.kind != Kind::Distributed && earlier
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
