//! Twins of `burn.cu`: the digest of one block.
//!
//! Equal to any device for multiply-adds, which IEEE 754 defines. Tensor cores round sums in their own ways: there the
//! twin holds for the simulator, and real devices are compared with each other.

use super::{fold, mix, pattern};

/// Which unit is kept busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burn {
    /// Tensor cores, bf16, by mma.sync.
    Mma,
    /// Tensor cores of sm_90a at full rate, bf16, by wgmma.
    Wgmma,
    /// Multiply-add of f32.
    Ffma,
    /// Multiply-add of f64.
    Dfma,
    /// Multiply-add of u32.
    Imad,
}

impl Burn {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mma, Self::Wgmma, Self::Ffma, Self::Dfma, Self::Imad];

    /// Name of the kernel.
    #[must_use]
    pub const fn kernel(self) -> &'static str {
        match self {
            Self::Mma => "burn_mma",
            Self::Wgmma => "burn_wgmma",
            Self::Ffma => "burn_ffma",
            Self::Dfma => "burn_dfma",
            Self::Imad => "burn_imad",
        }
    }

    /// Module that has the kernel.
    #[must_use]
    pub const fn module(self) -> &'static str {
        if matches!(self, Self::Wgmma) { "wgmma" } else { "burn" }
    }

    /// Word for metrics and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mma => "bf16-mma",
            Self::Wgmma => "bf16-wgmma",
            Self::Ffma => "ffma",
            Self::Dfma => "dfma",
            Self::Imad => "imad",
        }
    }

    /// Whether IEEE 754 or plain arithmetic says what comes out: tensor cores round sums as they like.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Mma | Self::Wgmma)
    }

    /// Static shared memory of the kernel at most, and what the driver keeps of each block, bytes.
    #[must_use]
    pub const fn shared(self) -> u32 {
        if matches!(self, Self::Wgmma) { 44 << 10 } else { 4 << 10 }
    }

    /// Most threads of a block.
    #[must_use]
    pub const fn threads(self) -> u32 {
        if matches!(self, Self::Wgmma) { 256 } else { 512 }
    }

    /// Operations of one warp in one round; a multiply-add counts as two.
    #[must_use]
    pub const fn per_warp_round(self) -> f64 {
        match self {
            Self::Mma => (CHAINS * DEPTH * 2 * 16 * 8 * 16) as f64,
            Self::Wgmma => (4 * STEPS * 2 * 16 * COLUMNS * 16) as f64,
            _ => (CHAINS * DEPTH * 2 * 32) as f64,
        }
    }
}

const CHAINS: usize = 8;
const DEPTH: usize = 8;
/// Products of 16 elements along a row of 64, and columns of each.
const STEPS: usize = 4;
const COLUMNS: usize = 256;

/// Digest of a block of `threads` (a multiple of 32) after `rounds` rounds.
#[must_use]
pub fn digest(burn: Burn, seed: u32, rounds: u32, threads: u32) -> u32 {
    let mut all = 0;
    let sums = if burn == Burn::Wgmma { wgmma(seed, rounds) } else { Vec::new() };
    for warp in 0..threads / 32 {
        let first = warp * 32;
        let mut lanes: [u32; 32] = match burn {
            Burn::Mma => mma_warp(seed, rounds, first),
            Burn::Wgmma => std::array::from_fn(|lane| wgmma_lane(&sums, seed, first as usize + lane)),
            _ => std::array::from_fn(|lane| chains(burn, seed, rounds, first + lane as u32)),
        };
        for by in [16, 8, 4, 2, 1] {
            lanes = std::array::from_fn(|lane| lanes[lane].wrapping_add(mix(lanes[lane ^ by])));
        }
        all = fold(all, lanes[0]);
    }
    all
}

fn chains(burn: Burn, seed: u32, rounds: u32, thread: u32) -> u32 {
    let word = thread * 64;
    let (m, a) = (pattern(seed, u64::from(word)), pattern(seed, u64::from(word) + 1));
    let mut digest = seed;
    for round in 0..rounds {
        for chain in 0..CHAINS as u32 {
            let start = mix(word.wrapping_add(chain + 2).wrapping_add(round.wrapping_mul(8)));
            digest = fold(digest, run(burn, start, m, a));
        }
    }
    digest
}

/// One chain of eight multiply-adds, as the bits that are folded.
fn run(burn: Burn, start: u32, m: u32, a: u32) -> u32 {
    let single = |word: u32| f32::from_bits((word & 0x007f_ffff) | 0x3f80_0000);
    let double = |word: u32| {
        f64::from_bits(u64::from((word & 0x000f_ffff) | 0x3ff0_0000) << 32 | u64::from(word.wrapping_mul(0x9e37_79b1)))
    };
    match burn {
        Burn::Ffma => (0..DEPTH).fold(single(start), |x, _| x.mul_add(single(m), single(a))).to_bits(),
        Burn::Dfma => {
            let bits = (0..DEPTH).fold(double(start), |x, _| x.mul_add(double(m), double(a))).to_bits();
            bits as u32 ^ (bits >> 32) as u32
        }
        _ => (0..DEPTH).fold(start, |x, _| x.wrapping_mul(m).wrapping_add(a)),
    }
}

/// The 64 x 256 sums of each round, row by row. Both warpgroups of a block make the same.
fn wgmma(seed: u32, rounds: u32) -> Vec<Vec<f32>> {
    let element = |seed: u32, row: usize, k: usize| {
        // Where 64 elements of a row lie is turned around by the row.
        let byte = row * 128 + ((2 * k) ^ ((row % 8) << 4));
        let word = (pattern(seed, byte as u64 / 4) & 0x80ff_80ff) | 0x3f00_3f00;
        f64::from(f32::from_bits((word >> (byte % 4 * 8)) << 16))
    };
    let row = |seed: u32, row: usize| (0..16 * STEPS).map(|k| element(seed, row, k)).collect::<Vec<f64>>();
    let left: Vec<Vec<f64>> = (0..64).map(|r| row(seed, r)).collect();
    let right: Vec<Vec<f64>> = (0..COLUMNS).map(|r| row(!seed, r)).collect();
    let sum = |round: usize, row: usize, column: usize| {
        (0..4 * STEPS).fold(1.0_f32, |sum, step| {
            let (x, y) = ((step + round) % STEPS * 16, step % STEPS * 16);
            let products: f64 = left[row][x..x + 16].iter().zip(&right[column][y..y + 16]).map(|(x, y)| x * y).sum();
            (products + f64::from(sum)) as f32
        })
    };
    let all = |round: usize| (0..64 * COLUMNS).map(|at| sum(round, at / COLUMNS, at % COLUMNS)).collect();
    (0..rounds as usize).map(all).collect()
}

/// What one thread folds of them.
fn wgmma_lane(rounds: &[Vec<f32>], seed: u32, thread: usize) -> u32 {
    let (row, column) = (thread % 128 / 32 * 16 + thread % 32 / 4, thread % 4 * 2);
    let mut digest = seed ^ thread as u32;
    for sums in rounds {
        for register in 0..COLUMNS / 2 {
            let (row, column) = (row + register % 4 / 2 * 8, column + register / 4 * 8 + register % 2);
            digest = fold(digest, sums[row * COLUMNS + column].to_bits());
        }
    }
    digest
}

/// A fragment: registers of two bf16, for all lanes.
type Fragment<const N: usize> = [[u32; N]; 32];

fn mma_warp(seed: u32, rounds: u32, first: u32) -> [u32; 32] {
    let operand = |lane: usize, word: u32| {
        (pattern(seed, u64::from((first + lane as u32) * 64 + word)) & 0x80ff_80ff) | 0x3f00_3f00
    };
    let mut a: [Fragment<4>; DEPTH / 2] =
        std::array::from_fn(|i| std::array::from_fn(|lane| std::array::from_fn(|j| operand(lane, (4 * i + j) as u32))));
    let mut b: [Fragment<2>; 2] = std::array::from_fn(|i| {
        std::array::from_fn(|lane| std::array::from_fn(|j| operand(lane, (32 + 2 * i + j) as u32)))
    });
    let mut digests = [seed; 32];
    for round in 0..rounds {
        for chain in 0..CHAINS {
            // Chains are independent of each other, so their order does not matter; the digest's does.
            let mut c = [[(chain + 1) as f32; 4]; 32];
            for i in 0..DEPTH {
                c = mma(&a[(i + chain) % (DEPTH / 2)], &b[i % 2], &c);
            }
            for (digest, c) in digests.iter_mut().zip(&c) {
                *digest = c.iter().fold(*digest, |digest, value| fold(digest, value.to_bits()));
            }
        }
        let turn = pattern(seed, u64::from(round)) & 0x007f_007f;
        for lane in 0..32 {
            (0..DEPTH / 2).for_each(|i| a[i][lane][i] ^= turn);
            b[0][lane][0] ^= turn;
            b[1][lane][1] ^= turn >> 1 & 0x003f_003f;
        }
    }
    digests
}

/// `a * b + c` of 16x16 and 16x8 bf16: exact products, summed in f64 along k, rounded once.
fn mma(a: &Fragment<4>, b: &Fragment<2>, c: &[[f32; 4]; 32]) -> [[f32; 4]; 32] {
    let value = |word: u32, k: usize| f64::from(f32::from_bits((word >> (16 * (k % 2))) << 16));
    std::array::from_fn(|lane| {
        std::array::from_fn(|e| {
            let (row, column) = (lane / 4 + 8 * (e / 2), lane % 4 * 2 + e % 2);
            let product = |k: usize| {
                let pair = k % 8 / 2;
                let left = a[row % 8 * 4 + pair][row / 8 + 2 * (k / 8)];
                value(left, k) * value(b[column * 4 + pair][k / 8], k)
            };
            ((0..16).map(product).sum::<f64>() + f64::from(c[lane][e])) as f32
        })
    })
}
