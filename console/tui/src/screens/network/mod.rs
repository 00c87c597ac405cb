//! The pairs of the fleet: which cells of the matrix are bad, and which element do they point to?

mod draw;
mod keys;
mod layout;
mod map;
mod pair;
mod state;
mod suspects;
mod tiers;
mod view;

pub(crate) use state::State;

use crate::screens::View;
use crate::snapshot::Network;
use crate::text::Common;

/// The screen.
pub(crate) const VIEW: View = View {
    short: "Net",
    settle: state::settle,
    ask: keys::ask,
    ready: |snapshot| snapshot.network.data.is_some(),
    ..View::new(("Network", "the pairs of the fleet, and what they point at"), keys::KEYS, draw::draw, keys::act)
};

/// What the names of all endpoints share. Linear in their length.
fn names(network: &Network) -> Common {
    Common::of(network.endpoints.iter().map(|end| end.name.as_str()))
}
