//! How are nodes reached, and by whose word: the command line, the inventory, or the configuration file?

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use muster_fleet::{Inventory, Node, Settings, Tell, Transport, slurm};

use crate::config::{Config, Deadlines, Source};
use crate::exit::{Code, IO, Problem};
use crate::out;

/// How often somebody is asked about keys: jump hosts of jump hosts become known one after another.
const HOPS: usize = 8;

/// How commands get to nodes, and how Slurm is asked: by the command line, then the inventory, then the configuration file.
pub fn ways(config: &Config) -> (Transport, slurm::Options) {
    let (transport, options) = asked(config);
    // Inside an allocation its job is the one to work in.
    let job = options.job.clone().or_else(crate::slurm::around);
    (transport, slurm::Options { job, ..options })
}

/// The same, whatever allocation this console is in.
pub(super) fn asked(config: &Config) -> (Transport, slurm::Options) {
    let file = if asks_slurm(config) { None } else { Inventory::load(&config.inventory.value).ok() };
    let file = file.unwrap_or_default();
    let given = config.slurm.value.clone();
    let flag = given.is_some() && config.slurm.source == Source::Flag;
    let (first, second) = (given.unwrap_or_default(), file.slurm.unwrap_or_default());
    let options = if flag { first.over(second) } else { second.over(first) };
    let transport = match file.transport.unwrap_or(config.transport.value) {
        _ if flag && !options.ssh => Transport::Slurm,
        Transport::Slurm if options.ssh => Transport::Auto,
        other => other,
    };
    (transport, options)
}

/// Whether the command line asks for Slurm's nodes rather than those of a file.
pub(super) fn asks_slurm(config: &Config) -> bool {
    let flag = config.slurm.value.is_some() && config.slurm.source == Source::Flag;
    flag && !matches!(config.inventory.source, Source::Flag | Source::Environment)
}

/// How to connect, from the configuration.
///
/// # Errors
/// When the SSH configuration does not exist.
pub fn settings(config: &Config) -> Result<Arc<Settings>, Problem> {
    let mut settings = Settings { fan_out: config.fan_out.value, ..Settings::default() };
    settings.at_once = config.at_once.value.unwrap_or(settings.at_once);
    if let Some(file) = &config.ssh_config.value {
        if !file.exists() {
            return Err(Problem { code: IO, error: anyhow!("{}: no such file", file.display()) });
        }
        settings.ssh_config = Some(file.clone());
    }
    settings.host_key_policy = config.host_keys.value;
    settings.tell = Tell::new(|what| out::note(format_args!("{what}")));
    let (transport, options) = ways(config);
    settings.transport = transport;
    settings.slurm = (transport == Transport::Slurm).then(|| Arc::new(slurm::Launcher::new(options)));
    wait_as_told(&mut settings, &config.deadlines.value);
    Ok(Arc::new(settings))
}

/// The same for work on `nodes` that begins now: a person at the terminal is asked about their new host keys, all at once.
///
/// # Errors
/// When the SSH configuration does not exist, or a key cannot be recorded.
pub async fn settings_for(config: &Config, nodes: &[Node]) -> Result<Arc<Settings>, Problem> {
    let settings = settings(config)?;
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    // Behind a jump host that was unknown there may be more.
    for _ in 0..if asks { HOPS } else { 0 } {
        let new = muster_fleet::unknown_keys(nodes, settings.clone()).await;
        if new.is_empty() {
            break;
        }
        out::note(format_args!("no record of {}:", out::counted(new.len(), "host key", "host keys")));
        new.iter().for_each(|key| out::note(format_args!("  {key}")));
        if !out::confirmed("trust and record these keys?") {
            break;
        }
        new.iter().try_for_each(muster_fleet::NewKey::record).code(IO)?;
    }
    Ok(settings)
}

fn wait_as_told(settings: &mut Settings, deadlines: &Deadlines) {
    let mut places = [
        &mut settings.connect,
        &mut settings.banner,
        &mut settings.login,
        &mut settings.upload,
        &mut settings.start,
        &mut settings.idle,
    ];
    for (place, (_, given)) in places.iter_mut().zip(deadlines.named()) {
        if let Some(seconds) = given {
            **place = Duration::from_secs_f64(seconds);
        }
    }
    // A probe that is asked less often than it must speak would hang by definition.
    settings.ping = settings.ping.min(settings.idle / 3);
}
