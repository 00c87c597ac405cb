//! How fast a core, and all cores together, move memory.
//!
//! The four loops of STREAM (McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance
//! Computers", 1995) on `f64`, bytes counted as there: copy and scale move two arrays, add and triad three.

use std::time::Duration;

use muster_wire::{Level, Profile};

use super::context::{Context, Metric, share};
use crate::pin::{Place, Worker, filled, with_team};
use crate::steps::Halt;
use crate::topology;

pub(crate) const NAME: &str = "cpu-stream";
const SMOKE: Duration = Duration::from_millis(720);
/// Bytes of the three arrays together in the smoke profile: 24 MiB each.
const SMOKE_BYTES: usize = 72 << 20;
const SCALAR: f64 = 3.0;
/// Elements per chunk: 256 KiB of each array.
const CHUNK: usize = 32 << 10;
/// Job numbers are positions in these lists.
pub(super) const ALL_CORES: [&str; 5] = ["copy", "scale", "add", "triad", "triad-1t"];
pub(super) const ONE_THREAD: [&str; 4] = ["copy-1t", "scale-1t", "add-1t", "triad-1t"];
const TRIAD: usize = 3;

struct Arrays {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    at: usize,
}

impl Arrays {
    fn new(elements: usize) -> Result<Self, Halt> {
        Ok(Self { a: filled(elements, 1.0)?, b: filled(elements, 2.0)?, c: filled(elements, 0.5)?, at: 0 })
    }

    fn pass(&mut self, job: usize) {
        self.at = 0;
        for _ in 0..self.a.len() / CHUNK {
            self.advance(job);
        }
    }

    fn advance(&mut self, job: usize) -> f64 {
        let range = self.at..self.at + CHUNK;
        self.at = (self.at + CHUNK) % self.a.len();
        let (a, b, c) = (&mut self.a[range.clone()], &mut self.b[range.clone()], &mut self.c[range]);
        let arrays = match job {
            0 => {
                c.copy_from_slice(a);
                2
            }
            1 => {
                b.iter_mut().zip(&*c).for_each(|(b, c)| *b = SCALAR * *c);
                2
            }
            2 => {
                c.iter_mut().zip(&*a).zip(&*b).for_each(|((c, a), b)| *c = *a + *b);
                3
            }
            _ => {
                a.iter_mut().zip(&*b).zip(&*c).for_each(|((a, b), c)| *a = *b + SCALAR * *c);
                3
            }
        };
        (arrays * CHUNK * size_of::<f64>()) as f64
    }

    /// What the loop of `job` must have written, from elements that it only read.
    fn wrong(&self, job: usize) -> Option<usize> {
        (0..self.a.len()).step_by(61).find(|&i| {
            let (a, b, c) = (self.a[i], self.b[i], self.c[i]);
            match job {
                0 => c != a,
                1 => b != SCALAR * c,
                2 => c != a + b,
                _ => a != b + SCALAR * c,
            }
        })
    }
}

impl Worker for Arrays {
    /// A whole pass: afterwards the loop finds its own result everywhere and changes nothing any more.
    fn prepare(&mut self, job: usize) -> Result<(), Halt> {
        self.pass(job);
        Ok(())
    }

    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        Ok(self.advance(job))
    }

    fn verify(&mut self, job: usize) -> Result<(), Halt> {
        self.wrong(job).map_or(Ok(()), |i| Err(Halt::Failed(format!("element {i} of array {job} is wrong"))))
    }
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let bytes = total_bytes(context)?;
    if context.profile == Profile::Smoke {
        return teamed(context, &[Place::this_node()], bytes, &ONE_THREAD);
    }
    teamed(context, &Place::every_core(), bytes, &ALL_CORES)
}

fn teamed(context: &mut Context<'_>, places: &[Place], bytes: usize, names: &[&'static str]) -> Result<(), Halt> {
    let plan = context.plan(SMOKE, names.len());
    let elements = (bytes / 3 / size_of::<f64>() / places.len()).next_multiple_of(CHUNK);
    with_team(places, &|_| Arrays::new(elements), |team| {
        for (at, name) in names.iter().enumerate() {
            let job = at.min(TRIAD);
            let alone = at > TRIAD;
            team.prepare(job)?;
            let mut step = || if alone { team.first(job, plan.step) } else { team.step(job, plan.step) };
            let metric = Metric::of(NAME, *name);
            context.measure(metric, &plan, share(at, names.len()), &mut step)?;
            team.verify(job)?;
        }
        Ok(())
    })
}

/// Bytes of all arrays of all threads. Each array is to be four times the last-level caches, as STREAM asks, as far
/// as a quarter of the free memory goes; in quick the same size as the caches and an eighth, which takes seconds less.
fn total_bytes(context: &mut Context<'_>) -> Result<usize, Halt> {
    let free = topology::available_memory();
    let caches = topology::last_level_total();
    let (wanted, most) = match context.profile {
        Profile::Smoke => (SMOKE_BYTES, free / 2),
        Profile::Quick => (3 * (caches + caches / 8).max(128 << 20), free / 8),
        Profile::Standard | Profile::Full => (3 * (4 * caches).max(256 << 20), free / 4),
    };
    let bytes = wanted.min(most);
    if bytes < SMOKE_BYTES {
        return Err(Halt::NotRun(format!("{} MiB of memory are free, {} needed", free >> 20, (2 * SMOKE_BYTES) >> 20)));
    }
    if bytes / 3 < 2 * caches {
        let (array, caches) = ((bytes / 3) >> 20, caches >> 20);
        let text = format!("{NAME}: arrays of {array} MiB beside caches of {caches} MiB measure caches as well");
        context.log(Level::Info, text);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loop_computes_what_stream_says() {
        let mut arrays = Arrays::new(3 * CHUNK).unwrap();
        for job in 0..4 {
            assert!(arrays.wrong(job).is_some(), "the check of loop {job} must be able to fail");
            arrays.pass(job);
            assert_eq!(arrays.wrong(job), None);
        }
        // a=1: copy c=1, scale b=3, add c=4, triad a=3+3*4
        assert!(arrays.c.iter().all(|c| *c == 4.0) && arrays.b.iter().all(|b| *b == 3.0));
        assert!(arrays.a.iter().all(|a| *a == 15.0));
    }

    #[test]
    fn bytes_are_counted_as_stream_counts_them() {
        let mut arrays = Arrays::new(CHUNK).unwrap();
        let bytes: Vec<f64> = (0..4).map(|job| arrays.advance(job) / CHUNK as f64).collect();
        assert_eq!(bytes, [16.0, 16.0, 24.0, 24.0]);
    }
}
