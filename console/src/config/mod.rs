//! Where settings come from: flag, then environment, then file, then default.

mod checked;
mod raw;

pub use checked::{Config, Source, default_file, resolve};
pub use raw::{Deadlines, Raw};
