//! `muster config`: settings in force, and where each came from.

use clap::Args;
use muster_fleet::HostKeyPolicy;
use serde::Serialize;

use crate::config::Config;
use crate::exit::{Ended, PASS};
use crate::out;

/// Options.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  muster config\n  muster config --json | jq '.settings[] | select(.name == \"db\")'"
)]
pub struct Options {
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Setting {
    name: String,
    value: String,
    /// Flag, variable, file or built in.
    source: String,
}

/// Prints one setting a line.
pub fn run(options: &Options, config: &Config) -> Ended {
    let settings = settings(config);
    if options.json {
        out::list("muster.config", "settings", &settings)?;
        return Ok(PASS);
    }
    for Setting { name, value, source } in settings {
        out::line(&format!("{name:<11} {value:<48} # {source}"))?;
    }
    Ok(PASS)
}

fn settings(config: &Config) -> Vec<Setting> {
    let ssh = config.ssh_config.value.as_ref().map_or("~/.ssh/config".to_owned(), |p| p.display().to_string());
    let keys = match config.host_keys.value {
        None => "ssh",
        Some(HostKeyPolicy::Strict) => "yes",
        Some(HostKeyPolicy::Ask) => "ask",
        Some(HostKeyPolicy::AcceptNew) => "accept-new",
    };
    let slurm = config.slurm.value.as_ref().map_or("no".to_owned(), |options| options.to_string());
    let rows = [
        ("inventory", config.inventory.value.display().to_string(), &config.inventory.source),
        ("db", config.db.value.display().to_string(), &config.db.source),
        ("fan_out", config.fan_out.value.to_string(), &config.fan_out.source),
        ("at_once", config.at_once.value.map_or("all".to_owned(), |n| n.to_string()), &config.at_once.source),
        ("alpha", config.alpha.value.to_string(), &config.alpha.source),
        ("tau", config.tau.value.to_string(), &config.tau.source),
        ("group_by", config.group_by.value.join(","), &config.group_by.source),
        ("stale_after", format!("{} d", config.stale_after.value), &config.stale_after.source),
        ("ssh_config", ssh, &config.ssh_config.source),
        ("host_keys", keys.to_owned(), &config.host_keys.source),
        ("transport", config.transport.value.word().to_owned(), &config.transport.source),
        ("slurm", slurm, &config.slurm.source),
        ("color", config.color.value.clone(), &config.color.source),
    ];
    let deadlines = config.deadlines.value.named().into_iter().filter_map(|(name, given)| {
        Some((format!("deadlines.{name}"), format!("{} s", given?), &config.deadlines.source))
    });
    let rows = rows.into_iter().map(|(name, value, source)| (name.to_owned(), value, source)).chain(deadlines);
    rows.map(|(name, value, source)| Setting { name, value, source: source.to_string() }).collect()
}
