//! How long one matrix product takes on one core, and split among several that exchange their parts over TCP.
//!
//! As `SuperBench`'s benchmark of that name, 512 x 512 x 512: whole on every rank; split along the inner dimension, the
//! partial results added up by a ring all-reduce; split along the columns, the parts collected by a ring all-gather
//! (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009). Elements are small
//! integers, so that every order of addition gives the same bits and the result can be checked exactly.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use super::context::{Context, Metric, share};
use super::kernel::{Isa, mixed};
use super::net::{self, GULP, PATIENCE, connect};
use crate::pin::{Place, Worker, filled, with_team};
use crate::steps::Halt;

pub(crate) const NAME: &str = "sharding-matmul";
const SMOKE: Duration = Duration::from_millis(700);
pub(super) const NAMES: [&str; 3] = ["nosharding_time", "allreduce_time", "allgather_time"];
const WHOLE: usize = 0;
const REDUCE: usize = 1;
/// Rows and columns.
const N: usize = 512;
const MOST_RANKS: usize = 4;

/// One thread of the ring.
struct Rank {
    at: usize,
    ranks: usize,
    isa: Isa,
    a: Vec<f32>,
    b: Vec<f32>,
    /// The product; after an all-gather, one block of columns after another.
    c: Vec<f32>,
    next: TcpStream,
    previous: TcpStream,
    bytes: [Vec<u8>; 2],
}

impl Rank {
    fn new(at: usize, ranks: usize, (next, previous): (TcpStream, TcpStream)) -> Result<Self, Halt> {
        let mut a = filled(N * N, 0f32)?;
        let mut b = filled(N * N, 0f32)?;
        a.iter_mut().zip(0..).for_each(|(value, i)| *value = element(i));
        b.iter_mut().zip(N * N..).for_each(|(value, i)| *value = element(i));
        let part = N * N / ranks * size_of::<f32>();
        let bytes = [filled(part, 0u8)?, filled(part, 0u8)?];
        Ok(Self { at, ranks, isa: Isa::best(), a, b, c: filled(N * N, 0.0)?, next, previous, bytes })
    }

    /// Columns, or inner indices, of a rank.
    fn part(&self) -> Range<usize> {
        let width = N / self.ranks;
        self.at * width..(self.at + 1) * width
    }

    /// Sends part `give` of the result on and replaces part `take` by what comes, or adds that to it.
    fn exchange(&mut self, give: usize, take: usize, add: bool) -> Result<(), Halt> {
        let part = |at: usize| at % self.ranks * (N * N / self.ranks)..(at % self.ranks + 1) * (N * N / self.ranks);
        let [out, back] = &mut self.bytes;
        for (bytes, value) in out.as_chunks_mut().0.iter_mut().zip(&self.c[part(give)]) {
            *bytes = value.to_le_bytes();
        }
        // Piece by piece: whole parts would not fit the sockets' buffers, and everybody would wait for everybody.
        for (out, back) in out.chunks(GULP).zip(back.chunks_mut(GULP)) {
            self.next.write_all(out).and_then(|()| self.previous.read_exact(back)).map_err(lost)?;
        }
        for (value, bytes) in self.c[part(take)].iter_mut().zip(back.as_chunks().0) {
            *value = f32::from_le_bytes(*bytes) + if add { *value } else { 0.0 };
        }
        Ok(())
    }

    /// Adds up everybody's `c`.
    fn all_reduce(&mut self) -> Result<(), Halt> {
        let (at, ranks) = (self.at + self.ranks, self.ranks);
        for step in 0..ranks - 1 {
            self.exchange(at - step, at - step - 1, true)?;
        }
        for step in 0..ranks - 1 {
            self.exchange(at + 1 - step, at - step, false)?;
        }
        Ok(())
    }

    /// Collects everybody's part of `c`.
    fn all_gather(&mut self) -> Result<(), Halt> {
        let at = self.at + self.ranks;
        (0..self.ranks - 1).try_for_each(|step| self.exchange(at - step, at - step - 1, false))
    }
}

impl Worker for Rank {
    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        let part = self.part();
        match job {
            WHOLE => multiply(self.isa, (&self.a, 0..N), (&self.b, 0..N), &mut self.c),
            REDUCE => {
                multiply(self.isa, (&self.a, part), (&self.b, 0..N), &mut self.c);
                self.all_reduce()?;
            }
            _ => {
                let own = self.at * N * part.len()..(self.at + 1) * N * part.len();
                multiply(self.isa, (&self.a, 0..N), (&self.b, part), &mut self.c[own]);
                self.all_gather()?;
            }
        }
        Ok(1.0)
    }

    /// Against a vector of signs (Freivalds 1977); integers, so exactly.
    fn verify(&mut self, job: usize) -> Result<(), Halt> {
        let sign = |i: usize| if mixed(i as u64 ^ 0x5157) & 1 == 0 { 1.0 } else { -1.0 };
        let width = if job > REDUCE { N / self.ranks } else { N };
        let signed = |row: &[f32]| row.iter().zip(0..).map(|(b, column)| f64::from(*b) * sign(column)).sum::<f64>();
        let bx: Vec<f64> = self.b.chunks_exact(N).map(signed).collect();
        for (row, a) in self.a.chunks_exact(N).enumerate() {
            let expected: f64 = a.iter().zip(&bx).map(|(a, b)| f64::from(*a) * b).sum();
            let element = |column: usize| f64::from(self.c[column / width * N * width + row * width + column % width]);
            let seen: f64 = (0..N).map(|column| element(column) * sign(column)).sum();
            if seen != expected {
                return Err(Halt::Failed(format!(
                    "row {row} of the product is wrong on rank {} ({})",
                    self.at, NAMES[job]
                )));
            }
        }
        Ok(())
    }
}

fn lost(error: std::io::Error) -> Halt {
    net::lost("the ring over loopback broke", &error)
}

/// An integer of -64 to 63: 512 products of two of them add up exactly in 24 bits.
fn element(index: usize) -> f32 {
    (mixed(index as u64) >> 57) as f32 - 64.0
}

/// `c = a[.., inner] * b[inner, columns]`: of `a` some columns, with the same rows of `b` where those are all its columns,
/// or all of `a` with some columns of `b`.
fn multiply(isa: Isa, a: (&[f32], Range<usize>), b: (&[f32], Range<usize>), c: &mut [f32]) {
    match isa {
        Isa::Portable => blocks::<8>(a, b, c),
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "calls a function compiled for instructions that were detected")]
        // SAFETY: `Isa::best` gives it only where AVX2 and FMA were detected.
        Isa::Avx2 => unsafe { blocks_avx2(a, b, c) },
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "calls a function compiled for instructions that were detected")]
        // SAFETY: `Isa::best` gives it only where AVX-512F was detected.
        Isa::Avx512 => unsafe { blocks_avx512(a, b, c) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn blocks_avx2(a: (&[f32], Range<usize>), b: (&[f32], Range<usize>), c: &mut [f32]) {
    blocks::<16>(a, b, c);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,fma")]
fn blocks_avx512(a: (&[f32], Range<usize>), b: (&[f32], Range<usize>), c: &mut [f32]) {
    blocks::<32>(a, b, c);
}

/// Four rows by `WIDE` columns of the result at a time, which stay in registers.
#[inline(always)]
fn blocks<const WIDE: usize>((a, inner): (&[f32], Range<usize>), (b, columns): (&[f32], Range<usize>), c: &mut [f32]) {
    const ROWS: usize = 4;
    let width = columns.len();
    for column in (0..width).step_by(WIDE) {
        for (a, c) in a.as_chunks::<N>().0.as_chunks::<ROWS>().0.iter().zip(c.chunks_exact_mut(ROWS * width)) {
            let mut sums = [[0f32; WIDE]; ROWS];
            for (k, b) in inner.clone().zip(b[inner.start * N..].as_chunks::<N>().0) {
                let Some(b) = b[columns.start + column..].first_chunk::<WIDE>() else { continue };
                for row in 0..ROWS {
                    let a = a[row][k];
                    for lane in 0..WIDE {
                        sums[row][lane] += a * b[lane];
                    }
                }
            }
            for (row, sums) in sums.iter().enumerate() {
                c[row * width + column..][..WIDE].copy_from_slice(sums);
            }
        }
    }
}

/// Connections of a ring: for each rank the one to the next and the one from the previous.
fn ring(ranks: usize) -> Result<Vec<(TcpStream, TcpStream)>, Halt> {
    let (next, mut previous): (Vec<_>, Vec<_>) =
        (0..ranks).map(|_| connect()).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    // A rank that ended must not keep the others for ever.
    previous.iter().try_for_each(|stream: &TcpStream| stream.set_read_timeout(Some(PATIENCE))).map_err(lost)?;
    // What rank 0 sends comes out at rank 1.
    previous.rotate_right(1);
    Ok(next.into_iter().zip(previous).collect())
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let cores = Place::every_core();
    let ranks = if cores.len() >= MOST_RANKS { MOST_RANKS } else { 2 };
    let places: Vec<Place> = cores.iter().cycle().take(ranks).cloned().collect();
    let plan = context.plan(SMOKE, NAMES.len());
    let connections = Mutex::new(ring(ranks)?.into_iter().map(Some).collect::<Vec<_>>());
    let make = |place: &Place| {
        let at = places.iter().position(|one| std::ptr::eq(one, place)).unwrap_or(0);
        let mine = connections.lock().ok().and_then(|mut all| all.get_mut(at)?.take());
        Rank::new(at, ranks, mine.ok_or_else(|| Halt::Failed("a rank without connections".into()))?)
    };
    with_team(&places, &make, |team| {
        for (job, name) in NAMES.iter().enumerate() {
            // Exactly one product a step: all ranks must do the same number. It is done when the last of them is.
            let mut step = || {
                let rates = team.rates(0..ranks, job, Duration::ZERO)?;
                Ok(1e9 / rates.into_iter().fold(f64::INFINITY, f64::min))
            };
            context.measure(Metric::of(NAME, *name), &plan, share(job, NAMES.len()), &mut step)?;
            team.verify(job)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All ranks of a ring do `job` once.
    fn ranks(count: usize, job: usize) -> Vec<Rank> {
        let threads = ring(count).unwrap().into_iter().enumerate().map(|(at, ends)| {
            std::thread::spawn(move || {
                let mut rank = Rank::new(at, count, ends).unwrap();
                rank.chunk(job).unwrap();
                rank
            })
        });
        threads.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
    }

    #[test]
    fn every_way_of_splitting_gives_the_whole_product_to_every_rank() {
        for (count, job) in [(2, 0), (2, 1), (4, 1), (2, 2), (4, 2)] {
            for mut rank in ranks(count, job) {
                assert_eq!(rank.verify(job), Ok(()), "{} of {count}, {}", rank.at, NAMES[job]);
                rank.c[12_345] += 1.0;
                assert!(matches!(rank.verify(job), Err(Halt::Failed(_))), "the check must be able to fail");
            }
        }
    }

    #[test]
    fn the_product_is_the_naive_one() {
        let rank = &ranks(2, WHOLE)[0];
        for (row, column) in [(0, 0), (3, 500), (511, 511), (256, 17)] {
            let naive: f32 = (0..N).map(|k| rank.a[row * N + k] * rank.b[k * N + column]).sum();
            assert_eq!(rank.c[row * N + column], naive);
        }
    }
}
