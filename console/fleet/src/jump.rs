//! How are nodes behind a jump host reached? Over one shared connection per jump host, a channel for each node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use russh::ChannelStream;
use russh::client::Msg;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::connect::Link;
use crate::context::{Reporter, Shared};
use crate::link::{Failure, FailureKind, Phase, spoken};
use crate::sshconfig::Jump;
use crate::target::Target;

type Opened = Arc<OnceCell<(Result<Arc<Link>, Failure>, Instant)>>;

/// How long a jump host that failed is not tried again.
const KEPT: Duration = Duration::from_secs(5);

/// The jump hosts of a run, each with one connection that all nodes behind it share. A failure is kept for a while, too, so that
/// a thousand nodes behind a dead jump host do not wait for it one after another; a connection that broke is made anew.
#[derive(Default)]
pub(crate) struct Bastions {
    links: Mutex<HashMap<Vec<Jump>, Opened>>,
}

/// A stream to `target` through its jump hosts.
pub(crate) async fn tunnel(target: &Target, shared: &Shared) -> Result<(ChannelStream<Msg>, Arc<Link>), Failure> {
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
    let cell = {
        let mut links = shared.bastions.links.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = links.entry(hops.to_vec()).or_default();
        let over = cell.get().is_some_and(|(opened, at)| match opened {
            Ok(link) => link.handle.is_closed(),
            Err(_) => at.elapsed() > KEPT,
        });
        if over {
            *cell = Opened::default();
        }
        cell.clone()
    };
    let (opened, _) = cell.get_or_init(|| async { (open(hops, shared).await, Instant::now()) }).await;
    opened.clone()
}

async fn open(hops: &[Jump], shared: &Shared) -> Result<Arc<Link>, Failure> {
    let target = shared.resolver.hop(hops, &shared.settings)?;
    let report = Reporter::silent(&target.node);
    // Boxed because a jump host may itself be behind one.
    Box::pin(Link::open(&target, shared, &report)).await.map(Arc::new)
}
