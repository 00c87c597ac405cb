//! How is a stream to a node made an SSH connection? Name, TCP, banner and key exchange, each with its own deadline and its own
//! words.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use russh::client::{self, Handle};
use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use russh::{Preferred, cipher, kex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::connection::Peer;
use crate::context::{Reporter, Shared};
use crate::link::{Failure, FailureKind, LinkState, Phase, spoken};
use crate::settings::Settings;
use crate::target::Target;
use crate::trust::{Refusal, Wanted};
use crate::watched::Beginning;

/// A TCP connection to one of the addresses of `target`.
pub(crate) async fn tcp(target: &Target, report: &Reporter) -> Result<TcpStream, Failure> {
    report.link(LinkState::Resolving).await;
    let addresses = timeout(target.connect, resolve(target)).await.unwrap_or_else(|_| {
        let what = format!("no answer about the name '{}' within {}", target.host, spoken(target.connect));
        Err(Failure::new(&target.node, Phase::Resolve, FailureKind::NoAddress, what))
    })?;
    report.link(LinkState::TcpConnect).await;
    let failed = |kind, what: String| Failure::new(&target.node, Phase::Connect, kind, what);
    let limit = target.connect / u32::try_from(addresses.len()).unwrap_or(1).max(1);
    let mut last = failed(FailureKind::NoAddress, format!("'{}' has no address", target.host));
    for address in addresses {
        match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small frames must not wait for Nagle; failing to say so only costs time.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(e)) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
                last = failed(FailureKind::Refused, format!("{address} refuses TCP (nothing listens there)"));
            }
            Ok(Err(e)) if e.kind() == std::io::ErrorKind::ConnectionReset => {
                last = failed(FailureKind::Dropped, format!("{address} reset TCP at once"));
            }
            Ok(Err(e)) => last = failed(FailureKind::Unreachable, format!("{address}: {e}")),
            Err(_) => {
                let what = format!("{address} does not answer TCP within {}", spoken(limit));
                last = failed(FailureKind::Unreachable, what);
            }
        }
    }
    Err(last)
}

async fn resolve(target: &Target) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(ip) = target.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, target.port)]);
    }
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
    found.map(|addresses| addresses.take(4).collect()).map_err(|e| {
        let what = format!("no address for '{}': {e}", target.host);
        Failure::new(&target.node, Phase::Resolve, FailureKind::NoAddress, what)
    })
}

/// Banner, key exchange and the judgement of the host's key over `stream`.
pub(crate) async fn handshake<S>(
    stream: S,
    beginning: &Beginning,
    target: &Target,
    shared: &Shared,
) -> Result<Handle<Peer>, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let refusal = Arc::new(Mutex::new(None));
    let (name, port) = target.key_name.clone();
    let trust = shared.trust(&target.records);
    let config = config(&shared.settings, &trust.wanted(&name, port));
    let peer = Peer { trust, name, port, refusal: refusal.clone() };
    let limit = shared.settings.banner;
    let result = timeout(limit, client::connect_stream(Arc::new(config), stream, peer)).await;
    if let Some(Refusal { kind, what }) = refusal.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(Failure::new(&target.node, Phase::HostKey, kind, what));
    }
    let failed = |kind, what: String| Failure::new(&target.node, Phase::Connect, kind, what);
    match result {
        Ok(Ok(handle)) => Ok(handle),
        Ok(Err(e)) => Err(explain(&e, beginning, target)),
        Err(_) if beginning.silent() => {
            let hint = if target.proxy.is_none() { " (TCP connected; is sshd stopped or the node hung?)" } else { "" };
            Err(failed(FailureKind::NoBanner, format!("no banner within {}{hint}", spoken(limit))))
        }
        Err(_) => Err(failed(
            FailureKind::NoBanner,
            format!("said '{}' and then nothing; no key exchange within {}", beginning.line(), spoken(limit)),
        )),
    }
}

fn explain(error: &russh::Error, beginning: &Beginning, target: &Target) -> Failure {
    let failed = |kind, what: String| Failure::new(&target.node, Phase::Connect, kind, what);
    let dropped = matches!(error, russh::Error::Disconnect | russh::Error::HUP | russh::Error::IO(_));
    match error {
        russh::Error::NoCommonAlgo { kind, theirs, .. } => {
            let what = format!("no {kind:?} algorithm in common; the server offers {}", theirs.join(", "));
            failed(FailureKind::NotSsh, what)
        }
        _ if dropped && beginning.silent() => failed(
            FailureKind::Dropped,
            match target.proxy {
                None => "closed before the banner (MaxStartups, a firewall, or sshd restarting)".to_owned(),
                Some(_) => "closed before the banner".to_owned(),
            },
        ),
        _ if dropped && !beginning.banner() => {
            failed(FailureKind::Dropped, format!("closed before the banner; it said '{}'", beginning.line()))
        }
        _ if dropped => failed(FailureKind::Dropped, format!("closed during the key exchange: {error}")),
        _ if !beginning.banner() => failed(
            FailureKind::NotSsh,
            format!("port {} does not speak SSH; it said '{}'", target.port, beginning.line()),
        ),
        _ => failed(FailureKind::NotSsh, format!("key exchange failed: {error}")),
    }
}

/// aes128-gcm and curve25519 cost the least CPU time; windows are small because a node sends little.
fn config(settings: &Settings, wanted: &Wanted) -> client::Config {
    let mut preferred = Preferred::DEFAULT;
    preferred.kex = vec![
        kex::CURVE25519,
        kex::CURVE25519_PRE_RFC_8731,
        kex::MLKEM768X25519_SHA256,
        kex::ECDH_SHA2_NISTP256,
        kex::DH_G16_SHA512,
        kex::DH_G14_SHA256,
        // Without it a wait of one second for each RSA login.
        kex::EXTENSION_SUPPORT_AS_CLIENT,
        kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
    ]
    .into();
    preferred.cipher = vec![
        cipher::AES_128_GCM,
        cipher::AES_256_GCM,
        cipher::CHACHA20_POLY1305,
        cipher::AES_256_CTR,
        cipher::AES_128_CTR,
    ]
    .into();
    let all = [
        Algorithm::Ed25519,
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 },
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP384 },
        Algorithm::Ecdsa { curve: EcdsaCurve::NistP521 },
        Algorithm::Rsa { hash: Some(HashAlg::Sha512) },
        Algorithm::Rsa { hash: Some(HashAlg::Sha256) },
    ];
    // Only recorded kinds of key are asked for, so that a recorded key cannot be avoided with a new kind.
    preferred.key = if wanted.keys.is_empty() { all.to_vec() } else { wanted.keys.clone() }.into();
    if wanted.certificates {
        preferred.host_key_certificates = all.to_vec().into();
        preferred.key = all.to_vec().into();
    }
    client::Config {
        window_size: 128 * 1024,
        channel_buffer_size: 4,
        preferred,
        nodelay: true,
        keepalive_interval: Some(settings.ping.max(std::time::Duration::from_secs(1))),
        keepalive_max: 3,
        ..client::Config::default()
    }
}
