//! Kernels of single calls compute what the calls are, in whatever order the hardware may choose; changed ones do not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod support;

use muster_gpu::calls::{Call, Convolution, Function, Place, Precision, Product, Way, Word, convolutions, products};
use muster_gpu::code::PTX;
use muster_gpu::twin::{self, Number};
use muster_ptxsim::Why;
use support::{Arg, Gpu};

const SEEDS: [u64; 3] = [1, 2, 77];
/// What is there before.
const BEFORE: u32 = 3;

fn text() -> String {
    let module = PTX.modules.iter().find(|module| module.name == "function").unwrap();
    String::from_utf8(module.image()).unwrap().trim_end_matches('\0').to_owned()
}

/// Words of an operand as the kernel `operand` makes it.
fn words(number: Number, seed: u32, count: u64) -> Vec<u32> {
    let (keep, set) = number.mask();
    let half = |mask: u64, word: u64| (mask >> (32 * (word % 2))) as u32;
    let bytes = count * number.size() as u64;
    (0..bytes.div_ceil(4)).map(|at| (twin::pattern(seed, at) & half(keep, at)) | half(set, at)).collect()
}

/// Runs the kernels of `text` and says how far from right the worst number is, as a share of what may be.
fn worst(text: &str, call: Call, alpha: f32, seed: u64) -> Result<f64, Why> {
    let (number, lengths, program) = (call.precision().number(), call.lengths(), call.program(alpha));
    let mut gpu = Gpu::from_text(text, 4, seed);
    let [a, b] = [0, 1].map(|at| gpu.words(&words(number, at as u32 + 1, lengths[at])));
    // Where nothing is added to, what is there is no number.
    let before = if call.adds() { words(number, BEFORE, lengths[2]) } else { vec![u32::MAX; lengths[2] as usize] };
    let (c, parts) = (gpu.words(&before), gpu.buffer(program.parts.max(16)));
    for launch in &program.launches {
        let arg = |word: &Word| match *word {
            Word::U32(value) => Arg::U32(value),
            Word::U64(value) => Arg::U64(value),
            Word::F32(value) => Arg::U32(value.to_bits()),
            Word::At(Place::A) => a,
            Word::At(Place::B) => b,
            Word::At(Place::C) => c,
            Word::At(Place::Parts) => parts,
            Word::Null => Arg::U64(0),
        };
        let args: Vec<Arg> = launch.args.iter().map(arg).collect();
        gpu.run_with(launch.kernel, ([launch.grid.0, launch.grid.1], 256, 0), &args)?;
    }
    let count = lengths[2] * number.size() as u64;
    let got = gpu.read_words(c, count.div_ceil(4));
    let operand = |seed: u32| move |at: u64| number.element(seed, at);
    let rounded = if number == Number::Fp16 { 2.0_f64.powi(-11) } else { 2.0_f64.powi(-24) };
    let share = |at: u64| {
        let (got, exact) = (number.read(&got, at), call.exact(at, [&operand(1), &operand(2)]));
        let before = if call.adds() { number.element(BEFORE, at) } else { 0.0 };
        let right = f64::from(alpha) * exact.value + before;
        // Sums of few terms in f32, and the result rounded.
        let error = (got - right).abs() / (1e-6 * exact.scale + rounded * (right.abs() + before.abs()));
        if error.is_nan() { f64::INFINITY } else { error }
    };
    Ok((0..lengths[2]).map(share).fold(0.0, f64::max))
}

fn product(function: Function, precision: Precision, transposed: [bool; 2], [m, n, k, batch]: [u32; 4]) -> Call {
    Call::Product(Product { function, precision, m, n, k, transposed, batch })
}

fn convolution(way: Way, precision: Precision, [images, edge, size, inputs, outputs]: [u32; 5]) -> Call {
    Call::Convolution(Convolution { way, precision, images, edge, size, inputs, outputs, algorithm: 0 })
}

const WAYS: [Way; 3] = [Way::Forward, Way::BackwardData, Way::BackwardFilter];
/// Whether either operand lies transposed.
const LIE: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

#[test]
fn products_of_every_type_layout_and_edge_are_their_twins() {
    let functions = [
        (Function::Sgemm, Precision::Fp32),
        (Function::GemmEx, Precision::Fp32),
        (Function::GemmStridedBatchedEx, Precision::Fp16),
        (Function::GemmEx, Precision::Fp16),
        (Function::Cgemm, Precision::Complex),
    ];
    for (at, (function, precision)) in functions.into_iter().enumerate() {
        for (lie, transposed) in LIE.into_iter().enumerate() {
            // One tile and a little more, or less than one; several of them.
            let sizes = [[65, 33, 20, 2], [30, 66, 33, 1], [64, 64, 16, 3], [1, 3, 70, 2]][(at + lie) % 4];
            let call = product(function, precision, transposed, sizes);
            for (seed, alpha) in [(1, 1.0), (2, -1.0)] {
                let error = worst(&text(), call, alpha, seed).unwrap();
                assert!(error <= 1.0, "{call:?}: {error:.2} times what may be");
            }
        }
    }
}

#[test]
fn convolutions_of_every_way_and_window_are_their_twins() {
    for way in WAYS {
        for precision in [Precision::Fp32, Precision::Fp16] {
            for sizes in [[2, 6, 3, 5, 4], [1, 5, 1, 66, 3], [3, 4, 5, 2, 65]] {
                let call = convolution(way, precision, sizes);
                let error = worst(&text(), call, 1.0, 1).unwrap();
                assert!(error <= 1.0, "{call:?}: {error:.2} times what may be");
            }
        }
    }
}

#[test]
fn sums_that_are_shared_out_are_whole_again() {
    let long = [
        product(Function::Sgemm, Precision::Fp32, [true, false], [17, 5, 700, 2]),
        product(Function::GemmEx, Precision::Fp16, [false, false], [9, 66, 1030, 1]),
        convolution(Way::Forward, Precision::Fp32, [1, 4, 3, 60, 3]),
        convolution(Way::BackwardData, Precision::Fp16, [1, 4, 3, 3, 60]),
        convolution(Way::BackwardFilter, Precision::Fp32, [3, 14, 3, 2, 3]),
        convolution(Way::BackwardFilter, Precision::Fp16, [3, 14, 1, 2, 3]),
    ];
    for call in long {
        assert_eq!(call.program(1.0).launches.len(), 2, "{call:?}");
        let error = worst(&text(), call, 1.0, 5).unwrap();
        assert!(error <= 1.0, "{call:?}: {error:.2} times what may be");
    }
}

#[test]
fn every_call_of_the_lists_fits_what_kernels_count_with() {
    for entry in products(false).iter().chain(products(true)).chain(convolutions(false)).chain(convolutions(true)) {
        let (program, lengths) = (entry.call.program(1.0), entry.call.lengths());
        assert!(program.launches.iter().all(|launch| launch.grid.1 <= 65_535), "{}", entry.name);
        assert!(lengths.iter().all(|length| *length < 1 << 31), "{}", entry.name);
        assert!(program.parts < 256 << 20, "{}: {} bytes", entry.name, program.parts);
    }
}

/// The kernels, each with a call that uses all of it.
fn kernels() -> Vec<(&'static str, Call)> {
    let mut all = vec![
        ("batch_f32", product(Function::Sgemm, Precision::Fp32, [true, false], [66, 65, 40, 2])),
        ("batch_half", product(Function::GemmStridedBatchedEx, Precision::Fp16, [true, true], [66, 65, 70, 2])),
        ("batch_c32", product(Function::Cgemm, Precision::Complex, [false, true], [66, 65, 40, 2])),
    ];
    for (way, names) in WAYS.into_iter().zip([
        ["convolve_f32", "convolve_half"],
        ["convolve_data_f32", "convolve_data_half"],
        ["convolve_filter_f32", "convolve_filter_half"],
    ]) {
        for (precision, name) in [Precision::Fp32, Precision::Fp16].into_iter().zip(names) {
            all.push((name, convolution(way, precision, [2, 7, 3, 9, 50])));
        }
    }
    all
}

/// Where the text of a kernel lies.
fn body(text: &str, kernel: &str) -> std::ops::Range<usize> {
    let begin = text.find(&format!(".entry {kernel}(")).unwrap();
    begin..begin + text[begin..].find("\n}").unwrap()
}

fn caught(kernel: &str, call: Call, change: &dyn Fn(&str) -> String) -> bool {
    let text = text();
    let at = body(&text, kernel);
    let changed = change(&text[at.clone()]);
    assert!(changed != text[at.clone()], "{kernel}: nothing was changed");
    let mutant = format!("{}{changed}{}", &text[..at.start], &text[at.end..]);
    SEEDS.into_iter().any(|seed| !worst(&mutant, call, 1.0, seed).is_ok_and(|error| error <= 1.0))
}

/// The first line that has `word`, changed.
fn line(body: &str, word: &str, change: &dyn Fn(&str) -> String) -> String {
    let found = body.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("no {word}"));
    body.replacen(found, &change(found), 1)
}

#[test]
fn a_kernel_without_its_barrier_or_one_of_its_products_is_caught() {
    for (kernel, call) in kernels() {
        assert!(caught(kernel, call, &|body| line(body, "bar.sync", &|_| String::new())), "{kernel}: no barrier");
        let product = if kernel.ends_with("half") { "mma.sync" } else { "fma.rn.f32" };
        assert!(caught(kernel, call, &|body| line(body, product, &|_| String::new())), "{kernel}: a product less");
    }
}

/// Every address of lines that have `word`, so many bytes further.
fn further(body: &str, word: &str, bytes: i64) -> String {
    let moved = |line: &str| {
        let Some(inside) = line.split(['[', ']']).nth(1).filter(|_| line.contains(word)) else {
            return line.to_owned();
        };
        let (base, offset) = inside.split_once('+').unwrap_or((inside, "0"));
        let offset: i64 = offset.trim().parse().unwrap();
        line.replace(inside, &format!("{base}+{}", offset + bytes))
    };
    body.lines().map(moved).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_kernel_that_fetches_keeps_takes_or_puts_elsewhere_is_caught() {
    for (kernel, call) in kernels() {
        let (size, shared, kept, global) = match call.precision() {
            Precision::Fp16 => (2, "ldmatrix", "st.shared.u16", ".global.u16"),
            Precision::Fp32 => (4, "ld.shared.f32", "st.shared.f32", ".global.f32"),
            Precision::Complex => (8, "ld.shared.v2.f32", "st.shared.v2.f32", ".global.v2.f32"),
        };
        let moved = |word: &str, bytes| caught(kernel, call, &|body| further(body, word, bytes));
        assert!(moved(kept, size), "{kernel}: kept elsewhere");
        assert!(moved(shared, 16), "{kernel}: taken from elsewhere");
        assert!(moved(&format!("ld{global}"), size), "{kernel}: fetched from elsewhere");
        assert!(moved(&format!("st{global}"), size), "{kernel}: put elsewhere");
    }
}

#[test]
fn a_convolution_with_another_window_is_caught() {
    for (kernel, call) in kernels().into_iter().skip(3) {
        // Half of its size lies before the pixel.
        let half = |body: &str| body.replacen(", 1;", ", 2;", 1);
        let before = |body: &str| {
            let at = body.lines().position(|line| line.contains("shr.u32") && line.ends_with(", 1;")).unwrap();
            let change = |(number, line): (usize, &str)| if number == at { half(line) } else { line.to_owned() };
            body.lines().enumerate().map(change).collect::<Vec<_>>().join("\n")
        };
        assert!(caught(kernel, call, &before), "{kernel}");
    }
}

#[test]
fn shares_of_which_some_are_left_out_are_caught() {
    for (kernel, precision) in [("shares_f32", Precision::Fp32), ("shares_half", Precision::Fp16)] {
        let call = product(Function::GemmEx, precision, [false, false], [9, 6, 520, 1]);
        let fewer = |body: &str| body.lines().filter(|line| !line.contains("add.f32")).collect::<Vec<_>>().join("\n");
        assert!(caught(kernel, call, &fewer), "{kernel}");
    }
}
