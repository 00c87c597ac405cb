//! Which nodes, NICs, leaves and uplinks are bad enough over all their pairs to be asked about?

use serde::{Deserialize, Serialize};

use super::Suspect;
use super::places::{NONE, Places};
use super::residual::Residuals;
use crate::network::Matrix;

/// What an element of the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A node, sending and receiving.
    Node,
    /// One of several NICs of a node.
    Nic,
    /// A node, receiving only.
    NodeRx,
    /// A node, sending only.
    NodeTx,
    /// A leaf switch: all pairs that leave or enter it.
    Leaf,
    /// A link between switches, or everything above a leaf, an aggregate or a spine.
    Uplink,
    /// One pair alone.
    Pair,
}

/// An explanation that is weighed: all cells of some groups share one effect.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Elements of one label are one thing seen in one direction or both; the first is the widest.
    pub(super) label: u32,
    pub(super) groups: Vec<u32>,
    /// How much evidence it needs: logarithm of how many like it there are, and of how rare its kind of fault is.
    pub(super) penalty: f64,
    /// Least effect that is a fault.
    pub(super) gate: f32,
}

/// Sum of clipped, standardised residuals of a group, and how many visits lost more than the least fault.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    n: u32,
    over: u32,
    sum: f32,
}

/// Residuals are clipped at this many spreads, so that no single visit makes a group bad.
const CLIP: f32 = 3.0;
/// Half of a bad element's visits lose more than the least fault; a little less, for the estimate's error.
const HALF: f64 = 0.42;
/// Prior cost of any fault: about one element in twenty.
const RARE: f64 = 3.0;

impl Tally {
    fn mean(self) -> f64 {
        if self.n == 0 { 0.0 } else { f64::from(self.sum) / f64::from(self.n) }
    }
}

/// One pass over all visits.
pub(super) fn tally(matrix: &Matrix, places: &Places, residuals: &Residuals, least: f32) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); places.base.count as usize];
    let scale: Vec<f32> = residuals.tiers.iter().map(|t| t.as_ref().map_or(0.0, |t| t.spread.recip() as f32)).collect();
    for (at, cell) in matrix.cells().iter().enumerate() {
        let worse = residuals.worse[at];
        if worse.is_nan() {
            continue;
        }
        let z = (worse * scale[usize::from(residuals.tier_of[at])]).clamp(-CLIP, CLIP);
        let over = u32::from(worse > least);
        for group in places.groups(cell.src, cell.dst, cell.up) {
            if group != NONE {
                let tally = &mut tallies[group as usize];
                tally.n += 1;
                tally.over += over;
                tally.sum += z;
            }
        }
    }
    tallies
}

/// Which groups belong to one of `suspects`; `names` are those of the endpoints.
pub(super) fn groups(places: &Places, names: &[String], suspects: &[Suspect]) -> Vec<bool> {
    let any = vec![Tally { n: 1, over: 1, sum: 0.0 }; places.base.count as usize];
    let mut wanted = vec![false; any.len()];
    let all = Suspicion::new(places, &any, 0.0, 0.0).nics(names).elements();
    let meant = |element: &&Element| suspects.iter().any(|s| s.kind == element.kind && s.element == element.name);
    all.iter().filter(meant).flat_map(|element| &element.groups).for_each(|group| wanted[*group as usize] = true);
    wanted
}

/// Finds elements worth weighing.
pub(super) struct Suspicion<'a> {
    pub(super) places: &'a Places,
    pub(super) tallies: &'a [Tally],
    /// Least effect that is a fault, as a logarithm of cost.
    pub(super) least: f64,
    /// Typical spread of a visit; 0 where healthy elements do not differ by nature.
    pub(super) spread: f64,
    found: Vec<Element>,
    labels: u32,
}

/// Name, kind and groups of one view of an element.
type View = (Kind, f64, Vec<u32>);

impl<'a> Suspicion<'a> {
    pub(super) fn new(places: &'a Places, tallies: &'a [Tally], least: f64, spread: f64) -> Self {
        Self { places, tallies, least, spread, found: Vec::new(), labels: 0 }
    }

    pub(super) fn elements(mut self) -> Vec<Element> {
        self.nodes();
        self.leaves();
        self.uplinks();
        self.above();
        self.found
    }

    /// Spread of the healthy elements of a family among each other, beyond what noise explains: natural variation
    /// must not be a fault.
    fn natural(&self, first: u32, count: usize) -> f64 {
        let mut means: Vec<(f64, u32)> = self.tallies[first as usize..first as usize + count]
            .iter()
            .filter(|t| t.n > 0)
            .map(|t| (t.mean(), t.n))
            .collect();
        if means.len() < 8 {
            return 0.0;
        }
        let middle = means.len() / 2;
        means.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let centre = means[middle].0;
        // The better half only: faults sit in the other.
        let mut better: Vec<f64> = means[..=middle].iter().map(|m| centre - m.0).collect();
        better.sort_unstable_by(f64::total_cmp);
        let deviation = 1.4826 * better[better.len() / 2];
        let noise = means.iter().map(|m| f64::from(m.1).recip()).sum::<f64>() / means.len() as f64;
        (deviation * deviation - noise).max(0.0).sqrt() * self.spread
    }

    /// Whether its median may lie beyond the least fault: half of its visits do, less what few visits leave to chance.
    fn suspicious(&self, group: u32) -> bool {
        let tally = self.tallies[group as usize];
        let n = f64::from(tally.n);
        tally.over > 0 && f64::from(tally.over) >= n * (HALF - 0.5 / n.sqrt())
    }

    /// Adds all views of one thing if any of its groups looks bad.
    fn consider(&mut self, name: &str, among: usize, natural: f64, views: Vec<View>) {
        let gate = self.least.max(5.0 * natural);
        if !views.iter().flat_map(|v| &v.2).any(|g| self.suspicious(*g)) {
            return;
        }
        let rare = RARE + (among.max(1) as f64).ln();
        for (kind, more, groups) in views {
            let (name, label, penalty) = (name.to_owned(), self.labels, rare + more);
            self.found.push(Element { kind, name, label, groups, penalty, gate: gate as f32 });
        }
        self.labels += 1;
    }

    fn nodes(&mut self) {
        let places = self.places;
        let count = places.node_of.len();
        let natural = self.natural(0, count).max(self.natural(places.base.rx, count));
        for (node, endpoints) in places.endpoints.iter().enumerate() {
            let tx: Vec<u32> = endpoints.clone();
            let rx: Vec<u32> = endpoints.iter().map(|e| places.base.rx + e).collect();
            let both = tx.iter().chain(&rx).copied().collect();
            let views = vec![(Kind::Node, 0.0, both), (Kind::NodeTx, 0.7, tx), (Kind::NodeRx, 0.7, rx)];
            self.consider(&places.nodes[node], places.nodes.len(), natural, views);
        }
    }

    /// NICs of nodes that have several; `names` are those of the endpoints.
    pub(super) fn nics(mut self, names: &[String]) -> Self {
        let places = self.places;
        let count = places.node_of.len();
        let natural = self.natural(0, count).max(self.natural(places.base.rx, count));
        for endpoint in places.endpoints.iter().filter(|e| e.len() > 1).flatten() {
            let (tx, rx) = (*endpoint, places.base.rx + endpoint);
            let views = vec![(Kind::Nic, 0.0, vec![tx, rx]), (Kind::Nic, 0.7, vec![tx]), (Kind::Nic, 0.7, vec![rx])];
            self.consider(&names[*endpoint as usize], count, natural, views);
        }
        self
    }

    fn leaves(&mut self) {
        let (places, base) = (self.places, &self.places.base);
        let count = places.leaves.len();
        let natural = self.natural(base.out, count).max(self.natural(base.into, count));
        for leaf in 0..count as u32 {
            let (out, into, within) = (base.out + leaf, base.into + leaf, base.within + leaf);
            let views = vec![
                (Kind::Leaf, 1.0, vec![out, into]),
                (Kind::Leaf, 1.0, vec![out, into, within]),
                (Kind::Leaf, 3.0, vec![out]),
                (Kind::Leaf, 3.0, vec![into]),
            ];
            self.consider(&places.leaves[leaf as usize], count, natural, views);
        }
    }

    fn uplinks(&mut self) {
        let (places, base) = (self.places, &self.places.base);
        let (count, spines) = (places.leaves.len(), places.routes.spines().len());
        let natural = self.natural(base.up, count * spines).max(self.natural(base.down, count * spines));
        for (spine, leaf) in (0..spines as u32).flat_map(|s| (0..count as u32).map(move |l| (s, l))) {
            let (up, down) = (base.up + spine * count as u32 + leaf, base.down + spine * count as u32 + leaf);
            let views = vec![
                (Kind::Uplink, 0.5, vec![up, down]),
                (Kind::Uplink, 1.5, vec![up]),
                (Kind::Uplink, 1.5, vec![down]),
            ];
            let name = places.routes.link(leaf, spine, &places.leaves);
            self.consider(&name, count * spines, natural, views);
        }
        for (number, name) in places.routes.opaque().iter().enumerate() {
            let natural = self.natural(base.opaque, places.routes.opaque().len());
            let views = vec![(Kind::Uplink, 0.5, vec![base.opaque + number as u32])];
            self.consider(name, places.routes.opaque().len(), natural, views);
        }
    }

    /// Spines, aggregates and, without known routes, pairs of leaves.
    fn above(&mut self) {
        let (places, base) = (self.places, &self.places.base);
        let leaves = places.leaves.len();
        for (spine, name) in places.routes.spines().iter().enumerate() {
            let views = vec![(Kind::Uplink, 4.0, vec![base.spine + spine as u32])];
            self.consider(name, places.routes.spines().len(), 0.0, views);
        }
        for (pod, name) in places.pods.iter().enumerate() {
            let (out, into) = (base.pod_out + pod as u32, base.pod_into + pod as u32);
            let views = vec![(Kind::Uplink, 2.0, vec![out, into])];
            self.consider(name, places.pods.len(), 0.0, views);
        }
        if base.leaf_pair == NONE {
            return;
        }
        let pairs = (0..leaves as u32).flat_map(|a| (0..a).map(move |b| (b, a)));
        for (a, b) in pairs {
            let (there, back) = (base.leaf_pair + a * leaves as u32 + b, base.leaf_pair + b * leaves as u32 + a);
            let name = format!("{}~{}", places.leaves[a as usize], places.leaves[b as usize]);
            let views = vec![
                (Kind::Uplink, 2.0, vec![there, back]),
                (Kind::Uplink, 3.0, vec![there]),
                (Kind::Uplink, 3.0, vec![back]),
            ];
            self.consider(&name, leaves * (leaves - 1) / 2, 0.0, views);
        }
    }
}
