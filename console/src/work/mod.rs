//! What talks to nodes: carries a plan through and keeps what comes back.

mod again;
mod gather;
mod network;
mod observe;
mod probe;
mod scan;

pub use network::{Fabric, PairEngine};
pub use observe::{Observer, Progress, Update, failure_line};
pub use probe::embedded;
pub use scan::{Scan, scan};
