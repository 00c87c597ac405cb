//! Which jump hosts does a run use? One connection for each, which all nodes behind it share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::OnceCell;

use crate::connection::Link;
use crate::link::Failure;
use crate::sshconfig::Jump;

/// A connection to a jump host or why there is none, and since when.
pub(crate) type Opened = Arc<OnceCell<(Result<Arc<Link>, Failure>, Instant)>>;

/// How long a jump host that failed is not tried again.
const KEPT: Duration = Duration::from_secs(5);

/// The jump hosts of a run, each with one connection that all nodes behind it share. A failure is kept for a while, too, so that
/// a thousand nodes behind a dead jump host do not wait for it one after another; a connection that broke is made anew.
#[derive(Default)]
pub(crate) struct Bastions {
    links: Mutex<HashMap<Vec<Jump>, Opened>>,
}

impl Bastions {
    /// The place of the connection through `hops`: empty where there was none, or where it is over.
    pub(crate) fn at(&self, hops: &[Jump]) -> Opened {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = links.entry(hops.to_vec()).or_default();
        let over = cell.get().is_some_and(|(opened, at)| match opened {
            Ok(link) => link.handle.is_closed(),
            Err(_) => at.elapsed() > KEPT,
        });
        if over {
            *cell = Opened::default();
        }
        cell.clone()
    }
}
