//! Is this host key the one on record? The judgement that a connection asks for, and the recording of new keys.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use russh::keys::{Algorithm, HashAlg, PublicKey, PublicKeyOrCertificate};

use crate::hostkey::{KnownHosts, Verdict};
use crate::link::FailureKind;
use crate::settings::HostKeyPolicy;
use crate::target::Records;

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
}

impl Trust {
    pub(crate) fn new(records: &Records) -> Self {
        let (known, unusable) = match KnownHosts::load(&records.files) {
            Ok(known) => (known, None),
            Err(e) => (KnownHosts::default(), Some(e.to_string())),
        };
        for skipped in known.skipped() {
            log::debug!("{}:{}: {}", skipped.file.display(), skipped.line, skipped.reason);
        }
        let file = records.files.first().cloned();
        Self { known: RwLock::new(known), unusable, policy: records.policy, file }
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
            Verdict::Unknown => match (self.policy, &self.file) {
                (HostKeyPolicy::Strict, _) | (_, None) => {
                    refuse(FailureKind::HostKeyUnknown, format!("{shown} is not recorded for {host}; refused"))
                }
                (HostKeyPolicy::AcceptNew, Some(file)) => self.record(file, (host, port), &key),
            },
        }
    }

    fn record(&self, file: &Path, name: (&str, u16), key: &PublicKey) -> Result<(), Refusal> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let shown = key.fingerprint(HashAlg::Sha256);
        known.remember(file, name, key, false).map_err(|e| Refusal {
            kind: FailureKind::KnownHosts,
            what: format!("new key {shown} cannot be recorded: {e}; refused"),
        })?;
        log::info!("{}: new host key {shown} recorded in {}", name.0, file.display());
        Ok(())
    }
}
