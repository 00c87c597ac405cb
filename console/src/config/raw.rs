//! What the configuration file says, before it means anything.

use std::path::{Path, PathBuf};

use muster_fleet::slurm::Options;
use serde::Deserialize;

/// `config.toml`. Every entry is optional; unknown ones are errors.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    /// Inventory file.
    pub inventory: Option<PathBuf>,
    /// Whether its environment variable names the inventory, rather than its option.
    #[serde(skip)]
    pub inventory_of_shell: bool,
    /// Database directory.
    pub db: Option<PathBuf>,
    /// Nodes logged in to, and nodes sent the probe, at the same time.
    pub fan_out: Option<usize>,
    /// Nodes that measure at the same time.
    pub at_once: Option<usize>,
    /// Similarity under which a node differs from the criterion, between 0 and 1.
    pub alpha: Option<f64>,
    /// Tail floor of the distance, between 0 and 1.
    pub tau: Option<f64>,
    /// Labels of the inventory whose nodes are compared apart; `sku` without it.
    pub group_by: Option<Vec<String>>,
    /// Age in days past which a result is stale.
    pub stale_after: Option<f64>,
    /// `~/.ssh/config` or another.
    pub ssh_config: Option<PathBuf>,
    /// `ssh`, `yes`, `ask` or `accept-new`.
    pub host_keys: Option<String>,
    /// `auto`, `always` or `never`.
    pub color: Option<String>,
    /// `auto`, `own`, `openssh` or `slurm`.
    pub transport: Option<String>,
    /// How Slurm is asked; nodes come from it where it is given and there is no inventory.
    pub slurm: Option<Options>,
    /// How long to wait for a node.
    #[serde(default)]
    pub deadlines: Deadlines,
}

/// How long to wait for one node, in seconds; what is left out keeps its default.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Deadlines {
    /// For TCP to connect.
    pub connect: Option<f64>,
    /// Then for the banner and the key exchange.
    pub banner: Option<f64>,
    /// For the login, and then for the login shell to run a command.
    pub login: Option<f64>,
    /// For an upload to make progress.
    pub upload: Option<f64>,
    /// For the probe to speak once it is there.
    pub start: Option<f64>,
    /// For the next word of a probe at work.
    pub idle: Option<f64>,
}

impl Deadlines {
    /// Each with its name.
    pub fn named(&self) -> [(&'static str, Option<f64>); 6] {
        [
            ("connect", self.connect),
            ("banner", self.banner),
            ("login", self.login),
            ("upload", self.upload),
            ("start", self.start),
            ("idle", self.idle),
        ]
    }
}

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RawError {
    /// It cannot be read.
    #[error("{file}")]
    Read {
        /// File.
        file: PathBuf,
        /// What the system said.
        #[source]
        why: std::io::Error,
    },
    /// It is not what we expect; the message holds line and column.
    #[error("{file}: {why}")]
    Parse {
        /// File.
        file: PathBuf,
        /// What the parser said.
        why: Box<toml::de::Error>,
    },
}

impl Raw {
    /// Reads `file`; a file that does not exist is an empty one unless it was asked for by name.
    ///
    /// # Errors
    /// When it cannot be read or parsed.
    pub fn load(file: &Path, required: bool) -> Result<Self, RawError> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound && !required => return Ok(Self::default()),
            Err(why) => return Err(RawError::Read { file: file.to_owned(), why }),
        };
        toml::from_str(&text).map_err(|why| RawError::Parse { file: file.to_owned(), why: Box::new(why) })
    }
}
