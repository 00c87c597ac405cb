//! How long one large product takes that no GPU does for itself: unsharded, sharded along k with a sum over all GPUs, and
//! sharded by rows that everybody gets then.
//!
//! Shapes are SuperBench's `sharding-matmul`, 12288 x 12288 by 12288 x 16000. Timed by events on the GPU from when all begin until
//! all have everything; operands are random with full mantissa and the same on every GPU, so that all have one right answer.

use muster_tape::Span;

use super::answers::{self, Expected};
use super::node::{Node, meet, wait};
use super::together::{Joint, Way};
use crate::driver::{Gpu, Trouble};
use crate::train::{Factors, Precision, Products, lacking};

/// Rows, inner dimension and columns, in the smoke profile and elsewhere.
const SMALL: (usize, usize, usize) = (24, 48, 32);
const LARGE: (usize, usize, usize) = (12_288, 12_288, 16_000);
/// Seeds of the operands.
const A: u32 = 0x5a;
const B: u32 = 0x5b;

/// How the product is sharded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Each GPU does all of it.
    Whole,
    /// Each does its part of k; everybody gets the sum.
    Summed,
    /// Each does its rows; everybody gets all of them.
    Gathered,
}

const MODES: [(Mode, &str); 3] =
    [(Mode::Whole, "no-sharding"), (Mode::Summed, "all-reduce"), (Mode::Gathered, "all-gather")];

/// What one GPU does, and where everything lies in elements.
#[derive(Clone, Copy)]
struct Shard {
    mode: Mode,
    precision: Precision,
    /// GPUs.
    count: usize,
    /// Of this GPU's product.
    rows: usize,
    depth: usize,
    columns: usize,
}

impl Shard {
    fn new(mode: Mode, precision: Precision, count: usize, small: bool) -> Self {
        let (rows, depth, columns) = if small { SMALL } else { LARGE };
        let (rows, depth) = match mode {
            Mode::Whole => (rows, depth),
            Mode::Summed => (rows, depth / count),
            Mode::Gathered => (rows / count, depth),
        };
        Self { mode, precision, count, rows, depth, columns }
    }

    /// Elements of the product, which begins after both operands.
    const fn result(&self) -> usize {
        self.rows * self.columns
    }

    /// Floats that come together: for a sum of all of it up to 4 more for each GPU, to where that divides evenly.
    const fn joined(&self) -> usize {
        match self.mode {
            Mode::Whole => 0,
            Mode::Summed => self.result().next_multiple_of(4 * self.count),
            Mode::Gathered => self.result() * self.count,
        }
    }

    /// Where the second operand, the product of GPU number `rank`, and what comes together begin.
    const fn places(&self, rank: usize) -> (usize, usize, usize) {
        let second = (self.rows * self.depth).next_multiple_of(4);
        let end = (second + self.depth * self.columns).next_multiple_of(4);
        match self.mode {
            Mode::Whole => (second, end, end),
            Mode::Summed => (second, end, end + self.joined()),
            Mode::Gathered => (second, end + rank * self.result(), end),
        }
    }

    /// Elements of memory.
    const fn elements(&self) -> usize {
        let (_, product, joined) = self.places(0);
        match self.mode {
            Mode::Whole => product + self.result(),
            Mode::Summed | Mode::Gathered => joined + self.joined(),
        }
    }

    fn factors(&self, rank: usize) -> Factors {
        let (Self { rows: m, depth: k, columns: n, .. }, (second, product, _)) = (*self, self.places(rank));
        let span = |offset, len| Span { offset, len };
        Factors { m, n, k, a: span(0, m * k), b: span(second, k * n), c: span(product, m * n) }
    }

    /// An element of a GPU's product, so many `times`, and the sum of its products' sizes.
    fn element(&self, row: u64, column: u64, times: f64) -> (f64, f64) {
        let (row, depth, columns) = (row % self.rows as u64, self.depth as u64, self.columns as u64);
        let term = |k: u64| {
            let [a, b] = [(A, row * depth + k), (B, k * columns + column)]
                .map(|(seed, at)| answers::element(self.precision, seed, at));
            a * b
        };
        let (sum, size) = (0..depth).map(term).fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
        (times * sum, times * size)
    }
}

/// One mode, ready to be started.
struct Sharded<'a> {
    shard: Shard,
    products: Vec<Products>,
    joint: Option<Joint<'a>>,
}

pub(super) fn run(node: &mut Node<'_>) -> Result<(), Trouble> {
    let way = Way::find(node)?;
    let precisions = [Precision::Bf16, Precision::Fp32];
    let parts = MODES.len() * precisions.len();
    let work = precisions.into_iter().flat_map(|precision| MODES.map(|mode| (precision, mode)));
    let mut missing = Vec::new();
    for (part, (precision, (mode, name))) in work.enumerate() {
        let name = format!("{}-{name}", precision.name());
        let shard = Shard::new(mode, precision, node.gpus.len(), node.profile == muster_wire::Profile::Smoke);
        if let Some(why) = lacks(node.gpus, &shard)? {
            node.of(0).fact(&format!("sharding.{name}"), format!("not measured: {why}"));
            missing.push(format!("{name} {why}"));
            continue;
        }
        let sharded = Sharded::new(node.gpus, &way, shard)?;
        sharded.measure(node, (&way, &name), (part, parts)).map_err(|trouble| trouble.about(&name))?;
    }
    if missing.len() == parts { Err(Trouble::Absent(missing.join("; "))) } else { Ok(()) }
}

/// Why there is no room for a mode on one of the GPUs.
fn lacks(gpus: &[Gpu], shard: &Shard) -> Result<Option<String>, Trouble> {
    for gpu in gpus {
        let needed = Products::needs(gpu, shard.elements(), &[shard.factors(0)], shard.precision)?;
        if let Some(why) = lacking(needed, gpu)? {
            return Ok(Some(format!("{why} on GPU {}", gpu.index)));
        }
    }
    Ok(None)
}

impl<'a> Sharded<'a> {
    fn new(gpus: &[Gpu], way: &'a Way, shard: Shard) -> Result<Self, Trouble> {
        let one = |(rank, gpu): (usize, &Gpu)| {
            let products = Products::new(gpu, shard.elements(), &[shard.factors(rank)], shard.precision)?;
            let (second, ..) = shard.places(rank);
            let Factors { a, b, .. } = shard.factors(rank);
            answers::operand(gpu, (products.at(0), a.len.next_multiple_of(2)), A)?;
            answers::operand(gpu, (products.at(second), b.len.next_multiple_of(2)), B)?;
            Ok(products)
        };
        let products = gpus.iter().enumerate().map(one).collect::<Result<Vec<Products>, Trouble>>()?;
        wait(gpus)?;
        let places = |rank: usize| {
            let (_, product, joined) = shard.places(rank);
            (products[rank].at(product), products[rank].at(joined))
        };
        let ends: Vec<(u64, u64)> = (0..gpus.len()).map(places).collect();
        let results: Vec<u64> = ends.iter().map(|(_, joined)| *joined).collect();
        let joint = match shard.mode {
            Mode::Whole => None,
            Mode::Summed => Some(Joint::sum(way, gpus, ends, shard.joined() * 4)?),
            Mode::Gathered => Some(Joint::gather(way, gpus, &results, shard.result() * 4)?),
        };
        Ok(Self { shard, products, joint })
    }

    /// Puts it on the streams of all GPUs.
    fn start(&self, gpus: &[Gpu]) -> Result<(), Trouble> {
        gpus.iter().zip(&self.products).try_for_each(|(gpu, products)| products.start(gpu))?;
        self.joint.as_ref().map_or(Ok(()), |joint| joint.start(gpus))
    }

    fn measure(&self, node: &mut Node<'_>, (way, name): (&Way, &str), part: (usize, usize)) -> Result<(), Trouble> {
        let gpus = node.gpus;
        // By GPU, milliseconds of one in each batch.
        let mut each: Vec<Vec<f64>> = vec![Vec::new(); gpus.len()];
        let mut batch = |count: u32| {
            meet(gpus)?;
            gpus.iter().try_for_each(Gpu::start_clock)?;
            (0..count).try_for_each(|_| self.start(gpus))?;
            gpus.iter().try_for_each(Gpu::stop_clock)?;
            wait(gpus)?;
            way.settled()?;
            let mut slowest = 0.0_f64;
            for (gpu, times) in gpus.iter().zip(&mut each) {
                let ms = gpu.clocked()?;
                times.push(ms / f64::from(count));
                slowest = slowest.max(ms);
            }
            Ok(slowest)
        };
        let (times, warmup) = node.all().times(&format!("sharded product, {name}"), part, &mut batch)?;
        let taken = times.len();
        self.check(node, name)?;
        if self.shard.mode != Mode::Whole {
            let values = times.into_iter().map(|ms| ms * 1e6).collect();
            return node.all().tell((name.to_owned(), way.engine(gpus[0].engine)), values, warmup);
        }
        each.into_iter().enumerate().try_for_each(|(index, times)| {
            let values = times[times.len() - taken..].iter().map(|ms| ms * 1e6).collect();
            node.of(index).series(name, values, warmup)
        })
    }

    /// Holds what the GPUs have against each other, and some of it against what is right.
    fn check(&self, node: &mut Node<'_>, name: &str) -> Result<(), Trouble> {
        let shard = &self.shard;
        // Who multiplied wrongly comes before those who took it over.
        let own = |rank: usize| self.products[rank].at(shard.places(rank).1);
        let of_one = |row, column| shard.element(row, column, 1.0);
        let part = (shard.result(), shard.rows);
        let mut found = self.wrong(node.gpus, (&format!("its part of {name}"), &own), part, &of_one)?;
        if found.is_empty() && shard.mode != Mode::Whole {
            let joined = |rank: usize| self.products[rank].at(shard.places(rank).2);
            let (all, times) = match shard.mode {
                // Without what follows a sum to where it divides evenly.
                Mode::Summed | Mode::Whole => (part, shard.count as f64),
                Mode::Gathered => ((shard.joined(), shard.rows * shard.count), 1.0),
            };
            let of_all = |row, column| shard.element(row, column, times);
            let what = format!("{name}, what came together");
            found = self.wrong(node.gpus, (&what, &joined), all, &of_all)?;
        }
        found.into_iter().for_each(|what| node.blame(what));
        Ok(())
    }

    /// What is wrong with so many floats, in so many rows, at the place `at` of each GPU.
    fn wrong(
        &self,
        gpus: &[Gpu],
        (what, at): (&str, &dyn Fn(usize) -> u64),
        (floats, rows): (usize, usize),
        element: &dyn Fn(u64, u64) -> (f64, f64),
    ) -> Result<Vec<String>, Trouble> {
        let digest = |(rank, gpu): (usize, &Gpu)| answers::fold(gpu, (at(rank), floats * 4));
        let digests = gpus.iter().enumerate().map(digest).collect::<Result<Vec<u32>, Trouble>>()?;
        let mut found = answers::odd(what, &digests);
        let tolerance = if self.shard.precision == Precision::Bf16 { 1e-3 } else { 1e-5 };
        for (rank, gpu) in gpus.iter().enumerate() {
            let (rows, columns) = (rows as u64, self.shard.columns as u64);
            found.extend(answers::wrong(gpu, what, &Expected { at: at(rank), rows, columns, element, tolerance })?);
        }
        Ok(found)
    }
}
