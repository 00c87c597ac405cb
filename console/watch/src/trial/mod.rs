//! How well does a method name the machines that were faulty? Recordings with the truth beside them, and every method over the same.
//!
//! A method that has to learn is never scored on what it learned from unless a person brings a model, and then that is said. Reads no file and no clock: the caller
//! brings recordings, and the CPU time of its process.
//!
//! | file | settles |
//! |---|---|
//! | `truth` | who was faulty, and when |
//! | `recorded` | a recording with its truth |
//! | `method` | which methods there are, and what each names |
//! | `learn`, `threshold` | what a method learns from labelled recordings |
//! | `model` | how that is kept |
//! | `score`, `interval` | right, wrong, missed and late, and how sure that is |
//! | `evaluate` | all of it, each recording by what was learned from others |

mod evaluate;
mod interval;
mod learn;
mod method;
mod model;
mod recorded;
mod score;
mod threshold;
mod truth;

pub use evaluate::{Around, Each, Outcome, Plan, Teacher, evaluate};
pub use learn::{Settings, learn};
pub use method::{Method, Told};
pub use model::{BadModel, Model, Network, SCHEMA, Source, VERSION};
pub use recorded::{Recorded, Unfit};
pub use score::{Delay, Rate, Share, Summary, Tally};
pub use truth::{BadTruth, Fault, Truth};
