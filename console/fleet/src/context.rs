//! What do the connections of one run share? Settings, recorded keys, loaded keys, jump hosts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use muster_wire::Frame;
use muster_wire::limits::FRAME_BYTES;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::bastion::Bastions;
use crate::event::{Event, EventKind};
use crate::keyring::KeyRing;
use crate::link::LinkState;
use crate::probe::Probe;
use crate::settings::Settings;
use crate::slurm::{Seats, Starting};
use crate::target::{Records, Resolver};
use crate::transport::Transport;
use crate::trust::{Asked, Trust};

/// Shared by every connection of a run.
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) resolver: Resolver,
    trusts: Mutex<HashMap<Records, Arc<Trust>>>,
    /// Keys that were refused because nobody was asked about them.
    pub(crate) asked: Asked,
    pub(crate) keys: KeyRing,
    pub(crate) bastions: Bastions,
    /// Turns to send the probe: what a jump host carries is shared by those who send, and not by those who log in.
    pub(crate) uploads: Arc<Semaphore>,
    /// Where nodes are reached by Slurm.
    pub(crate) seats: Seats,
}

impl Shared {
    pub(crate) fn new(settings: Arc<Settings>) -> Arc<Self> {
        let resolver = Resolver::new(&settings);
        let (trusts, asked) = (Mutex::default(), Asked::default());
        let (keys, bastions, seats) = (KeyRing::default(), Bastions::default(), Seats::default());
        let uploads = Arc::new(Semaphore::new(settings.fan_out.clamp(1, Semaphore::MAX_PERMITS)));
        Arc::new(Self { settings, resolver, trusts, asked, keys, bastions, uploads, seats })
    }

    /// The same for work on `nodes`, which Slurm is asked for where it is to start `probe` or commands.
    pub(crate) async fn on(nodes: &[&str], probe: Option<&Probe>, settings: Arc<Settings>) -> Arc<Self> {
        let launcher = settings.slurm.clone().filter(|_| settings.transport == Transport::Slurm);
        let mut shared = Self::new(settings);
        if let Some(launcher) = launcher {
            let work = Starting { probe, scratch: &shared.settings.scratch, tell: &shared.settings.tell };
            let seats = launcher.seats(nodes, work).await;
            if let Some(shared) = Arc::get_mut(&mut shared) {
                shared.seats = seats;
            }
        }
        shared
    }

    /// The judge over these records; read once for all nodes that share them.
    pub(crate) fn trust(&self, records: &Records) -> Arc<Trust> {
        let mut trusts = self.trusts.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Trust::new(records, self.settings.tell.clone(), self.asked.clone()));
        trusts.entry(records.clone()).or_insert_with(new).clone()
    }
}

/// Tells the console what happens to one node. Without a channel it tells nobody (jump hosts, cleaning).
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    pub(crate) node: String,
    events: Option<mpsc::Sender<Event>>,
    /// Kilobytes that the node may have on their way to the console: a node that floods waits for itself.
    room: Arc<Semaphore>,
}

/// Kilobytes of the largest frame.
const ROOM: u32 = (FRAME_BYTES >> 10) as u32;

impl Reporter {
    pub(crate) fn new(node: &str, events: mpsc::Sender<Event>) -> Self {
        Self { node: node.to_owned(), events: Some(events), room: Arc::new(Semaphore::new(ROOM as usize)) }
    }

    pub(crate) fn silent(node: &str) -> Self {
        Self { node: node.to_owned(), events: None, room: Arc::new(Semaphore::new(0)) }
    }

    pub(crate) async fn link(&self, state: LinkState) {
        self.tell(EventKind::Link(state)).await;
    }

    /// Waits while the console is behind; once it is gone, nothing is left to tell.
    pub(crate) async fn tell(&self, kind: EventKind) {
        self.pass(kind, None).await;
    }

    /// Passes on a frame that took `bytes` on the line.
    pub(crate) async fn frame(&self, frame: Frame, bytes: usize) {
        let kilobytes = u32::try_from(bytes >> 10).unwrap_or(ROOM).clamp(1, ROOM);
        // Closed never.
        let room = self.room.clone().acquire_many_owned(kilobytes).await.ok();
        self.pass(EventKind::Frame(frame), room).await;
    }

    async fn pass(&self, kind: EventKind, room: Option<OwnedSemaphorePermit>) {
        if let Some(events) = &self.events {
            let _ = events.send(Event { node: self.node.clone(), kind, room }).await;
        }
    }

    /// Progress may be dropped when the console is behind; states and frames may not.
    pub(crate) fn progress(&self, state: LinkState) {
        if let Some(events) = &self.events {
            let _ = events.try_send(Event { node: self.node.clone(), kind: EventKind::Link(state), room: None });
        }
    }

    /// Whether somebody still listens.
    pub(crate) fn heard(&self) -> bool {
        self.events.as_ref().is_none_or(|events| !events.is_closed())
    }
}
