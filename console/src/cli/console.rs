//! `muster` without a subcommand: the console.

use std::fs::File;
use std::io::{IsTerminal, stdin, stdout};

use anyhow::anyhow;
use muster_store::{Db, Store, StoreError};
use muster_tui::Intent;

use crate::app::App;
use crate::config::Config;
use crate::database;
use crate::exit::{Code, Ended, IO, Problem, USAGE};
use crate::options::{Common, Pick};
use crate::session::{self, Job};

/// The console on the configured inventory, with what is known of its nodes, or on the stored run called `run`.
///
/// # Errors
/// When inventory, database or terminal cannot be used, or there is no such run.
pub async fn run(config: &Config, common: &Common, run: Option<&str>) -> Ended {
    // Told before the screen opens, and before a database is made where none is.
    let run = run.map(|id| session::run_of(&*database::read(config)?, Some(id))).transpose()?;
    terminal(match &run {
        Some(_) => "`muster results` prints a run",
        None => "`muster results` prints the newest run, `muster run` measures without a screen",
    })?;
    let first = run.map(|run| Intent::Open { run: Some(run.id) });
    let nodes = session::nodes(config, &Pick::default());
    // What was measured or imported can be looked at without an inventory.
    let without = !config.inventory.value.exists() && config.db.value.exists();
    let nodes = if without { nodes } else { Ok(nodes?) };
    let store = store(config)?;
    let measured = match &store {
        Ok(store) => !store.runs().code(IO)?.is_empty(),
        Err(_) => true,
    };
    let nodes = if measured && without { nodes.unwrap_or_default() } else { nodes? };
    let file = config.inventory.value.file_stem().filter(|_| config.slurm.value.is_none());
    let title = file.map_or(if config.slurm.value.is_some() { "slurm".into() } else { "fleet".into() }, |stem| {
        stem.to_string_lossy().into_owned()
    });
    let job = Job::new(session::playbook("cbd-light")?, nodes, session::settings(config)?);
    App::new(job, store, (config.clone(), common), &title).sit(first).await
}

/// Whether there is a terminal to draw on and to read keys from, which need not be standard input; `instead` is what needs none.
///
/// # Errors
/// When there is none.
pub fn terminal(instead: &str) -> Result<(), Problem> {
    let keys = || stdin().is_terminal() || File::open("/dev/tty").is_ok();
    if stdout().is_terminal() && keys() {
        return Ok(());
    }
    Err(Problem { code: USAGE, error: anyhow!("the console needs a terminal; {instead}") })
}

/// The database of a console, or why this one may only read it.
///
/// # Errors
/// When it cannot be read either.
pub fn store(config: &Config) -> Result<Result<Db, String>, Problem> {
    match database::own(config) {
        Ok(store) => Ok(Ok(store)),
        // Another console has it, or this user may not write: then this one follows what is written.
        Err(problem) if database::read(config).is_ok() => Ok(Err(held(&problem))),
        Err(problem) => Err(problem),
    }
}

/// Why the database cannot be written into, in the few words that a line of the screen has room for.
fn held(problem: &Problem) -> String {
    match problem.error.downcast_ref() {
        Some(StoreError::Locked { pid: Some(pid), .. }) => format!("another muster has the database (process {pid})"),
        Some(StoreError::Locked { .. }) => "another muster has the database".to_owned(),
        _ => format!("{:#}", problem.error),
    }
}
