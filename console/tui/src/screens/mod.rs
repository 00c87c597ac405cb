//! Which screens there are. Adding one is a folder and a line in each list here.

pub(crate) mod bench;
pub(crate) mod criteria;
pub(crate) mod fleet;
pub(crate) mod log;
pub(crate) mod network;
pub(crate) mod node;
pub(crate) mod playbooks;
pub(crate) mod runs;
mod screen;
pub(crate) mod selector;

pub use screen::Screen;
