//! A list of facts as a collector writes it down.

use muster_wire::limits::{FACTS, NAME_BYTES};
use muster_wire::{Datum, Fact, Reading, Unit, clean};

use super::Then;

/// Longest text of a fact, bytes.
const TEXT: usize = 512;

/// Facts in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Facts(Vec<Fact>);

impl Facts {
    /// Adds a text.
    pub(crate) fn text(&mut self, key: &str, reading: Reading<impl Into<String>>) {
        self.add(key, reading.map(|text| Datum::Text(clean(text.into().trim(), TEXT))), None);
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, key: &str, reading: Reading<f64>, unit: Option<Unit>) {
        self.add(key, reading.map(Datum::Number), unit);
    }

    /// Adds a plain number.
    pub(crate) fn count(&mut self, key: &str, reading: Reading<f64>) {
        self.number(key, reading, Some(Unit::Count));
    }

    /// Adds a yes or no.
    pub(crate) fn flag(&mut self, key: &str, reading: Reading<bool>) {
        self.add(key, reading.map(Datum::Flag), None);
    }

    /// Adds facts made elsewhere.
    pub(crate) fn extend(&mut self, facts: Vec<Fact>) {
        self.0.extend(facts);
        self.0.truncate(FACTS);
    }

    /// The list.
    pub(crate) fn done(self) -> Vec<Fact> {
        self.0
    }

    fn add(&mut self, key: &str, reading: Reading<Datum>, unit: Option<Unit>) {
        let reading = match reading {
            Reading::Failed(why) => Reading::Failed(clean(&why, TEXT)),
            other => other,
        };
        if self.0.len() < FACTS {
            self.0.push(Fact { key: clean(key, NAME_BYTES), reading, unit });
        }
    }
}
