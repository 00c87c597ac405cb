//! Single calls, by muster's kernels and by NVIDIA's libraries: measured, checked against each other and against the CPU.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod process;

use muster_gpu::calls::{Entry, convolutions, products};
use muster_wire::Outcome;
use process::{Driver, Said, worker};

const GPU: &str = "sms 2\nthreads 64\nmemory 4194304\n";
/// Benchmark, its library, the engine that it is, and its calls.
const CUBLAS: Kind = ("cublas-function", "libcublas.so.12", "cublas-12.4", products);
const CUDNN: Kind = ("cudnn-function", "libcudnn.so.9", "cudnn-9.1", convolutions);

type Kind = (&'static str, &'static str, &'static str, fn(bool) -> &'static [Entry]);

fn said((benchmark, library, ..): Kind, settings: &str) -> Said {
    let driver = Driver::with(&format!("{GPU}{settings}"), &[library]);
    worker(driver.path(), &["run", benchmark, "smoke", "0"])
}

fn failed(said: &Said) -> &str {
    match &said.outcome {
        Outcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

fn median(said: &Said, (benchmark, .., engine, _): Kind, name: &str) -> f64 {
    let mut values = said.series[&format!("{benchmark}/{name}:0@{engine}")].values.clone();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Whether an engine measured every call.
fn all((benchmark, .., calls): Kind, said: &Said, engine: &str) -> bool {
    calls(true).iter().all(|entry| said.series.contains_key(&format!("{benchmark}/{}:0@{engine}", entry.name)))
}

/// Series of calls, and not of sensors, of which a slow machine has some.
fn series(said: &Said) -> Vec<&[f64]> {
    let sensor = |name: &str| ["/temperature:", "/power:", "/clock:"].iter().any(|sensor| name.contains(sensor));
    said.series.iter().filter(|(name, _)| !sensor(name)).map(|(_, series)| series.values.as_slice()).collect()
}

#[test]
fn every_call_is_measured_by_our_kernels_and_under_the_library_s_version() {
    for kind in [CUBLAS, CUDNN] {
        let said = said(kind, "");
        assert_eq!(said.outcome, Outcome::Done);
        assert!(all(kind, &said, "own-ptx") && all(kind, &said, kind.2), "{:?}", said.series.keys());
        assert_eq!(series(&said).len(), 2 * kind.3(true).len());
        assert!(series(&said).iter().all(|values| values.len() == 16 && values.iter().all(|ns| *ns > 0.0)));
    }
    assert!(said(CUBLAS, "").fact("gpu.0.cublas").starts_with("version=120405 path="));
    assert!(said(CUDNN, "").fact("gpu.0.cudnn").starts_with("version=90100 path="));
}

#[test]
fn without_the_library_our_kernels_are_measured_alone() {
    for (kind, key) in [(CUBLAS, "gpu.0.cublas"), (CUDNN, "gpu.0.cudnn")] {
        let driver = Driver::new(GPU);
        let said = worker(driver.path(), &["run", kind.0, "smoke", "0"]);
        assert_eq!(said.outcome, Outcome::Done);
        assert!(all(kind, &said, "own-ptx"));
        assert_eq!(series(&said).len(), kind.3(true).len());
        // A machine with such a library of its own has another answer.
        assert_eq!(said.fact(key), format!("no {} on this node", kind.1));
    }
}

#[test]
fn a_library_that_does_not_work_speaks_for_itself_beside_our_figures() {
    for (kind, settings, why) in [
        (CUBLAS, "cublas cublasCreate_v2 1\n", "cublasCreate_v2: CUBLAS_STATUS_NOT_INITIALIZED"),
        (CUBLAS, "cublas cublasGemmEx 13\n", "gemm-half-tn-72x24x40: cublasGemmEx: CUBLAS_STATUS_EXECUTION_FAILED"),
        (CUDNN, "cudnn cudnnCreate 1001\n", "cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED"),
        (
            CUDNN,
            "cudnn cudnnConvolutionBackwardData 5000\n",
            "backward-data-float-3x3-5to4: cudnnConvolutionBackwardData: CUDNN_STATUS_EXECUTION_FAILED",
        ),
    ] {
        let said = said(kind, settings);
        assert_eq!(failed(&said), why);
        assert!(all(kind, &said, "own-ptx"), "{why}");
    }
    let driver = Driver::new(GPU);
    std::fs::write(driver.path().join("libcublas.so.12"), "no library").unwrap();
    let said = worker(driver.path(), &["run", "cublas-function", "smoke", "0"]);
    assert!(failed(&said).starts_with("libcublas.so.12 does not load: "), "{said:?}");
    assert!(all(CUBLAS, &said, "own-ptx"));
}

#[test]
fn one_wrong_number_of_a_library_is_found_wherever_it_is() {
    for (kind, function, begin) in [
        (CUBLAS, "cublas cublasSgemm_v2", "GPU 0: number 2879 of sgemm-tn-40x72x40 by cuBLAS is "),
        (CUBLAS, "cublas cublasCgemm_v2", "GPU 0: number 1919 of cgemm-tn-40x24x9 by cuBLAS is "),
        (CUBLAS, "cublas cublasGemmStridedBatchedEx", "GPU 0: number 2879 of gemm-half-nn-24x40x36-b3 by cuBLAS is "),
        (CUDNN, "cudnn cudnnConvolutionForward", "GPU 0: number 287 of forward-float-3x3-5to4 by cuDNN is "),
        (
            CUDNN,
            "cudnn cudnnConvolutionBackwardFilter",
            "GPU 0: number 179 of backward-filter-float-3x3-5to4 by cuDNN is ",
        ),
    ] {
        let said = said(kind, &format!("{function} 1001\n"));
        assert!(failed(&said).starts_with(begin), "{}", failed(&said));
        assert!(all(kind, &said, "own-ptx"), "{function}");
    }
}

#[test]
fn a_slow_call_takes_longer_and_no_other_does() {
    for (kind, slow, entry, other) in [
        (CUBLAS, "cublas cublasSgemm_v2 1002\n", "sgemm-tn-40x72x40", "sgemm-nn-16x24x24-b3"),
        (CUDNN, "cudnn cudnnConvolutionForward 1002\n", "forward-half-3x3-5to4", "backward-data-half-3x3-5to4"),
    ] {
        let (good, bad) = (said(kind, ""), said(kind, slow));
        assert_eq!(bad.outcome, Outcome::Done);
        let ratio = |name| median(&bad, kind, name) / median(&good, kind, name);
        assert!((8.0..=10.1).contains(&ratio(entry)), "{}", ratio(entry));
        assert!((0.99..=1.01).contains(&ratio(other)), "{}", ratio(other));
    }
}

#[test]
fn what_the_library_cannot_do_is_a_fact_and_no_fault() {
    for (kind, settings, cannot, can) in [
        (
            CUDNN,
            "cudnn cudnnGetConvolutionForwardWorkspaceSize 3000\n",
            "forward-float-3x3-5to4",
            "backward-data-float-3x3-5to4",
        ),
        (CUDNN, "cudnn cudnnConvolutionBackwardData 3007\n", "backward-data-half-3x3-5to4", "forward-half-3x3-5to4"),
        (CUBLAS, "cublas cublasCgemm3mStridedBatched 15\n", "cgemm3m-nt-16x8x3-b3", "cgemm-tn-40x24x9"),
    ] {
        let said = said(kind, settings);
        assert_eq!(said.outcome, Outcome::Done);
        let key = if kind.0 == CUDNN.0 { "cudnn" } else { "cublas" };
        assert_eq!(said.fact(&format!("gpu.0.{key}.{cannot}")), "not supported");
        let measured = |name: &str| said.series.contains_key(&format!("{}/{name}:0@{}", kind.0, kind.2));
        assert!(!measured(cannot) && measured(can), "{settings}");
        assert!(all(kind, &said, "own-ptx"));
    }
}

#[test]
fn a_gpu_that_computes_wrong_is_named() {
    for (kind, unit, bit) in [(CUBLAS, "fma", 30), (CUDNN, "fma", 30), (CUBLAS, "mma", 30), (CUDNN, "mma", 30)] {
        let said = said(kind, &format!("gpu 0 flip sm=all unit={unit} bit={bit} every=1\n"));
        let why = failed(&said);
        assert!(why.starts_with("GPU 0: number ") && why.contains(" by muster's kernel is "), "{why}");
    }
}

#[test]
fn bits_that_do_not_come_again_name_the_gpu() {
    // Small enough to be no wrong number, and on one of two multiprocessors only, which do not take turns alike.
    let said = said(CUBLAS, "gpu 0 flip sm=1 unit=fma bit=0 every=5\n");
    let why = failed(&said);
    assert!(why.starts_with("GPU 0: the same ") && why.contains(" gave other bits the second time: word "), "{why}");
}
