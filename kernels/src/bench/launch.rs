//! How long it takes to start a kernel: on the GPU, until the CPU knows, for the call alone, and as one of many in a graph.

use std::time::Instant;

use super::run::Run;
use crate::driver::{Shape, Trouble};

/// Launches behind one value.
const EACH: u32 = 32;
/// Kernels of a graph.
const NODES: u32 = 1000;

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Trouble> {
    let gpu = run.gpu;
    let empty = gpu.function("empty", 0)?;
    let shape = Shape { grid: (1, 1), threads: 1, shared: 0 };
    let start = || gpu.launch(empty, shape, &[]);
    let waited = || start().and_then(|()| gpu.wait());
    let mut of = |name, part, one: &mut dyn FnMut() -> Result<f64, Trouble>| {
        for _ in 0..4 * EACH {
            waited()?;
        }
        let count = run.values();
        let mut values = Vec::with_capacity(count);
        for taken in 0..count {
            run.progress((f64::from(part) + taken as f64 / count as f64) / 4.0, name);
            let sum = (0..EACH).try_fold(0.0, |sum, _| Ok(sum + one()?))?;
            values.push(sum / f64::from(EACH));
        }
        run.series(name, values, 4 * EACH as usize)
    };
    of("event", 0, &mut || Ok(gpu.timed(&mut || start())? * 1e6))?;
    of("wall", 1, &mut || {
        let begin = Instant::now();
        waited()?;
        Ok(nanos(begin))
    })?;
    of("call", 2, &mut || {
        let begin = Instant::now();
        start()?;
        let took = nanos(begin);
        gpu.wait()?;
        Ok(took)
    })?;
    let graph = gpu.record(&mut || (0..NODES).try_for_each(|_| start()))?;
    run.sample("graph-node", (3, 4), &|ms| ms * 1e6 / f64::from(NODES), &mut || gpu.replay(&graph))
}

fn nanos(begin: Instant) -> f64 {
    // A clock may stand still between two looks; a call takes more than nothing.
    (begin.elapsed().as_nanos() as f64).max(1.0)
}
