//! The one place where fleet, store, analysis, playbook and screen meet. Carries values; computes nothing itself.

mod advice;
mod assess;
mod board;
mod cores;
mod digests;
mod focus;
mod gather;
mod health;
pub mod incidents;
mod knowledge;
mod observe;
mod past;
mod picture;
mod places;
mod probe;
mod scan;
mod shape;
mod steps;
mod terms;
mod versions;
mod what_if;

pub use advice::{Advice, Basis, CAP_H, incident_settings, picture, saved};
pub use assess::{Assessment, assess, company, observations};
pub use board::Board;
pub use health::is_work;
pub use knowledge::{Log, Measured};
pub use observe::{Observer, Progress};
pub use past::Reader;
pub use probe::embedded;
pub use scan::{LINK, Scan, now_ms, scan};
pub use shape::report;
pub use steps::{Profiled, keep_steps, kept_steps};
pub use terms::Judging;
pub use versions::{Version, find, freeze, frozen, keep, thaw, versions};
pub use what_if::what_if;
