//! How is what was learned kept? As JSON with a schema, a version and a checksum: a file is read whole and right, or refused.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::method::Method;
use super::recorded::fnv;
use crate::METRICS;
use crate::minder::{Priority, Vae, WIDTH};

/// Name of the format.
pub const SCHEMA: &str = "muster.watch-model";
/// Version written, and the only one read so far.
pub const VERSION: u32 = 1;
/// Longest time between two calls, and that a call looks back: a day.
const LONGEST_S: usize = 86_400;

/// What was learned from labelled recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Seconds from one call to the next.
    pub every_s: usize,
    /// Seconds that a call looks back.
    pub back_s: usize,
    /// Whether values far outside the quartiles are cut before a metric is scaled.
    pub clip: bool,
    /// All metrics, the first to be looked at first.
    pub order: Vec<Priority>,
    /// The network of each metric.
    pub networks: BTreeMap<String, Network>,
    /// Score from which a machine is a candidate, by method.
    pub thresholds: BTreeMap<String, f64>,
    /// What it was learned from.
    pub trained_on: Vec<Source>,
}

/// The network of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Its weights.
    pub weights: Vae,
    /// Mean squared error on what it learned from, of values between 0 and 1.
    pub error: f64,
}

/// A recording that something was learned from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What people call it.
    pub name: String,
    /// See [`super::Recorded::fingerprint`].
    pub fingerprint: u64,
}

/// Why a stored model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadModel {
    /// Not JSON of this shape.
    #[error("no model of `muster watch learn`: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Another format.
    #[error("it is \"{schema}\" version {version}; {SCHEMA:?} version {VERSION} is read")]
    Version {
        /// Format found.
        schema: String,
        /// Version found.
        version: u32,
    },
    /// Networks of other windows.
    #[error("its networks take windows of {0} s; {WIDTH} s are read")]
    Width(usize),
    /// It was changed, or is damaged.
    #[error("its checksum is {0}, and its content has {1}: the file is damaged or was changed")]
    Checksum(String, String),
    /// A number or a name in it is none.
    #[error("{0}")]
    Absurd(&'static str),
}

#[derive(Deserialize)]
struct Head {
    schema: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct File {
    schema: String,
    version: u32,
    checksum: String,
    /// Seconds of the windows that the networks take.
    window_s: usize,
    model: Model,
}

impl Model {
    /// Text of the model.
    ///
    /// # Errors
    /// When a number in it is not finite.
    pub fn to_json(&self) -> serde_json::Result<String> {
        let checksum = checksum(self)?;
        let file = File { schema: SCHEMA.into(), version: VERSION, checksum, window_s: WIDTH, model: self.clone() };
        serde_json::to_string(&file)
    }

    /// Model of a text.
    ///
    /// # Errors
    /// See [`BadModel`].
    pub fn from_json(text: &str) -> Result<Self, BadModel> {
        let Head { schema, version } = serde_json::from_str(text)?;
        if schema != SCHEMA || version != VERSION {
            return Err(BadModel::Version { schema: muster_wire::clean(&schema, 60), version });
        }
        let File { checksum: told, window_s, model, .. } = serde_json::from_str(text)?;
        if window_s != WIDTH {
            return Err(BadModel::Width(window_s));
        }
        let found = checksum(&model)?;
        if told != found {
            return Err(BadModel::Checksum(muster_wire::clean(&told, 60), found));
        }
        model.is_sane()?;
        Ok(model)
    }

    fn is_sane(&self) -> Result<(), BadModel> {
        let names: BTreeSet<&str> = self.order.iter().map(|one| one.metric.as_str()).collect();
        let spans = [self.every_s, self.back_s].iter().all(|span| (WIDTH..=LONGEST_S).contains(span));
        let thresholds =
            self.thresholds.iter().all(|(name, threshold)| Method::named(name).is_some() && threshold.is_finite());
        let is_clean = |name: &&str| muster_wire::clean(name, muster_wire::limits::NAME_BYTES) == **name;
        match () {
            () if !names.iter().all(is_clean) => {
                Err(BadModel::Absurd("the name of a metric is too long or has control characters"))
            }
            () if !spans => Err(BadModel::Absurd("its calls are less than 8 s or more than a day apart or long")),
            () if names.len() != self.order.len() || names.len() > METRICS => {
                Err(BadModel::Absurd("a metric stands twice in its order, or there are more than 1,024"))
            }
            () if !self.networks.keys().all(|name| names.contains(name.as_str())) => {
                Err(BadModel::Absurd("it has a network of a metric that is not in its order"))
            }
            () if !thresholds => Err(BadModel::Absurd("a threshold is of no known method, or no number")),
            () => Ok(()),
        }
    }
}

/// Of the model's own text, which is the same for the same numbers.
fn checksum(model: &Model) -> serde_json::Result<String> {
    Ok(format!("{:016x}", fnv([serde_json::to_string(model)?])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_analysis::Chance;

    fn model() -> Model {
        let network = Network { weights: Vae::new(&mut Chance::new(3)), error: 1e-3 };
        Model {
            every_s: 480,
            back_s: 900,
            clip: false,
            order: vec![Priority { metric: "gpu_power_w".into(), depth: Some(0), gain: 0.25 }],
            networks: BTreeMap::from([("gpu_power_w".to_owned(), network)]),
            thresholds: BTreeMap::from([("minder".to_owned(), 0.3)]),
            trained_on: vec![Source { name: "a".into(), fingerprint: u64::MAX }],
        }
    }

    #[test]
    fn a_model_comes_back_bit_for_bit_and_others_are_refused() {
        let text = model().to_json().unwrap();
        assert_eq!(Model::from_json(&text).unwrap(), model());
        let why = |text: &str| Model::from_json(text).unwrap_err().to_string();
        assert!(why("garbage").starts_with("no model of `muster watch learn`"));
        assert!(why("{}").starts_with("no model of `muster watch learn`"));
        assert!(
            why(&text.replace("\"version\":1", "\"version\":2"))
                .contains("version 2; \"muster.watch-model\" version 1")
        );
        assert!(why(&text.replace("\"window_s\":8", "\"window_s\":9")).contains("windows of 9 s"));
        assert!(why(&text.replace("0.25", "0.75")).contains("the file is damaged or was changed"));
        assert!(why(&text[..text.len() / 2]).starts_with("no model"));
    }

    #[test]
    fn what_no_learning_gives_is_refused_though_its_checksum_is_right() {
        let refused = |change: &dyn Fn(&mut Model)| {
            let mut model = model();
            change(&mut model);
            Model::from_json(&model.to_json().unwrap()).unwrap_err().to_string()
        };
        assert!(refused(&|model| model.every_s = 0).contains("calls"));
        assert!(refused(&|model| model.order.push(model.order[0].clone())).contains("twice"));
        assert!(refused(&|model| model.order.clear()).contains("not in its order"));
        assert!(refused(&|model| model.thresholds.extend([("none".to_owned(), 1.0)])).contains("no known method"));
    }

    #[test]
    fn what_learning_gives_is_taken_up_to_its_bounds() {
        let taken = |change: &dyn Fn(&mut Model)| {
            let mut model = model();
            change(&mut model);
            Model::from_json(&model.to_json().unwrap()).is_ok()
        };
        let named = |model: &mut Model, names: Vec<String>| {
            let one = |metric| Priority { metric, depth: None, gain: 0.0 };
            model.order.extend(names.into_iter().map(one));
        };
        for (seconds, good) in [(7, false), (8, true), (86_400, true), (86_401, false)] {
            assert_eq!(taken(&|model| model.every_s = seconds), good, "every {seconds} s");
            assert_eq!(taken(&|model| model.back_s = seconds), good, "back {seconds} s");
        }
        let many = |count: usize| (0..count).map(|nr| format!("m{nr}")).collect::<Vec<_>>();
        assert!(taken(&|model| named(model, many(METRICS - 1))) && !taken(&|model| named(model, many(METRICS))));
        for (name, good) in [("n".repeat(96), true), ("n".repeat(97), false), ("a\u{1b}b".to_owned(), false)] {
            assert_eq!(taken(&|model| named(model, vec![name.clone()])), good, "{name:?}");
        }
        for method in Method::ALL {
            assert!(taken(&|model| {
                model.thresholds.insert(method.name().to_owned(), -1.0);
            }));
        }
        let why = |text: &str| Model::from_json(text).unwrap_err().to_string();
        assert!(
            why(&model().to_json().unwrap().replace(SCHEMA, "muster.watch"))
                .starts_with("it is \"muster.watch\" version 1")
        );
    }
}
