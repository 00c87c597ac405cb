//! One metric over the fleet: what is normal, how sure is that, and who is not normal?

mod chart;
mod draw;
mod keys;
mod scores;
mod state;
mod what_if;

pub(crate) use draw::draw;
pub(crate) use keys::{act, open_metric};
pub(crate) use state::{Pane, State, settle};
pub(crate) use what_if::restore;
