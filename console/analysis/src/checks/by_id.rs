//! A check as bytes: its id, which must be one of this program's.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Check, check};

pub(crate) fn serialize<S: Serializer>(of: &&'static Check, to: S) -> Result<S::Ok, S::Error> {
    of.id.serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<&'static Check, D::Error> {
    let id = String::deserialize(from)?;
    check(&id).ok_or_else(|| D::Error::custom(format!("no check is called {id:?}")))
}
