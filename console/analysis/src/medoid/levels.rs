//! Which levels a CDF can stand on: `k/m` for every sample length `m`, as ranks in their common order.

use std::collections::BTreeMap;

/// All levels above zero of a set of samples.
pub(super) struct Levels {
    /// Level of each rank; rank 0 is level zero.
    pub(super) level: Vec<f64>,
    /// Its reciprocal; zero for rank 0.
    pub(super) reciprocal: Vec<f64>,
    /// Rank of `k/m` at `table[start + k]`.
    table: Vec<u32>,
    /// Start in the table, per sample.
    start: Vec<usize>,
}

impl Levels {
    pub(super) fn of(lengths: &[usize]) -> Self {
        let mut starts: BTreeMap<usize, usize> = lengths.iter().map(|&m| (m, 0)).collect();
        // Fractions are compared exactly, as integers: 1/3 and 2/6 must be one level.
        let mut fractions: Vec<(usize, usize)> = starts.keys().flat_map(|&m| (1..=m).map(move |k| (k, m))).collect();
        fractions.sort_unstable_by(|a, b| (a.0 as u128 * b.1 as u128).cmp(&(b.0 as u128 * a.1 as u128)));
        let mut size = 0;
        for (m, start) in &mut starts {
            *start = size;
            size += m + 1;
        }
        let mut level = vec![0.0];
        let mut table = vec![0; size];
        let mut last = (0, 1);
        for (k, m) in fractions {
            if k * last.1 != last.0 * m {
                level.push(k as f64 / m as f64);
                last = (k, m);
            }
            table[starts[&m] + k] = (level.len() - 1) as u32;
        }
        let reciprocal = level.iter().map(|&l| if l > 0.0 { l.recip() } else { 0.0 }).collect();
        Self { level, reciprocal, table, start: lengths.iter().map(|m| starts[m]).collect() }
    }

    /// Rank of sample `i` after `k` of its steps.
    pub(super) fn rank(&self, i: usize, k: usize) -> usize {
        self.table[self.start[i] + k] as usize
    }

    /// Ranks above zero.
    pub(super) fn ranks(&self) -> usize {
        self.level.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_fractions_of_unequal_lengths_share_a_rank() {
        let levels = Levels::of(&[3, 6, 2]);
        assert_eq!(levels.rank(0, 1), levels.rank(1, 2));
        assert_eq!(levels.rank(1, 3), levels.rank(2, 1));
        assert_eq!([levels.rank(0, 3), levels.rank(1, 6), levels.rank(2, 2)], [levels.ranks(); 3]);
        assert_eq!(levels.ranks(), 6);
        assert_eq!(levels.rank(0, 0), 0);
        assert!(levels.level.windows(2).all(|w| w[0] < w[1]));
    }
}
