//! Work that all GPUs of a node do together, on a driver that executes the worker's kernels on the CPU: what is said of good
//! nodes, and of a slow way, a slow or wrong GPU and a missing or broken NCCL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod process;

use std::sync::LazyLock;

use muster_wire::Outcome;
use process::{Driver, Said, worker};

const THREE: &str = "devices 3\nsms 2\nthreads 64\nmemory 2097152\n";
const OVERLAP: &str = "gpu-comm-overlap";
const SHARDING: &str = "gpu-sharding-matmul";

fn own(settings: &str, benchmark: &str) -> Said {
    worker(Driver::new(&format!("{THREE}{settings}")).path(), &["run", benchmark, "smoke", "all"])
}

fn with_nccl(settings: &str, benchmark: &str) -> Said {
    let driver = Driver::with(&format!("{THREE}{settings}"), &["libnccl.so.2"]);
    worker(driver.path(), &["run", benchmark, "smoke", "all"])
}

/// What sound GPUs do, computing beside sums and sharding, by own kernels and by NCCL.
static SOUND: [[LazyLock<Said>; 2]; 2] = [
    [LazyLock::new(|| own("", OVERLAP)), LazyLock::new(|| with_nccl("", OVERLAP))],
    [LazyLock::new(|| own("", SHARDING)), LazyLock::new(|| with_nccl("", SHARDING))],
];

fn sound(benchmark: &str) -> [(&'static Said, &'static str); 2] {
    let [own, nccl] = &SOUND[usize::from(benchmark == SHARDING)];
    [(own, "own-ptx"), (nccl, "own-ptx+nccl-2.21")]
}

fn failed(said: Said) -> String {
    match said.outcome {
        Outcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

fn median(said: &Said, metric: &str) -> f64 {
    let series = said.series.get(metric).unwrap_or_else(|| panic!("no {metric} in {:?}", said.series.keys()));
    let mut values = series.values.clone();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn what_computing_loses_beside_an_all_reduce_is_told_for_each_gpu_and_for_all() {
    for (said, engine) in sound(OVERLAP) {
        assert_eq!(said.outcome, Outcome::Done);
        for kind in ["matmul", "mul"] {
            for gpu in 0..3 {
                let alone = median(said, &format!("{OVERLAP}/{kind}:{gpu}@own-ptx"));
                let beside = median(said, &format!("{OVERLAP}/{kind}-beside-all-reduce:{gpu}@{engine}"));
                // Streams run side by side here and cost each other nothing.
                assert!(alone > 0.0 && (beside / alone - 1.0).abs() < 0.05, "{kind}: {alone} alone, {beside} beside");
            }
            let of_all = |name: &str| median(said, &format!("{OVERLAP}/{name}@{engine}"));
            let (alone, beside) = (of_all("all-reduce"), of_all(&format!("all-reduce-beside-{kind}")));
            assert!((beside / alone - 1.0).abs() < 0.05, "{alone} alone, {beside} beside {kind}");
            assert!((of_all(&format!("overlap-{kind}")) - 1.0).abs() < 0.05);
            assert!(of_all(&format!("{kind}-step")) >= beside);
        }
        let ours = said.series.keys().filter(|name| !name.contains("/temperature") && !name.contains("/power"));
        assert_eq!(ours.filter(|name| !name.contains("/clock")).count(), 12 + 7);
    }
}

#[test]
fn gpus_that_do_one_thing_at_a_time_take_as_long_as_both_alone() {
    let serial: String = (0..3).map(|gpu| format!("gpu {gpu} serial\n")).collect();
    let said = own(&serial, OVERLAP);
    assert_eq!(said.outcome, Outcome::Done);
    for kind in ["matmul", "mul"] {
        let of = |name: &str| median(&said, &format!("{OVERLAP}/{name}@own-ptx"));
        let alone = (0..3).map(|gpu| of(&format!("{kind}:{gpu}"))).fold(0.0, f64::max);
        let (sum, step) = (of("all-reduce"), of(&format!("{kind}-step")));
        assert!((0.9..1.1).contains(&(step / (alone + sum))), "{kind}: {alone} and {sum} alone, {step} together");
        let overlap = alone.max(sum) / step;
        assert!(overlap < 0.99 && (of(&format!("overlap-{kind}")) / overlap - 1.0).abs() < 0.05, "{kind}: {overlap}");
    }
}

#[test]
fn a_slow_gpu_is_slow_alone_and_a_slow_way_slows_what_goes_over_it() {
    let [(good, _), _] = sound(OVERLAP);
    let slow = own("gpu 1 slow sm=0 factor=3\ngpu 1 slow sm=1 factor=3\n", OVERLAP);
    for gpu in 0..3 {
        let metric = format!("{OVERLAP}/matmul:{gpu}@own-ptx");
        let ratio = median(&slow, &metric) / median(good, &metric);
        assert_eq!(ratio > 1.5, gpu == 1, "GPU {gpu}: {ratio}");
    }
    for (benchmark, of_all, alone) in
        [(OVERLAP, "all-reduce", "matmul:1"), (SHARDING, "bf16-all-reduce", "bf16-no-sharding:1")]
    {
        // Sharded products are slow to simulate: NCCL's sums are seen beside computing.
        let ways = if benchmark == OVERLAP { 2 } else { 1 };
        let runs = [own as fn(&str, &str) -> Said, with_nccl];
        for ((good, engine), run) in sound(benchmark).into_iter().zip(runs).take(ways) {
            let slow = run("link 0 2 slow factor=400\n", benchmark);
            assert_eq!(slow.outcome, Outcome::Done);
            let ratio = |metric: String| median(&slow, &metric) / median(good, &metric);
            assert!(ratio(format!("{benchmark}/{of_all}@{engine}")) > 1.5);
            assert!((ratio(format!("{benchmark}/{alone}@own-ptx")) - 1.0).abs() < 0.05);
        }
    }
}

#[test]
fn a_product_is_measured_whole_on_each_gpu_and_shared_out_over_all() {
    for (said, engine) in sound(SHARDING) {
        assert_eq!(said.outcome, Outcome::Done);
        for precision in ["bf16", "fp32"] {
            for gpu in 0..3 {
                assert!(median(said, &format!("{SHARDING}/{precision}-no-sharding:{gpu}@own-ptx")) > 0.0);
            }
            for way in ["all-reduce", "all-gather"] {
                assert!(median(said, &format!("{SHARDING}/{precision}-{way}@{engine}")) > 0.0);
            }
        }
    }
}

/// A GPU whose memory does not keep the first operand: each row of so many floats has one that is far too large.
fn forgets(gpu: usize, floats: usize) -> String {
    (0..24).map(|row| format!("gpu {gpu} stuck offset={} bit=6 value=1\n", row * floats * 4 + 3)).collect()
}

#[test]
fn a_gpu_that_computes_wrongly_is_named_whatever_the_others_took_over_from_it() {
    let why = failed(own(&forgets(1, 12), OVERLAP));
    assert!(why.starts_with("GPU 1: matmul: it computes other bits than the other GPUs: "), "{why}");
    assert!(!why.contains("GPU 0") && !why.contains("GPU 2"), "{why}");
    let why = failed(own("gpu 1 flip sm=1 unit=fma bit=22 every=40\n", OVERLAP));
    assert!(why.starts_with("GPU 1: matmul beside an all-reduce gave other bits later: "), "{why}");
    assert!(!why.contains("GPU 0") && !why.contains("GPU 2"), "{why}");
    let why = failed(own("gpu 2 flip sm=all unit=mma bit=20 every=2\n", SHARDING));
    assert!(why.split("; ").all(|said| said.starts_with("GPU 2: ")), "{why}");
    for mode in ["no-sharding", "all-reduce", "all-gather"] {
        let begin = format!("GPU 2: its part of bf16-{mode}: it computes other bits than the other GPUs: ");
        assert!(why.contains(&begin), "{why}");
    }
}

#[test]
fn gpus_that_are_all_wrong_alike_do_not_pass_either() {
    for (benchmark, floats, what) in
        [(OVERLAP, 12, " of matmul is "), (SHARDING, 48, " of its part of bf16-no-sharding is ")]
    {
        let all: String = (0..3).map(|gpu| forgets(gpu, floats)).collect();
        let why = failed(own(&all, benchmark));
        assert!(why.contains("GPU 0: element (") && why.contains(what), "{why}");
    }
}

#[test]
fn of_two_gpus_that_disagree_the_one_that_is_wrong_is_told_by_its_elements() {
    let why = failed(own(&format!("devices 2\n{}", forgets(1, 12)), OVERLAP));
    assert!(why.starts_with("matmul: GPUs disagree, and no more than half of them agree: "), "{why}");
    assert!(why.contains("GPU 1: element (") && !why.contains("GPU 0: "), "{why}");
}

#[test]
fn data_that_changes_on_its_way_is_noticed_beside_computing_and_in_what_came_together() {
    let why = failed(own("link 2 1 flip bit=3 every=700\n", OVERLAP));
    assert!(why.starts_with("all-reduce beside matmul: GPU "), "{why}");
    let why = failed(with_nccl("link 1 2 flip bit=3 every=700\n", OVERLAP));
    assert!(why.starts_with("all-reduce beside matmul: GPU 2 holds "), "{why}");
    let why = failed(with_nccl("link 1 2 flip bit=6 every=1003\n", SHARDING));
    assert!(why.starts_with("GPU 2: bf16-all-reduce, what came together: it computes other bits"), "{why}");
}

#[test]
fn without_nccl_and_without_direct_ways_there_is_nothing_to_measure() {
    for benchmark in [OVERLAP, SHARDING] {
        let closed = "link 0 1 none\nlink 1 0 none\n";
        let words = "no libnccl.so.2 on this node, and GPU 0 has no direct way to all others";
        assert_eq!(own(closed, benchmark).outcome, Outcome::NotApplicable(words.to_owned()));
        let [(without, _), _] = sound(benchmark);
        assert_eq!(without.fact("gpu.0.nccl"), "not used: no libnccl.so.2 on this node");
    }
    assert_eq!(with_nccl("link 0 1 none\nlink 1 0 none\n", OVERLAP).outcome, Outcome::Done, "NCCL finds a way");
}

#[test]
fn a_broken_nccl_speaks_for_itself() {
    for benchmark in [OVERLAP, SHARDING] {
        let why = failed(with_nccl("nccl ncclCommInitAll 2\n", benchmark));
        assert_eq!(why, "ncclCommInitAll: unhandled system error (run with NCCL_DEBUG=INFO for details)");
        let why = failed(with_nccl("nccl ncclAllReduce 1\n", benchmark));
        assert!(why.contains("ncclAllReduce: unhandled cuda error"), "{why}");
    }
}

#[test]
fn a_product_without_room_is_left_out_and_says_what_it_needs() {
    let said = own("memory 8192\n", SHARDING);
    let Outcome::NotApplicable(why) = &said.outcome else { panic!("{said:?}") };
    assert!(why.starts_with("bf16-no-sharding needs 0.0 MiB, and 0.0 MiB are free on GPU 0; "), "{why}");
}
