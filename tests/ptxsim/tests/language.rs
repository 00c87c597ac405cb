//! The interpreter on small PTX of known meaning, and the mistakes it must not let pass.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_ptxsim::{Device, Faults, Flip, Launch, Stuck, Unit, Why, parse};

/// A kernel `k(out)` whose threads each store the `.b32` register `%r9` at `out[thread]`.
fn kernel(declared: &str, body: &str) -> String {
    format!(
        ".version 8.2\n.target sm_80\n.address_size 64\n{declared}\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<9>;\n\
         mov.u32 %r1, %tid.x;\n{body}\nld.param.u64 %rd1, [out];\nmul.wide.u32 %rd2, %r1, 4;\n\
         add.s64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r9;\nret;\n}}\n"
    )
}

fn run_on(device: &mut Device, text: &str, threads: u32) -> Result<Vec<u32>, Why> {
    let kernel = &parse(text).unwrap()[0];
    let out = device.memory.allocate(u64::from(threads) * 4).unwrap();
    let params = out.to_le_bytes();
    let launch = Launch { kernel, grid: [1; 3], block: [threads, 1, 1], shared: 4096, params: &params };
    device.launch(&launch).map_err(|trap| trap.why)?;
    let bytes = device.memory.read(out, threads as usize * 4).unwrap();
    Ok(bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect())
}

fn run(text: &str, threads: u32) -> Result<Vec<u32>, Why> {
    run_on(&mut Device::new(4, 1 << 20, Faults::default(), 1), text, threads)
}

fn all(body: &str, expected: impl Fn(u32) -> u32) {
    let got = run(&kernel("", body), 40).unwrap();
    assert_eq!(got, (0..40).map(expected).collect::<Vec<_>>(), "{body}");
}

#[test]
fn integers_wrap_and_keep_their_signs() {
    all("mul.lo.s32 %r9, %r1, -3;", |t| t.wrapping_mul(3).wrapping_neg());
    all("sub.s32 %r2, %r1, 20; shr.s32 %r9, %r2, 1;", |t| ((t as i32 - 20) >> 1) as u32);
    all("sub.s32 %r2, %r1, 20; shr.u32 %r9, %r2, 28;", |t| t.wrapping_sub(20) >> 28);
    all("sub.s32 %r2, %r1, 20; setp.lt.s32 %p1, %r2, 0; selp.b32 %r9, 1, 2, %p1;", |t| if t < 20 { 1 } else { 2 });
    all("sub.s32 %r2, %r1, 20; setp.lt.u32 %p1, %r2, 5; selp.b32 %r9, 1, 2, %p1;", |t| {
        if (20..25).contains(&t) { 1 } else { 2 }
    });
    all("mul.hi.u32 %r9, %r1, 0x80000000;", |t| t / 2);
    all("mad.lo.s32 %r9, %r1, 5, -7;", |t| (t * 5).wrapping_sub(7));
    all("shl.b32 %r9, 1, %r1;", |t| if t < 32 { 1 << t } else { 0 });
    all("bfi.b32 %r9, %r1, 0xffffffff, 8, 4;", |t| 0xffff_f0ff | (t & 15) << 8);
    let upper = "cvt.u64.u32 %rd4, %r1; mov.u64 %rd5, 7; bfi.b64 %rd6, %rd4, %rd5, 32, 32; shr.u64 %rd7, %rd6, 32; \
                 cvt.u32.u64 %r2, %rd7; cvt.u32.u64 %r3, %rd6; add.s32 %r9, %r2, %r3;";
    all(upper, |t| t + 7);
}

#[test]
fn half_precision_is_the_nearest_and_back() {
    // What is rounded, its binary16, and what that is as an f32: halves to even, the smallest steps, too much, no number.
    let cases = [
        (1.0_f32, 0x3c00, 1.0_f32),
        (-0.333_333_34, 0xb555, -0.333_251_95),
        (2049.0, 0x6800, 2048.0),
        (2051.0, 0x6802, 2052.0),
        (65519.0, 0x7bff, 65504.0),
        (65520.0, 0x7c00, f32::INFINITY),
        (f32::INFINITY, 0x7c00, f32::INFINITY),
        (-1e30, 0xfc00, f32::NEG_INFINITY),
        (6.103_515_6e-5, 0x0400, 6.103_515_6e-5),
        (6.1e-5, 0x03ff, 6.097_555e-5),
        (5.96e-8, 0x0001, 5.960_464_5e-8),
        (2.9e-8, 0x0000, 0.0),
        (-0.0, 0x8000, -0.0),
    ];
    for (number, half, back) in cases {
        let to_half =
            format!("mov.f32 %f1, 0f{:08X}; cvt.rn.f16.f32 %rs1, %f1; cvt.u32.u16 %r9, %rs1;", number.to_bits());
        all(&to_half, |_| half);
        let to_float = format!("mov.u16 %rs1, {half}; cvt.f32.f16 %f1, %rs1; mov.b32 %r9, %f1;");
        all(&to_float, |_| back.to_bits());
    }
    all("mov.f32 %f1, 0f7FC00000; cvt.rn.f16.f32 %rs1, %f1; cvt.u32.u16 %r9, %rs1;", |_| 0x7fff);
}

#[test]
fn wide_values_split_and_join() {
    let body = "mul.wide.u32 %rd4, %r1, 0x10001; mov.b64 {%r2, %r3}, %rd4; mov.b64 %rd5, {%r3, %r2}; \
                shr.u64 %rd6, %rd5, 32; cvt.u32.u64 %r9, %rd6;";
    all(body, |t| t * 0x10001);
}

#[test]
fn floats_are_rounded_once_by_fma_and_twice_without() {
    let x = 1.0_f32 + 2.0_f32.powi(-12);
    let bits = format!("0f{:08X}", x.to_bits());
    let fma = format!("mov.f32 %f1, {bits}; fma.rn.f32 %f2, %f1, %f1, 0fBF800000; mov.b32 %r9, %f2;");
    all(&fma, |_| x.mul_add(x, -1.0).to_bits());
    let two = format!("mov.f32 %f1, {bits}; mul.f32 %f2, %f1, %f1; add.f32 %f3, %f2, 0fBF800000; mov.b32 %r9, %f3;");
    all(&two, |_| (x * x - 1.0).to_bits());
    assert_ne!(x.mul_add(x, -1.0), x * x - 1.0);
}

#[test]
fn a_negative_number_is_a_large_one_where_there_are_no_signs() {
    all("sub.s32 %r2, %r1, 36; max.u32 %r9, %r2, -32;", |t| t.wrapping_sub(36).max(32_u32.wrapping_neg()));
    all("min.u32 %r9, %r1, -32;", |t| t);
}

#[test]
fn quotients_and_roots_are_rounded_to_the_nearest() {
    let of = |body: &str, expected: &dyn Fn(f32) -> f32| {
        let body = format!("cvt.rn.f32.u32 %f1, %r1; {body} mov.b32 %r9, %f2;");
        all(&body, |t| expected(t as f32).to_bits());
    };
    of("div.rn.f32 %f2, %f1, 0f40E00000;", &|x| x / 7.0);
    of("rcp.rn.f32 %f2, %f1;", &|x| 1.0 / x);
    of("sqrt.rn.f32 %f2, %f1;", &|x| x.sqrt());
    of("max.f32 %f2, %f1, 0f40E00000;", &|x| x.max(7.0));
    all("cvt.rn.f32.u32 %f1, %r1; mul.f32 %f2, %f1, 0f3F666666; cvt.rzi.u32.f32 %r9, %f2;", |t| {
        (t as f32 * 0.9) as u32
    });
}

#[test]
fn bf16_is_the_nearest_and_of_two_the_even_one() {
    // 1 + 2^-8 lies between two of them, 1 + 3 * 2^-8 as well; a little more than the first is nearer to the upper one.
    for (bits, nearest) in
        [(0x3f80_8000_u32, 0x3f80), (0x3f81_8000, 0x3f82), (0x3f80_8001, 0x3f81), (0x7fc0_0000, 0x7fff)]
    {
        let body = format!("mov.f32 %f1, 0f{bits:08X}; cvt.rn.bf16x2.f32 %r9, %f1, 0f40000000;");
        all(&body, |_| nearest << 16 | 0x4000);
    }
}

#[test]
fn what_is_no_number_is_compared_as_the_word_says() {
    for (word, holds) in [("neu", 1), ("leu", 1), ("ne", 2), ("le", 2), ("eq", 2)] {
        let body = format!("setp.{word}.f32 %p1, 0f7FC00000, 0f3F800000; selp.b32 %r9, 1, 2, %p1;");
        all(&body, |_| holds);
    }
    // The last letter of `lt.u32` is of its type.
    all("setp.lt.u32 %p1, %r1, 5; selp.b32 %r9, 1, 2, %p1;", |t| if t < 5 { 1 } else { 2 });
}

#[test]
fn lanes_part_and_meet_again() {
    let body = "mov.u32 %r9, 0; and.b32 %r2, %r1, 7; $top: setp.eq.s32 %p1, %r2, 0; @%p1 bra $end; \
                add.s32 %r9, %r9, %r2; sub.s32 %r2, %r2, 1; bra $top; $end: add.s32 %r9, %r9, 100;";
    all(body, |t| 100 + (1..=t & 7).sum::<u32>());
}

#[test]
fn shuffles_move_values_between_lanes() {
    let with = |how: &str| format!("shfl.sync.{how}.b32 %r9|%p1, %r1, 1, 31, -1;");
    let got = |how: &str| run(&kernel("", &with(how)), 32).unwrap();
    assert_eq!(got("bfly"), (0..32).map(|t| t ^ 1).collect::<Vec<u32>>());
    assert_eq!(got("down"), (0..32).map(|t| (t + 1).min(31)).collect::<Vec<u32>>());
    assert_eq!(got("idx"), vec![1; 32]);
}

#[test]
fn a_shuffle_whose_partner_left_is_a_deadlock_and_not_a_guess() {
    let body = "setp.gt.u32 %p1, %r1, 15; @%p1 bra $far; shfl.sync.bfly.b32 %r9|%p2, %r1, 1, 31, -1; \
                $far: bar.sync 0;";
    assert_eq!(run(&kernel("", body), 32), Err(Why::Deadlock));
}

/// Each thread writes its number to shared memory and reads its neighbour's, `between` them.
fn neighbour(between: &str) -> String {
    let body = format!(
        "mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3; st.shared.u32 [%r4], %r1; {between} \
         xor.b32 %r5, %r3, 128; add.s32 %r6, %r2, %r5; ld.shared.u32 %r9, [%r6];"
    );
    kernel(".extern .shared .align 16 .b8 tile[];", &body)
}

#[test]
fn a_barrier_orders_shared_memory_and_its_absence_is_seen() {
    let with = neighbour("bar.sync 0;");
    let without = neighbour("");
    let expected: Vec<u32> = (0..64).map(|t| t ^ 32).collect();
    assert_eq!(run(&with, 64).unwrap(), expected);
    let seen = (0..16).any(|seed| {
        let mut device = Device::new(1, 1 << 20, Faults::default(), seed);
        run_on(&mut device, &without, 64).unwrap() != expected
    });
    assert!(seen, "16 schedules and none shows the missing barrier");
}

#[test]
fn threads_that_never_reach_a_barrier_are_not_waited_for_when_they_left() {
    let body = "setp.gt.u32 %p1, %r1, 31; @%p1 ret; bar.sync 0; mov.u32 %r9, 7;";
    let got = run(&kernel("", body), 64).unwrap();
    assert_eq!(got[..32], [7; 32]);
    assert_eq!(got[32..], [0xa5a5_a5a5; 32], "nobody wrote these: fresh memory is poisoned");
}

#[test]
fn a_copy_that_nobody_waited_for_is_late_in_some_order() {
    let body = |wait: &str| {
        format!(
            "mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.s32 %r4, %r2, %r3; ld.param.u64 %rd4, [out]; \
             mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd4, %rd5; st.global.u32 [%rd6], %r1; \
             cp.async.ca.shared.global [%r4], [%rd6], 4; cp.async.commit_group; {wait} ld.shared.u32 %r9, [%r4];"
        )
    };
    let text = |wait: &str| kernel(".extern .shared .align 16 .b8 tile[];", &body(wait));
    let good: Vec<u32> = (0..32).collect();
    let ok =
        |text: &str, seed| run_on(&mut Device::new(1, 1 << 20, Faults::default(), seed), text, 32).unwrap() == good;
    assert!((0..8).all(|seed| ok(&text("cp.async.wait_group 0;"), seed)));
    assert!(!(0..8).all(|seed| ok(&text(""), seed)));
    assert!(!(0..8).all(|seed| ok(&text("cp.async.wait_group 1;"), seed)), "one group may still be under way");
}

#[test]
fn a_copy_of_less_than_it_says_ends_with_zeros_and_reads_no_more() {
    let body = |taken: u32| {
        format!(
            "mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3; ld.param.u64 %rd4, [out]; \
             mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd4, %rd5; st.global.u32 [%rd6], %r1; mov.u32 %r5, {taken}; \
             cp.async.ca.shared.global [%r4], [%rd6], 4, %r5; cp.async.commit_group; cp.async.wait_group 0; \
             ld.shared.u32 %r9, [%r4];"
        )
    };
    let text = |taken| kernel(".extern .shared .align 16 .b8 tile[];", &body(taken));
    let got = |taken| run(&text(taken), 32);
    assert_eq!(got(4).unwrap(), (0..32).collect::<Vec<u32>>());
    assert_eq!(got(0).unwrap(), [0; 32]);
    assert!(got(8).is_err(), "more than there is room for");
}

#[test]
fn accesses_outside_and_across_are_stopped() {
    let outside = "ld.param.u64 %rd4, [out]; ld.global.u32 %r9, [%rd4+160];";
    assert!(matches!(run(&kernel("", outside), 40), Err(Why::Outside { space: "global", size: 4, .. })));
    let across = "ld.param.u64 %rd4, [out]; ld.global.u32 %r9, [%rd4+2];";
    assert!(matches!(run(&kernel("", across), 40), Err(Why::Misaligned { size: 4, .. })));
    let shared = "ld.shared.u32 %r9, [4096];";
    assert!(matches!(run(&kernel("", shared), 40), Err(Why::Outside { space: "shared", .. })));
}

#[test]
fn atomics_lose_nothing() {
    let body = "ld.param.u64 %rd4, [out]; mov.u32 %r9, 0; st.global.u32 [%rd4], %r9; bar.sync 0; \
                atom.global.add.u32 %r9, [%rd4], 1; bar.sync 0; ld.global.u32 %r9, [%rd4]; bar.sync 0;";
    assert_eq!(run(&kernel("", body), 96).unwrap(), vec![96; 96]);
}

#[test]
fn faults_are_where_they_were_put_and_nowhere_else() {
    let text = kernel("", "mov.u32 %r2, %smid; mad.lo.s32 %r9, %r2, 0, 0;");
    let flip = Flip { sm: Some(2), unit: Unit::Mad, bit: 5, every: 1 };
    let faults = Faults { flips: vec![flip], ..Faults::default() };
    let wrong = (0..32).filter(|seed| {
        let mut device = Device::new(4, 1 << 20, faults.clone(), *seed);
        run_on(&mut device, &text, 32).unwrap().contains(&32)
    });
    assert!((2..16).contains(&wrong.count()), "one block lands on multiprocessor 2 of 4 about every fourth time");
    let stuck = Faults { stuck: vec![Stuck { offset: 12, bit: 4, one: true }], ..Faults::default() };
    let mut device = Device::new(4, 1 << 20, stuck, 1);
    let got = run_on(&mut device, &kernel("", "mov.u32 %r9, 0;"), 32).unwrap();
    assert_eq!((got[3], got.iter().filter(|v| **v != 0).count()), (16, 1));
}

#[test]
fn what_the_interpreter_does_not_know_it_refuses_by_line() {
    let why = parse(&kernel("", "tex.2d.v4.f32.f32 {%f1,%f1,%f1,%f1}, [%rd1, {%f1,%f1}];")).unwrap_err();
    assert!(why.to_string().contains("tex.2d") && why.line > 8, "{why}");
    assert!(parse(&kernel("", "add.ftz.f32 %f1, %f1, %f1;")).is_err(), "flushing is another instruction");
    assert!(parse(&kernel("", "add.s32 %r1, %r1, nowhere;")).is_err());
}

#[test]
fn clocks_go_by_work_and_not_by_order() {
    let body = "bar.sync 0; mov.u64 %rd4, %clock64; mov.u32 %r2, 0; $top: add.s32 %r2, %r2, 1; \
                setp.lt.u32 %p1, %r2, 100; @%p1 bra $top; bar.sync 0; mov.u64 %rd5, %clock64; sub.s64 %rd6, %rd5, %rd4; \
                cvt.u32.u64 %r9, %rd6;";
    let took = |seed, slow: f64| {
        let faults = Faults { slow: vec![(0, slow)], ..Faults::default() };
        run_on(&mut Device::new(1, 1 << 20, faults, seed), &kernel("", body), 256).unwrap()[0]
    };
    assert!((1..9).all(|seed| took(seed, 1.0) == took(0, 1.0)));
    assert_eq!(took(0, 2.0), 2 * took(0, 1.0));
}

/// A bulk copy of 128 bytes to shared memory behind a barrier that expects `bytes`, and the word of each thread.
fn bulk(fence: &str, bytes: u32, wait: &str) -> String {
    let body = format!(
        "mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; ld.param.u64 %rd4, [out]; mul.wide.u32 %rd5, %r1, 4; \
         add.s64 %rd6, %rd4, %rd5; st.global.u32 [%rd6], %r1; bar.sync 0; setp.ne.s32 %p1, %r1, 0; @%p1 bra $wait; \
         mbarrier.init.shared::cta.b64 [%r2+1024], 1; {fence} \
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2+1024], {bytes}; mov.u32 %r5, 128; \
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd4], %r5, [%r2+1024]; \
         $wait: bar.sync 0; $again: {wait} add.s32 %r4, %r2, %r3; ld.shared.u32 %r9, [%r4];"
    );
    kernel(".extern .shared .align 16 .b8 tile[];", &body)
}

#[test]
fn a_bulk_copy_is_there_when_its_barrier_says_so_and_not_before() {
    let wait = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+1024], 0; @!%p2 bra $again;";
    let with = |fence: &str, bytes, wait: &str, seed| {
        run_on(&mut Device::new(1, 1 << 20, Faults::default(), seed), &bulk(fence, bytes, wait), 32)
    };
    let fence = "fence.proxy.async;";
    let good: Vec<u32> = (0..32).collect();
    assert!((0..16).all(|seed| with(fence, 128, wait, seed).unwrap() == good));
    assert_eq!(with("", 128, wait, 1), Err(Why::Unfenced("shared memory")), "a barrier that the copy does not see");
    let early: Vec<_> = (0..16).map(|seed| with(fence, 128, "", seed)).collect();
    assert!(early.contains(&Err(Why::InFlight)), "still under way at the end");
    assert_eq!(with(fence, 144, wait, 1), Err(Why::Deadlock), "16 bytes more than come");
}
