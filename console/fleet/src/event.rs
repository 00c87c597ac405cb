//! What is asked of a node, and what comes back while it works.

use std::time::Duration;

use muster_wire::{Bye, Frame, Request};
use tokio::sync::mpsc;

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
#[derive(Clone, Debug)]
pub struct Event {
    /// Name of the node.
    pub node: String,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// The connection changed its state.
    Link(LinkState),
    /// A frame arrived; the last one, `Bye`, comes in `Ended` instead.
    Frame(Frame),
    /// How far the node's clock is from ours; at most once for every [`Work`], before its end.
    Clock(Clock),
    /// The work is over. Comes exactly once for every [`Work`].
    Ended(Result<Bye, Failure>),
}
