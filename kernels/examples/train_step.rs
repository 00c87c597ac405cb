//! How long a training step takes on GPU 0, what its losses are, and where the time goes.
//!
//!     cargo run --release -p muster-gpu --example train_step -- gpt2-small bf16 [cublaslt]

use std::collections::BTreeMap;
use std::process::ExitCode;

use muster_gpu::cublaslt::CublasLt;
use muster_gpu::driver::{self, Gpu, Trouble};
use muster_gpu::train::{Precision, Trainer, With};
use muster_tape::Model;

const STEPS: usize = 20;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let model = |name: &str| Model::ALL.into_iter().find(|model| model.name() == name);
    let precision = |name: &str| [Precision::Bf16, Precision::Fp32].into_iter().find(|p| p.name() == name);
    let asked = match words.as_slice() {
        [name, in_what] => model(name).zip(precision(in_what)).zip(Some(false)),
        [name, in_what, by] if by == "cublaslt" => model(name).zip(precision(in_what)).zip(Some(true)),
        _ => None,
    };
    let Some(((model, precision), library)) = asked else {
        eprintln!("train_step MODEL bf16|fp32 [cublaslt]");
        return ExitCode::from(64);
    };
    match run(model, precision, library) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("{trouble:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(model: Model, precision: Precision, library: bool) -> Result<(), Trouble> {
    driver::count()?;
    let library = if library { Some(CublasLt::load()?) } else { None };
    // To the library a convolution is a product of matrices, so windows are written for it.
    let tape = if library.is_some() { model.tape() } else { model.implicit(model.size()) };
    let gpu = Gpu::open(0)?;
    let with = With { precision, library: library.as_ref() };
    let (bytes, kernels) = Trainer::needs(&gpu, &tape, with)?;
    let mut trainer = Trainer::new(&gpu, &tape, 1, with)?;
    trainer.restart()?;
    let mut losses = Vec::new();
    let mut times = Vec::new();
    for _ in 0..STEPS {
        let (ms, loss) = trainer.step()?;
        times.push(ms);
        losses.push(loss);
    }
    trainer.restart()?;
    let again: Vec<f32> = (0..STEPS).map(|_| Ok(trainer.step()?.1)).collect::<Result<_, Trouble>>()?;
    times.sort_by(f64::total_cmp);
    let ms = times[STEPS / 2];
    println!(
        "{} {} on {}: {ms:.3} ms a step, {:.0} items/s, {:.1} TFLOP/s of products, {kernels} parts, {:.1} GiB, losses {}",
        model.name(),
        precision.name(),
        gpu.name,
        tape.items as f64 / ms * 1e3,
        tape.product_flops() / ms / 1e9,
        bytes as f64 / f64::from(1 << 30),
        if losses.iter().map(|l| l.to_bits()).eq(again.iter().map(|l| l.to_bits())) { "come again" } else { "DIFFER" },
    );
    println!("losses {losses:?}");
    let mut by_name: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for (name, ms) in trainer.profile()? {
        let entry = by_name.entry(name).or_default();
        *entry = (entry.0 + 1, entry.1 + ms);
    }
    let mut sorted: Vec<_> = by_name.into_iter().collect();
    sorted.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for (name, (count, ms)) in sorted {
        println!("{ms:9.3} ms  {count:4} x  {name}");
    }
    Ok(())
}
