//! What do the connections of one run share? Settings, recorded keys, loaded keys, jump hosts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::auth::KeyRing;
use crate::event::{Event, EventKind};
use crate::jump::Bastions;
use crate::link::LinkState;
use crate::settings::Settings;
use crate::target::{Records, Resolver};
use crate::trust::Trust;

/// Shared by every connection of a run.
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) resolver: Resolver,
    trusts: Mutex<HashMap<Records, Arc<Trust>>>,
    pub(crate) keys: KeyRing,
    pub(crate) bastions: Bastions,
}

impl Shared {
    pub(crate) fn new(settings: Arc<Settings>) -> Arc<Self> {
        let resolver = Resolver::new(&settings);
        let trusts = Mutex::default();
        Arc::new(Self { settings, resolver, trusts, keys: KeyRing::default(), bastions: Bastions::default() })
    }

    /// The judge over these records; read once for all nodes that share them.
    pub(crate) fn trust(&self, records: &Records) -> Arc<Trust> {
        let mut trusts = self.trusts.lock().unwrap_or_else(PoisonError::into_inner);
        trusts.entry(records.clone()).or_insert_with(|| Arc::new(Trust::new(records))).clone()
    }
}

/// Tells the console what happens to one node. Without a channel it tells nobody (jump hosts, cleaning).
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    pub(crate) node: String,
    events: Option<mpsc::Sender<Event>>,
}

impl Reporter {
    pub(crate) fn new(node: &str, events: mpsc::Sender<Event>) -> Self {
        Self { node: node.to_owned(), events: Some(events) }
    }

    pub(crate) fn silent(node: &str) -> Self {
        Self { node: node.to_owned(), events: None }
    }

    pub(crate) async fn link(&self, state: LinkState) {
        self.tell(EventKind::Link(state)).await;
    }

    /// Waits while the console is behind; once it is gone, nothing is left to tell.
    pub(crate) async fn tell(&self, kind: EventKind) {
        if let Some(events) = &self.events {
            let _ = events.send(Event { node: self.node.clone(), kind }).await;
        }
    }

    /// Progress may be dropped when the console is behind; states and frames may not.
    pub(crate) fn progress(&self, state: LinkState) {
        if let Some(events) = &self.events {
            let _ = events.try_send(Event { node: self.node.clone(), kind: EventKind::Link(state) });
        }
    }

    /// Whether somebody still listens.
    pub(crate) fn heard(&self) -> bool {
        self.events.as_ref().is_none_or(|events| !events.is_closed())
    }
}
