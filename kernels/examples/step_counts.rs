//! How many instructions a training step executes and how many bytes of global memory it reads and writes, kernel by kernel, counted by the
//! simulator that executes the kernels' text: no time of a GPU, and caches are left aside.
//!
//!     cargo run -p muster-gpu --example step_counts [-- MODEL... | convolutions]

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on stops where it is")]

#[path = "../tests/library/mod.rs"]
mod library;
#[path = "../tests/sim/mod.rs"]
#[expect(dead_code, reason = "tests need the rest")]
mod sim;

use std::collections::BTreeMap;

use muster_gpu::train::{How, Launch, Part, Precision, Program};
use muster_ptxsim::{Counts, Faults};
use muster_tape::{Convolution, Fill, Gemm, Kind, Model, Op, Span, State, Tape, Window};
use sim::Sim;

const SEED: u64 = 7;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "convolutions") {
        convolutions();
        return;
    }
    let asked = |model: &Model| {
        if words.is_empty() { model.name().ends_with("-nano") } else { words.iter().any(|word| word == model.name()) }
    };
    for model in Model::ALL.into_iter().filter(asked) {
        for (precision, wgmma) in [(Precision::Bf16, true), (Precision::Bf16, false), (Precision::Fp32, false)] {
            for (library, gathered) in [(false, false), (false, true), (true, false)] {
                // What the library does is not ours to count, and the rest does not depend on warpgroups.
                if library && precision == Precision::Bf16 && !wgmma {
                    continue;
                }
                let how = How { precision, wgmma, sms: 4, library };
                let tape = if gathered { model.implicit(model.size()) } else { model.tape() };
                if gathered && tape.ops == model.tape().ops {
                    continue;
                }
                let by = if library { "cuBLASLt" } else { products(how) };
                let images = if gathered { ", convolutions gathered" } else { "" };
                println!("\n## {} {}, products by {by}{images}", model.name(), precision.name());
                Step::of(&tape, how).print();
            }
        }
    }
}

const fn products(how: How) -> &'static str {
    match how {
        How { precision: Precision::Fp32, .. } => "ordinary units",
        How { wgmma: true, .. } => "warpgroups",
        How { .. } => "warps",
    }
}

/// What one kernel did in a step.
#[derive(Clone, Copy, Default)]
struct Row {
    launches: u64,
    counts: Counts,
    /// Multiplications and additions of the products that it was asked for.
    products: f64,
}

impl Row {
    fn add(&mut self, other: Self) {
        self.launches += other.launches;
        self.counts.instructions += other.counts.instructions;
        self.counts.loaded += other.counts.loaded;
        self.counts.stored += other.counts.stored;
        self.products += other.products;
    }

    fn print(&self, name: &str) {
        let Self { launches, counts, products } = *self;
        let each = |of: u64| if products > 0.0 { format!("{:.4}", of as f64 / products) } else { "-".to_owned() };
        let ratios = format!("{} | {}", each(counts.instructions), each(counts.moved()));
        println!(
            "| {name} | {launches} | {} | {} | {} | {ratios} |",
            counts.instructions, counts.loaded, counts.stored
        );
    }
}

/// What the kernels of a step did.
struct Step(BTreeMap<&'static str, Row>);

impl Step {
    /// The second step of a tape: the first one finds moments that are zero.
    fn of(tape: &Tape, how: How) -> Self {
        let mut sim = Sim::new(tape, Program::new(tape, SEED, how).unwrap(), Faults::default());
        if tape.ops.len() > 10 {
            sim.step();
        }
        let room = sim.device.memory.room();
        let (mut rows, mut products): (BTreeMap<_, Row>, _) = (BTreeMap::new(), tape.ops.iter().filter_map(multiplied));
        for part in sim.program.step.clone() {
            let (name, product) = match &part {
                Part::Kernel(launch) => (launch.kernel, is_product(launch)),
                Part::Library(_) => ("cublasLtMatmul", true),
            };
            let counts = sim.part(&part).unwrap();
            let done = if product { products.next().unwrap_or_default() } else { 0.0 };
            rows.entry(name).or_default().add(Row { launches: 1, counts, products: done });
        }
        assert_eq!(sim.device.memory.room(), room, "a step takes no memory");
        assert!(products.next().is_none(), "every product belongs to a kernel");
        Self(rows)
    }

    fn total(&self) -> Row {
        let mut total = Row::default();
        self.0.values().for_each(|row| total.add(*row));
        total
    }

    fn print(&self) {
        println!(
            "| kernel | launches | instructions | bytes read | bytes written | instructions a multiply-add | bytes a multiply-add |"
        );
        println!("|---|---|---|---|---|---|---|");
        let mut rows: Vec<_> = self.0.iter().collect();
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.counts.instructions));
        rows.into_iter().for_each(|(name, row)| row.print(name));
        self.total().print("all");
    }
}

fn is_product(launch: &Launch) -> bool {
    let name = launch.kernel;
    name.starts_with("convolve") || (name.starts_with("product") && name != "product_sum")
}

/// Multiply-adds of an operation, if it is a product.
fn multiplied(op: &Op) -> Option<f64> {
    let Gemm { m, n, k, .. } = match op.kind {
        Kind::Gemm(gemm) => gemm,
        Kind::Convolve(of) | Kind::ConvolveBack(of) | Kind::ConvolveFilter(of) => of.product(),
        _ => return None,
    };
    Some(m as f64 * n as f64 * k as f64)
}

/// Forward and both gradients of convolutions as a ResNet has them, with windows in memory and without.
fn convolutions() {
    println!("| convolution | what | by | instructions | bytes read | bytes written |");
    println!("|---|---|---|---|---|---|");
    for (channels, outputs, edge, [size, stride, pad]) in [
        (64, 64, 14, [3, 1, 1]),
        (128, 128, 14, [3, 2, 1]),
        (256, 256, 7, [3, 1, 1]),
        (64, 128, 14, [1, 2, 0]),
        (64, 64, 14, [1, 1, 0]),
    ] {
        let of = Convolution { window: Window { batch: 2, edge, channels, size, stride, pad }, outputs };
        for (what, before, after) in both(of) {
            for (wgmma, precision) in [(true, Precision::Bf16), (false, Precision::Bf16), (false, Precision::Fp32)] {
                let how = How { precision, wgmma, sms: 4, library: false };
                for (by, tape) in [("windows", &before), ("gathered", &after)] {
                    let Ok(_) = Program::new(tape, SEED, how) else { continue };
                    let Counts { instructions, loaded, stored } = Step::of(tape, how).total().counts;
                    let title = format!("{size}x{size}, {channels} to {outputs}, stride {stride}");
                    println!("| {title} | {what} | {by}, {} | {instructions} | {loaded} | {stored} |", products(how));
                }
            }
        }
    }
}

/// What a convolution is asked for, as operations with windows and without.
fn both(of: Convolution) -> Vec<(&'static str, Tape, Tape)> {
    let product = of.product();
    let Gemm { m, n, k, .. } = product;
    let mut at = 0;
    let [images, filter, result, windows] = [of.window.pixels(), k * n, m * n, m * k].map(|len| {
        let span = Span { offset: at, len };
        at = span.end().next_multiple_of(16);
        span
    });
    let op = |kind, reads: [Span; 2], write| Op { kind, reads: reads.to_vec(), writes: vec![write] };
    let one = |kind, read, write| Op { kind, reads: vec![read], writes: vec![write] };
    let tape = |ops: &[Op]| {
        let state = |span: &Span| State {
            name: "input".to_owned(),
            span: *span,
            fill: Fill::Uniform { bound: 1.0 },
            gradient: None,
        };
        let loss = Span { len: 1, ..result };
        let state = [images, filter, result].iter().map(state).collect();
        Tape { ops: ops.to_vec(), memory: at, state, loss, parameters: 0, items: 1, updates: None }
    };
    let plain = of.window.size == 1 && of.window.stride == 1;
    let columns = if plain { images } else { windows };
    let across = Gemm { m: k, n, k: m, a_transposed: true, ..product };
    let back = Gemm { m, n: k, k: n, b_transposed: true, ..product };
    let im2col = one(Kind::Im2col(of.window), images, windows);
    let skip = usize::from(plain);
    let forward = [im2col, op(Kind::Gemm(product), [columns, filter], result)];
    let down = [op(Kind::Gemm(back), [result, filter], columns), one(Kind::Col2im(of.window), windows, images)];
    vec![
        ("forward", tape(&forward[skip..]), tape(&[op(Kind::Convolve(of), [images, filter], result)])),
        (
            "gradient of the filter",
            tape(&[op(Kind::Gemm(across), [columns, result], filter)]),
            tape(&[op(Kind::ConvolveFilter(of), [images, result], filter)]),
        ),
        (
            "gradient of the images",
            tape(&down[..2 - skip]),
            tape(&[op(Kind::ConvolveBack(of), [result, filter], images)]),
        ),
    ]
}
