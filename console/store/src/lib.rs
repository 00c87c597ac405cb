//! Keeps every raw sample: append-only log files are the truth, sled is an index that can be thrown away.
//!
//! A record is durable when `append` or `append_many` returns: its frame is behind the others in `runs/<id>.log` and
//! synced. Only then does the index learn of it, so the index may lag and never leads. A crash leaves at most one
//! unfinished write at the end of a file, which the next writer cuts off and tells. A rotten byte costs the frame it
//! is in. Whatever happens to the index, questions are answered from the log files and the index is made anew.
//! `CRASH.md` beside this package says what is durable when, and what is done about each kind of damage.
//!
//! One process writes ([`Db::open`]); any number may look ([`Db::open_read_only`]), also meanwhile. Verdicts are
//! recomputed from the samples; what was made of a run may lie beside its file for readers in a hurry ([`Store::beside`]).

mod beside;
mod catchup;
mod check;
mod contents;
mod db;
mod entry;
mod error;
mod expected;
mod frame;
mod index;
mod keep;
mod ledger;
mod limits;
mod lock;
mod log;
#[cfg(test)]
mod made;
mod model;
mod overview;
mod packed;
mod place;
pub mod portable;
mod quarantine;
mod read;
mod repair;
mod table;
pub mod telemetry;
mod version;

pub use beside::{pack, unpack};
pub use check::{FileReport, Report, check, rebuild};
pub use db::{Db, Opened, Options};
pub use error::StoreError;
pub use frame::Damage;
pub use model::{EntrySeen, Incident, ModelSeen, NodeSeen, Store};
pub use overview::{NodeOverview, Overview, WorkOverview};
pub use table::Table;
