//! The console on a bundle: `muster triage --from DIR --show`.

use std::path::Path;

use muster_fleet::Inventory;

use super::{Options, prepare};
use crate::app::App;
use crate::cli::console;
use crate::config::Config;
use crate::exit::Ended;
use crate::options::Common;
use crate::session::{self, Job};

/// Opens the screen **Triage**.
pub(super) async fn run(from: &Path, options: &Options, config: &Config, common: &Common) -> Ended {
    // Without an inventory nothing is known of the machines but what the bundle says.
    let nodes = Inventory::load(&config.inventory.value).map(|known| known.nodes().to_vec()).unwrap_or_default();
    let job = Job::new(session::playbook("cbd-light")?, nodes, session::settings(config)?);
    let app = App::new(job, console::store(config)?, (config.clone(), common), "triage");
    let (since, pick, of) = (options.since, options.pick.clone(), config.clone());
    app.sit_on_triage(from, move |case| prepare(case, since, &pick, &of)).await
}
