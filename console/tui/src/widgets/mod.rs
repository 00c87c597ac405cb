//! Pieces that several screens draw with.

mod cursor;
mod paint;
mod panel;
mod plot;
mod spark;

pub(crate) use cursor::Cursor;
pub(crate) use paint::{block, put, put_right, put_spans};
pub(crate) use panel::{Panel, framed_panel, instead, panel};
pub(crate) use plot::{Line, Plot};
pub(crate) use spark::spark;
