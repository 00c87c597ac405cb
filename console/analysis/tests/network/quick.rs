//! Whether the quick scan pairs every node once per hop distance on whole fabrics: a made-up InfiniBand fabric of the
//! shape on which greedy pairing loses pairs, an uneven three-tier fleet, and any file named in the environment.

#![expect(clippy::disallowed_methods, reason = "tests read files, which the library never does")]

use muster_analysis::network::Topology;
use muster_analysis::network::schedule::{Tier, quick_scan};
use muster_analysis::network::topology::{from_csv, ibnetdiscover};

fn sizes(tiers: &[Tier]) -> Vec<(u16, usize)> {
    tiers.iter().map(|t| (t.hops, t.pairs.len())).collect()
}

fn fabric(text: &str) -> Topology {
    let fabric = ibnetdiscover(text).unwrap_or_else(|e| panic!("{e}"));
    fabric.topology(|hca| Some(hca.host().to_owned())).unwrap_or_else(|e| panic!("{e}"))
}

/// A matching of one tier of a tree cannot be larger than this: per aggregate of that tier, half of its nodes, or all
/// that are not in its largest part.
fn bound(topology: &Topology, hops: u16) -> usize {
    let n = topology.len() as u32;
    let mut seen = vec![false; n as usize];
    let mut total = 0;
    for first in 0..n {
        if seen[first as usize] {
            continue;
        }
        let near = |limit: u16, from: u32| (0..n).filter(move |&o| topology.hops(from, o).is_some_and(|h| h <= limit));
        let whole: Vec<u32> = near(hops, first).collect();
        whole.iter().for_each(|&node| seen[node as usize] = true);
        let largest = whole.iter().map(|&node| near(hops - 2, node).count()).max().unwrap_or(0);
        total += (whole.len() / 2).min(whole.len() - largest);
    }
    total
}

#[test]
fn five_five_and_four_pairs_where_greedy_finds_five_four_and_four() {
    let topology = fabric(include_str!("fabric.ibnetdiscover"));
    assert_eq!(topology.len(), 10);
    assert_eq!(sizes(&quick_scan(&topology)), [(2, 5), (4, 5), (6, 4)]);
}

#[test]
fn an_uneven_three_tier_fleet_is_paired_as_far_as_parity_allows() {
    let pods = [("P10", 48, 8), ("P12", 42, 7), ("P8", 29, 6)];
    let mut text = "ip,DSW,PSW,ASW\n".to_owned();
    for (pod, leaves, hosts) in pods {
        for leaf in 0..leaves {
            for host in 0..hosts - leaf % 3 {
                text += &format!("{pod}-{leaf}-{host},G6,{pod},S{leaf}\n");
            }
        }
    }
    check_tree(&from_csv(&text).unwrap_or_else(|e| panic!("{e}")));
}

fn check_tree(topology: &Topology) {
    let tiers = quick_scan(topology);
    assert_eq!(tiers.iter().map(|t| t.hops).collect::<Vec<_>>(), [2, 4, 6]);
    for tier in &tiers {
        assert_eq!(tier.pairs.len(), bound(topology, tier.hops), "{} hops", tier.hops);
        assert!(tier.pairs.iter().all(|&(a, b)| topology.hops(a, b) == Some(tier.hops)));
        let mut nodes: Vec<u32> = tier.pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), 2 * tier.pairs.len(), "a node is in two pairs");
        println!("{} hops: {} pairs, {} unpaired", tier.hops, tier.pairs.len(), tier.unpaired.len());
    }
}

/// `MUSTER_TOPOLOGIES` names a folder with `topo.csv` (rows like Lingjun's) or `ibnetdiscover.txt`.
#[test]
fn real_fabrics_named_in_the_environment() {
    let Ok(folder) = std::env::var("MUSTER_TOPOLOGIES") else {
        let why = "MUSTER_TOPOLOGIES names no folder of real topologies";
        return muster_skip::skip("real_fabrics_named_in_the_environment", muster_skip::Lacks::Data, why);
    };
    let folder = std::path::Path::new(&folder);
    if let Ok(text) = std::fs::read_to_string(folder.join("topo.csv")) {
        check_tree(&from_csv(&text).unwrap_or_else(|e| panic!("{e}")));
    }
    if let Ok(text) = std::fs::read_to_string(folder.join("ibnetdiscover.txt")) {
        println!("ibnetdiscover.txt: {:?}", sizes(&quick_scan(&fabric(&text))));
    }
}
