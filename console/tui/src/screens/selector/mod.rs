//! Before a job: which nodes are risky, and which benchmarks are worth their minutes?

mod chart;
mod coverage;
mod draw;
mod keys;
mod picks;
mod state;

pub(crate) use state::State;

use crate::screens::View;

/// The screen.
pub(crate) const VIEW: View = View {
    short: "Sel",
    settle: state::settle,
    ask: keys::ask,
    ready: |snapshot| snapshot.selector.data.is_some(),
    ..View::new(("Selector", "which nodes are risky before a job, and what to run"), keys::KEYS, draw::draw, keys::act)
};
