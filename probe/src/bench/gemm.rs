//! How many floating-point operations per second the cores deliver on a matrix product.
//!
//! A blocked product of two fixed N x N matrices, both packed in advance into the panels that the innermost loop
//! reads, as in Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008). A chunk is the
//! product of two tiles; the chunks of a whole product follow each other again and again. The matrices stay within
//! a core's second-level cache or a little beyond: what is measured is arithmetic, not memory.

use std::time::Duration;

use muster_wire::Profile;

use super::context::{Context, Metric, share};
use super::kernel::{Isa, N, Number, Product};
use crate::pin::{Place, Worker, with_team};
use crate::steps::Halt;

pub(crate) const NAME: &str = "cpu-gemm";
/// Time in the smoke profile: 72 steps of 11 ms, so that each covers a whole period of a 10 ms CPU quota.
const SMOKE: Duration = Duration::from_millis(650);

struct Cores {
    single: Product<f32>,
    double: Product<f64>,
}

impl Worker for Cores {
    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        Ok(if job == 0 { self.single.advance() } else { self.double.advance() })
    }

    fn verify(&mut self, job: usize) -> Result<(), Halt> {
        let error = if job == 0 { self.single.finish_and_check() } else { self.double.finish_and_check() };
        let limit = if job == 0 { f32::UNIT_ERROR } else { f64::UNIT_ERROR } * N as f64;
        if error <= limit {
            return Ok(());
        }
        Err(Halt::Failed(format!("a matrix product is wrong: relative error {error:.1e}, at most {limit:.1e}")))
    }
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let (places, names) = match context.profile {
        Profile::Smoke => (vec![Place::this_node()], ["fp32-1t", "fp64-1t"]),
        _ => (Place::every_core(), ["fp32", "fp64"]),
    };
    let plan = context.plan(SMOKE, 2);
    let isa = Isa::best();
    let make = |_: &Place| Ok(Cores { single: Product::new(isa)?, double: Product::new(isa)? });
    with_team(&places, &make, |team| {
        for (job, name) in names.into_iter().enumerate() {
            let part = share(job, 2);
            let metric = Metric::of(NAME, name);
            context.measure(metric, &plan, part, &mut || team.step(job, plan.step))?;
            team.verify(job)?;
        }
        Ok(())
    })
}
