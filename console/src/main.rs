//! The program people start: reads the command line, hands over, exits with a code that scripts can read.

mod app;
mod cases;
mod cli;
mod clock;
mod config;
mod database;
mod exit;
mod input;
mod judge;
mod offline;
mod options;
mod out;
mod pages;
mod patience;
mod portable;
mod recordings;
mod redact;
mod risk;
mod service;
mod session;
mod signals;
mod slurm;
mod views;
mod who;
mod work;

use std::process::ExitCode;

use clap::error::ErrorKind;
use rustix::fs::Mode;

use cli::{Cli, Command};
use config::{Config, Raw};
use exit::{CONFIG, Code, Ended, PASS, Problem, USAGE};

/// musl's own allocator is slow where verdicts are millions of small pieces, and glibc's keeps what thousands of connections gave back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // What is measured, exported and logged names machines and people: it is its owner's alone.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(text) = cli::help::asked(&words) {
        return answered(out::line(text.trim_end()).map(|()| PASS));
    }
    let cli = match Cli::of(std::env::args_os()) {
        Ok(cli) => cli,
        Err(why) => {
            let asked = matches!(why.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let _ = why.print();
            if why.kind() == ErrorKind::InvalidSubcommand && words.first().is_some_and(|word| word == "help") {
                out::part(format_args!("\n{}", cli::help::list()));
            }
            return ExitCode::from(if asked { PASS } else { USAGE });
        }
    };
    answered(start(&cli))
}

fn answered(ended: Ended) -> ExitCode {
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(Problem { code, error }) => {
            out::note(format_args!("muster: {error:#}"));
            ExitCode::from(code)
        }
    }
}

fn start(cli: &Cli) -> Ended {
    if let Some(ended) = cli::told(cli) {
        return ended;
    }
    let config = settings(cli)?;
    let run = cli.stored_run()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().code(exit::IO)?;
    let ended = match &cli.command {
        None => runtime.block_on(cli::console::run(&config, &cli.common, run)),
        Some(Command::Demo(options)) => runtime.block_on(cli::demo::run(options, &config, &cli.common)),
        Some(Command::Run(options)) => runtime.block_on(cli::run::run(options, &config)),
        Some(Command::Clean(options)) => runtime.block_on(cli::clean::run(options, &config, &cli.common)),
        Some(Command::Drain(options)) => cli::drain::drain(options, &config, &cli.common),
        Some(Command::Resume(options)) => cli::drain::resume(options, &config, &cli.common),
        Some(Command::Swap(options)) => cli::swap::run(options, &config, &cli.common),
        Some(Command::Playbook(action)) => cli::playbook::run(action, &config),
        Some(Command::Nodes(options)) => cli::nodes::run(options, &config),
        Some(Command::Results(options)) => cli::results::run(options, &config),
        Some(Command::Runs(options)) => cli::runs::run(options, &config),
        Some(Command::Criteria(action)) => cli::criteria::run(action, &config),
        Some(Command::Checks(action)) => cli::checks::run(action),
        Some(Command::Pairs(options)) => runtime.block_on(cli::pairs::run(options, &config, &cli.common)),
        Some(Command::Collective(options)) => runtime.block_on(cli::collective::run(options, &config)),
        Some(Command::Select(options)) => cli::select::run(options, &config),
        Some(Command::Gate(options)) => cli::gate::run(options, &config),
        Some(Command::Model(action)) => cli::model::run(action, &config),
        Some(Command::Simulate(options)) => cli::simulate::run(options),
        Some(Command::Incidents(action)) => cli::incidents::run(action, &config),
        Some(Command::Watch(options)) => runtime.block_on(cli::watch::run(options, &config, &cli.common)),
        Some(Command::Triage(options)) => runtime.block_on(cli::triage::run(options, &config, &cli.common)),
        Some(Command::Tune(options)) => cli::tune::run(options, &config),
        Some(Command::Import(options)) => cli::import::run(options, &config),
        Some(Command::Replay(options)) => runtime.block_on(cli::replay::run(options, &config, &cli.common)),
        Some(Command::Export(options)) => cli::export::run(options, &config),
        Some(Command::Doctor(options)) => cli::doctor::run(options, &config),
        Some(Command::Config(options)) => cli::config::run(options, &config),
        Some(Command::Db(action)) => cli::db::run(action, &config),
        // A process of its own, with a runtime of its own.
        Some(Command::VirtualNodes(options)) => cli::virtual_nodes::run(options),
        Some(Command::Completions(_) | Command::Man(_)) => Ok(PASS),
    };
    // Who leaves does not wait for what is still being read or judged; what is recorded is safe.
    runtime.shutdown_background();
    ended
}

fn settings(cli: &Cli) -> Result<Config, Problem> {
    let named = cli.common.config.is_some();
    let path = cli.common.config.clone().or_else(config::default_file).unwrap_or_default();
    let file = Raw::load(&path, named).code(CONFIG)?;
    config::resolve(cli.common.raw(), file, &path).code(CONFIG)
}
