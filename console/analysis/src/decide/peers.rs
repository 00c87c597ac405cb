//! What every node of one view is compared with: centre, spread and share of the chance, from the other nodes only.

use super::reference::{Hint, Keep, Reference, median_without, plain_without, without};
use super::sorted::Sums;
use super::views::{Column, View};
use super::{Frozen, Settings};

/// Part of a grid's step that counts as spread.
const GRID: f64 = 0.6;
/// Variance of a median of normal values, in that of their mean (1.57), a little more for few of them.
const MEDIAN_VARIANCE: f64 = 1.7;

/// What one node is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peers {
    /// Speed that the peers say a healthy node has.
    pub(super) centre: f64,
    /// Relative standard deviation with which they say so; NaN where they cannot be compared.
    pub(super) scale: f64,
    /// How many were kept.
    pub(super) kept: u32,
    /// log10 of the metric's share in this node's chance.
    pub(super) share: f32,
}

impl Peers {
    /// Share of speed lost by a node of `speed`.
    pub(super) fn loss(&self, speed: f64) -> f64 {
        1.0 - speed / self.centre
    }

    fn of(found: Reference, noise: Noise) -> Self {
        let spread = found.scale.max(noise.error);
        let scale = if noise.grid == 0.0 { spread } else { spread.hypot(GRID * noise.grid) };
        let usable = found.centre > 0.0 && found.centre.is_finite() && scale.is_finite();
        let scale = if usable { scale } else { f64::NAN };
        Self { centre: found.centre, scale, kept: u32::try_from(found.kept).unwrap_or(u32::MAX), share: 0.0 }
    }
}

/// What steps and rounding add to the spread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    error: f64,
    grid: f64,
}

impl Noise {
    /// Of the node at `index` of `view`.
    pub(super) fn of(column: &Column, view: &View, index: usize) -> Self {
        let index = column.index(view, index);
        Self { error: column.error(index), grid: column.grid(index) }
    }
}

/// Of every node of `view`, by its index there; `sums` are over its values. Views of fewer than four nodes have none.
pub(super) fn of_view(column: &Column, view: &View, sums: &Sums<'_>, settings: &Settings) -> Vec<Peers> {
    let mut peers = vec![NOBODY; view.speeds.len()];
    if view.speeds.len() < 4 {
        return peers;
    }
    let mut hint = Hint::default();
    for (position, &index) in view.sorted.order().iter().enumerate() {
        let found = without(sums, position, Keep::Strict, settings.floor, &mut hint);
        peers[index as usize] = Peers::of(found, Noise::of(column, view, index as usize));
    }
    peers
}

const NOBODY: Peers = Peers { centre: f64::NAN, scale: f64::NAN, kept: 0, share: 0.0 };

/// The median of the others with the spread that earlier runs had.
pub(super) fn with_frozen_spread(view: &View, frozen: &Frozen) -> Vec<Peers> {
    let n = view.speeds.len();
    let mut peers = vec![NOBODY; n];
    let kept = u32::try_from(n.saturating_sub(1)).unwrap_or(u32::MAX);
    for (position, &index) in view.sorted.order().iter().enumerate().filter(|_| n >= 4) {
        let centre = median_without(&view.sorted, position);
        let more = 1.0 + MEDIAN_VARIANCE / (n - 1) as f64 + 1.0 / frozen.nodes.max(1) as f64;
        let scale = if centre > 0.0 { frozen.spread * more.sqrt() } else { f64::NAN };
        peers[index as usize] = Peers { centre, scale, kept, share: 0.0 };
    }
    peers
}

/// All others of the node at `position`, none left out.
pub(super) fn plain((column, view): (&Column, &View), sums: &Sums<'_>, position: usize, floor: f64) -> Peers {
    let index = view.sorted.order()[position] as usize;
    Peers::of(plain_without(sums, position, floor), Noise::of(column, view, index))
}

/// The others of the node at `position`, of which a third may be left out.
pub(super) fn loose((column, view): (&Column, &View), sums: &Sums<'_>, position: usize, floor: f64) -> Peers {
    let index = view.sorted.order()[position] as usize;
    let found = without(sums, position, Keep::Loose, floor, &mut Hint::default());
    Peers::of(found, Noise::of(column, view, index))
}
