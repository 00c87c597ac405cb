//! `muster config`: settings in force, and where each came from.

use muster_fleet::Transport;

use crate::config::Config;
use crate::exit::{Ended, PASS};
use crate::out;

/// Prints one setting a line.
pub fn run(config: &Config) -> Ended {
    let ssh = config.ssh_config.value.as_ref().map_or("~/.ssh/config".to_owned(), |p| p.display().to_string());
    let keys = if config.accept_new_keys.value { "accept-new" } else { "yes" };
    let transport = match config.transport.value {
        Transport::Auto => "auto",
        Transport::Own => "own",
        Transport::OpenSsh => "openssh",
    };
    let rows = [
        ("inventory", config.inventory.value.display().to_string(), &config.inventory.source),
        ("db", config.db.value.display().to_string(), &config.db.source),
        ("fan_out", config.fan_out.value.to_string(), &config.fan_out.source),
        ("alpha", config.alpha.value.to_string(), &config.alpha.source),
        ("tau", config.tau.value.to_string(), &config.tau.source),
        ("group_by", config.group_by.value.join(","), &config.group_by.source),
        ("ssh_config", ssh, &config.ssh_config.source),
        ("host_keys", keys.to_owned(), &config.accept_new_keys.source),
        ("transport", transport.to_owned(), &config.transport.source),
        ("color", config.color.value.clone(), &config.color.source),
    ];
    for (name, value, source) in rows {
        out::line(&format!("{name:<11} {value:<48} # {source}"))?;
    }
    for (name, given) in config.deadlines.value.named() {
        if let Some(seconds) = given {
            out::line(&format!("deadlines.{name} = {seconds} s # {}", config.deadlines.source))?;
        }
    }
    Ok(PASS)
}
