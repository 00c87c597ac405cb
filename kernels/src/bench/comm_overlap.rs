//! What computing loses beside a sum over all GPUs, and the sum beside computing.
//!
//! Shapes are those of SuperBench's `computation-communication-overlap`: 30 products of 640 x 1024 by 1024 x 1880, or 30 squares of
//! 640 x 1024, to each sum of 5000 x 1400 floats. Each GPU computes on one stream and sums on another. Times are those of events on
//! these streams, after all of it is done; operands are random with full mantissa, and the sums are whole numbers.

use muster_tape::Span;

use super::answers::{self, Expected};
use super::node::{Node, fill, meet, wait, wide};
use super::pages::SHIFT;
use super::together::{Joint, Way};
use crate::driver::{Arg, Buffer, Gpu, Graph, Trouble};
use crate::parallel::{fill_summands, wrong_sums};
use crate::train::{Factors, Precision, Products};

/// Seeds of the operands and of what is summed.
const A: u32 = 0xc0;
const B: u32 = 0xc1;
const SUM: u32 = 0xc2;
/// Most pieces of work in one value.
const MOST: u32 = 512;

/// What is computed to each sum, and the bytes of that.
#[derive(Clone, Copy)]
struct Sizes {
    stages: usize,
    m: usize,
    k: usize,
    n: usize,
    message: usize,
}

const SMALL: Sizes = Sizes { stages: 2, m: 20, k: 12, n: 28, message: 2 << 10 };
const LARGE: Sizes = Sizes { stages: 30, m: 640, k: 1024, n: 1880, message: 5000 * 1400 * 4 };

impl Sizes {
    /// Elements of all left operands, which is also how many squares there are.
    const fn left(&self) -> usize {
        self.stages * self.m * self.k
    }

    /// Elements of all results.
    const fn result(&self) -> usize {
        self.stages * self.m * self.n
    }

    /// Where the right operand, the results of products and those of squares begin, and elements in all.
    const fn places(&self) -> [usize; 4] {
        let (b, products) = (self.left(), self.left() + self.k * self.n);
        [b, products, products + self.result(), products + self.result() + self.left()]
    }

    fn factors(&self) -> Vec<Factors> {
        let (Self { m, k, n, .. }, [b, products, ..]) = (*self, self.places());
        let span = |offset, len| Span { offset, len };
        let one = |stage: usize| Factors {
            m,
            n,
            k,
            a: span(stage * m * k, m * k),
            b: span(b, k * n),
            c: span(products + stage * m * n, m * n),
        };
        (0..self.stages).map(one).collect()
    }
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Matmul,
    Mul,
}

impl Kind {
    /// As SuperBench calls it.
    const fn name(self) -> &'static str {
        match self {
            Self::Matmul => "matmul",
            Self::Mul => "mul",
        }
    }
}

/// One GPU's work, recorded.
struct Rank {
    products: Products,
    matmul: Graph,
    mul: Graph,
}

/// What all GPUs add up, again and again.
struct Message<'a> {
    ends: Vec<(Buffer, Buffer)>,
    /// Elements of 16 bytes for each GPU, and in how many parts they are checked.
    chunk: usize,
    pages: usize,
    joint: Joint<'a>,
}

struct Team<'a> {
    gpus: &'a [Gpu],
    /// The same GPUs, with the streams of the sums.
    sides: Vec<Gpu>,
    sizes: Sizes,
    ranks: Vec<Rank>,
    message: Message<'a>,
    way: &'a Way,
}

/// Milliseconds by GPU, where they were asked for.
struct Took {
    compute: Vec<f64>,
    sum: Vec<f64>,
}

/// Nanoseconds of one piece of work, value by value.
#[derive(Default)]
struct Values {
    /// By GPU.
    alone: Vec<Vec<f64>>,
    beside: Vec<Vec<f64>>,
    sum_alone: Vec<f64>,
    sum_beside: Vec<f64>,
    step: Vec<f64>,
    overlap: Vec<f64>,
}

pub(super) fn run(node: &mut Node<'_>) -> Result<(), Trouble> {
    let way = Way::find(node)?;
    let sizes = if node.profile == muster_wire::Profile::Smoke { SMALL } else { LARGE };
    let team = Team::new(node.gpus, &way, sizes)?;
    for (part, kind) in [Kind::Matmul, Kind::Mul].into_iter().enumerate() {
        let values = team.measure(node, kind, (part, 2))?;
        team.tell(node, kind, values)?;
        team.check(node, kind)?;
    }
    Ok(())
}

impl Rank {
    fn new(gpu: &Gpu, sizes: Sizes) -> Result<Self, Trouble> {
        let ([b, _, squares, all], Sizes { stages, m, k, n, .. }) = (sizes.places(), sizes);
        let products = Products::new(gpu, all, &sizes.factors(), Precision::Fp32)?;
        answers::operand(gpu, (products.at(0), sizes.left()), A)?;
        answers::operand(gpu, (products.at(b), k * n), B)?;
        let (square, vectors) = (gpu.function("square", 0)?, Arg::U64((m * k / 4) as u64));
        let matmul = gpu.record(&mut || products.start(gpu))?;
        let mul = gpu.record(&mut || {
            (0..stages).try_for_each(|stage| {
                let [to, from] = [squares, 0].map(|begin| Arg::U64(products.at(begin + stage * m * k)));
                gpu.launch(square, wide(gpu), &[to, from, vectors])
            })
        })?;
        gpu.wait()?;
        Ok(Self { products, matmul, mul })
    }

    const fn graph(&self, kind: Kind) -> &Graph {
        match kind {
            Kind::Matmul => &self.matmul,
            Kind::Mul => &self.mul,
        }
    }
}

impl<'a> Message<'a> {
    fn new(gpus: &[Gpu], way: &'a Way, bytes: usize) -> Result<Self, Trouble> {
        let chunk = (bytes / 16).div_ceil(gpus.len());
        let pages = chunk.div_ceil(1 << (SHIFT - 4));
        let chunk = chunk.next_multiple_of(pages);
        let bytes = chunk * gpus.len() * 16;
        let ends = gpus.iter().map(|gpu| Ok((gpu.buffer(bytes)?, gpu.buffer(bytes)?)));
        let ends = ends.collect::<Result<Vec<(Buffer, Buffer)>, Trouble>>()?;
        for (rank, (gpu, (input, _))) in gpus.iter().zip(&ends).enumerate() {
            fill_summands(gpu, (input.address(), bytes), (SUM, rank))?;
        }
        wait(gpus)?;
        let places = ends.iter().map(|(input, output)| (input.address(), output.address())).collect();
        Ok(Self { joint: Joint::sum(way, gpus, places, bytes)?, ends, chunk, pages })
    }

    /// Results in which nothing is left of what came before.
    fn clear(&self, gpus: &[Gpu]) -> Result<(), Trouble> {
        gpus.iter().zip(&self.ends).try_for_each(|(gpu, (_, output))| fill(gpu, output, !SUM))?;
        wait(gpus)
    }

    /// What is wrong with the sums.
    fn wrong(&self, gpus: &[Gpu], way: &Way) -> Result<Option<String>, Trouble> {
        let outputs = gpus.iter().zip(&self.ends).map(|(gpu, (_, output))| (gpu, output.address()));
        let found = wrong_sums(&outputs.collect::<Vec<_>>(), (self.chunk, self.pages), SUM)?;
        Ok(found.map(|wrong| match way {
            Way::Own => wrong.of_own_kernels(),
            Way::Nccl(_) => wrong.of_anybody(),
        }))
    }
}

impl<'a> Team<'a> {
    fn new(gpus: &'a [Gpu], way: &'a Way, sizes: Sizes) -> Result<Self, Trouble> {
        let about = |gpu: &Gpu, trouble: Trouble| trouble.about(&format!("GPU {}", gpu.index));
        let rank = |gpu: &Gpu| Rank::new(gpu, sizes).map_err(|trouble| about(gpu, trouble));
        let ranks = gpus.iter().map(rank).collect::<Result<Vec<Rank>, Trouble>>()?;
        let sides = gpus.iter().map(Gpu::beside).collect::<Result<Vec<Gpu>, Trouble>>()?;
        let message = Message::new(&sides, way, sizes.message)?;
        Ok(Self { gpus, sides, sizes, ranks, message, way })
    }

    /// Puts so many pieces of work on the streams, `compute` and `sum` as asked for, and how long each GPU was at it, counted from
    /// when all were ready.
    fn batch(&self, kind: Kind, (compute, sum): (bool, bool), count: u32) -> Result<Took, Trouble> {
        meet(self.gpus)?;
        for (gpu, side) in self.gpus.iter().zip(&self.sides) {
            gpu.start_clock()?;
            gpu.mark()?;
            side.follow(gpu)?;
            side.start_clock()?;
        }
        for _ in 0..count {
            if sum {
                self.message.joint.start(&self.sides)?;
            }
            if compute {
                self.gpus.iter().zip(&self.ranks).try_for_each(|(gpu, rank)| gpu.replay(rank.graph(kind)))?;
            }
        }
        self.gpus.iter().chain(&self.sides).try_for_each(Gpu::stop_clock)?;
        wait(self.gpus)?;
        wait(&self.sides)?;
        self.way.settled()?;
        let clocks = |of: &[Gpu]| of.iter().map(Gpu::clocked).collect::<Result<Vec<f64>, Trouble>>();
        Ok(Took { compute: clocks(self.gpus)?, sum: clocks(&self.sides)? })
    }

    /// How many pieces of work take long enough to be timed.
    fn enough(&self, node: &mut Node<'_>, kind: Kind, part: (usize, usize)) -> Result<u32, Trouble> {
        let target = node.all().pick([2.0, 10.0, 20.0, 20.0]);
        let mut count = 1;
        loop {
            let (done, what) = (part.0 as f64 / part.1 as f64, format!("{} beside an all-reduce", kind.name()));
            node.all().progress(done, &what);
            let took = self.batch(kind, (true, true), count)?;
            if most(&took.compute).max(most(&took.sum)) >= target || count >= MOST {
                return Ok(count);
            }
            count *= 2;
        }
    }

    fn measure(&self, node: &mut Node<'_>, kind: Kind, part: (usize, usize)) -> Result<Values, Trouble> {
        let count = self.enough(node, kind, part)?;
        for _ in 0..node.all().pick([1, 8, 16, 64]) {
            self.batch(kind, (true, true), count)?;
        }
        let right = self.digests(kind)?;
        let mut values = Values {
            alone: vec![Vec::new(); self.gpus.len()],
            beside: vec![Vec::new(); self.gpus.len()],
            ..Values::default()
        };
        let (wanted, mut blamed) = (node.all().values(), false);
        for taken in 0..wanted {
            let done = (part.0 as f64 + taken as f64 / wanted as f64) / part.1 as f64;
            node.all().progress(done, &format!("{} beside an all-reduce", kind.name()));
            // Each by itself again, so that a clock that changed meanwhile is no loss.
            let (compute, sum) = (self.batch(kind, (true, false), count)?, self.batch(kind, (false, true), count)?);
            self.message.clear(&self.sides)?;
            let both = self.batch(kind, (true, true), count)?;
            values.add((&compute.compute, &sum.sum), &both, f64::from(count));
            if !blamed {
                blamed = self.blame(node, kind, &right)?;
            }
        }
        Ok(values)
    }

    /// Notes what is wrong after a batch; whether something is.
    fn blame(&self, node: &mut Node<'_>, kind: Kind, right: &[u32]) -> Result<bool, Trouble> {
        let sums = self.message.wrong(&self.sides, self.way)?;
        let sums = sums.map(|why| format!("all-reduce beside {}: {why}", kind.name()));
        let now = self.digests(kind)?;
        let changed = right.iter().zip(&now).enumerate().filter(|(_, (first, now))| first != now);
        let name = kind.name();
        let changed = changed.map(|(gpu, (first, now))| {
            format!("GPU {gpu}: {name} beside an all-reduce gave other bits later: {first:08x} and {now:08x}")
        });
        let all: Vec<String> = sums.into_iter().chain(changed).collect();
        let any = !all.is_empty();
        all.into_iter().for_each(|what| node.blame(what));
        Ok(any)
    }

    /// A fold of all results on each GPU.
    fn digests(&self, kind: Kind) -> Result<Vec<u32>, Trouble> {
        let [_, products, squares, _] = self.sizes.places();
        let (begin, floats) = match kind {
            Kind::Matmul => (products, self.sizes.result()),
            Kind::Mul => (squares, self.sizes.left()),
        };
        let one = |(gpu, rank): (&Gpu, &Rank)| answers::fold(gpu, (rank.products.at(begin), floats * 4));
        self.gpus.iter().zip(&self.ranks).map(one).collect()
    }

    /// Holds results against each other, and some of them against what is right.
    fn check(&self, node: &mut Node<'_>, kind: Kind) -> Result<(), Trouble> {
        let mut found = answers::odd(kind.name(), &self.digests(kind)?);
        let (Sizes { stages, m, k, n, .. }, [_, products, squares, _]) = (self.sizes, self.sizes.places());
        let number = |seed, at| answers::element(Precision::Fp32, seed, at);
        let (m, k, n) = (m as u64, k as u64, n as u64);
        let product = |row: u64, column: u64| {
            let terms = (0..k).map(|l| number(A, row * k + l) * number(B, l * n + column));
            terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
        };
        let square = |row: u64, column: u64| {
            let x = number(A, row * k + column) as f32;
            (f64::from(x * x), 0.0)
        };
        for (gpu, rank) in self.gpus.iter().zip(&self.ranks) {
            let rows = stages as u64 * m;
            let expected = match kind {
                Kind::Matmul => {
                    let at = rank.products.at(products);
                    Expected { at, rows, columns: n, element: &product, tolerance: 1e-5 }
                }
                Kind::Mul => {
                    Expected { at: rank.products.at(squares), rows, columns: k, element: &square, tolerance: 0.0 }
                }
            };
            if found.is_empty() {
                found.extend(answers::wrong(gpu, kind.name(), &expected)?);
            }
        }
        found.into_iter().for_each(|what| node.blame(what));
        Ok(())
    }

    fn tell(&self, node: &mut Node<'_>, kind: Kind, values: Values) -> Result<(), Trouble> {
        let name = kind.name();
        let own = self.gpus[0].engine;
        let engine = self.way.engine(own);
        for (index, (alone, beside)) in values.alone.into_iter().zip(values.beside).enumerate() {
            let mut run = node.of(index);
            run.series(name, alone, 0)?;
            run.tell((format!("{name}-beside-all-reduce:{index}"), engine.clone()), beside, 0)?;
        }
        if kind == Kind::Matmul {
            node.all().tell(("all-reduce".to_owned(), engine.clone()), values.sum_alone, 0)?;
        }
        for (metric, values) in [
            (format!("all-reduce-beside-{name}"), values.sum_beside),
            (format!("{name}-step"), values.step),
            (format!("overlap-{name}"), values.overlap),
        ] {
            node.all().tell((metric, engine.clone()), values, 0)?;
        }
        Ok(())
    }
}

impl Values {
    /// Adds one value of each, of `count` pieces of work.
    fn add(&mut self, (compute, sum): (&[f64], &[f64]), both: &Took, count: f64) {
        let nanos = |ms: f64| ms * 1e6 / count;
        self.alone.iter_mut().zip(compute).for_each(|(to, ms)| to.push(nanos(*ms)));
        self.beside.iter_mut().zip(&both.compute).for_each(|(to, ms)| to.push(nanos(*ms)));
        let step = most(&both.compute).max(most(&both.sum));
        self.sum_alone.push(nanos(most(sum)));
        self.sum_beside.push(nanos(most(&both.sum)));
        self.step.push(nanos(step));
        self.overlap.push(most(compute).max(most(sum)) / step);
    }
}

fn most(of: &[f64]) -> f64 {
    of.iter().copied().fold(0.0, f64::max)
}
