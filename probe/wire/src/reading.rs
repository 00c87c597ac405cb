//! What a look at a source gave: a value, or why there is none. Zero is a value, never a stand-in.

use serde::{Deserialize, Serialize};

/// Result of one look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading<T> {
    /// The source answered.
    Value(T),
    /// The source does not exist on this node.
    #[default]
    Absent,
    /// The source exists and we may not read it.
    Denied,
    /// The source exists and did not answer in a way we understand; the reason is for a person.
    Failed(String),
}

impl<T> Reading<T> {
    /// The value, if there is one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }
}

/// One fact's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Datum {
    /// A measured or counted number; its unit stands in the fact.
    Number(f64),
    /// Text, cleaned of control characters by the console.
    Text(String),
    /// Yes or no.
    Flag(bool),
}
