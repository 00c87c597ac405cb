//! What is the most that a few minutes can find? Greedy by gain per minute, or the best single benchmark: together
//! within a constant of the optimum (Khuller, Moss and Naor 1999); the exact search starts from it.

use super::instance::better;
use super::{Instance, Set};

/// Set of at most `minutes` that holds `keep` (which is not checked against the budget).
#[must_use]
pub fn best_within(instance: &Instance, minutes: f64, keep: Set) -> Set {
    let mut set = keep;
    let mut room = minutes - instance.cost(keep);
    let fits = |b: usize, room: f64| instance.minutes(b) <= room + 1e-9;
    loop {
        let gains = instance.gains(set);
        let worth = |b: usize| (gains[b], instance.minutes(b));
        let candidates = (0..instance.len()).filter(|&b| !set.has(b) && gains[b] > 0.0 && fits(b, room));
        let Some(b) = candidates.reduce(|best, b| if better(worth(b), worth(best)) { b } else { best }) else { break };
        set = set.with(b);
        room -= instance.minutes(b);
    }
    let room = minutes - instance.cost(keep);
    let single = (0..instance.len()).filter(|&b| fits(b, room)).map(|b| keep.with(b));
    single.fold(set, |best, one| if instance.found(one) > instance.found(best) { one } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_large_benchmark_may_beat_the_best_rates() {
        let i = Instance::new(&[1.0, 10.0], [(Set(1), 1.0), (Set(2), 9.0)]);
        assert_eq!(best_within(&i, 10.0, Set::default()), Set(2), "the first has the better rate and blocks it");
        assert_eq!(best_within(&i, 11.0, Set::default()), Set(3));
        assert_eq!(best_within(&i, 0.5, Set::default()), Set(0));
    }
}
