//! How long will a benchmark take? As long as nine of ten of its past runs.

/// 90 % quantile (the smallest value that nine tenths do not exceed) of measured durations, in their unit; none
/// without a finite one.
#[must_use]
pub fn p90(durations: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = durations.iter().copied().filter(|d| d.is_finite() && *d >= 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let rank = (0.9 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
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
