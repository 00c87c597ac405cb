//! The console on a case: `muster triage --show`.

use std::path::Path;

use muster_fleet::Inventory;
use muster_logs::Rules;

use super::{Options, live, prepare};
use crate::app::App;
use crate::cli::console;
use crate::config::Config;
use crate::exit::{Code, Ended, IO, Problem};
use crate::options::Common;
use crate::session::{self, Job};

/// Opens the screen **Triage** on a bundle, or on what nodes tell now; the latter is kept where --save says, and else as long as the
/// screen stands.
pub(super) async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    console::terminal("without --show the verdict is printed")?;
    if let Some(from) = &options.from {
        let (since, pick, of) = (options.since, options.pick.clone(), config.clone());
        return screen(config, common)?.sit_on_triage(from, move |case| prepare(case, since, &pick, &of)).await;
    }
    let passing = tempfile::tempdir().code(IO)?;
    let dir = options.save.clone().unwrap_or_else(|| passing.path().join("job"));
    let asking = live::asking(options, config, dir).await?;
    let asked = (&*asking.nodes, asking.settings.clone());
    let of = (asking.job.as_deref(), Some(&*asking.kept), live::alerts(options)?);
    match live::ask(asked, &asking.order, of, &Rules::built_in().code(IO)?).await? {
        live::Got::Case(_) => {
            live::say_kept(options);
            let dir = asking.kept.clone();
            screen(config, common)?.asking(asking).sit_on_triage(&dir, |_| Ok(())).await
        }
        live::Got::Ended(code) => Ok(code),
    }
}

/// Opens the screen **Triage** on the bundle at `from` as a replay: nothing is asked of nodes.
///
/// # Errors
/// When the terminal or the settings cannot be used.
pub(crate) async fn played(from: &Path, config: &Config, common: &Common) -> Ended {
    screen(config, common)?.sit_on_played_triage(from).await
}

fn screen(config: &Config, common: &Common) -> Result<App, Problem> {
    // Without an inventory nothing is known of the machines but what the bundle says.
    let nodes = Inventory::load(&config.inventory.value).map(|known| known.nodes().to_vec()).unwrap_or_default();
    let job = Job::new(session::playbook("cbd-light")?, nodes, session::settings(config)?);
    Ok(App::new(job, console::store(config)?, (config.clone(), common), "triage"))
}
