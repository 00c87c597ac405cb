//! Who was faulty in a recording, and when?

use muster_wire::{clean, limits};
use serde::Deserialize;

/// Name of the format.
const SCHEMA: &str = "muster.watch.truth";
/// The only version there is; a file without one has it.
const VERSION: u32 = 1;
/// Most faults of a recording.
const FAULTS: usize = 10_000;

/// What is known of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    /// What kind of recording it is, for people; empty where nobody said.
    pub kind: String,
    /// Machines that should be named. None: nobody should be.
    pub faults: Vec<Fault>,
}

/// A machine that was faulty.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Its name in the recording.
    pub node: String,
    /// When it began, epoch seconds.
    pub onset_s: f64,
    /// When it was over; infinite where it lasted.
    pub end_s: f64,
    /// Whether it shows in the recorded metrics for long enough to be seen at all.
    pub detectable: bool,
}

/// Why a truth file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTruth {
    /// Not JSON of this shape.
    #[error("no truth file: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Another format.
    #[error("it is \"{schema}\" version {version}; {SCHEMA:?} version {VERSION} is read")]
    Version {
        /// Format found.
        schema: String,
        /// Version found.
        version: u32,
    },
    /// More faults than anybody wrote down.
    #[error("it names {0} faults; at most {FAULTS} are read")]
    TooMany(usize),
    /// A fault that lasts no time, or whose times are none.
    #[error("the fault of {0} does not end after its onset, or a time of it is no number")]
    Times(String),
    /// A machine that the recording does not have.
    #[error("the faulty node {0} is not in the recording")]
    Nobody(String),
    /// A fault at another time than the recording.
    #[error("the fault of {0} lies outside the recording (from {1:.0} to {2:.0} s)")]
    Elsewhere(String, f64, f64),
}

#[derive(Deserialize)]
struct File {
    schema: String,
    #[serde(default = "version")]
    version: u32,
    #[serde(default)]
    kind: String,
    faulty: Vec<Faulty>,
}

#[derive(Deserialize)]
struct Faulty {
    node: String,
    onset_s: f64,
    #[serde(default)]
    end_s: Option<f64>,
    #[serde(default = "yes")]
    detectable: bool,
}

const fn version() -> u32 {
    VERSION
}

const fn yes() -> bool {
    true
}

impl Truth {
    /// The truth of a file's text. Fields that are not known are passed over.
    ///
    /// # Errors
    /// See [`BadTruth`].
    pub fn from_json(text: &[u8]) -> Result<Self, BadTruth> {
        let File { schema, version, kind, faulty } = serde_json::from_slice(text)?;
        if schema != SCHEMA || version != VERSION {
            return Err(BadTruth::Version { schema: clean(&schema, limits::NAME_BYTES), version });
        }
        if faulty.len() > FAULTS {
            return Err(BadTruth::TooMany(faulty.len()));
        }
        let fault = |one: Faulty| {
            let (node, end_s) = (clean(&one.node, limits::NAME_BYTES), one.end_s.unwrap_or(f64::INFINITY));
            if !one.onset_s.is_finite() || end_s <= one.onset_s {
                return Err(BadTruth::Times(node));
            }
            Ok(Fault { node, onset_s: one.onset_s, end_s, detectable: one.detectable })
        };
        let faults = faulty.into_iter().map(fault).collect::<Result<_, _>>()?;
        Ok(Self { kind: clean(&kind, limits::NAME_BYTES), faults })
    }

    /// Whether it can be the truth of a recording of these nodes and that span, epoch seconds.
    ///
    /// # Errors
    /// With the first fault that cannot.
    pub fn fits(&self, nodes: &[String], (from_s, to_s): (f64, f64)) -> Result<(), BadTruth> {
        for fault in &self.faults {
            if !nodes.contains(&fault.node) {
                return Err(BadTruth::Nobody(fault.node.clone()));
            }
            if fault.onset_s > to_s || fault.end_s < from_s {
                return Err(BadTruth::Elsewhere(fault.node.clone(), from_s, to_s));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        Truth::from_json(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_truth_file_names_faults_with_their_times_and_what_it_leaves_out_has_a_meaning() {
        let text = r#"{"schema":"muster.watch.truth","kind":"ecc","seed":3,"faulty":[{"node":"a","onset_s":5,"x":1},{"node":"b","onset_s":1,"end_s":2,"detectable":false}]}"#;
        let truth = Truth::from_json(text.as_bytes()).unwrap();
        assert_eq!((truth.kind.as_str(), truth.faults.len()), ("ecc", 2));
        assert!(truth.faults[0].detectable && truth.faults[0].end_s.is_infinite() && !truth.faults[1].detectable);
    }

    #[test]
    fn a_bad_truth_says_why() {
        assert!(why("{}").starts_with("no truth file: missing field"));
        assert!(why(r#"{"schema":"muster.watch","faulty":[]}"#).starts_with("it is \"muster.watch\" version 1"));
        assert!(why(r#"{"schema":"muster.watch.truth","version":2,"faulty":[]}"#).contains("version 2"));
        let text = r#"{"schema":"muster.watch.truth","faulty":[{"node":"a","onset_s":5,"end_s":5}]}"#;
        assert_eq!(why(text), "the fault of a does not end after its onset, or a time of it is no number");
        let truth = Truth::from_json(text.replace(":5}", ":9}").as_bytes()).unwrap();
        let fits = |node: &str, from_s: f64| truth.fits(&[node.to_owned()], (from_s, from_s + 10.0));
        assert!(fits("a", 0.0).is_ok());
        assert_eq!(fits("b", 0.0).unwrap_err().to_string(), "the faulty node a is not in the recording");
        assert!(fits("a", 100.0).unwrap_err().to_string().contains("outside the recording (from 100 to 110 s)"));
        // From 5 to 9 s: a recording of ten seconds that ends or begins with the fault has a part in it.
        for (from_s, within) in [(-5.0, true), (-5.5, false), (9.0, true), (9.5, false)] {
            assert_eq!(fits("a", from_s).is_ok(), within, "{from_s}");
        }
    }

    #[test]
    fn as_many_faults_are_read_as_anybody_writes_down_and_each_lasts_for_some_time() {
        let one = |onset: &str, end: &str| format!(r#"{{"node":"a","onset_s":{onset},"end_s":{end}}}"#);
        let of = |faults: &[String]| {
            let text = format!(r#"{{"schema":"muster.watch.truth","faulty":[{}]}}"#, faults.join(","));
            Truth::from_json(text.as_bytes()).map(|truth| truth.faults.len()).map_err(|e| e.to_string())
        };
        assert_eq!(of(&vec![one("1", "2"); 10_000]), Ok(10_000));
        assert_eq!(of(&vec![one("1", "2"); 10_001]), Err("it names 10001 faults; at most 10000 are read".to_owned()));
        assert!(
            of(&[one("5", "5.1")]).is_ok() && of(&[one("5", "4")]).is_err() && of(&[one("1e999", "null")]).is_err()
        );
        assert_eq!(of(&[one("5", "null")]), Ok(1), "it lasted");
    }
}
