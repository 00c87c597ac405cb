//! Is this host key the one on record? The judgement that a connection asks for, and the recording of new keys.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use russh::keys::{Algorithm, HashAlg, PublicKey, PublicKeyOrCertificate};

use crate::hostkey::{KnownHosts, Verdict, append};
use crate::link::FailureKind;
use crate::settings::HostKeyPolicy;
use crate::target::Records;
use crate::tell::Tell;

/// Why a host key was refused.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: FailureKind,
    pub(crate) what: String,
}

/// What a connection should ask the server for.
pub(crate) struct Wanted {
    /// Host key algorithms, best first; empty for any.
    pub(crate) keys: Vec<Algorithm>,
    /// Whether certificates can be judged.
    pub(crate) certificates: bool,
}

/// The recorded host keys and the policy for new ones.
pub(crate) struct Trust {
    known: RwLock<KnownHosts>,
    /// Why the records cannot be used; then no host is trusted.
    unusable: Option<String>,
    policy: HostKeyPolicy,
    file: Option<PathBuf>,
    tell: Tell,
    asked: Asked,
}

/// Keys that a person is to be asked about.
pub(crate) type Asked = Arc<Mutex<Vec<NewKey>>>;

/// The key of a host that is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    name: (String, u16),
    key: PublicKey,
    file: PathBuf,
}

impl NewKey {
    /// Records it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn record(&self) -> std::io::Result<()> {
        append(&self.file, (&self.name.0, self.name.1), &self.key, false).map(drop)
    }
}

impl std::fmt::Display for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let port = if self.name.1 == 22 { String::new() } else { format!(":{}", self.name.1) };
        write!(f, "{}{port} {} {}", self.name.0, self.key.algorithm(), self.key.fingerprint(HashAlg::Sha256))
    }
}

impl Trust {
    pub(crate) fn new(records: &Records, tell: Tell, asked: Asked) -> Self {
        let (known, unusable) = match KnownHosts::load(&records.files) {
            Ok(known) => (known, None),
            Err(e) => (KnownHosts::default(), Some(e.to_string())),
        };
        for skipped in known.skipped() {
            log::debug!("{}:{}: {}", skipped.file.display(), skipped.line, skipped.reason);
        }
        let file = records.files.first().cloned();
        Self { known: RwLock::new(known), unusable, policy: records.policy, file, tell, asked }
    }

    /// Whether there is a record of the host, whatever it says.
    pub(crate) fn knows(&self, host: &str, port: u16) -> bool {
        let Wanted { keys, certificates } = self.wanted(host, port);
        certificates || !keys.is_empty()
    }

    pub(crate) fn wanted(&self, host: &str, port: u16) -> Wanted {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Wanted { keys: known.algorithms(host, port), certificates: known.has_authority(host, port) }
    }

    pub(crate) fn check(&self, host: &str, port: u16, offered: &PublicKeyOrCertificate) -> Result<(), Refusal> {
        if let Some(why) = &self.unusable {
            let what = format!("the recorded keys cannot be read, so no host is trusted: {why}");
            return Err(Refusal { kind: FailureKind::KnownHosts, what });
        }
        let key = offered.public_key();
        let verdict = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            match offered {
                PublicKeyOrCertificate::PublicKey { key, .. } => known.check(host, port, key),
                PublicKeyOrCertificate::Certificate(certificate) => known.check_certificate(host, port, certificate),
            }
        };
        let shown = key.fingerprint(HashAlg::Sha256);
        let refuse = |kind, what: String| Err(Refusal { kind, what });
        match verdict {
            Verdict::Known => Ok(()),
            Verdict::Changed { file, line, recorded } => {
                let what = format!("changed: {}:{line} has {recorded}, node offered {shown}; refused", file.display());
                refuse(FailureKind::HostKeyChanged, what)
            }
            Verdict::OtherTypes { file, line, recorded } => {
                let recorded = recorded.join(" and ");
                let what = format!("changed: {}:{line} has {recorded}, node offered {shown}; refused", file.display());
                refuse(FailureKind::HostKeyChanged, what)
            }
            Verdict::Revoked { file, line } => {
                let what =
                    format!("revoked: {}:{line} revokes {shown}, which the node offered; refused", file.display());
                refuse(FailureKind::HostKeyRevoked, what)
            }
            Verdict::BadCertificate { reason } => {
                refuse(FailureKind::HostKeyChanged, format!("its certificate does not hold: {reason}; refused"))
            }
            Verdict::Unknown => self.unknown((host, port), key),
        }
    }

    fn unknown(&self, name: (&str, u16), key: PublicKey) -> Result<(), Refusal> {
        let said = format!("{} is not recorded for {}; refused", key.fingerprint(HashAlg::Sha256), name.0);
        let refused = |what: String| Err(Refusal { kind: FailureKind::HostKeyUnknown, what });
        match (self.policy, &self.file) {
            (HostKeyPolicy::Strict, _) | (_, None) => refused(said),
            (HostKeyPolicy::Ask, Some(file)) => {
                let new = NewKey { name: (name.0.to_owned(), name.1), key, file: file.clone() };
                self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(new);
                refused(format!("{said} (--host-keys accept-new records new keys)"))
            }
            (HostKeyPolicy::AcceptNew, Some(file)) => self.record(file, name, &key),
        }
    }

    fn record(&self, file: &Path, name: (&str, u16), key: &PublicKey) -> Result<(), Refusal> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let shown = key.fingerprint(HashAlg::Sha256);
        // Another connection to the same host may have been faster.
        match known.check(name.0, name.1, key) {
            Verdict::Unknown => {}
            Verdict::Known => return Ok(()),
            _ => {
                let what = format!("changed: it offered {shown} and another key a moment before; refused");
                return Err(Refusal { kind: FailureKind::HostKeyChanged, what });
            }
        }
        known.remember(file, name, key, false).map_err(|e| Refusal {
            kind: FailureKind::KnownHosts,
            what: format!("new key {shown} cannot be recorded: {e}; refused"),
        })?;
        self.tell.say(&format!("{}: new host key {shown} recorded in {}", name.0, file.display()));
        Ok(())
    }
}
