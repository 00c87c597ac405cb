//! What is a connection to a node, once it stands?

use std::sync::{Arc, Mutex, PoisonError};

use russh::client::{self, Handle};
use russh::keys::PublicKeyOrCertificate;

use crate::proxy::Proxy;
use crate::trust::{Refusal, Trust};

/// An authenticated connection.
pub(crate) struct Link {
    pub(crate) handle: Handle<Peer>,
    pub(crate) _via: Via,
}

/// What carries a connection; kept so that it outlives it.
pub(crate) enum Via {
    Tcp,
    Host(#[expect(dead_code, reason = "only held")] Arc<Link>),
    Command(#[expect(dead_code, reason = "only held")] Proxy),
}

/// The other side, as russh asks about it.
pub(crate) struct Peer {
    pub(crate) trust: Arc<Trust>,
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) refusal: Arc<Mutex<Option<Refusal>>>,
}

impl client::Handler for Peer {
    type Error = russh::Error;

    async fn check_server_key(&mut self, offered: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        match self.trust.check(&self.name, self.port, offered) {
            Ok(()) => Ok(true),
            Err(refusal) => {
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
                Ok(false)
            }
        }
    }
}

impl Link {
    /// Ends the connection politely.
    pub(crate) async fn goodbye(&self) {
        // A connection that is gone already needs no goodbye.
        let _ = self.handle.disconnect(russh::Disconnect::ByApplication, "", "").await;
    }
}
