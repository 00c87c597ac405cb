//! A job that is watched: which machine is unlike its peers, in which metric, since when?

mod draw;
mod keys;
mod layout;
mod line;
mod lists;
mod rows;
mod state;
mod strip;
mod time;
mod words;

pub(crate) use state::State;

use crate::screens::View;

/// The screen.
pub(crate) const VIEW: View = View {
    click: keys::click,
    settle: state::settle,
    ready: |snapshot| snapshot.watch.data.is_some(),
    ..View::new(("Watch", "the odd machine of a running job"), keys::KEYS, draw::draw, keys::act)
};
