//! If only the riskiest tenth could be checked, what share of the incidents would it hold?

use super::Censoring;
use crate::risk::{Curves, Table};

/// What the riskiest rows hold.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Lift {
    /// Share of the incidents before the horizon that fall among the riskiest rows, 0 to 1.
    pub caught: f64,
    /// `caught` over the share of rows: 1 is chance.
    pub lift: f64,
}

/// Lift of the riskiest `share` of rows (0 to 1) at `horizon`. Rows of equal risk count in proportion, so that a
/// constant model has lift 1. None without an incident before the horizon.
#[must_use]
pub fn lift(table: &Table, curves: &Curves, horizon: f64, share: f64) -> Option<Lift> {
    let censoring = Censoring::of(table);
    let weight = |i: usize| match censoring.outcome(table, i, horizon) {
        Some((false, weight)) => weight,
        _ => 0.0,
    };
    let mut rows: Vec<(f64, f64)> = (0..table.len()).map(|i| (curves.at(i, horizon), weight(i))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = rows.iter().map(|r| r.1).sum();
    let mut room = share.clamp(0.0, 1.0) * rows.len() as f64;
    let mut caught = 0.0;
    for tied in rows.chunk_by(|a, b| a.0 == b.0) {
        let taken = room.min(tied.len() as f64);
        caught += tied.iter().map(|r| r.1).sum::<f64>() * taken / tied.len() as f64;
        room -= taken;
    }
    (total > 0.0 && share > 0.0).then(|| Lift { caught: caught / total, lift: caught / total / share })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfect_order_catches_all_and_a_constant_its_share() {
        let time: Vec<f64> = (0..100).map(|i| if i < 10 { 1.0 } else { 9.0 }).collect();
        let event = (0..100).map(|i| i < 10).collect();
        let table = Table::new(vec![], vec![], time, event).unwrap();
        let by = |f: &dyn Fn(usize) -> f64| Curves::new(vec![5.0], (0..100).map(f).collect());
        let l = lift(&table, &by(&|i| i as f64 / 100.0), 5.0, 0.1).unwrap();
        assert!((l.caught - 1.0).abs() < 1e-12 && (l.lift - 10.0).abs() < 1e-9);
        let l = lift(&table, &by(&|_| 0.5), 5.0, 0.1).unwrap();
        assert!((l.lift - 1.0).abs() < 1e-9);
        assert_eq!(lift(&table, &by(&|_| 0.5), 0.5, 0.1), None);
    }
}
