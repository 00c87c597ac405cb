//! What do the recorded keys say about the key a host shows now?

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use russh::keys::ssh_key::known_hosts::HostPatterns;
use russh::keys::ssh_key::{Algorithm, EcdsaCurve};
use russh::keys::{HashAlg, PublicKey};

use super::line::{self, Entry, Marker, Skipped};

/// The answer for one host key. Only [`Verdict::Known`] lets the connection go on; [`Verdict::Unknown`] leaves it to the
/// policy for new hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The key, or the authority that signed it, is recorded for this host.
    Known,
    /// Another key of the same type is recorded: the host was reinstalled, or somebody is in between.
    Changed {
        /// File of the recorded key.
        file: PathBuf,
        /// Its line, counted from 1.
        line: usize,
        /// Type and SHA-256 fingerprint of the recorded key.
        recorded: String,
    },
    /// Only keys of other types are recorded. OpenSSH calls this changed as well; it must not count as a new host.
    OtherTypes {
        /// File of the first recorded key.
        file: PathBuf,
        /// Its line, counted from 1.
        line: usize,
        /// Types and SHA-256 fingerprints of the recorded keys.
        recorded: Vec<String>,
    },
    /// The key, or the authority that signed it, is marked `@revoked`.
    Revoked {
        /// File of the mark.
        file: PathBuf,
        /// Its line, counted from 1.
        line: usize,
    },
    /// A trusted authority signed the host's certificate, and yet it does not hold here and now.
    BadCertificate {
        /// Why not.
        reason: String,
    },
    /// Nothing is recorded for this host.
    Unknown,
}

/// The lines of all `known_hosts` files in force.
#[derive(Debug, Clone, Default)]
pub struct KnownHosts {
    entries: Vec<Entry>,
    /// Lines by their names, where these are plain: a fleet's file has thousands, and each host needs a few.
    exact: HashMap<String, Vec<usize>>,
    /// Lines with patterns, negations or hashed names, which must be tried one by one.
    tried: Vec<usize>,
    skipped: Vec<Skipped>,
}

impl KnownHosts {
    /// Reads the files in order; one that does not exist is an empty one.
    ///
    /// A file that exists and cannot be read is an error: treating it as empty would make every host a new one.
    pub fn load<P: AsRef<Path>>(files: &[P]) -> io::Result<Self> {
        let mut known = Self::default();
        for file in files {
            let file = file.as_ref();
            match std::fs::read(file) {
                Ok(bytes) => known.add(&String::from_utf8_lossy(&bytes), file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{}: {error}", file.display())));
                }
            }
        }
        Ok(known)
    }

    /// Adds the lines of a file that has been read already.
    pub fn add(&mut self, text: &str, file: &Path) {
        let file = Arc::new(file.to_owned());
        for (index, line) in text.split('\n').enumerate() {
            match line::parse(line) {
                Ok(None) => {}
                Ok(Some((marker, hosts, key))) => {
                    self.push(Entry { marker, hosts, key, file: file.clone(), line: index + 1 });
                }
                Err(reason) => {
                    self.skipped.push(Skipped { file: file.as_ref().clone(), line: index + 1, reason });
                }
            }
        }
    }

    fn push(&mut self, entry: Entry) {
        let place = self.entries.len();
        match &entry.hosts {
            HostPatterns::Patterns(names) if names.iter().all(|name| !name.contains(['*', '?', '!'])) => {
                for name in names {
                    self.exact.entry(name.clone()).or_default().push(place);
                }
            }
            _ => self.tried.push(place),
        }
        self.entries.push(entry);
    }

    /// Lines that could not be used.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Judges the plain key that `host` shows on `port`.
    ///
    /// As in OpenSSH, a host on another port than 22 that is not recorded with its port is also looked up without it,
    /// and trusted if just that key is there.
    pub fn check(&self, host: &str, port: u16, key: &PublicKey) -> Verdict {
        let verdict = self.check_name(&line::host_name(host, port), key);
        if verdict != Verdict::Unknown || line::host_name(host, port) == line::host_name(host, 22) {
            return verdict;
        }
        match self.check_name(&line::host_name(host, 22), key) {
            found @ (Verdict::Known | Verdict::Revoked { .. }) => found,
            _ => Verdict::Unknown,
        }
    }

    fn check_name(&self, name: &str, key: &PublicKey) -> Verdict {
        let entries = self.about(name);
        if let Some(revoked) = revocation(&entries, key) {
            return revoked;
        }
        let recorded: Vec<&Entry> = entries.into_iter().filter(|entry| entry.marker == Marker::HostKey).collect();
        if recorded.iter().any(|entry| entry.key.key_data() == key.key_data()) {
            return Verdict::Known;
        }
        let same_type = recorded.iter().find(|entry| entry.key.algorithm() == key.algorithm());
        match (same_type, recorded.first()) {
            (Some(entry), _) => {
                Verdict::Changed { file: entry.file.as_ref().clone(), line: entry.line, recorded: describe(&entry.key) }
            }
            (None, Some(entry)) => Verdict::OtherTypes {
                file: entry.file.as_ref().clone(),
                line: entry.line,
                recorded: recorded.iter().map(|entry| describe(&entry.key)).collect(),
            },
            (None, None) => Verdict::Unknown,
        }
    }

    /// Key algorithms to offer to this host so that it shows a key that is recorded; empty when none is.
    ///
    /// Without this restriction a host with several keys may show one that is not recorded, which looks like a change.
    pub fn algorithms(&self, host: &str, port: u16) -> Vec<Algorithm> {
        let mut entries = self.about(&line::host_name(host, port));
        entries.retain(|entry| entry.marker == Marker::HostKey);
        if entries.is_empty() {
            entries = self.about(&line::host_name(host, 22));
            entries.retain(|entry| entry.marker == Marker::HostKey);
        }
        let recorded = |algorithm: &Algorithm| {
            let plain = match algorithm {
                Algorithm::Rsa { .. } => &Algorithm::Rsa { hash: None },
                other => other,
            };
            entries.iter().any(|entry| entry.key.algorithm() == *plain)
        };
        offered().into_iter().filter(recorded).collect()
    }

    /// Whether some authority is trusted to sign for this host, so that certificates are worth asking for.
    pub fn has_authority(&self, host: &str, port: u16) -> bool {
        !self.authorities(&line::host_name(host, port)).is_empty()
    }

    /// Keys of the authorities that may sign for `name`.
    pub(super) fn authorities(&self, name: &str) -> Vec<&Entry> {
        self.about(name).into_iter().filter(|entry| entry.marker == Marker::CertAuthority).collect()
    }

    /// Every line that speaks of `name`, in the order of the files.
    pub(super) fn about(&self, name: &str) -> Vec<&Entry> {
        let mut places = self.exact.get(name).cloned().unwrap_or_default();
        places.extend(self.tried.iter().filter(|place| line::speaks_of(&self.entries[**place].hosts, name)));
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| &self.entries[place]).collect()
    }
}

/// The mark that revokes `key` among these lines.
pub(super) fn revocation(entries: &[&Entry], key: &PublicKey) -> Option<Verdict> {
    let mark = |entry: &&&Entry| entry.marker == Marker::Revoked && entry.key.key_data() == key.key_data();
    let entry = entries.iter().find(mark)?;
    Some(Verdict::Revoked { file: entry.file.as_ref().clone(), line: entry.line })
}

/// Host key algorithms that can be checked here, the best first. SHA-1 signatures and DSA are never offered.
fn offered() -> Vec<Algorithm> {
    vec![
        Algorithm::Ed25519,
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
        Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
        Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
    ]
}

fn describe(key: &PublicKey) -> String {
    format!("{} {}", key.algorithm().as_str(), key.fingerprint(HashAlg::Sha256))
}

#[cfg(test)]
mod tests {
    use super::super::line::hashed;
    use super::*;
    use proptest::prelude::*;
    use russh::keys::ssh_key::private::Ed25519Keypair;
    use russh::keys::ssh_key::public::KeyData;

    const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=";

    fn key(seed: u8) -> PublicKey {
        PublicKey::from(KeyData::from(Ed25519Keypair::from_seed(&[seed; 32]).public))
    }

    fn line(seed: u8) -> String {
        key(seed).to_openssh().unwrap()
    }

    fn known(text: &str) -> KnownHosts {
        let mut known = KnownHosts::default();
        known.add(text, Path::new("kh"));
        known
    }

    #[test]
    fn a_revoked_key_is_refused_even_beside_a_line_that_trusts_it() {
        let text = format!("h {}\n@revoked * {}\n", line(1), line(1));
        assert_eq!(known(&text).check("h", 22, &key(1)), Verdict::Revoked { file: "kh".into(), line: 2 });
        assert!(matches!(known(&text).check("h", 22, &key(2)), Verdict::Changed { line: 1, .. }));
        let text = format!("h {}\n@revoked other {}\n", line(1), line(1));
        assert_eq!(known(&text).check("h", 22, &key(1)), Verdict::Known);
    }

    #[test]
    fn wildcards_negation_ports_tabs_case_and_line_ends_are_read_as_openssh_reads_them() {
        let one = line(1);
        for (text, host, port, expected) in [
            (format!("[127.0.0.*]:2222 {one}"), "127.0.0.9", 2222, true),
            (format!("127.0.0.* {one}"), "127.0.0.9", 22, true),
            (format!("*.lab,!bad.lab {one}"), "good.lab", 22, true),
            (format!("*.lab,!bad.lab {one}"), "bad.lab", 22, false),
            (format!("h\t{}", one.replace(' ', "\t")), "h", 22, true),
            (format!("  Host.Lab   {one} a comment # here\r\n"), "hOST.lab", 22, true),
            (format!("a,b,c {one}"), "b", 22, true),
            (format!("[h]:2222 {one}"), "h", 22, false),
            (format!("[h]:2222 {one}"), "h", 2222, true),
            // Recorded without its port: OpenSSH takes just that key.
            (format!("h {one}"), "h", 2222, true),
            (format!("# h {one}"), "h", 22, false),
            (format!("h\u{e4} {one}\nh {one}"), "h", 22, true),
        ] {
            let verdict = known(&text).check(host, port, &key(1));
            assert_eq!(verdict == Verdict::Known, expected, "{text} for {host}:{port}: {verdict:?}");
        }
        assert_eq!(known(&format!("h {one}")).check("h", 2222, &key(2)), Verdict::Unknown);
    }

    #[test]
    fn hashed_names_match_with_and_without_a_port() {
        let hashed_name = |name: &str| {
            let salt = vec![7; 20];
            let hash = hashed(&salt, name);
            HostPatterns::HashedName { salt, hash }.to_string()
        };
        let text = format!("{} {}\n{} {}\n", hashed_name("h"), line(1), hashed_name("[h]:22022"), line(2));
        assert_eq!(known(&text).check("H", 22, &key(1)), Verdict::Known);
        assert_eq!(known(&text).check("h", 22022, &key(2)), Verdict::Known);
        assert!(matches!(known(&text).check("h", 22022, &key(1)), Verdict::Changed { line: 2, .. }));
        assert_eq!(known(&text).check("g", 22, &key(1)), Verdict::Unknown);
    }

    #[test]
    fn another_recorded_key_type_is_no_new_host_and_restricts_what_is_offered() {
        let text = format!("h {ECDSA}\n");
        let Verdict::OtherTypes { line: 1, recorded, .. } = known(&text).check("h", 22, &key(1)) else {
            panic!("not refused")
        };
        assert!(recorded[0].starts_with("ecdsa-sha2-nistp256 SHA256:"), "{recorded:?}");
        let offered: Vec<String> = known(&text).algorithms("h", 22).iter().map(ToString::to_string).collect();
        assert_eq!(offered, ["ecdsa-sha2-nistp256"]);
        assert_eq!(known(&text).algorithms("h", 2222).len(), 1);
        assert!(known(&text).algorithms("g", 22).is_empty());
        let both = format!("{text}h {}\n@revoked h {}\n", line(1), line(2));
        assert_eq!(known(&both).algorithms("h", 22).len(), 2);
        assert_eq!(known(&both).check("h", 22, &key(1)), Verdict::Known);
    }

    #[test]
    fn a_changed_key_names_the_recorded_one() {
        let text = format!("# one\nh {}\n", line(1));
        let Verdict::Changed { file, line: 2, recorded } = known(&text).check("h", 22, &key(2)) else {
            panic!("not changed")
        };
        assert_eq!(file, Path::new("kh"));
        assert_eq!(recorded, format!("ssh-ed25519 {}", key(1).fingerprint(HashAlg::Sha256)));
    }

    #[test]
    fn bad_lines_are_skipped_and_counted() {
        let text =
            format!("h\n@bogus h {0}\nh ssh-ed25519 AAAA\n|1|x {0}\nh ssh-new AAAAB3Nz\n\n# c\nh {0}\n", line(1));
        let known = known(&text);
        let lines: Vec<usize> = known.skipped().iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
        assert_eq!(known.check("h", 22, &key(1)), Verdict::Known);
    }

    #[test]
    fn a_missing_file_is_empty_and_an_unreadable_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(KnownHosts::load(&[folder.path().join("none")]).unwrap().entries.is_empty());
        let error = KnownHosts::load(&[folder.path()]).unwrap_err();
        assert!(error.to_string().contains(&folder.path().display().to_string()), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,80}|((@revoked |@cert-authority )?[a-z*!,|\\[\\]:1]{0,9}[ \t](ssh-ed25519|ssh-rsa) [A-Za-z0-9+/=]{0,40}\r?\n){0,4}") {
            let known = known(&text);
            known.check("a", 22, &key(1));
            known.algorithms("a", 1);
        }
    }
}
