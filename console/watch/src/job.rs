//! Whether the job runs, stands still, or began anew: by the metrics that fall to zero when nothing moves.

use muster_wire::SaysOfJob;

use super::column::Column;
use super::order::median;

/// Times the usual activity past which another job has begun.
const BEGAN: f64 = 3.0;
/// Share of the usual activity below which the job stands still.
const STILL: f64 = 0.2;
/// Blocks after which the usual activity is known.
const KNOWN: u32 = 6;
/// Blocks skipped after a beginning and after a standstill, that block included.
const AFTER_BEGIN: u32 = 4;
const AFTER_STILL: u32 = 1;
/// Activity of a metric that is usually zero and is not now.
const FROM_NOTHING: f64 = 9.0;

/// What goes on in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Another job: everything learned is void.
    Began,
    /// Too near to a beginning or an end to compare anybody.
    Skipped,
    /// Nothing moves.
    Still,
    /// It moves again; the block still belongs to the standstill.
    Resumed,
    /// As usual.
    Runs,
}

/// What is known of the job.
#[derive(Clone, Debug, Default)]
pub(super) struct Job {
    /// Blocks in which it ran.
    runs: u32,
    skip: u32,
    /// Blocks of the standstill that goes on.
    pub(super) still: u32,
    /// Those of them in which a node wrote, which explains them.
    pub(super) wrote: u32,
    /// Blocks of the longest one that ended by itself, and most that nothing explained: a checkpoint teaches no patience with a hang.
    pub(super) longest: u32,
    pub(super) longest_idle: u32,
}

impl Job {
    /// What goes on, by the closed block of all metrics.
    pub(super) fn phase(&mut self, columns: &[Column]) -> Phase {
        let mut found: Vec<f64> =
            columns.iter().filter(|c| c.about.job == SaysOfJob::Moves).filter_map(activity).collect();
        let activity = median(&mut found);
        if self.runs > 0 && activity > BEGAN {
            let (longest, longest_idle) = (self.longest, self.longest_idle);
            *self = Self { skip: AFTER_BEGIN, longest, longest_idle, ..Self::default() };
            return Phase::Began;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Phase::Skipped;
        }
        if self.runs >= KNOWN && activity < STILL {
            self.still += 1;
            return Phase::Still;
        }
        if self.still > 0 {
            self.longest = self.longest.max(self.still);
            self.longest_idle = self.longest_idle.max(self.still.saturating_sub(self.wrote));
            (self.still, self.wrote, self.skip) = (0, 0, AFTER_STILL);
            return Phase::Resumed;
        }
        self.runs = self.runs.saturating_add(1);
        Phase::Runs
    }
}

/// Level of a metric beside its usual level.
fn activity(column: &Column) -> Option<f64> {
    let (level, usual) = (column.level, column.reference);
    match () {
        () if !level.is_finite() || !usual.is_finite() => None,
        () if usual > 0.0 => Some(level / usual),
        () if level > 0.0 => Some(FROM_NOTHING),
        () => Some(1.0),
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::{Telemetry, telemetry};

    use super::super::column::Work;
    use super::*;

    fn phases(levels: &[f64]) -> Vec<Phase> {
        let about = telemetry("tensor_active").copied().unwrap_or(Telemetry::unknown());
        let mut columns = vec![Column::new("tensor_active".into(), about, 1, 0)];
        let (mut job, mut work) = (Job::default(), Work::default());
        work.alive = vec![false];
        let mut phase = |(block, &level): (usize, &f64)| {
            let block = block as i64;
            (0..10).for_each(|second| columns[0].cells[0].seconds.put(block, second, level));
            columns[0].close(block, &mut work);
            let phase = job.phase(&columns);
            match phase {
                Phase::Runs => columns[0].keep_level(&mut work),
                Phase::Began => columns[0].forget(),
                _ => {}
            }
            phase
        };
        levels.iter().enumerate().map(&mut phase).collect()
    }

    #[test]
    fn a_standstill_is_seen_once_the_usual_level_is_known_and_the_blocks_after_it_are_skipped() {
        let mut levels = vec![0.5; 7];
        levels.extend([0.01, 0.01, 0.5, 0.5, 0.5]);
        let found = phases(&levels);
        assert!(found[..7].iter().all(|phase| *phase == Phase::Runs), "{found:?}");
        assert_eq!(found[7..], [Phase::Still, Phase::Still, Phase::Resumed, Phase::Skipped, Phase::Runs]);
        assert_eq!(phases(&[0.5, 0.01])[1], Phase::Runs, "too early to tell");
    }

    #[test]
    fn a_standstill_in_which_somebody_wrote_teaches_no_patience_with_a_hang() {
        let mut job = Job { runs: KNOWN, still: 12, wrote: 11, ..Job::default() };
        assert_eq!(job.phase(&[]), Phase::Resumed);
        assert_eq!((job.longest, job.longest_idle, job.wrote), (12, 1, 0));
    }

    #[test]
    fn a_job_that_begins_makes_everything_forgotten() {
        let found = phases(&[0.01, 0.01, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
        assert_eq!(found[2], Phase::Began);
        assert_eq!(found[3..7], [Phase::Skipped; 4]);
        assert_eq!(found[7], Phase::Runs);
    }

    #[test]
    fn a_job_stands_still_below_a_fifth_and_begins_above_three_times_its_usual_level() {
        let last = |level: f64| *phases(&[&[0.2; 7][..], &[level]].concat()).last().unwrap();
        // Levels are kept in single precision.
        assert_eq!((last(0.0401), last(0.0399)), (Phase::Runs, Phase::Still));
        assert_eq!((last(0.599), last(0.601)), (Phase::Runs, Phase::Began));
        assert_eq!(last(f64::NAN), Phase::Runs, "nothing is known of it");
    }

    #[test]
    fn a_job_that_usually_does_nothing_begins_with_the_first_thing_it_does() {
        assert_eq!(phases(&[0.0, 0.0, 0.01])[2], Phase::Began);
        assert_eq!(phases(&[0.0; 8]), [Phase::Runs; 8], "nothing of the usual nothing is as usual");
    }

    #[test]
    fn standstills_are_counted_in_blocks_and_the_longest_is_remembered_beyond_another_beginning() {
        let mut job = Job { runs: KNOWN, longest: 4, longest_idle: 2, ..Job::default() };
        let about = telemetry("tensor_active").copied().unwrap_or(Telemetry::unknown());
        let mut column = Column::new("tensor_active".into(), about, 1, 0);
        let mut phase = |job: &mut Job, level: f64| {
            (column.level, column.reference) = (level, 0.5);
            job.phase(std::slice::from_ref(&column))
        };
        for still in 1..=7 {
            assert_eq!((phase(&mut job, 0.0), job.still), (Phase::Still, still));
        }
        assert_eq!(phase(&mut job, 0.5), Phase::Resumed);
        assert_eq!((job.still, job.longest, job.longest_idle), (0, 7, 7));
        assert_eq!([phase(&mut job, 0.5), phase(&mut job, 0.5)], [Phase::Skipped, Phase::Runs]);
        assert_eq!(phase(&mut job, 1.6), Phase::Began);
        assert_eq!((job.longest, job.longest_idle), (7, 7));
        let after: Vec<Phase> = (0..6).map(|_| phase(&mut job, 0.5)).collect();
        assert_eq!(after, [&[Phase::Skipped; 4][..], &[Phase::Runs; 2]].concat());
    }
}
