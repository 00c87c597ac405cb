//! What series does an answer have, one after the other?

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader};

use muster_wire::{clean, limits};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::names;
use super::words::Words;
use crate::Bad;

/// Most samples of a series; Prometheus answers with at most 11,000.
const SAMPLES: usize = 4 << 20;
/// Bytes of a reason that are repeated.
const REASON: usize = 200;
/// Bytes of a label's value that are kept: more than a name has, so that a longer one is not taken for another.
const VALUE: usize = 4 * limits::NAME_BYTES;

/// A series, with those of its labels that are read.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Empty where it has none.
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    /// Seconds and value; NaN for what is no number.
    pub(super) values: Vec<(f64, f64)>,
}

/// Whether a JSON file that begins so is an answer of Prometheus, or promtool's list of series.
pub(in crate::telemetry) fn is_answer(start: &[u8]) -> bool {
    let has = |word: &str| start.windows(word.len()).any(|window| window == word.as_bytes());
    has("\"resultType\"")
        || has("\"errorType\"")
        || has("\"data\"") && has("\"result")
        || has("\"metric\"") && has("\"value")
}

/// Gives all series of all answers in `input` to `each`.
pub(super) fn read(input: impl BufRead, each: &mut dyn FnMut(Series) -> Result<(), Bad>) -> Result<(), Bad> {
    let mut state = State { each, failed: None };
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, Words::of(input)));
    loop {
        if let Err(why) = Answer(&mut state).deserialize(&mut json) {
            return Err(state
                .failed
                .unwrap_or_else(|| Bad::Format { line: why.line().max(1), why: clean(&why.to_string(), REASON) }));
        }
        if json.end().is_ok() {
            return Ok(());
        }
    }
}

struct State<'a> {
    each: &'a mut dyn FnMut(Series) -> Result<(), Bad>,
    /// Why reading ended, where it was not the JSON.
    failed: Option<Bad>,
}

impl State<'_> {
    fn fail<E: de::Error>(&mut self, why: Bad) -> E {
        self.failed = Some(why);
        E::custom("ended")
    }
}

/// An answer, its `data`, or a bare list of series.
struct Answer<'a, 'b>(&'a mut State<'b>);

impl<'de> DeserializeSeed<'de> for Answer<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Answer<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer of Prometheus' query_range")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "data" => map.next_value_seed(Answer(self.0))?,
                "result" => map.next_value_seed(List(self.0))?,
                "error" => {
                    let said = clean(&map.next_value::<String>()?, REASON);
                    return Err(self.0.fail(Bad::file(format!("Prometheus said: {said}"))));
                }
                "resultType" => {
                    let kind = map.next_value::<String>()?;
                    if kind != "matrix" {
                        let kind = clean(&kind, 20);
                        let why =
                            format!("it answers a query of one moment (resultType {kind}); query_range is needed");
                        return Err(self.0.fail(Bad::file(why)));
                    }
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        List(self.0).visit_seq(seq)
    }
}

/// The series of a result.
struct List<'a, 'b>(&'a mut State<'b>);

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of series")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(One(series)) = seq.next_element::<One>()? {
            (self.0.each)(series).map_err(|why| self.0.fail(why))?;
        }
        Ok(())
    }
}

struct One(Series);

impl<'de> Deserialize<'de> for One {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = One;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a series with its metric and values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<One, A::Error> {
                let mut series = Series::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "metric" => (series.name, series.labels) = map.next_value::<Labels>()?.0,
                        "values" => series.values = map.next_value::<Samples>()?.0,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(One(series))
            }
        }
        from.deserialize_map(Fields)
    }
}

struct Labels((String, BTreeMap<String, String>));

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Labels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the labels of a series")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let (mut name, mut labels) = (String::new(), BTreeMap::new());
                while let Some(label) = map.next_key::<String>()? {
                    if label == "__name__" {
                        name = clean(&map.next_value::<String>()?, VALUE);
                    } else if names::is_read(&label) {
                        labels.insert(label, clean(&map.next_value::<String>()?, VALUE));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Labels((name, labels)))
            }
        }
        from.deserialize_map(Map)
    }
}

struct Samples(Vec<(f64, f64)>);

impl<'de> Deserialize<'de> for Samples {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Samples;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("pairs of a time and a value")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Samples, A::Error> {
                let mut samples = Vec::new();
                while let Some((Number(time_s), Number(value))) = seq.next_element()? {
                    if samples.len() >= SAMPLES {
                        return Err(de::Error::custom(format!("more than {SAMPLES} samples in a series")));
                    }
                    samples.push((time_s, value));
                }
                Ok(Samples(samples))
            }
        }
        from.deserialize_seq(Pairs)
    }
}

/// A number, also as a string; NaN for a string that is none, and for null.
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
                Ok(Number(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }

            fn visit_str<E>(self, text: &str) -> Result<Number, E> {
                Ok(Number(text.parse().unwrap_or(f64::NAN)))
            }

            fn visit_unit<E>(self) -> Result<Number, E> {
                Ok(Number(f64::NAN))
            }
        }
        from.deserialize_any(Any)
    }
}
