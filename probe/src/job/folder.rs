//! A folder by a path that a person gave. Links in it are followed only where nobody but root and this login can have put them: whoever may
//! write on the way could lead a probe of root to any folder otherwise.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use super::open::{listed, within};

/// Links and names on the way, links' own ones included.
const LINKS: usize = 40;
const NAMES: usize = 256;

/// A folder that is held open, so that nothing on the way to it can be exchanged any more.
pub(super) struct Folder {
    held: OwnedFd,
    /// As the person wrote it.
    shown: PathBuf,
}

impl Folder {
    /// Opens it; an error says why not, nothing is returned where it does not answer in time.
    pub(super) fn open(path: &Path) -> Option<io::Result<Self>> {
        let me = rustix::process::geteuid().as_raw();
        let way = path.to_owned();
        let held = within(super::files::PATIENCE, move || walk(&way, &|user| user == 0 || user == me))?;
        Some(held.map(|held| Self { held, shown: path.to_owned() }))
    }

    /// A folder in it; links are not followed, nothing where it is none.
    pub(super) fn child(&self, name: &str) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(&self.held, name, flags, Mode::empty()).ok()?;
        Some(Self { held, shown: self.shown.join(name) })
    }

    /// Names in it, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        listed(&self.path())
    }

    /// Where a file of it lies, for this process, and how that is called.
    pub(super) fn file(&self, name: &str) -> (PathBuf, String) {
        (self.path().join(name), self.shown.join(name).display().to_string())
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.held.as_raw_fd()))
    }
}

/// Goes to `path` name by name; `trusted` says whose links are followed.
fn walk(path: &Path, trusted: &dyn Fn(u32) -> bool) -> io::Result<OwnedFd> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = || rustix::fs::open("/", folder, Mode::empty());
    let mut at = root()?;
    let mut names: VecDeque<OsString> = names(path).collect();
    let mut links = 0;
    while let Some(name) = names.pop_front() {
        let next = rustix::fs::openat(&at, &name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let status = rustix::fs::fstat(&next)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => at = next,
            FileType::Symlink if !trusted(status.st_uid) => {
                let user = status.st_uid;
                let why = format!("{} on the way is a link of user {user}: not followed", name.to_string_lossy());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            FileType::Symlink => {
                links += 1;
                let target = rustix::fs::readlinkat(&next, "", Vec::new())?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    at = root()?;
                }
                self::names(&target).rev().for_each(|name| names.push_front(name));
                if links > LINKS || names.len() > NAMES {
                    return Err(io::Error::other("too many links on the way"));
                }
            }
            _ => return Err(io::ErrorKind::NotADirectory.into()),
        }
    }
    Ok(at)
}

fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_on_the_way_are_followed_only_where_root_or_this_login_put_them() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("real/logs")).unwrap();
        std::fs::write(at("real/logs/rank_0.log"), "x").unwrap();
        symlink("real", at("short")).unwrap();
        symlink(at("real/logs"), at("whole")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for path in ["real/logs", "short/logs", "whole", "short/../real/logs"] {
            let folder = Folder::open(&at(path)).unwrap().unwrap();
            assert_eq!(folder.names(), ["rank_0.log"], "{path}");
            let (file, shown) = folder.file("rank_0.log");
            assert_eq!(std::fs::read_to_string(file).unwrap(), "x");
            assert_eq!(shown, at(path).join("rank_0.log").display().to_string());
        }
        let real = Folder::open(&at("real")).unwrap().unwrap();
        assert_eq!(real.child("logs").unwrap().names(), ["rank_0.log"]);
        assert!(real.child("none").is_none() && Folder::open(dir.path()).unwrap().unwrap().child("short").is_none());
        let refused = walk(&at("short/logs"), &|_| false).unwrap_err();
        assert!(refused.to_string().starts_with("short on the way is a link of user"), "{refused}");
        assert!(walk(&at("real/logs"), &|_| false).is_ok());
        assert!(walk(&at("loop"), &|_| true).is_err());
        assert!(walk(&at("real/logs/rank_0.log"), &|_| true).is_err());
        assert_eq!(walk(&at("none"), &|_| true).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
