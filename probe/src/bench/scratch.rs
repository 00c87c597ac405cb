//! Where the disk benchmark's file lives: in which directory, without a name, and with or without the page cache.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::aligned::Aligned;
use crate::steps::Halt;

/// `f_type` of file systems that live in memory (statfs(2)). Newer kernels accept direct I/O on them and ignore it.
const MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// A file without a name, which is gone when it is closed, also when the probe is killed.
#[derive(Debug)]
pub(super) struct Scratch {
    file: OwnedFd,
    /// Bytes.
    pub(super) size: u64,
    /// Whether the page cache is bypassed.
    pub(super) direct: bool,
    /// Where it is, for messages.
    pub(super) dir: PathBuf,
}

impl Scratch {
    /// Makes a file of `size` bytes (a multiple of 1 MiB) in `given`, or in the first writable of the usual
    /// directories. Nothing is written yet.
    pub(super) fn new(given: Option<&Path>, size: u64) -> Result<Self, Halt> {
        let mut refused = Vec::new();
        let mut only_denied = true;
        for dir in given.map_or_else(usual, |dir| vec![dir.to_path_buf()]) {
            match nameless(&dir) {
                Ok(file) => return Self::in_dir(file, dir, size),
                Err(e) => {
                    only_denied &= matches!(e, Errno::ACCESS | Errno::PERM | Errno::ROFS);
                    refused.push(format!("{}: {e}", dir.display()));
                }
            }
        }
        let why = format!("no writable directory for a file: {}", refused.join("; "));
        Err(if only_denied { Halt::Denied(why) } else { Halt::Failed(why) })
    }

    fn in_dir(file: OwnedFd, dir: PathBuf, size: u64) -> Result<Self, Halt> {
        let failed = |e: Errno| Halt::Failed(format!("cannot ask about the file system of {}: {e}", dir.display()));
        let space = rustix::fs::fstatvfs(&file).map_err(failed)?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        if free < 2 * size {
            return Err(Halt::NotRun(format!(
                "{} has {} MiB free; a file of {} MiB is made only where twice its size is",
                dir.display(),
                free >> 20,
                size >> 20
            )));
        }
        let kind = rustix::fs::fstatfs(&file).map_err(failed)?.f_type as u64;
        let direct = !MEMORY.contains(&kind) && takes_direct(&file)?;
        Ok(Self { file, size, direct, dir })
    }

    /// Words for an error of `operation` on this file.
    pub(super) fn halt(&self, operation: &str, error: Errno) -> Halt {
        let why = match error {
            Errno::NOSPC | Errno::DQUOT => "no space left".to_owned(),
            error => error.to_string(),
        };
        Halt::Failed(format!("cannot {operation} a file in {}: {why}", self.dir.display()))
    }
}

impl AsFd for Scratch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn usual() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".cache"));
    home.into_iter().chain(["/var/tmp".into(), "/tmp".into()]).collect()
}

/// An open file without a name in `dir`.
fn nameless(dir: &Path) -> Result<OwnedFd, Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, dir, flags | OFlags::TMPFILE, mode) {
        // File systems without O_TMPFILE say the first, kernels without it the second.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        other => return other,
    }
    named_and_unlinked(dir, flags, mode)
}

fn named_and_unlinked(dir: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let now = crate::steps::monotonic_ns();
    let path = dir.join(format!(".muster-disk-{}-{now}", std::process::id()));
    let file = rustix::fs::openat(CWD, &path, flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)?;
    rustix::fs::unlinkat(CWD, &path, AtFlags::empty())?;
    Ok(file)
}

/// Switches to direct I/O, if a block can then be written.
fn takes_direct(file: &OwnedFd) -> Result<bool, Halt> {
    let Ok(flags) = rustix::fs::fcntl_getfl(file) else { return Ok(false) };
    if rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT).is_err() {
        return Ok(false);
    }
    let mut block = Aligned::new(4096)?;
    if rustix::io::pwrite(file, block.bytes(), 0) == Err(Errno::INVAL) {
        return rustix::fs::fcntl_setfl(file, flags)
            .map(|()| false)
            .map_err(|e| Halt::Failed(format!("cannot leave direct I/O: {e}")));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_never_has_a_name_where_the_file_system_can_do_without() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(Some(dir.path()), 1 << 20).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(scratch.dir, dir.path());
    }

    #[test]
    fn a_named_file_is_unlinked_at_once_and_still_usable() {
        let dir = tempfile::tempdir().unwrap();
        let file = named_and_unlinked(dir.path(), OFlags::RDWR, Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(rustix::io::pwrite(&file, b"abc", 0), Ok(3));
    }

    #[test]
    fn a_file_that_would_fill_the_disk_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        match Scratch::new(Some(dir.path()), 1 << 60) {
            Err(Halt::NotRun(why)) => assert!(why.contains("MiB free") && why.contains(dir.path().to_str().unwrap())),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_given_directory_that_cannot_be_used_is_named_and_not_replaced() {
        match Scratch::new(Some(Path::new("/nowhere/at/all")), 1 << 20) {
            Err(Halt::Failed(why)) => assert!(why.contains("/nowhere/at/all"), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_in_memory_is_not_called_direct() {
        if let Ok(scratch) = Scratch::new(Some(Path::new("/dev/shm")), 1 << 20) {
            assert!(!scratch.direct);
        }
    }

    #[test]
    fn no_space_is_said_in_words() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(Some(dir.path()), 1 << 20).unwrap();
        assert!(matches!(scratch.halt("write", Errno::NOSPC), Halt::Failed(why) if why.contains("no space left")));
    }
}
