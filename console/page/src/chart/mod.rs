//! How curves, heat maps, courses and events are drawn: as SVG whose colours the style sheet replaces in the dark and on paper.

mod canvas;
mod course;
mod curves;
mod events;
mod heat;
mod values;

pub use course::{Course, Moment};
pub use curves::{Curve, Curves};
pub use events::{Events, Mark};
pub use heat::Heat;
pub use values::{Values, ValuesOf};
