//! How do pairs look on the Network screen? Puts a matrix in the order of the fabric, beside what it points at.

use std::sync::Arc;

use muster_analysis::network::localise::{Localisation, Tier};
use muster_analysis::network::topology::Source;
use muster_analysis::network::{LOSS, LOSS_FLOOR, Matrix, localise_beside};
use muster_analysis::{Sample, cdf_points};
use muster_tui::snapshot::{self, Endpoint, Grid, Network, Pair, Visits};
use muster_wire::Direction;

use super::picture::POINTS;
use crate::judge::Pairs;

/// Pairs of a tier that its curve is drawn from.
const CURVE: usize = 4_000;
/// A pair this much better than usual is not told from a better one.
const BEST: f32 = 4.0;

impl Pairs {
    /// What the screen shows of `metric`; `None` without such a metric. Takes up to a second for 3,000 nodes.
    #[must_use]
    pub fn picture(&self, metric: &str) -> Option<Network> {
        let matrix = self.matrices.get(metric)?;
        let known = self.localised.get(metric).cloned();
        let localise = || localise_beside(matrix, self.matrices.get(LOSS), &self.topology, &self.params);
        let found = known.unwrap_or_else(localise);
        let order = self.order(matrix);
        let place = places(&order);
        let (grid, tiers) = self.grid(matrix, &found, &place);
        Some(Network {
            origin: self.origin.clone(),
            metrics: self.matrices.keys().cloned().collect(),
            metric: self.matrices.keys().position(|name| name == metric).unwrap_or(0),
            unit: self.units.get(metric).copied(),
            direction: matrix.direction(),
            topology: self.topology.source(),
            endpoints: order.iter().map(|at| self.endpoint(&matrix.endpoints()[*at])).collect(),
            leaves: self.topology.leaves().iter().cloned().collect(),
            grid: Arc::new(grid),
            progress: None,
            suspects: found.suspects.into(),
            undecided: found.undecided.into(),
            next_pairs: found.next_pairs.into(),
            tiers: tiers.into(),
            pair: None,
        })
    }

    /// The samples of one pair, both ways. Linear in the visits.
    #[must_use]
    pub fn pair(&self, shown: &Network, src: &str, dst: &str) -> Option<Pair> {
        let matrix = self.matrices.get(shown.metrics.get(shown.metric)?)?;
        let number = |name: &str| matrix.endpoints().iter().position(|e| e == name);
        let place = |name: &str| shown.endpoints.iter().position(|e| e.name == name);
        let hops = self.hops(self.leaf(src), self.leaf(dst));
        let tier = tier_of(hops, shown.tiers.iter().map(|t| (t.hops, t.pairs)));
        let usual = tier.map(|at| shown.tiers[at].usual);
        let (from, to) = (number(src)?, number(dst)?);
        let (there, back) = (visits(matrix, from, to), visits(matrix, to, from));
        Some(Pair { src: place(src)?, dst: place(dst)?, hops, usual, there, back })
    }

    /// The node of an endpoint, which may be one of its NICs.
    fn node(&self, endpoint: &str) -> Option<u32> {
        self.topology.endpoint(endpoint)
    }

    fn endpoint(&self, name: &str) -> Endpoint {
        Endpoint { name: name.to_owned(), leaf: self.node(name).map(|node| self.topology.leaf(node) as usize) }
    }

    /// The leaf of an endpoint. The one leaf of a flat topology stands for "unknown", so no endpoint of it has one: localisation
    /// puts such pairs, too, into the tier without a distance.
    fn leaf(&self, endpoint: &str) -> Option<u32> {
        let known = self.topology.source() != Source::Flat;
        self.node(endpoint).filter(|_| known).map(|node| self.topology.leaf(node))
    }

    /// The distance that the tier of a pair has, by the leaves of its ends.
    fn hops(&self, a: Option<u32>, b: Option<u32>) -> Option<u16> {
        self.topology.leaf_hops(a?, b?)
    }

    /// Endpoints by the switch they are attached to, then by name.
    fn order(&self, matrix: &Matrix) -> Vec<usize> {
        let names = matrix.endpoints();
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_cached_key(|at| {
            let leaf = self.node(&names[*at]).map(|node| self.topology.leaf(node));
            let above = leaf.map(|leaf| self.topology.above(leaf).into_iter().rev().collect::<Vec<_>>());
            (leaf.is_none(), above, leaf, names[*at].clone())
        });
        order
    }

    /// Every visit as a share of what is usual at its distance, the worst of several; and the distances.
    fn grid(&self, matrix: &Matrix, found: &Localisation, place: &[usize]) -> (Grid, Vec<snapshot::Tier>) {
        let names = matrix.endpoints();
        let mut grid = Grid::new(names.len());
        let leaf: Vec<Option<u32>> = names.iter().map(|name| self.leaf(name)).collect();
        let tier_of = |hops: Option<u16>| tier_of(hops, found.tiers.iter().map(|t| (t.hops, t.pairs)));
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); found.tiers.len()];
        for (at, cell) in matrix.cells().iter().enumerate() {
            let (src, dst) = (cell.src as usize, cell.dst as usize);
            let Some(tier) = tier_of(self.hops(leaf[src], leaf[dst])) else { continue };
            let value = median(matrix.values(at));
            let share = share(matrix, value, found.tiers[tier].centre);
            let worst = grid.get(place[src], place[dst]).map_or(share, |before| before.min(share));
            grid.set(place[src], place[dst], worst);
            values[tier].extend(value.filter(|_| at % matrix.len().div_ceil(CURVE).max(1) == 0));
        }
        let tiers = found.tiers.iter().zip(values).map(|(tier, values)| shown(tier, &values)).collect();
        (grid, tiers)
    }
}

/// Place of the tier of pairs that are `hops` apart, among the distances and numbers of pairs of all `tiers`: that of their distance,
/// else that of unknown distances. Else the largest: localisation may have found leaves that the topology does not know, or nothing
/// at that distance that works.
fn tier_of(hops: Option<u16>, tiers: impl Iterator<Item = (Option<u16>, usize)> + Clone) -> Option<usize> {
    let place = |wanted: Option<u16>| tiers.clone().position(|(hops, _)| hops == wanted);
    let largest = || tiers.clone().enumerate().max_by_key(|(_, (_, pairs))| *pairs).map(|(at, _)| at);
    place(hops).or_else(|| place(None)).or_else(largest)
}

fn shown(tier: &Tier, values: &[f64]) -> snapshot::Tier {
    let curve = Sample::new(values).map(|sample| cdf_points(&sample, POINTS)).unwrap_or_default();
    snapshot::Tier { hops: tier.hops, pairs: tier.pairs, usual: tier.centre, spread: tier.spread, curve: curve.into() }
}

/// Places in the order, by number.
fn places(order: &[usize]) -> Vec<usize> {
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, number)| place[*number] = at);
    place
}

fn median(values: &[f32]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some(f64::midpoint(f64::from(sorted[last / 2]), f64::from(sorted[last.div_ceil(2)])))
}

/// How good a visit of this value was: its share of the usual, or the inverse where less is better; 0 where it failed. What is lost
/// as on any sound path is no difference.
pub(crate) fn share(matrix: &Matrix, value: Option<f64>, usual: f64) -> f32 {
    let Some(value) = value else { return 0.0 };
    let least = if matrix.metric() == LOSS { f64::from(LOSS_FLOOR) } else { 0.0 };
    let (value, usual) = (value.max(least), usual.max(least));
    let (better, worse) = match matrix.direction() {
        Direction::HigherIsBetter => (value, usual),
        Direction::LowerIsBetter => (usual, value),
    };
    // A latency of nothing is as good as can be; a tenth of a per cent is not yet a failure.
    if worse > 0.0 { ((better / worse) as f32).clamp(1e-3, BEST) } else { BEST }
}

fn visits(matrix: &Matrix, src: usize, dst: usize) -> Visits {
    let of = |cell: &muster_analysis::network::Cell| (cell.src as usize, cell.dst as usize) == (src, dst);
    let own: Vec<usize> = matrix.cells().iter().enumerate().filter(|(_, c)| of(c)).map(|(at, _)| at).collect();
    let mut up: Vec<String> = own.iter().filter_map(|at| matrix.up(*at)).map(str::to_owned).collect();
    up.dedup();
    Visits {
        visits: own.len(),
        failed: own.iter().filter(|at| matrix.values(**at).is_empty()).count(),
        values: own.iter().flat_map(|at| matrix.values(*at)).map(|v| f64::from(*v)).collect(),
        up: up.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use muster_analysis::Params;
    use muster_analysis::network::topology::{Topology, from_csv};

    fn pairs(metric: &str, direction: Direction) -> Pairs {
        let mut matrix = Matrix::new(metric, direction);
        let names: Vec<String> = (0..8).map(|i| format!("n{i}")).collect();
        for (s, d) in (0..8).flat_map(|s| (0..8).map(move |d| (s, d))).filter(|(s, d)| s != d) {
            let value = 100.0 + ((s * 7 + d * 3) % 5) as f64;
            let values: &[f64] = if (s, d) == (6, 1) { &[] } else { &[value, value, value / 2.0] };
            matrix.push_named(&names[s], &names[d], values, Some("spine0"));
        }
        // Even nodes hang under b, odd ones under a, which comes first.
        let rows: String = (0..8).map(|i| format!("n{i},{}\n", if i % 2 == 0 { "b" } else { "a" })).collect();
        Pairs {
            origin: "test".to_owned(),
            matrices: BTreeMap::from([(metric.to_owned(), matrix)]),
            units: BTreeMap::new(),
            topology: from_csv(&format!("node,leaf\n{rows}")).unwrap(),
            localised: BTreeMap::new(),
            params: Params::default(),
        }
    }

    #[test]
    fn neighbours_in_the_fabric_are_neighbours_on_the_map() {
        let network = pairs("throughput", Direction::HigherIsBetter).picture("throughput").unwrap();
        let leaves: Vec<Option<usize>> = network.endpoints.iter().map(|e| e.leaf).collect();
        assert!(leaves.windows(2).filter(|w| w[0] != w[1]).count() == 1, "{leaves:?}");
        assert_eq!(network.tiers.iter().map(|t| (t.hops, t.pairs)).collect::<Vec<_>>(), [(Some(2), 24), (Some(4), 32)]);
        assert_eq!(network.grid.get(0, 0), None);
    }

    #[test]
    fn a_failed_pair_is_nothing_of_the_usual_and_a_sound_one_all_of_it() {
        for direction in [Direction::HigherIsBetter, Direction::LowerIsBetter] {
            let pairs = pairs("throughput", direction);
            let network = pairs.picture("throughput").unwrap();
            let at = |name: &str| network.endpoints.iter().position(|e| e.name == name).unwrap();
            assert_eq!(network.grid.get(at("n6"), at("n1")), Some(0.0));
            assert!((network.grid.get(at("n1"), at("n6")).unwrap() - 1.0).abs() < 0.06);
            let pair = pairs.pair(&network, "n6", "n1").unwrap();
            assert_eq!((pair.there.visits, pair.there.failed, pair.there.values.len()), (1, 1, 0));
            assert_eq!((pair.back.visits, pair.back.values.len(), pair.back.up.len(), pair.hops), (1, 3, 1, Some(4)));
        }
    }

    #[test]
    fn without_a_topology_every_measured_pair_is_on_the_map_against_all_others() {
        let known = pairs("throughput", Direction::HigherIsBetter);
        let names: Vec<String> = (0..8).map(|i| format!("n{i}")).collect();
        let flat = Pairs { topology: Topology::flat(&names), ..known };
        let network = flat.picture("throughput").unwrap();
        let all = (0..8).flat_map(|s| (0..8).map(move |d| (s, d)));
        assert_eq!(all.filter(|(s, d)| network.grid.get(*s, *d).is_some()).count(), 56);
        assert_eq!(network.tiers.iter().map(|t| (t.hops, t.pairs)).collect::<Vec<_>>(), [(None, 56)]);
        assert!(!network.tiers[0].curve.is_empty());
        let pair = flat.pair(&network, "n1", "n6").unwrap();
        assert_eq!((pair.hops, pair.usual), (None, Some(network.tiers[0].usual)));
    }

    #[test]
    fn a_pair_at_a_distance_without_a_tier_is_held_against_the_others() {
        let known = [(Some(2), 24), (Some(4), 32)];
        assert_eq!(tier_of(Some(4), known.into_iter()), Some(1));
        assert_eq!(tier_of(None, known.into_iter()), Some(1), "the largest");
        assert_eq!(tier_of(Some(6), [(None, 2), (Some(2), 24)].into_iter()), Some(0));
        assert_eq!(tier_of(Some(2), std::iter::empty()), None);
    }

    #[test]
    fn less_of_a_latency_is_better_and_none_is_best() {
        let latency = Matrix::new("rtt-64", Direction::LowerIsBetter);
        assert_eq!(share(&latency, Some(0.0), 0.001), BEST);
        assert_eq!(share(&latency, Some(2.0), 1.0), 0.5);
        assert_eq!(share(&latency, None, 1.0), 0.0);
    }

    #[test]
    fn a_loss_that_sound_paths_have_is_as_usual_and_fifty_times_of_it_is_not() {
        let losses = Matrix::new(LOSS, Direction::LowerIsBetter);
        let share = |value, usual| share(&losses, Some(value), usual);
        assert_eq!([share(0.0, 0.0), share(0.0008, 0.0), share(0.0, 0.001)], [1.0; 3]);
        assert!((share(0.05, 0.0) - 0.02).abs() < 1e-6 && (share(0.1, 0.002) - 0.02).abs() < 1e-6);
    }
}
