//! What is under way on which node, and when are enough nodes through for the others to go on?

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use anyhow::{Context, Result};
use muster_fleet::{Event, EventKind, Failure, Work};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::order::Scan;

/// Events taken at once.
const MOST: usize = 256;
/// Nodes that are late have at least this long, once the others are through.
const LEAST: Duration = Duration::from_secs(60);
/// Between two looks at whether those that are late are waited for still.
const AGAIN: Duration = Duration::from_secs(5);

/// Works that were handed to the fleet and have not ended.
#[derive(Debug)]
pub(super) struct UnderWay {
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
    fleets: JoinSet<()>,
    stop: CancellationToken,
    nodes: HashMap<String, Open>,
}

/// A node at work.
#[derive(Debug)]
struct Open {
    /// Works that have not ended.
    works: usize,
    visit: usize,
    /// How its first work that was not done ended.
    failure: Option<Failure>,
    /// It was lost and may come back.
    away: bool,
}

/// What an event means for the node that it came from.
#[derive(Debug)]
pub(super) struct Noted {
    /// The node's visit number.
    pub visit: usize,
    /// The work ended as one before it did, and was not even begun.
    pub skipped: bool,
    /// The node has nothing more to do; how its first work that was not done ended.
    pub over: Option<Option<Failure>>,
}

impl UnderWay {
    /// Nothing; whatever will be ends when `cancel` does.
    pub fn new(cancel: &CancellationToken) -> Self {
        let (sender, events) = mpsc::channel(1024);
        let (fleets, nodes) = (JoinSet::new(), HashMap::new());
        Self { sender, events, fleets, stop: cancel.child_token(), nodes }
    }

    /// Hands `works` to the fleet: visits number `visit` of nodes of which nothing is under way.
    pub fn start(&mut self, scan: &Scan, works: Vec<Work>, visit: usize) {
        for work in &works {
            let new = Open { works: 0, visit, failure: None, away: false };
            self.nodes.entry(work.node.name.clone()).or_insert(new).works += 1;
        }
        let (sender, stop) = (self.sender.clone(), self.stop.clone());
        self.fleets.spawn(muster_fleet::run(works, scan.probe.clone(), scan.settings.clone(), sender, stop));
    }

    /// Waits for events and adds them to `batch`; adds none where `until` is past, or nothing is under way any more.
    ///
    /// # Errors
    /// When the fleet broke down.
    pub async fn hear(&mut self, batch: &mut Vec<Event>, until: Option<Instant>) -> Result<()> {
        loop {
            if self.fleets.is_empty() && self.events.is_empty() {
                self.nodes.clear();
                return Ok(());
            }
            let patience = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = self.events.recv_many(batch, MOST) => return Ok(()),
                Some(ended) = self.fleets.join_next() => ended.context("the fleet task ended early")?,
                () = patience => return Ok(()),
            }
        }
    }

    /// Follows an event; `None` from a node that has nothing to do.
    pub fn note(&mut self, event: &Event) -> Option<Noted> {
        let open = self.nodes.get_mut(&event.node)?;
        let (visit, mut skipped, mut over) = (open.visit, false, None);
        match &event.kind {
            EventKind::Interrupted(..) => open.away = true,
            EventKind::Frame(_) => open.away = false,
            EventKind::Ended(result) => {
                skipped = open.failure.is_some();
                open.failure = open.failure.take().or_else(|| result.as_ref().err().cloned());
                open.works = open.works.saturating_sub(1);
                if open.works == 0 {
                    over = Some(open.failure.take());
                    self.nodes.remove(&event.node);
                }
            }
            EventKind::Link(_) | EventKind::Clock(_) => {}
        }
        Some(Noted { visit, skipped, over })
    }

    /// Nodes with something to do.
    pub fn names(&self) -> BTreeSet<String> {
        self.nodes.keys().cloned().collect()
    }

    /// Whether one of `nodes` was lost and may come back.
    pub fn is_any_away(&self, nodes: &BTreeSet<String>) -> bool {
        nodes.iter().filter_map(|name| self.nodes.get(name)).any(|open| open.away)
    }

    /// Ends everything that is under way.
    pub async fn end(&mut self) {
        self.stop.cancel();
        self.events.close();
        while self.events.recv().await.is_some() {}
        while self.fleets.join_next().await.is_some() {}
    }
}

/// How long nodes are waited for that are slower than the others.
#[derive(Debug)]
pub(super) struct Patience {
    begun: Instant,
    /// So many nodes that are through are enough to go on with.
    enough: usize,
    until: Option<Instant>,
}

impl Patience {
    /// With `nodes` that begin now.
    pub fn new(nodes: usize, now: Instant) -> Self {
        // Of two nodes one, of sixteen twelve. Nobody waits for a single one.
        let enough = (nodes * 3).div_ceil(4).min(nodes.saturating_sub(1));
        Self { begun: now, enough: if enough == 0 { usize::MAX } else { enough }, until: None }
    }

    /// The instant up to which the late ones are waited for, when `through` nodes are through `now`: as long again as it took until
    /// three of four were, a minute at least.
    pub fn until(&mut self, through: usize, now: Instant) -> Option<Instant> {
        if through >= self.enough && self.until.is_none() {
            self.until = Some(now + (now - self.begun).max(LEAST));
        }
        self.until
    }

    /// Waits a little longer from `now` on.
    pub fn prolong(&mut self, now: Instant) {
        self.until = Some(now + AGAIN);
    }

    /// Seconds since the step began.
    pub fn seconds(&self, now: Instant) -> u64 {
        (now - self.begun).as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_late_have_as_long_again_as_three_of_four_took_and_a_minute_at_least() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut slow = Patience::new(16, now);
        assert_eq!(slow.until(11, after(100)), None);
        assert_eq!(slow.until(12, after(300)), Some(after(600)));
        assert_eq!(slow.until(15, after(500)), Some(after(600)));
        let mut short = Patience::new(4, now);
        assert_eq!(short.until(2, after(2)), None);
        assert_eq!(short.until(3, after(2)), Some(after(62)));
        assert_eq!(Patience::new(2, now).until(1, after(2)), Some(after(62)));
    }

    #[test]
    fn nobody_is_late_who_is_alone() {
        let now = Instant::now();
        for nodes in [0, 1] {
            assert_eq!(Patience::new(nodes, now).until(nodes, now), None);
        }
    }
}
