//! What a node is compared with: the other nodes only, without those that lie far from most of them.
//!
//! The kept peers are neighbours in order of value, so that sums over them are differences of running sums: leaving out
//! every node in turn costs a sort and a few comparisons each, whatever the fleet's size.

use super::sorted::{Sorted, Sums};

/// How far a peer may lie from the centre in the first and second look, in standard deviations of the peers kept so
/// far; grows in small fleets, where a standard deviation is a poor estimate.
const CUTS: [(f64, f64); 2] = [(7.5, 5.0), (4.0, 4.0)];
/// Values this close (relative) to a bound count as on it: a change of unit must not move a tie across.
const TIE: f64 = 1e-9;

/// How many peers are kept at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// As many as make a healthy node's offset follow a known law most closely.
    Strict,
    /// Two thirds of them: differs in fleets of at most ten, where the strict rule keeps a few slow peers.
    Loose,
}

impl Keep {
    /// Of `others` peers.
    pub(super) fn at_least(self, others: usize) -> usize {
        let nodes = others + 1;
        match self {
            Self::Strict if others <= 4 => others,
            Self::Strict if nodes <= 7 => others - 1,
            Self::Strict => others - (nodes / 3 - usize::from(nodes <= 10)),
            Self::Loose if others <= 3 => others,
            Self::Loose => others - nodes / 3,
        }
    }
}

/// What the peers say a healthy node's value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reference {
    /// Mean of the peers kept.
    pub(super) centre: f64,
    /// Relative standard deviation with which it predicts one more value.
    pub(super) scale: f64,
    /// How many peers were kept.
    pub(super) kept: usize,
}

/// Peers kept by the last search, where the next one starts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hint {
    near: usize,
    looks: [Range; CUTS.len()],
}

/// Where a search for values around a centre starts.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    near: usize,
    low: usize,
    high: usize,
}

/// All values but the one at position `own`, or all of them.
struct Others<'a> {
    all: &'a Sums<'a>,
    own: usize,
    len: usize,
}

impl Others<'_> {
    fn at(&self, position: usize) -> f64 {
        self.all.at(position + usize::from(position >= self.own))
    }

    fn median(&self) -> f64 {
        median(self.len, |position| self.at(position))
    }

    /// Centre and standard deviation of the positions from `low` to before `high`.
    fn moments(&self, low: usize, high: usize) -> (f64, f64) {
        let count = (high - low) as f64;
        let (sum, squares) = if self.own <= low {
            self.all.between(low + 1, high + 1)
        } else if self.own >= high {
            self.all.between(low, high)
        } else {
            let (sum, squares) = self.all.between(low, high + 1);
            let own = self.all.at(self.own) - self.all.pivot();
            (sum - own, squares - own * own)
        };
        let mean = sum / count;
        let variance = (squares - count * mean * mean) / (count - 1.0).max(1.0);
        (self.all.pivot() + mean, variance.max(0.0).sqrt())
    }

    /// First position from which on `holds`, which stays true once it is; searched for from `hint`.
    fn first(&self, hint: usize, end: usize, holds: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high, mut step) = (0, hint.min(end), 1);
        if high < end && !holds(high) {
            (low, high) = (high + 1, end);
            while low + step <= end {
                let probe = low + step - 1;
                if holds(probe) {
                    high = probe;
                    break;
                }
                (low, step) = (probe + 1, step * 2);
            }
        } else {
            while high > 0 {
                let probe = high.saturating_sub(step);
                if !holds(probe) {
                    low = probe + 1;
                    break;
                }
                (high, step) = (probe, step * 2);
            }
        }
        while low < high {
            let middle = low.midpoint(high);
            if holds(middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Positions of the `count` values nearest to `centre`, and of those that tie with the farthest of them.
    fn nearest(&self, centre: f64, count: usize, hint: &mut usize) -> (usize, usize) {
        let mut low = self.first(*hint, self.len - count, |at| centre - self.at(at) <= self.at(at + count) - centre);
        *hint = low;
        let mut high = low + count;
        let farthest = (centre - self.at(low)).max(self.at(high - 1) - centre);
        let bound = farthest + TIE * centre.abs();
        while low > 0 && centre - self.at(low - 1) <= bound {
            low -= 1;
        }
        while high < self.len && self.at(high) - centre <= bound {
            high += 1;
        }
        (low, high)
    }

    /// Positions of the values within `reach` of `centre`, and of the `least` nearest to it.
    fn around(&self, centre: f64, reach: f64, least: usize, hint: &mut Range) -> (usize, usize) {
        let (from, to) = (centre - reach, centre + reach);
        let low = self.first(hint.low, self.len, |at| self.at(at) >= from);
        let high = self.first(hint.high, self.len, |at| self.at(at) > to);
        (hint.low, hint.high) = (low, high);
        // Where enough are within reach, so are the nearest, with those that tie if none is just outside.
        let outside = reach + 2.0 * TIE * centre.abs();
        let clear = |at: usize| (self.at(at) - centre).abs() > outside;
        if low + least <= high && (low == 0 || clear(low - 1)) && (high == self.len || clear(high)) {
            return (low, high);
        }
        let (near_low, near_high) = self.nearest(centre, least, &mut hint.near);
        (low.min(near_low), high.max(near_high))
    }

    fn reference(&self, keep: Keep, floor: f64, hint: &mut Hint) -> Reference {
        let least = keep.at_least(self.len);
        let keeps_all = least >= self.len;
        let (mut low, mut high) =
            if keeps_all { (0, self.len) } else { self.nearest(self.median(), least, &mut hint.near) };
        let (mut centre, mut sd) = self.moments(low, high);
        if !keeps_all {
            for ((cut, small), hint) in CUTS.into_iter().zip(&mut hint.looks) {
                let reach = cut * (1.0 + small / self.len as f64) * sd + TIE * centre.abs();
                let around = self.around(centre, reach, least, hint);
                // Mostly, the second look keeps what the first one did.
                if around != (low, high) {
                    (low, high) = around;
                    (centre, sd) = self.moments(low, high);
                }
            }
        }
        let kept = high - low;
        let scale = (sd / centre).max(floor) * (1.0 + 1.0 / kept as f64).sqrt();
        Reference { centre, scale, kept }
    }
}

/// What the others say of the value at position `own` of `all`, which has at least three values. `floor` is the least
/// relative spread. `hint` only makes it faster.
pub(super) fn without(all: &Sums<'_>, own: usize, keep: Keep, floor: f64, hint: &mut Hint) -> Reference {
    Others { all, own, len: all.len() - 1 }.reference(keep, floor, hint)
}

/// Mean and spread of all others: best for one slow node among few.
pub(super) fn plain_without(all: &Sums<'_>, own: usize, floor: f64) -> Reference {
    let others = Others { all, own, len: all.len() - 1 };
    let (centre, sd) = others.moments(0, others.len);
    let scale = (sd / centre).max(floor) * (1.0 + 1.0 / others.len as f64).sqrt();
    Reference { centre, scale, kept: others.len }
}

/// Median of the others.
pub(super) fn median_without(all: &Sorted, own: usize) -> f64 {
    median(all.len() - 1, |position| all.at(position + usize::from(position >= own)))
}

/// Median of `len` values in order.
fn median(len: usize, at: impl Fn(usize) -> f64) -> f64 {
    let middle = len / 2;
    if len % 2 == 1 { at(middle) } else { f64::midpoint(at(middle - 1), at(middle)) }
}

/// Centre of all values, their relative spread, and how many were kept.
pub(super) fn of_all(all: &Sorted, floor: f64) -> Reference {
    let everyone = Others { all: &Sums::of(all), own: usize::MAX, len: all.len() };
    let found = everyone.reference(Keep::Strict, floor, &mut Hint::default());
    Reference { scale: found.scale / (1.0 + 1.0 / found.kept as f64).sqrt(), ..found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;

    /// Positions of the `count` of `values` nearest to `centre`, with those that tie: one by one.
    fn nearest(values: &[f64], centre: f64, count: usize) -> (usize, usize) {
        let best = (0..=values.len() - count)
            .min_by(|&a, &b| {
                let far = |at: usize| (centre - values[at]).max(values[at + count - 1] - centre);
                far(a).total_cmp(&far(b))
            })
            .unwrap();
        let farthest = (centre - values[best]).max(values[best + count - 1] - centre);
        let bound = farthest + TIE * centre.abs();
        let inside: Vec<usize> = (0..values.len()).filter(|&at| (values[at] - centre).abs() <= bound).collect();
        (inside[0], inside[inside.len() - 1] + 1)
    }

    #[test]
    fn wherever_a_search_starts_it_finds_what_looking_at_each_value_finds() {
        let mut chance = Chance::new(7);
        for round in 0..2_000 {
            let n = 4 + round % 23;
            // Coarse steps, so that values tie.
            let values: Vec<f64> = (0..n).map(|_| 100.0 + (chance.normal() * 6.0).round()).collect();
            let sorted = Sorted::of(&values);
            let sums = Sums::of(&sorted);
            let own = round % (n + 1);
            let others =
                Others { all: &sums, own: if own == n { usize::MAX } else { own }, len: n - usize::from(own < n) };
            let plain: Vec<f64> = (0..n).filter(|at| *at != own).map(|at| sorted.at(at)).collect();
            assert!((0..others.len).all(|at| others.at(at) == plain[at]));
            let (centre, hint) = (100.0 + chance.normal() * 4.0, round % 31);
            let count = 1 + round % others.len;
            assert_eq!(
                others.nearest(centre, count, &mut hint.clone()),
                nearest(&plain, centre, count),
                "{plain:?} {centre}"
            );
            let bar = 95.0 + (round % 12) as f64;
            let first = plain.iter().position(|value| *value >= bar).unwrap_or(plain.len());
            assert_eq!(others.first(hint, others.len, |at| others.at(at) >= bar), first);
            let reach = (round % 7) as f64;
            let (low, high) = others.around(centre, reach, count, &mut Range { near: hint, low: hint, high: hint });
            let within = |value: &f64| (value - centre).abs() <= reach;
            let all_within = plain.iter().enumerate().filter(|(_, value)| within(value));
            assert!(all_within.clone().all(|(at, _)| (low..high).contains(&at)), "whatever is within reach is kept");
            let enough = all_within.count() >= count;
            let (from, to) = nearest(&plain, centre, count);
            assert!(low <= from && to <= high, "and the nearest are");
            assert!(
                !enough
                    || plain[low..high].iter().all(|value| (value - centre).abs()
                        <= reach.max(centre - plain[from]).max(plain[to - 1] - centre) + 1e-6)
            );
            let (mean, sd) = others.moments(low, high);
            let kept = &plain[low..high];
            let plain_mean = kept.iter().sum::<f64>() / kept.len() as f64;
            let squares = kept.iter().map(|value| (value - plain_mean).powi(2)).sum::<f64>();
            let plain_sd = (squares / (kept.len() as f64 - 1.0).max(1.0)).sqrt();
            assert!((mean - plain_mean).abs() < 1e-9 && (sd - plain_sd).abs() < 1e-6, "{kept:?}");
        }
    }
}
