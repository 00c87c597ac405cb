//! How long will a benchmark take? As long as nine of ten of its past runs.

/// 90 % quantile (the smallest value that nine tenths do not exceed) of measured durations, in their unit; none
/// without a finite one.
#[must_use]
pub fn p90(durations: &[f64]) -> Option<f64> {
    let mut known: Vec<f64> = durations.iter().copied().filter(|d| d.is_finite() && *d >= 0.0).collect();
    let rank = (0.9 * known.len() as f64).ceil() as usize;
    (!known.is_empty()).then(|| *known.select_nth_unstable_by(rank.max(1) - 1, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::p90;

    #[test]
    fn nine_of_ten_runs_are_not_longer() {
        let runs: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(p90(&runs), Some(9.0));
        assert_eq!(p90(&[7.0, f64::NAN]), Some(7.0));
        assert_eq!(p90(&[]), None);
    }
}
