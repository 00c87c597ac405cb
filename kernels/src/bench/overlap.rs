//! What a GPU loses when it multiplies and copies at the same time: matrix products on one stream, copies on another.

use super::gemm::Product;
use super::pages;
use super::run::Run;
use super::stream::bytes_each;
use crate::driver::{Gpu, Pinned, Trouble};
use crate::twin;

const SEED: u32 = 0x0e1a;
/// Most pieces of work in one value.
const MOST: f64 = 1000.0;

/// The names of what is said about one kind of copy.
struct Names {
    copy: &'static str,
    copy_beside: &'static str,
    product_beside: &'static str,
    overlap: &'static str,
}

const FROM_HOST: Names = Names {
    copy: "host-to-device",
    copy_beside: "host-to-device-beside-gemm",
    product_beside: "gemm-beside-host-to-device",
    overlap: "overlap-host-to-device",
};
const ON_DEVICE: Names = Names {
    copy: "device-to-device",
    copy_beside: "device-to-device-beside-gemm",
    product_beside: "gemm-beside-device-to-device",
    overlap: "overlap-device-to-device",
};

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Trouble> {
    let gpu = run.gpu;
    let (other, product) = (gpu.beside()?, Product::usual(run)?);
    let bytes = bytes_each(run, 2)?.min(256 << 20);
    let mut host = Pinned::new(bytes / 4)?;
    for (index, word) in host.words().iter_mut().enumerate() {
        *word = twin::pattern(SEED, index as u64);
    }
    let (a, b) = (gpu.buffer(bytes)?, gpu.buffer(bytes)?);
    let before = product.digest(run)?;
    run.sample("gemm", (0, 5), &|ms| ms * 1e6, &mut || product.start(gpu))?;
    let pair = Pair { other: &other, product: &product };
    pair.beside(run, (0, &FROM_HOST), &mut || other.put(&a, host.words()))?;
    pages::expect(run, &a, SEED, "what came from the host beside products")?;
    pair.beside(run, (1, &ON_DEVICE), &mut || other.duplicate(&b, &a))?;
    pages::expect(run, &b, SEED, "a copy beside products")?;
    product.same(run, before)
}

/// Products on the stream of the run, and who copies beside them.
struct Pair<'a> {
    other: &'a Gpu,
    product: &'a Product,
}

impl Pair<'_> {
    /// One kind of copy, by itself and beside products that take about as long.
    fn beside(
        &self,
        run: &mut Run<'_>,
        (part, names): (usize, &Names),
        copy: &mut dyn FnMut() -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let (gpu, part) = (run.gpu, 1 + 2 * part);
        let batch = &mut |count: u32| self.other.timed(&mut || (0..count).try_for_each(|_| copy()));
        let (times, warmup) = run.times(names.copy, (part, 5), batch)?;
        let one = times.iter().sum::<f64>() / times.len() as f64;
        run.series(names.copy, times.iter().map(|ms| ms * 1e6).collect(), warmup)?;
        // As many of both as take the same time, and long enough to be timed.
        let product = gpu.timed(&mut || self.product.start(gpu))?;
        let target = run.pick([1.0_f64, 10.0, 20.0, 20.0]).max(one).max(product);
        let often = |one: f64| (target / one.max(1e-6)).round().clamp(1.0, MOST) as u32;
        let (products, copies) = (often(product), often(one));
        let mut multiply = || (0..products).try_for_each(|_| self.product.start(gpu));
        let mut all = || (0..copies).try_for_each(|_| copy());
        let (mut multiplied, mut copied, mut overlap) = (Vec::new(), Vec::new(), Vec::new());
        for taken in 0..run.values() {
            run.progress((part as f64 + 1.0 + taken as f64 / run.values() as f64) / 5.0, names.overlap);
            // Each by itself again, so that a clock that changed meanwhile is no loss.
            let alone = gpu.timed(&mut multiply)?.max(self.other.timed(&mut all)?);
            let (here, there) = gpu.together(self.other, &mut multiply, &mut all)?;
            multiplied.push(here * 1e6 / f64::from(products));
            copied.push(there * 1e6 / f64::from(copies));
            overlap.push(alone / here.max(there));
        }
        run.series(names.product_beside, multiplied, 0)?;
        run.series(names.copy_beside, copied, 0)?;
        run.series(names.overlap, overlap, 0)
    }
}
