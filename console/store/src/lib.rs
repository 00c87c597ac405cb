//! Keeps every raw sample: append-only log files are the truth, sled is an index that can be thrown away.
//! (Crash story to follow.)

mod catchup;
mod check;
mod db;
mod entry;
mod error;
mod frame;
mod index;
mod keep;
mod limits;
mod lock;
mod log;
mod model;
mod place;
mod repair;
mod version;

pub use check::{FileReport, Report, check, rebuild};
pub use db::{Db, Opened, Options};
pub use error::StoreError;
pub use frame::Damage;
pub use model::{CriterionSeen, NodeSeen, Record, Run, RunState, Store, Summary};
