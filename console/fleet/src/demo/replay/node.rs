//! What does one virtual node do? Speaks SSH, lets in the fleet's key, takes the probe, and answers as one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use russh::keys::{PrivateKey, PublicKey};
use russh::server::{self, Auth, ChannelOpenHandle, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};

use super::recording::Recording;
use super::shell::{Install, Order, order};
use super::stream::Stream;
use super::upload::{Arriving, Content, MOST, Uploads};
use super::vary::Variation;

/// Where a virtual node says that it keeps the probe.
const DIR: &str = "/var/tmp/muster-0";

/// What all virtual nodes share.
pub(super) struct Site {
    pub(super) recording: Recording,
    /// Who may log in.
    pub(super) client: PublicKey,
    pub(super) uploads: Uploads,
    /// How many times as fast as recorded the nodes work.
    pub(super) pace: f64,
    pub(super) nodes: Vec<Node>,
    /// Bytes of all connections, both ways.
    pub(super) traffic: Arc<AtomicU64>,
}

/// One of them.
pub(super) struct Node {
    pub(super) key: PrivateKey,
    pub(super) variation: Variation,
    /// Of its probe.
    pub(super) pid: u32,
    /// Probes started.
    pub(super) visits: AtomicU64,
    /// File name of the probe that it has.
    pub(super) kept: Mutex<Option<String>>,
}

/// One connection to a node.
pub(super) struct Login {
    pub(super) site: Arc<Site>,
    pub(super) place: usize,
    pub(super) channels: HashMap<ChannelId, Channel<Msg>>,
}

impl server::Handler for Login {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, _: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        let known = key.public_key.key_data() == self.site.client.key_data();
        Ok(if known { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        self.channels.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(&mut self, id: ChannelId, data: &[u8], session: &mut Session) -> Result<(), Self::Error> {
        let Some(channel) = self.channels.remove(&id) else { return session.channel_failure(id) };
        session.channel_success(id)?;
        let order = order(&String::from_utf8_lossy(data));
        tokio::spawn(attend(Arc::clone(&self.site), self.place, order, channel));
        Ok(())
    }

    async fn subsystem_request(&mut self, id: ChannelId, _: &str, session: &mut Session) -> Result<(), Self::Error> {
        session.channel_failure(id)
    }
}

/// Does what a command orders, and ends it.
async fn attend(site: Arc<Site>, place: usize, order: Order, channel: Channel<Msg>) {
    let Some(node) = site.nodes.get(place) else { return };
    let (mut read, write) = channel.split();
    let status = match order {
        Order::Install(install) => become_probe((&site, node), &install, &mut read, &write).await,
        Order::Clean(word) => {
            let _ = write.data_bytes(format!("\n{word} END\n")).await;
            Some(0)
        }
        Order::Other => Some(0),
    };
    let _ = write.eof().await;
    if let Some(status) = status {
        let _ = write.exit_status(status).await;
    }
    let _ = write.close().await;
}

/// Takes the probe if the node lacks it, and becomes it. The exit status; `None` when the console is gone.
async fn become_probe(
    (site, node): (&Site, &Node),
    install: &Install,
    read: &mut ChannelReadHalf,
    write: &ChannelWriteHalf<Msg>,
) -> Option<u32> {
    let word = &install.word;
    let kept = || node.kept.lock().unwrap_or_else(PoisonError::into_inner);
    let is_kept = kept().as_deref() == Some(install.file.as_str());
    let mut rest = Vec::new();
    if !is_kept {
        let (packed, count) = if install.packed > 0 { (true, install.packed) } else { (false, install.size) };
        let how = if packed { "gzip" } else { "plain" };
        write.data_bytes(format!("\n{word} SEND {how} {} {DIR}\n", install.file)).await.ok()?;
        let mut arriving = site.uploads.arriving();
        rest = taken(read, count.min(MOST), &mut arriving).await?;
        if arriving.content(packed) != Some(Content { size: install.size, sha256: install.sha256.clone() }) {
            write.data_bytes(format!("\n{word} BAD {DIR}: other bytes than were sent\n")).await.ok()?;
            return Some(4);
        }
        *kept() = Some(install.file.clone());
    }
    let how = if is_kept { "kept" } else { "sent" };
    let ready = format!("\n{word} READY {} {how} {DIR}/{}\n", node.pid, install.file);
    write.data_bytes(ready).await.ok()?;
    let visit = node.visits.fetch_add(1, Ordering::Relaxed) + 1;
    Stream::new((site, node), write, visit).serve(read, &rest).await;
    Some(0)
}

/// Takes `count` bytes of input; what came with them, or `None` when the input ends first.
async fn taken(read: &mut ChannelReadHalf, count: usize, arriving: &mut Arriving<'_>) -> Option<Vec<u8>> {
    while arriving.len() < count {
        match read.wait().await? {
            ChannelMsg::Data { data } => {
                let (own, after) = data.split_at(data.len().min(count - arriving.len()));
                arriving.push(own);
                if !after.is_empty() {
                    return Some(after.to_vec());
                }
            }
            ChannelMsg::Eof | ChannelMsg::Close => return None,
            _ => {}
        }
    }
    Some(Vec::new())
}
