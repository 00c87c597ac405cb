//! Training on a driver that executes the worker's kernels on the CPU: what is said of a good GPU, of one that computes
//! wrongly, and of one without the room.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod process;

use std::sync::OnceLock;

use muster_gpu::train::SEED;
use muster_tape::{Cpu, Model};
use muster_wire::Outcome;
use process::{Driver, Said, worker};

const SMALL: &str = "sms 2\nmemory 33554432\nclock_khz 1000\n";

fn run(settings: &str, benchmark: &str) -> Said {
    worker(Driver::new(&format!("{SMALL}{settings}")).path(), &["run", benchmark, "smoke", "0"])
}

/// With cuBLASLt on the node, and room for its workspace.
fn with_library(settings: &str, benchmark: &str) -> Said {
    let driver = Driver::with(&format!("{SMALL}memory 67108864\n{settings}"), &["libcublasLt.so.12"]);
    worker(driver.path(), &["run", benchmark, "smoke", "0"])
}

/// The fastest of them, with nothing wrong.
fn usual() -> &'static Said {
    static USUAL: OnceLock<Said> = OnceLock::new();
    USUAL.get_or_init(|| with_library("", "gpu-train-vgg"))
}

/// What a sound GPU says of LSTMs.
fn good() -> &'static Said {
    static GOOD: OnceLock<Said> = OnceLock::new();
    GOOD.get_or_init(|| run("", "gpu-train-lstm"))
}

fn golden(said: &Said, precision: &str) -> (String, String) {
    golden_of(said, &format!("lstm-nano-{precision}"))
}

/// What was computed, and the digest of it.
fn golden_of(said: &Said, what: &str) -> (String, String) {
    let text = said.fact(&format!("gpu.0.golden.{what}"));
    let (work, digest) = text.rsplit_once(": ").unwrap();
    (work.to_owned(), digest.to_owned())
}

#[test]
fn a_good_gpu_has_a_time_and_one_digest_for_each_precision() {
    let (first, again) = (good(), run("", "gpu-train-lstm"));
    for precision in ["bf16", "fp32"] {
        assert_eq!(first.outcome, Outcome::Done);
        let series = &first.series[&format!("gpu-train-lstm/lstm-nano_{precision}_train_step_time:0@own-ptx")];
        assert!(series.values.len() >= 4 && series.values.iter().all(|ns| *ns > 0.0), "{series:?}");
        assert_eq!(golden(first, precision), golden(&again, precision));
        let (work, digest) = golden(first, precision);
        assert!(work.starts_with("own-ptx tape ") && work.ends_with(&format!("lstm-nano {precision} of 4, 4 steps")));
        assert!(digest.ends_with("*1"), "{digest}");
        assert!(first.fact(&format!("gpu.0.lstm-nano_{precision}_train")).starts_with("items=4 throughput="));
    }
    assert_ne!(golden(first, "bf16").1, golden(first, "fp32").1);
}

#[test]
fn a_gpu_that_is_wrong_the_same_way_each_time_has_another_digest() {
    let (good, bad) = (good(), run("gpu 0 stuck offset=0x8002 bit=5 value=1\n", "gpu-train-lstm"));
    for precision in ["bf16", "fp32"] {
        assert_eq!(golden(good, precision).0, golden(&bad, precision).0);
        assert_ne!(golden(good, precision).1, golden(&bad, precision).1);
    }
}

#[test]
fn a_gpu_with_one_wrong_multiprocessor_does_not_repeat_itself_and_fails() {
    // Which block a multiprocessor gets is another one each time.
    let bad = run("gpu 0 flip sm=1 unit=mma bit=20 every=9\n", "gpu-train-lstm");
    let Outcome::Failed(why) = bad.outcome else { panic!("{bad:?}") };
    assert!(why.starts_with("GPU 0: lstm-nano_bf16: step ") && why.ends_with("this GPU computes wrongly"), "{why}");
}

#[test]
fn a_model_without_room_is_not_applicable_and_says_what_it_needs() {
    let said = run("memory 1048576\n", "gpu-train-gpt2");
    let Outcome::NotApplicable(why) = said.outcome else { panic!("{said:?}") };
    assert!(why.starts_with("gpt2-nano_bf16 needs 2.") && why.contains(" MiB, and 1.0 MiB are free; "), "{why}");
}

#[test]
fn a_minute_of_stress_is_a_series_of_windows() {
    let said = run("", "gpu-train-stress");
    assert_eq!(said.outcome, Outcome::Done);
    let series = &said.series["gpu-train-stress/gpt2-nano_bf16_window_step_time:0@own-ptx"];
    assert_eq!(series.values.len(), 4);
}

/// `loss=` of a fact.
fn loss(fact: &str) -> f64 {
    fact.rsplit_once("loss=").unwrap().1.parse().unwrap()
}

#[test]
fn with_cublaslt_on_the_node_a_training_is_measured_twice_and_each_engine_has_its_own_digest() {
    let (first, again) = (usual(), with_library("", "gpu-train-vgg"));
    assert_eq!(first.outcome, Outcome::Done);
    assert!(first.fact("gpu.0.train.cublaslt").starts_with("version=120405 path="));
    for precision in ["bf16", "fp32"] {
        let metric = format!("gpu-train-vgg/vgg-nano_{precision}_train_step_time:0");
        let [own, library] = ["own-ptx", "cublaslt-12.4"].map(|engine| &first.series[&format!("{metric}@{engine}")]);
        assert!(library.values.len() >= 4 && library.values.iter().all(|ns| *ns > 0.0), "{library:?}");
        assert_ne!(own.values, library.values);
        let of_own = format!("vgg-nano-{precision}");
        let of_library = format!("{of_own}-cublaslt");
        assert_eq!(golden_of(first, &of_library), golden_of(&again, &of_library));
        let ((own, _), (work, digest)) = (golden_of(first, &of_own), golden_of(first, &of_library));
        let (code, what) = own.split_once(", ").unwrap();
        let library = work.strip_prefix(code).and_then(|rest| rest.strip_suffix(what)).unwrap();
        assert!(library.starts_with(", cublaslt 120405 algorithms ") && library.ends_with(" for 2 SMs, "), "{work}");
        assert!(digest.ends_with("*1"), "{digest}");
    }
}

#[test]
fn losses_with_cublaslt_are_the_cpus() {
    let tape = Model::VggNano.tape();
    let mut cpu = Cpu::new(&tape, SEED).unwrap();
    let right: Vec<f32> = cpu.train(1, &|_| {}, |train| (0..4).map(|_| train.step().unwrap()).collect()).unwrap();
    for (precision, most) in [("bf16", 2e-2), ("fp32", 1e-4)] {
        for engine in ["", ".cublaslt"] {
            let got = loss(usual().fact(&format!("gpu.0.vgg-nano_{precision}_train{engine}")));
            let error = (got / f64::from(right[3]) - 1.0).abs();
            assert!(error < most, "{precision}{engine}: loss {got}, not {right:?}");
        }
    }
}

#[test]
fn digests_are_compared_only_where_cublaslt_chose_the_same_algorithms() {
    let other = with_library("cublaslt cublasLtMatmulAlgoGetHeuristic 1002\n", "gpu-train-vgg");
    let [own, library] = ["vgg-nano-bf16", "vgg-nano-bf16-cublaslt"];
    assert_eq!(golden_of(usual(), own), golden_of(&other, own));
    assert_ne!(golden_of(usual(), library).0, golden_of(&other, library).0);
}

#[test]
fn a_gpu_whose_products_by_cublaslt_are_always_wrong_alike_has_another_digest() {
    // Too rare for a block of our own kernels, none of which has so many instructions.
    let alike = with_library("gpu 0 flip sm=all unit=mma bit=20 every=5000\n", "gpu-train-vgg");
    let [right, wrong] = [usual(), &alike].map(|said| golden_of(said, "vgg-nano-bf16-cublaslt"));
    assert_eq!(right.0, wrong.0);
    assert_ne!(right.1, wrong.1);
    let fp32 = "vgg-nano-fp32-cublaslt";
    assert_eq!(golden_of(usual(), fp32), golden_of(&alike, fp32), "it needs no tensor cores");
}

#[test]
fn a_gpu_whose_products_by_cublaslt_are_now_and_then_wrong_fails_and_is_named() {
    // Too rare for a block of our own kernels, none of which has so many instructions.
    let wrong = with_library("gpu 0 flip sm=1 unit=mma bit=20 every=5000\n", "gpu-train-vgg");
    let Outcome::Failed(why) = &wrong.outcome else { panic!("{wrong:?}") };
    assert!(why.starts_with("GPU 0: vgg-nano_bf16 by cublaslt-12.4: "), "{why}");
    assert!(why.ends_with("this GPU computes wrongly"), "{why}");
    assert_eq!(golden_of(usual(), "vgg-nano-bf16"), golden_of(&wrong, "vgg-nano-bf16"));
}

#[test]
fn without_cublaslt_nothing_changes_and_a_fact_says_why() {
    let without = run("", "gpu-train-vgg");
    assert_eq!(without.outcome, Outcome::Done);
    assert_eq!(without.fact("gpu.0.train.cublaslt"), "not measured: no libcublasLt.so.12 on this node");
    // Temperature, power and clock are series only of a load that lasts, which it does on a busy machine.
    let steps =
        |said: &Said| said.series.keys().filter(|name| name.contains("_step_time:")).cloned().collect::<Vec<_>>();
    let (own, library): (Vec<_>, _) = steps(usual()).into_iter().partition(|name| name.ends_with("own-ptx"));
    assert_eq!(steps(&without), own);
    assert_eq!(library.len(), own.len());
    assert_eq!(golden_of(usual(), "vgg-nano-bf16"), golden_of(&without, "vgg-nano-bf16"));
}

#[test]
fn a_cublaslt_that_cannot_be_used_is_told_after_our_own_kernels_were_measured() {
    let own = "gpu-train-vgg/vgg-nano_fp32_train_step_time:0@own-ptx";
    for (fault, words) in [
        ("cublasLtCreate 1", "training with cuBLASLt: cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED"),
        ("cublasLtMatmul 13", "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED"),
    ] {
        let said = with_library(&format!("cublaslt {fault}\n"), "gpu-train-vgg");
        assert_eq!(said.outcome, Outcome::Failed(words.to_owned()));
        assert!(said.series.contains_key(own));
    }
    let said = with_library("cublaslt cublasLtMatmulAlgoGetHeuristic 15\n", "gpu-train-vgg");
    assert_eq!(said.outcome, Outcome::Done);
    let why = said.fact("gpu.0.vgg-nano_bf16_train.cublaslt");
    assert!(why.starts_with("not measured: cublaslt-12.4 has no algorithm here for a product of "), "{why}");
    let said = with_library("memory 33554432\n", "gpu-train-vgg");
    assert_eq!(said.outcome, Outcome::Done);
    let why = said.fact("gpu.0.vgg-nano_bf16_train.cublaslt");
    assert!(why.starts_with("not measured: needs 3") && why.ends_with(" MiB are free"), "{why}");
}

#[test]
fn no_memory_is_taken_while_steps_are_timed() {
    let sealed = "no-memory-beside-graphs\n";
    for benchmark in ["gpu-train-vgg", "gpu-train-lstm"] {
        assert_eq!(with_library(sealed, benchmark).outcome, Outcome::Done, "{benchmark}");
    }
    // A driver that gives none is noticed: here buckets lie beside graphs.
    let other =
        worker(Driver::new(&format!("devices 2\n{SMALL}{sealed}")).path(), &["run", "gpu-train-ddp", "smoke", "0"]);
    assert_ne!(other.outcome, Outcome::Done);
}
