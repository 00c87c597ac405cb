//! The one place where fleet, store, analysis, playbook and screen meet. Carries values; computes nothing itself.

mod assess;
mod board;
mod cores;
mod focus;
mod gather;
mod network;
mod observe;
mod pairs;
mod past;
mod picture;
mod places;
mod probe;
mod scan;
mod shape;
mod shelf;
mod terms;
mod versions;
mod what_if;

pub use assess::{Assessment, assess, company, observations};
pub use board::Board;
pub use network::{Fabric, is_pair, judge_pairs, network, visits};
pub use observe::{Observer, Progress};
pub use pairs::Pairs;
pub use past::Reader;
pub use probe::embedded;
pub use scan::{LINK, Scan, now_ms, scan};
pub use shape::report;
pub use shelf::shelf;
pub use terms::Judging;
pub use versions::{Version, find, freeze, frozen, keep, thaw, versions};
pub use what_if::what_if;
