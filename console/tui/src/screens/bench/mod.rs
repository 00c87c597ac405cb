//! One metric over the fleet: what is normal, how sure is that, and who is not normal?

mod chart;
mod draw;
mod keys;
mod scores;
mod state;
mod what_if;

pub(crate) use keys::open_metric;
pub(crate) use state::{Pane, State};

use crate::screens::{View, criteria};

/// The screen.
pub(crate) const VIEW: View = View {
    short: "Bench",
    settle: state::settle,
    // What-if tries their versions.
    ask: criteria::ask,
    ..View::new(("Benchmarks", "one metric over the fleet"), keys::KEYS, draw::draw, keys::act)
};
