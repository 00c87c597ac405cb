//! What would a month with each validation policy look like? The event-driven cluster simulation of SuperBench
//! (ATC'24, section 5.4), with the paper's open ends chosen as its Table 4 implies them.

mod cluster;
mod events;
mod fitted;
mod jobs;
mod law;
mod policy;
mod report;
mod settings;

pub use fitted::World;
pub use jobs::{Job, JobLaw, Jobs, TooLarge, philly_jobs};
pub use law::{CountLaw, Law, Replay};
pub use policy::{Policy, ValidationPlan};
pub use report::{Gain, Interval, Outcome, PolicySummary, compare, gains, run};
pub use settings::{Repair, Settings};
