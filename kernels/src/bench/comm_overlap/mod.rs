//! What computing loses beside a sum over all GPUs, and the sum beside computing.
//!
//! Shapes are those of SuperBench's `computation-communication-overlap`: 30 products of 640 x 1024 by 1024 x 1880, or 30 squares of
//! 640 x 1024, to each sum of 5000 x 1400 floats. Each GPU computes on one stream and sums on another. Times are those of events on
//! these streams, after all of it is done; operands are random with full mantissa, and the sums are whole numbers.

mod message;
mod team;
mod values;
mod work;

use super::answers::{self, Expected};
use super::node::Node;
use super::together::Way;
use crate::driver::Trouble;
use crate::train::Precision;
use team::Team;
use values::Values;
use work::{A, B, Kind, LARGE, SMALL, Sizes};

/// Most pieces of work in one value.
const MOST: u32 = 512;

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

impl Team<'_> {
    /// How many pieces of work take long enough to be timed.
    fn enough(&self, node: &mut Node<'_>, kind: Kind, part: (usize, usize)) -> Result<u32, Trouble> {
        let target = node.all().pick([2.0, 10.0, 20.0, 20.0]);
        let mut count = 1;
        loop {
            let (done, what) = (part.0 as f64 / part.1 as f64, format!("{} beside an all-reduce", kind.name()));
            node.all().progress(done, &what);
            if self.batch(kind, (true, true), count)?.most() >= target || count >= MOST {
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
        let mut values = Values::new(self.gpus.len());
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
            found.extend(answers::wrong(gpu, kind.name(), &expected)?);
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
