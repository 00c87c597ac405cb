//! What is known of one node, as checks read it: a value, or why there is none.

use std::collections::BTreeMap;

use muster_wire::{Datum, Fact, Outcome, Reading};

use super::Found;

/// What is said of a collector that was not asked, behind its name.
pub const NOT_LOOKED: &str = "collector did not run";

/// What the collectors saw on one node. What the console knows itself (labels, the clock's offset) is a collector too.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts<'a> {
    /// Node name.
    pub node: &'a str,
    /// Nodes of the same group are compared with one another.
    pub group: &'a str,
    /// Labels of the inventory.
    pub labels: BTreeMap<&'a str, &'a str>,
    looks: BTreeMap<&'a str, Look<'a>>,
    /// What benchmarks saw meanwhile, each time they ran.
    meanwhile: Vec<(&'a str, Look<'a>)>,
}

/// What one collector saw.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    outcome: &'a Outcome,
    facts: BTreeMap<&'a str, &'a Reading<Datum>>,
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The source does not exist on this node.
    Absent(String),
    /// It exists and could not be read.
    Unreadable(String),
    /// This login may not see it, which is no fault of the node.
    Denied(String),
    /// Nobody looked.
    NotLooked(String),
}

impl From<Gap> for Found {
    fn from(gap: Gap) -> Self {
        match gap {
            Gap::Absent(why) => Self::not_applicable(why),
            Gap::Unreadable(why) => Self::unknown(why),
            Gap::Denied(why) => Self { denied: true, ..Self::unknown(why) },
            Gap::NotLooked(why) => Self { state: crate::State::NotRun, ..Self::unknown(why) },
        }
    }
}

impl<'a> NodeFacts<'a> {
    /// A node of which nothing is known yet.
    #[must_use]
    pub fn new(node: &'a str, group: &'a str) -> Self {
        Self { node, group, ..Self::default() }
    }

    /// Adds what `collector` saw; a later look replaces an earlier one.
    pub fn add(&mut self, collector: &'a str, outcome: &'a Outcome, facts: &'a [Fact]) {
        let facts = facts.iter().map(|fact| (fact.key.as_str(), &fact.reading)).collect();
        self.looks.insert(collector, Look { outcome, facts });
    }

    /// Adds what was seen while `benchmark` ran, however it ended. A later run of it takes nothing back: an Xid stays one.
    pub fn add_meanwhile(&mut self, benchmark: &'a str, facts: &'a [Fact]) {
        let facts = facts.iter().map(|fact| (fact.key.as_str(), &fact.reading)).collect();
        self.meanwhile.push((benchmark, Look { outcome: &Outcome::Done, facts }));
    }

    /// Whether `collector` came to its end, as it does when there is nothing to see.
    ///
    /// # Errors
    /// Why it did not.
    pub fn looked(&self, collector: &str) -> Result<&Look<'a>, Gap> {
        let Some(look) = self.looks.get(collector) else {
            return Err(Gap::NotLooked(format!("the {collector} {NOT_LOOKED}")));
        };
        match look.outcome {
            Outcome::Done | Outcome::NotApplicable(_) | Outcome::Denied(_) => Ok(look),
            Outcome::NotRun(why) => Err(Gap::NotLooked(format!("the {collector} {NOT_LOOKED}: {why}"))),
            Outcome::Failed(why) => Err(Gap::Unreadable(format!("the {collector} collector failed: {why}"))),
        }
    }

    /// The fact `key` of `collector`.
    ///
    /// # Errors
    /// Why it has no value.
    pub fn datum(&self, collector: &str, key: &str) -> Result<&'a Datum, Gap> {
        match self.looked(collector)?.facts.get(key) {
            None | Some(Reading::Absent) => Err(Gap::Absent(format!("there is no {key} here"))),
            Some(Reading::Denied) => Err(Gap::Denied(format!("{key} may not be read by this login"))),
            Some(Reading::Failed(why)) => Err(Gap::Unreadable(format!("{key} cannot be read: {why}"))),
            Some(Reading::Value(datum)) => Ok(datum),
        }
    }

    /// The same, a number.
    ///
    /// # Errors
    /// Why it has no value.
    pub fn number(&self, collector: &str, key: &str) -> Result<f64, Gap> {
        match self.datum(collector, key)? {
            Datum::Number(number) if number.is_finite() => Ok(*number),
            other => Err(Gap::Unreadable(format!("{key} is no number: {}", shown(other)))),
        }
    }

    /// The same, a text.
    ///
    /// # Errors
    /// Why it has no value.
    pub fn text(&self, collector: &str, key: &str) -> Result<&'a str, Gap> {
        match self.datum(collector, key)? {
            Datum::Text(text) => Ok(text),
            other => Err(Gap::Unreadable(format!("{key} is no text: {}", shown(other)))),
        }
    }

    /// The same, yes or no.
    ///
    /// # Errors
    /// Why it has no value.
    pub fn flag(&self, collector: &str, key: &str) -> Result<bool, Gap> {
        match self.datum(collector, key)? {
            Datum::Flag(flag) => Ok(*flag),
            other => Err(Gap::Unreadable(format!("{key} is neither yes nor no: {}", shown(other)))),
        }
    }

    /// Texts of whoever told them whose keys begin and end so: who, what stands between, and the text.
    pub fn texts(&self, prefix: &'a str, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        let looks = self.looks.iter().map(|(who, look)| (*who, look));
        looks.chain(self.meanwhile.iter().map(|(who, look)| (*who, look))).flat_map(move |(who, look)| {
            look.facts.iter().filter_map(move |(key, reading)| match reading {
                Reading::Value(Datum::Text(text)) => {
                    Some((who, key.strip_prefix(prefix)?.strip_suffix(suffix)?, text.as_str()))
                }
                _ => None,
            })
        })
    }

    /// What stands between `prefix` and `suffix` in the keys of `collector`: the interfaces, for `("", ".mtu")`.
    #[must_use]
    pub fn instances(&self, collector: &str, prefix: &str, suffix: &str) -> Vec<&'a str> {
        let Some(look) = self.looks.get(collector) else { return Vec::new() };
        let middle = |key: &&'a str| key.strip_prefix(prefix)?.strip_suffix(suffix);
        look.facts.keys().filter_map(middle).filter(|middle| !middle.is_empty()).collect()
    }
}

/// A value for a sentence.
pub(super) fn shown(datum: &Datum) -> String {
    match datum {
        Datum::Number(number) => format!("{number}"),
        Datum::Text(text) if text.chars().count() > 60 => format!("{}…", text.chars().take(60).collect::<String>()),
        Datum::Text(text) => text.clone(),
        Datum::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
    }
}
