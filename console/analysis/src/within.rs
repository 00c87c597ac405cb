//! Which of a node's own parts (its cores) is slower than the others, from values taken in turns.
//!
//! Parts of one node share its moods: what disturbs the node in one round disturbs all of them. So rounds are compared
//! as pairs: in each, a part's cost against the median cost of the other parts. The effect is the median of these
//! differences over the rounds, its interval the distribution-free one between order statistics (Conover, "Practical
//! Nonparametric Statistics", 3rd ed., section 3.2), at 95 % over all parts of the node together (Bonferroni).

use muster_wire::Direction;

use crate::sample::median_of_sorted;
use crate::spread::log_cost;

/// `ln 1.2`: the lower end of the interval must lie beyond it. Preferred cores, which clock higher when they work
/// alone, stay within a tenth.
const SLOW: f64 = 0.182_321_556_793_954_6;
/// `ln 1.5`, which it is where there are fewer than [`ENOUGH`] parts, and nobody to outvote one that is only different.
const VERY_SLOW: f64 = 0.405_465_108_108_164_4;
const ENOUGH: usize = 4;
/// Spreads of the other parts it must lie beyond as well.
const SPREADS: f64 = 6.0;
/// Parts closer together than half a percent count as that far apart.
const SCALE_FLOOR: f64 = 0.005;
const MAD_TO_SIGMA: f64 = 1.4826;
/// Share of the parts that may be slow; more of them are another kind of part and not the odd ones.
const FEW: f64 = 0.25;
/// Chance that any interval of the node misses.
const MISS: f64 = 0.05;

/// A part that is slower than the others of its node.
#[derive(Clone, Debug, PartialEq)]
pub struct Odd {
    /// Its name, as given.
    pub part: String,
    /// Time for the same work, over the others' (1.9 = takes 1.9 times as long).
    pub ratio: f64,
    /// 95 % interval of `ratio`.
    pub interval: (f64, f64),
    /// How many others.
    pub others: usize,
    /// Rounds in which it was compared.
    pub rounds: usize,
}

/// The slow ones among `parts`, worst first; values with one position belong to one round, and rounds that not all
/// parts have are left out. Of two parts the slower one is named against the other. Empty where rounds are too few to
/// decide, or where more than a quarter of the parts (and more than one) are slow.
///
/// ```
/// use muster_analysis::within::odd_parts;
/// use muster_wire::Direction;
///
/// let healthy: Vec<f64> = (0..32).map(|round| 100.0 + f64::from(round % 3)).collect();
/// let slow: Vec<f64> = healthy.iter().map(|value| value / 2.0).collect();
/// let cores = [("core0", &healthy[..]), ("core1", &slow), ("core2", &healthy)];
/// let odd = odd_parts(&cores, Direction::HigherIsBetter);
/// assert_eq!((odd.len(), odd[0].part.as_str(), odd[0].ratio.round()), (1, "core1", 2.0));
/// ```
#[must_use]
pub fn odd_parts(parts: &[(&str, &[f64])], dir: Direction) -> Vec<Odd> {
    let rounds = parts.iter().map(|(_, values)| values.len()).min().unwrap_or(0);
    if parts.len() < 2 {
        return Vec::new();
    }
    let Some(rank) = rank(rounds, MISS / parts.len() as f64) else { return Vec::new() };
    let costs: Vec<Vec<f64>> =
        parts.iter().map(|(_, values)| values[..rounds].iter().map(|value| log_cost(*value, dir)).collect()).collect();
    let differences: Vec<Vec<f64>> = (0..parts.len()).map(|part| against_others(&costs, part)).collect();
    let effects: Vec<f64> = differences.iter().map(|sorted| median_of_sorted(sorted)).collect();
    let slow = if parts.len() < ENOUGH { VERY_SLOW } else { SLOW };
    let mut odd: Vec<Odd> = (0..parts.len())
        .filter(|&part| differences[part][rank] >= slow && effects[part] >= SPREADS * scale(&effects, part))
        .map(|part| Odd {
            part: parts[part].0.to_owned(),
            ratio: effects[part].exp(),
            interval: (differences[part][rank].exp(), differences[part][rounds - 1 - rank].exp()),
            others: parts.len() - 1,
            rounds,
        })
        .collect();
    if odd.len() > 1 && odd.len() as f64 > FEW * parts.len() as f64 {
        return Vec::new();
    }
    odd.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    odd
}

/// Ascending differences of a part's cost to the median of the others', one a round.
fn against_others(costs: &[Vec<f64>], part: usize) -> Vec<f64> {
    let mut differences: Vec<f64> = (0..costs[part].len())
        .map(|round| {
            let mut others: Vec<f64> =
                costs.iter().enumerate().filter(|(other, _)| *other != part).map(|(_, cost)| cost[round]).collect();
            others.sort_unstable_by(f64::total_cmp);
            costs[part][round] - median_of_sorted(&others)
        })
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    differences
}

/// Robust spread of the other parts' effects.
fn scale(effects: &[f64], part: usize) -> f64 {
    let mut others: Vec<f64> =
        effects.iter().enumerate().filter(|(other, _)| *other != part).map(|(_, effect)| *effect).collect();
    others.sort_unstable_by(f64::total_cmp);
    let centre = median_of_sorted(&others);
    let mut away: Vec<f64> = others.iter().map(|effect| (effect - centre).abs()).collect();
    away.sort_unstable_by(f64::total_cmp);
    (MAD_TO_SIGMA * median_of_sorted(&away)).max(SCALE_FLOOR)
}

/// Largest rank from either end (from 0) between which the median of `rounds` values lies but for a chance of `miss`.
fn rank(rounds: usize, miss: f64) -> Option<usize> {
    let mut chance = 0.5f64.powi(i32::try_from(rounds).ok()?);
    let mut below = chance;
    let mut found = None;
    for at in 0..rounds / 2 {
        if 2.0 * below > miss {
            break;
        }
        found = Some(at);
        chance *= (rounds - at) as f64 / (at + 1) as f64;
        below += chance;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;

    /// Values of `parts` cores over `rounds`, with a mood of the node per round and noise per value.
    fn node(chance: &mut Chance, parts: usize, rounds: usize, slow: &[(usize, f64)]) -> Vec<(String, Vec<f64>)> {
        let moods: Vec<f64> = (0..rounds).map(|_| 0.3 * chance.normal()).collect();
        (0..parts)
            .map(|part| {
                let factor = slow.iter().find(|(odd, _)| *odd == part).map_or(1.0, |(_, factor)| *factor);
                let own = 0.02 * chance.normal();
                let values = moods.iter().map(|mood| factor * (mood + own + 0.05 * chance.normal()).exp()).collect();
                (format!("core{part}"), values)
            })
            .collect()
    }

    fn odd(node: &[(String, Vec<f64>)], dir: Direction) -> Vec<Odd> {
        let parts: Vec<(&str, &[f64])> = node.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
        odd_parts(&parts, dir)
    }

    #[test]
    fn a_slow_core_is_named_with_its_effect_whatever_the_mood_of_the_node() {
        let mut chance = Chance::new(1);
        for cores in [2, 4, 16, 64] {
            let found = odd(&node(&mut chance, cores, 32, &[(1, 0.55)]), Direction::HigherIsBetter);
            assert_eq!(found.iter().map(|odd| odd.part.as_str()).collect::<Vec<_>>(), ["core1"], "{cores} cores");
            let Odd { ratio, interval: (low, high), others, rounds, .. } = found[0];
            assert!(low <= ratio && ratio <= high && low > 1.5 && high < 2.2, "{:?}", found[0]);
            assert_eq!((others, rounds), (cores - 1, 32));
        }
        let latency = odd(&node(&mut chance, 8, 32, &[(7, 2.0)]), Direction::LowerIsBetter);
        assert_eq!((latency.len(), latency[0].part.as_str()), (1, "core7"));
    }

    #[test]
    fn of_thousands_of_healthy_nodes_no_core_is_named() {
        let mut chance = Chance::new(2);
        for cores in [2, 8, 32] {
            for _ in 0..4_000 / cores {
                assert_eq!(odd(&node(&mut chance, cores, 16, &[]), Direction::HigherIsBetter), []);
            }
        }
    }

    #[test]
    fn a_fast_core_is_not_odd_and_a_second_kind_of_core_is_no_fault() {
        let mut chance = Chance::new(3);
        assert_eq!(odd(&node(&mut chance, 8, 32, &[(2, 1.6)]), Direction::HigherIsBetter), []);
        let small: Vec<(usize, f64)> = (4..8).map(|core| (core, 0.6)).collect();
        assert_eq!(odd(&node(&mut chance, 8, 32, &small), Direction::HigherIsBetter), []);
    }

    #[test]
    fn one_bad_round_or_too_few_rounds_name_nobody() {
        let mut chance = Chance::new(4);
        let mut bursts = node(&mut chance, 8, 32, &[]);
        bursts[3].1[..10].iter_mut().for_each(|value| *value /= 5.0);
        assert_eq!(odd(&bursts, Direction::HigherIsBetter), []);
        assert_eq!(odd(&node(&mut chance, 8, 5, &[(0, 0.5)]), Direction::HigherIsBetter), []);
        assert_eq!(odd(&node(&mut chance, 1, 32, &[]), Direction::HigherIsBetter), []);
    }

    #[test]
    fn ranks_of_the_median_are_those_of_the_binomial_tables() {
        // Conover, table A3: for n = 20 at 95 % the 6th and 15th values; for n = 10 the 2nd and 9th.
        assert_eq!(rank(20, 0.05), Some(5));
        assert_eq!(rank(10, 0.05), Some(1));
        assert_eq!(rank(5, 0.05), None);
    }
}
