//! RDMA loopback over adapters of a libibverbs that exists in tests only: what is measured, and what is said of each fault.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

#[path = "process/said.rs"]
mod said;

use std::process::{Command, Stdio};
use std::time::Duration;

use muster_wire::Outcome;
use said::{Said, heard, worker};
use tempfile::TempDir;

/// A folder with a libibverbs that has these adapters.
fn library(settings: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    // Cargo builds the library beside the dependencies of this test.
    let built = std::env::current_exe().unwrap().with_file_name("libmuster_verbs.so");
    std::fs::copy(&built, dir.path().join("libibverbs.so.1"))
        .unwrap_or_else(|why| panic!("{}: {why}", built.display()));
    std::fs::write(dir.path().join("libibverbs.conf"), format!("rate 4e9\n{settings}")).unwrap();
    dir
}

/// The worker on one adapter of a node that has these.
fn loopback(settings: &str, adapter: &str, gid: &str) -> Said {
    let library = library(settings);
    worker(library.path().to_owned(), &["loopback", "smoke", adapter, "1", gid, "", "-"])
}

fn failed(said: Said) -> String {
    match said.outcome {
        Outcome::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

fn not_run(said: Said) -> String {
    match said.outcome {
        Outcome::NotRun(why) => why,
        other => panic!("{other:?}"),
    }
}

const TWO: &str = "adapter mlx5_0 infiniband\nadapter mlx5_1 ethernet\n";

#[test]
fn a_port_is_measured_by_lid_on_infiniband_and_by_gid_on_ethernet() {
    for (adapter, gid) in [("mlx5_0", "-"), ("mlx5_1", "3")] {
        let said = loopback(TWO, adapter, gid);
        assert_eq!(said.outcome, Outcome::Done);
        for size in ["8MiB", "64KiB"] {
            let series = &said.series[&format!("ib-loopback/write-{size}:{adapter}:1@own")];
            // Never faster than the adapter; how much slower is up to this machine.
            assert!(
                series.values.len() == 16 && series.values.iter().all(|rate| (1e6..4.1e9).contains(rate)),
                "{series:?}"
            );
        }
        assert_eq!(said.series.len(), 2);
        assert!(said.fact(&format!("port.{adapter}/1.verbs")).contains(" mtu=4096 "));
    }
}

#[test]
fn a_word_that_arrives_wrong_is_a_failure() {
    let why = failed(loopback(&format!("{TWO}mlx5_0 flip bit=3 every=3000000\n"), "mlx5_0", "-"));
    assert!(
        why.starts_with("write-8MiB: 2 of 2097152 words arrived wrong, the first is 749999, bits 0x08000000"),
        "{why}"
    );
    assert_eq!(loopback(&format!("{TWO}mlx5_0 flip bit=3 every=9\n"), "mlx5_1", "3").outcome, Outcome::Done);
}

#[test]
fn a_message_that_does_not_arrive_ends_the_measurement_in_its_own_words() {
    let why = failed(loopback(&format!("{TWO}mlx5_1 status 12 after=5\n"), "mlx5_1", "3"));
    let end = "ended with status 12, transport retry counter exceeded (vendor 0x81)";
    assert!(why.starts_with("write-8MiB: message ") && why.ends_with(end), "{why}");
}

#[test]
fn an_adapter_that_hangs_was_named_before() {
    let library = library(&format!("{TWO}mlx5_0 hang after=3\n"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_muster-gpu"))
        .args(["loopback", "smoke", "mlx5_0", "1", "-", "", "-"])
        .env("LD_LIBRARY_PATH", library.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(child.try_wait().unwrap(), None);
    child.kill().unwrap();
    let said = heard(&child.wait_with_output().unwrap().stdout);
    assert_eq!((said.at.as_str(), said.outcome), ("mlx5_0/1: write-8MiB", Outcome::NotRun("no end".into())));
}

/// The worker on one adapter beside a GPU, in memory of both.
fn beside_gpu(settings: &str, gpu: &str) -> Said {
    let library = library(&format!("{TWO}{settings}"));
    let driver = std::env::current_exe().unwrap().with_file_name("libmuster_ptxsim.so");
    std::fs::copy(driver, library.path().join("libcuda.so.1")).unwrap();
    std::fs::write(library.path().join("libcuda.conf"), format!("devices 2\nsms 2\nthreads 32\nmemory 4194304\n{gpu}"))
        .unwrap();
    worker(library.path().to_owned(), &["loopback", "smoke", "mlx5_0", "1", "-", "", "1"])
}

#[test]
fn memory_of_a_gpu_is_reached_by_dma_buf_else_by_peer_memory_else_it_is_said_why_not() {
    for (adapter, gpu, way) in [("", "", "way=dma-buf"), ("mlx5_0 peer-memory\n", "no-dma-buf\n", "way=nvidia-peermem")]
    {
        let said = beside_gpu(adapter, gpu);
        assert_eq!(said.outcome, Outcome::Done, "{way}");
        assert!(said.fact("port.mlx5_0/1.gpu-memory").ends_with(way), "{:?}", said.facts);
        let series = &said.series["ib-loopback/write-gpu-64KiB:mlx5_0:1@own"];
        assert!(series.values.iter().all(|rate| (1e5..4.1e9).contains(rate)), "{series:?}");
    }
    let said = beside_gpu("", "no-dma-buf\n");
    assert_eq!((&said.outcome, said.series.len()), (&Outcome::Done, 2), "memory of the host is measured all the same");
    let why = said.fact("port.mlx5_0/1.gpu-memory");
    let known = "not measured: dma-buf: the NVIDIA driver has no dma-buf here; nvidia_peermem: ibv_reg_mr of 256 KiB: Bad address";
    assert!(why.starts_with(known), "{why}");
    // What the GPU holds is compared by the GPU: a bit of its memory that keeps its value shows.
    let why = failed(beside_gpu("", "gpu 1 stuck offset=0x41235 bit=3 value=0\n"));
    assert!(why.starts_with("memory of GPU 1: write-gpu-64KiB: ") && why.contains(" words arrived wrong, "), "{why}");
}

#[test]
fn what_cannot_be_measured_here_says_why_and_accuses_nobody() {
    let why = not_run(loopback(&format!("{TWO}mlx5_0 down\n"), "mlx5_0", "-"));
    assert_eq!(why, "the port is not active");
    let why = not_run(loopback(TWO, "mlx5_9", "-"));
    assert_eq!(why, "libibverbs.so.1 does not see it: is the library of its driver installed?");
    let why = not_run(loopback(&format!("{TWO}mlx5_0 refuse ibv_open_device 13\n"), "mlx5_0", "-"));
    assert_eq!(why, "ibv_open_device: Permission denied (os error 13)");
    let why = not_run(loopback(&format!("{TWO}mlx5_0 refuse ibv_reg_mr 12\n"), "mlx5_0", "-"));
    assert!(
        why.starts_with("ibv_reg_mr of 16384 KiB: Cannot allocate memory") && why.ends_with("(ulimit -l)"),
        "{why}"
    );
    let why = not_run(loopback(TWO, "mlx5_1", "-"));
    assert_eq!(why, "its table of addresses (GIDs) is empty");
    let why = failed(loopback(TWO, "mlx5_1", "2"));
    assert_eq!(why, "ibv_modify_qp, the receiving end: Invalid argument (os error 22)");
    let why = failed(loopback(&format!("{TWO}mlx5_0 refuse ibv_create_qp 95\n"), "mlx5_0", "-"));
    assert_eq!(why, "ibv_create_qp: Operation not supported (os error 95)");
}

#[test]
fn a_slow_adapter_gives_a_lower_rate() {
    let rate = |settings: &str| {
        let said = loopback(&format!("{TWO}{settings}"), "mlx5_0", "-");
        said.series["ib-loopback/write-8MiB:mlx5_0:1@own"].values[0]
    };
    assert!(rate("mlx5_0 slow factor=50\n") < 81e6 && rate("mlx5_1 slow factor=50\n") > 81e6);
}

#[test]
fn a_library_that_is_not_there_is_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let said = worker(folder.path().to_owned(), &["loopback", "smoke", "mlx5_0", "1", "-", "", "-"]);
    // A machine with a libibverbs of its own has another answer.
    let known = Outcome::NotApplicable("no libibverbs.so.1 on this node".into());
    let theirs = matches!(&said.outcome, Outcome::NotRun(why) if why.starts_with("libibverbs.so.1 "));
    assert!(said.outcome == known || theirs, "{:?}", said.outcome);
}
