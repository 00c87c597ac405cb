//! Losses of the steps outside of slow stretches, as averages over metrics ask for them: each is looked for once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::decision::View as Look;
use super::peers::Peers;
use super::{Fleet, Settings, stretch};

/// What is known of the nodes and metrics asked for so far.
pub(super) struct Calm<'a> {
    fleet: &'a Fleet<'a>,
    settings: &'a Settings,
    known: RefCell<BTreeMap<(usize, u32), Option<f64>>>,
}

impl<'a> Calm<'a> {
    pub(super) fn of(fleet: &'a Fleet<'a>, settings: &'a Settings) -> Self {
        Self { fleet, settings, known: RefCell::default() }
    }

    /// Loss of the median step of `node` outside of its stretches in `metric`, against `peers`, which are always the same;
    /// `None` where it has no stretch.
    pub(super) fn loss(&self, metric: usize, node: u32, peers: &Peers) -> Option<f64> {
        *self.known.borrow_mut().entry((metric, node)).or_insert_with(|| {
            let of = &self.fleet.metrics[metric];
            let stretch = stretch::find(of.samples[node as usize]?, of.direction)?;
            Some(stretch.loss(Look::MedianStep, of.direction, peers.centre, self.settings.glitch))
        })
    }
}
