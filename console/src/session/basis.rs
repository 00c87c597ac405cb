//! What do the Selector's answers rest on?

use muster_analysis::risk::Saved;
use muster_playbook::Playbook;
use muster_store::Store;

use crate::exit::{CONFIG, Code, IO, Problem};
use crate::risk::{Basis, Log, Measured};
use crate::{clock, risk};

/// The database alone: its log, its runs, and `given` or its newest model. Curves are kept at `times`.
///
/// # Errors
/// When the database cannot be read.
pub fn stored_basis(
    store: &dyn Store,
    (names, playbook): (&[String], &Playbook),
    given: Option<(Saved, String)>,
    times: Vec<f64>,
) -> Result<Basis, Problem> {
    let kept = || risk::saved(store).map(|kept| kept.map(|(model, version)| (model, format!("model {version}"))));
    let saved = given.map_or_else(kept, |given| Ok(Some(given))).code(IO)?;
    let runs = store.runs().code(IO)?;
    let measured = Measured::stored(store, &runs, playbook).code(IO)?;
    let log = Log::stored(store, &runs, playbook, clock::now_ms()).code(IO)?;
    Basis::new(&log, &measured, saved, (names, playbook), times).code(CONFIG)
}
