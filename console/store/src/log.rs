//! Settles how a log file grows: written behind its last whole frame, synced, and cut back when that fails.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::frame::{HEADER, header};

/// A log file open for writing. `len` is where the acknowledged bytes end; what lies behind is not ours.
pub(crate) struct Log {
    file: File,
    len: u64,
    ahead: u64,
    dirty: bool,
}

impl Log {
    /// Opens `path` to go on at `len`, or makes it when it is not there. Nothing is durable until the first commit.
    pub(crate) fn open(path: &Path, len: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut log = Self { file, len, ahead: 0, dirty: true };
        if len < HEADER {
            log.len = 0;
            log.write(&header())?;
        }
        Ok(log)
    }

    /// Where the next frame will lie.
    pub(crate) const fn end(&self) -> u64 {
        self.len + self.ahead
    }

    /// Adds bytes; they count only after [`Log::commit`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.dirty {
            self.file.set_len(self.len)?;
        }
        self.dirty = true;
        self.file.write_all_at(bytes, self.end())?;
        self.ahead += bytes.len() as u64;
        self.dirty = false;
        Ok(())
    }

    /// Makes what was written durable.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.len += self.ahead;
        self.ahead = 0;
        Ok(())
    }

    /// Forgets what was written since the last commit and cuts it off; when that fails, the next write tries again.
    pub(crate) fn rollback(&mut self) {
        self.ahead = 0;
        self.dirty = self.file.set_len(self.len).and_then(|()| self.file.sync_data()).is_err();
    }
}

/// Makes a created, renamed or removed name durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
