//! The halves of the all-reduce compute what their twin computes, for any number of GPUs, and a change of them is seen. All
//! GPUs' buffers lie on one simulated device here; `links.rs` has them on several.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

#[expect(dead_code, reason = "other tests move other things")]
mod support;

use muster_gpu::code::PTX;
use muster_gpu::twin;
use muster_ptxsim::Why;
use support::{Arg, Gpu};

const SEED: u32 = 77;

fn text() -> String {
    let module = PTX.modules.iter().find(|module| module.name == "peer").unwrap();
    String::from_utf8(module.image()).unwrap().trim_end_matches('\0').to_owned()
}

fn table(gpu: &mut Gpu, buffers: &[Arg]) -> Arg {
    let words = |arg: &Arg| match arg {
        Arg::U64(at) => [*at as u32, (*at >> 32) as u32],
        _ => panic!("no address"),
    };
    gpu.words(&buffers.iter().flat_map(words).collect::<Vec<u32>>())
}

/// What each of `count` GPUs holds after an all-reduce of `chunk` elements each.
fn all_reduced(text: &str, (count, chunk): (u32, u64), seed: u64) -> Result<Vec<Vec<u32>>, Why> {
    let mut gpu = Gpu::from_text(text, 3, seed);
    let vectors = u64::from(count) * chunk;
    let inputs: Vec<Arg> = (0..count).map(|_| gpu.buffer(vectors * 16)).collect();
    let outputs: Vec<Arg> = (0..count).map(|_| gpu.buffer(vectors * 16)).collect();
    let (from, sums) = (table(&mut gpu, &inputs), table(&mut gpu, &outputs));
    let shape = |blocks| ([blocks, 1], 32, 0);
    for (rank, input) in inputs.iter().enumerate() {
        let arguments = [*input, Arg::U64(vectors), Arg::U32(SEED), Arg::U32(rank as u32)];
        gpu.run_with("fill_summands", shape(2), &arguments)?;
    }
    for (rank, output) in outputs.iter().enumerate() {
        let arguments = [*output, from, Arg::U32(count), Arg::U64(rank as u64 * chunk), Arg::U64(chunk)];
        gpu.run_with("reduce_peers", shape(2), &arguments)?;
    }
    for (rank, output) in outputs.iter().enumerate() {
        let arguments = [*output, sums, Arg::U32(count), Arg::U32(rank as u32), Arg::U64(chunk)];
        // Not a multiple of the peers, so that some are served by more blocks than others.
        gpu.run_with("gather_peers", shape(count + 1), &arguments)?;
    }
    Ok(outputs.iter().map(|output| gpu.read_words(*output, vectors * 4)).collect())
}

fn expected((count, chunk): (u32, u64)) -> Vec<u32> {
    (0..u64::from(count) * chunk * 4).map(|word| twin::total(SEED, count, word).to_bits()).collect()
}

#[test]
fn an_all_reduce_leaves_the_sum_of_all_on_everybody() {
    for (seed, shape) in [(1, (2, 300)), (2, (3, 37)), (5, (8, 130)), (9, (5, 1))] {
        let got = all_reduced(&text(), shape, seed).unwrap();
        assert!(got.iter().all(|output| *output == expected(shape)), "{shape:?}");
    }
}

#[test]
fn sums_are_checked_word_by_word() {
    let mut gpu = Gpu::from_text(&text(), 3, 4);
    let (count, pages, vectors) = (4, 3, 40_u32);
    let mut words: Vec<u32> =
        (0..u64::from(pages * vectors * 4)).map(|word| twin::total(SEED, count, word).to_bits()).collect();
    words[vectors as usize * 4 + 9] ^= 0x400;
    words[vectors as usize * 4 + 70] ^= 0x1;
    let (from, out) = (gpu.words(&words), gpu.buffer(u64::from(pages) * 16));
    let arguments = [from, Arg::U32(pages), Arg::U32(vectors), Arg::U32(SEED), Arg::U32(count), out];
    gpu.run("check_sums", (2, 64), &arguments);
    let none = [0, 0, u32::MAX, 0];
    assert_eq!(gpu.read_words(out, 12), [none, [2, 0x401, 9, 0], none].concat());
}

#[test]
fn a_digest_tells_every_bit_and_its_place_and_no_order_of_work() {
    let words: Vec<u32> = (0..401_u32).map(|at| at.wrapping_mul(0x9e37_79b9)).collect();
    let digest = |words: &[u32], (sms, blocks, seed)| {
        let mut gpu = Gpu::from_text(&text(), sms, seed);
        let (from, out) = (gpu.words(words), gpu.words(&[0; 4]));
        gpu.run("digest_words", (blocks, 64), &[from, Arg::U64(words.len() as u64), Arg::U32(5), out]);
        gpu.read_words(out, 2)
    };
    let right = digest(&words, (3, 2, 1));
    assert_eq!(digest(&words, (2, 7, 9)), right);
    for (at, bit) in [(0, 0), (201, 31), (400, 17)] {
        let mut other = words.clone();
        other[at] ^= 1 << bit;
        let found = digest(&other, (3, 2, 1));
        assert!(found[0] != right[0] && found[1] != right[1], "{found:?} {right:?}");
    }
    let mut moved = words.clone();
    moved.swap(8, 300);
    assert_ne!(digest(&moved, (3, 2, 1)), right);
}

/// One change of a kernel's text, and whether any shape shows it.
fn caught(kernel: &str, from: &str, to: &str) -> bool {
    let text = text();
    let body = text.find(&format!(".entry {kernel}")).unwrap();
    let at = body + text[body..].find(from).unwrap_or_else(|| panic!("no {from}"));
    let mutant = format!("{}{}{}", &text[..at], to, &text[at + from.len()..]);
    let right = |shape| all_reduced(&mutant, shape, 3).is_ok_and(|got| got.iter().all(|o| *o == expected(shape)));
    ![(3, 350), (5, 37)].into_iter().all(right)
}

#[test]
fn a_reduction_that_misses_adds_twice_or_stops_early_is_caught() {
    assert!(caught("reduce_peers", "add.f32", "sub.f32"));
    assert!(caught("reduce_peers", "mul.lo.s64", "add.s64"), "past the end of the chunk");
    assert!(caught("reduce_peers", "setp.ge.u64", "setp.lt.u64"), "one of two loops never runs");
}

#[test]
fn a_gather_from_the_wrong_peer_or_place_is_caught() {
    assert!(caught("gather_peers", "rem.u32", "div.u32"));
    assert!(
        caught("gather_peers", "ld.global.u64", "mov.u64 %rd1, 0; // ") || caught("gather_peers", "selp.u32", "// ")
    );
    assert!(caught("gather_peers", "mul.lo.s64", "add.s64"), "where the chunk begins");
}
