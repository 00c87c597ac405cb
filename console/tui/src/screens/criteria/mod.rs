//! The versions of the criteria: which is in force, on what evidence, and how do two differ?

mod draw;
mod keys;
mod state;

pub(crate) use keys::ask;
pub(crate) use state::State;

use crate::screens::View;

/// The screen.
pub(crate) const VIEW: View = View {
    settle: state::settle,
    ask,
    ready: |snapshot| snapshot.criteria.data.is_some(),
    short: "Crit",
    ..View::new(("Criteria", "the versions of the criteria, and how they differ"), keys::KEYS, draw::draw, keys::act)
};
