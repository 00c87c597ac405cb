//! Who of the nodes of a step is at work, who is lost and waited for, and how long is that worth while?

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Nodes that fall silent within this of each other were lost together.
const TOGETHER: Duration = Duration::from_secs(10);

/// The nodes of one step.
#[derive(Debug)]
pub(crate) struct Roll {
    /// Nodes that neither ended nor are waited for.
    at_work: watch::Sender<usize>,
    /// When the lost nodes were last heard.
    lost: Mutex<Vec<Instant>>,
}

/// A node that is waited for, as long as this lives.
pub(crate) struct Waiting<'a>(&'a Roll);

impl Roll {
    /// All `nodes` are at work.
    pub(crate) fn new(nodes: usize) -> Self {
        Self { at_work: watch::Sender::new(nodes), lost: Mutex::default() }
    }

    /// A node is done.
    pub(crate) fn done(&self) {
        self.at_work.send_modify(|nodes| *nodes = nodes.saturating_sub(1));
    }

    /// A node is waited for; it was last `heard` then, if it may have been lost together with others.
    pub(crate) fn waits(&self, heard: Option<Instant>) -> Waiting<'_> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).extend(heard);
        self.done();
        Waiting(self)
    }

    /// Returns once all others are done, if the node last `heard` then was lost alone: nobody waits for a single node. One of
    /// several that were lost together comes back with them.
    pub(crate) async fn not_worth_while(&self, heard: Instant) {
        let mut at_work = self.at_work.subscribe();
        // Its sender lives as long as this.
        let _ = at_work.wait_for(|nodes| *nodes == 0 && !self.together(heard)).await;
        if self.together(heard) {
            std::future::pending::<()>().await;
        }
    }

    fn together(&self, heard: Instant) -> bool {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.iter().filter(|other| near(**other, heard)).count() > 1
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.at_work.send_modify(|nodes| *nodes += 1);
    }
}

fn near(a: Instant, b: Instant) -> bool {
    a.max(b).duration_since(a.min(b)) <= TOGETHER
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is given up at once.
    async fn given_up(roll: &Roll, lost: Instant) -> bool {
        tokio::time::timeout(Duration::from_millis(20), roll.not_worth_while(lost)).await.is_ok()
    }

    #[tokio::test]
    async fn a_single_lost_node_is_given_up_when_all_others_are_done_and_not_before() {
        let (roll, now) = (Roll::new(2), Instant::now());
        let _waiting = roll.waits(Some(now));
        assert!(!given_up(&roll, now).await);
        roll.done();
        assert!(given_up(&roll, now).await);
    }

    #[tokio::test]
    async fn nodes_that_were_lost_together_are_waited_for_and_one_of_a_minute_later_is_not() {
        let (roll, now) = (Roll::new(3), Instant::now());
        let later = now + Duration::from_secs(60);
        let _waiting = [roll.waits(Some(now)), roll.waits(Some(now + Duration::from_secs(2))), roll.waits(Some(later))];
        assert!(!given_up(&roll, now).await);
        assert!(given_up(&roll, later).await);
    }
}
