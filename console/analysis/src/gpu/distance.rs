//! Whether a card is still what it was: cycles from each multiprocessor to L2, held against earlier runs of the same card.
//!
//! Healthy multiprocessors of one GPU differ by half, so that they are no peers of each other here, and no two cards are alike; but
//! a card keeps its map. All of a map moves when clocks do, so maps are compared after what the middle
//! multiprocessor changed by.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Change of one multiprocessor, against the median of all, that is no noise. Noise is far below, where it was published
/// (arXiv 2606.22588: 0.01 of some 250 cycles on other cards); no figure of this kernel on a real card says more yet.
const MOVED: f64 = 0.02;
/// Spreads of the card's own past that a change must lie beyond as well, once there are three maps of it.
const SPREADS: f64 = 6.0;
/// Multiprocessors of one GPU at most; what claims more is not from our worker.
const MOST: usize = 1024;
/// Multiprocessors that are named.
const NAMED: usize = 4;

/// Cycles of one load from L2, by multiprocessor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Map(BTreeMap<u32, f64>);

/// Multiprocessors that are nearer or farther than they were, with the change as a share, largest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Multiprocessor and change.
    pub sms: Vec<(u32, f64)>,
    /// Multiprocessors compared.
    pub of: usize,
    /// Earlier maps they were compared with.
    pub maps: usize,
}

impl Map {
    /// GPU and map in `gpu.3.distance` and `0:271.25 1:280.50`; nothing when it is something else.
    #[must_use]
    pub fn parse(key: &str, text: &str) -> Option<(u32, Self)> {
        let words: Vec<&str> = key.split('.').collect();
        let ["gpu", gpu, "distance"] = words[..] else { return None };
        let entry = |word: &str| {
            let (sm, cycles) = word.split_once(':')?;
            let cycles: f64 = cycles.parse().ok()?;
            Some((sm.parse().ok()?, Some(cycles).filter(|cycles| cycles.is_finite() && *cycles > 0.0)?))
        };
        let map = text.split_whitespace().take(MOST).map(entry).collect::<Option<BTreeMap<u32, f64>>>()?;
        (!map.is_empty()).then_some((gpu.parse().ok()?, Self(map)))
    }

    /// Brought to the clocks of `base`: by what the middle multiprocessor of those that all have changed.
    fn aligned(&self, base: &Self, common: &[u32]) -> BTreeMap<u32, f64> {
        let shift = median(common.iter().map(|sm| self.0[sm] / base.0[sm]));
        common.iter().map(|sm| (*sm, self.0[sm] / shift)).collect()
    }

    /// What is not as in `earlier` maps of the same card; nothing where there are none, or all is as it was.
    #[must_use]
    pub fn moved_since(&self, earlier: &[&Self]) -> Option<Moved> {
        let base = earlier.first()?;
        let common: Vec<u32> =
            self.0.keys().copied().filter(|sm| earlier.iter().all(|map| map.0.contains_key(sm))).collect();
        let now = self.aligned(base, &common);
        let then: Vec<BTreeMap<u32, f64>> = earlier.iter().map(|map| map.aligned(base, &common)).collect();
        let change = |(sm, now): (&u32, &f64)| {
            let was: Vec<f64> = then.iter().map(|map| map[sm]).collect();
            let usual = median(was.iter().copied());
            let spread = if was.len() < 3 { 0.0 } else { 1.4826 * median(was.iter().map(|w| (w / usual - 1.0).abs())) };
            let change = now / usual - 1.0;
            (change.abs() > MOVED.max(SPREADS * spread)).then_some((*sm, change))
        };
        let mut sms: Vec<(u32, f64)> = now.iter().filter_map(change).collect();
        sms.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        (!sms.is_empty()).then_some(Moved { sms, of: now.len(), maps: earlier.len() })
    }
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, of, maps) = (self.sms.len(), self.of, self.maps);
        let name = |(sm, change): &(u32, f64)| format!("{sm} by {:+.1} %", change * 100.0);
        let named: Vec<String> = self.sms.iter().take(NAMED).map(name).collect();
        let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
        let verb = if count == 1 { "is" } else { "are" };
        write!(f, "{count} of {of} multiprocessors {verb} not as far from L2 as in {maps} earlier ")?;
        write!(f, "{} of this card: {}{more}", if maps == 1 { "run" } else { "runs" }, named.join(", "))
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    crate::sample::median_of_sorted(&sorted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A card with its own map, as healthy ones have: 220 to 340 cycles.
    fn card(seed: u32) -> Map {
        Map((0..132).map(|sm| (sm, 220.0 + f64::from((sm * 37 + seed * 53) % 120))).collect())
    }

    fn with(map: &Map, change: impl Fn(u32, f64) -> f64) -> Map {
        Map(map.0.iter().map(|(sm, cycles)| (*sm, change(*sm, *cycles))).collect())
    }

    #[test]
    fn a_card_that_is_as_it_was_has_not_moved_whatever_its_clocks_do() {
        let was = card(1);
        assert_eq!(was.moved_since(&[]), None);
        assert_eq!(with(&was, |_, cycles| cycles * 1.2).moved_since(&[&was]), None);
        let noisy = with(&was, |sm, cycles| cycles + f64::from(sm % 3) * 0.5);
        assert_eq!(noisy.moved_since(&[&was, &was]), None);
    }

    #[test]
    fn multiprocessors_that_moved_are_named_largest_change_first() {
        let was = card(1);
        let moved = with(&was, |sm, cycles| {
            cycles
                * if sm == 7 {
                    1.05
                } else if sm == 77 {
                    1.2
                } else {
                    1.0
                }
        });
        let moved = moved.moved_since(&[&was, &was]).unwrap();
        assert_eq!(moved.sms.iter().map(|(sm, _)| *sm).collect::<Vec<_>>(), [77, 7]);
        let said = "2 of 132 multiprocessors are not as far from L2 as in 2 earlier runs of this card: 77 by +20.0 %, 7 by +5.0 %";
        assert_eq!(moved.to_string(), said);
    }

    #[test]
    fn another_card_has_another_map() {
        assert!(card(2).moved_since(&[&card(1)]).unwrap().sms.len() > 66);
    }

    #[test]
    fn a_card_whose_past_strays_is_given_its_own_spread() {
        let was = card(1);
        let stray = |by: f64| with(&was, |sm, cycles| cycles * if sm == 5 { by } else { 1.0 });
        let past = [stray(1.0), stray(1.03), stray(0.97), stray(1.02)];
        let past: Vec<&Map> = past.iter().collect();
        assert_eq!(stray(1.06).moved_since(&past), None);
        assert_eq!(stray(1.3).moved_since(&past).unwrap().sms.len(), 1);
    }

    #[test]
    fn what_the_worker_writes_is_read_and_anything_else_is_nothing() {
        let (gpu, map) = Map::parse("gpu.3.distance", "0:271.25 1:280.50").unwrap();
        assert_eq!((gpu, map.0.len(), map.0[&1]), (3, 2, 280.5));
        for text in ["", "0:x", "0:-1", "0:NaN", "0:inf", "0"] {
            assert_eq!(Map::parse("gpu.3.distance", text), None, "{text}");
        }
        assert_eq!(Map::parse("gpu.3.health", "0:1"), None);
    }

    proptest! {
        #[test]
        fn any_two_maps_are_compared_without_a_panic(
            a in proptest::collection::btree_map(0u32..200, 1e-3..1e6, 0..40),
            b in proptest::collection::btree_map(0u32..200, 1e-3..1e6, 0..40),
        ) {
            if let Some(moved) = Map(a.clone()).moved_since(&[&Map(b.clone())]) {
                prop_assert!(moved.sms.iter().all(|(sm, _)| a.contains_key(sm) && b.contains_key(sm)));
            }
            prop_assert_eq!(Map(a.clone()).moved_since(&[&Map(a)]), None);
        }
    }
}
