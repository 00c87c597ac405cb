//! How far is a node from the nearest of those it works with?
//!
//! A link that carries less than it should delays all that a node sends and gets. Each end of a connection sees such a delay, whichever
//! end has it, so one connection accuses nobody: but the node with the bad link is far from all its peers, and its peers are far
//! from it alone.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use muster_wire::Trip;

/// Name of the metric, in milliseconds.
pub const NEAREST: &str = "tcp_rtt_least_ms";
/// Seconds for which what an end told counts.
const COUNTS_S: f64 = 5.0;
/// With fewer peers, nobody can tell which end it is.
const FEWEST: usize = 2;
/// Addresses of one node that are kept.
const ADDRESSES: usize = 64;

/// What the nodes of a watch told of each other.
#[derive(Debug, Default)]
pub struct Peers {
    /// Whose address it is; nobody's where two nodes claim it.
    owners: HashMap<IpAddr, Option<usize>>,
    claimed: HashMap<usize, usize>,
    /// Of each node, by its peer: when it was told by either end, and the longer round trip in milliseconds.
    trips: HashMap<usize, BTreeMap<usize, [(f64, f64); 2]>>,
}

impl Peers {
    /// Takes what `node` told at `at_s`, and gives the round trip to its nearest peer, milliseconds, by what both ends say.
    /// Nothing where it has fewer than two peers among the nodes.
    pub fn take(&mut self, node: usize, at_s: f64, trips: &[Trip]) -> Option<f64> {
        for trip in trips {
            self.claim(node, trip.own);
            let owner = |address| self.owners.get(address).copied().flatten();
            let (Some(own), Some(peer)) = (owner(&trip.own), owner(&trip.peer)) else { continue };
            if own != node || peer == node {
                continue;
            }
            let told = (at_s, f64::from(trip.micros) / 1e3);
            // Several addresses of one peer: the longest round trip of this look.
            let [own, _] = self.between(node, peer);
            if own.0 < at_s || own.1 < told.1 {
                *own = told;
                self.between(peer, node)[1] = told;
            }
        }
        let known = self.trips.get(&node)?;
        let now = |told: &[(f64, f64); 2]| {
            let fresh = told.iter().filter(|(when_s, _)| (at_s - when_s).abs() <= COUNTS_S);
            fresh.map(|(_, millis)| *millis).reduce(f64::max)
        };
        let peers: Vec<f64> = known.values().filter_map(now).collect();
        if peers.len() < FEWEST { None } else { peers.into_iter().reduce(f64::min) }
    }

    fn claim(&mut self, node: usize, address: IpAddr) {
        match self.owners.get_mut(&address) {
            Some(owner) if *owner == Some(node) => {}
            // A node may not take another's place.
            Some(owner) => *owner = None,
            None => {
                let claimed = self.claimed.entry(node).or_default();
                if *claimed < ADDRESSES {
                    *claimed += 1;
                    self.owners.insert(address, Some(node));
                }
            }
        }
    }

    /// What `node` told of `peer`, and what `peer` told of `node`.
    fn between(&mut self, node: usize, peer: usize) -> &mut [(f64, f64); 2] {
        self.trips.entry(node).or_default().entry(peer).or_insert([(f64::NEG_INFINITY, 0.0); 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(node: usize) -> IpAddr {
        IpAddr::from([10, 0, 0, node as u8])
    }

    fn trip(own: usize, peer: usize, micros: u32) -> Trip {
        Trip { own: address(own), peer: address(peer), micros }
    }

    /// A ring of six in which each sends to the next alone: what all know of the distance to their nearest peer after two looks.
    fn ring(micros: impl Fn(usize, usize) -> u32) -> Vec<Option<f64>> {
        let mut peers = Peers::default();
        let mut look = |at_s: f64| -> Vec<Option<f64>> {
            let one = |node: usize| {
                let next = (node + 1) % 6;
                peers.take(node, at_s, &[trip(node, next, micros(node, next))])
            };
            (0..6).map(one).collect()
        };
        look(1.0);
        look(2.0);
        look(3.0)
    }

    #[test]
    fn the_node_with_the_slow_link_is_far_from_all_and_its_neighbours_from_it_alone() {
        let slow = |own: usize, peer: usize| if own == 3 || peer == 3 { 24_000 } else { 2_000 };
        let far: Vec<bool> = ring(slow).into_iter().map(|millis| millis.unwrap() > 20.0).collect();
        assert_eq!(far, [false, false, false, true, false, false]);
        // A single bad cable between two switches is nobody's.
        let between = |own: usize, _: usize| if own == 3 { 24_000 } else { 2_000 };
        assert!(ring(between).into_iter().all(|millis| millis == Some(2.0)));
    }

    #[test]
    fn one_peer_says_nothing_and_what_is_old_counts_no_longer() {
        let mut peers = Peers::default();
        for (node, peer) in [(1, 0), (2, 0), (0, 1)] {
            peers.take(node, 0.0, &[trip(node, peer, 100)]);
        }
        assert_eq!(peers.take(0, 1.0, &[trip(0, 1, 100)]), None);
        assert_eq!(peers.take(0, 2.0, &[trip(0, 1, 100), trip(0, 2, 300)]), Some(0.1));
        assert_eq!(peers.take(0, 9.0, &[trip(0, 2, 300)]), None);
    }

    #[test]
    fn whoever_claims_anothers_address_takes_it_from_both() {
        let mut peers = Peers::default();
        let all = |peers: &mut Peers, at_s: f64| {
            peers.take(1, at_s, &[trip(1, 0, 100)]);
            peers.take(2, at_s, &[trip(2, 0, 100)]);
            peers.take(0, at_s, &[trip(0, 1, 100), trip(0, 2, 100)])
        };
        all(&mut peers, 0.0);
        assert_eq!(all(&mut peers, 1.0), Some(0.1));
        peers.take(3, 10.0, &[trip(1, 0, 90_000)]);
        assert_eq!(all(&mut peers, 20.0), None);
    }
}
