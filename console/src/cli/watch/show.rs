//! The console on a job that runs, or on a recording of one that ran: `muster watch --show`.

use std::path::{Path, PathBuf};

use muster_fleet::Inventory;
use muster_watch::Settings;

use super::input::{self, Input};
use super::{Options, live, recorded};
use crate::app::App;
use crate::cli::console;
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended};
use crate::options::Common;
use crate::patience::Patience;
use crate::session::{self, Job};
use crate::work::playhead::Playhead;
use crate::work::ticks::{FASTEST, Player, Source};
use crate::{out, recordings};

/// Opens the screen **Watch**.
pub(super) async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    console::terminal("without --show the alerts are printed")?;
    if options.from.is_empty() { nodes(options, config, common).await } else { play(options, config, common).await }
}

async fn nodes(options: &Options, config: &Config, common: &Common) -> Ended {
    let metrics = match options.metrics.is_empty() {
        true => Vec::new(),
        false => live::metrics(&options.metrics)?.into_iter().map(str::to_owned).collect(),
    };
    let nodes = session::nodes_for_work(config, &options.pick)?;
    let settings = session::settings_for(config, &nodes).await?;
    let job = Job::new(session::playbook("cbd-light")?, nodes.clone(), settings);
    let app = App::new(job, console::store(config)?, (config.clone(), common), "watch");
    app.sit_on_watch(Source::Nodes { nodes, metrics, job: live::job(options) }, options.settings()).await
}

async fn play(options: &Options, config: &Config, common: &Common) -> Ended {
    let waiting = Patience::new("reading the recording");
    let from: Vec<PathBuf> =
        options.from.iter().map(|from| recordings::find(from, config)).collect::<Result<_, _>>()?;
    let Input { recording, notes } = input::read(&from).code(CONFIG)?;
    notes.iter().for_each(out::note);
    let names = recorded::nodes(&recording, options, config)?;
    let metrics = recorded::metrics(&recording, &options.metrics)?;
    // Without an inventory nothing is known of what nodes share, and none can be measured.
    let known = Inventory::load(&config.inventory.value).unwrap_or_default();
    let nodes: Vec<_> = known.nodes().iter().filter(|node| names.contains(&node.name)).cloned().collect();
    let file = options.from.first().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
    let speed = options.speed.unwrap_or(FASTEST);
    let named = (muster_wire::clean(&file, 80), recording);
    let player = Player::new(named, speed, (&names, &metrics), &nodes);
    let job = Job::new(session::playbook("cbd-light")?, nodes, session::settings(config)?);
    drop(waiting);
    let app = App::on(names, job, console::store(config)?, (config.clone(), common), "recording");
    app.sit_on_watch(Source::Recording(Box::new(player)), options.settings()).await
}

/// Plays the recording at `file`, called `name`, in a console that knows nothing else, for the reason `why`; in about a minute where no
/// `speed` is given.
///
/// # Errors
/// When it cannot be read, or the terminal cannot be used.
pub(crate) async fn played(
    (file, name): (&Path, &str),
    speed: Option<f64>,
    (config, common): (&Config, &Common),
    why: &str,
) -> Ended {
    let waiting = Patience::new("reading the recording");
    let Input { recording, notes } = input::read(&[file.to_owned()]).code(CONFIG)?;
    notes.iter().for_each(out::note);
    let names = recorded::told(&recording);
    let metrics = recorded::metrics(&recording, &[])?;
    let known = Inventory::load(&config.inventory.value).unwrap_or_default();
    let nodes: Vec<_> = known.nodes().iter().filter(|node| names.contains(&node.name)).cloned().collect();
    let rows = recording.rows();
    let span = rows.first().zip(rows.last()).map_or((0.0, 0.0), |(first, last)| (first.time_s, last.time_s));
    let speed = speed.unwrap_or_else(|| Playhead::pace(span));
    let named = (muster_wire::clean(name, 80), recording);
    let player = Player::new(named, speed, (&names, &metrics), &nodes);
    let job = Job::new(session::playbook("cbd-light")?, nodes, session::settings(config)?);
    drop(waiting);
    let app = App::on(names, job, Err(why.to_owned()), (config.clone(), common), name);
    app.sit_on_played_watch(Source::Recording(Box::new(player)), Settings::default()).await
}
