//! Step times of every model: `cargo run --release -p muster-tape --example train_speed -- [threads] [model]`.

use std::time::Instant;

use muster_tape::{Cpu, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let threads = args.next().map_or(Ok(1), |text| text.parse())?;
    let only = args.next();
    for model in Model::ALL.into_iter().filter(|m| only.as_deref().is_none_or(|name| name == m.name())) {
        let tape = model.tape();
        let mut cpu = Cpu::new(&tape, 1)?;
        let steps = if model.name().ends_with("-nano") { 50 } else { 6 };
        let (mut best, mut losses) = (f64::INFINITY, Vec::new());
        cpu.train(threads, &|_| {}, |train| {
            for _ in 0..steps {
                let begun = Instant::now();
                losses.push(train.step()?);
                best = best.min(begun.elapsed().as_secs_f64());
            }
            Ok::<(), muster_tape::Error>(())
        })??;
        println!(
            "{:14} {:>11} parameters {:>6} MB {:>9.1} GFLOP {:>9.2} ms {:>6.1} GFLOP/s, loss {:.3} to {:.3}",
            model.name(),
            tape.parameters,
            tape.memory >> 18,
            tape.product_flops() / 1e9,
            best * 1e3,
            tape.product_flops() / best / 1e9,
            losses[0],
            losses[steps - 1],
        );
    }
    Ok(())
}
