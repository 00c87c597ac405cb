//! What computing and communicating cost each other when they happen at once.
//!
//! Matrix products on all cores but one, bytes over loopback TCP on that one, first each alone and then both together,
//! in turns. The paper of `SuperBench` (ATC'24, section 2) tells of nodes that pass every test of one resource and are
//! slow only here: shared power, caches and memory.

use std::time::Duration;

use super::context::{Context, Metric};
use super::kernel::{Isa, N, Number, Product};
use super::net::Alone;
use crate::pin::{Place, Worker, with_team};
use crate::steps::Halt;

pub(crate) const NAME: &str = "overlap";
const SMOKE: Duration = Duration::from_millis(700);
/// In the order of the values of a round.
const NAMES: [&str; 7] = [
    "compute_alone",
    "compute_together",
    "comm_alone",
    "comm_together",
    "overlap_efficiency",
    "compute_slowdown",
    "comm_slowdown",
];

enum Part {
    Compute(Box<Product<f64>>),
    Communicate(Alone),
}

impl Worker for Part {
    fn chunk(&mut self, _job: usize) -> Result<f64, Halt> {
        match self {
            Self::Compute(product) => Ok(product.advance()),
            Self::Communicate(alone) => alone.chunk(0),
        }
    }

    fn verify(&mut self, _job: usize) -> Result<(), Halt> {
        let Self::Compute(product) = self else { return Ok(()) };
        let error = product.finish_and_check();
        if error <= f64::UNIT_ERROR * N as f64 {
            return Ok(());
        }
        Err(Halt::Failed(format!("a matrix product is wrong: relative error {error:.1e}")))
    }
}

/// Work per second, alone and together.
#[derive(Clone, Copy, Debug)]
struct Round {
    compute: [f64; 2],
    communicate: [f64; 2],
}

impl Round {
    /// `[efficiency, slowdown of computing, slowdown of communicating]`. Of two works that take the same time alone,
    /// the efficiency is that time over the time of both at once: 1 when neither disturbs the other.
    fn ratios(self) -> [f64; 3] {
        let [compute, communicate] = [self.compute, self.communicate].map(|[alone, together]| alone / together);
        [1.0 / compute.max(communicate), compute, communicate]
    }
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let mut places = Place::every_core();
    if let [only] = &places[..] {
        places.push(only.clone());
    }
    let computing = places.len() - 1;
    let isa = Isa::best();
    let make = |place: &Place| {
        if std::ptr::eq(place, &raw const places[computing]) {
            Ok(Part::Communicate(Alone::new()?))
        } else {
            Ok(Part::Compute(Box::new(Product::new(isa)?)))
        }
    };
    let metrics = NAMES.into_iter().map(|name| Metric::of(NAME, name)).collect();
    let plan = context.plan(SMOKE, 3);
    with_team(&places, &make, |team| {
        let mut round = || {
            let alone = team.rates(0..computing, 0, plan.step)?;
            let quiet = team.rates(computing..computing + 1, 0, plan.step)?;
            let both = team.rates(0..computing + 1, 0, plan.step)?;
            let round = Round {
                compute: [alone.iter().sum(), both[..computing].iter().sum()],
                communicate: [quiet.iter().sum(), both[computing..].iter().sum()],
            };
            Ok([&round.compute[..], &round.communicate, &round.ratios()].concat())
        };
        context.measure_all(metrics, &plan, (0.0, 1.0), &mut round)?;
        team.verify(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worse_of_the_two_decides_the_efficiency() {
        let round = Round { compute: [100.0, 80.0], communicate: [10.0, 5.0] };
        assert_eq!(round.ratios(), [0.5, 1.25, 2.0]);
        let free = Round { compute: [100.0, 100.0], communicate: [10.0, 10.0] };
        assert_eq!(free.ratios(), [1.0, 1.0, 1.0]);
    }
}
