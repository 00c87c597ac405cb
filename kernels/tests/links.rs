//! Several GPUs in one worker, on simulated devices that reach each other: every way is measured, a bad one is named with
//! both ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod process;

use muster_wire::Outcome;
use process::{Driver, Said, worker};

const THREE: &str = "devices 3\nsms 2\nthreads 32\nmemory 1048576\n";

fn all(settings: &str, benchmark: &str) -> Said {
    let driver = Driver::new(&format!("{THREE}{settings}"));
    worker(driver.path(), &["run", benchmark, "smoke", "all"])
}

fn median(said: &Said, metric: &str) -> f64 {
    let mut values = said.series.get(metric).unwrap_or_else(|| panic!("{metric}: {said:?}")).values.clone();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn every_way_between_gpus_is_measured_by_engine_and_by_kernels() {
    let said = all("", "gpu-peer-bw");
    assert_eq!(said.outcome, Outcome::Done);
    for (from, to) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        // A link carries 20 MB/s there, and each copy begins with 4 us.
        let rate = median(&said, &format!("gpu-peer-bw/gpu{from}-to-gpu{to}@own-ptx"));
        assert!((19e6..20e6).contains(&rate), "{rate}");
    }
    for gpu in 0..3 {
        for how in ["read", "write"] {
            assert!(median(&said, &format!("gpu-peer-bw/{how}:{gpu}@own-ptx")) > 1e6);
        }
    }
    assert_eq!(said.series.len(), 6 + 6);
    assert_eq!(said.fact("gpu.1.peers"), "direct=0,2 host=");
    assert!(said.fact("gpu.2.health").contains("throttle=0"));
}

#[test]
fn a_slow_way_is_slow_for_its_pair_and_direction_alone() {
    let said = all("link 2 0 slow factor=4\n", "gpu-peer-bw");
    assert_eq!(said.outcome, Outcome::Done, "how slow is too slow is for the console to say");
    let rate = |pair: &str| median(&said, &format!("gpu-peer-bw/{pair}@own-ptx"));
    let (bad, good) = (rate("gpu2-to-gpu0"), rate("gpu0-to-gpu2"));
    assert!((3.9..4.1).contains(&(good / bad)), "{good} {bad}");
    assert!(rate("read:0") < 0.7 * rate("read:1") && rate("write:2") < 0.7 * rate("write:1"), "{said:?}");
}

#[test]
fn data_that_arrives_wrong_names_both_gpus_and_how_it_went() {
    let said = all("link 1 2 flip bit=3 every=8190\n", "gpu-peer-bw");
    let Outcome::Failed(why) = &said.outcome else { panic!("{said:?}") };
    let all: Vec<&str> = why.split("; ").collect();
    assert_eq!(all.len(), 3, "{why}");
    assert!(all[0].starts_with("GPU 1 to GPU 2 by the copy engine: ") && all[0].contains("of 4096 words are wrong"));
    assert!(all[1].starts_with("GPU 1 to GPU 2, written by kernels of GPU 1: "), "{why}");
    assert!(all[2].starts_with("GPU 1 to GPU 2, read by kernels of GPU 2: "), "{why}");
    assert_eq!(said.series.len(), 12, "all else is measured all the same");
}

#[test]
fn where_there_is_no_direct_way_data_goes_through_the_host_and_that_is_said() {
    let said = all("link 0 1 none\nlink 1 0 none\n", "gpu-peer-bw");
    assert_eq!(said.outcome, Outcome::Done);
    assert_eq!((said.fact("gpu.0.peers"), said.fact("gpu.2.peers")), ("direct=2 host=1", "direct=0,1 host="));
    let rate = |pair: &str| median(&said, &format!("gpu-peer-bw/{pair}@own-ptx"));
    assert!(rate("gpu0-to-gpu1") < 0.5 * rate("gpu0-to-gpu2"));
}

#[test]
fn a_gpu_that_is_lost_among_others_is_named() {
    let said = all("gpu 2 lost after=3\n", "gpu-peer-bw");
    let Outcome::Failed(why) = &said.outcome else { panic!("{said:?}") };
    assert!(why.contains("GPU 2") && why.contains("CUDA_ERROR_LAUNCH_FAILED"), "{why}");
}

#[test]
fn all_gpus_add_up_what_each_has_and_the_slowest_way_sets_the_pace() {
    let rate = |settings: &str| {
        let said = all(settings, "p2p-allreduce");
        assert_eq!(said.outcome, Outcome::Done);
        assert_eq!(said.series.len(), 1);
        median(&said, "p2p-allreduce/8KiB@own-ptx")
    };
    let (good, slow) = (rate(""), rate("link 0 1 slow factor=40\n"));
    assert!(slow < 0.5 * good, "{slow} {good}");
}

#[test]
fn a_wrong_sum_names_who_summed_and_a_wrong_copy_both_ends() {
    let wrong = |settings: &str| match all(settings, "p2p-allreduce").outcome {
        Outcome::Failed(why) => why,
        other => panic!("{settings}: {other:?}"),
    };
    // Most of what GPU 1 reads of GPU 2 arrives wrong, so its sums are.
    let why = wrong("link 2 1 flip bit=2 every=64\n");
    assert!(why.starts_with("all-reduce of 8KiB: GPU 1 holds wrong sums of its own chunk: "), "{why}");
    // Of each 5472 bytes that GPU 2 reads of GPU 0, the second half is the chunk that GPU 0 summed.
    let why = wrong("link 0 2 flip bit=2 every=4000\n");
    assert!(why.starts_with("all-reduce of 8KiB: GPU 0 to GPU 2: 1 wrong words"), "{why}");
}

#[test]
fn without_a_direct_way_to_everybody_there_is_nothing_to_measure() {
    let said = all("link 2 1 none\n", "p2p-allreduce");
    assert_eq!(said.outcome, Outcome::NotApplicable("GPU 2 has no direct way to all others".into()));
}
