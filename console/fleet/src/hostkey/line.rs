//! What does one line of a `known_hosts` file say?

use std::path::PathBuf;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use russh::keys::PublicKey;
use russh::keys::ssh_key::Algorithm;
use russh::keys::ssh_key::known_hosts::HostPatterns;
use sha1::Sha1;

use crate::pattern;

/// A line that OpenSSH would skip, and so do we.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
    /// Why it cannot be used.
    pub reason: &'static str,
}

/// What a line says about its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    HostKey,
    CertAuthority,
    Revoked,
}

/// One usable line.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) marker: Marker,
    pub(super) hosts: HostPatterns,
    pub(super) key: PublicKey,
    pub(super) file: Arc<PathBuf>,
    pub(super) line: usize,
}

/// The parts of a line: `None` for comments and empty lines.
pub(super) fn parse(line: &str) -> Result<Option<(Marker, HostPatterns, PublicKey)>, &'static str> {
    let line = line.trim_matches([' ', '\t', '\r']);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let mut word = || words.next().ok_or("expected [marker] hosts key-type key");
    let mut hosts = word()?;
    let marker = match hosts {
        "@cert-authority" => Marker::CertAuthority,
        "@revoked" => Marker::Revoked,
        other if other.starts_with('@') => return Err("unknown marker; expected @cert-authority or @revoked"),
        _ => Marker::HostKey,
    };
    if marker != Marker::HostKey {
        hosts = word()?;
    }
    let key = format!("{} {}", word()?, word()?);
    let key = PublicKey::from_openssh(&key).map_err(|_| "the key is not readable")?;
    if matches!(key.algorithm(), Algorithm::Other(_)) {
        return Err("a key type that is not known");
    }
    let hosts = if hosts.starts_with('|') { hosts.to_owned() } else { hosts.to_ascii_lowercase() };
    let hosts: HostPatterns = hosts.parse().map_err(|_| "the host names are not readable")?;
    Ok(Some((marker, hosts, key)))
}

/// Whether the line speaks of `name`, which is in lower case and has its port where that is not 22.
pub(super) fn speaks_of(hosts: &HostPatterns, name: &str) -> bool {
    match hosts {
        HostPatterns::Patterns(patterns) => pattern::matches_any(patterns.iter().map(String::as_str), name),
        HostPatterns::HashedName { salt, hash } => hashed(salt, name) == *hash,
    }
}

/// HMAC-SHA1 of a host name, as `HashKnownHosts` stores it.
pub(super) fn hashed(salt: &[u8], name: &str) -> [u8; 20] {
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(salt) else { unreachable!("HMAC takes keys of every length") };
    mac.update(name.as_bytes());
    mac.finalize().into_bytes().into()
}

/// How `known_hosts` names a host: the bare name on port 22, `[name]:port` elsewhere; always in lower case.
pub(super) fn host_name(host: &str, port: u16) -> String {
    let host = host.to_ascii_lowercase();
    if port == 22 || port == 0 { host } else { format!("[{host}]:{port}") }
}
