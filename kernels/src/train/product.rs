//! Matrix products: operands packed for tensor cores, and sums shared out along k where a result has few tiles.

use muster_tape::{Gemm, Op, Start};

use super::launch::{Launch, THREADS, Word, at, count, number};
use super::lower::Lowered;
use super::{How, Precision, Unfit};

/// Rows and elements along k that a block packs.
pub(super) const PACKED: usize = 64;
/// Bytes at which every part of the memory beside the tape begins.
pub(super) const ALIGN: usize = 1024;

/// How a product is cut up.
pub(super) struct Cut {
    /// Rows and columns of a tile.
    pub(super) tile: (usize, usize),
    /// Elements along k of a slice.
    pub(super) slice: usize,
    /// As many blocks keep a GPU busy.
    blocks: usize,
    /// Fewest slices of a share.
    least: usize,
}

/// Products of warpgroups: one block stays on each multiprocessor.
const WGMMA: Cut = Cut { tile: (128, 256), slice: 64, blocks: 128, least: 8 };
/// Products of warps.
pub(super) const MMA: Cut = Cut { tile: (128, 128), slice: 32, blocks: 256, least: 16 };
/// On the ordinary units.
pub(super) const FP32: Cut = Cut { tile: (128, 128), slice: 8, blocks: 256, least: 64 };

impl Cut {
    /// Tiles down and across, slices, and slices of a share.
    pub(super) fn of(&self, gemm: Gemm) -> (usize, usize, usize, usize) {
        let (down, across) = (gemm.m.div_ceil(self.tile.0), gemm.n.div_ceil(self.tile.1));
        let slices = gemm.k.div_ceil(self.slice);
        let shares = (self.blocks / (down * across)).clamp(1, (slices / self.least).max(1));
        (down, across, slices, slices.div_ceil(shares))
    }
}

pub(super) fn launches(op: &Op, gemm: Gemm, how: How) -> Lowered {
    let cut = match how {
        How { precision: Precision::Fp32, .. } => FP32,
        How { wgmma: true, .. } => WGMMA,
        How { .. } => MMA,
    };
    let (_, _, slices, per) = cut.of(gemm);
    let shares = slices.div_ceil(per);
    let (mut all, mut space) = (Vec::new(), 0);
    let operands = match how.precision {
        Precision::Fp32 => [at(op.reads[0]), at(op.reads[1])],
        Precision::Bf16 => {
            let (packs, bytes) = packs(op, gemm, cut.tile, how.wgmma)?;
            let [a, b] = packs.each_ref().map(|pack| pack.args[0]);
            all.extend(packs);
            space = bytes;
            [a, b]
        }
    };
    let parts = Word::Space(space);
    let act = if gemm.gelu { at(op.writes[1]) } else { Word::Null };
    let bias = if gemm.start == Start::Bias { at(op.reads[2]) } else { Word::Null };
    let add = Word::U32(u32::from(gemm.start == Start::Add));
    if shares == 1 {
        all.push(product(gemm, &cut, how, operands, [at(op.writes[0]), act, bias, add])?);
        return Ok((all, space));
    }
    all.push(product(gemm, &cut, how, operands, [parts, Word::Null, Word::Null, Word::U32(0)])?);
    all.push(total(gemm, [at(op.writes[0]), act, bias, parts], (shares, add))?);
    Ok((all, space + shares * gemm.m * gemm.n * size_of::<f32>()))
}

/// The sum of shares, to `[C, GELU of C, bias]` from the last.
pub(super) fn total(gemm: Gemm, ends: [Word; 4], (shares, add): (usize, Word)) -> Result<Launch, Unfit> {
    let size = [count(gemm.m)?, count(gemm.n)?, count(shares)?, add];
    let args = ends.into_iter().chain(size).collect();
    Ok(Launch::over("product_sum", gemm.m * gemm.n, args))
}

/// An operand to be packed.
pub(super) struct Pack {
    pub(super) from: Word,
    /// Rows, and of a tile.
    pub(super) rows: (usize, usize),
    /// Elements along k.
    pub(super) deep: usize,
    /// As many of them lie together; those of the last part come first.
    pub(super) part: usize,
    /// It lies across k.
    pub(super) across: bool,
    /// As warpgroups want it.
    pub(super) blocked: bool,
}

impl Pack {
    /// To a place in the memory beside the tape, and what follows it there.
    pub(super) fn to(&self, place: usize) -> Result<(Launch, usize), Unfit> {
        let (rows, tile) = self.rows;
        let (whole, pitch) = (rows.next_multiple_of(tile), self.deep.next_multiple_of(PACKED));
        let flags = [Word::U32(u32::from(self.across)), Word::U32(u32::from(self.blocked))];
        let sizes = [count(rows)?, count(self.deep)?, count(self.part)?, count(pitch)?];
        let args = [Word::Space(place), self.from].into_iter().chain(sizes).chain(flags).collect();
        let launch = Launch::blocks("pack_bf16", whole / PACKED * (pitch / PACKED), args)?;
        Ok((launch, (place + whole * pitch * size_of::<u16>()).next_multiple_of(ALIGN)))
    }
}

/// Both operands along k in whole tiles of so many rows, `blocked` as warpgroups want them, and the bytes that they take.
pub(super) fn packs(op: &Op, gemm: Gemm, tile: (usize, usize), blocked: bool) -> Result<([Launch; 2], usize), Unfit> {
    let pack = |which: usize, rows: (usize, usize), across: bool| Pack {
        from: at(op.reads[which]),
        rows,
        deep: gemm.k,
        part: gemm.k,
        across,
        blocked,
    };
    let (a, bytes) = pack(0, (gemm.m, tile.0), gemm.a_transposed).to(0)?;
    let (b, bytes) = pack(1, (gemm.n, tile.1), !gemm.b_transposed).to(bytes)?;
    Ok(([a, b], bytes))
}

/// The product itself, to `[C, GELU of C, bias, whether to add]`.
fn product(gemm: Gemm, cut: &Cut, how: How, [a, b]: [Word; 2], to: [Word; 4]) -> Result<Launch, Unfit> {
    let (down, across, slices, per) = cut.of(gemm);
    let shares = slices.div_ceil(per);
    let [c, act, bias, add] = to;
    let sizes = [count(gemm.m)?, count(gemm.n)?];
    let rest = |more: Vec<Word>| [c, act, bias, a, b].into_iter().chain(sizes).chain(more).chain([add]).collect();
    let grid = (number(across)?, number(down * shares)?);
    let flag = |is: bool| Word::U32(u32::from(is));
    Ok(match how {
        How { precision: Precision::Fp32, .. } => {
            let lie = [flag(gemm.a_transposed), flag(gemm.b_transposed)];
            let more = [count(gemm.k)?].into_iter().chain(lie).chain([count(per * cut.slice)?, count(down)?]).collect();
            Launch { kernel: "product_f32", grid, threads: THREADS, shared: 0, args: rest(more) }
        }
        How { wgmma: true, sms, .. } => {
            // Packed operands end with a whole slice.
            let args = rest(vec![count(slices)?, count(per)?]);
            let blocks = number(down * across * shares)?.min(sms);
            Launch { kernel: "product_wgmma", grid: (blocks, 1), threads: 288, shared: (192 << 10) + 64, args }
        }
        How { .. } => {
            let pitch = gemm.k.next_multiple_of(PACKED) * size_of::<u16>();
            let args = rest(vec![count(pitch)?, count(per)?, count(down)?]);
            Launch { kernel: "product_bf16", grid, threads: THREADS, shared: 64 << 10, args }
        }
    })
}
