//! The worker as a process, on a driver that executes its kernels on the CPU: what it says of a good GPU, of a bad
//! one, and of none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod process;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use muster_skip::{Lacks, skip_part};
use muster_wire::Outcome;
use process::{Driver, Said, worker};

fn run(settings: &str, benchmark: &str) -> Said {
    let driver = Driver::new(settings);
    worker(driver.path(), &["run", benchmark, "smoke", "0"])
}

#[test]
fn every_benchmark_measures_a_good_gpu() {
    let expected = [
        ("kernel-launch", vec!["event", "wall", "call", "graph-node"]),
        ("gpu-stream", vec!["write", "copy", "read", "triad", "latency", "l2-read", "l2-latency"]),
        ("gpu-copy-bw", vec!["host-to-device", "device-to-device", "device-to-host"]),
        ("gemm-flops", vec!["bf16", "fp16", "tf32", "int8", "fp32", "fp64"]),
        ("gpu-overlap", vec!["gemm", "host-to-device", "host-to-device-beside-gemm", "overlap-device-to-device"]),
        ("gpu-burn", vec!["bf16-mma", "bf16-beside-copy", "copy-beside-bf16", "bf16-pulse", "ffma", "dfma", "imad"]),
    ];
    for (benchmark, metrics) in expected {
        // Slow, so that small products are taken.
        let clock = if benchmark == "gpu-overlap" { 100 } else { 50 };
        let driver = Driver::new(&format!("sms 2\nmemory 8388608\nclock_khz {clock}\n"));
        let said = worker(driver.path(), &["run", benchmark, "smoke", "0"]);
        assert_eq!(said.outcome, Outcome::Done, "{benchmark}");
        assert_eq!(said.fact("gpu.0.engine"), "own-ptx");
        for metric in metrics {
            // Two passes of the probe make 32 of these.
            let series = &said.series[&format!("{benchmark}/{metric}:0@own-ptx")];
            assert!(series.values.len() >= 16 && series.values.iter().all(|v| v.is_finite() && *v > 0.0), "{metric}");
        }
    }
}

#[test]
fn what_only_some_gpus_have_is_measured_there_and_said_to_be_absent_elsewhere() {
    let wgmma = concat!("also ", env!("CARGO_MANIFEST_DIR"), "/prebuilt/wgmma.sm_90a.ptx\n");
    let hopper = format!("sms 3\nthreads 256\nclock_khz 20\nmemory 8388608\n{wgmma}");
    let said = run(&hopper, "gemm-flops");
    assert_eq!(said.outcome, Outcome::Done);
    for kind in ["bf16", "fp16", "tf32", "fp8", "int8"] {
        assert!(median(&said, &format!("gemm-flops/{kind}-wgmma:0@own-ptx")) > 0.0);
        assert!(said.fact(&format!("gpu.0.gemm.{kind}-wgmma")).starts_with("edge=256 digest="));
    }
    let said = run(&format!("{hopper}gpu 0 flip sm=1 unit=mma bit=12 every=50\n"), "sm-sdc");
    let (_, row) = said.facts.iter().find(|(key, _)| key.contains(".sm.bf16-wgmma.")).unwrap();
    let row = shares(row);
    assert!(row[0].1 == row[2].1 && row[0].1 != row[1].1, "{row:?}");
    let absent = run("clock_khz 20\nmemory 8388608\n", "gemm-flops");
    assert_eq!(absent.fact("gpu.0.gemm.fp8-wgmma"), "not applicable: needs machine code for sm_90a");
}

fn median(said: &Said, metric: &str) -> f64 {
    let mut values = said.series[metric].values.clone();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn kernels_of_a_graph_start_faster_than_single_ones() {
    let said = run("clock_khz 1000000\n", "kernel-launch");
    let ratio = median(&said, "kernel-launch/graph-node:0@own-ptx") / median(&said, "kernel-launch/event:0@own-ptx");
    assert!((0.2..0.3).contains(&ratio), "a quarter, as this driver has it: {ratio}");
}

#[test]
fn a_gpu_that_does_not_copy_while_it_multiplies_shows_it() {
    let overlap = |settings: &str| {
        let said = run(&format!("sms 1\nmemory 8388608\nclock_khz 100\n{settings}"), "gpu-overlap");
        assert_eq!(said.outcome, Outcome::Done);
        ["host-to-device", "device-to-device"]
            .map(|copy| median(&said, &format!("gpu-overlap/overlap-{copy}:0@own-ptx")))
    };
    assert!(overlap("").iter().all(|ratio| *ratio > 0.95), "side by side");
    assert!(overlap("gpu 0 serial\n").iter().all(|ratio| *ratio < 0.8), "one after the other");
}

/// Multiprocessor, digest and cycles of each share of a row.
fn shares(row: &str) -> Vec<(u32, &str, u64)> {
    row.split_whitespace()
        .map(|word| {
            let parts: Vec<&str> = word.split(':').collect();
            (parts[0].parse().unwrap(), parts[1], parts[2].parse().unwrap())
        })
        .collect()
}

fn rows(said: &Said) -> impl Iterator<Item = Vec<(u32, &str, u64)>> {
    said.facts.iter().filter(|(key, _)| key.contains(".sm.")).map(|(_, row)| shares(row))
}

#[test]
fn a_good_gpu_says_the_same_on_every_multiprocessor() {
    let said = run("sms 7\n", "sm-sdc");
    assert_eq!(said.outcome, Outcome::Done);
    assert_eq!(rows(&said).count(), 8, "four units with two seeds each");
    for row in rows(&said) {
        assert_eq!(row.iter().map(|share| share.0).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
        assert!(row.iter().all(|share| share.1 == row[0].1 && share.2 == row[0].2), "{row:?}");
    }
}

#[test]
fn a_flipped_bit_and_a_slow_clock_are_in_the_rows_of_their_multiprocessor() {
    let said = run("sms 7\ngpu 0 flip sm=5 unit=mma bit=12 every=50\ngpu 0 slow sm=2 factor=1.02\n", "sm-sdc");
    assert_eq!(said.outcome, Outcome::Done, "who is wrong is for the console to say");
    let odd = |row: &[(u32, &str, u64)]| row.iter().filter(|s| s.1 != row[0].1).map(|s| s.0).collect::<Vec<_>>();
    let wrong: Vec<Vec<u32>> = rows(&said).map(|row| odd(&row)).collect();
    assert_eq!(wrong.iter().filter(|sms| **sms == [5]).count(), 2, "both seeds of the tensor cores: {wrong:?}");
    assert!(wrong.iter().all(|sms| sms.is_empty() || *sms == [5]));
    for row in rows(&said) {
        let ratio = row[2].2 as f64 / row[0].2 as f64;
        assert!((ratio - 1.02).abs() < 0.002, "{ratio}");
    }
}

#[test]
fn a_stuck_bit_is_found_in_its_page_and_a_broken_copy_fails() {
    let stuck = "memory 20971520\ngpu 0 stuck offset=0x200105 bit=3 value=1\n";
    let said = run(stuck, "gpu-memory-map");
    assert_eq!(said.outcome, Outcome::Done);
    assert!(said.fact("gpu.0.pages").ends_with("bad=1"), "{said:?}");
    // Byte 0x105 of page 1 is the second byte of word 65; its bit 3 is bit 11 of the word.
    assert!(said.fact("gpu.0.page.1").contains("bits=00000800 first=65 words=1"), "{said:?}");
    let copied = run("memory 8388608\ngpu 0 stuck offset=0x105 bit=3 value=0\n", "gpu-copy-bw");
    let Outcome::Failed(why) = copied.outcome else { panic!("{copied:?}") };
    assert!(why.starts_with("GPU 0: ") && why.contains("page 0") && why.contains("0x00000800"), "{why}");
}

#[test]
fn memory_that_does_not_keep_its_words_during_a_burn_is_named() {
    let said = run("memory 20971520\ngpu 0 stuck offset=0x600105 bit=3 value=0\n", "gpu-burn");
    let Outcome::Failed(why) = &said.outcome else { panic!("{said:?}") };
    assert!(why.starts_with("GPU 0: memory that nobody touched during the burn has 1 wrong words in page 0"), "{why}");
    assert!(said.series.contains_key("gpu-burn/imad:0@own-ptx"), "everything was measured all the same");
}

#[test]
fn a_flip_under_load_is_in_the_rows_of_every_phase() {
    let said = run("gpu 0 flip sm=2 unit=mma bit=12 every=50\n", "gpu-burn");
    assert_eq!(said.outcome, Outcome::Done, "who is wrong is for the console to say");
    let tensor = said.facts.iter().filter(|(key, _)| key.contains(".sm.bf16-mma."));
    let wrong = tensor.filter(|(_, row)| shares(row).iter().any(|share| share.1 != shares(row)[0].1));
    let seeds: std::collections::BTreeSet<u32> =
        wrong.map(|(key, _)| key.rsplit('.').next().unwrap().parse::<u32>().unwrap() / 4).collect();
    assert_eq!(seeds.into_iter().collect::<Vec<_>>(), [0, 1, 2], "steady, beside copies, in pulses");
}

#[test]
fn a_gpu_that_falls_off_the_bus_fails_with_the_drivers_words() {
    let said = run("gpu 0 lost after=5\n", "gpu-burn");
    let Outcome::Failed(why) = said.outcome else { panic!("{said:?}") };
    assert!(why.contains("CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"), "{why}");
}

#[test]
fn memory_that_another_program_holds_is_no_fault_of_the_gpu() {
    for settings in ["gpu 0 full\n", "memory 1048576\n"] {
        let Outcome::NotRun(why) = run(settings, "gpu-memory-map").outcome else { panic!("{settings}") };
        assert_eq!(why, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
    }
}

#[test]
fn no_library_no_gpu_an_old_driver_and_a_broken_one_are_told_apart() {
    let none = tempfile::tempdir().unwrap();
    let count = |folder: PathBuf| worker(folder, &["count"]);
    match count(none.path().to_owned()).outcome {
        Outcome::NotRun(why) => assert!(why.starts_with("no NVIDIA driver library: "), "{why}"),
        // A machine with a driver of its own.
        other => skip_part(
            "no_library_no_gpu_an_old_driver_and_a_broken_one_are_told_apart",
            "no library",
            Lacks::Tool,
            &format!("this machine has a driver: {other:?}"),
        ),
    }
    let said = |settings: &str| {
        let driver = Driver::new(settings);
        count(driver.path())
    };
    assert_eq!(said("devices 3\n").fact("gpu.count"), "3");
    let empty = Outcome::NotApplicable("the NVIDIA driver sees no GPU".into());
    assert_eq!((said("devices 0\n").outcome, said("init 100\n").outcome), (empty.clone(), empty));
    let old = "the NVIDIA driver is too old: it knows CUDA 11.4, 12.0 is needed";
    assert_eq!(said("driver 11040\n").outcome, Outcome::NotRun(old.into()));
    let Outcome::Failed(why) = said("init 803\n").outcome else { panic!() };
    assert!(
        why.starts_with("cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has unsupported display driver"),
        "{why}"
    );
}

#[test]
fn multiprocessors_that_are_all_wrong_alike_are_found_by_arithmetic() {
    let flips: String = (0..3).map(|sm| format!("gpu 0 flip sm={sm} unit=fma bit=3 every=7\n")).collect();
    let said = run(&format!("sms 3\nthreads 32\n{flips}"), "sm-sdc");
    let Outcome::Failed(why) = &said.outcome else { panic!("{said:?}") };
    let named = why.starts_with("GPU 0: every multiprocessor computes ffma wrongly: ") && !why.contains("imad");
    assert!(named && why.contains("computes dfma wrongly"), "{why}");
    assert_eq!(rows(&said).count(), 8, "what each of them said is sent all the same");
}

#[test]
fn health_is_told_at_rest_and_what_changed_during_a_benchmark() {
    let driver = Driver::new(
        "devices 2\nsms 3\nthreads 32\ngpu 1 sensor temperature 91\ngpu 1 sensor remap_pending 1\n\
         gpu 0 sensor ecc_uncorrected 3 by 2\ngpu 0 sensor throttle 8\ngpu 0 sensor xid 79\ngpu 0 sensor nvlinks_down 1\n",
    );
    let rest = worker(driver.path(), &["health"]);
    assert_eq!(rest.outcome, Outcome::Done);
    for (key, value) in [
        ("nvml.0.uuid", "GPU-6d757374-6572-2d70-7478-73692d303030"),
        ("nvml.1.temperature", "91"),
        ("nvml.0.power", "612"),
        ("nvml.0.clock.sm", "1980000000"),
        ("nvml.1.remap.pending", "1"),
        ("nvml.0.pcie.width", "16"),
        ("nvml.0.nvlink.links", "18"),
        ("nvml.0.nvlink.up", "17"),
    ] {
        assert_eq!(rest.fact(key), value, "{key}");
    }
    let load = worker(driver.path(), &["run", "sm-sdc", "smoke", "0"]);
    let line = load.fact("gpu.0.health");
    for word in ["throttle=8", "temperature=58", "power=612", "ecc.uncorrected=+2", "ecc.corrected=+0", "xid=79"] {
        assert!(line.split(' ').any(|found| found == word), "{word}: {line}");
    }
}

#[test]
fn every_counter_link_and_setting_is_told_and_what_a_card_lacks_is_absent() {
    let driver = Driver::new(
        "devices 2\nsms 3\nthreads 32\n\
         gpu 0 sensor sram_exceeded 1\ngpu 0 sensor sram_parity_ever 2\ngpu 0 sensor spares_none 1\n\
         gpu 0 sensor retired_double 3\ngpu 0 sensor repair_tpc 1\ngpu 0 sensor repair_channel 0\n\
         gpu 0 sensor ecc_uncorrected_sram 4\ngpu 0 sensor fabric_state 2\ngpu 0 sensor recovery 1\n\
         gpu 0 sensor nvlink_crc.7 5 by 3\ngpu 0 sensor nvlinks_down 1\ngpu 0 sensor others 2\n\
         gpu 0 sensor held_heat 5000000 by 900000000\ngpu 0 sensor sram_unique 9\n\
         gpu 1 lacks fabric_state\ngpu 1 lacks sram_exceeded\ngpu 1 lacks spares_all\ngpu 1 lacks power_usual\n\
         gpu 1 lacks recovery\ngpu 1 answers power 15\n",
    );
    let rest = worker(driver.path(), &["health"]);
    assert_eq!(rest.outcome, Outcome::Done);
    for (key, value) in [
        ("nvml.0.sram.exceeded", "1"),
        ("nvml.0.sram.parity.ever", "2"),
        ("nvml.0.sram.unique", "9"),
        ("nvml.0.spares.all", "6144"),
        ("nvml.0.spares.none", "1"),
        ("nvml.0.retired.double", "3"),
        ("nvml.0.repair.tpc", "1"),
        ("nvml.0.ecc.uncorrected.sram", "4"),
        ("nvml.0.ecc.mode", "1"),
        ("nvml.0.fabric.state", "2"),
        ("nvml.0.fabric.degraded", "0"),
        ("nvml.0.recovery", "1"),
        ("nvml.0.nvlink.down", "0"),
        ("nvml.0.nvlink.errors", "7:crc=5"),
        ("nvml.0.nvlink.speed", "26562000000"),
        ("nvml.0.power.limit.usual", "700"),
        ("nvml.0.processes", "2"),
        ("nvml.0.board", "000-00000-0000-000"),
        ("nvml.1.power.limit.usual", "Absent"),
        ("nvml.1.recovery", "Absent"),
        ("nvml.1.retired.double", "Absent"),
        ("nvml.1.sram.unique", "Absent"),
        ("nvml.1.power", "Failed(\"nvmlDeviceGetPowerUsage: GPU is lost\")"),
        ("nvml.1.temperature", "58"),
    ] {
        assert_eq!(rest.fact(key), value, "{key}");
    }
    let told = |start: &str| rest.facts.iter().any(|(key, _)| key.starts_with(start));
    assert!(!told("nvml.1.fabric") && !told("nvml.1.sram.exceeded") && !told("nvml.1.spares"));
    let load = worker(driver.path(), &["run", "kernel-launch", "smoke", "0"]);
    let line = load.fact("gpu.0.health");
    for word in ["nvlink.crc=+3", "held.heat=+900", "remap.corrected=+0", "pcie.fatal=+0"] {
        assert!(line.split(' ').any(|found| found == word), "{word}: {line}");
    }
    assert!(!line.contains("held.brake"), "{line}");
    // Of three processes one is the worker itself.
    assert!(load.fact("gpu.0.company").starts_with("1 ") && load.fact("gpu.0.company").contains(", 1 "));
    let load = worker(driver.path(), &["run", "kernel-launch", "smoke", "1"]);
    assert!(load.facts.iter().all(|(key, _)| key != "gpu.1.company"), "{:?}", load.facts);
}

#[test]
fn a_management_library_that_does_not_work_fails_with_its_words() {
    let driver = Driver::new("nvml 18\n");
    let Outcome::Failed(why) = worker(driver.path(), &["health"]).outcome else { panic!() };
    assert_eq!(why, "nvmlInit_v2: Driver/library version mismatch");
    fs::remove_file(driver.path().join("libnvidia-ml.so.1")).unwrap();
    match worker(driver.path(), &["health"]).outcome {
        Outcome::NotRun(why) => assert!(why.starts_with("no NVIDIA management library: "), "{why}"),
        // A machine with a driver of its own.
        other => skip_part(
            "a_management_library_that_does_not_work_fails_with_its_words",
            "no library",
            Lacks::Tool,
            &format!("this machine has a management library: {other:?}"),
        ),
    }
}

#[test]
fn a_command_line_that_is_not_understood_says_what_there_is() {
    let output = Command::new(env!("CARGO_BIN_EXE_muster-gpu")).arg("dance").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(output.stdout.is_empty() && String::from_utf8_lossy(&output.stderr).contains("muster-gpu run"));
}

#[test]
fn every_multiprocessor_tells_its_distance_to_l2_and_one_that_moved_shows() {
    let distances = |settings: &str| -> Vec<(u32, f64)> {
        let said = run(settings, "sm-sdc");
        let word = |word: &str| {
            let (sm, cycles) = word.split_once(':').unwrap();
            (sm.parse().unwrap(), cycles.parse().unwrap())
        };
        said.fact("gpu.0.distance").split(' ').map(word).collect()
    };
    let good = distances("sms 4\nthreads 32\nmemory 4194304\n");
    assert_eq!(good.iter().map(|(sm, _)| *sm).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let moved = distances("sms 4\nthreads 32\nmemory 4194304\ngpu 0 far sm=2 cycles=60\n");
    for ((sm, was), (_, is)) in good.into_iter().zip(moved) {
        assert!((is - was - if sm == 2 { 60.0 } else { 0.0 }).abs() < 0.5, "{sm}: {was} {is}");
    }
}
