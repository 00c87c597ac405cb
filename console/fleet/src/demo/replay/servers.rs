//! Raises the virtual nodes and lets them answer, in a process of their own, so that what the console's side costs can be told.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use muster_wire::Request;
use russh::keys::PublicKey;
use russh::server::{self};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::super::fleet::{DemoError, choose, io, new_key, write_private};
use super::super::server::config;
use super::node::{Login, Node, Site};
use super::recording::Recording;
use super::traffic::Counted;
use super::upload::Uploads;
use super::vary::Variation;
use crate::files::raise_files;

/// What the process of the servers says when they answer.
pub(super) const READY: &str = "ready";
/// Connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: u32 = 4096;
/// Length of a pause after a connection could not be accepted, for lack of files.
const PAUSE: Duration = Duration::from_millis(50);

/// Which virtual nodes there are.
#[derive(Clone, Debug)]
pub struct VirtualOptions {
    /// How many, at most 65,000.
    pub nodes: usize,
    /// How many of them are slowed.
    pub slow: usize,
    /// Seed of what nodes differ by, and of the choice of the slowed ones.
    pub seed: u64,
    /// How many times as long everything takes on a slowed node.
    pub severity: f64,
    /// How many times as fast as recorded the nodes work.
    pub pace: f64,
}

/// Records what `probe` says to `request` and serves it as many nodes until standard input ends. Keys, known hosts, the inventory and
/// the names of the slowed nodes are files in `dir`. Says on standard output when the nodes answer, and at the end how many bytes
/// crossed their connections.
///
/// # Errors
/// When a file, a socket or the recording cannot be made.
pub fn serve_virtual(options: &VirtualOptions, dir: &Path, probe: &[u8], request: &Request) -> Result<(), DemoError> {
    let recording = Recording::of(probe, request, dir)?;
    raise_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(io("start the servers"))?;
    let stop = CancellationToken::new();
    let (listener, port) = {
        let _inside = runtime.enter();
        listen()?
    };
    let site = Arc::new(raise(options, dir, recording, port)?);
    say(READY)?;
    let ended = stop.clone();
    let watch = move || {
        // Whoever started this holds the other end for as long as the nodes are wanted.
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        ended.cancel();
    };
    std::thread::Builder::new().name("end".to_owned()).spawn(watch).map_err(io("start the servers"))?;
    runtime.block_on(accept(&site, &listener, &stop));
    say(&site.traffic.load(Ordering::Relaxed).to_string())
}

fn say(line: &str) -> Result<(), DemoError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(io("say that the servers are up"))
}

/// One port on all addresses of the loopback device and of no other: an open file for all nodes instead of one for each.
fn listen() -> Result<(TcpListener, u16), DemoError> {
    let bound = || {
        let socket = TcpSocket::new_v4()?;
        socket.bind_device(Some(b"lo"))?;
        socket.bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
        let listener = socket.listen(BACKLOG)?;
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    };
    bound().map_err(io("listen on loopback"))
}

/// Makes keys and nodes, and the files by which the console finds them.
fn raise(options: &VirtualOptions, dir: &Path, recording: Recording, port: u16) -> Result<Site, DemoError> {
    let client = new_key();
    write_private(&dir.join("id_ed25519"), &client)?;
    let slowed: BTreeSet<usize> = choose((options.nodes, options.slow), options.seed).into_iter().collect();
    let (mut known, mut inventory, mut names) = (String::new(), String::new(), String::new());
    let mut nodes = Vec::with_capacity(options.nodes);
    for place in 0..options.nodes {
        let (key, name, address) = (new_key(), format!("v{:05}", place + 1), address(place));
        let public = key.public_key().to_openssh();
        let public = public.map_err(|source| DemoError::Key { step: "write known_hosts", source })?;
        // Writing to a String cannot fail.
        let _ = writeln!(known, "[{address}]:{port} {public}");
        let _ = writeln!(inventory, "[[nodes]]\nname = \"{name}\"\nhost = \"{address}\"\nport = {port}\n");
        if slowed.contains(&place) {
            let _ = writeln!(names, "{name}");
        }
        let severity = if slowed.contains(&place) { options.severity } else { 1.0 };
        let variation = Variation { name, seed: options.seed, severity };
        let pid = 1000 + u32::try_from(place).unwrap_or(0);
        nodes.push(Node { key, variation, pid, visits: AtomicU64::new(0), kept: None.into() });
    }
    for (name, text) in [("known_hosts", known), ("inventory.toml", inventory), ("slowed", names)] {
        std::fs::write(dir.join(name), text).map_err(io(format!("write {name}")))?;
    }
    let client: PublicKey = client.public_key().clone();
    let traffic = Arc::default();
    Ok(Site { recording, client, uploads: Uploads::default(), pace: options.pace, nodes, traffic })
}

/// The loopback address of the node at `place`: from 127.1.0.1 on, 250 to a network.
fn address(place: usize) -> Ipv4Addr {
    let byte = |number: usize| u8::try_from(number % 256).unwrap_or(0);
    let network = 256 + place / 250;
    Ipv4Addr::new(127, byte(network / 256), byte(network), byte(place % 250) + 1)
}

/// Whose address it is.
fn place(address: Ipv4Addr) -> Option<usize> {
    let [first, high, low, last] = address.octets().map(usize::from);
    let network = (high * 256 + low).checked_sub(256)?;
    (first == 127 && (1..=250).contains(&last)).then(|| network * 250 + last - 1)
}

/// Accepts connections until `stop`.
async fn accept(site: &Arc<Site>, listener: &TcpListener, stop: &CancellationToken) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => drop(tokio::spawn(attend(Arc::clone(site), stream))),
            Err(e) => {
                log::warn!("virtual nodes: accept: {e}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// One connection to whichever node it was made to.
async fn attend(site: Arc<Site>, stream: TcpStream) {
    let Ok(IpAddr::V4(address)) = stream.local_addr().map(|address| address.ip()) else { return };
    let Some(place) = place(address) else { return };
    let Some(node) = site.nodes.get(place) else { return };
    let _ = stream.set_nodelay(true);
    let config = Arc::new(server::Config { channel_buffer_size: 16, ..config(&node.key) });
    let stream = Counted { inner: stream, bytes: Arc::clone(&site.traffic) };
    let login = Login { site: Arc::clone(&site), place, channels: HashMap::new() };
    // A connection that breaks is the client's business.
    if let Ok(session) = server::run_stream(config, stream, login).await {
        let _ = session.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_an_address_of_its_own_that_leads_back_to_it() {
        let all: BTreeSet<Ipv4Addr> = (0..65_000).map(address).collect();
        assert_eq!(all.len(), 65_000);
        assert!((0..65_000).all(|at| place(address(at)) == Some(at) && address(at).is_loopback()));
        assert_eq!(place(Ipv4Addr::LOCALHOST), None);
    }
}
