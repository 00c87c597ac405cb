//! Every method over the same recordings, each recording by what was learned from others.

use std::collections::BTreeSet;
use std::time::Duration;

use super::learn::{Settings, learn};
use super::method::{Method, Told};
use super::model::Model;
use super::recorded::Recorded;
use super::score::Tally;

/// Where methods that learn have it from.
#[derive(Clone, Copy, Debug)]
pub enum Teacher<'a> {
    /// The recordings are dealt into so many parts; each part is scored by what was learned from the others.
    Parts(usize),
    /// A model that was learned before.
    Model(&'a Model),
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Which methods.
    pub methods: &'a [Method],
    /// How they learn.
    pub settings: Settings,
    /// From what.
    pub teacher: Teacher<'a>,
}

/// What only the caller knows and can do.
pub trait Around {
    /// CPU time of this process so far.
    fn cpu(&self) -> Duration;
    /// Something long begins.
    fn begins(&mut self, what: &str);
}

/// What came of a method.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which.
    pub method: Method,
    /// Counts over the recordings that it was shown.
    pub tally: Tally,
    /// CPU time it took to go through them, without learning.
    pub cpu: Duration,
    /// By recording.
    pub each: Vec<Each>,
    /// Recordings that it could not go through, as there was nothing to learn from.
    pub not_run: usize,
}

/// What a method told of a recording.
#[derive(Clone, Debug)]
pub struct Each {
    /// Place of the recording.
    pub recording: usize,
    /// Who was named.
    pub told: Vec<Told>,
    /// Delay of each fault of its truth, in seconds; nothing for one that was not found.
    pub delays_s: Vec<Option<f64>>,
}

/// Goes through all of `recordings`. With parts, as many are made as there are recordings at most; a single one has nobody to learn from.
pub fn evaluate(recordings: &[Recorded], plan: &Plan<'_>, around: &mut dyn Around) -> Vec<Outcome> {
    let outcome = |method: &Method| Outcome {
        method: *method,
        tally: Tally::default(),
        cpu: Duration::ZERO,
        each: Vec::new(),
        not_run: 0,
    };
    let mut outcomes: Vec<Outcome> = plan.methods.iter().map(outcome).collect();
    match plan.teacher {
        Teacher::Model(model) => {
            let all: Vec<usize> = (0..recordings.len()).collect();
            score(recordings, &all, Some(model), &mut outcomes, around);
        }
        Teacher::Parts(parts) => {
            let parts = parts.clamp(1, recordings.len().max(1));
            for part in 0..parts {
                let (own, others): (Vec<usize>, Vec<usize>) = (0..recordings.len()).partition(|at| at % parts == part);
                let teachers: Vec<&Recorded> = others.iter().map(|at| &recordings[*at]).collect();
                let needed = plan.methods.iter().any(|method| method.learns()) && !teachers.is_empty();
                let model = needed.then(|| {
                    let from = counted(teachers.len());
                    around.begins(&format!("part {} of {parts}: learning from {from}", part + 1));
                    learn(&teachers, plan.methods, &plan.settings)
                });
                score(recordings, &own, model.as_ref(), &mut outcomes, around);
            }
        }
    }
    outcomes.iter_mut().for_each(|outcome| outcome.each.sort_by_key(|each| each.recording));
    outcomes
}

fn score(
    recordings: &[Recorded],
    own: &[usize],
    model: Option<&Model>,
    outcomes: &mut [Outcome],
    around: &mut dyn Around,
) {
    around.begins(&format!("scoring {}", counted(own.len())));
    for &recording in own {
        let recorded = &recordings[recording];
        for outcome in outcomes.iter_mut() {
            let begun = around.cpu();
            let told = outcome.method.told(recorded, model);
            outcome.cpu += around.cpu().saturating_sub(begun);
            let Some(told) = told else {
                outcome.not_run += 1;
                continue;
            };
            let delays_s = outcome.tally.add(recorded, &told);
            outcome.each.push(Each { recording, told, delays_s });
        }
    }
}

fn counted(recordings: usize) -> String {
    if recordings == 1 { "1 recording".to_owned() } else { format!("{recordings} recordings") }
}

impl Model {
    /// Names of those of `recordings` that the model was learned from.
    #[must_use]
    pub fn has_seen<'a>(&self, recordings: &'a [Recorded]) -> Vec<&'a str> {
        let known: BTreeSet<u64> = self.trained_on.iter().map(|source| source.fingerprint).collect();
        let seen = recordings.iter().filter(|recorded| known.contains(&recorded.fingerprint));
        seen.map(|recorded| recorded.name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::truth::{Fault, Truth};
    use super::*;
    use crate::minder::{Tick, Training};
    use muster_analysis::Chance;

    /// Six machines for fifteen minutes; in odd ones of the recordings, one loses a third of its power after five.
    fn made(seed: u64) -> Recorded {
        let mut chance = Chance::new(seed);
        let culprit = (seed % 2 == 1).then_some(seed as u16 % 6);
        let mut ticks = Vec::new();
        for second in 0..900_u32 {
            let wave = 1.0 + 0.1 * (f64::from(second) / 9.0).sin();
            for (node, metric) in (0..6).flat_map(|node| (0..3).map(move |metric| (node, metric))) {
                let hurt = second >= 300 && metric == 1 && Some(node) == culprit;
                let value = if hurt { 0.6 } else { 1.0 } * wave * (1.0 + 0.02 * chance.normal());
                ticks.push(Tick { time_s: 1e9 + f64::from(second), value: value as f32, node, metric });
            }
        }
        let names = |prefix: &str, n: usize| (0..n).map(|at| format!("{prefix}{at}")).collect::<Vec<String>>();
        let metrics = ["tensor_active", "gpu_power_w", "net_tx_gbs"].map(str::to_owned).to_vec();
        let fault =
            |node| Fault { node: format!("n{node}"), onset_s: 1e9 + 300.0, end_s: 1e9 + 900.0, detectable: true };
        let truth = Truth { kind: String::new(), faults: culprit.map(fault).into_iter().collect() };
        Recorded::new(format!("r{seed}"), (names("n", 6), metrics), ticks, truth).unwrap()
    }

    #[derive(Default)]
    struct Counted(Vec<String>);

    impl Around for Counted {
        fn cpu(&self) -> Duration {
            Duration::ZERO
        }

        fn begins(&mut self, what: &str) {
            self.0.push(what.to_owned());
        }
    }

    fn settings() -> Settings {
        let training = Training { windows: 256, epochs: 20, ..Training::default() };
        Settings { training, ..Settings::default() }
    }

    #[test]
    fn every_method_is_scored_on_every_recording_by_what_others_taught() {
        let recordings: Vec<Recorded> = (0..4).map(made).collect();
        let mut around = Counted::default();
        let plan = Plan { methods: &Method::ALL, settings: settings(), teacher: Teacher::Parts(4) };
        let outcomes = evaluate(&recordings, &plan, &mut around);
        let learned = around.0.iter().filter(|what| what.contains("learning from 3 recordings")).count();
        assert_eq!(learned, 4, "{:?}", around.0);
        for outcome in &outcomes {
            let tally = &outcome.tally;
            assert_eq!((outcome.each.len(), tally.recordings, tally.faults, tally.clean), (4, 4, 2, 2));
            let (found, wrong) = (tally.found, tally.wrong);
            let named = |method| outcome.method == method;
            if named(Method::Muster) || named(Method::Minder) || named(Method::MinderRaw) {
                assert_eq!((found, wrong), (2, 0), "{:?}: {outcome:?}", outcome.method);
            }
        }
        let delay = |method: Method| {
            let of = outcomes.iter().find(|outcome| outcome.method == method).unwrap();
            of.tally.summary().delay.unwrap().mean_s
        };
        assert!(delay(Method::Minder) >= 240.0 && delay(Method::Muster) < 150.0);
    }

    #[test]
    fn a_single_recording_teaches_nobody_and_a_model_that_saw_it_says_so() {
        let recordings = [made(1)];
        let mut around = Counted::default();
        let plan =
            Plan { methods: &[Method::Muster, Method::MinderRaw], settings: settings(), teacher: Teacher::Parts(5) };
        let outcomes = evaluate(&recordings, &plan, &mut around);
        assert_eq!((outcomes[0].each.len(), outcomes[1].each.len(), outcomes[1].not_run), (1, 0, 1));
        let model = learn(&[&recordings[0]], &[Method::MinderRaw], &settings());
        assert_eq!(model.has_seen(&recordings), ["r1"]);
        assert!(model.has_seen(&[made(3)]).is_empty());
        let taught = evaluate(&recordings, &Plan { teacher: Teacher::Model(&model), ..plan }, &mut around);
        assert_eq!((taught[1].tally.found, taught[1].not_run), (1, 0));
        assert_eq!(Model::from_json(&model.to_json().unwrap()).unwrap(), model);
    }

    /// A process that uses a second of CPU between two looks at its clock.
    #[derive(Default)]
    struct Ticking {
        looks: std::cell::Cell<u64>,
        said: Vec<String>,
    }

    impl Around for Ticking {
        fn cpu(&self) -> Duration {
            self.looks.set(self.looks.get() + 1);
            Duration::from_secs(100 + self.looks.get())
        }

        fn begins(&mut self, what: &str) {
            self.said.push(what.to_owned());
        }
    }

    #[test]
    fn cpu_time_is_that_of_going_through_each_recording_and_what_begins_is_told_in_order() {
        let recordings: Vec<Recorded> = (0..3).map(made).collect();
        let mut around = Ticking::default();
        let plan = Plan { methods: &[Method::Muster, Method::Mean], settings: settings(), teacher: Teacher::Parts(2) };
        let outcomes = evaluate(&recordings, &plan, &mut around);
        assert!(outcomes.iter().all(|outcome| outcome.cpu == Duration::from_secs(3)), "{outcomes:?}");
        assert_eq!(
            around.said,
            [
                "part 1 of 2: learning from 1 recording",
                "scoring 2 recordings",
                "part 2 of 2: learning from 2 recordings",
                "scoring 1 recording"
            ]
        );
        let places: Vec<usize> = outcomes[0].each.iter().map(|each| each.recording).collect();
        assert_eq!(places, [0, 1, 2]);
    }
}
