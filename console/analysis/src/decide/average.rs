//! What several metrics of a part say together: a loss too small to be seen in each may be seen in their mean.
//!
//! The means of the other nodes are the null, so that offsets a healthy fleet has in whole components, and dependence
//! between metrics, count as spread. Metrics are averaged with others of about their noise and the quietest of them
//! first, so that a noisy one changes nothing for quieter ones.

use super::Settings;
use super::budget;
use super::decision::Average;
use super::quantile::{after_leaving_out, exact};
use super::reference::{Hint, Keep, Reference, plain_without, without};
use super::sorted::Sums;
use crate::State;

/// Bounds of the bands of noise that are averaged separately.
pub(super) const BANDS: [(f64, f64); 3] = [(0.0, 0.02), (0.02, 0.08), (0.08, f64::INFINITY)];
/// How many of the quietest metrics are averaged.
pub(super) const SIZES: [usize; 9] = [2, 3, 4, 6, 8, 12, 16, 32, 64];
/// With few steps, a stall in one of two would be half of the mean.
pub(super) const FEWEST_OF_FEW: usize = 3;
/// A metric counts with at most so many of its spreads; of few steps, where one may be a stall, with fewer.
pub(super) const CLIP: f64 = 8.0;
pub(super) const CLIP_FEW: f64 = 4.0;
/// Quieter metrics than this weigh no more.
pub(super) const QUIETEST: f64 = 0.003;
/// As for single metrics: fleets that also ask the plain mean, and that ask a looser reference before passing.
const PLAIN: std::ops::RangeInclusive<usize> = 6..=15;
const LOOSE: std::ops::RangeInclusive<usize> = 5..=10;

/// Share of the `rank`-th part in the chance of all averages, the quietest part first. Sums to 1.
pub(super) fn part_share(rank: usize) -> f64 {
    1.0 / (rank * (rank + 1)) as f64
}

/// log10 of the chances of a false fail and a false warning of one look at one node of a fleet of `nodes`.
pub(super) fn chances(settings: &Settings, nodes: usize, run_nodes: usize) -> [f64; 2] {
    let half = if PLAIN.contains(&nodes) { 0.5 } else { 1.0 };
    let share = budget::AVERAGES * half / (BANDS.len() * SIZES.len()) as f64;
    [settings.fail, settings.warn].map(|all| budget::per_node(all * share, nodes, run_nodes))
}

/// One mean of one node, and the same mean of the others.
pub(super) struct Look<'a> {
    /// Mean speeds relative to the peers' centres, clipped metric by metric.
    pub(super) means: &'a Sums<'a>,
    /// Where the node is among them.
    pub(super) position: usize,
    /// Its mean loss, nothing clipped.
    pub(super) raw: f64,
    /// Spread that independent metrics would leave; the means are not believed to be closer together.
    pub(super) least: f64,
    /// Largest loss that the clipped mean can show.
    pub(super) cap: f64,
    pub(super) chances: [f64; 2],
    pub(super) settings: &'a Settings,
}

/// What one look says.
pub(super) struct Seen {
    pub(super) state: State,
    /// Loss that would not have passed with probability 0.95; infinite where clipping hides it.
    pub(super) resolution: f64,
    pub(super) loss: f64,
    pub(super) scale: f64,
    pub(super) limit: f64,
    pub(super) alike: usize,
}

impl Seen {
    /// As a finding of so many metrics of a band.
    pub(super) fn average(&self, metrics: usize, band: (f64, f64)) -> Average {
        let Self { state, loss, scale, limit, alike, .. } = *self;
        Average { state, loss, scale, limit, metrics, band, alike }
    }
}

impl Look<'_> {
    pub(super) fn see(&self, hint: &mut Hint) -> Seen {
        let (n, effect) = (self.means.len(), self.settings.effect);
        let own = self.means.at(self.position);
        let strict = self.floored(without(self.means, self.position, Keep::Strict, self.settings.floor, hint));
        let table = after_leaving_out(strict.kept);
        let limits = self.chances.map(|chance| table.at(chance) * strict.scale);
        let (loss, enough) = (1.0 - own / strict.centre, self.raw >= effect - 2.0 * strict.scale);
        let [mut named, mut warned] = limits.map(|limit| loss >= limit && enough);
        let mut resolution = limits[0].max(effect - 2.0 * strict.scale) + table.one_in_twenty * strict.scale;
        let disagree = LOOSE.contains(&n).then(|| self.loose());
        if let Some((_, seen)) = disagree {
            resolution = seen;
        }
        if PLAIN.contains(&n) {
            let plain = self.floored(plain_without(self.means, self.position, self.settings.floor));
            let table = exact(n - 2);
            let limits = self.chances.map(|chance| table.at(chance) * plain.scale);
            let (loss, enough) = (1.0 - own / plain.centre, self.raw >= effect - 2.0 * plain.scale);
            named |= loss >= limits[0] && enough;
            warned |= loss >= limits[1] && enough;
            resolution = resolution.min(limits[0].max(effect - 2.0 * plain.scale) + table.one_in_twenty * plain.scale);
        }
        let others_below = |limit: f64| {
            let bar = strict.centre * (1.0 - limit);
            self.means.values().partition_point(|mean| *mean <= bar) - usize::from(own <= bar)
        };
        let alike = others_below(limits[0] / 2.0);
        let crowded = 3 * (alike + usize::from(named)) > n;
        // Of many nodes, some healthy one is always half a limit slow: only the clearly slow make the rest unknown.
        let contested = crowded && 3 * others_below(limits[0]) > n;
        let state = match (named, warned) {
            (true, _) if !crowded => State::Fail,
            (true, _) | (_, true) => State::Warn,
            _ if contested || disagree.is_some_and(|(beyond, _)| beyond) => State::Unknown,
            _ => State::Pass,
        };
        let resolution = if resolution <= self.cap { resolution } else { f64::INFINITY };
        Seen { state, resolution, loss: self.raw, scale: strict.scale, limit: limits[0], alike }
    }

    fn floored(&self, found: Reference) -> Reference {
        Reference { scale: found.scale.max(self.least), ..found }
    }

    /// Whether it is beyond the limit of a reference that leaves out a third, and that reference's resolution.
    fn loose(&self) -> (bool, f64) {
        let (floor, effect) = (self.settings.floor, self.settings.effect);
        let found = without(self.means, self.position, Keep::Loose, floor, &mut Hint::default());
        let loose = self.floored(found);
        let table = after_leaving_out(loose.kept);
        let limit = table.at(self.chances[0]) * loose.scale;
        let enough = effect - 2.0 * loose.scale;
        let beyond = 1.0 - self.means.at(self.position) / loose.centre >= limit && self.raw >= enough;
        (beyond, limit.max(enough) + table.one_in_twenty * loose.scale)
    }
}
