//! How many nodes fail a benchmark or check in an ordinary run?

use super::Outcomes;

/// Runs without which nothing is said of what is usual.
const ENOUGH: usize = 3;

/// Of the runs with an answer the one with the median rate, the lower of two; `None` where they are too few.
#[must_use]
pub fn ordinary(mut runs: Vec<Outcomes>) -> Option<Outcomes> {
    let rate = |o: &Outcomes| o.failed as f64 / (o.failed + o.passed) as f64;
    runs.retain(|o| o.failed + o.passed > 0);
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    runs.get((runs.len().max(1) - 1) / 2).copied().filter(|_| runs.len() >= ENOUGH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_bad_runs_of_five_are_not_usual_and_two_runs_say_nothing() {
        let of = |failed: &[usize]| {
            ordinary(failed.iter().map(|n| Outcomes { failed: *n, passed: 100 - n, silent: 0 }).collect())
        };
        assert_eq!(of(&[100, 5, 100, 4, 3]).map(|o| o.failed), Some(5));
        assert_eq!(of(&[9, 1, 7, 3]).map(|o| o.failed), Some(3));
        assert_eq!(of(&[5, 5]), None);
        let silent = Outcomes { failed: 0, passed: 0, silent: 9 };
        assert_eq!(ordinary(vec![silent; 5]), None);
    }
}
