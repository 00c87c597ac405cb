//! One node: what it is, how it was judged, by which numbers, and what it said.

mod changes;
mod checks;
mod coverage;
mod draw;
mod gpus;
mod keys;
mod more;
mod panes;
mod passport;
mod service;
mod so_far;
mod state;
mod verdicts;

pub(crate) use changes::changes;
pub(crate) use service::head;
pub(crate) use state::{Pane, State};

use crate::screens::View;

/// The screen.
pub(crate) const VIEW: View = View::new(("Node", "one node"), keys::KEYS, draw::draw, keys::act);
