//! How are SSH configuration files read, with all they include?

use std::io;
use std::path::{Path, PathBuf};

use super::directive::{Directive, criteria};
use super::glob::glob;
use super::value::setting;
use super::{ConfigError, Ignored, Local, token, words};

/// Deepest nesting of `Include`, as in OpenSSH.
const MAX_DEPTH: usize = 16;

/// Most files read in all: two files that include each other twice would otherwise mean 65,536 of them.
const MAX_FILES: usize = 1_000;

/// The SSH configuration in force: some files, the first of which wins.
#[derive(Debug, Clone)]
pub struct Config {
    pub(super) directives: Vec<Vec<Directive>>,
    pub(super) local: Local,
    ignored: Vec<Ignored>,
    files: usize,
}

impl Config {
    /// Reads the files in order, for the operator of this process; one that does not exist is an empty one.
    ///
    /// Usual are `~/.ssh/config` and `/etc/ssh/ssh_config`. A file that includes others looks for them in `~/.ssh`, or in
    /// `/etc/ssh` if it lies there itself.
    pub fn load<P: AsRef<Path>>(files: &[P]) -> Result<Self, ConfigError> {
        Self::load_for(Local::here(), files)
    }

    /// The same for a given operator.
    pub fn load_for<P: AsRef<Path>>(local: Local, files: &[P]) -> Result<Self, ConfigError> {
        let mut config = Self { directives: Vec::new(), local, ignored: Vec::new(), files: 0 };
        for file in files {
            let file = file.as_ref();
            let base = match file.starts_with("/etc/ssh") {
                true => PathBuf::from("/etc/ssh"),
                false => config.local.home.join(".ssh"),
            };
            let error = |message| ConfigError { file: file.to_owned(), line: 0, message };
            if let Some(directives) = config.read(file, &base, 0).map_err(|nested| nested.or_at(error))? {
                config.directives.push(directives);
            }
        }
        Ok(config)
    }

    /// Reads a configuration that is given as text; `file` is only named in errors.
    pub fn parse(local: Local, text: &str, file: &Path) -> Result<Self, ConfigError> {
        let mut config = Self { directives: Vec::new(), local, ignored: Vec::new(), files: 0 };
        let base = config.local.home.join(".ssh");
        let directives = config.parse_file(text, file, &base, 0)?;
        config.directives.push(directives);
        Ok(config)
    }

    /// Lines that were read and are not followed: keywords that have no use here, and `Match exec` and its like.
    pub fn ignored(&self) -> &[Ignored] {
        &self.ignored
    }

    fn read(&mut self, file: &Path, base: &Path, depth: usize) -> Result<Option<Vec<Directive>>, Nested> {
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(Nested::Here(format!("more than {MAX_FILES} files are included")));
        }
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Nested::Here(format!("cannot read {}: {error}", file.display()))),
        };
        let directives = self.parse_file(&String::from_utf8_lossy(&bytes), file, base, depth);
        directives.map(Some).map_err(Nested::There)
    }

    fn parse_file(
        &mut self,
        text: &str,
        file: &Path,
        base: &Path,
        depth: usize,
    ) -> Result<Vec<Directive>, ConfigError> {
        let mut directives = Vec::new();
        for (index, line) in text.split('\n').enumerate() {
            let Some((keyword, rest)) = words::keyword(line) else { continue };
            let error = |message| ConfigError { file: file.to_owned(), line: index + 1, message };
            let ignored = |reason: &str| {
                let reason = reason.to_owned();
                Ignored { file: file.to_owned(), line: index + 1, keyword: keyword.clone(), reason }
            };
            match keyword.as_str() {
                "host" => directives.push(Directive::Host(patterns(&keyword, rest).map_err(error)?)),
                "match" => {
                    let criteria = criteria(&patterns(&keyword, rest).map_err(error)?).map_err(error)?;
                    if criteria.is_none() {
                        self.ignored.push(ignored("only host, originalhost, user, localuser and all are followed"));
                    }
                    directives.push(Directive::Match(criteria));
                }
                "include" => {
                    for name in patterns(&keyword, rest).map_err(error)? {
                        let found = self.include(&name, base, depth).map_err(|nested| nested.or_at(error))?;
                        directives.extend(found.into_iter().map(Directive::Include));
                    }
                }
                _ => match setting(&keyword, rest).map_err(error)? {
                    Some(setting) => directives.push(Directive::Set(setting)),
                    None => self.ignored.push(ignored("this keyword is not followed")),
                },
            }
        }
        Ok(directives)
    }

    fn include(&mut self, name: &str, base: &Path, depth: usize) -> Result<Vec<Vec<Directive>>, Nested> {
        if depth + 1 > MAX_DEPTH {
            return Err(Nested::Here(format!(
                "files are included more than {MAX_DEPTH} deep; do they include each other?"
            )));
        }
        let name = token::environment(name).map_err(Nested::Here)?;
        let path = base.join(self.local.expand_tilde(&name));
        let mut found = Vec::new();
        for file in glob(&path) {
            found.extend(self.read(&file, base, depth + 1)?);
        }
        Ok(found)
    }
}

/// An error that has its place already, or one that belongs to the line being read.
enum Nested {
    There(ConfigError),
    Here(String),
}

impl Nested {
    fn or_at(self, here: impl Fn(String) -> ConfigError) -> ConfigError {
        match self {
            Self::There(error) => error,
            Self::Here(message) => here(message),
        }
    }
}

fn patterns(keyword: &str, rest: &str) -> Result<Vec<String>, String> {
    let words = words::split(rest)?;
    if words.is_empty() { Err(format!("expected something after {keyword}")) } else { Ok(words) }
}
