//! Which keys are there? Files with keys and certificates, each read once for the whole fleet.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use russh::keys::{Certificate, PrivateKey, PublicKey};

use crate::target::Target;

/// A key file, read once for the whole fleet.
#[derive(Clone)]
pub(crate) enum KeyFile {
    Usable(Arc<PrivateKey>, Option<Box<Certificate>>),
    /// Why not; and its public half, if known, by which the agent may have it.
    Unusable(String, Option<PublicKey>),
    Absent,
}

/// Key files read so far.
#[derive(Default)]
pub(crate) struct KeyRing {
    files: Mutex<HashMap<PathBuf, KeyFile>>,
}

impl KeyRing {
    /// Certificates of a key: those that the configuration names, then the one beside it.
    pub(crate) fn certificates(
        &self,
        target: &Target,
        key: &PublicKey,
        beside: Option<Box<Certificate>>,
    ) -> Vec<Certificate> {
        let named = target.certificates.iter().filter_map(|path| russh::keys::load_openssh_certificate(path).ok());
        named
            .chain(beside.map(|certificate| *certificate))
            .filter(|certificate| certificate.public_key() == key.key_data())
            .collect()
    }

    pub(crate) fn file(&self, path: &Path) -> KeyFile {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.entry(path.to_path_buf()).or_insert_with(|| read(path)).clone()
    }
}

fn read(path: &Path) -> KeyFile {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let shown = path.display();
    match russh::keys::load_secret_key(path, None) {
        Ok(key) => {
            let certificate = russh::keys::load_openssh_certificate(beside("-cert.pub")).ok().map(Box::new);
            KeyFile::Usable(Arc::new(key), certificate)
        }
        Err(russh::keys::Error::IO(e)) if e.kind() == std::io::ErrorKind::NotFound => {
            match russh::keys::load_public_key(beside(".pub")) {
                Ok(public) => KeyFile::Unusable(format!("of key {shown} only the public half is here"), Some(public)),
                Err(_) => KeyFile::Absent,
            }
        }
        Err(russh::keys::Error::IO(e)) => KeyFile::Unusable(format!("key {shown} cannot be read: {e}"), None),
        Err(e) => {
            let public =
                russh::keys::load_public_key(beside(".pub")).or_else(|_| russh::keys::load_public_key(path)).ok();
            let why = if encrypted(path, &e) {
                format!("key {shown} is encrypted; add it to ssh-agent")
            } else {
                format!("key {shown} is not a private key we understand: {e}")
            };
            KeyFile::Unusable(why, public)
        }
    }
}

fn encrypted(path: &Path, error: &russh::keys::Error) -> bool {
    if matches!(error, russh::keys::Error::KeyIsEncrypted) {
        return true;
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.contains("ENCRYPTED") || PrivateKey::from_openssh(&text).is_ok_and(|key| key.is_encrypted())
}
