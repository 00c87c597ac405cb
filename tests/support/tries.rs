//! Tests that may need more than one try, since a busy or unsteady machine leaves questions open: every try is counted and recorded.
//!
//! Where verdicts hang on how equal this machine makes its nodes, an open question is no wrong answer: such a test is recorded as
//! undecided, and `.ci/run` fails when all of them end so, as then nothing was tested. The nodes of a test share a machine, and its
//! hypervisor may truly slow one of them for as long as it is measured: a try that accuses a sound node is recorded and repeated
//! once, a second one fails the test, and `.ci/run` fails when tests do so too often.

use muster_skip::{Lacks, skip, tried};

use crate::load::BUSY;

/// What one try came to. Whatever else is wrong panics in the try itself and ends the test.
#[derive(Clone, Debug)]
pub struct Try {
    /// Why nothing was decided; nothing when all was as expected.
    pub open: Option<String>,
    /// Sound nodes that were said to be at fault, with what was said.
    pub accused: Vec<String>,
    /// CPUs that others used meanwhile.
    pub others: f64,
}

impl Try {
    /// A try that accused nobody.
    #[must_use]
    pub const fn new(open: Option<String>, others: f64) -> Self {
        Self { open, accused: Vec::new(), others }
    }
}

/// Tries up to `most` times until all is decided, and otherwise skips `test` when others kept this machine busy in every try.
///
/// # Panics
/// When nothing was decided and one of the tries had a quiet machine, or when two tries accused sound nodes.
pub fn decide(test: &str, most: usize, one: impl FnMut() -> Try) {
    if let Some(why) = open(test, most, one) {
        panic!("{test}: {why}");
    }
}

/// The same for speeds that nodes share: what stays open on a quiet machine is recorded, as a hypervisor's other guests make nodes
/// unequal and are seen by nobody.
pub fn decide_where_steady(test: &str, most: usize, one: impl FnMut() -> Try) {
    if let Some(why) = open(test, most, one) {
        tried(test, &why);
    }
}

/// What stayed open although the machine was quiet.
fn open(test: &str, most: usize, mut one: impl FnMut() -> Try) -> Option<String> {
    match repeated(most, &mut one, &mut |what| tried(test, what)) {
        Ended::Decided => None,
        Ended::Busy(why) => {
            skip(test, Lacks::Quiet, &why);
            None
        }
        Ended::Undecided(why) => Some(why),
        Ended::Accused(why) => panic!("{test}: sound nodes are accused: {why}"),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Decided,
    Busy(String),
    Undecided(String),
    Accused(String),
}

fn repeated(most: usize, one: &mut dyn FnMut() -> Try, say: &mut dyn FnMut(&str)) -> Ended {
    let (mut quietest, mut last) = (f64::INFINITY, String::new());
    let (mut number, mut before) = (0, None::<String>);
    while number < most {
        let Try { open, accused, others } = one();
        if !accused.is_empty() {
            let now = accused.join("; ");
            say(&format!("accused sound nodes in try {} (others used {others:.2} CPUs): {now}", number + 1));
            match before {
                Some(before) => return Ended::Accused(format!("{before}; in another try: {now}")),
                None => before = Some(now),
            }
            continue;
        }
        number += 1;
        let Some(why) = open else {
            say(&format!("decided by try {number} of {most} (others used {others:.2} CPUs)"));
            return Ended::Decided;
        };
        say(&format!("open after try {number} of {most} (others used {others:.2} CPUs): {why}"));
        quietest = quietest.min(others);
        last = why;
    }
    if quietest > BUSY {
        return Ended::Busy(format!("others used at least {quietest:.2} CPUs in {most} tries: {last}"));
    }
    Ended::Undecided(format!("undecided {most} times, though others used only {quietest:.2} CPUs: {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How tries end that leave a question open where it is so, with what others used in each, and what was said.
    fn ended(tries: &[(bool, f64)]) -> (Ended, Vec<String>) {
        let (mut left, mut said) = (tries.iter(), Vec::new());
        let mut one = || {
            let (open, others) = *left.next().unwrap();
            Try::new(open.then(|| "n1: not judged".into()), others)
        };
        let ended = repeated(tries.len(), &mut one, &mut |what| said.push(what.to_owned()));
        (ended, said)
    }

    #[test]
    fn a_decided_try_ends_it_and_the_tries_before_are_recorded() {
        let (ended, said) = ended(&[(true, 0.01), (false, 0.0), (true, 0.0)]);
        assert_eq!(ended, Ended::Decided);
        let open = "open after try 1 of 3 (others used 0.01 CPUs): n1: not judged";
        assert_eq!(said, [open, "decided by try 2 of 3 (others used 0.00 CPUs)"]);
    }

    #[test]
    fn only_others_work_in_every_try_excuses_an_open_question() {
        let busy = "others used at least 0.90 CPUs in 2 tries: n1: not judged";
        assert_eq!(ended(&[(true, 0.9), (true, 1.0)]).0, Ended::Busy(busy.into()));
        let quiet = "undecided 2 times, though others used only 0.01 CPUs: n1: not judged";
        assert_eq!(ended(&[(true, 0.9), (true, 0.01)]).0, Ended::Undecided(quiet.into()));
    }
    #[test]
    fn a_sound_node_may_be_accused_once_and_another_try_is_made_of_it() {
        let with = |tries: &[bool]| {
            let mut left = tries.iter();
            let mut one = || {
                let accused = left.next().unwrap().then(|| "n2 is slow".to_owned());
                Try { accused: accused.into_iter().collect(), ..Try::new(None, 0.0) }
            };
            repeated(1, &mut one, &mut |_| ())
        };
        assert_eq!(with(&[true, false]), Ended::Decided);
        assert_eq!(with(&[true, true]), Ended::Accused("n2 is slow; in another try: n2 is slow".into()));
    }
}
