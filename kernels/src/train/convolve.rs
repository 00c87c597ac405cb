//! Convolutions that gather their windows. All GPUs do them with products of warps: packing windows for warpgroups takes more bytes and
//! instructions than warpgroups save.

use muster_tape::{Convolution, Gemm, Op, Span, Window};

use super::launch::{Launch, THREADS, Word, at, count, number};
use super::lower::Lowered;
use super::product::{ALIGN, Cut, FP32, MMA, PACKED, Pack, total};
use super::{How, Precision, Unfit};

/// Numbers that are rounded together.
const ROUNDED: usize = 8;
/// Dynamic shared memory of products of warps.
const SHARED: u32 = 64 << 10;

/// A product whose left operand is gathered from images.
struct Gathered {
    /// The product as if windows were written.
    gemm: Gemm,
    window: Window,
    cut: Cut,
}

impl Gathered {
    /// How images are found: edge, channels, size, stride, padding, edge of the result.
    fn geometry(&self) -> Result<[Word; 6], Unfit> {
        let Window { edge, channels, size, stride, pad, .. } = self.window;
        // Kernels count elements of images.
        count(self.window.pixels())?;
        let words = [edge, channels, size, stride, pad, self.window.out_edge()].map(count);
        let [a, b, c, d, e, f] = words;
        Ok([a?, b?, c?, d?, e?, f?])
    }

    /// The product, with `words` of what it reads between its ends and its geometry, and the sum of its shares.
    fn launches(
        &self,
        kernel: (&'static str, u32),
        ends: (Word, Option<Word>),
        words: &Words,
        space: usize,
    ) -> Lowered {
        let (down, across, slices, per) = self.cut.of(self.gemm);
        let shares = slices.div_ceil(per);
        let whole = shares == 1;
        let parts = Word::Space(space);
        let null = || Word::Null;
        let bias = words.biased.then(|| if whole { ends.1.unwrap_or_else(null) } else { Word::Null });
        let cut = [count(per * words.each)?, count(down)?];
        let args = [if whole { ends.0 } else { parts }].into_iter().chain(bias).chain(words.before.iter().copied());
        let args = args.chain(cut).chain(words.after.iter().copied()).chain(self.geometry()?).collect();
        let grid = (number(across)?, number(down * shares)?);
        let product = Launch { kernel: kernel.0, grid, threads: THREADS, shared: kernel.1, args };
        if whole {
            return Ok((vec![product], space));
        }
        let Gemm { m, n, .. } = self.gemm;
        let ends = [ends.0, Word::Null, ends.1.unwrap_or_else(null), parts];
        let sum = total(self.gemm, ends, (shares, Word::U32(0)))?;
        Ok((vec![product, sum], space + shares * m * n * size_of::<f32>()))
    }
}

/// Arguments of one of the kernels.
struct Words {
    /// Whether it takes a bias.
    biased: bool,
    before: Vec<Word>,
    /// As many units are a slice to it.
    each: usize,
    after: Vec<Word>,
}

/// Rounds a span to a place in the memory beside the tape, and what follows it there.
fn rounded(span: Span, place: usize) -> (Launch, usize) {
    let eights = span.len / ROUNDED;
    let args = vec![Word::Space(place), at(span), Word::U64(eights as u64)];
    (Launch::over("round_bf16", eights, args), (place + span.len * size_of::<u16>()).next_multiple_of(ALIGN))
}

const fn cut(how: How) -> Cut {
    match how.precision {
        Precision::Bf16 => MMA,
        Precision::Fp32 => FP32,
    }
}

pub(super) fn forward(op: &Op, of: Convolution, how: How) -> Lowered {
    let gathered = Gathered { gemm: of.product(), window: of.window, cut: cut(how) };
    over_images(op, &gathered, false, how)
}

/// The gradient of images is what a convolution with the filter turned round makes of that of the result.
pub(super) fn back(op: &Op, of: Convolution, how: How) -> Lowered {
    let Window { batch, edge, channels, size, stride, pad } = of.window;
    if stride != 1 || pad >= size {
        return Err(Unfit(format!("no gradient of {:?} is gathered", of.window)));
    }
    let window = Window { edge: of.window.out_edge(), channels: of.outputs, pad: size - 1 - pad, ..of.window };
    let gemm = Gemm { m: batch * edge * edge, n: channels, k: size * size * of.outputs, ..of.product() };
    over_images(op, &Gathered { gemm, window, cut: cut(how) }, true, how)
}

fn over_images(op: &Op, gathered: &Gathered, turned: bool, how: How) -> Lowered {
    let Gemm { m, n, k, .. } = gathered.gemm;
    let (images, filter) = (op.reads[0], at(op.reads[1]));
    let ends = (at(op.writes[0]), op.reads.get(2).map(|bias| at(*bias)));
    let sizes = [count(m)?, count(n)?];
    if how.precision == Precision::Fp32 {
        let before = [at(images), filter].into_iter().chain(sizes).chain([Word::U32(u32::from(turned))]).collect();
        let words = Words { biased: true, before, each: gathered.cut.slice, after: Vec::new() };
        return gathered.launches(("convolve_plain", 0), ends, &words, 0);
    }
    let (round, place) = rounded(images, 0);
    let part = if turned { gathered.window.channels } else { k };
    let rows = (n, gathered.cut.tile.1);
    let (pack, space) = Pack { from: filter, rows, deep: k, part, across: !turned, blocked: false }.to(place)?;
    let pitch = count(k.next_multiple_of(PACKED) * size_of::<u16>())?;
    let before = [Word::Space(0), Word::Space(place)].into_iter().chain(sizes).chain([pitch]).collect();
    let words = Words { biased: true, before, each: 1, after: Vec::new() };
    let (launches, space) = gathered.launches(("convolve_bf16", SHARED), ends, &words, space)?;
    Ok(([round, pack].into_iter().chain(launches).collect(), space))
}

pub(super) fn filter(op: &Op, of: Convolution, how: How) -> Lowered {
    let Gemm { m: windows, n, k: elements, .. } = of.product();
    let gemm = Gemm { m: elements, n, k: windows, ..of.product() };
    let gathered = Gathered { gemm, window: of.window, cut: cut(how) };
    let (images, gradient, to) = (op.reads[0], op.reads[1], (at(op.writes[0]), None));
    let (area, out) = (of.window.out_edge() * of.window.out_edge(), of.window.out_edge());
    let after: Vec<Word> = [divisor(area)?, divisor(out)?].concat();
    let sizes = [count(windows)?, count(n)?];
    let words = |ends: [Word; 2], each: usize| {
        let before = ends.into_iter().chain(sizes).collect();
        Words { biased: false, before, each, after: after.clone() }
    };
    if how.precision == Precision::Fp32 {
        let words = words([at(images), at(gradient)], gathered.cut.slice);
        return gathered.launches(("convolve_filter_plain", 0), to, &words, 0);
    }
    let (first, place) = rounded(images, 0);
    let (second, space) = rounded(gradient, place);
    let words = words([Word::Space(0), Word::Space(place)], 1);
    let (launches, space) = gathered.launches(("convolve_filter_bf16", SHARED), to, &words, space)?;
    Ok(([first, second].into_iter().chain(launches).collect(), space))
}

/// Factor and shift that divide every number below 2^31 by `by` (Granlund and Montgomery 1994).
fn divisor(by: usize) -> Result<[Word; 2], Unfit> {
    let by = u64::from(number(by.max(1))?);
    let shift = 31 + by.next_power_of_two().ilog2();
    let factor = (1_u64 << shift).div_ceil(by);
    Ok([Word::U32(factor as u32), Word::U32(shift)])
}
