//! NVIDIA's management library, as far as health asks it.

mod library;
mod record;

pub use library::{Handle, How, Nvml};
pub use record::{Fabric, Repair, Spares, Sram};
