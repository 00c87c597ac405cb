//! What the console shows and what its keys mean: draws immutable snapshots, returns intents.
//!
//! Uses no network, database or async runtime. [`update`] and [`draw`] are pure; [`run`] is the one place that touches
//! the terminal. ratatui is used in this package and nowhere else.

mod clipboard;
mod draw;
mod event;
mod filter;
mod freeze;
mod intent;
pub mod judgement;
mod keymap;
mod popups;
mod run;
mod screens;
pub mod snapshot;
pub mod stale;
mod text;
mod theme;
mod ui;
mod update;
pub mod usual;
mod widgets;

pub use draw::draw;
pub use event::{Event, Mouse};
pub use intent::{Export, Format, Hand, Intent, Play};
pub use run::{Input, Options, Source, rehearse, run};
pub use screens::Screen;
pub use snapshot::Snapshot;
pub use theme::Theme;
pub use ui::Ui;
pub use update::update;
