//! Whether every multiprocessor computes the same bits in the same time, briefly and under load.
//!
//! What each multiprocessor said is sent as it is; who is wrong is decided where all of it is seen. Only when all are
//! wrong alike it takes the CPU to tell.

use std::time::{Duration, Instant};

use super::run::Run;
use super::stream::wide;
use super::{distance, pages};
use crate::driver::{Arg, Buffer, Function, Gpu, Shape, Trouble};
use crate::twin::{self, Burn};

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
    out: Buffer,
}

impl<'a> Fire<'a> {
    fn new(gpu: &'a Gpu, burn: Burn) -> Result<Self, Trouble> {
        // All that the kernel leaves, so that one block fills a multiprocessor.
        let shared = gpu.shared.saturating_sub(burn.shared());
        let shape = Shape { grid: (gpu.sms, 1), threads: gpu.threads.min(burn.threads()), shared };
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
        if !self.burn.is_exact() {
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
        let module = self.burn.module();
        let code = self.gpu.identity(module, &[module])?;
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

/// The units that this GPU has kernels for.
fn units(gpu: &Gpu) -> Result<Vec<Burn>, Trouble> {
    let mut units = Vec::new();
    for burn in Burn::ALL {
        if gpu.has(burn.kernel())? {
            units.push(burn);
        }
    }
    Ok(units)
}

/// `sm-sdc`: every unit, several seeds, each block alone on its multiprocessor.
pub(super) fn agree(run: &mut Run<'_>) -> Result<(), Trouble> {
    let seeds = run.pick([2, 4, 16, 64]);
    let target = run.pick([0.5, 2.0, 5.0, 10.0]);
    let units = units(run.gpu)?;
    let parts = units.len() as f64;
    let mut untrue = Vec::new();
    for (part, burn) in units.into_iter().enumerate() {
        run.progress(part as f64 / parts, burn.name());
        let fire = Fire::new(run.gpu, burn)?;
        untrue.extend(fire.untrue()?);
        let golden = fire.golden(run.pick([2, 64, 256, 256]))?;
        run.fact(&format!("golden.{}", burn.name()), golden);
        let rounds = fire.rounds(target)?;
        let mut best = vec![f64::INFINITY; run.gpu.sms as usize];
        for seed in 0..seeds {
            run.progress((part as f64 + f64::from(seed) / f64::from(seeds)) / parts, burn.name());
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
        run.series(cycles_of(burn), best, 0)?;
    }
    distance::measure(run)?;
    if untrue.is_empty() {
        return Ok(());
    }
    Err(Trouble::Failed(format!("GPU {}: {}", run.gpu.index, untrue.join("; "))))
}

const fn cycles_of(burn: Burn) -> &'static str {
    match burn {
        Burn::Mma => "bf16-mma-cycles",
        Burn::Wgmma => "bf16-wgmma-cycles",
        Burn::Ffma => "ffma-cycles",
        Burn::Dfma => "dfma-cycles",
        Burn::Imad => "imad-cycles",
    }
}

/// How long each phase of a burn lasts, as a share of it: tensor cores steadily, with copies beside them, in pulses, and
/// the other units.
const STEADY: f64 = 0.4;
const BESIDE: f64 = 0.25;
const PULSED: f64 = 0.15;
const OTHERS: f64 = 0.2;
/// Pattern of the memory that nobody touches meanwhile.
const KEPT: u32 = 0x4e1d;

/// `gpu-burn`: each unit under load, the bits of every launch held against each other, and memory that has to keep what it
/// was given at the beginning.
pub(super) fn load(run: &mut Run<'_>) -> Result<(), Trouble> {
    let gpu = run.gpu;
    let time = Duration::from_secs_f64(run.pick([0.4, 10.0, 60.0, 240.0]));
    let units = units(gpu)?;
    // The fastest way to the tensor cores takes most power.
    let tensor = Fire::new(gpu, if units.contains(&Burn::Wgmma) { Burn::Wgmma } else { Burn::Mma })?;
    let scratch = 64 << 20;
    let bytes = scratch.min(gpu.free()? / 8);
    let (from, to) = (gpu.buffer(bytes)?, gpu.buffer(bytes)?);
    let share = gpu.free()? / 100 * run.pick([10, 50, 90, 90]);
    let kept = gpu.buffer((share >> pages::SHIFT).max(1) << pages::SHIFT)?;
    for (buffer, seed) in [(&kept, KEPT), (&from, !KEPT)] {
        let arguments = [Arg::At(buffer), Arg::U64(buffer.bytes as u64 / 16), Arg::U32(seed)];
        gpu.launch(gpu.function("fill", 0)?, wide(run), &arguments)?;
    }
    let mut burn = Load { run, time, done: 0.0, seed: 0 };
    burn.steady(&tensor, STEADY)?;
    burn.beside(&tensor, (&to, &from))?;
    burn.pulsed(&tensor)?;
    let others: Vec<Burn> = units.into_iter().filter(|unit| *unit != tensor.burn).collect();
    for unit in &others {
        burn.steady(&Fire::new(gpu, *unit)?, OTHERS / others.len() as f64)?;
    }
    run.fact("burn.memory", format!("kept={}", kept.bytes));
    pages::expect(run, &kept, KEPT, "memory that nobody touched during the burn")
}

/// A burn that goes on.
struct Load<'a, 'b> {
    run: &'a mut Run<'b>,
    time: Duration,
    /// Share that is behind it.
    done: f64,
    /// First seed of the next phase: what one phase says of a seed is not to be taken for what another said.
    seed: u32,
}

impl Load<'_, '_> {
    /// Takes values by `one`, for this share of the burn; `one` gets their number and says what they are.
    fn phase(
        &mut self,
        (fire, rounds): (&Fire<'_>, u32),
        (what, share): (&str, f64),
        one: &mut dyn FnMut(u32) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let (begun, time) = (Instant::now(), self.time.mul_f64(share));
        let (mut taken, mut rows) = (0, 0);
        while taken < self.run.values() || begun.elapsed() < time {
            let over = (begun.elapsed().as_secs_f64() / time.as_secs_f64()).min(1.0);
            self.run.progress(self.done + share * over, what);
            let seed = self.seed + taken as u32 % 4;
            one(seed)?;
            taken += 1;
            let shares = fire.shares()?;
            let unlike = shares.iter().any(|share| share.1 != shares[0].1);
            if (unlike && rows < ROWS) || taken == 1 {
                self.run.fact(&format!("sm.{}.{rounds}.{seed}", fire.burn.name()), row(&shares));
                rows += 1;
            }
        }
        self.done += share;
        self.seed += 4;
        Ok(())
    }

    fn tell(&mut self, name: &str, mut values: Vec<f64>) -> Result<(), Trouble> {
        values.truncate(muster_wire::limits::SERIES_VALUES);
        self.run.series(name, values, 0)
    }

    /// One unit without a pause.
    fn steady(&mut self, fire: &Fire<'_>, share: f64) -> Result<(), Trouble> {
        let rounds = fire.rounds(self.run.pick([2.0, 10.0, 50.0, 100.0]))?;
        let mut values = Vec::new();
        self.phase((fire, rounds), (fire.burn.name(), share), &mut |seed| {
            let ms = fire.gpu.timed(&mut || fire.start(seed, rounds))?;
            values.push(fire.operations(rounds) / (ms * 1e-3));
            Ok(())
        })?;
        self.tell(fire.burn.name(), values)
    }

    /// Tensor cores, and memory copied beside them: most power that a GPU can take.
    fn beside(&mut self, fire: &Fire<'_>, (to, from): (&Buffer, &Buffer)) -> Result<(), Trouble> {
        let (gpu, shape) = (fire.gpu, wide(self.run));
        let (other, copy) = (gpu.beside()?, gpu.function("copy", 0)?);
        let arguments = [Arg::At(to), Arg::At(from), Arg::U64(from.bytes as u64 / 16)];
        let target = self.run.pick([2.0, 10.0, 50.0, 100.0]);
        let rounds = fire.rounds(target)?;
        let one = other.timed(&mut || other.launch(copy, shape, &arguments))?;
        let copies = (target / one.max(1e-6)).ceil().clamp(1.0, 10_000.0) as u32;
        let (mut computed, mut copied) = (Vec::new(), Vec::new());
        self.phase((fire, rounds), ("bf16-beside-copy", BESIDE), &mut |seed| {
            let mut copy = || (0..copies).try_for_each(|_| other.launch(copy, shape, &arguments));
            let (here, there) = gpu.together(&other, &mut || fire.start(seed, rounds), &mut copy)?;
            computed.push(fire.operations(rounds) / (here * 1e-3));
            copied.push(2.0 * from.bytes as f64 * f64::from(copies) / (there * 1e-3));
            Ok(())
        })?;
        self.tell("bf16-beside-copy", computed)?;
        self.tell("copy-beside-bf16", copied)
    }

    /// Tensor cores on and off: power supplies and clocks have to follow.
    fn pulsed(&mut self, fire: &Fire<'_>) -> Result<(), Trouble> {
        let (on, off) = (self.run.pick([2.0, 100.0, 100.0, 100.0]), self.run.pick([0, 20, 20, 20]));
        let rounds = fire.rounds(on)?;
        let mut values = Vec::new();
        self.phase((fire, rounds), ("bf16-pulse", PULSED), &mut |seed| {
            let ms = fire.gpu.timed(&mut || fire.start(seed, rounds))?;
            values.push(fire.operations(rounds) / (ms * 1e-3));
            std::thread::sleep(Duration::from_millis(off));
            Ok(())
        })?;
        self.tell("bf16-pulse", values)
    }
}
