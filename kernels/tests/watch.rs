//! The worker watches simulated GPUs: what it tells of good ones, of one bad among many, and that it ends with its listener.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

#[expect(dead_code, reason = "shared with tests that read facts")]
mod process;

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use muster_wire::{Decoder, Frame, Outcome};
use process::{Driver, worker};

/// The worker, looking every 100 ms, and every `fine_ms` at what changes fast.
fn start(driver: &Driver, fine_ms: u32) -> Child {
    Command::new(env!("CARGO_BIN_EXE_muster-gpu"))
        .args(["watch", "100", &fine_ms.to_string()])
        .env("LD_LIBRARY_PATH", driver.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the worker told until `whole` looks at everything had come: the last of them, and how many others came.
fn hear(mut child: Child, whole: usize) -> (BTreeMap<String, f64>, usize) {
    let mut output = child.stdout.take().unwrap();
    let (mut decoder, mut chunk) = (Decoder::new(), [0; 4096]);
    let (mut columns, mut values, mut seen, mut others) = (Vec::new(), BTreeMap::new(), 0, 0);
    while seen < whole {
        let count = output.read(&mut chunk).unwrap();
        assert!(count > 0, "it ended");
        decoder.push(&chunk[..count]);
        while let Some(frame) = decoder.frame().unwrap() {
            match frame {
                Frame::Columns(new) => columns = new.metrics,
                Frame::Tick(tick) if tick.values.len() < columns.len() => others += 1,
                Frame::Tick(tick) => {
                    values = columns.iter().cloned().zip(tick.values).collect();
                    seen += 1;
                }
                _ => {}
            }
        }
    }
    drop(output);
    // Nobody listens: it ends by itself.
    child.wait().unwrap();
    (values, others)
}

/// Every metric after a few looks.
fn values(settings: &str) -> BTreeMap<String, f64> {
    let driver = Driver::new(settings);
    hear(start(&driver, 0), 4).0
}

#[test]
fn eight_gpus_are_told_together_and_the_bad_one_beside_them() {
    let told = values(
        "devices 8\ngpu 3 sensor power 240000\ngpu 3 sensor clock 990\ngpu 3 sensor throttle 72\ngpu 3 sensor gpm_5 7\n\
         gpu 6 sensor temperature 88\ngpu 1 sensor ecc_uncorrected 2\ngpu 2 sensor nvlink_kib 0 by 1000000\n",
    );
    for (name, expected) in [
        ("gpu_util_pct", 98.0),
        ("gpu_power_w", (7.0 * 612.0 + 240.0) / 8.0),
        ("gpu_power_least_w", 240.0),
        ("gpu_clock_least_mhz", 990.0),
        ("gpu_temp_most_c", 88.0),
        ("gpu_mem_temp_c", 71.0),
        ("gpu_mem_used_pct", 80.0),
        ("gpu_throttled_pct", 12.5),
        ("gpu_power_capped_pct", 0.0),
        ("gpu_ecc_lost", 2.0),
        ("gpu_count", 8.0),
        ("sm_active", 0.91),
        ("tensor_least_active", 0.07),
        ("pcie_tx_gbs", 8.0 * 2000.0 * 1_048_576e-9),
    ] {
        assert!((told[name] - expected).abs() < 1e-4 * expected.max(1.0), "{name}: {told:?}");
    }
    // The links of seven GPUs count nothing and performance counters stand in: 50,000 MiB/s each way.
    assert!(told["nvlink_gbs"] > 7.0 * 104.0, "{told:?}");
}

#[test]
fn what_a_gpu_does_not_tell_is_no_metric() {
    let lacks: String = ["gpm_2", "utilisation", "memory_used_pct", "temperature_memory"]
        .map(|of| format!("gpu 0 lacks {of}\n"))
        .concat();
    let told = values(&lacks);
    for name in [
        "sm_active",
        "tensor_active",
        "pcie_tx_gbs",
        "nvlink_gbs",
        "gpu_util_pct",
        "gpu_mem_used_pct",
        "gpu_power_least_w",
    ] {
        assert!(!told.contains_key(name), "{name}: {told:?}");
    }
    assert!(told.contains_key("gpu_power_w") && (told["gpu_count"] - 1.0).abs() < 1e-9, "{told:?}");
}

#[test]
fn a_lost_gpu_is_missing_in_the_count() {
    let lost: String = [
        "clock",
        "power",
        "temperature",
        "temperature_memory",
        "throttle",
        "utilisation",
        "memory_used_pct",
        "ecc_corrected",
        "ecc_uncorrected",
        "nvlink_kib",
    ]
    .map(|of| format!("gpu 1 answers {of} 15\n"))
    .concat();
    let told = values(&format!("devices 2\ngpu 1 lacks gpm_2\n{lost}"));
    assert!((told["gpu_count"] - 1.0).abs() < 1e-9, "{told:?}");
}

#[test]
fn fine_looks_come_between_whole_ones() {
    let driver = Driver::new("gpu 0 sensor nvlink_kib 0 by 1000\n");
    let (told, fine) = hear(start(&driver, 10), 6);
    assert!(fine > 6, "{fine} fine looks");
    assert!(told.contains_key("nvlink_gbs"), "{told:?}");
}

#[test]
fn without_a_gpu_or_a_library_it_says_so_and_ends() {
    let driver = Driver::new("devices 0\n");
    let said = worker(driver.path(), &["watch", "1000", "0"]);
    assert!(matches!(said.outcome, Outcome::NotApplicable(_)), "{:?}", said.outcome);
    let empty = tempfile::tempdir().unwrap();
    let said = worker(empty.path().to_owned(), &["watch", "1000", "0"]);
    assert!(matches!(said.outcome, Outcome::NotRun(_)), "{:?}", said.outcome);
}
