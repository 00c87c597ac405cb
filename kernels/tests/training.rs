//! Training on a driver that executes the worker's kernels on the CPU: what is said of a good GPU, of one that computes
//! wrongly, and of one without the room.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod process;

use muster_wire::Outcome;
use process::{Driver, Said, worker};

const SMALL: &str = "sms 2\nmemory 33554432\nclock_khz 1000\n";

fn run(settings: &str, benchmark: &str) -> Said {
    worker(Driver::new(&format!("{SMALL}{settings}")).path(), &["run", benchmark, "smoke", "0"])
}

fn golden(said: &Said, precision: &str) -> (String, String) {
    let text = said.fact(&format!("gpu.0.golden.lstm-nano-{precision}"));
    let (work, digest) = text.rsplit_once(": ").unwrap();
    (work.to_owned(), digest.to_owned())
}

#[test]
fn a_good_gpu_has_a_time_and_one_digest_for_each_precision() {
    let (first, again) = (run("", "gpu-train-lstm"), run("", "gpu-train-lstm"));
    for precision in ["bf16", "fp32"] {
        assert_eq!(first.outcome, Outcome::Done);
        let series = &first.series[&format!("gpu-train-lstm/lstm-nano_{precision}_train_step_time:0@own-ptx")];
        assert!(series.values.len() >= 4 && series.values.iter().all(|ns| *ns > 0.0), "{series:?}");
        assert_eq!(golden(&first, precision), golden(&again, precision));
        let (work, digest) = golden(&first, precision);
        assert!(work.starts_with("own-ptx tape ") && work.ends_with(&format!("lstm-nano {precision} of 4, 4 steps")));
        assert!(digest.ends_with("*1"), "{digest}");
        assert!(first.fact(&format!("gpu.0.lstm-nano_{precision}_train")).starts_with("items=4 throughput="));
    }
    assert_ne!(golden(&first, "bf16").1, golden(&first, "fp32").1);
}

#[test]
fn a_gpu_that_is_wrong_the_same_way_each_time_has_another_digest() {
    let (good, bad) = (run("", "gpu-train-lstm"), run("gpu 0 stuck offset=0x8002 bit=5 value=1\n", "gpu-train-lstm"));
    for precision in ["bf16", "fp32"] {
        assert_eq!(golden(&good, precision).0, golden(&bad, precision).0);
        assert_ne!(golden(&good, precision).1, golden(&bad, precision).1);
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
