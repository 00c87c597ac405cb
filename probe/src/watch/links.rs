//! What is asked of network cards every few seconds: drivers answer slowly, and hold a lock of the kernel meanwhile.

use super::ethtool::{self, Kind};
use super::look::Look;
use super::{net, rdma};
use crate::collect::Root;

/// Whole looks from one question to the next.
const SELDOM: u32 = 5;

/// The cards, and what they last said.
pub(super) struct Source {
    cards: Vec<String>,
    counters: ethtool::Source,
    looks: u32,
    speeds: [Option<f64>; 2],
}

impl Source {
    pub(super) fn new(root: &Root) -> Self {
        let cards = net::cards(root);
        let counters = if root.is_system() { ethtool::Source::new(&cards) } else { ethtool::Source::default() };
        Self { cards, counters, looks: 0, speeds: [None; 2] }
    }

    pub(super) fn look(&mut self, root: &Root, look: &mut Look) {
        if self.looks.is_multiple_of(SELDOM) {
            self.speeds = [net::speed(root, &self.cards), rdma::speed(root)];
            self.counters.read(look.at_ns);
        }
        self.looks = self.looks.wrapping_add(1);
        for (metric, speed) in ["net_link_gbs", "rdma_link_gbs"].into_iter().zip(self.speeds) {
            if let Some(speed) = speed {
                look.level(metric, speed);
            }
        }
        // Rates of the last seconds, told until there are new ones.
        for (metric, kind) in
            [("pfc_tx_pps", Kind::Sent), ("pfc_rx_pps", Kind::Received), ("net_discards_pps", Kind::Lost)]
        {
            if let Some(rate) = self.counters.rate(kind) {
                look.level(metric, rate);
            }
        }
    }
}
