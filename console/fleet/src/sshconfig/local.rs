//! Who and where is the operator: what `~`, `%u` and `%l` stand for?

use std::path::{Path, PathBuf};

/// The operator's side of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// Home directory.
    pub home: PathBuf,
    /// Login name on this machine.
    pub user: String,
    /// Host name of this machine.
    pub host: String,
}

impl Local {
    /// From the environment (`HOME`, `USER`, `LOGNAME`), else from `/etc/passwd`.
    pub fn here() -> Self {
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let uid = rustix::process::getuid().as_raw().to_string();
        let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let own = fields.into_iter().find(|fields| fields.len() > 5 && fields[2] == uid);
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let field = |at: usize| own.as_ref().map(|fields| fields[at].to_owned());
        Self {
            home: set("HOME").or_else(|| field(5)).unwrap_or_else(|| "/".to_owned()).into(),
            user: field(0).or_else(|| set("USER")).or_else(|| set("LOGNAME")).unwrap_or_else(|| uid.clone()),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        }
    }

    /// The path with a leading `~` or `~/` replaced by the home directory.
    pub fn expand_tilde(&self, path: &str) -> PathBuf {
        match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            _ => Path::new(path).to_owned(),
        }
    }
}
