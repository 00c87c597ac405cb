//! The averages of every part, node by node.

use super::average::{self, BANDS, CLIP, CLIP_FEW, FEWEST_OF_FEW, Look, QUIETEST, SIZES, Seen};
use super::calm::Calm;
use super::cell::FEW;
use super::decision::Average;
use super::measured::Measured;
use super::parts::{Family, Part, Parts};
use super::reference::Hint;
use super::sorted::{Sorted, Sums};
use super::{Fleet, Settings};
use crate::State;

/// Fleets up to this size are averaged anew for every node, by its own peers. Above it, one node's weight in the order
/// and centres of the metrics is neglected.
const ANEW: usize = 128;

/// What the averages of one part say of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Together {
    pub(super) state: State,
    pub(super) average: Option<Average>,
    pub(super) resolution: f64,
}

impl Together {
    const NOTHING: Self = Self { state: State::Pass, average: None, resolution: f64::INFINITY };

    fn add(&mut self, seen: &Seen, metrics: usize, band: (f64, f64)) {
        self.resolution = self.resolution.min(seen.resolution);
        if seen.state > State::Unknown {
            let next = seen.average(metrics, band);
            let sure = |a: &Average| (a.state, a.loss / a.limit);
            if self.average.as_ref().is_none_or(|known| sure(known) < sure(&next)) {
                self.average = Some(next);
            }
        }
        self.state = self.state.max(seen.state);
    }

    fn merge(&mut self, other: Self) {
        self.resolution = self.resolution.min(other.resolution);
        if other.average.is_some() && other.state > self.state || self.average.is_none() {
            self.average = other.average;
        }
        self.state = self.state.max(other.state);
    }
}

/// Per part, what its averages say of every node.
pub(super) struct Averages {
    pub(super) components: Vec<Vec<Together>>,
    pub(super) kinds: Vec<Vec<Together>>,
}

/// One metric of a family as one node's peers, or all nodes, see it.
#[derive(Clone, Copy)]
struct Term {
    metric: usize,
    scale: f64,
    few: bool,
}

impl Term {
    fn weight(&self) -> f64 {
        self.scale.max(QUIETEST).powi(-2)
    }

    /// Largest loss it counts with.
    fn clip(&self) -> f64 {
        if self.few { CLIP_FEW * self.scale } else { CLIP * self.scale }
    }
}

/// Averages every family of `parts`.
pub(super) fn averages(fleet: &Fleet<'_>, settings: &Settings, measured: &[Measured], parts: &Parts) -> Averages {
    let nothing = |parts: usize| vec![vec![Together::NOTHING; fleet.nodes]; parts];
    let mut said = Averages { components: nothing(parts.components.len()), kinds: nothing(parts.kinds.len()) };
    let ids = id_ranks(fleet);
    let shares = shares(fleet, measured, &parts.families);
    for (family, share) in parts.families.iter().zip(&shares) {
        let nodes = &measured[family.metrics[0]].column.median.nodes;
        let chances = average::chances(settings, nodes.len(), fleet.run_nodes.max(fleet.nodes));
        let of = Of { fleet, settings, measured, family, ids: &ids, share, chances, calm: Calm::of(fleet, settings) };
        let found = if nodes.len() <= ANEW { of.anew() } else { of.at_once() };
        let row = match family.part {
            Part::Component(at) => &mut said.components[at],
            Part::Kind(at) => &mut said.kinds[at],
        };
        nodes.iter().zip(found).for_each(|(node, found)| row[*node as usize].merge(found));
    }
    said
}

/// Position of every metric in the order of identities: what decides between metrics of equal noise.
fn id_ranks(fleet: &Fleet<'_>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..).take(fleet.metrics.len()).collect();
    order.sort_by(|a, b| fleet.metrics[*a as usize].id.cmp(fleet.metrics[*b as usize].id));
    let mut ranks = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(metric, rank)| ranks[*metric as usize] = rank);
    ranks
}

/// log10 of every family's share in the chance, by index of the node: a family ranks by the second quietest of its
/// metrics, the quietest mean it can form.
fn shares(fleet: &Fleet<'_>, measured: &[Measured], families: &[Family]) -> Vec<Vec<f32>> {
    let mut noise: Vec<Vec<(f32, u32, u32)>> = vec![Vec::new(); fleet.nodes];
    let mut shares = Vec::with_capacity(families.len());
    for (family, number) in families.iter().zip(0..) {
        let nodes = &measured[family.metrics[0]].column.median.nodes;
        let mut quietest = vec![[f64::INFINITY; 2]; nodes.len()];
        // Metric by metric, as peers lie in memory.
        for &metric in &family.metrics {
            for (two, peers) in quietest.iter_mut().zip(&measured[metric].peers) {
                let [first, second] = *two;
                *two = [first.min(peers.scale), second.min(first.max(peers.scale))];
            }
        }
        for ((node, index), two) in nodes.iter().zip(0_u32..).zip(quietest) {
            noise[*node as usize].push((two[1] as f32, number, index));
        }
        shares.push(vec![0.0; nodes.len()]);
    }
    for own in &mut noise {
        own.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut rank = 1;
        for equal in own.chunk_by(|a, b| a.0 == b.0) {
            let to = rank + equal.len();
            let sum: f64 = (rank..to).map(average::part_share).sum();
            for (_, family, index) in equal {
                shares[*family as usize][*index as usize] = (sum / equal.len() as f64).log10() as f32;
            }
            rank = to;
        }
    }
    shares
}

/// One family.
struct Of<'a> {
    fleet: &'a Fleet<'a>,
    settings: &'a Settings,
    measured: &'a [Measured],
    family: &'a Family,
    ids: &'a [u32],
    share: &'a [f32],
    chances: [f64; 2],
    calm: Calm<'a>,
}

/// Running means over metrics.
struct Running {
    clipped: Vec<f64>,
    raw: Vec<f64>,
    weight: f64,
    squares: f64,
    terms: Vec<Term>,
    cap: f64,
    few: bool,
}

impl Running {
    fn new(nodes: usize) -> Self {
        let zeros = vec![0.0; nodes];
        Self {
            clipped: zeros.clone(),
            raw: zeros,
            weight: 0.0,
            squares: 0.0,
            terms: vec![],
            cap: f64::INFINITY,
            few: false,
        }
    }

    fn add(&mut self, term: &Term, losses: impl Iterator<Item = f64>) {
        let (clip, weight) = (term.clip(), term.weight());
        for ((clipped, raw), loss) in self.clipped.iter_mut().zip(&mut self.raw).zip(losses) {
            *clipped += weight * loss.clamp(-clip, clip);
            *raw += weight * loss;
        }
        self.weight += weight;
        self.squares += weight * weight;
        self.terms.push(*term);
        self.cap = self.cap.min(clip);
        self.few |= term.few;
    }

    /// Whether a mean of the first `size` metrics is looked at.
    fn complete(&self) -> bool {
        SIZES.contains(&self.terms.len()) && (!self.few || self.terms.len() >= FEWEST_OF_FEW)
    }

    fn means(&self) -> Sorted {
        Sorted::of(&self.clipped.iter().map(|sum| 1.0 - sum / self.weight).collect::<Vec<_>>())
    }

    /// Spread of the mean, were the metrics independent. Terms came quietest first.
    fn least(&self) -> f64 {
        let (n, middle) = (self.terms.len(), self.terms.len() / 2);
        f64::midpoint(self.terms[n.div_ceil(2) - 1].scale, self.terms[middle].scale) * self.squares.sqrt() / self.weight
    }

    fn raw(&self, index: usize) -> f64 {
        self.raw[index] / self.weight
    }

    /// The node at `position` of `means`, whose mean loss is `raw`.
    fn look<'a>(&self, (means, position): (&'a Sums<'a>, usize), raw: f64, of: &Of<'a>) -> Look<'a> {
        let (chances, settings) = (of.chances(means.order()[position] as usize), of.settings);
        Look { means, position, raw, least: self.least(), cap: self.cap, chances, settings }
    }
}

impl Of<'_> {
    /// Metrics of a band, quietest first, as many as are ever averaged.
    fn band(&self, terms: &mut [Term], (low, high): (f64, f64)) -> Vec<Term> {
        let mut inside: Vec<Term> = terms.iter().filter(|t| t.scale >= low && t.scale < high).copied().collect();
        inside.sort_unstable_by(|a, b| a.scale.total_cmp(&b.scale).then(self.ids[a.metric].cmp(&self.ids[b.metric])));
        inside.truncate(SIZES[SIZES.len() - 1]);
        inside
    }

    fn few(&self, metric: usize, index: usize) -> bool {
        !self.fleet.metrics[metric].aggregated && self.measured[metric].column.steps[index] < FEW
    }

    fn chances(&self, index: usize) -> [f64; 2] {
        self.chances.map(|chance| chance + f64::from(self.share[index]))
    }

    /// Every node by its own peers' centres, spreads and order of metrics.
    fn anew(&self) -> Vec<Together> {
        let nodes = self.measured[self.family.metrics[0]].column.median.len();
        (0..nodes).map(|index| self.one(index, nodes)).collect()
    }

    fn one(&self, index: usize, nodes: usize) -> Together {
        let term = |&metric: &usize| Term {
            metric,
            scale: self.measured[metric].peers[index].scale,
            few: self.few(metric, index),
        };
        let mut terms: Vec<Term> = self.family.metrics.iter().map(term).collect();
        let mut said = Together::NOTHING;
        for band in BANDS {
            let terms = self.band(&mut terms, band);
            let mut running = Running::new(if terms.len() > 1 { nodes } else { 0 });
            for term in terms.iter().take(if terms.len() > 1 { usize::MAX } else { 0 }) {
                let of = &self.measured[term.metric];
                let centre = of.peers[index].centre;
                running.add(term, of.column.median.speeds.iter().map(|speed| 1.0 - speed / centre));
                if running.complete() {
                    let means = running.means();
                    let means = Sums::of(&means);
                    let position = means.order().iter().position(|at| *at as usize == index).unwrap_or(0);
                    let seen = self.see(&running, (&means, position), &mut Hint::default());
                    said.add(&seen, running.terms.len(), band);
                }
            }
        }
        said
    }

    /// All nodes with the same order of metrics.
    fn at_once(&self) -> Vec<Together> {
        let nodes = self.measured[self.family.metrics[0]].column.median.len();
        let mut terms: Vec<Term> = self.family.metrics.iter().map(|&metric| self.common(metric, nodes)).collect();
        let mut said = vec![Together::NOTHING; nodes];
        for band in BANDS {
            let terms = self.band(&mut terms, band);
            if terms.len() < 2 {
                continue;
            }
            let mut running = Running::new(nodes);
            for term in terms {
                let of = &self.measured[term.metric];
                let speeds = &of.column.median.speeds;
                running.add(&term, speeds.iter().zip(&of.peers).map(|(speed, peers)| peers.loss(*speed)));
                if running.complete() {
                    let (means, mut hint) = (running.means(), Hint::default());
                    let means = Sums::of(&means);
                    for position in 0..nodes {
                        let index = means.order()[position] as usize;
                        let seen = self.see(&running, (&means, position), &mut hint);
                        said[index].add(&seen, running.terms.len(), band);
                    }
                }
            }
        }
        said
    }

    /// What a mean says of the node at a position. It fails only if it would without what was slow for a while, too.
    fn see(&self, running: &Running, (means, position): (&Sums<'_>, usize), hint: &mut Hint) -> Seen {
        let index = means.order()[position] as usize;
        let seen = running.look((means, position), running.raw(index), self).see(hint);
        if seen.state < State::Fail {
            return seen;
        }
        let Some((mean, raw)) = self.calm_mean(running, index) else { return seen };
        let mut values = vec![0.0; means.len()];
        means.order().iter().zip(means.values()).for_each(|(at, value)| values[*at as usize] = *value);
        values[index] = mean;
        let means = Sorted::of(&values);
        let means = Sums::of(&means);
        let position = means.order().iter().position(|at| *at as usize == index).unwrap_or(0);
        let calm = running.look((&means, position), raw, self).see(&mut Hint::default());
        Seen { state: if calm.state < State::Fail { State::Warn } else { State::Fail }, ..seen }
    }

    /// Mean speed, and mean loss with nothing clipped, of a node by the steps outside of its slow stretches; `None` where it
    /// has none.
    fn calm_mean(&self, running: &Running, index: usize) -> Option<(f64, f64)> {
        let (mut clipped, mut raw, mut any) = (0.0, 0.0, false);
        for term in &running.terms {
            let of = &self.measured[term.metric];
            let (peers, all) = (&of.peers[index], of.peers[index].loss(of.column.median.speeds[index]));
            let calm = self.calm.loss(term.metric, of.column.median.nodes[index], peers);
            any |= calm.is_some();
            let loss = calm.map_or(all, |calm| calm.min(all));
            clipped += term.weight() * loss.clamp(-term.clip(), term.clip());
            raw += term.weight() * loss;
        }
        any.then_some((1.0 - clipped / running.weight, raw / running.weight))
    }

    fn common(&self, metric: usize, nodes: usize) -> Term {
        let mut scales: Vec<f64> = self.measured[metric].peers.iter().map(|peers| peers.scale).collect();
        let few = !self.fleet.metrics[metric].aggregated && (0..nodes).any(|index| self.few(metric, index));
        let (_, scale, _) = scales.select_nth_unstable_by(nodes / 2, f64::total_cmp);
        Term { metric, scale: *scale, few }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_kinds_of_averages_the_worse_is_told_and_one_that_tells_nothing_takes_none_away() {
        let told = |state: State, loss: f64| {
            let average = Average { state, loss, scale: 0.01, limit: 0.05, metrics: 4, band: (0.0, 0.01), alike: 0 };
            Together { state, average: Some(average), resolution: loss }
        };
        let silent = Together { state: State::Fail, average: None, resolution: 0.5 };
        let merged = |mut first: Together, other: Together| {
            first.merge(other);
            (first.state, first.average.map(|average| average.loss), first.resolution)
        };
        let (warn, fail) = (told(State::Warn, 0.03), told(State::Fail, 0.08));
        assert_eq!(merged(warn, fail), (State::Fail, Some(0.08), 0.03));
        assert_eq!(merged(fail, warn), (State::Fail, Some(0.08), 0.03));
        assert_eq!(merged(warn, silent), (State::Fail, Some(0.03), 0.03));
        assert_eq!(merged(silent, warn), (State::Fail, Some(0.03), 0.03));
        assert_eq!(merged(warn, told(State::Warn, 0.04)), (State::Warn, Some(0.03), 0.03), "the first of equals");
        assert_eq!(merged(Together::NOTHING, Together::NOTHING), (State::Pass, None, f64::INFINITY));
    }
}
