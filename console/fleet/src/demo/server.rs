//! What does one node of the local fleet do? Speaks SSH, lets in the fleet's key, runs commands as child processes.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use russh::keys::{PrivateKey, PublicKey};
use russh::server::{self, Auth, ChannelOpenHandle, Msg, Session, VerifiedPublicKey};
use russh::{
    Channel, ChannelId, ChannelMsg, ChannelOpenFailure, ChannelReadHalf, ChannelWriteHalf, MethodKind, MethodSet,
    Preferred,
};
use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::ChildStdin;
use tokio_util::sync::CancellationToken;

use super::brake::Brake;
use super::child::{self, Of};

/// One node.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) home: PathBuf,
    pub(super) key: PrivateKey,
    /// Who may log in.
    pub(super) client: PublicKey,
    /// Share of the time its processes run, and the period, when it is slowed.
    pub(super) brake: Option<(f64, Duration)>,
}

/// Accepts connections until `stop`.
pub(super) async fn serve(host: Arc<Host>, listener: TcpListener, fleet: Arc<str>, stop: CancellationToken) {
    let config = Arc::new(config(&host.key));
    let mut sessions = tokio::task::JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(e) => {
                log::warn!("{}: accept: {e}", host.name);
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let login = Login { host: host.clone(), fleet: fleet.clone(), stop: stop.clone(), channels: HashMap::new() };
        let config = config.clone();
        sessions.spawn(async move {
            // A connection that breaks is the client's business.
            if let Ok(session) = server::run_stream(config, stream, login).await {
                let _ = session.await;
            }
        });
        while sessions.try_join_next().is_some() {}
    }
    sessions.shutdown().await;
}

pub(super) fn config(key: &PrivateKey) -> server::Config {
    let mut preferred = Preferred::DEFAULT;
    preferred.cipher = vec![russh::cipher::AES_128_GCM, russh::cipher::CHACHA20_POLY1305].into();
    server::Config {
        methods: MethodSet::from(&[MethodKind::PublicKey][..]),
        auth_rejection_time: Duration::ZERO,
        keys: vec![key.clone()],
        preferred,
        nodelay: true,
        inactivity_timeout: None,
        keepalive_interval: Some(Duration::from_secs(10)),
        ..server::Config::default()
    }
}

struct Login {
    host: Arc<Host>,
    fleet: Arc<str>,
    stop: CancellationToken,
    channels: HashMap<ChannelId, Channel<Msg>>,
}

impl server::Handler for Login {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, _: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        let known = key.public_key.key_data() == self.host.client.key_data();
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

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _: &str,
        _: u32,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        // A jump host to the other nodes of the fleet, and to nothing else.
        let address = (Ipv4Addr::LOCALHOST, u16::try_from(port).unwrap_or(0));
        let stream = if host == "127.0.0.1" { TcpStream::connect(address).await.ok() } else { None };
        let Some(mut stream) = stream else {
            reply.reject(ChannelOpenFailure::ConnectFailed).await;
            return Ok(());
        };
        reply.accept().await;
        tokio::spawn(async move {
            // Either side may end it at any time.
            let _ = tokio::io::copy_bidirectional(&mut channel.into_stream(), &mut stream).await;
        });
        Ok(())
    }

    async fn exec_request(&mut self, id: ChannelId, data: &[u8], session: &mut Session) -> Result<(), Self::Error> {
        let Some(channel) = self.channels.remove(&id) else { return session.channel_failure(id) };
        let command = String::from_utf8_lossy(data).into_owned();
        let word = format!("{:016x}", rand::random::<u64>());
        let of = Of { fleet: &self.fleet, node: &self.host.name, home: &self.host.home, word: &word };
        match child::start(&command, of) {
            Ok(started) => {
                session.channel_success(id)?;
                let running = Running { host: self.host.clone(), word, stop: self.stop.clone() };
                tokio::spawn(running.attend(started, channel));
            }
            Err(e) => {
                log::warn!("{}: exec: {e}", self.host.name);
                session.channel_failure(id)?;
            }
        }
        Ok(())
    }

    async fn subsystem_request(&mut self, id: ChannelId, _: &str, session: &mut Session) -> Result<(), Self::Error> {
        session.channel_failure(id)
    }
}

/// A command that runs on a node.
struct Running {
    host: Arc<Host>,
    word: String,
    stop: CancellationToken,
}

impl Running {
    /// Passes bytes both ways until the command ends or the client goes, and leaves no process behind.
    async fn attend(self, mut started: tokio::process::Child, channel: Channel<Msg>) {
        let Some(leader) = started.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else { return };
        let brake = self.host.brake.map(|(duty, period)| Brake::on(leader, &self.word, duty, period));
        let (read, write) = channel.split();
        let (stdin, stdout, stderr) = (started.stdin.take(), started.stdout.take(), started.stderr.take());
        let output = async { tokio::join!(copy(stdout, &write, None), copy(stderr, &write, Some(1))) };
        let ended = async {
            output.await;
            started.wait().await
        };
        let status = tokio::select! {
            status = ended => status.ok(),
            () = feed(read, stdin) => None,
            () = self.stop.cancelled() => None,
        };
        if let Some(brake) = brake {
            // Joining a thread that sleeps for milliseconds must not hold up the other nodes.
            let _ = tokio::task::spawn_blocking(move || drop(brake)).await;
        }
        child::kill(&self.word);
        if let Some(status) = status {
            report(&write, status).await;
        }
        let _ = write.close().await;
    }
}

/// Feeds the command; returns when the client closes the channel or is gone.
async fn feed(mut read: ChannelReadHalf, mut stdin: Option<ChildStdin>) {
    while let Some(message) = read.wait().await {
        match message {
            ChannelMsg::Data { data } => {
                if let Some(pipe) = &mut stdin
                    && pipe.write_all(&data).await.is_err()
                {
                    stdin = None;
                }
            }
            ChannelMsg::Eof => stdin = None,
            ChannelMsg::Close => return,
            _ => {}
        }
    }
}

async fn copy(from: Option<impl AsyncRead + Unpin>, to: &ChannelWriteHalf<Msg>, ext: Option<u32>) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = from.read(&mut buffer).await {
        let bytes = bytes::Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default());
        let sent = match ext {
            _ if count == 0 => return,
            None => to.data_bytes(bytes).await,
            Some(ext) => to.extended_data_bytes(ext, bytes).await,
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn report(write: &ChannelWriteHalf<Msg>, status: ExitStatus) {
    let _ = write.eof().await;
    if let Some(code) = status.code() {
        let _ = write.exit_status(u32::try_from(code).unwrap_or(255)).await;
    } else if let Some(signal) = status.signal() {
        let _ = write.exit_status(128 + u32::try_from(signal).unwrap_or(0)).await;
    }
}
