//! How is the key of a new host written down, so that no other line and no other program's line is harmed?

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use russh::keys::PublicKey;
use russh::keys::ssh_key::known_hosts::HostPatterns;

use super::KnownHosts;
use super::line;

impl KnownHosts {
    /// Writes down the key of a new host, and knows it from now on. See [`append`].
    pub fn remember(&mut self, file: &Path, name: (&str, u16), key: &PublicKey, hash: bool) -> io::Result<()> {
        let (line, text) = append(file, name, key, hash)?;
        let blank = "\n".repeat(line - 1);
        self.add(&format!("{blank}{text}"), file);
        Ok(())
    }
}

/// Appends a line for the host and port to `file`, the name hashed when `hash` is set; tells the line's number and text.
///
/// A missing file is made with mode 0600, its directory with 0700. The line goes out in one write at the end of the file,
/// under an exclusive lock, and is on disk when this returns; a last line without its newline is ended first.
pub fn append(file: &Path, name: (&str, u16), key: &PublicKey, hash: bool) -> io::Result<(usize, String)> {
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    let text = compose(&line::host_name(name.0, name.1), key, hash).map_err(told)?;
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(told)?;
    }
    let mut open = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(file).map_err(told)?;
    let line = write_line(&mut open, &text).map_err(told)?;
    Ok((line, text))
}

fn compose(name: &str, key: &PublicKey, hash: bool) -> io::Result<String> {
    // Such a name would be read back as a pattern, several names, or the next line.
    if name.is_empty()
        || name.starts_with(['#', '@', '|', '!'])
        || name.contains(|c: char| " ,*?".contains(c) || c.is_control())
    {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} cannot be written to known_hosts")));
    }
    let hosts = if hash {
        let mut salt = vec![0; 20];
        File::open("/dev/urandom")?.read_exact(&mut salt)?;
        let hash = line::hashed(&salt, name);
        HostPatterns::HashedName { salt, hash }.to_string()
    } else {
        name.to_owned()
    };
    let mut bare = key.clone();
    bare.set_comment("");
    let key = bare.to_openssh().map_err(io::Error::other)?;
    Ok(format!("{hosts} {}\n", key.trim_end()))
}

/// Writes the line and tells its number.
fn write_line(file: &mut File, text: &str) -> io::Result<usize> {
    file.lock()?;
    let mut before = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut before)?;
    let unended = before.last().is_some_and(|byte| *byte != b'\n');
    let whole = if unended { format!("\n{text}") } else { text.to_owned() };
    file.write_all(whole.as_bytes())?;
    file.sync_data()?;
    Ok(before.iter().filter(|byte| **byte == b'\n').count() + usize::from(unended) + 1)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use russh::keys::ssh_key::private::Ed25519Keypair;
    use russh::keys::ssh_key::public::KeyData;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    fn key(seed: u8) -> PublicKey {
        PublicKey::from(KeyData::from(Ed25519Keypair::from_seed(&[seed; 32]).public))
    }

    #[test]
    fn a_remembered_host_is_known_at_once_and_after_reading_the_file_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ssh/known_hosts");
        let mut known = KnownHosts::default();
        known.remember(&file, ("N1", 22), &key(1), false).unwrap();
        known.remember(&file, ("n2", 2222), &key(2), true).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        for known in [known, KnownHosts::load(&[&file]).unwrap()] {
            assert_eq!(known.check("n1", 22, &key(1)), Verdict::Known);
            assert_eq!(known.check("n2", 2222, &key(2)), Verdict::Known);
            assert!(matches!(known.check("n2", 2222, &key(1)), Verdict::Changed { line: 2, .. }));
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("n1 ssh-ed25519 ") && !text.contains("[n2]"), "{text}");
    }

    #[test]
    fn a_last_line_without_its_newline_is_not_run_into() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        std::fs::write(&file, format!("a {}", key(1).to_openssh().unwrap())).unwrap();
        assert_eq!(append(&file, ("b", 22), &key(2), false).unwrap().0, 2);
        let known = KnownHosts::load(&[&file]).unwrap();
        assert_eq!((known.check("a", 22, &key(1)), known.check("b", 22, &key(2))), (Verdict::Known, Verdict::Known));
    }

    #[test]
    fn names_that_would_be_read_back_as_something_else_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "a\nb", "a b", "*", "a,b", "!a", "#a", "@revoked", "|1|x", "a?"] {
            let error = append(&folder.path().join("known_hosts"), (name, 22), &key(1), false).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert!(!folder.path().join("known_hosts").exists());
    }

    #[test]
    fn many_writers_at_once_lose_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        std::thread::scope(|scope| {
            for seed in 0..16 {
                let file = &file;
                scope.spawn(move || append(file, (&format!("n{seed}"), 22), &key(seed), seed % 2 == 0).unwrap());
            }
        });
        let known = KnownHosts::load(&[&file]).unwrap();
        assert!(known.skipped().is_empty());
        assert!((0..16).all(|seed| known.check(&format!("n{seed}"), 22, &key(seed)) == Verdict::Known));
    }

    /// OpenSSH finds what we write, and we find what OpenSSH hashes.
    #[test]
    fn ssh_keygen_agrees_about_written_and_hashed_names() {
        if Command::new("ssh-keygen").arg("-?").output().is_err() {
            eprintln!("ssh-keygen is not installed: nothing compared");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        let keygen = |words: &[&str]| Command::new("ssh-keygen").args(words).arg("-f").arg(&file).output().unwrap();
        append(&file, ("plain", 22), &key(1), false).unwrap();
        append(&file, ("hidden", 2222), &key(2), true).unwrap();
        for (name, found) in [("plain", true), ("[hidden]:2222", true), ("hidden", false), ("other", false)] {
            assert_eq!(keygen(&["-F", name]).status.success(), found, "{name}");
        }
        assert!(keygen(&["-H"]).status.success());
        assert!(!std::fs::read_to_string(&file).unwrap().contains("plain"));
        let known = KnownHosts::load(&[&file]).unwrap();
        assert_eq!(known.check("plain", 22, &key(1)), Verdict::Known);
        assert_eq!(known.check("hidden", 2222, &key(2)), Verdict::Known);
        assert_eq!(known.check("hidden", 22, &key(2)), Verdict::Unknown);
    }
}
