//! Where do values fall into two groups, and how far apart are these?

/// The cut that leaves the least variance within two groups (Otsu, *A threshold selection method from gray-level
/// histograms*, IEEE Trans. SMC 9(1), 1979).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    /// Values below the cut.
    pub(super) cut: usize,
    /// Distance between the groups' means.
    pub(super) apart: f64,
    /// Standard deviation within the groups.
    pub(super) within: f64,
}

/// Splits ascending values; `None` for fewer than two or where all are equal.
pub(super) fn split(sorted: &[f64]) -> Option<Split> {
    let n = sorted.len();
    let total: f64 = sorted.iter().sum();
    let (mut low, mut best) = (0.0, (0.0, 0));
    for cut in 1..n {
        low += sorted[cut - 1];
        let (below, above) = (cut as f64, (n - cut) as f64);
        let apart = (total - low) / above - low / below;
        let variance = below * above * apart * apart;
        if variance > best.0 {
            best = (variance, cut);
        }
    }
    let cut = Some(best.1).filter(|cut| *cut > 0)?;
    let (below, above) = sorted.split_at(cut);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let squares = |part: &[f64], m: f64| part.iter().map(|v| (v - m) * (v - m)).sum::<f64>();
    let (m0, m1) = (mean(below), mean(above));
    let within = ((squares(below, m0) + squares(above, m1)) / n as f64).sqrt();
    Some(Split { cut, apart: m1 - m0, within })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_are_cut_between() {
        let found = split(&[0.0, 0.1, 0.2, 5.0, 5.1]).unwrap();
        assert_eq!(found.cut, 3);
        assert!((found.apart - 4.95).abs() < 1e-9 && found.within < 0.1);
        assert_eq!(split(&[1.0]), None);
        assert_eq!(split(&[2.0, 2.0]), None);
    }
}
