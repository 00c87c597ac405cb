//! Files of others, opened with care: regular ones only, and nothing else in their place; and never waited for longer than agreed.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

/// Names that are listed in a folder.
const NAMES: usize = 65_536;

/// Whose a file must be to be read.
#[derive(Clone, Debug)]
pub(super) enum Owner {
    /// A process holds it open: it was opened with that process's rights.
    Opened,
    /// One of these users.
    Of(Vec<u32>),
    /// Whoever: a person named its folder.
    Named,
}

/// A regular file. What lies at `path` is looked at before it is opened, and is what is opened: a link, a pipe or a device put in its
/// place is refused, without having been touched.
pub(super) fn regular(path: &Path, owner: &Owner) -> io::Result<(File, Metadata)> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    // A process's open file is a link of the kernel's own, which leads to the file itself.
    if !matches!(owner, Owner::Opened) {
        flags |= OFlags::NOFOLLOW;
    }
    let found = rustix::fs::open(path, flags, Mode::empty())?;
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
    if kind != rustix::fs::FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no regular file"));
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(format!("/proc/self/fd/{}", found.as_raw_fd()), flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if let Owner::Of(users) = owner
        && !users.contains(&metadata.uid())
    {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it belongs to a user who has no process of the job",
        ));
    }
    Ok((file, metadata))
}

/// All of a file that is not longer than `most`.
pub(super) fn whole(mut file: File, length: u64, most: u64) -> io::Result<Vec<u8>> {
    if length > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{length} bytes, more than {most}")));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first `head` and the last `tail` bytes of a file, in whole lines, with a line between them that says how much is left out.
pub(super) fn ends(mut file: File, length: u64, head: u64, tail: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if length <= head + tail {
        file.take(head + tail).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    file.by_ref().take(head).read_to_end(&mut bytes)?;
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1));
    file.seek(SeekFrom::Start(length - tail))?;
    let mut end = Vec::new();
    file.take(tail).read_to_end(&mut end)?;
    let from = end.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let left_out = length - bytes.len() as u64 - (end.len() - from) as u64;
    bytes.extend_from_slice(format!("\n[{left_out} bytes are left out here]\n").as_bytes());
    bytes.extend_from_slice(&end[from..]);
    Ok(bytes)
}

/// What `work` gives, or nothing when it takes longer than `limit`: storage that does not answer holds up a thread, not the probe.
pub(super) fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (give, take) = mpsc::channel();
    let started = thread::Builder::new().name("job-file".to_owned()).spawn(move || {
        // Nobody waits any more: then it is not wanted.
        let _ = give.send(work());
    });
    started.ok()?;
    take.recv_timeout(limit).ok()
}

/// Names in a folder, sorted; none where it does not answer in time.
pub(super) fn listed(folder: &Path) -> Vec<String> {
    let folder = folder.to_owned();
    let names = within(super::files::PATIENCE, move || {
        let entries = std::fs::read_dir(folder).ok()?;
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).take(NAMES).collect();
        names.sort_unstable();
        Some(names)
    });
    names.flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_pipes_folders_and_devices_are_refused_untouched() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "x").unwrap();
        symlink(at("file"), at("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(regular(&at("file"), &Owner::Named).is_ok());
        for name in ["link", "pipe", "."] {
            assert!(regular(&at(name), &Owner::Named).is_err(), "{name}");
        }
        assert!(regular(Path::new("/dev/null"), &Owner::Named).is_err());
        let uid = rustix::process::getuid().as_raw();
        assert!(regular(&at("file"), &Owner::Of(vec![uid])).is_ok());
        assert!(regular(&at("file"), &Owner::Of(vec![uid + 1])).is_err());
    }

    #[test]
    fn a_long_file_is_cut_in_its_middle_at_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let text: String = (0..1_000).map(|n| format!("line {n}\n")).collect();
        std::fs::write(&path, &text).unwrap();
        let (file, metadata) = regular(&path, &Owner::Named).unwrap();
        let cut = String::from_utf8(ends(file, metadata.len(), 25, 30).unwrap()).unwrap();
        let left_out = text.len() - 21 - 27;
        let expected =
            format!("line 0\nline 1\nline 2\n\n[{left_out} bytes are left out here]\nline 997\nline 998\nline 999\n");
        assert_eq!(cut, expected);
        let (file, metadata) = regular(&path, &Owner::Named).unwrap();
        assert_eq!(ends(file, metadata.len(), 5_000, 5_000).unwrap(), text.as_bytes());
        let (file, metadata) = regular(&path, &Owner::Named).unwrap();
        assert!(whole(file, metadata.len(), 100).is_err());
    }

    #[test]
    fn work_that_hangs_is_not_waited_for() {
        assert_eq!(within(Duration::from_millis(20), || thread::sleep(Duration::from_secs(5))), None);
        assert_eq!(within(Duration::from_secs(5), || 7), Some(7));
    }
}
