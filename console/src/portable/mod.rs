//! Replay files: everything that a run, a recording of a watch or a triage case needs to be played on another machine.

mod case;
mod home;
mod labels;
mod run;
mod watch;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use muster_store::portable::{Head, Kind, Portable, PortableError, Source};

pub use case::{of as case_of, write as write_case};
pub use home::Home;
pub use run::{Recorded, write as write_run};
pub use watch::{PART as WATCH, write as write_watch};

use crate::exit::{CONFIG, IO, Problem};

/// Which muster writes.
const WRITER: &str = env!("CARGO_PKG_VERSION");
/// Bytes of a part that is read into memory at most.
const TEXT: u64 = 256 << 20;

/// A replay file whose parts lie in a folder of their own, which goes with this.
#[derive(Debug)]
pub struct Unpacked {
    /// What the file says of itself.
    pub head: Head,
    /// Where it came from.
    from: PathBuf,
    dir: Home,
}

impl Unpacked {
    /// The parts of the file at `from`.
    ///
    /// # Errors
    /// [`CONFIG`] where it is no replay file, [`IO`] where it is torn, damaged or of a newer muster.
    pub fn of(from: &Path) -> Result<Self, Problem> {
        let dir = Home::new().map_err(anyhow::Error::from)?;
        let head = Portable::open(from).and_then(|file| file.unpack(dir.path())).map_err(problem)?;
        Ok(Self { head, from: from.to_owned(), dir })
    }

    /// The part whose name begins with `start`.
    ///
    /// # Errors
    /// Where there is none.
    pub fn part(&self, start: &str) -> Result<PathBuf, Problem> {
        self.find(start).ok_or_else(|| {
            let kind = self.head.kind.word();
            let why = anyhow!("{}: it says that it holds a {kind}, but has no part {start}", self.from.display());
            Problem { code: CONFIG, error: why }
        })
    }

    /// The same where it may be missing.
    #[must_use]
    pub fn find(&self, start: &str) -> Option<PathBuf> {
        let name = self.head.parts.iter().map(|part| &part.name).find(|name| name.starts_with(start))?;
        Some(self.dir.path().join(name))
    }

    /// Labels of its nodes, as an inventory.
    #[must_use]
    pub fn inventory(&self) -> Option<PathBuf> {
        self.find(labels::NAME)
    }

    /// Content of a part that is text.
    fn text(&self, start: &str) -> Result<String, Problem> {
        let path = self.part(start)?;
        let read = || -> anyhow::Result<String> {
            let mut text = String::new();
            File::open(&path)?.take(TEXT + 1).read_to_string(&mut text)?;
            if text.len() as u64 > TEXT { Err(anyhow!("it is too long")) } else { Ok(text) }
        };
        read()
            .with_context(|| format!("{}: {start}", self.from.display()))
            .map_err(|error| Problem { code: CONFIG, error })
    }

    /// Where its parts lie.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

fn problem(why: PortableError) -> Problem {
    let code = if matches!(why, PortableError::Other { .. }) { CONFIG } else { IO };
    Problem { code, error: why.into() }
}

/// A file as a part called `name`.
fn of_file(name: String, path: &Path) -> anyhow::Result<Source<'static>> {
    let read = || -> std::io::Result<(u64, File)> {
        let file = File::open(path)?;
        Ok((file.metadata()?.len(), file))
    };
    let (bytes, file) = read().with_context(|| path.display().to_string())?;
    Ok(Source { name, bytes, from: Box::new(BufReader::new(file)) })
}

/// Bytes as a part called `name`.
fn of_bytes(name: &str, bytes: &[u8]) -> Source<'static> {
    Source { name: name.to_owned(), bytes: bytes.len() as u64, from: Box::new(std::io::Cursor::new(bytes.to_vec())) }
}

/// Writes a replay file with these parts.
fn write(to: &mut dyn std::io::Write, (kind, name): (Kind, &str), parts: Vec<Source<'_>>) -> anyhow::Result<()> {
    Ok(muster_store::portable::write(to, (kind, name), (WRITER, crate::clock::now_ms()), parts)?)
}
