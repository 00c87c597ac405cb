//! `muster pairs`: what pairs of nodes point at, measured now, before, or by others.

mod files;
mod options;
mod picture;
mod run;
mod show;

pub(super) use files::topology;
pub use options::Options;
pub use run::run;
