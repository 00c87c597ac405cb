//! What is known between two samples of an exporter that is asked every 15 s?
//!
//! The detector needs three samples in ten seconds. A value is held until the next sample, for at most one and a half times the usual time between two:
//! what was told is then what counts, and nothing is known before it was told. Past [`COARSEST`] one sample would be evidence for several blocks, and such a
//! metric is left out.

use super::{ROWS, Recording, Row};
use crate::Bad;

/// Seconds between two samples up to which a block has enough of them as they are.
const FINE: f64 = 10.0 / 3.0;
/// Seconds between two samples past which a metric cannot be compared.
pub(super) const COARSEST: f64 = 30.5;
/// Seconds from one repetition of a held value to the next: five in a block.
const EVERY: f64 = 2.0;
/// How long a value is held, in times between two samples.
const LONGEST: f64 = 1.5;
/// Gaps of a cell that say what is usual.
const ENOUGH: usize = 255;
/// Times less apart are of one sample.
const SAME: f64 = 0.05;

impl Recording {
    /// Holds the values of slow exporters until the next sample, and leaves out those that are too slow. The rows must be in order of time.
    ///
    /// # Errors
    /// When there are more rows than are kept.
    pub fn hold(&mut self) -> Result<(), Bad> {
        let steps = self.steps();
        if steps.iter().all(|step| *step <= FINE) {
            return Ok(());
        }
        for (&(_, metric), &step) in self.cells.iter().zip(&steps).filter(|(_, step)| **step > COARSEST) {
            let least = self.coarse.entry(self.metrics[metric as usize].clone()).or_insert(step);
            *least = least.min(step);
        }
        self.rows.retain(|row| steps[row.cell as usize] <= COARSEST);
        let mut next: Vec<Option<f64>> = vec![None; steps.len()];
        let mut held: Vec<Row> = Vec::new();
        for row in self.rows.iter().rev() {
            let (step, after) = (steps[row.cell as usize], next[row.cell as usize].replace(row.time_s));
            if step <= FINE {
                continue;
            }
            self.held_s = self.held_s.max(step);
            let until = after.unwrap_or(row.time_s + step).min(row.time_s + LONGEST * step);
            let times = (1..).map(|nr| row.time_s + EVERY * f64::from(nr)).take_while(|time_s| *time_s < until);
            held.extend(times.map(|time_s| Row { time_s, ..*row }));
            if self.rows.len() + held.len() > ROWS {
                return Err(Bad::TooMuch { line: 0, limit: ROWS, what: "rows once slow samples are held" });
            }
        }
        self.rows.append(&mut held);
        self.sort();
        Ok(())
    }

    /// The usual seconds between two samples, by cell; zero where there are fewer than two.
    fn steps(&self) -> Vec<f64> {
        let mut last = vec![f64::NAN; self.cells.len()];
        let mut gaps: Vec<Vec<f32>> = vec![Vec::new(); self.cells.len()];
        for row in &self.rows {
            let cell = row.cell as usize;
            let gap = row.time_s - std::mem::replace(&mut last[cell], row.time_s);
            if gap > SAME && gaps[cell].len() < ENOUGH {
                gaps[cell].push(gap as f32);
            }
        }
        let median = |mut gaps: Vec<f32>| {
            gaps.sort_unstable_by(f32::total_cmp);
            gaps.get(gaps.len() / 2).copied().map_or(0.0, f64::from)
        };
        gaps.into_iter().map(median).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(step: f64, times: usize) -> Recording {
        let mut recording = Recording::default();
        for at in 0..times {
            recording.push("a", "m", 1e9 + step * at as f64, at as f32).unwrap();
        }
        recording.push("a", "other", 1e9 + 1.0, 7.0).unwrap();
        recording.sort();
        recording.hold().unwrap();
        recording
    }

    #[test]
    fn samples_of_every_second_are_left_as_they_are() {
        let recording = recorded(1.0, 20);
        assert_eq!((recording.rows().len(), recording.held_s), (21, 0.0));
    }

    #[test]
    fn a_value_of_a_slow_exporter_is_held_until_the_next_and_not_before_it_was_told() {
        let recording = recorded(15.0, 4);
        assert!((recording.held_s - 15.0).abs() < 1e-6);
        let of = |second: f64| {
            let known = recording.rows().iter().filter(|row| recording.of(row).1 == 0);
            known.rev().find(|row| row.time_s <= 1e9 + second).map(|row| row.value)
        };
        assert_eq!((of(14.5), of(15.0), of(29.9), of(59.0)), (Some(0.0), Some(1.0), Some(1.0), Some(3.0)));
        let last = recording.rows().last().unwrap().time_s - 1e9;
        assert!((45.0..60.0).contains(&last), "{last}");
        for block in 0..5 {
            let within = |row: &&Row| ((row.time_s - 1e9) / 10.0).floor() as i32 == block;
            assert!(recording.rows().iter().filter(within).count() >= 3, "{block}");
        }
    }

    #[test]
    fn a_gap_stays_a_gap() {
        let mut recording = Recording::default();
        for at in (0..20).filter(|at| !(5..10).contains(at)) {
            recording.push("a", "m", 1e9 + 15.0 * f64::from(at), 1.0).unwrap();
        }
        recording.sort();
        recording.hold().unwrap();
        let inside = |row: &&Row| (83.0..150.0).contains(&(row.time_s - 1e9));
        assert_eq!(recording.rows().iter().filter(inside).count(), 0);
    }

    #[test]
    fn what_is_told_once_a_minute_is_left_out_and_listed() {
        let recording = recorded(60.0, 30);
        assert_eq!(recording.coarse, [("m".to_owned(), 60.0)].into());
        assert_eq!(recording.rows().len(), 1);
    }
}
