//! Every node, one row each: who is not with its peers?

mod columns;
mod detail;
mod draw;
mod keys;
pub(crate) mod map;
mod state;

pub(crate) use draw::filter;
pub(crate) use keys::{find, follow, seek};
pub(crate) use state::State;

use crate::screens::View;

/// The screen.
pub(crate) const VIEW: View = View {
    click: keys::click,
    settle: state::settle,
    message: detail::reason,
    ..View::new(("Fleet", "every node"), keys::KEYS, draw::draw, keys::act)
};
