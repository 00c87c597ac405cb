//! The kernels of sm_90a compute what their twins compute, in whatever order the hardware may choose, and not by luck: what
//! they do without one of their fences, waits or places is seen. Their text is compiled for this test alone.

use muster_gpu::twin::{self, Burn, Number};
use muster_ptxsim::{Device, Faults, Why};

use crate::support::{Arg, Gpu};

const TEXT: &str = include_str!("../../prebuilt/wgmma.sm_90a.ptx");
const KINDS: [(&str, Number); 5] = [
    ("wgmma_bf16", Number::Bf16),
    ("wgmma_fp16", Number::Fp16),
    ("wgmma_tf32", Number::Tf32),
    ("wgmma_fp8", Number::Fp8),
    ("wgmma_int8", Number::Int8),
];
/// Four stages of 48 KiB and their barriers.
const SHARED: usize = (192 << 10) + 64;

fn operand(gpu: &mut Gpu, number: Number, seed: u32, bytes: u64) -> Arg {
    let (keep, set) = number.mask();
    let word =
        |pair: u64| u64::from(twin::pattern(seed, 2 * pair)) | u64::from(twin::pattern(seed, 2 * pair + 1)) << 32;
    let words: Vec<u64> = (0..bytes / 8).map(|pair| word(pair) & keep | set).collect();
    gpu.words(&words.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect::<Vec<u32>>())
}

/// An operand row by row.
fn rows(number: Number, seed: u32, count: u64, slices: u64) -> Vec<f64> {
    let deep = slices * 128 / number.size() as u64;
    (0..count).flat_map(|row| (0..deep).map(move |k| number.element(seed, number.packed(slices, row, k)))).collect()
}

/// Error of a product of `m` rows and `n` columns, with so many blocks.
fn product(
    text: &str,
    (kernel, number): (&str, Number),
    seed: u64,
    ((m, n, slices), blocks): ((u32, u32, u32), u32),
) -> Result<f64, Why> {
    let mut gpu = Gpu::from_text(text, 3, seed);
    let bytes = |rows: u32| u64::from(rows * slices * 128);
    let (a, b) = (operand(&mut gpu, number, 1, bytes(m)), operand(&mut gpu, number, 2, bytes(n)));
    let c = gpu.buffer(u64::from(m * n) * 4);
    gpu.run_with(kernel, ([blocks, 1], 288, SHARED), &[c, a, b, Arg::U32(m), Arg::U32(n), Arg::U32(slices)])?;
    let got = crate::sums(number, &gpu.read_words(c, u64::from(m * n)));
    let (left, right) = (rows(number, 1, m.into(), slices.into()), rows(number, 2, n.into(), slices.into()));
    Ok(twin::error(&got, &twin::transposed_product(&left, &right, slices as usize * 128 / number.size())))
}

#[test]
fn products_of_warpgroups_are_their_twins_for_every_order_and_shape() {
    for kind in KINDS {
        for seed in [1, 2_u64] {
            // Whole tiles, fewer blocks than tiles or more, slices that go round the stages or not.
            let draw = |word, below| twin::pattern(seed as u32 ^ 0x55, word) % below + 1;
            let shape = ((128 * draw(1, 2), 256 * draw(2, 2), draw(3, 6)), draw(4, 3));
            let error = product(TEXT, kind, seed, shape).unwrap();
            let limit = if kind.1 == Number::Int8 { 0.0 } else { 1e-6 };
            assert!(error <= limit, "{kind:?} {shape:?}: {error:.1e}");
        }
    }
}

#[test]
fn tiles_are_each_done_once_by_any_number_of_blocks() {
    // More rows of tiles than are done before the next column of them.
    let shape = (17 * 128, 256, 1);
    assert_eq!(product(TEXT, KINDS[4], 1, (shape, 5)).unwrap(), 0.0);
}

/// The text with one change of `kernel`: number `which` of those that match.
fn changed(kernel: &str, which: usize, (from, to): (&str, &str)) -> String {
    let begin = TEXT.find(&format!(".entry {kernel}(")).unwrap();
    let end = begin + TEXT[begin..].find("\n}").unwrap();
    let (at, _) = TEXT[begin..end].match_indices(from).nth(which).unwrap_or_else(|| panic!("no {from} in {kernel}"));
    format!("{}{}{}", &TEXT[..begin + at], to, &TEXT[begin + at + from.len()..])
}

/// What becomes of products with that change, in several orders: what stops them, or `None` for a wrong result.
fn fate(change: &str) -> Option<Option<Why>> {
    (1..=24).find_map(|seed| match product(change, KINDS[0], seed, ((128, 256, 6), 1)) {
        Ok(error) if error < 1e-6 => None,
        Ok(_) => Some(None),
        Err(why) => Some(Some(why)),
    })
}

#[test]
fn a_product_without_a_fence_or_a_wait_is_stopped() {
    let without = |what: &str, which| fate(&changed("wgmma_bf16", which, (what, "")));
    assert_eq!(without("wgmma.fence.sync.aligned;", 0), Some(Some(Why::Unfenced("registers"))));
    assert_eq!(without("fence.proxy.async;", 0), Some(Some(Why::Unfenced("shared memory"))));
    // The last wait: sums are stored while they are still being made.
    assert_eq!(without("wgmma.wait_group.sync.aligned 0;", 0), Some(Some(Why::InFlight)));
    assert_eq!(without("wgmma.commit_group.sync.aligned;", 0), Some(Some(Why::InFlight)));
}

/// The statement of the bf16 product that begins like this, number `which` of them.
fn statement(begin: &str, which: usize) -> &'static str {
    let body = &TEXT[TEXT.find(".entry wgmma_bf16(").unwrap()..];
    let (at, _) = body.match_indices(begin).nth(which).unwrap_or_else(|| panic!("no {begin}"));
    &body[at..=at + body[at..].find(';').unwrap()]
}

#[test]
fn a_stage_that_is_used_too_early_or_too_late_is_caught() {
    let change = |from: &str, to: &str| fate(&changed("wgmma_bf16", 0, (from, to)));
    // One group less is waited for: the stage is given back while products still read it.
    assert!(change("wait_group.sync.aligned 1;", "wait_group.sync.aligned 2;").is_some());
    // Nobody gives stages back: the fetching warp waits for ever.
    assert_eq!(change(statement("mbarrier.arrive.shared", 0), ""), Some(Some(Why::Deadlock)));
    // The fetching warp does not ask whether a stage is free; the others not whether it is full.
    for which in 0..2 {
        let wait = statement("mbarrier.try_wait", which);
        assert!(change(wait, "setp.eq.u32 %over, 0, 0;").is_some(), "{wait}");
    }
    // Fewer bytes announced than come; barriers used before they are made.
    let body = &TEXT[TEXT.find(".entry wgmma_bf16(").unwrap()..];
    let bytes = body.lines().find(|line| line.contains("mov.u32") && line.ends_with("49152;")).unwrap();
    assert!(change(bytes, &bytes.replace("49152", "32768")).is_some());
    assert!(change(statement("bar.sync", 0), "").is_some());
}

#[test]
fn a_wrong_descriptor_a_wrong_swizzle_and_a_lost_lane_are_caught() {
    let descriptor = |swizzle: u64, stride: u64| (swizzle << 62 | stride << 32 | 1 << 16).to_string();
    let change = |to: &str| fate(&changed("wgmma_bf16", 1, (&descriptor(1, 64), to)));
    assert!(change(&descriptor(1, 32)).is_some(), "eight rows are 1024 bytes");
    assert!(change(&descriptor(0, 64)).is_some(), "what was written swizzled is read so");
    assert!(change(&descriptor(2, 64)).is_some(), "and by the same number of rows");
    // The comparison before the first product asks who is lane 0.
    let body = &TEXT[TEXT.find(".entry wgmma_bf16(").unwrap()..];
    let before = &body[..body.find("wgmma.mma_async").unwrap()];
    let lane = before[before.rfind("setp.ne.s32").unwrap()..].split_whitespace().nth(1).unwrap().trim_end_matches(',');
    let lost = changed("wgmma_bf16", 0, ("wgmma.mma_async", &format!("@{lane} wgmma.mma_async")));
    assert_eq!(fate(&lost), Some(Some(Why::Deadlock)), "lane 0 does not take part");
}

#[test]
fn the_burn_of_warpgroups_is_the_digest_of_its_twin_and_a_flip_is_seen() {
    for seed in [11_u32, 12] {
        let mut faults = Faults::default();
        faults.add(&["flip", "sm=1", "unit=mma", "bit=9", "every=40"]).unwrap();
        let mut gpu = Gpu::on(TEXT.as_bytes(), Device::new(3, 1 << 20, faults, u64::from(seed)));
        let out = gpu.buffer(3 * 16);
        gpu.run_with("burn_wgmma", ([3, 1], 256, 120 << 10), &[Arg::U32(seed), Arg::U32(2), out]).unwrap();
        let expected = twin::digest(Burn::Wgmma, seed, 2, 256);
        let shares = gpu.read_words(out, 12);
        let wrong: Vec<u32> = shares.chunks(4).filter(|share| share[1] != expected).map(|share| share[0]).collect();
        assert_eq!(wrong, [1], "{shares:x?}, not {expected:x}");
    }
}

#[test]
fn a_burn_without_a_fence_or_a_wait_is_stopped() {
    let burn = |text: &str, threads: u32| {
        let mut gpu = Gpu::from_text(text, 1, 1);
        let out = gpu.buffer(16);
        gpu.run_with("burn_wgmma", ([1, 1], threads, 0), &[Arg::U32(1), Arg::U32(1), out]).map(|_| ())
    };
    let without = |what: &str| burn(&changed("burn_wgmma", 0, (what, "")), 256);
    assert_eq!(burn(TEXT, 256), Ok(()));
    assert_eq!(burn(TEXT, 96), Err(Why::Deadlock), "three warps are no warpgroup");
    assert_eq!(without("wgmma.fence.sync.aligned;"), Err(Why::Unfenced("registers")));
    assert_eq!(without("fence.proxy.async;"), Err(Why::Unfenced("shared memory")));
    assert_eq!(without("wgmma.wait_group.sync.aligned 0;"), Err(Why::InFlight));
}
