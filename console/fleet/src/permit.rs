//! Who may connect, log in and measure now?

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::files::connections;
use crate::settings::Settings;

/// Those of a run, for connections, logins and nodes that measure.
#[derive(Clone)]
pub(crate) struct Permits {
    /// As many connections as this process may have files.
    open: Arc<Semaphore>,
    logins: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

/// What one node holds of them.
#[derive(Default)]
pub(crate) struct Permit {
    _open: Option<OwnedSemaphorePermit>,
    /// Held until the probe is sent or speaks: handshakes are what many nodes at once would cost.
    pub(crate) login: Option<OwnedSemaphorePermit>,
    /// Held while the node measures.
    _place: Option<OwnedSemaphorePermit>,
}

impl Permits {
    pub(crate) fn new(settings: &Settings) -> Self {
        let of = |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        Self { open: of(connections(settings.transport)), logins: of(settings.fan_out), places: of(settings.at_once) }
    }

    /// The next one; first come, first served. The semaphores are never closed.
    pub(crate) async fn take(&self, measures: bool) -> Permit {
        let open = self.open.clone().acquire_owned().await.ok();
        let place = if measures { self.places.clone().acquire_owned().await.ok() } else { None };
        Permit { _open: open, login: self.login().await, _place: place }
    }

    pub(crate) async fn login(&self) -> Option<OwnedSemaphorePermit> {
        self.logins.clone().acquire_owned().await.ok()
    }
}
