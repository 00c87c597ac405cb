//! NVIDIA's management library, as far as health asks it.

mod gpm;
mod library;
mod record;

pub use gpm::Sample;
pub use library::{Handle, How, Nvml};
pub use record::{Fabric, Memory, Repair, Spares, Sram};
