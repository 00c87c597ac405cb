//! Every kernel that is shipped computes what its twin computes, in whatever order the hardware may choose.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod support;
mod wgmma;

use muster_gpu::code::PTX;
use muster_gpu::twin::{self, Burn, Number};
use muster_ptxsim::{Device, Faults, Why, parse};
use support::{Arg, Gpu};

const SEEDS: [u64; 4] = [1, 2, 77, 1_000_003];

#[test]
fn every_shipped_module_parses() {
    for module in PTX.modules {
        let image = module.image();
        let text = std::str::from_utf8(&image).unwrap().trim_end_matches('\0');
        assert!(!parse(text).unwrap_or_else(|why| panic!("{}: {why}", module.name)).is_empty());
    }
}

#[test]
fn fill_copy_read_and_triad_move_what_they_say() {
    for seed in SEEDS {
        let mut gpu = Gpu::new("memory", 4, seed);
        // Not a multiple of the grid, so that the loop behind the wide one has work.
        let vectors = 4 * 3 * 64 + 77_u64;
        let (a, b, digest) = (gpu.buffer(vectors * 16), gpu.buffer(vectors * 16), gpu.words(&[5]));
        gpu.run("fill", (3, 64), &[a, Arg::U64(vectors), Arg::U32(9)]);
        let words: Vec<u32> = (0..vectors * 4).map(|word| twin::pattern(9, word)).collect();
        assert_eq!(gpu.read_words(a, vectors * 4), words);
        gpu.run("copy", (3, 64), &[b, a, Arg::U64(vectors)]);
        assert_eq!(gpu.read_words(b, vectors * 4), words);
        gpu.run("read", (3, 64), &[b, Arg::U64(vectors), digest]);
        assert_eq!(gpu.read_words(digest, 1), [twin::sum(&words).wrapping_add(5)]);
        gpu.run("reread", (3, 64), &[b, Arg::U64(vectors), Arg::U32(3), digest]);
        assert_eq!(gpu.read_words(digest, 1), [twin::sum(&words).wrapping_mul(4).wrapping_add(5)], "three times more");
        let numbers: Vec<f64> = (0..vectors * 2).map(|i| 1.0 + f64::from(twin::pattern(3, i)) * 1e-9).collect();
        let (b, c) = (gpu.doubles(&numbers), gpu.doubles(&numbers));
        gpu.run("triad", (3, 64), &[a, b, c, Arg::F64(3.3), Arg::U64(vectors)]);
        let expected = twin::triad(&numbers, &numbers, 3.3);
        assert_eq!(gpu.read_doubles(a, vectors * 2), expected);
    }
}

/// Whether `square` in this text squares every element, and writes nothing behind them.
fn squares(text: &str) -> bool {
    let mut gpu = Gpu::from_text(text, 4, 3);
    let vectors = 3 * 64 * 2 + 45_u64;
    let numbers: Vec<f32> = (0..vectors * 4).map(|i| Number::Fp32.element(5, i) as f32).collect();
    let from = gpu.words(&numbers.iter().map(|x| x.to_bits()).collect::<Vec<u32>>());
    let to = gpu.words(&vec![7; vectors as usize * 4 + 4]);
    if gpu.run_with("square", ([3, 1], 64, 0), &[to, from, Arg::U64(vectors)]).is_err() {
        return false;
    }
    let expected = numbers.iter().map(|x| (x * x).to_bits()).chain([7; 4]);
    gpu.read_words(to, vectors * 4 + 4) == expected.collect::<Vec<u32>>()
}

#[test]
fn every_element_is_squared_and_a_change_of_the_kernel_is_seen() {
    let image = PTX.modules.iter().find(|module| module.name == "memory").unwrap().image();
    let text = std::str::from_utf8(&image).unwrap().trim_end_matches('\0');
    assert!(squares(text));
    let body = text.find(".entry square").unwrap();
    let mutants = [
        ("mul.f32", "add.f32"),
        ("setp.lt.u64", "setp.le.u64"),
        ("{%f12, %f11, %f10, %f9}", "{%f12, %f11, %f9, %f10}"),
        ("shl.b64 \t%rd17, %rd20, 4", "shl.b64 \t%rd17, %rd20, 3"),
    ];
    for (from, to) in mutants {
        let at = body + text[body..].find(from).unwrap_or_else(|| panic!("no {from}"));
        let mutant = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
        assert!(!squares(&mutant), "{from} as {to}");
    }
}

#[test]
fn pages_are_told_apart_word_by_word() {
    let mut gpu = Gpu::new("memory", 4, 5);
    let (vectors, count) = (96_u32, 7_u32);
    let mut words: Vec<u32> = (0..count * vectors * 4).map(|word| twin::pattern(3, u64::from(word))).collect();
    words[(2 * vectors * 4 + 11) as usize] ^= 0x10;
    words[(2 * vectors * 4 + 300) as usize] ^= 0x8000_0001;
    words[(6 * vectors * 4) as usize] ^= 0x2;
    let (from, out) = (gpu.words(&words), gpu.buffer(u64::from(count) * 16));
    gpu.run("pages", (3, 64), &[from, Arg::U32(count), Arg::U32(vectors), Arg::U32(3), out]);
    let got = gpu.read_words(out, u64::from(count) * 4);
    for (page, (record, content)) in got.chunks(4).zip(words.chunks(vectors as usize * 4)).enumerate() {
        let expected = twin::page(content, page as u32, 3);
        assert_eq!(record[..3], [expected.wrong, expected.bits, expected.first], "page {page}");
        assert!(record[3] > 0, "page {page} took no time");
    }
    assert_eq!(got[8..11], [2, 0x8000_0011, 11]);
}

#[test]
fn a_chase_follows_the_chain_on_the_chosen_multiprocessor() {
    let mut gpu = Gpu::new("memory", 4, 3);
    let chain = twin::chain(64, 16, 1);
    let (from, out) = (gpu.words(&chain), gpu.words(&[0; 4]));
    for times in [1, 2] {
        gpu.run("chase", (4, 32), &[from, Arg::U32(40), Arg::U32(2), out]);
        let at = (0..50 * times).fold(0_usize, |at, _| chain[at] as usize);
        assert_eq!(
            gpu.read_words(out, 4)[2] as usize,
            at,
            "ten steps to warm up and forty measured, from where it ended"
        );
    }
    let got = gpu.read_words(out, 4);
    assert!(got[0] >= 40 * 600, "each step waits for the one before: {} cycles", got[0]);
    gpu.run("chase", (4, 32), &[from, Arg::U32(40), Arg::U32(9), out]);
    assert_eq!(gpu.read_words(out, 4), got, "there is no multiprocessor 9, so nobody wrote");
}

#[test]
fn every_multiprocessor_burns_the_digest_of_the_twin() {
    for burn in Burn::ALL.into_iter().filter(|burn| *burn != Burn::Wgmma) {
        for seed in [11_u32, 12] {
            let mut gpu = Gpu::new("burn", 3, u64::from(seed));
            let out = gpu.buffer(3 * 16);
            let shared = 120 << 10;
            gpu.run_with(burn.kernel(), ([3, 1], 64, shared), &[Arg::U32(seed), Arg::U32(3), out]).unwrap();
            let got = gpu.read_words(out, 12);
            let mut sms: Vec<u32> = got.chunks(4).map(|share| share[0]).collect();
            sms.sort_unstable();
            assert_eq!(sms, [0, 1, 2]);
            let expected = twin::digest(burn, seed, 3, 64);
            assert!(
                got.chunks(4).all(|share| share[1] == expected),
                "{burn:?} seed {seed}: {got:x?}, not {expected:x}"
            );
            assert!(got.chunks(4).all(|share| share[2] == got[2]), "{burn:?}: equal work takes equal time");
        }
    }
}

#[test]
fn digests_depend_on_seed_and_rounds() {
    for burn in Burn::ALL {
        let some = [(1, 2), (1, 3), (2, 2)].map(|(seed, rounds)| twin::digest(burn, seed, rounds, 32));
        assert!(some[0] != some[1] && some[0] != some[2], "{burn:?}");
    }
}

/// Kernels of products by mma.sync, and what they multiply.
const TENSOR: [(&str, Number); 4] = [
    ("gemm_bf16", Number::Bf16),
    ("gemm_fp16", Number::Fp16),
    ("gemm_tf32", Number::Tf32),
    ("gemm_int8", Number::Int8),
];

/// An operand as the kernel `operand` makes it.
fn operand(gpu: &mut Gpu, number: Number, seed: u32, count: u32) -> Arg {
    let (bytes, (keep, set)) = (u64::from(count) * number.size() as u64, number.mask());
    let to = gpu.buffer(bytes);
    gpu.run("operand", (2, 64), &[to, Arg::U64(bytes / 8), Arg::U32(seed), Arg::U64(keep), Arg::U64(set)]);
    to
}

/// Results as numbers.
fn sums(number: Number, words: &[u32]) -> Vec<f64> {
    let value = |word: &u32| match number {
        Number::Int8 => f64::from(word.cast_signed()),
        _ => f64::from(f32::from_bits(*word)),
    };
    words.iter().map(value).collect()
}

/// Error of a product of `m` rows, `n` columns and `k` elements.
fn tensor(text: &str, (kernel, number): (&str, Number), seed: u64, (m, n, k): (u32, u32, u32)) -> Result<f64, Why> {
    let mut gpu = Gpu::from_text(text, 4, seed);
    let (a, b) = (operand(&mut gpu, number, 1, m * k), operand(&mut gpu, number, 2, n * k));
    let c = gpu.buffer(u64::from(m * n) * 4);
    let shape = ([n / 128, m / 128], 256, 64 << 10);
    gpu.run_with(kernel, shape, &[c, a, b, Arg::U32(n), Arg::U32(k * number.size() as u32)])?;
    let got = sums(number, &gpu.read_words(c, u64::from(m * n)));
    let (left, right) = (number.elements(1, (m * k) as usize), number.elements(2, (n * k) as usize));
    Ok(twin::error(&got, &twin::transposed_product(&left, &right, k as usize)))
}

fn gemm_text() -> String {
    String::from_utf8(PTX.modules[2].image()).unwrap().trim_end_matches('\0').to_owned()
}

#[test]
fn tensor_products_are_their_twins_for_every_order_and_shape() {
    for kind in TENSOR {
        for seed in SEEDS {
            // Whole tiles, any number of them: along k from one to nine.
            let draw = |word, below| twin::pattern(seed as u32, word) % below + 1;
            let (m, n, slices) = (128 * draw(1, 2), 128 * draw(2, 2), draw(3, 9));
            let k = slices * 64 / kind.1.size() as u32;
            let error = tensor(&gemm_text(), kind, seed, (m, n, k)).unwrap();
            // Operands are exact; what is left is the rounding of f32 sums. Integers have none.
            let limit = if kind.1 == Number::Int8 { 0.0 } else { 1e-6 };
            assert!(error <= limit, "{kind:?} {m} {n} {k}: {error:.1e}");
        }
    }
}

/// One change of the kernel's text, and whether any of the schedules shows it.
fn caught(from: &str, to: &str) -> bool {
    mutant_caught(TENSOR[0], from, to)
}

fn mutant_caught(kind: (&str, Number), from: &str, to: &str) -> bool {
    let mutant = mutated(&gemm_text(), kind.0, from, to);
    SEEDS.into_iter().any(|seed| !tensor(&mutant, kind, seed, (256, 128, 256)).is_ok_and(|error| error < 1e-3))
}

/// The module with the first `from` of a kernel replaced.
fn mutated(text: &str, kernel: &str, from: &str, to: &str) -> String {
    let body = text.find(&format!(".entry {kernel}(")).unwrap();
    let at = body + text[body..].find(from).unwrap_or_else(|| panic!("no {from}"));
    format!("{}{}{}", &text[..at], to, &text[at + from.len()..])
}

#[test]
fn a_product_of_any_type_with_one_step_of_another_or_none_is_caught() {
    for kind in &TENSOR[1..] {
        let body = &gemm_text()[gemm_text().find(&format!(".entry {}(", kind.0)).unwrap()..];
        let step = body.lines().find(|l| l.contains("mma.sync")).unwrap().trim().to_owned();
        assert!(mutant_caught(*kind, &step, ""), "{kind:?}: a product is left out");
        assert!(mutant_caught(*kind, "cp.async.wait_group 2;", "cp.async.wait_group 3;"), "{kind:?}: one group late");
        assert!(mutant_caught(*kind, "bar.sync", "// bar.sync"), "{kind:?}: no barrier");
    }
}

#[test]
fn a_product_without_its_barrier_is_caught() {
    assert!(caught("bar.sync", "// bar.sync"));
}

#[test]
fn a_product_that_does_not_wait_for_its_copies_is_caught() {
    assert!(caught("cp.async.wait_group 2;", ""));
    assert!(caught("cp.async.wait_group 2;", "cp.async.wait_group 3;"), "one group late");
}

#[test]
fn a_product_with_a_wrong_lane_stage_or_row_is_caught() {
    let text = gemm_text();
    let body = &text[text.find(".entry gemm_bf16(").unwrap()..];
    let body = &body[..body.find("\n}").unwrap()];
    // The first address that ldmatrix reads from, 16 bytes further: another swizzle than the one that was written.
    let line = body.lines().find(|l| l.contains("ldmatrix")).unwrap().trim();
    let address = line.split(['[', ']']).nth(1).unwrap();
    assert!(caught(line, &line.replace(address, &format!("{address}+16"))), "swizzle");
    // A stage too few: what is being read is written.
    assert!(caught("cp.async.commit_group;", ""), "groups do not match stages");
    // A row of the result that belongs to nobody.
    let store = body.lines().rfind(|l| l.contains("st.global.v2.")).unwrap().trim();
    let inside = store.split(['[', ']']).nth(1).unwrap();
    assert!(caught(store, &store.replace(inside, &format!("{}+65536", inside.split('+').next().unwrap()))), "row");
    // Fragments of the operands exchanged.
    let mma = body.lines().find(|l| l.contains("mma.sync")).unwrap().trim();
    let mut groups: Vec<String> = mma.split('}').map(str::to_owned).collect();
    let mut a: Vec<&str> = groups[1].split(['{', ',']).map(str::trim).filter(|w| w.starts_with('%')).collect();
    a.swap(1, 2);
    groups[1] = format!(", {{{}", a.join(","));
    assert!(caught(mma, &groups.join("}")), "fragment");
}

#[test]
fn a_copy_that_goes_too_far_or_not_far_enough_is_caught() {
    let image = PTX.modules[0].image();
    let text = std::str::from_utf8(&image).unwrap().trim_end_matches('\0');
    let copied = |text: &str, vectors: u64| {
        let mut gpu = Gpu::from_text(text, 2, 1);
        let (a, b) = (gpu.buffer(vectors * 16), gpu.buffer(vectors * 16));
        gpu.run("fill", (2, 64), &[a, Arg::U64(vectors), Arg::U32(9)]);
        gpu.run_with("copy", ([2, 1], 64, 0), &[b, a, Arg::U64(vectors)]).map_err(|why| why.to_string())?;
        (gpu.read_words(b, vectors * 4) == gpu.read_words(a, vectors * 4)).then_some(()).ok_or("differs".to_owned())
    };
    // Ends after a narrow round, and right after a wide one.
    let copied = |text: &str| [1000, 1074].into_iter().try_for_each(|vectors| copied(text, vectors));
    assert_eq!(copied(text), Ok(()));
    let body = &text[text.find(".entry copy(").unwrap()..];
    let body = &body[..body.find("\n}").unwrap()];
    for mutated in [("setp.lt.u64", "setp.le.u64"), ("setp.ge.u64", "setp.gt.u64"), ("add.s64", "sub.s64")] {
        let Some(at) = body.rfind(mutated.0) else { panic!("no {} in copy", mutated.0) };
        let mutant = text.replace(body, &format!("{}{}{}", &body[..at], mutated.1, &body[at + mutated.0.len()..]));
        assert!(copied(&mutant).is_err(), "{mutated:?} survived");
    }
}

#[test]
fn simt_products_are_their_twins() {
    let (m, n, k) = (128_usize, 128_usize, 48_usize);
    let values = |seed: u32, count: usize| -> Vec<f64> {
        (0..count)
            .map(|i| f64::from(f32::from_bits(twin::pattern(seed, i as u64) & 0x007f_ffff | 0x3f80_0000)) - 1.5)
            .collect()
    };
    let (a, b) = (values(1, m * k), values(2, k * n));
    let reference = twin::product(&a, &b, n, k);
    for (seed, single) in [(1, true), (2, false), (3, true), (4, false)] {
        let mut gpu = Gpu::new("gemm", 4, seed);
        let narrow = |v: &[f64]| v.iter().map(|x| (*x as f32).to_bits()).collect::<Vec<u32>>();
        let (x, y, z) = if single {
            (gpu.words(&narrow(&a)), gpu.words(&narrow(&b)), gpu.buffer((m * n * 4) as u64))
        } else {
            (gpu.doubles(&a), gpu.doubles(&b), gpu.buffer((m * n * 8) as u64))
        };
        let (kernel, side) = if single { ("gemm_f32", 128) } else { ("gemm_f64", 64) };
        let grid = [(n / side) as u32, (m / side) as u32];
        gpu.run_with(kernel, (grid, 256, 0), &[z, x, y, Arg::U32(n as u32), Arg::U32(k as u32)]).unwrap();
        let got: Vec<f64> = if single {
            gpu.read_words(z, (m * n) as u64).iter().map(|w| f64::from(f32::from_bits(*w))).collect()
        } else {
            gpu.read_doubles(z, (m * n) as u64)
        };
        let (error, limit) = (twin::error(&got, &reference), if single { 1e-6 } else { 1e-15 });
        assert!(error < limit, "{kernel}: {error:.1e}");
    }
}

#[test]
fn spin_keeps_a_thread_for_its_cycles_and_empty_does_nothing() {
    let mut gpu = Gpu::new("memory", 1, 1);
    let short = gpu.run("spin", (1, 1), &[Arg::U64(100)]);
    let long = gpu.run("spin", (1, 1), &[Arg::U64(10_000)]);
    assert!((100..400).contains(&short) && (10_000..10_400).contains(&long), "{short} {long}");
    assert!(gpu.run("empty", (1, 1), &[]) < 10);
}

#[test]
fn a_wrong_bit_on_one_multiprocessor_changes_only_its_digest() {
    let units = [("mma", Burn::Mma), ("fma", Burn::Ffma), ("fma", Burn::Dfma), ("mad", Burn::Imad)];
    for (unit, burn) in units {
        for every in [1, 7, 100] {
            let mut faults = Faults::default();
            faults.add(&["flip", "sm=2", &format!("unit={unit}"), "bit=9", &format!("every={every}")]).unwrap();
            let mut gpu = Gpu::on(&PTX.modules[1].image(), Device::new(4, 1 << 20, faults, 1));
            let out = gpu.buffer(4 * 16);
            gpu.run_with(burn.kernel(), ([4, 1], 64, 120 << 10), &[Arg::U32(1), Arg::U32(4), out]).unwrap();
            let got = gpu.read_words(out, 16);
            let expected = twin::digest(burn, 1, 4, 64);
            let wrong: Vec<u32> = got.chunks(4).filter(|s| s[1] != expected).map(|s| s[0]).collect();
            assert_eq!(wrong, [2], "{burn:?}, one in {every}");
        }
    }
}
