//! A job that failed, hangs or is slow: the verdict, who is suspected by what, and how it was found.

mod draw;
mod keys;
mod lanes;
mod layout;
mod matrix;
mod papers;
mod reader;
mod state;
mod suspects;
mod timeline;
mod words;

pub(crate) use keys::come_from;
pub(crate) use state::State;

use crate::screens::View;

/// The screen.
pub(crate) const VIEW: View = View {
    click: keys::click,
    settle: state::settle,
    ready: |snapshot| snapshot.triage.data.is_some(),
    ..View::new(("Triage", "why a job failed, hangs or is slow"), keys::KEYS, draw::draw, keys::act)
};
