//! Self-attention, by tiles on tensor cores or token by token in f32.

use muster_tape::{Heads, Op};

use super::launch::{Launch, THREADS, Word, at, count, number};
use super::lower::Lowered;
use super::{How, Precision, Unfit};

/// Queries or keys of a tile, and the most elements of a head.
const SIDE: usize = 64;
/// Threads of a tile.
const TILE: u32 = 128;

/// Heads of all sequences.
const fn lines(heads: &Heads) -> usize {
    heads.batch * heads.heads
}

fn shape(heads: &Heads) -> Result<[Word; 5], Unfit> {
    let Heads { seq, heads: number, width, causal, .. } = *heads;
    if width > SIDE || !width.is_multiple_of(4) {
        return Err(Unfit(format!("heads of {width} elements: the kernels take up to 64, four by four")));
    }
    let scale = 1.0 / (width as f64).sqrt();
    Ok([count(seq)?, count(number)?, count(width)?, Word::U32(u32::from(causal)), Word::F32(scale as f32)])
}

/// A block has a tile of one head.
fn tiles(kernel: &'static str, heads: &Heads, from: Vec<Word>) -> Result<Launch, Unfit> {
    let args = from.into_iter().chain(shape(heads)?).collect();
    let grid = (number(heads.seq.div_ceil(SIDE))?, number(lines(heads))?);
    Ok(Launch { kernel, grid, threads: TILE, shared: 0, args })
}

/// A warp has a token of one head.
fn tokens(kernel: &'static str, heads: &Heads, from: Vec<Word>) -> Result<Launch, Unfit> {
    let all = lines(heads) * heads.seq;
    let args = from.into_iter().chain(shape(heads)?).chain([count(all)?]).collect();
    Launch::blocks(kernel, (all * 32).div_ceil(THREADS as usize), args)
}

pub(super) fn forward(op: &Op, heads: Heads, how: How) -> Lowered {
    let from = vec![at(op.writes[0]), at(op.writes[1]), at(op.reads[0])];
    let launch = match how.precision {
        Precision::Bf16 => tiles("attention", &heads, from),
        Precision::Fp32 => tokens("attention_f32", &heads, from),
    };
    Ok((vec![launch?], 0))
}

pub(super) fn backward(op: &Op, heads: Heads, how: How) -> Lowered {
    let [qkv, out, log, gradient] = [0, 1, 2, 3].map(|which| at(op.reads[which]));
    let (to, inner, all) = (at(op.writes[0]), Word::Space(0), lines(&heads) * heads.seq);
    let sizes = [count(heads.seq)?, count(heads.heads)?, count(heads.width)?, count(all)?];
    let args = [inner, out, gradient].into_iter().chain(sizes).collect();
    let first = Launch::blocks("attention_inner", (all * 32).div_ceil(THREADS as usize), args)?;
    let from = || vec![to, qkv, log, inner, gradient];
    let [queries, keys] = match how.precision {
        Precision::Bf16 => ["attention_queries", "attention_keys"].map(|kernel| tiles(kernel, &heads, from())),
        Precision::Fp32 => ["attention_queries_f32", "attention_keys_f32"].map(|kernel| tokens(kernel, &heads, from())),
    };
    Ok((vec![first, queries?, keys?], all * size_of::<f32>()))
}
