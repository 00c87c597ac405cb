//! Boxes over the screen: help, palette, filter, confirm. A stack of one enum; the topmost gets the keys.

mod confirm;
mod draw;
mod export;
mod filter;
mod help;
mod input;
mod palette;
mod swap;

pub(crate) use confirm::{Confirm, key as confirm_key};
pub(crate) use draw::draw;
pub(crate) use export::{ExportBox, key as export_key};
pub(crate) use filter::{FilterBox, key as filter_key};
pub(crate) use help::{HelpBox, key as help_key};
pub(crate) use input::Input;
pub(crate) use palette::{Command, Palette, entries, key as palette_key};
pub(crate) use swap::ask as ask_swap;

/// A box.
#[derive(Debug)]
pub(crate) enum Popup {
    Help(HelpBox),
    Palette(Palette),
    Filter(FilterBox),
    Confirm(Confirm),
    Export(ExportBox),
}
