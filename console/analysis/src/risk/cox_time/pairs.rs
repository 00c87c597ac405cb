//! Who is compared with whom? Each event with nodes drawn from those still watched at its time.

use crate::Chance;
use crate::risk::{Scale, Table};

/// Scaled rows in order of duration.
pub(super) struct Pairs {
    width: usize,
    rows: Vec<f32>,
    /// Scaled duration of each row.
    pub(super) time: Vec<f32>,
    /// Rows that are events, with the first row still at risk at their time.
    pub(super) cases: Vec<(usize, usize)>,
}

/// Centre and size of the durations the network sees.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Clock {
    centre: f64,
    size: f64,
}

impl Clock {
    /// Clock of the durations of `table`, as pycox's label transform.
    pub(super) fn of(table: &Table) -> Self {
        let n = table.len() as f64;
        let centre = table.duration().iter().sum::<f64>() / n;
        let size = (table.duration().iter().map(|t| (t - centre).powi(2)).sum::<f64>() / n).sqrt();
        Self { centre, size: if size > 0.0 { size } else { 1.0 } }
    }

    /// Scaled time.
    pub(super) fn scaled(self, time: f64) -> f32 {
        ((time - self.centre) / self.size) as f32
    }
}

impl Pairs {
    pub(super) fn of(table: &Table, scale: &Scale, clock: Clock) -> Self {
        let order = table.by_duration();
        let duration: Vec<f64> = order.iter().map(|&i| table.duration()[i]).collect();
        let at_risk = |time: f64| duration.partition_point(|t| *t < time);
        let cases = order.iter().enumerate().filter(|&(_, &i)| table.event()[i]);
        let cases = cases.map(|(k, _)| (k, at_risk(duration[k]))).collect();
        Self {
            width: table.width(),
            rows: order.iter().flat_map(|&i| scale.apply(table.row(i)).map(|v| v as f32).collect::<Vec<_>>()).collect(),
            time: duration.iter().map(|&t| clock.scaled(t)).collect(),
            cases,
        }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.time.len()
    }

    /// Scaled features of the row in place `k`.
    pub(super) fn row(&self, k: usize) -> &[f32] {
        &self.rows[k * self.width..(k + 1) * self.width]
    }

    /// A row at risk at the time of `case`, the case itself included.
    pub(super) fn control(&self, case: (usize, usize), chance: &mut Chance) -> usize {
        case.1 + chance.below(self.len() - case.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_come_uniformly_from_the_risk_set() {
        let time = vec![3.0, 1.0, 2.0, 2.0];
        let event = vec![false, true, true, false];
        let table = Table::new(vec!["x".into()], vec![0.0; 4], time, event).unwrap();
        let pairs = Pairs::of(&table, &Scale::of(&table), Clock::of(&table));
        assert_eq!(pairs.cases, [(0, 0), (1, 1)]);
        let mut chance = Chance::new(1);
        let mut seen = [0_u32; 4];
        for _ in 0..3000 {
            seen[pairs.control((1, 1), &mut chance)] += 1;
        }
        assert_eq!(seen[0], 0, "the one that failed before is not at risk");
        assert!(seen[1..].iter().all(|n| (900..1100).contains(n)), "{seen:?}");
    }
}
