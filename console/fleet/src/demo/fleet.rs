//! Raises and ends the local fleet: directories, keys, servers, inventory.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::{PrivateKey, PublicKey};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::guard::Guard;
use super::server::{Host, serve};
use crate::inventory::{Inventory, InventoryError};
use crate::settings::{HostKeyPolicy, Settings};
use crate::transport::Transport;

/// What fleet to raise.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of nodes.
    pub nodes: usize,
    /// How many of them are slowed.
    pub slow: usize,
    /// Seed of the choice of the slowed ones.
    pub seed: u64,
    /// Directory to make the fleet's own directory in; the system's temporary directory when absent.
    pub dir: Option<PathBuf>,
    /// Share of the time a slowed node's processes may run, 0 to 1.
    pub duty: f64,
    /// Length of one stop and go.
    pub period: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { nodes: 8, slow: 1, seed: 0, dir: None, duty: 0.5, period: Duration::from_millis(10) }
    }
}

/// Why there is no fleet.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A file, directory, socket or process.
    #[error("demo fleet: {step}: {source}")]
    Io {
        /// What was attempted.
        step: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A key.
    #[error("demo fleet: {step}: {source}")]
    Key {
        /// What was attempted.
        step: &'static str,
        /// Why it failed.
        source: russh::keys::ssh_key::Error,
    },
    /// Our own inventory.
    #[error("demo fleet: {0}")]
    Inventory(#[from] InventoryError),
    /// What a real probe says could not be recorded, or the nodes that say it again did not come up.
    #[error("virtual nodes: {0}")]
    Recording(String),
    /// More slow nodes than nodes.
    #[error("demo fleet: {slow} of {nodes} nodes cannot be slowed")]
    TooManySlow {
        /// Wanted.
        slow: usize,
        /// Available.
        nodes: usize,
    },
}

pub(super) fn io(step: impl Into<String>) -> impl FnOnce(std::io::Error) -> DemoError {
    let step = step.into();
    move |source| DemoError::Io { step, source }
}

/// A running fleet. Dropping it ends the servers and every process they started, and removes its directory; the
/// same happens when this process is killed.
#[derive(Debug)]
pub struct LocalFleet {
    inventory: Inventory,
    slowed: Vec<String>,
    dir: PathBuf,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
    guard: Option<Guard>,
}

impl LocalFleet {
    /// Raises the fleet; it accepts connections when this returns.
    ///
    /// # Errors
    /// When a directory, key, socket or process cannot be made.
    pub fn start(options: &Options) -> Result<Self, DemoError> {
        if options.slow > options.nodes {
            return Err(DemoError::TooManySlow { slow: options.slow, nodes: options.nodes });
        }
        let dir = make_dir(options.dir.as_deref())?;
        // From here on the directory goes away with the guard, whatever happens.
        let guard = Guard::start(&dir)?;
        let places = choose((options.nodes, options.slow), options.seed);
        let slowed: BTreeSet<usize> = places.into_iter().collect();
        let client = new_key();
        write_private(&dir.join("id_ed25519"), &client)?;
        let mut text = String::new();
        let mut known = String::new();
        let mut listeners = Vec::new();
        for place in 0..options.nodes {
            let (host, listener) = Self::node(&dir, place, &client.public_key().clone(), options, &slowed)?;
            let address = listener.local_addr().map_err(io("read a port"))?;
            describe(&mut text, &mut known, &host, address)?;
            listeners.push((host, listener));
        }
        std::fs::write(dir.join("known_hosts"), known).map_err(io("write known_hosts"))?;
        std::fs::write(dir.join("inventory.toml"), &text).map_err(io("write inventory.toml"))?;
        let inventory = Inventory::parse(&text, dir.join("inventory.toml"))?;
        let stop = CancellationToken::new();
        let thread = spawn(listeners, guard.word(), stop.clone())?;
        let slowed = slowed.into_iter().map(name).collect();
        Ok(Self { inventory, slowed, dir, stop, thread: Some(thread), guard: Some(guard) })
    }

    fn node(
        dir: &Path,
        place: usize,
        client: &PublicKey,
        options: &Options,
        slowed: &BTreeSet<usize>,
    ) -> Result<(Host, std::net::TcpListener), DemoError> {
        let home = dir.join(name(place));
        std::fs::DirBuilder::new().mode(0o700).create(&home).map_err(io(format!("make {}", home.display())))?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io("listen on loopback"))?;
        listener.set_nonblocking(true).map_err(io("listen on loopback"))?;
        let brake = slowed.contains(&place).then(|| (options.duty.clamp(0.05, 1.0), options.period));
        Ok((Host { name: name(place), home, key: new_key(), client: client.clone(), brake }, listener))
    }

    /// The nodes, with the addresses their servers listen on.
    #[must_use]
    pub const fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Settings that reach the nodes: their recorded host keys, the fleet's key, no agent, no configuration.
    #[must_use]
    pub fn settings(&self) -> Settings {
        settings_in(&self.dir)
    }

    /// Names of the slowed nodes, in order. Nothing that judges nodes may read this.
    #[must_use]
    pub fn slowed(&self) -> &[String] {
        &self.slowed
    }

    /// The word in the environment of all processes of the fleet.
    pub(super) fn word(&self) -> &str {
        self.guard.as_ref().map_or("", Guard::word)
    }

    /// The fleet's directory: `id_ed25519`, `known_hosts`, `inventory.toml` and a home for each node.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for LocalFleet {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported by its thread already.
            let _ = thread.join();
        }
        drop(self.guard.take());
    }
}

fn name(place: usize) -> String {
    format!("demo-{:02}", place + 1)
}

/// Settings for nodes whose keys lie in `dir`.
pub(super) fn settings_in(dir: &Path) -> Settings {
    Settings {
        // The operator's own ssh knows nothing of these nodes.
        transport: Transport::Own,
        known_hosts: vec![dir.join("known_hosts")],
        identities: vec![dir.join("id_ed25519")],
        host_key_policy: Some(HostKeyPolicy::Strict),
        ssh_config: None,
        agent: false,
        user: "demo".to_owned(),
        ..Settings::default()
    }
}

/// Places of `slow` among so many nodes.
pub(super) fn choose((nodes, slow): (usize, usize), seed: u64) -> Vec<usize> {
    let mut rng = StdRng::seed_from_u64(seed);
    rand::seq::index::sample(&mut rng, nodes, slow.min(nodes)).into_vec()
}

pub(super) fn make_dir(under: Option<&Path>) -> Result<PathBuf, DemoError> {
    let under = under.map_or_else(std::env::temp_dir, Path::to_path_buf);
    let dir = under.join(format!("muster-demo-{:016x}", rand::random::<u64>()));
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .map_err(io(format!("make {}", dir.display())))?;
    Ok(dir)
}

pub(super) fn new_key() -> PrivateKey {
    Ed25519Keypair::from_seed(&rand::random::<[u8; 32]>()).into()
}

pub(super) fn write_private(path: &Path, key: &PrivateKey) -> Result<(), DemoError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt;
    let text = key.to_openssh(LineEnding::LF).map_err(|source| DemoError::Key { step: "write a key", source })?;
    let step = || format!("write {}", path.display());
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(io(step()))?;
    file.write_all(text.as_bytes()).map_err(io(step()))
}

fn describe(text: &mut String, known: &mut String, host: &Host, address: SocketAddr) -> Result<(), DemoError> {
    let public = host.key.public_key().to_openssh();
    let public = public.map_err(|source| DemoError::Key { step: "write known_hosts", source })?;
    // Writing to a String cannot fail.
    let _ = writeln!(known, "[127.0.0.1]:{} {public}", address.port());
    let _ = writeln!(
        text,
        "[[nodes]]\nname = \"{}\"\nhost = \"127.0.0.1\"\nport = {}\ngroups = [\"demo\"]\n",
        host.name,
        address.port()
    );
    Ok(())
}

/// One thread with a runtime of its own, so that the fleet works whatever its owner runs on.
fn spawn(
    listeners: Vec<(Host, std::net::TcpListener)>,
    word: &str,
    stop: CancellationToken,
) -> Result<JoinHandle<()>, DemoError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io("start the servers"))?;
    let word: Arc<str> = word.into();
    let body = move || {
        runtime.block_on(async {
            let mut servers = tokio::task::JoinSet::new();
            for (host, listener) in listeners {
                match TcpListener::from_std(listener) {
                    Ok(listener) => drop(servers.spawn(serve(Arc::new(host), listener, word.clone(), stop.clone()))),
                    Err(e) => log::error!("demo fleet: {}: {e}", host.name),
                }
            }
            stop.cancelled().await;
            servers.shutdown().await;
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
    };
    std::thread::Builder::new().name("demo-fleet".to_owned()).spawn(body).map_err(io("start the servers"))
}
