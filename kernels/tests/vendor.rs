//! NVIDIA's libraries, where they are: measured under their own name, checked, and failing in their own words.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod process;

use muster_wire::Outcome;
use process::{Driver, Said, heard, worker};

const THREE: &str = "devices 3\nsms 2\nthreads 32\nmemory 1048576\n";

fn nccl(settings: &str) -> Said {
    let driver = Driver::with(&format!("{THREE}{settings}"), &["libnccl.so.2"]);
    worker(driver.path(), &["run", "nccl-bw", "smoke", "all"])
}

fn failed(said: Said) -> String {
    match said.outcome {
        Outcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nccl_is_measured_under_its_version() {
    let said = nccl("");
    assert_eq!(said.outcome, Outcome::Done);
    for what in ["all-reduce", "all-gather", "all-to-all"] {
        let series = &said.series[&format!("nccl-bw/{what}-8KiB@nccl-2.21")];
        assert!(series.values.iter().all(|rate| (1e6..100e6).contains(rate)), "{series:?}");
    }
    assert_eq!(said.series.len(), 3);
    assert!(said.fact("gpu.0.nccl").starts_with("version=22105 path="));
}

fn through_adapters(settings: &str) -> Said {
    let driver = Driver::with(&format!("{THREE}{settings}"), &["libnccl.so.2"]);
    worker(driver.path(), &["run", "ib-allreduce", "smoke", "all"])
}

#[test]
fn all_reduce_through_adapters_takes_no_other_way() {
    let rate = |said: &Said, name: &str| said.series[&format!("{name}/all-reduce-8KiB@nccl-2.21")].values[0];
    let (links, adapters) = (nccl("adapters 2e6\n"), through_adapters("adapters 2e6\n"));
    assert_eq!((&links.outcome, &adapters.outcome), (&Outcome::Done, &Outcome::Done));
    let (fast, slow) = (rate(&links, "nccl-bw"), rate(&adapters, "ib-allreduce"));
    assert!(slow < 2e6 * 4.0 / 3.0 && fast > 3.0 * slow, "{fast} by links, {slow} through adapters");
    assert_eq!(adapters.series.len(), 1);
    let why = failed(through_adapters(""));
    assert_eq!(why, "ncclCommInitAll: unhandled system error (run with NCCL_DEBUG=INFO for details)");
    let why = failed(through_adapters("adapters 2e6\nadapters flip bit=0 every=1000\n"));
    assert!(why.starts_with("all-reduce-8KiB by NCCL: GPU 0 holds "), "{why}");
}

#[test]
fn a_library_that_is_not_there_is_no_fault() {
    let driver = Driver::new(THREE);
    let said = worker(driver.path(), &["run", "nccl-bw", "smoke", "all"]);
    // A machine with an NCCL of its own has another answer.
    assert_eq!(said.outcome, Outcome::NotApplicable("no libnccl.so.2 on this node".into()));
}

#[test]
fn a_library_in_a_folder_that_the_probe_found_is_loaded_from_there() {
    let driver = Driver::new(THREE);
    let wheels = driver.path().join("wheels");
    std::fs::create_dir(&wheels).unwrap();
    std::os::unix::fs::symlink("../libcuda.so.1", wheels.join("libnccl.so.2")).unwrap();
    let said = worker(driver.path(), &["run", "nccl-bw", "smoke", "all"]);
    assert_eq!(said.outcome, Outcome::Done);
    assert!(said.fact("gpu.0.nccl").ends_with("wheels/libnccl.so.2"));
}

#[test]
fn a_broken_library_speaks_for_itself() {
    let why = failed(nccl("nccl ncclCommInitAll 2\n"));
    assert_eq!(why, "ncclCommInitAll: unhandled system error (run with NCCL_DEBUG=INFO for details)");
    let why = failed(nccl("nccl ncclAllGather 1\n"));
    assert_eq!(why, "all-gather-8KiB: ncclAllGather: unhandled cuda error (run with NCCL_DEBUG=INFO for details)");
    let why = failed(nccl("nccl ncclCommGetAsyncError 1\n"));
    assert!(why.starts_with("all-reduce-8KiB: GPU 0: NCCL: unhandled cuda error"), "{why}");
    let driver = Driver::new(THREE);
    std::fs::write(driver.path().join("libnccl.so.2"), "no library").unwrap();
    let why = failed(worker(driver.path(), &["run", "nccl-bw", "smoke", "all"]));
    assert!(why.starts_with("libnccl.so.2 does not load: ") && why.contains("too short"), "{why}");
    std::fs::remove_file(driver.path().join("libnccl.so.2")).unwrap();
    let other =
        ["/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"].into_iter().find(|p| std::fs::exists(p).unwrap());
    std::fs::copy(other.unwrap(), driver.path().join("libnccl.so.2")).unwrap();
    let why = failed(worker(driver.path(), &["run", "nccl-bw", "smoke", "all"]));
    assert_eq!(why, "libnccl.so.2 has no ncclGetVersion");
}

#[test]
fn data_that_nccl_brings_wrong_names_both_gpus() {
    let why = failed(nccl("link 1 2 flip bit=0 every=1000\n"));
    let all: Vec<&str> = why.split("; ").collect();
    assert_eq!(all.len(), 3, "{why}");
    assert!(all[0].starts_with("all-reduce-8KiB by NCCL: GPU 2 holds "), "{why}");
    assert!(all[1].starts_with("all-gather-8KiB by NCCL: GPU 1 to GPU 2: "), "{why}");
    assert!(all[2].starts_with("all-to-all-8KiB by NCCL: GPU 1 to GPU 2: "), "{why}");
}

fn cublaslt(settings: &str) -> Said {
    // Room for the workspace and for small matrices.
    let driver = Driver::with(&format!("sms 2\nthreads 64\nmemory 38797312\n{settings}"), &["libcublasLt.so.12"]);
    worker(driver.path(), &["run", "cublaslt-gemm", "smoke", "0"])
}

#[test]
fn cublaslt_is_measured_under_its_version_with_its_first_choice() {
    let said = cublaslt("");
    assert_eq!(said.outcome, Outcome::Done);
    for what in ["bf16", "fp16", "tf32", "int8", "fp32", "fp64"] {
        let series = &said.series[&format!("cublaslt-gemm/{what}:0@cublaslt-12.4")];
        assert!(series.values.iter().all(|rate| (49e6..50e6).contains(rate)), "{series:?}");
        assert!(said.fact(&format!("gpu.0.cublaslt.{what}")).starts_with("edge=128 algorithm="));
    }
    assert_eq!(said.fact("gpu.0.cublaslt.fp8"), "not supported");
    assert!(said.fact("gpu.0.cublaslt").starts_with("version=120405 path="));
}

#[test]
fn a_wrong_product_and_a_broken_library_are_failures() {
    let why = failed(cublaslt("cublaslt cublasLtMatmul 1001\n"));
    assert!(why.starts_with("GPU 0: element (") && why.contains("product of cuBLASLt is "), "{why}");
    let why = failed(cublaslt("cublaslt cublasLtCreate 1\n"));
    assert_eq!(why, "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED");
    let why = failed(cublaslt("cublaslt cublasLtMatmul 13\n"));
    assert_eq!(why, "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED");
    let none = Driver::new(THREE);
    let said = worker(none.path(), &["run", "cublaslt-gemm", "smoke", "0"]);
    assert_eq!(said.outcome, Outcome::NotApplicable("no libcublasLt.so.12 on this node".into()));
}

#[test]
fn what_hangs_was_said_before() {
    let hung = |settings: &str, benchmark: &str| {
        let driver = Driver::with(&format!("{THREE}{settings}"), &["libnccl.so.2"]);
        let mut command = std::process::Command::new("timeout");
        let words = ["-s", "KILL", "2", env!("CARGO_BIN_EXE_muster-gpu"), "run", benchmark, "smoke", "all"];
        let output = command.args(words).env("LD_LIBRARY_PATH", driver.path()).output().unwrap();
        let said = heard(&output.stdout);
        assert_eq!(said.outcome, Outcome::NotRun("no end".into()), "it was ended from outside");
        said.at
    };
    assert_eq!(hung("nccl ncclGroupEnd 1000\n", "nccl-bw"), "all GPUs: NCCL all-reduce-8KiB");
    assert_eq!(hung("gpu 2 hang kernel=reduce_peers\n", "p2p-allreduce"), "all GPUs: all-reduce of 8KiB");
    assert_eq!(hung("gpu 1 hang kernel=copy\n", "gpu-peer-bw"), "GPU 1: read by kernels, GPU 0");
}
