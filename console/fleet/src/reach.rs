//! How is a node reached? At once, over a command or through jump hosts; then logged in to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use russh::ChannelStream;
use russh::client::{Handle, Msg};
use tokio::time::timeout;

use crate::connect::{handshake, tcp};
use crate::connection::{Link, Peer, Via};
use crate::context::{Reporter, Shared};
use crate::link::{Failure, FailureKind, LinkState, Phase, spoken};
use crate::sshconfig::Jump;
use crate::target::Target;
use crate::watched::{Beginning, Watched};
use crate::{auth, proxy};

impl Link {
    /// Connects and logs in; tries again, ever more slowly, while the server drops us before login.
    pub(crate) async fn open(target: &Target, shared: &Shared, report: &Reporter) -> Result<Self, Failure> {
        let mut pause = shared.settings.back_off;
        for _ in 0..shared.settings.retries {
            let failure = match Self::attempt(target, shared, report).await {
                Err(failure) if failure.transient() => failure,
                other => return other,
            };
            // Jitter keeps a fleet that was dropped together from coming back together.
            let wait = pause.mul_f64(rand::random_range(0.5..1.5));
            let retry_in_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            report.link(LinkState::Waiting { retry_in_ms, because: failure.message }).await;
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(Duration::from_secs(8));
        }
        Self::attempt(target, shared, report).await
    }

    /// Up to the judgement of the host's key, and no further.
    pub(crate) async fn greet(target: &Target, shared: &Shared, report: &Reporter) -> Result<(), Failure> {
        Self::reach(target, shared, report).await.map(drop)
    }

    async fn attempt(target: &Target, shared: &Shared, report: &Reporter) -> Result<Self, Failure> {
        let (mut handle, via) = Self::reach(target, shared, report).await?;
        report.link(LinkState::Authenticating).await;
        let limit = shared.settings.login;
        timeout(limit, auth::login(&mut handle, target, shared)).await.unwrap_or_else(|_| {
            let what =
                format!("as {}: no answer within {} (slow login, or the node hangs)", target.user, spoken(limit));
            Err(Failure::new(&target.node, Phase::Login, FailureKind::LoginTimeout, what))
        })?;
        Ok(Self { handle, _via: via })
    }

    /// Up to the key exchange, over whatever leads there.
    async fn reach(target: &Target, shared: &Shared, report: &Reporter) -> Result<(Handle<Peer>, Via), Failure> {
        let beginning = Beginning::default();
        if !target.jump.is_empty() {
            report.link(LinkState::TcpConnect).await;
            let (stream, via) = tunnel(target, shared).await?;
            let stream = Watched::new(stream, beginning.clone());
            return Ok((handshake(stream, &beginning, target, shared).await?, Via::Host(via)));
        }
        if let Some(command) = &target.proxy {
            report.link(LinkState::TcpConnect).await;
            let (stream, proxy) = proxy::start(command, target)?;
            let stream = Watched::new(stream, beginning.clone());
            return match handshake(stream, &beginning, target, shared).await {
                Ok(handle) => Ok((handle, Via::Command(proxy))),
                Err(failure) if failure.phase == Phase::HostKey => Err(failure),
                Err(failure) => Err(proxy.explain(failure, command).await),
            };
        }
        let stream = Watched::new(tcp(target, report).await?, beginning.clone());
        Ok((handshake(stream, &beginning, target, shared).await?, Via::Tcp))
    }
}

/// A stream to `target` through its jump hosts.
async fn tunnel(target: &Target, shared: &Shared) -> Result<(ChannelStream<Msg>, Arc<Link>), Failure> {
    let reached = match shared.resolver.way(&target.jump, &shared.settings) {
        Ok(way) => bastion(&way, shared).await,
        Err(failure) => Err(failure),
    };
    let via = reached.map_err(|failure| Failure {
        phase: Phase::Jump,
        kind: failure.kind,
        message: format!("{}: jump: {}", target.node, failure.message),
    })?;
    let limit = shared.settings.connect;
    let opening = via.handle.channel_open_direct_tcpip(target.host.clone(), target.port.into(), "127.0.0.1", 0);
    let name = target.jump.last().map(|hop| hop.host.as_str()).unwrap_or_default();
    let failed = |kind, what: String| Failure::new(&target.node, Phase::Jump, kind, what);
    match timeout(limit, opening).await {
        Ok(Ok(channel)) => Ok((channel.into_stream(), via)),
        Ok(Err(e)) => {
            let what = format!("{name} cannot reach {}:{}: {e}", target.host, target.port);
            Err(failed(FailureKind::Unreachable, what))
        }
        Err(_) => {
            let what = format!("{name} did not reach {}:{} within {}", target.host, target.port, spoken(limit));
            Err(failed(FailureKind::Unreachable, what))
        }
    }
}

async fn bastion(hops: &[Jump], shared: &Shared) -> Result<Arc<Link>, Failure> {
    let cell = shared.bastions.at(hops);
    let (opened, _) = cell.get_or_init(|| async { (open(hops, shared).await, Instant::now()) }).await;
    opened.clone()
}

async fn open(hops: &[Jump], shared: &Shared) -> Result<Arc<Link>, Failure> {
    let target = shared.resolver.hop(hops, &shared.settings)?;
    let report = Reporter::silent(&target.node);
    // Boxed because a jump host may itself be behind one.
    Box::pin(Link::open(&target, shared, &report)).await.map(Arc::new)
}
