//! What did the ranks of a node say, and what do their steps make together?

use muster_wire::limits::SERIES_VALUES;
use muster_wire::{Direction, MetricId, Series, TRAIN_DDP, Unit};
use serde::Deserialize;

use super::group::hash;

/// Steps left out until the node is warm.
const WARMUP: usize = 2;
/// Values of all series of a training: they fit into one frame.
const MOST: usize = 3 * 8_192;
/// Most GPUs of a node.
const GPUS: usize = 64;
const _: () = assert!(10 * MOST < muster_wire::limits::FRAME_BYTES && MOST < 3 * SERIES_VALUES);

/// A line of a rank, as [`super::log`] writes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    pub(super) event: String,
    pub(super) text: String,
    pub(super) digest: String,
    pub(super) loss: f64,
    pub(super) step_s: f64,
    pub(super) compute_s: f64,
    pub(super) comm_s: f64,
    pub(super) gpus_s: Vec<f64>,
    pub(super) at_ns: u64,
    pub(super) step: u64,
    pub(super) trouble: String,
    pub(super) peer: usize,
    pub(super) accused: Vec<usize>,
    pub(super) why: String,
}

/// A step of one rank.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taken {
    whole_s: f64,
    compute_s: f64,
    comm_s: f64,
    /// Of each GPU, where GPUs compute.
    gpus_s: Vec<f64>,
    pub(super) loss: f64,
    digest: u64,
    at_ns: u64,
}

impl Taken {
    /// What a line about a step says.
    pub(super) fn of(said: &Said) -> Option<Self> {
        let digest = u64::from_str_radix(&said.digest, 16).ok()?;
        let Said { loss, step_s: whole_s, compute_s, comm_s, at_ns, .. } = *said;
        let gpus_s = said.gpus_s.clone();
        let is_time = |seconds: &f64| seconds.is_finite() && *seconds >= 0.0;
        let sound = [whole_s, compute_s, comm_s].iter().chain(&gpus_s).all(is_time) && gpus_s.len() <= GPUS;
        sound.then_some(Self { whole_s, compute_s, comm_s, gpus_s, loss, digest, at_ns })
    }
}

/// Steps that all ranks of a node ended. Of each, the rank counts that computed longest: the others waited for it.
pub(super) fn together(ranks: &[&[Taken]]) -> Vec<Taken> {
    let count = ranks.iter().map(|steps| steps.len()).min().unwrap_or(0);
    let slowest = |at: usize| {
        let steps = ranks.iter().map(|steps| &steps[at]);
        steps.reduce(|slow, one| if one.compute_s > slow.compute_s { one } else { slow }).cloned()
    };
    (0..count).filter_map(slowest).collect()
}

/// One word for the weights after all of these steps.
pub(super) fn digest(steps: &[Taken]) -> u64 {
    steps.iter().fold(0, |digest, step| hash(&[&digest.to_be_bytes(), &step.digest.to_be_bytes()]))
}

/// The values of a training, in nanoseconds; every so many steps one where there are very many.
pub(super) fn series(steps: &[Taken], engine: &str) -> Vec<Series> {
    let steps = steps.get(WARMUP..).unwrap_or_default();
    let Some(first) = steps.first() else { return Vec::new() };
    let gpus = steps.iter().map(|step| step.gpus_s.len()).min().unwrap_or(0);
    let every = steps.len().div_ceil(MOST / (3 + gpus));
    let one = |name: String, of: &dyn Fn(&Taken) -> f64| Series {
        metric: MetricId::new(TRAIN_DDP, name, engine),
        unit: Unit::Nanos,
        direction: Direction::LowerIsBetter,
        values: steps.iter().step_by(every).map(|step| of(step) * 1e9).collect(),
        warmup: WARMUP as u32,
        started_ns: first.at_ns,
    };
    let mut all = vec![
        one("compute_time".to_owned(), &|step| step.compute_s),
        one("step_time".to_owned(), &|step| step.whole_s),
        one("comm_time".to_owned(), &|step| step.comm_s),
    ];
    all.extend((0..gpus).map(|gpu| one(format!("compute_time:{gpu}"), &|step| step.gpus_s[gpu])));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(compute_s: f64, comm_s: f64, digest: u64) -> Taken {
        Taken { whole_s: compute_s + comm_s, compute_s, comm_s, gpus_s: Vec::new(), loss: 1.0, digest, at_ns: 7 }
    }

    #[test]
    fn of_the_ranks_of_a_node_the_one_counts_that_computed_longest_and_steps_that_not_all_ended_do_not() {
        let (quick, slow) = ([taken(1.0, 3.0, 1), taken(1.0, 3.0, 2)], [taken(3.0, 1.0, 1)]);
        assert_eq!(together(&[&quick, &slow]), [taken(3.0, 1.0, 1)]);
        assert_eq!(together(&[]), []);
    }

    #[test]
    fn every_metric_stands_in_the_catalogue_and_a_long_training_fits_into_a_frame() {
        let steps: Vec<Taken> = (0..30_000).map(|at| taken(f64::from(at), 1.0, 1)).collect();
        let all = series(&steps, "gpt2-nano-1");
        for series in &all {
            let entry = muster_wire::metric(&series.metric.benchmark, &series.metric.name).unwrap();
            assert_eq!((entry.unit, entry.direction), (series.unit, series.direction));
            assert!(series.values.len() <= MOST / 3 && series.values.len() > MOST / 6);
        }
        assert_eq!(all[0].values[..2], [2e9, 6e9]);
        assert_eq!(series(&steps[..2], "x"), []);
        let on_gpus: Vec<Taken> = steps.iter().map(|step| Taken { gpus_s: vec![1.0, 3.0], ..step.clone() }).collect();
        let all = series(&on_gpus, "gpt2-small-2gpu-own");
        assert!(all.iter().map(|series| series.values.len()).sum::<usize>() <= MOST);
        let entry = muster_wire::metric(TRAIN_DDP, &all[4].metric.name).unwrap();
        assert_eq!((all[4].metric.name.as_str(), entry.of), ("compute_time:1", muster_wire::ComponentKind::Gpu));
        assert_eq!(all[4].values[0], 3e9);
    }

    #[test]
    fn one_wrong_step_changes_the_digest_of_the_training() {
        let of = |odd: u64| digest(&[taken(1.0, 1.0, 5), taken(1.0, 1.0, odd), taken(1.0, 1.0, 5)]);
        assert_ne!(of(6), of(7));
    }

    #[test]
    fn a_line_with_absurd_times_is_no_step() {
        let line = |step_s: &str| format!("{{\"event\":\"step\",\"digest\":\"0a\",\"step_s\":{step_s}}}");
        let of = |text: &str| serde_json::from_str::<Said>(&line(text)).ok().and_then(|said| Taken::of(&said));
        assert!(of("0.5").is_some() && of("-1").is_none() && of("1e999").is_none());
    }
}
