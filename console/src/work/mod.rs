//! What talks to nodes: carries a plan through and keeps what comes back.

pub mod again;
mod eta;
pub mod followed;
mod gather;
mod network;
mod observe;
mod probe;
mod scan;

pub use eta::{Course, Durations};
pub use followed::plan as plan_of;
pub use network::{Fabric, PairEngine};
pub use observe::{Observer, Progress, Update, failure_line};
pub use probe::embedded;
pub use scan::{Scan, scan};
