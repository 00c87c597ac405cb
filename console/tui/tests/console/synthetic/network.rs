//! A matrix of pairs with a slow uplink, a node that receives slowly and one pair that failed.

use std::sync::Arc;

use muster_analysis::network::localise::{Candidate, Kind, Suspect, Undecided};
use muster_analysis::network::topology::Source;
use muster_tui::snapshot::{Endpoint, Grid, Network, Pair, Progress, Tier, Visits};
use muster_wire::{Direction, Unit};

use super::{Rng, curve};

const USUAL: [f64; 2] = [11.8e9, 11.2e9];

/// `n` endpoints, four to a leaf up to 32 and forty beyond; while `going` a third of the rounds is missing.
pub(crate) fn network(names: &[String], going: bool) -> Network {
    let n = names.len();
    let per_leaf = if n <= 32 { 4 } else { 40 };
    let mut rng = Rng(0xfab);
    let leaf = |i: usize| i / per_leaf;
    let leaves = n.div_ceil(per_leaf);
    let bad_leaf = (leaves > 1).then_some(leaves / 2);
    let deaf = n / 3;
    let mut grid = Grid::new(n);
    for src in 0..n {
        for dst in (0..n).filter(|dst| *dst != src) {
            // The circle method's round of a pair.
            if going && (src + dst) % 3 == 2 {
                continue;
            }
            let crosses = bad_leaf.is_some_and(|l| (leaf(src) == l) != (leaf(dst) == l));
            let spoilt =
                if crosses && (src + dst) % 2 == 0 { 0.31 } else { 1.0 } * if dst == deaf { 0.62 } else { 1.0 };
            let share = if (src, dst) == (n - 1, 0) { 0.0 } else { spoilt * (1.0 + 0.02 * rng.normal()) };
            grid.set(src, dst, share as f32);
        }
    }
    let suspects = bad_leaf.map(|l| {
        let pairs = 2 * per_leaf * (n - per_leaf) / 2;
        vec![
            suspect(Kind::Uplink, format!("leaf{l:02}-spine1"), 0.31, pairs),
            suspect(Kind::NodeRx, names[deaf].clone(), 0.62, n - 1),
        ]
    });
    Network {
        origin: "run r-20261121-135857".to_owned(),
        metrics: Arc::from(["net-pair/throughput".to_owned(), "net-pair/latency".to_owned()]),
        metric: 0,
        unit: Some(Unit::BytesPerSec),
        direction: Direction::HigherIsBetter,
        topology: Source::Labels,
        endpoints: names.iter().enumerate().map(|(i, n)| Endpoint { name: n.clone(), leaf: Some(leaf(i)) }).collect(),
        leaves: (0..leaves).map(|l| format!("leaf{l:02}")).collect(),
        grid: Arc::new(grid),
        progress: going.then(|| progress(n)),
        suspects: suspects.unwrap_or_default().into(),
        undecided: if bad_leaf.is_some() { Arc::from([undecided(names)]) } else { Arc::from([]) },
        next_pairs: (0..n.saturating_sub(8).min(9)).map(|i| [names[i].clone(), names[i + 8].clone()]).collect(),
        tiers: tiers(n, per_leaf, &mut rng),
        pair: bad_leaf.map(|l| Arc::new(pair(l * per_leaf, deaf, &mut rng))),
    }
}

fn progress(n: usize) -> Progress {
    let rounds = n.saturating_sub(1);
    Progress {
        round: rounds * 2 / 3,
        rounds,
        done: n * rounds / 3,
        total: n * rounds / 2,
        eta_ms: Some(41_000),
        going: true,
        dropped: Arc::from([]),
    }
}

fn suspect(kind: Kind, element: String, effect: f64, pairs: usize) -> Suspect {
    let interval = [effect - 0.014, effect + 0.012];
    Suspect { kind, element, effect, interval, pairs, slow: pairs, confidence: 0.998 }
}

fn undecided(names: &[String]) -> Undecided {
    let last = names.len() - 1;
    let candidate = |kind, element: &str| Candidate { kind, element: element.to_owned() };
    Undecided {
        candidates: vec![
            candidate(Kind::Pair, &format!("{}-{}", names[last], names[0])),
            candidate(Kind::NodeTx, &names[last]),
        ],
        reason: "one slow pair is too little to tell a fault from chance".to_owned(),
        pairs: 1,
        slow: 1,
    }
}

fn tiers(n: usize, per_leaf: usize, rng: &mut Rng) -> Arc<[Tier]> {
    let within = n * (per_leaf.min(n) - 1);
    let counts = [within, (n * n.saturating_sub(1)).saturating_sub(within)];
    let tier = |at: usize, rng: &mut Rng| Tier {
        hops: Some(2 + 2 * at as u16),
        pairs: counts[at],
        usual: USUAL[at],
        spread: 0.02,
        curve: curve(USUAL[at], 0.02, rng),
    };
    (0..2).filter(|at| counts[*at] > 0).map(|at| tier(at, rng)).collect()
}

fn pair(src: usize, dst: usize, rng: &mut Rng) -> Pair {
    let mut visits = |share: f64| Visits {
        visits: 3,
        failed: 0,
        values: (0..24).map(|_| USUAL[1] * share * (1.0 + 0.03 * rng.normal())).collect(),
        up: Arc::from(["spine1".to_owned()]),
    };
    Pair { src, dst, hops: Some(4), usual: Some(USUAL[1]), there: visits(0.31), back: visits(0.98) }
}
