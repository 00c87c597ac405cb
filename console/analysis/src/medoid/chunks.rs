//! All steps of all nodes from the worst to the best, in pieces that fit the cache.
//!
//! Samples are sorted already, so a value range of the whole fleet is a short run of each: the runs of one range
//! are gathered and sorted together. That is several times faster than sorting ten million steps at once, and
//! needs no copy of the fleet.

use muster_wire::Direction;

use crate::Sample;

/// Steps gathered at a time, roughly.
const CHUNK: usize = 8192;
/// Values looked at per chunk to place its bounds.
const OVERSAMPLE: usize = 32;

/// A step: an integer that orders like badness, and whose step it is.
pub(super) type Event = (u64, u32);

/// Walks the fleet's steps in order of [`place`]. Calls `each` with every step's position and node.
pub(super) fn in_order(samples: &[&Sample], dir: Direction, mut each: impl FnMut(f64, usize)) {
    let mut taken = vec![0_usize; samples.len()];
    let mut chunk: Vec<Event> = Vec::with_capacity(2 * CHUNK);
    for bound in bounds(samples, dir) {
        chunk.clear();
        for (node, sample) in samples.iter().enumerate() {
            let values = sample.values();
            let from = &mut taken[node];
            while *from < values.len() {
                let index = if dir == Direction::HigherIsBetter { *from } else { values.len() - 1 - *from };
                let key = key(values[index], dir);
                if key > bound {
                    break;
                }
                chunk.push((key, node as u32));
                *from += 1;
            }
        }
        chunk.sort_unstable_by_key(|event| event.0);
        for &(key, node) in &chunk {
            each(place(key, dir), node as usize);
        }
    }
}

/// Orders non-negative values by badness: bit patterns of such floats order like the floats.
fn key(value: f64, dir: Direction) -> u64 {
    match dir {
        Direction::HigherIsBetter => value.to_bits(),
        Direction::LowerIsBetter => !value.to_bits(),
    }
}

/// Position on the axis along which CDFs rise: the value, or its negative where lower is better.
fn place(key: u64, dir: Direction) -> f64 {
    match dir {
        Direction::HigherIsBetter => f64::from_bits(key),
        Direction::LowerIsBetter => -f64::from_bits(!key),
    }
}

/// Upper bounds of the chunks, ascending, the last above everything.
fn bounds(samples: &[&Sample], dir: Direction) -> Vec<u64> {
    let total: usize = samples.iter().map(|s| s.len()).sum();
    let stride = (CHUNK / OVERSAMPLE).min(total).max(1);
    let mut picks = Vec::with_capacity(total / stride + 1);
    let mut skip = 0;
    for sample in samples {
        let values = sample.values();
        while skip < values.len() {
            picks.push(key(values[skip], dir));
            skip += stride;
        }
        skip -= values.len();
    }
    picks.sort_unstable();
    let mut bounds: Vec<u64> = picks.into_iter().skip(OVERSAMPLE).step_by(OVERSAMPLE).collect();
    bounds.dedup();
    bounds.push(u64::MAX);
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_step_comes_once_and_in_order(
            fleet in proptest::collection::vec(proptest::collection::vec(0.0f64..100.0, 1..300), 1..40),
            lower in any::<bool>(),
        ) {
            let dir = if lower { Direction::LowerIsBetter } else { Direction::HigherIsBetter };
            let samples: Vec<Sample> = fleet.iter().map(|v| Sample::new(v).unwrap()).collect();
            let mut counts = vec![0; samples.len()];
            let mut last = f64::NEG_INFINITY;
            let mut ordered = true;
            in_order(&samples.iter().collect::<Vec<_>>(), dir, |at, node| {
                ordered &= at >= last;
                last = at;
                counts[node] += 1;
            });
            prop_assert!(ordered);
            prop_assert_eq!(counts, fleet.iter().map(Vec::len).collect::<Vec<_>>());
        }
    }
}
