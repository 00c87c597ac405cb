//! Convolutions that gather their windows are the CPU's, whatever their shape, and a change of their kernels is seen.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod library;
#[expect(dead_code, reason = "another test needs the rest")]
mod sim;

use std::sync::LazyLock;

use muster_gpu::train::{How, Precision, Program};
use muster_ptxsim::Faults;
use muster_tape::{Convolution, Cpu, Fill, Kind, Op, Span, State, Tape, Window};
use sim::Sim;

const SEED: u64 = 3;
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(sim::texts);

const fn convolution(batch: usize, edge: usize, channels: [usize; 2], window: [usize; 3]) -> Convolution {
    let [size, stride, pad] = window;
    Convolution { window: Window { batch, edge, channels: channels[0], size, stride, pad }, outputs: channels[1] }
}

/// Odd edges and sizes, strides, paddings, channels of less and more than a tile, few and many tiles, shares.
const SHAPES: [Convolution; 8] = [
    convolution(2, 5, [8, 16], [3, 1, 1]),
    convolution(3, 7, [16, 8], [3, 2, 1]),
    convolution(1, 9, [24, 40], [1, 2, 0]),
    convolution(2, 11, [8, 8], [7, 2, 3]),
    convolution(1, 6, [40, 136], [5, 1, 2]),
    convolution(1, 8, [136, 24], [3, 1, 0]),
    convolution(1, 4, [8, 8], [2, 1, 1]),
    convolution(1, 12, [72, 8], [3, 3, 2]),
];

/// Each of the operations of a convolution, alone on a tape.
fn tapes(of: Convolution) -> Vec<Tape> {
    let product = of.product();
    let lengths = [of.window.pixels(), product.k * product.n, product.n, product.m * product.n];
    let mut at = 0;
    let [images, filter, bias, result] = lengths.map(|len| {
        let span = Span { offset: at, len };
        at = span.end().next_multiple_of(16);
        span
    });
    let tape = |kind: Kind, reads: &[Span], write: Span| {
        let state = |span: &Span| State {
            name: "input".to_owned(),
            span: *span,
            fill: Fill::Uniform { bound: 1.0 },
            gradient: None,
        };
        Tape {
            ops: vec![Op { kind, reads: reads.to_vec(), writes: vec![write] }],
            memory: at,
            state: reads.iter().map(state).collect(),
            loss: Span { len: 1, ..write },
            parameters: 0,
            items: 1,
            updates: None,
        }
    };
    let mut all = vec![
        tape(Kind::Convolve(of), &[images, filter], result),
        tape(Kind::Convolve(of), &[images, filter, bias], result),
        tape(Kind::ConvolveFilter(of), &[images, result], filter),
    ];
    if of.window.stride == 1 && of.window.pad < of.window.size {
        all.push(tape(Kind::ConvolveBack(of), &[result, filter], images));
    }
    all
}

/// Norm of the difference to the CPU over the norm; nothing where the kernels are stopped.
fn error(texts: &[String], tape: &Tape, precision: Precision) -> Option<f64> {
    let mut cpu = Cpu::new(tape, SEED).unwrap();
    cpu.train(1, &|_| {}, |train| train.step()).unwrap().unwrap();
    let how = How { precision, wgmma: true, sms: 4, library: false };
    let mut sim = Sim::with(texts, tape, Program::new(tape, SEED, how).unwrap(), Faults::default());
    sim.try_step().ok()?;
    let (span, mut sums) = (tape.ops[0].writes[0], [0.0; 2]);
    for (got, right) in sim.elements(span).into_iter().zip(cpu.elements(span)) {
        sums[0] += f64::from(got - right).powi(2);
        sums[1] += f64::from(*right).powi(2);
    }
    Some((sums[0] / sums[1]).sqrt())
}

#[test]
fn convolutions_of_any_shape_are_the_cpus() {
    for (tape, precision) in
        SHAPES.into_iter().flat_map(tapes).flat_map(|tape| [(tape.clone(), Precision::Fp32), (tape, Precision::Bf16)])
    {
        let error = error(&TEXTS, &tape, precision).unwrap();
        // Below would be f32, and something else than what is measured.
        let right = if precision == Precision::Fp32 { error < 2e-6 } else { error > 1e-5 && error < 6e-3 };
        assert!(right, "{:?} in {precision:?} is off by {error:.1e}", tape.ops[0].kind);
    }
}

/// Whether a change of one kernel changes the result of an operation that it does.
fn caught(kernel: &str, tape: &Tape, change: &dyn Fn(&str) -> String) -> bool {
    let mut texts = TEXTS.clone();
    let entry = format!(".entry {kernel}(");
    let text = texts.iter_mut().find(|text| text.contains(&entry)).unwrap();
    let begin = text.find(&entry).unwrap();
    let end = begin + text[begin..].find("\n}").unwrap();
    let changed = change(&text[begin..end]);
    assert_ne!(changed, text[begin..end], "{kernel}: nothing was changed");
    text.replace_range(begin..end, &changed);
    let precision = if kernel.ends_with("bf16") { Precision::Bf16 } else { Precision::Fp32 };
    let most = if precision == Precision::Bf16 { 6e-3 } else { 2e-6 };
    error(&texts, tape, precision).is_none_or(|error| error.is_nan() || error >= most)
}

/// The kernels of convolutions with something that they do.
fn kernels() -> Vec<(&'static str, Tape)> {
    let tapes = tapes(SHAPES[0]);
    let all = [
        ("convolve_bf16", 1),
        ("convolve_bf16", 3),
        ("convolve_plain", 1),
        ("convolve_plain", 3),
        ("convolve_filter_bf16", 2),
        ("convolve_filter_plain", 2),
    ];
    all.into_iter().map(|(kernel, tape)| (kernel, tapes[tape].clone())).collect()
}

/// The last line that has all `words`, without it.
fn without(body: &str, words: &[&str]) -> String {
    let lines: Vec<&str> = body.lines().collect();
    let at = lines
        .iter()
        .rposition(|line| words.iter().all(|word| line.contains(word)))
        .unwrap_or_else(|| panic!("no {words:?}"));
    lines.iter().enumerate().filter(|(line, _)| *line != at).map(|(_, line)| *line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_kernel_without_a_barrier_a_wait_or_a_product_is_caught() {
    for (kernel, tape) in kernels() {
        let tensor = kernel.ends_with("bf16");
        assert!(caught(kernel, &tape, &|body| without(body, &["bar.sync"])), "{kernel}: no barrier");
        let product = if tensor { "mma.sync" } else { "fma.rn.f32" };
        let first = |body: &str| body.replacen(product, if tensor { "// " } else { "//" }, 1);
        assert!(caught(kernel, &tape, &first), "{kernel}: a product less");
        if tensor {
            let late = |body: &str| body.replace("cp.async.wait_group 2;", "cp.async.wait_group 3;");
            assert!(caught(kernel, &tape, &late), "{kernel}: too early");
            let whole = |body: &str| body.lines().map(zeros_taken).collect::<Vec<_>>().join("\n");
            assert!(caught(kernel, &tape, &whole), "{kernel}: what lies beside an image");
        }
    }
}

/// A copy that fills up with zeros, copying all.
fn zeros_taken(line: &str) -> String {
    match (line.contains("cp.async.cg"), line.rsplit_once(", 16, %")) {
        (true, Some((before, _))) => format!("{before}, 16;"),
        _ => line.to_owned(),
    }
}

#[test]
fn windows_elsewhere_are_caught() {
    for (kernel, tape) in kernels() {
        let layout = |body: &str| {
            let names: Vec<&str> =
                body.split(['[', ']']).filter(|word| word.starts_with(&format!("{kernel}_param_"))).collect();
            names.iter().map(|name| name.rsplit('_').next().unwrap().parse::<usize>().unwrap()).max().unwrap()
        };
        // Edge, channels, size, stride, padding, edge of the result are the last of its parameters.
        for (back, what) in [(5, "edge"), (3, "size"), (2, "stride"), (1, "padding"), (0, "edge of the result")] {
            let other = |body: &str| {
                let name = format!("[{kernel}_param_{}]", layout(body) - back);
                let line =
                    body.lines().find(|line| line.contains(&name)).unwrap_or_else(|| panic!("{kernel}: no {name}"));
                let register = line.split_whitespace().nth(1).unwrap().trim_end_matches(',');
                body.replacen(line, &format!("{line}\nadd.s32 {register}, {register}, 1;"), 1)
            };
            assert!(caught(kernel, &tape, &other), "{kernel}: {what}");
        }
    }
}
