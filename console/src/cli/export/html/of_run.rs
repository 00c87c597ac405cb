//! The page of a run, of one of its nodes, or of one of its metrics.

use muster_run::Run;
use muster_store::Store;

use super::super::{Options, chosen};
use super::put;
use crate::config::Config;
use crate::database;
use crate::exit::Ended;
use crate::pages::{self, About};
use crate::patience::Patience;

/// Writes the page that `options` ask for, of a stored run.
pub(in crate::cli::export) fn run(
    (store, run): (&dyn Store, &Run),
    config: &Config,
    options: &Options,
    waiting: Patience,
) -> Ended {
    let about = match (&options.node, &options.metric) {
        (Some(node), _) => About::Node(node),
        (None, Some(metric)) => About::Metric(metric),
        (None, None) => About::Run,
    };
    let text = pages::of_run((store, run), config, about, &chosen(options))?;
    drop(waiting);
    database::sound(store, options.strict)?;
    put(&text, options.output.as_deref())
}
