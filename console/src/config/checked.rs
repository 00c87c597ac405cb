//! What the settings mean, checked, each with the place it came from.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, bail};
use muster_fleet::slurm::Options;
use muster_fleet::{HostKeyPolicy, Transport};

use super::{Deadlines, Raw};

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A command-line option, or its environment variable where it does not matter which.
    Flag,
    /// The environment variable of an option, set for whole shells.
    Environment,
    /// The configuration file.
    File(PathBuf),
    /// Nobody said; built in.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag or environment"),
            Self::Environment => f.write_str("environment"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A setting and where it came from.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    /// What is in force.
    pub value: T,
    /// Who said so.
    pub source: Source,
}

/// A hundred years: what is to be never stale.
const DAYS_MOST: f64 = 36_525.0;

/// Everything in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// Inventory file.
    pub inventory: Setting<PathBuf>,
    /// Database directory.
    pub db: Setting<PathBuf>,
    /// Nodes logged in to, and nodes sent the probe, at the same time.
    pub fan_out: Setting<usize>,
    /// Nodes that measure at the same time; all where nothing is set.
    pub at_once: Setting<Option<usize>>,
    /// Similarity limit.
    pub alpha: Setting<f64>,
    /// Tail floor.
    pub tau: Setting<f64>,
    /// Labels of the inventory whose nodes are compared apart, by metrics and by checks.
    pub group_by: Setting<Vec<String>>,
    /// Age in days past which a result is stale.
    pub stale_after: Setting<f64>,
    /// SSH client configuration.
    pub ssh_config: Setting<Option<PathBuf>>,
    /// What to do with new host keys; as the SSH configuration says where left out.
    pub host_keys: Setting<Option<HostKeyPolicy>>,
    /// Colour wish: `auto`, `always`, `never`.
    pub color: Setting<String>,
    /// How commands get to nodes.
    pub transport: Setting<Transport>,
    /// How Slurm is asked, where a flag or the file speaks of it.
    pub slurm: Setting<Option<Options>>,
    /// Patience with nodes, where the file speaks of it.
    pub deadlines: Setting<Deadlines>,
}

impl Config {
    /// Age past which a result is stale, milliseconds.
    #[must_use]
    pub fn stale_after_ms(&self) -> u64 {
        (self.stale_after.value * 86_400_000.0) as u64
    }
}

/// Merges flags over file over defaults.
///
/// # Errors
/// When a value is out of its range; the message names the setting.
pub fn resolve(flags: Raw, file: Raw, path: &std::path::Path) -> Result<Config> {
    let from_file = Source::File(path.to_owned());
    let places = Places::find()?;
    let config = Config {
        inventory: of_shell(
            flags.inventory_of_shell,
            pick(flags.inventory, file.inventory, places.inventory, &from_file),
        ),
        db: pick(flags.db, file.db, places.db, &from_file),
        fan_out: pick(flags.fan_out, file.fan_out, 64, &from_file),
        at_once: pick(flags.at_once.map(Some), file.at_once.map(Some), None, &from_file),
        alpha: pick(flags.alpha, file.alpha, 0.95, &from_file),
        tau: pick(flags.tau, file.tau, 0.01, &from_file),
        group_by: pick(flags.group_by, file.group_by, vec!["sku".to_owned()], &from_file),
        stale_after: pick(flags.stale_after, file.stale_after, 30.0, &from_file),
        ssh_config: pick(flags.ssh_config.map(Some), file.ssh_config.map(Some), None, &from_file),
        host_keys: host_keys(pick(flags.host_keys, file.host_keys, "ssh".into(), &from_file))?,
        color: pick(flags.color, file.color, "auto".into(), &from_file),
        transport: transport(pick(flags.transport, file.transport, "auto".into(), &from_file))?,
        slurm: slurm(flags.slurm, file.slurm, &from_file)?,
        deadlines: Setting { value: file.deadlines, source: from_file },
    };
    check(&config)?;
    Ok(config)
}

fn check(config: &Config) -> Result<()> {
    if !(config.alpha.value > 0.0 && config.alpha.value < 1.0) {
        bail!("alpha is {} ({}); it lies between 0 and 1", config.alpha.value, config.alpha.source);
    }
    if !(0.0..=1.0).contains(&config.tau.value) {
        bail!("tau is {} ({}); it lies between 0 and 1", config.tau.value, config.tau.source);
    }
    let days = &config.stale_after;
    if !(days.value > 0.0 && days.value <= DAYS_MOST) {
        bail!("stale_after is {} ({}); it is a number of days above 0, at most {DAYS_MOST}", days.value, days.source);
    }
    if config.fan_out.value == 0 {
        bail!("fan_out is 0 ({}); at least one node must be worked on", config.fan_out.source);
    }
    if config.at_once.value == Some(0) {
        bail!("at_once is 0 ({}); at least one node must measure", config.at_once.source);
    }
    if !["auto", "always", "never"].contains(&config.color.value.as_str()) {
        bail!("color is '{}' ({}); auto, always or never", config.color.value, config.color.source);
    }
    for (name, given) in config.deadlines.value.named() {
        if let Some(seconds) = given.filter(|s| !(0.1..=3600.0).contains(s)) {
            bail!("deadlines.{name} is {seconds} ({}); 0.1 to 3600 seconds", config.deadlines.source);
        }
    }
    Ok(())
}

fn pick<T>(flag: Option<T>, file: Option<T>, default: T, from_file: &Source) -> Setting<T> {
    match (flag, file) {
        (Some(value), _) => Setting { value, source: Source::Flag },
        (None, Some(value)) => Setting { value, source: from_file.clone() },
        (None, None) => Setting { value: default, source: Source::Default },
    }
}

/// The same; its flag is `of_shell` where the environment gave it its value.
fn of_shell<T>(of_shell: bool, setting: Setting<T>) -> Setting<T> {
    match setting.source {
        Source::Flag if of_shell => Setting { source: Source::Environment, ..setting },
        _ => setting,
    }
}

fn host_keys(word: Setting<String>) -> Result<Setting<Option<HostKeyPolicy>>> {
    let value = match word.value.as_str() {
        "ssh" => None,
        "yes" => Some(HostKeyPolicy::Strict),
        "ask" => Some(HostKeyPolicy::Ask),
        "accept-new" => Some(HostKeyPolicy::AcceptNew),
        other => bail!("host_keys is '{other}' ({}); ssh, yes, ask or accept-new", word.source),
    };
    Ok(Setting { value, source: word.source })
}

fn transport(word: Setting<String>) -> Result<Setting<Transport>> {
    let Some(value) = Transport::from_word(&word.value) else {
        bail!("transport is '{}' ({}); auto, own, openssh or slurm", word.value, word.source);
    };
    Ok(Setting { value, source: word.source })
}

/// What the flag leaves out is the file's to say.
fn slurm(flag: Option<Options>, file: Option<Options>, from_file: &Source) -> Result<Setting<Option<Options>>> {
    let file = match file.map(Options::checked) {
        Some(Err(why)) => bail!("slurm: {why} ({from_file})"),
        other => other.and_then(Result::ok),
    };
    Ok(match (flag, file) {
        (Some(flag), file) => Setting { value: Some(flag.over(file.unwrap_or_default())), source: Source::Flag },
        (None, file) => pick(None, file.map(Some), None, from_file),
    })
}

struct Places {
    inventory: PathBuf,
    db: PathBuf,
}

impl Places {
    fn find() -> Result<Self> {
        let Some(dirs) = directories::ProjectDirs::from("", "", "muster") else {
            bail!("no home directory: set HOME, or give --inventory and --db");
        };
        Ok(Self { inventory: dirs.config_dir().join("inventory.toml"), db: dirs.data_dir().join("db") })
    }
}

/// The configuration file used when none is named.
#[must_use]
pub fn default_file() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "muster").map(|dirs| dirs.config_dir().join("config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_beats_the_file_and_the_file_beats_the_default() {
        let flags = Raw { alpha: Some(0.9), ..Raw::default() };
        let file = Raw { alpha: Some(0.8), tau: Some(0.05), ..Raw::default() };
        let config = resolve(flags, file, std::path::Path::new("/etc/muster.toml")).unwrap();
        assert_eq!((config.alpha.value, &config.alpha.source), (0.9, &Source::Flag));
        assert_eq!((config.tau.value, &config.tau.source), (0.05, &Source::File("/etc/muster.toml".into())));
        assert_eq!(config.fan_out.source, Source::Default);
    }

    #[test]
    fn an_inventory_that_the_shell_names_is_told_from_one_on_the_command_line() {
        let source = |named: bool, inventory_of_shell| {
            let flags = Raw { inventory: named.then(|| "a.toml".into()), inventory_of_shell, ..Raw::default() };
            resolve(flags, Raw::default(), std::path::Path::new("c.toml")).unwrap().inventory.source
        };
        assert_eq!((source(true, true), source(true, false)), (Source::Environment, Source::Flag));
        assert_eq!(source(false, false), Source::Default);
    }

    #[test]
    fn a_deadline_out_of_range_is_named_with_its_place() {
        let file = Raw { deadlines: Deadlines { idle: Some(0.0), ..Deadlines::default() }, ..Raw::default() };
        let said = resolve(Raw::default(), file, std::path::Path::new("c.toml")).unwrap_err().to_string();
        assert_eq!(said, "deadlines.idle is 0 (c.toml); 0.1 to 3600 seconds");
    }

    #[test]
    fn results_are_stale_after_thirty_days_unless_somebody_says_otherwise() {
        let place = std::path::Path::new("c.toml");
        let of = |flag, file| {
            let raw = |stale_after| Raw { stale_after, ..Raw::default() };
            resolve(raw(flag), raw(file), place).map(|config| (config.stale_after_ms(), config.stale_after.source))
        };
        let day = 86_400_000;
        assert_eq!(of(None, None).unwrap(), (30 * day, Source::Default));
        assert_eq!(of(None, Some(7.0)).unwrap(), (7 * day, Source::File("c.toml".into())));
        assert_eq!(of(Some(0.5), Some(7.0)).unwrap(), (day / 2, Source::Flag));
        for days in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let said = of(None, Some(days)).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("stale_after is {days} (c.toml); it is a number of days above 0")),
                "{said}"
            );
        }
    }

    #[test]
    fn a_whole_number_of_days_may_stand_in_the_file() {
        let raw: Raw = toml::from_str("stale_after = 14").unwrap();
        assert_eq!(raw.stale_after, Some(14.0));
    }

    #[test]
    fn a_value_out_of_range_is_named_with_its_place() {
        let file = Raw { alpha: Some(1.5), ..Raw::default() };
        let said = resolve(Raw::default(), file, std::path::Path::new("c.toml")).unwrap_err().to_string();
        assert_eq!(said, "alpha is 1.5 (c.toml); it lies between 0 and 1");
    }
}
