//! Whether every multiprocessor computes the same bits in the same time, briefly and under load.
//!
//! What each multiprocessor said is sent as it is; who is wrong is decided where all of it is seen. Only when all are
//! wrong alike it takes the CPU to tell.

use std::time::{Duration, Instant};

use muster_wire::Unit;

use super::run::{Metric, Run};
use crate::driver::{Arg, Function, Gpu, Shape, Trouble};
use crate::twin::{self, Burn};

/// Shared memory that is left to the kernel's own; with the rest taken, one block fills a multiprocessor.
const LEFT: u32 = 4 << 10;
/// Launches until every multiprocessor was seen.
const TRIES: u32 = 4;
/// Seed and rounds that the CPU computes too.
const SEED: u32 = 0x7210;
const ROUNDS: u32 = 2;
/// Rows of disagreeing blocks that a burn sends.
const ROWS: usize = 16;

/// One unit kept busy on the whole GPU.
struct Fire<'a> {
    gpu: &'a Gpu,
    burn: Burn,
    function: Function,
    shape: Shape,
    out: crate::driver::Buffer,
}

impl<'a> Fire<'a> {
    fn new(gpu: &'a Gpu, burn: Burn) -> Result<Self, Trouble> {
        let shared = gpu.shared.saturating_sub(LEFT);
        let shape = Shape { grid: (gpu.sms, 1), threads: gpu.threads.min(512), shared };
        let out = gpu.buffer(gpu.sms as usize * 16)?;
        Ok(Self { gpu, burn, function: gpu.function(burn.kernel(), shared)?, shape, out })
    }

    fn start(&self, seed: u32, rounds: u32) -> Result<(), Trouble> {
        self.gpu.launch(self.function, self.shape, &[Arg::U32(seed), Arg::U32(rounds), Arg::At(&self.out)])
    }

    /// What each block of the last launch said: multiprocessor, digest, cycles.
    fn shares(&self) -> Result<Vec<(u32, u32, u64)>, Trouble> {
        let mut words = vec![0; self.gpu.sms as usize * 4];
        self.gpu.get(&mut words, &self.out)?;
        let share = |s: &[u32; 4]| (s[0], s[1], u64::from(s[2]) | u64::from(s[3]) << 32);
        let mut shares: Vec<_> = words.as_chunks().0.iter().map(share).collect();
        shares.sort_unstable();
        Ok(shares)
    }

    /// What is wrong when all blocks agree, and not with arithmetic. Sums of tensor cores are rounded as the hardware
    /// likes, so that nothing but each other can be said against them.
    fn untrue(&self) -> Result<Option<String>, Trouble> {
        if self.burn == Burn::Mma {
            return Ok(None);
        }
        self.start(SEED, ROUNDS)?;
        let shares = self.shares()?;
        let right = twin::digest(self.burn, SEED, ROUNDS, self.shape.threads);
        let alike = shares.iter().all(|share| share.1 == shares[0].1);
        let (unit, got) = (self.burn.name(), shares.first().map_or(right, |share| share.1));
        Ok((alike && got != right)
            .then(|| format!("every multiprocessor computes {unit} wrongly: {got:08x}, not {right:08x}")))
    }

    /// The same work on every GPU of a fleet: what it was, and the digests with how many multiprocessors gave them,
    /// `own burn 9f… sm_90, bf16-mma x 512, 64 rounds of 7210: 9f3a12bc*132`.
    fn golden(&self, rounds: u32) -> Result<String, Trouble> {
        self.start(SEED, rounds)?;
        let mut counts = std::collections::BTreeMap::<u32, usize>::new();
        for (_, digest, _) in self.shares()? {
            *counts.entry(digest).or_default() += 1;
        }
        let code = self.gpu.identity("burn")?;
        let (unit, threads) = (self.burn.name(), self.shape.threads);
        let counts: Vec<String> = counts.iter().map(|(digest, count)| format!("{digest:08x}*{count}")).collect();
        Ok(format!("{code}, {unit} x {threads}, {rounds} rounds of {SEED:x}: {}", counts.join(" ")))
    }

    /// Rounds that take at least `target` milliseconds, a power of two.
    fn rounds(&self, target: f64) -> Result<u32, Trouble> {
        let mut rounds = 1;
        loop {
            let ms = self.gpu.timed(&mut || self.start(1, rounds))?;
            if ms >= target || rounds >= 1 << 20 {
                return Ok(rounds);
            }
            rounds *= if ms * 8.0 < target { 4 } else { 2 };
        }
    }

    fn operations(&self, rounds: u32) -> f64 {
        f64::from(self.gpu.sms) * f64::from(self.shape.threads / 32) * f64::from(rounds) * self.burn.per_warp_round()
    }
}

/// `0:9f3a12bc:51234 1:…`: multiprocessor, digest and cycles of each block.
fn row(shares: &[(u32, u32, u64)]) -> String {
    shares.iter().map(|(sm, digest, cycles)| format!("{sm}:{digest:x}:{cycles}")).collect::<Vec<_>>().join(" ")
}

/// `sm-sdc`: every unit, several seeds, each block alone on its multiprocessor.
pub(super) fn agree(run: &mut Run<'_>) -> Result<(), Trouble> {
    let seeds = run.pick([2, 4, 16, 64]);
    let target = run.pick([0.5, 2.0, 5.0, 10.0]);
    let mut untrue = Vec::new();
    for (part, burn) in Burn::ALL.into_iter().enumerate() {
        run.progress(part as f64 / 4.0, burn.name());
        let fire = Fire::new(run.gpu, burn)?;
        untrue.extend(fire.untrue()?);
        let golden = fire.golden(run.pick([2, 64, 256, 256]))?;
        run.fact(&format!("golden.{}", burn.name()), golden);
        let rounds = fire.rounds(target)?;
        let mut best = vec![f64::INFINITY; run.gpu.sms as usize];
        for seed in 0..seeds {
            run.progress((part as f64 + f64::from(seed) / f64::from(seeds)) / 4.0, burn.name());
            for attempt in 1.. {
                fire.start(seed, rounds)?;
                let shares = fire.shares()?;
                let complete = shares.windows(2).all(|pair| pair[0].0 != pair[1].0);
                if complete || attempt == TRIES {
                    run.fact(&format!("sm.{}.{rounds}.{seed}", burn.name()), row(&shares));
                    for (slot, share) in best.iter_mut().zip(&shares) {
                        *slot = slot.min(share.2 as f64);
                    }
                    break;
                }
            }
        }
        run.series(Metric::cost(cycles_of(burn), Unit::Count), best, 0);
    }
    if untrue.is_empty() {
        return Ok(());
    }
    Err(Trouble::Failed(format!("GPU {}: {}", run.gpu.index, untrue.join("; "))))
}

const fn cycles_of(burn: Burn) -> &'static str {
    match burn {
        Burn::Mma => "bf16-mma-cycles",
        Burn::Ffma => "ffma-cycles",
        Burn::Dfma => "dfma-cycles",
        Burn::Imad => "imad-cycles",
    }
}

/// `gpu-burn`: each unit under load, and the bits of every launch held against each other.
pub(super) fn load(run: &mut Run<'_>) -> Result<(), Trouble> {
    let time = Duration::from_secs_f64(run.pick([0.4, 10.0, 60.0, 240.0]));
    for (part, burn) in Burn::ALL.into_iter().enumerate() {
        run.progress(part as f64 / 4.0, burn.name());
        let fire = Fire::new(run.gpu, burn)?;
        let rounds = fire.rounds(run.pick([2.0, 10.0, 50.0, 100.0]))?;
        let (begun, share) = (Instant::now(), if burn == Burn::Mma { 0.7 } else { 0.1 });
        let mut values = Vec::new();
        let mut rows = 0;
        while values.len() < run.values() || begun.elapsed() < time.mul_f64(share) {
            run.progress((part as f64 + begun.elapsed().as_secs_f64().min(1.0) / 2.0) / 4.0, burn.name());
            let seed = values.len() as u32 % 4;
            let ms = run.gpu.timed(&mut || fire.start(seed, rounds))?;
            values.push(fire.operations(rounds) / (ms * 1e-3));
            let shares = fire.shares()?;
            let unlike = shares.iter().any(|share| share.1 != shares[0].1);
            if (unlike && rows < ROWS) || values.len() == 1 {
                run.fact(&format!("sm.{}.{rounds}.{seed}", burn.name()), row(&shares));
                rows += 1;
            }
        }
        values.truncate(muster_wire::limits::SERIES_VALUES);
        run.series(Metric::rate(burn.name(), Unit::FlopPerSec), values, 0);
    }
    Ok(())
}
