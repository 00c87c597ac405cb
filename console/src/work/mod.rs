//! Everything that talks to nodes: carries out a plan, and stores the results as they arrive; and reads what they left behind.

pub mod again;
pub mod bundle;
mod clock;
mod eta;
mod excess;
pub mod feed;
pub mod followed;
mod gather;
mod held;
pub mod job;
mod link;
pub mod lookout;
mod network;
mod observe;
mod order;
mod outage;
mod peers;
pub mod playhead;
mod probe;
mod rounds;
mod scan;
mod seen;
mod spill;
pub mod tape;
pub mod ticks;
mod under_way;

pub use eta::{Course, Durations};
pub use followed::{as_one_step, plan as plan_of};
pub use network::{Fabric, PairEngine};
pub use observe::{Observer, Progress, Update, failure_line};
pub use order::Scan;
pub use probe::{embedded, embedded_bytes};
pub use scan::{scan, scan_judged};
