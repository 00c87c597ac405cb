//! What can be run, and how far the run is on which nodes.

mod draw;
mod keys;
mod state;

pub(crate) use state::State;

use crate::screens::View;
use crate::ui::Ui;

/// The screen.
pub(crate) const VIEW: View = View {
    short: "Play",
    settle: state::settle,
    ready: |snapshot| !snapshot.playbooks.is_empty() && Ui::going(snapshot).is_none(),
    ..View::new(("Playbooks", "what can be run, and how far it is"), keys::KEYS, draw::draw, keys::act)
};
