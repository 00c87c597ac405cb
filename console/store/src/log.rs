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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn log(path: &Path, bytes: &[u8]) -> Log {
        fs::write(path, bytes).unwrap();
        Log::open(path, bytes.len() as u64).unwrap()
    }

    #[test]
    fn what_is_written_counts_once_it_is_committed_and_is_cut_off_where_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = Log::open(&path, 0).unwrap();
        log.commit().unwrap();
        let read = || fs::read(&path).unwrap();
        assert_eq!((log.end(), read()), (HEADER, header()));
        log.write(b"abc").unwrap();
        log.write(b"de").unwrap();
        assert_eq!(log.end(), HEADER + 5);
        log.rollback();
        assert_eq!((log.end(), read()), (HEADER, header()));
        log.write(b"xy").unwrap();
        log.commit().unwrap();
        log.write(b"z").unwrap();
        log.rollback();
        assert_eq!((log.end(), read()), (HEADER + 2, [&header()[..], b"xy"].concat()));
    }

    #[test]
    fn a_log_goes_on_where_it_was_acknowledged_and_what_lies_behind_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let sound = [&header()[..], b"sound"].concat();
        fs::write(&path, [&sound[..], b"left by a crash"].concat()).unwrap();
        let mut log = Log::open(&path, sound.len() as u64).unwrap();
        log.write(b"!").unwrap();
        log.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), [&sound[..], b"!"].concat());
    }

    #[test]
    fn a_log_that_is_shorter_than_its_header_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let begun = log(&path, &header()[..15]);
        assert_eq!((begun.end(), fs::read(&path).unwrap()), (HEADER, header()));
        let whole = log(&path, &header());
        assert_eq!(whole.end(), HEADER);
    }

    #[test]
    fn a_folder_that_is_gone_cannot_be_synced() {
        let dir = tempfile::tempdir().unwrap();
        sync_dir(dir.path()).unwrap();
        assert_eq!(sync_dir(&dir.path().join("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
