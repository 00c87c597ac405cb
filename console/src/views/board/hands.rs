//! In whose hands the nodes on the board are.

use std::sync::Arc;

use muster_analysis::service::Service;
use muster_tui::snapshot::ServicePast;

use super::{Board, Inner};
use crate::views::Hands;

impl Board {
    /// From now on the nodes are in these hands.
    pub fn hands(&self, hands: Hands) {
        let mut inner = self.lock();
        if inner.hands == hands {
            return;
        }
        inner.hands = hands;
        inner.hand_over();
        inner.dirty = true;
        // What a return needs may be something else now.
        inner.ask();
    }

    /// Whether there is anything to be said of whose hands `node` is in.
    #[must_use]
    pub fn is_handed(&self, node: &str) -> bool {
        self.lock().hands.contains_key(node)
    }

    /// What became of `node` before, and what its return needs; kept while the screen looks at it.
    pub fn service_past(&self, node: &str, past: ServicePast) {
        let mut inner = self.lock();
        if inner.focus.as_deref() == Some(node) {
            inner.service = Some(Arc::new(past));
            (inner.refocus, inner.dirty) = (true, true);
        }
    }
}

impl Inner {
    /// Puts the rows into the hands that are known.
    pub(super) fn hand_over(&mut self) {
        for row in &mut self.nodes {
            let own = self.hands.get(&row.name);
            if row.service.as_ref() != own {
                Arc::make_mut(row).service = own.cloned();
            }
        }
    }

    /// Counts the nodes that are not simply in service.
    pub(super) fn count_hands(&mut self) {
        let mut counts = [0; Service::ALL.len()];
        self.nodes.iter().for_each(|row| counts[row.hands() as usize] += 1);
        let present = Service::ALL.into_iter().zip(counts).filter(|(state, n)| *state != Service::InService && *n > 0);
        self.now.hands = present.collect();
    }
}
