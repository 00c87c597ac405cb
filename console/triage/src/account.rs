//! Where did the time of a job go: steps, slow steps, pauses inside an attempt, restarts, steps done again?
//!
//! After Aegis' runtime metrics (NSDI '25): a step counts as degraded from 1.2 times the mean on, and the percentage of degradation is
//! `P_deg = Σ over T_k > 1.2 T̄ of (T_k - 1.2 T̄) / Σ T_k`, T̄ the mean step. An attempt is the job between two starts.

use serde::Serialize;

use super::clock::median;

/// Times the mean step from which a step counts as degraded.
pub const SLOW: f64 = 1.2;

/// Seconds within which the same number is the same step, told in two lines.
const TWICE_S: f64 = 1.0;

/// Stamps of whole seconds tell the lines of an attempt up to so many seconds closer together than they were.
const STAMP_S: f64 = 1.0;

/// Seconds since 1970 are held to less than this.
const ROUNDED_S: f64 = 1e-6;

/// What the logs of one attempt tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Its name, such as that of its folder.
    pub name: String,
    /// Its steps in the order in which they were told.
    pub steps: Vec<Step>,
}

/// One step that was done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Its number.
    pub number: u64,
    /// When its end was told, epoch seconds.
    pub at_s: Option<f64>,
    /// Seconds it took, where told.
    pub took_s: Option<f64>,
}

/// The published document `muster.triage-account`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Account {
    /// `muster.triage-account`.
    pub schema: &'static str,
    /// Version of the schema.
    pub version: u32,
    /// Attempts in their order.
    pub attempts: Vec<Attempt>,
    /// All together.
    pub total: Total,
    /// What could not be told, in sentences.
    pub notes: Vec<String>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attempt {
    /// Its name.
    pub name: String,
    /// Beginning of its first step, epoch seconds, where times are told.
    pub from_s: Option<f64>,
    /// End of its last step.
    pub to_s: Option<f64>,
    /// Number of its first step.
    pub first_step: u64,
    /// Number of its last step.
    pub last_step: u64,
    /// What its steps took.
    #[serde(flatten)]
    pub steps: Steps,
    /// Seconds between its steps: checkpoints, evaluation, stalls that no step tells.
    pub between_steps_s: Option<f64>,
    /// Seconds from the end of the last step of the attempt before to the beginning of its first one.
    pub lost_before_s: Option<f64>,
    /// Steps that an earlier attempt had done already.
    pub repeated_steps: usize,
    /// Seconds that these took this time.
    pub repeated_s: f64,
}

/// What some steps took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Steps {
    /// Steps whose duration is known.
    pub steps: usize,
    /// Seconds in steps.
    pub in_steps_s: f64,
    /// Mean step, seconds.
    pub mean_step_s: f64,
    /// Median step, seconds.
    pub median_step_s: f64,
    /// Steps longer than 1.2 times the mean.
    pub slow_steps: usize,
    /// Seconds by which these are longer than that.
    pub slow_s: f64,
    /// Percentage of degradation: these seconds of all seconds in steps.
    pub degradation_percent: f64,
}

/// All attempts together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// Attempts.
    pub attempts: usize,
    /// Seconds from the beginning of the first step to the end of the last.
    pub elapsed_s: Option<f64>,
    /// What all steps took, slow against the mean of all.
    #[serde(flatten)]
    pub steps: Steps,
    /// Seconds between steps of one attempt.
    pub between_steps_s: Option<f64>,
    /// Seconds between attempts.
    pub lost_between_s: Option<f64>,
    /// Steps done again after a restart.
    pub repeated_steps: usize,
    /// Seconds that these took.
    pub repeated_s: f64,
    /// Seconds in steps that were neither repeated nor the slow part of a step.
    pub useful_s: f64,
    /// These of the elapsed time.
    pub useful_percent: Option<f64>,
}

impl Total {
    /// `seconds` of the elapsed time, in percent. `None` where no times are told, and where the steps took longer than the times of their
    /// lines allow: attempts that overlap, or durations that are wrong.
    #[must_use]
    pub fn percent(&self, seconds: f64) -> Option<f64> {
        let elapsed_s = self.elapsed_s.filter(|elapsed| self.steps.in_steps_s <= *elapsed)?;
        Some(100.0 * (seconds / elapsed_s))
    }
}

/// The account of a job from what was told of its attempts; `None` where nothing tells how long steps took.
///
/// Attempts are put in the order of their times. Inside one log, a step whose number is not larger than the one before begins a new
/// attempt, but for the same step told again within a second. Steps without a duration take it from their distance to the step before.
#[must_use]
pub fn account(told: Vec<Told>) -> Option<Account> {
    let mut notes = Vec::new();
    let mut attempts: Vec<Told> = Vec::new();
    for one in told {
        if one.steps.is_empty() {
            notes.push(format!("{}: no log tells a step.", one.name));
        } else {
            attempts.extend(split(one));
        }
    }
    order(&mut attempts, &mut notes);
    let mut durations: Vec<f64> = Vec::new();
    let (mut made, mut done): (Vec<Attempt>, Option<u64>) = (Vec::new(), None);
    for told in &attempts {
        let took = durations_of(&told.steps);
        let without = took.iter().filter(|took| took.is_none()).count();
        if without == took.len() {
            notes.push(format!("{}: its steps tell neither durations nor times.", told.name));
            continue;
        }
        if without > 1 {
            notes.push(format!("{}: {without} steps without a duration are not counted.", told.name));
        }
        let attempt = attempt(told, &took, (made.last(), done));
        notes.extend(contradiction(&attempt));
        durations.extend(took.into_iter().flatten());
        done = done.max(Some(told.steps.iter().map(|step| step.number).max().unwrap_or(0)));
        made.push(attempt);
    }
    if made.is_empty() {
        return None;
    }
    let total = total(&made, &durations);
    Some(Account { schema: "muster.triage-account", version: 1, attempts: made, total, notes })
}

/// One log that goes on after a restart is several attempts.
fn split(told: Told) -> Vec<Told> {
    let mut parts: Vec<Vec<Step>> = vec![Vec::new()];
    for step in told.steps {
        let before = parts.last_mut().and_then(|part| part.last_mut());
        if let Some(before) = before {
            let apart = before.at_s.zip(step.at_s).map_or(0.0, |(before, at)| at - before);
            if step.number == before.number && apart <= TWICE_S {
                before.took_s = before.took_s.or(step.took_s);
                continue;
            }
            if step.number <= before.number {
                parts.push(Vec::new());
            }
        }
        if let Some(part) = parts.last_mut() {
            part.push(step);
        }
    }
    let several = parts.len() > 1;
    let name = |at: usize| if several { format!("{} #{}", told.name, at + 1) } else { told.name.clone() };
    parts.into_iter().enumerate().map(|(at, steps)| Told { name: name(at), steps }).collect()
}

/// By time where all tell it, else as they were given.
fn order(attempts: &mut [Told], notes: &mut Vec<String>) {
    let first = |told: &Told| told.steps.iter().find_map(|step| step.at_s);
    if attempts.iter().all(|told| first(told).is_some()) {
        attempts.sort_by(|a, b| first(a).unwrap_or(0.0).total_cmp(&first(b).unwrap_or(0.0)));
    } else if attempts.len() > 1 {
        notes.push("Attempts without times: taken in the order in which they were given.".to_owned());
    }
    let last = |told: &Told| told.steps.iter().rev().find_map(|step| step.at_s);
    for pair in attempts.windows(2) {
        if last(&pair[0]).zip(first(&pair[1])).is_some_and(|(end, begin)| begin < end) {
            notes.push(format!(
                "{} begins before {} ends: they are not attempts of one job, or a clock was set.",
                pair[1].name, pair[0].name
            ));
        }
    }
}

/// How long each step took: as told, else from its distance to the step before.
fn durations_of(steps: &[Step]) -> Vec<Option<f64>> {
    let good = |seconds: &f64| seconds.is_finite() && *seconds >= 0.0;
    let mut before: Option<Step> = None;
    let took = |step: &Step| {
        let since = before.replace(*step).filter(|before| before.number + 1 == step.number);
        let distance = since.and_then(|before| Some(step.at_s? - before.at_s?));
        step.took_s.filter(good).or(distance.filter(good))
    };
    steps.iter().map(took).collect()
}

fn attempt(told: &Told, took: &[Option<f64>], (before, done): (Option<&Attempt>, Option<u64>)) -> Attempt {
    let known: Vec<f64> = took.iter().flatten().copied().collect();
    let steps = steps(&known);
    let at =
        |step: Option<(&Step, &Option<f64>)>| step.and_then(|(step, took)| Some((step.at_s?, took.unwrap_or(0.0))));
    let to_s = told.steps.iter().rev().find_map(|step| step.at_s);
    let first = at(told.steps.iter().zip(took).next()).map(|(at, took)| at - took);
    let from_s = first.map(|first| began(first, to_s, steps.in_steps_s));
    let again = |step: &Step| done.is_some_and(|done| step.number <= done);
    let repeated = told.steps.iter().zip(took).filter(|(step, _)| again(step));
    let (repeated_steps, repeated_s) =
        repeated.fold((0, 0.0), |(n, seconds), (_, took)| (n + 1, seconds + took.unwrap_or(0.0)));
    Attempt {
        name: told.name.clone(),
        from_s,
        to_s,
        first_step: told.steps.first().map_or(0, |step| step.number),
        last_step: told.steps.last().map_or(0, |step| step.number),
        steps,
        between_steps_s: from_s.zip(to_s).map(|(from, to)| (to - from - steps.in_steps_s).max(0.0)),
        lost_before_s: before.and_then(|before| before.to_s).zip(from_s).map(|(to, from)| (from - to).max(0.0)),
        repeated_steps,
        repeated_s,
    }
}

/// When an attempt began whose first step began at `first` by its line: before that as far as stamps of whole seconds took time off its
/// steps.
fn began(first: f64, to_s: Option<f64>, in_steps_s: f64) -> f64 {
    let short = to_s.map_or(0.0, |to| in_steps_s - (to - first));
    if (0.0..=STAMP_S).contains(&short) { first - short } else { first }
}

/// That the durations of an attempt's steps do not fit between its lines.
fn contradiction(attempt: &Attempt) -> Option<String> {
    let passed = attempt.from_s.zip(attempt.to_s).map(|(from, to)| to - from)?;
    let told = attempt.steps.in_steps_s;
    (told > passed + STAMP_S).then(|| {
        format!(
            "{}: its steps add up to {told:.1} s, but their lines span {passed:.1} s: durations or timestamps are wrong.",
            attempt.name
        )
    })
}

fn steps(took: &[f64]) -> Steps {
    let in_steps_s: f64 = took.iter().sum();
    let mean_step_s = if took.is_empty() { 0.0 } else { in_steps_s / took.len() as f64 };
    let limit = SLOW * mean_step_s;
    let slow = took.iter().filter(|took| **took > limit);
    let (slow_steps, slow_s) = slow.fold((0, 0.0), |(n, seconds), took| (n + 1, seconds + took - limit));
    let degradation_percent = if in_steps_s > 0.0 { 100.0 * slow_s / in_steps_s } else { 0.0 };
    let median_step_s = median(&mut took.to_vec());
    Steps { steps: took.len(), in_steps_s, mean_step_s, median_step_s, slow_steps, slow_s, degradation_percent }
}

fn total(attempts: &[Attempt], durations: &[f64]) -> Total {
    let steps = steps(durations);
    // A sum of nothing is a negative zero.
    let sum = |of: fn(&Attempt) -> Option<f64>, from: usize| {
        attempts.iter().skip(from).map(of).sum::<Option<f64>>().map(|sum| sum + 0.0)
    };
    let elapsed_s = attempts.first().and_then(|first| first.from_s).zip(attempts.last().and_then(|last| last.to_s));
    let elapsed_s = elapsed_s.map(|(from, to)| (to - from).max(0.0)).filter(|elapsed| *elapsed > 0.0);
    // Stamps of whole seconds take something off attempts that follow each other at once, and times since 1970 are rounded.
    let cut_off_s = -ROUNDED_S..=STAMP_S * attempts.len() as f64;
    let short = |elapsed: f64| cut_off_s.contains(&(steps.in_steps_s - elapsed));
    let elapsed_s = elapsed_s.map(|elapsed| if short(elapsed) { steps.in_steps_s } else { elapsed });
    let repeated_s = attempts.iter().map(|attempt| attempt.repeated_s).sum::<f64>() + 0.0;
    let useful_s = (steps.in_steps_s - steps.slow_s - repeated_s).max(0.0);
    let total = Total {
        attempts: attempts.len(),
        elapsed_s,
        steps,
        between_steps_s: sum(|attempt| attempt.between_steps_s, 0),
        lost_between_s: sum(|attempt| attempt.lost_before_s, 1),
        repeated_steps: attempts.iter().map(|attempt| attempt.repeated_steps).sum(),
        repeated_s,
        useful_s,
        useful_percent: None,
    };
    Total { useful_percent: total.percent(useful_s), ..total }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps `numbers` from `from_s` on, each of a second but for `slow`, which takes five.
    fn told(name: &str, numbers: std::ops::Range<u64>, from_s: f64, slow: Option<u64>) -> Told {
        let mut at = from_s;
        let step = |number| {
            let took = if slow == Some(number) { 5.0 } else { 1.0 };
            at += took;
            Step { number, at_s: Some(at), took_s: Some(took) }
        };
        Told { name: name.to_owned(), steps: numbers.map(step).collect() }
    }

    #[test]
    fn degradation_is_what_slow_steps_take_beyond_twelve_tenths_of_the_mean() {
        let account = account(vec![told("a", 0..10, 0.0, Some(4))]).unwrap();
        // Nine steps of 1 s and one of 5 s: mean 1.4, limit 1.68, 3.32 of 14 seconds.
        let steps = account.total.steps;
        assert_eq!((steps.steps, steps.slow_steps, steps.median_step_s), (10, 1, 1.0));
        assert!((steps.slow_s - 3.32).abs() < 1e-9 && (steps.degradation_percent - 100.0 * 3.32 / 14.0).abs() < 1e-9);
        assert_eq!((account.total.elapsed_s, account.total.lost_between_s), (Some(14.0), Some(0.0)));
        assert!(account.total.lost_between_s.unwrap().is_sign_positive(), "a reader is told 0, not -0");
    }

    #[test]
    fn what_lies_between_steps_is_what_the_attempt_took_without_them() {
        let step = |n: u32| Step { number: u64::from(n), at_s: Some(101.0 + 3.0 * f64::from(n)), took_s: Some(1.0) };
        let account = account(vec![Told { name: "a".to_owned(), steps: (0..10).map(step).collect() }]).unwrap();
        let attempt = &account.attempts[0];
        assert_eq!((attempt.from_s, attempt.to_s, attempt.between_steps_s), (Some(100.0), Some(128.0), Some(18.0)));
        assert_eq!((account.total.elapsed_s, account.total.between_steps_s), (Some(28.0), Some(18.0)));
    }

    #[test]
    fn a_step_told_twice_is_one_and_told_again_later_is_another_attempt() {
        let step = |number: u64, at: f64| Step { number, at_s: Some(at), took_s: Some(1.0) };
        let of = |steps: Vec<Step>| account(vec![Told { name: "a".to_owned(), steps }]).unwrap().attempts.len();
        let head = || vec![step(1, 1.0), step(2, 2.0)];
        assert_eq!(of([head(), vec![step(2, 2.0 + TWICE_S / 2.0), step(3, 4.0)]].concat()), 1);
        assert_eq!(of([head(), vec![step(2, 2.0 + 2.0 * TWICE_S), step(3, 4.0 + 2.0 * TWICE_S)]].concat()), 2);
    }

    #[test]
    fn a_restart_costs_the_pause_and_the_steps_done_again() {
        // Given in the wrong order; the second attempt begins 60 s later at a checkpoint 3 steps back.
        let account = account(vec![told("second", 7..20, 70.0, None), told("first", 0..10, 0.0, None)]).unwrap();
        let [first, second] = account.attempts.as_slice() else { panic!("two attempts") };
        assert_eq!((first.name.as_str(), second.name.as_str()), ("first", "second"));
        assert_eq!((second.lost_before_s, second.repeated_steps, second.repeated_s), (Some(60.0), 3, 3.0));
        let total = &account.total;
        assert_eq!((total.elapsed_s, total.lost_between_s, total.useful_s), (Some(83.0), Some(60.0), 20.0));
        assert!((total.useful_percent.unwrap() - 100.0 * 20.0 / 83.0).abs() < 1e-9);
    }

    #[test]
    fn a_log_in_which_numbers_go_back_is_two_attempts() {
        let mut one = told("log", 0..10, 0.0, None);
        one.steps.extend(told("log", 8..12, 40.0, None).steps);
        let account = account(vec![one]).unwrap();
        assert_eq!(account.attempts.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["log #1", "log #2"]);
        assert_eq!((account.total.repeated_steps, account.total.lost_between_s), (2, Some(30.0)));
    }

    #[test]
    fn durations_come_from_times_where_they_are_not_told_and_what_is_missing_is_said() {
        let mut untimed = told("a", 0..5, 0.0, None);
        untimed.steps.iter_mut().for_each(|step| step.took_s = None);
        let account = account(vec![untimed.clone(), Told { name: "b".into(), steps: Vec::new() }]).unwrap();
        assert_eq!(account.total.steps.steps, 4, "the first step has no step before it");
        assert_eq!(account.notes, ["b: no log tells a step."]);
        untimed.steps.iter_mut().for_each(|step| step.at_s = None);
        assert_eq!(super::account(vec![untimed]), None);
        assert_eq!(super::account(Vec::new()), None);
    }

    #[test]
    fn attempts_that_overlap_are_said() {
        let account = account(vec![told("a", 0..10, 0.0, None), told("b", 5..9, 3.0, None)]).unwrap();
        assert!(account.notes[0].contains("b begins before a ends"), "{:?}", account.notes);
        assert!(account.total.lost_between_s == Some(0.0));
        assert_eq!((account.total.elapsed_s, account.total.useful_percent), (Some(7.0), None), "14 s in 7 s");
    }

    #[test]
    fn a_job_takes_no_less_than_its_steps_where_its_log_counts_whole_seconds() {
        // Written at 201.45, 203.05 … 211.05 s: by their whole seconds only 10 s lie between the first line and the last.
        let step = |n: u32| Step {
            number: u64::from(n),
            at_s: Some((201.45 + 1.6 * f64::from(n)).floor()),
            took_s: Some(1.6),
        };
        let steps: Vec<Step> = (0..7).map(step).collect();
        let account = account(vec![Told { name: "a".into(), steps: steps.clone() }]).unwrap();
        let (attempt, total) = (&account.attempts[0], &account.total);
        assert!((total.steps.in_steps_s - 11.2).abs() < 1e-9, "{total:?}");
        assert!(total.elapsed_s.unwrap() >= total.steps.in_steps_s && total.elapsed_s.unwrap() < 12.2, "{total:?}");
        assert!(attempt.between_steps_s.unwrap() < 0.5, "{attempt:?}");
        assert_eq!(total.percent(total.useful_s), total.useful_percent);
        // The last line is a second earlier by its stamp than it was written.
        let mut early = steps;
        early[6].at_s = Some(210.0);
        let account = super::account(vec![Told { name: "a".into(), steps: early }]).unwrap();
        let total = &account.total;
        assert_eq!((total.elapsed_s, total.useful_percent), (Some(total.steps.in_steps_s), Some(100.0)));
        assert_eq!(account.attempts[0].between_steps_s.unwrap().round(), 0.0);
        assert_eq!(account.notes, Vec::<String>::new());
    }

    #[test]
    fn durations_that_do_not_fit_between_their_lines_are_said_and_no_share_is_told() {
        let mut one = told("a", 0..10, 0.0, None);
        one.steps.iter_mut().for_each(|step| step.took_s = Some(1000.0));
        let account = account(vec![one]).unwrap();
        assert_eq!(account.total.useful_percent, None);
        assert!(
            account.notes[0].contains("its steps add up to 10000.0 s, but their lines span 1009.0 s"),
            "{:?}",
            account.notes
        );
    }

    fn numbered(steps: &[(u64, Option<f64>, Option<f64>)]) -> Told {
        let step = |&(number, at_s, took_s): &(u64, Option<f64>, Option<f64>)| Step { number, at_s, took_s };
        Told { name: "a".to_owned(), steps: steps.iter().map(step).collect() }
    }

    #[test]
    fn a_step_without_a_duration_took_the_time_since_the_step_right_before_it() {
        let at = |number: u64, at: f64| (number, Some(at), None);
        let of = |steps: &[(u64, Option<f64>, Option<f64>)]| durations_of(&numbered(steps).steps);
        assert_eq!(of(&[at(1, 10.0), at(2, 12.5), at(4, 20.0), at(5, 21.0)]), [None, Some(2.5), None, Some(1.0)]);
        assert_eq!(of(&[at(1, 10.0), at(2, 9.0)]), [None, None], "a clock that was set back");
        assert_eq!(of(&[at(1, 10.0), (2, Some(12.0), Some(0.5))]), [None, Some(0.5)], "told before reckoned");
        assert_eq!(of(&[at(1, 10.0), (2, Some(12.0), Some(-1.0))]), [None, Some(2.0)]);
        assert_eq!(of(&[at(1, 10.0), (2, Some(12.0), Some(f64::NAN))]), [None, Some(2.0)]);
        assert_eq!(of(&[(1, None, Some(0.0)), (2, None, None)]), [Some(0.0), None]);
    }

    #[test]
    fn steps_whose_duration_nobody_tells_are_counted_in_a_note_but_for_the_first() {
        let notes = |steps: &[(u64, Option<f64>, Option<f64>)]| account(vec![numbered(steps)]).unwrap().notes;
        let at = |number: u64, at: f64| (number, Some(at), None);
        assert_eq!(notes(&[at(1, 1.0), at(2, 2.0), at(3, 3.0)]), Vec::<String>::new());
        let gap = [at(1, 1.0), at(3, 3.0), at(4, 4.0)];
        assert_eq!(notes(&gap), ["a: 2 steps without a duration are not counted."]);
    }

    #[test]
    fn attempts_without_times_stay_as_they_were_given_and_that_is_said_of_several() {
        let untimed = |name: &str, first: u64| Told {
            name: name.to_owned(),
            ..numbered(&[(first, None, Some(1.0)), (first + 1, None, Some(1.0))])
        };
        let of = |told: Vec<Told>| {
            let account = account(told).unwrap();
            (account.attempts.iter().map(|attempt| attempt.name.clone()).collect::<Vec<_>>(), account.notes)
        };
        assert_eq!(of(vec![untimed("z", 1)]), (vec!["z".to_owned()], vec![]));
        let note = "Attempts without times: taken in the order in which they were given.".to_owned();
        assert_eq!(of(vec![untimed("z", 5), untimed("y", 1)]), (vec!["z".to_owned(), "y".to_owned()], vec![note]));
        let account = account(vec![untimed("z", 1), untimed("y", 2)]).unwrap();
        assert_eq!((account.total.elapsed_s, account.total.useful_percent), (None, None));
        assert_eq!((account.total.useful_s, account.total.repeated_s, account.total.repeated_steps), (3.0, 1.0, 1));
        assert_eq!((account.attempts[1].first_step, account.attempts[1].last_step), (2, 3));
    }

    #[test]
    fn what_was_done_again_is_counted_against_all_attempts_before() {
        let of = account(vec![told("a", 0..10, 0.0, None), told("b", 4..6, 20.0, None), told("c", 8..12, 40.0, None)]);
        let total = of.unwrap().total;
        assert_eq!((total.repeated_steps, total.repeated_s, total.useful_s), (4, 4.0, 12.0), "4, 5, 8 and 9");
        assert_eq!((total.attempts, total.lost_between_s, total.elapsed_s), (3, Some(28.0), Some(44.0)));
    }

    #[test]
    fn attempts_that_follow_each_other_at_once_overlap_in_no_way() {
        let account = account(vec![told("a", 0..10, 0.0, None), told("b", 10..12, 10.0, None)]).unwrap();
        assert_eq!((account.notes, account.total.lost_between_s), (vec![], Some(0.0)), "a step ends where it is told");
        assert_eq!((account.total.repeated_steps, account.total.useful_percent), (0, Some(100.0)));
    }

    #[test]
    fn a_step_is_slow_beyond_twelve_tenths_of_the_mean_and_not_at_it_and_no_time_has_no_degradation() {
        assert_eq!((steps(&[1.2, 0.8]).slow_steps, steps(&[1.25, 0.75]).slow_steps), (0, 1));
        assert_eq!((steps(&[0.0]).degradation_percent, steps(&[]).degradation_percent), (0.0, 0.0));
        let at_once = account(vec![numbered(&[(1, Some(5.0), Some(0.0))])]).unwrap().total;
        assert_eq!((at_once.elapsed_s, at_once.useful_percent), (None, None), "a job of no time has no shares of it");
        assert!(at_once.repeated_s.is_sign_positive(), "a reader is told 0, not -0");
    }

    #[test]
    fn times_since_1970_are_rounded_and_so_are_what_they_add_up_to() {
        for tenth in 0..20 {
            let from = 1.76e9 + f64::from(tenth) / 10.0;
            let step = |n: u32| (u64::from(n), Some(from + 0.1 * f64::from(n)), Some(0.1));
            let total = account(vec![numbered(&(1..=10).map(step).collect::<Vec<_>>())]).unwrap().total;
            assert_eq!(
                (total.elapsed_s, total.useful_percent),
                (Some(total.steps.in_steps_s), Some(100.0)),
                "{total:?}"
            );
        }
    }

    #[test]
    fn stamps_of_whole_seconds_take_off_a_second_for_each_attempt_and_no_more() {
        let of = |second_s: f64| account(vec![told("a", 0..10, 0.0, None), told("b", 10..20, second_s, None)]).unwrap();
        let (cut, overlap) = (of(8.5).total, of(7.5).total);
        assert_eq!((cut.elapsed_s, cut.useful_percent), (Some(20.0), Some(100.0)));
        assert_eq!((overlap.elapsed_s, overlap.useful_percent), (Some(17.5), None));
        assert_eq!((of(9.0).notes.len(), of(8.9).notes.len()), (0, 1), "its first step ends when the last one did");
    }
}
