//! The stored runs: what was measured when, on which nodes, and which of it still counts?

mod draw;
mod keys;
mod state;

pub(crate) use state::State;

use crate::screens::View;

/// The screen.
pub(crate) const VIEW: View = View {
    settle: state::settle,
    ask: keys::ask,
    ready: |snapshot| snapshot.runs.data.is_some(),
    // A run is opened first; then what it says can be written.
    exports: false,
    ..View::new(("Runs", "the stored runs, and which of them are current"), keys::KEYS, draw::draw, keys::act)
};
