//! What is asked of a node, and what comes back while it works.

use std::time::Duration;

use muster_wire::{Bye, Frame, Request};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::clock::Clock;
use crate::inventory::Node;
use crate::link::{Failure, LinkState};

/// One stream of work on one node.
#[derive(Clone, Debug)]
pub struct Work {
    /// Where.
    pub node: Node,
    /// What, always a `Run`.
    pub request: Request,
    /// Longest time from the first frame to the last.
    pub limit: Duration,
    /// The node was reached before in this run: where it cannot be reached now, it is lost, and waited for.
    pub known: bool,
    /// Nothing else is left to do: a single lost node is waited for, too, but not for long.
    pub last: bool,
}

impl Work {
    /// On a node that was not reached before in this run.
    #[must_use]
    pub const fn new(node: Node, request: Request, limit: Duration) -> Self {
        Self { node, request, limit, known: false, last: false }
    }

    /// Whether it keeps its node busy, rather than only looks at it.
    pub(crate) fn measures(&self) -> bool {
        matches!(&self.request, Request::Run { benchmarks, .. } if !benchmarks.is_empty())
    }
}

/// A probe that stays on one node and does what it is asked until `orders` has no sender left.
#[derive(Debug)]
pub struct Talk {
    /// Where.
    pub node: Node,
    /// What it is asked, in turn.
    pub orders: mpsc::Receiver<Request>,
    /// Longest time from the first frame to the last.
    pub limit: Duration,
}

/// Something happened on a node.
#[derive(Debug)]
pub struct Event {
    /// Name of the node.
    pub node: String,
    /// What.
    pub kind: EventKind,
    /// Held until the event is dropped: so long the node gets no more room.
    #[expect(dead_code, reason = "only held")]
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// What happened.
#[derive(Debug)]
pub enum EventKind {
    /// The connection changed its state.
    Link(LinkState),
    /// A frame arrived; the last one, `Bye`, comes in `Ended` instead.
    Frame(Frame),
    /// How far the node's clock is from ours; at most once for every [`Work`], before its end.
    Clock(Clock),
    /// The node was lost, and this long ago it was last heard. It is waited for; what it has not finished begins anew.
    Interrupted(Failure, Duration),
    /// The work is over. Comes exactly once for every [`Work`].
    Ended(Result<Bye, Failure>),
}
