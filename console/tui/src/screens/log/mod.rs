//! What happened, in the console's own words and the nodes'.

mod draw;
mod keys;
mod state;

pub(crate) use state::State;

use crate::screens::View;

/// The screen.
pub(crate) const VIEW: View = View::new(("Log", "what happened"), keys::KEYS, draw::draw, keys::act);
