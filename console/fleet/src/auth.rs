//! Who are we to the node? Keys from the inventory, the SSH configuration, the agent and the usual files.

use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{HashAlg, PrivateKeyWithHashAlg, PublicKey};

use crate::connection::Peer;
use crate::context::Shared;
use crate::keyring::KeyFile;
use crate::link::{Failure, FailureKind, Phase};
use crate::target::Target;

/// OpenSSH's `MaxAuthTries` is 6; the last is left for a person.
const TRIES: usize = 5;

/// What was tried, for the message.
#[derive(Default)]
struct Attempts {
    tried: Vec<String>,
    skipped: Vec<String>,
    offered: Option<String>,
}

impl Attempts {
    fn note(&mut self, what: String, result: &AuthResult) -> bool {
        self.tried.push(what);
        match result {
            AuthResult::Success => true,
            AuthResult::Failure { remaining_methods, .. } => {
                let names: Vec<&'static str> = remaining_methods.iter().map(Into::into).collect();
                self.offered = Some(names.join(", "));
                false
            }
        }
    }

    fn spent(&self) -> bool {
        self.tried.len() >= TRIES
    }
}

/// Logs in, or says what was tried.
pub(crate) async fn login(handle: &mut Handle<Peer>, target: &Target, shared: &Shared) -> Result<(), Failure> {
    let mut attempts = Attempts::default();
    let named = !target.identities.is_empty();
    let mut wanted = Vec::new();
    if named && with_files(handle, target, shared, &mut attempts, &mut wanted).await? {
        return Ok(());
    }
    if with_agent(handle, target, &mut attempts, &wanted).await? {
        return Ok(());
    }
    if !named && with_files(handle, target, shared, &mut attempts, &mut wanted).await? {
        return Ok(());
    }
    Err(refused(target, &attempts))
}

async fn with_files(
    handle: &mut Handle<Peer>,
    target: &Target,
    shared: &Shared,
    attempts: &mut Attempts,
    wanted: &mut Vec<PublicKey>,
) -> Result<bool, Failure> {
    let named = !target.identities.is_empty();
    let paths = if named { &target.identities } else { &shared.settings.identities };
    for path in paths {
        if attempts.spent() {
            break;
        }
        match shared.keys.file(path) {
            KeyFile::Usable(key, certificate) => {
                let shown = format!("{} ({})", path.display(), key.algorithm());
                for certificate in shared.keys.certificates(target, key.public_key(), certificate) {
                    let sent = handle.authenticate_openssh_cert(&target.user, key.clone(), certificate).await;
                    let result = sent.map_err(|e| broken(target, &e))?;
                    if attempts.note(format!("certificate of {shown}"), &result) {
                        return Ok(true);
                    }
                }
                let hash = rsa_hash(handle, key.public_key(), target).await?;
                let key = PrivateKeyWithHashAlg::new(key, hash);
                let result = handle.authenticate_publickey(&target.user, key).await.map_err(|e| broken(target, &e))?;
                if attempts.note(shown, &result) {
                    return Ok(true);
                }
            }
            KeyFile::Unusable(why, public) => {
                attempts.skipped.push(why);
                wanted.extend(public);
            }
            KeyFile::Absent if named => attempts.skipped.push(format!("key {} does not exist", path.display())),
            KeyFile::Absent => {}
        }
    }
    Ok(false)
}

async fn with_agent(
    handle: &mut Handle<Peer>,
    target: &Target,
    attempts: &mut Attempts,
    wanted: &[PublicKey],
) -> Result<bool, Failure> {
    let Some(socket) = &target.agent else { return Ok(false) };
    let mut agent = match AgentClient::connect_uds(socket).await {
        Ok(agent) => agent,
        Err(e) => {
            attempts.skipped.push(format!("the agent at {} does not answer: {e}", socket.display()));
            return Ok(false);
        }
    };
    if let Some(binding) = handle.agent_session_binding() {
        // Older agents do not know it and need it not.
        let _ = agent.bind_session(binding, false).await;
    }
    let mut identities = match agent.request_identities().await {
        Ok(identities) => identities,
        Err(e) => {
            attempts.skipped.push(format!("the agent gave no keys: {e}"));
            return Ok(false);
        }
    };
    let named = |identity: &AgentIdentity| wanted.iter().any(|key| key.key_data() == identity.public_key().key_data());
    // Keys of files that we could not use come first.
    identities.sort_by_key(|identity| !named(identity));
    if target.identities_only {
        identities.retain(named);
    }
    for identity in identities {
        if attempts.spent() {
            attempts.skipped.push(format!("more keys in the agent than the {TRIES} tries a server allows"));
            break;
        }
        let shown = format!("agent key {} ({})", identity.comment(), identity.public_key().algorithm());
        let hash = rsa_hash(handle, &identity.public_key(), target).await?;
        let result = match &identity {
            AgentIdentity::PublicKey { key, .. } => {
                handle.authenticate_publickey_with(&target.user, key.clone(), hash, &mut agent).await
            }
            AgentIdentity::Certificate { certificate, .. } => {
                handle.authenticate_certificate_with(&target.user, certificate.clone(), hash, &mut agent).await
            }
        };
        match result {
            Ok(result) if attempts.note(shown.clone(), &result) => return Ok(true),
            Ok(_) => {}
            Err(e) => attempts.skipped.push(format!("{shown}: {e}")),
        }
    }
    Ok(false)
}

/// Asked only for RSA keys: for others the question costs a wait and changes nothing.
async fn rsa_hash(handle: &Handle<Peer>, key: &PublicKey, target: &Target) -> Result<Option<HashAlg>, Failure> {
    if !key.algorithm().is_rsa() {
        return Ok(None);
    }
    let best = handle.best_supported_rsa_hash().await.map_err(|e| broken(target, &e))?;
    Ok(best.unwrap_or(Some(HashAlg::Sha256)))
}

fn broken(target: &Target, error: &russh::Error) -> Failure {
    let what = format!("as {}: the connection broke: {error}", target.user);
    Failure::new(&target.node, Phase::Login, FailureKind::Dropped, what)
}

fn refused(target: &Target, attempts: &Attempts) -> Failure {
    let mut what = format!("as {}: ", target.user);
    let kind = if attempts.tried.is_empty() { FailureKind::NoKey } else { FailureKind::LoginRefused };
    if attempts.tried.is_empty() {
        what.push_str("no usable key");
    } else {
        what.push_str(&format!("refused; tried {}", attempts.tried.join(", ")));
    }
    if !attempts.skipped.is_empty() {
        what.push_str(&format!("; not tried: {}", attempts.skipped.join(", ")));
    }
    if let Some(offered) = attempts.offered.as_ref().filter(|offered| !offered.is_empty()) {
        what.push_str(&format!("; the server accepts {offered}"));
    }
    if kind == FailureKind::LoginRefused {
        what.push_str(" (a locked account or a missing login shell is refused in the same way)");
    }
    Failure::new(&target.node, Phase::Login, kind, what)
}
