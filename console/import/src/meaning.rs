//! What a foreign metric means: SuperBench names neither unit nor direction in its data, so they are said here.
//!
//! Source: SuperBench 0.12, `superbench/benchmarks` and `docs/user-tutorial/benchmarks`, one table row per benchmark.

use muster_wire::{Direction, MetricId, Unit};
use serde::{Deserialize, Serialize};

use crate::superbench::Key;

/// What a metric's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// A measurement.
    Measure {
        /// Our unit.
        unit: Unit,
        /// The file's numbers times this are in our unit; a power of ten, and 1/100 for per cent.
        factor: f64,
        /// Which way is better.
        direction: Direction,
    },
    /// Passed or not: good when it equals this value.
    Flag {
        /// Value of a pass, such as 0 for a return code.
        good: f64,
    },
    /// Neither good nor bad: a setting, a count, a time that was asked for.
    Neutral,
    /// Not known: compared with nothing until somebody says what it is.
    Unknown,
}

/// Higher is better, `factor` times `unit`.
const fn high(unit: Unit, factor: f64) -> Meaning {
    Meaning::Measure { unit, factor, direction: Direction::HigherIsBetter }
}

/// Lower is better.
const fn low(unit: Unit, factor: f64) -> Meaning {
    Meaning::Measure { unit, factor, direction: Direction::LowerIsBetter }
}

pub(crate) const GB_PER_S: Meaning = high(Unit::BytesPerSec, 1e9);
pub(crate) const MB_PER_S: Meaning = high(Unit::BytesPerSec, 1e6);
pub(crate) const MIB_PER_S: Meaning = high(Unit::BytesPerSec, 1_048_576.0);
pub(crate) const GBIT_PER_S: Meaning = high(Unit::BytesPerSec, 1.25e8);
pub(crate) const BYTES_PER_S: Meaning = high(Unit::BytesPerSec, 1.0);
pub(crate) const IOPS: Meaning = high(Unit::OpsPerSec, 1.0);
pub(crate) const NANOS: Meaning = low(Unit::Nanos, 1.0);
pub(crate) const MICROS: Meaning = low(Unit::Nanos, 1e3);
const MILLIS: Meaning = low(Unit::Nanos, 1e6);
const SAMPLES: Meaning = high(Unit::OpsPerSec, 1.0);
const GFLOPS: Meaning = high(Unit::FlopPerSec, 1e9);
const TFLOPS: Meaning = high(Unit::FlopPerSec, 1e12);
const FACTOR: Meaning = low(Unit::Ratio, 1.0);

/// Meaning of a SuperBench metric: `benchmark` without annotation, `metric` without rank, as
/// [`crate::superbench::Key`] takes a key apart. Names of 0.2 to 0.12 are known.
#[must_use]
pub fn of_superbench(benchmark: &str, metric: &str) -> Meaning {
    let has = |part: &str| metric.contains(part);
    let ends = |part: &str| metric.ends_with(part);
    if metric == "return_code" || metric == "abort" {
        return Meaning::Flag { good: 0.0 };
    }
    match benchmark {
        "kernel-launch" if has("time") || has("overhead") => MILLIS,
        "gemm-flops" if has("iops") => high(Unit::OpsPerSec, 1e9),
        // 0.2 named the metric by the precision alone: gemm-flops/FP64.
        "gemm-flops" => GFLOPS,
        "cublaslt-gemm" | "hipblaslt-gemm" if ends("_flops") => TFLOPS,
        "cublas-function" | "cudnn-function" => function(metric),
        "matmul" | "pytorch-matmul" | "sharding-matmul" | "pytorch-sharding-matmul" => milliseconds(metric),
        "computation-communication-overlap" | "pytorch-computation-communication-overlap" => milliseconds(metric),
        "tensorrt-inference" | "ort-inference" | "dist-inference" | "pytorch-dist-inference" => milliseconds(metric),
        "gpu-burn" if has("pass") => Meaning::Flag { good: 1.0 },
        "gpu-burn" if metric == "time" => Meaning::Neutral,
        "cpu-hpl" if has("pass") => Meaning::Flag { good: 1.0 },
        "cpu-hpl" if has("throughput") => GFLOPS,
        "cpu-hpl" if ends("time") => low(Unit::Seconds, 1.0),
        "cpu-stream" if has("throughput") => MB_PER_S,
        "cpu-stream" if has("time") => low(Unit::Seconds, 1.0),
        "cpu-stream" if has("threads") => Meaning::Neutral,
        "cpu-memory-bw-latency" if ends("_lat") => NANOS,
        "cpu-memory-bw-latency" if ends("_bw") => MB_PER_S,
        "mem-bw" if lower_has(metric, "bw") => GB_PER_S,
        // 0.2 kept perftest's megabytes, which are of 2^20 bytes.
        "ib-loopback" if has("_Avg_") => MIB_PER_S,
        "gpu-copy-bw" | "gpu-sm-copy-bw" | "ib-loopback" | "directx-gpu-copy-bw" | "directx-gpu-mem-bw" => GB_PER_S,
        "nvbandwidth" if ends("_bw") => GB_PER_S,
        "nvbandwidth" if ends("_lat") => MICROS,
        "gpu-stream" if ends("_ratio") => high(Unit::Ratio, 1e-2),
        "gpu-stream" if ends("_bw") => GB_PER_S,
        "nccl-bw" | "rccl-bw" if ends("busbw") || ends("algbw") => GB_PER_S,
        "nccl-bw" | "rccl-bw" if ends("_time") => MICROS,
        "ib-traffic" if has("_lat_") => MICROS,
        "ib-traffic" if has("_bw_") => GB_PER_S,
        "gpcnet-network-test" | "gpcnet-network-load-test" => gpcnet(metric),
        "tcp-connectivity" => tcp(metric),
        "disk-benchmark" => disk(metric),
        "directx-gpu-core-flops" if ends("_flops") => GFLOPS,
        "directx-gpu-encoding-latency" if has("lat") => MILLIS,
        "directx-gpu-encoding-latency" if has("fps") => SAMPLES,
        "monitor" => Meaning::Neutral,
        name if name.ends_with("models") || name.starts_with("model-benchmarks") || name == "megatron-gpt" => {
            model(metric)
        }
        _ => Meaning::Unknown,
    }
}

/// Unit and direction of a metric that a reader of this crate named, by its identity: what our own export of samples does not
/// say of it. The values are in our unit already. `None` for the metrics of others.
#[must_use]
pub fn of_metric(metric: &MetricId) -> Option<(Unit, Direction)> {
    let ends = |part: &str| metric.name.ends_with(part);
    let meaning = match metric.engine.as_str() {
        "superbench" => Key::parse(&metric.path())?.meaning(),
        "nccl-tests" if ends("busbw") || ends("algbw") => GB_PER_S,
        "nccl-tests" if ends("time") => MICROS,
        "perftest" if metric.benchmark.contains("-bw") => GBIT_PER_S,
        "perftest" if metric.benchmark.contains("-lat") => MICROS,
        "fio" if metric.name.contains("_lat_") => NANOS,
        "fio" if ends("_iops") => IOPS,
        "fio" | "nvbandwidth" if ends("_bw") => BYTES_PER_S,
        "nvbandwidth" if ends("_lat") => NANOS,
        _ => return None,
    };
    match meaning {
        Meaning::Measure { unit, direction, .. } => Some((unit, direction)),
        Meaning::Flag { .. } | Meaning::Neutral | Meaning::Unknown => None,
    }
}

fn lower_has(metric: &str, part: &str) -> bool {
    metric.to_ascii_lowercase().contains(part)
}

/// Some of these were named without a unit before 0.4: `nosharding`, `mul_cost`.
fn milliseconds(metric: &str) -> Meaning {
    let known = ["time", "cost", "sharding", "allreduce", "allgather"];
    if known.iter().any(|part| metric.contains(part)) { MILLIS } else { Meaning::Unknown }
}

fn function(metric: &str) -> Meaning {
    match () {
        () if metric.ends_with("_time") => MICROS,
        () if metric.ends_with("_correctness") => Meaning::Flag { good: 1.0 },
        () if metric.ends_with("_error") => FACTOR,
        // 0.3 named the time by the function alone.
        () if metric.starts_with("name_") => MICROS,
        () => Meaning::Unknown,
    }
}

fn gpcnet(metric: &str) -> Meaning {
    match () {
        () if metric.contains("_x_") => FACTOR,
        () if metric.contains("_bw_") => MIB_PER_S,
        () if metric.contains("_lat_") || metric.contains("_time_") => MICROS,
        () => Meaning::Unknown,
    }
}

fn tcp(metric: &str) -> Meaning {
    match () {
        () if metric.ends_with("_success_rate") => high(Unit::Ratio, 1.0),
        () if metric.ends_with("_successed_count") => high(Unit::Count, 1.0),
        () if metric.ends_with("_failed_count") => low(Unit::Count, 1.0),
        () if metric.contains("_time_") => MILLIS,
        () => Meaning::Unknown,
    }
}

fn disk(metric: &str) -> Meaning {
    match () {
        () if metric.ends_with("_iops") => IOPS,
        () if metric.contains("_lat_ns_") => NANOS,
        () if metric.contains("_lat_us_") => MICROS,
        () if metric.contains("_lat_ms_") => MILLIS,
        () if metric.ends_with("_bs") => Meaning::Neutral,
        () => Meaning::Unknown,
    }
}

/// Models: `fp16_train_step_time`, and `steptime_train_float16` before 0.4.
fn model(metric: &str) -> Meaning {
    match () {
        () if metric.contains("throughput") => SAMPLES,
        () if metric.contains("step_time") || metric.contains("steptime") => MILLIS,
        () if metric.ends_with("tflops") => TFLOPS,
        () if metric.contains("mem_allocated") => Meaning::Neutral,
        // Fingerprints of deterministic training must be equal; no direction applies to them.
        () if metric.contains("deterministic") => Meaning::Neutral,
        () => Meaning::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::Direction::{HigherIsBetter, LowerIsBetter};

    #[test]
    fn units_and_directions_are_superbench_s() {
        let measure = |b, m| match of_superbench(b, m) {
            Meaning::Measure { unit, factor, direction } => (unit, factor, direction),
            other => panic!("{b}/{m}: {other:?}"),
        };
        assert_eq!(measure("kernel-launch", "event_time"), (Unit::Nanos, 1e6, LowerIsBetter));
        assert_eq!(measure("kernel-launch", "wall_overhead"), (Unit::Nanos, 1e6, LowerIsBetter));
        assert_eq!(measure("mem-bw", "H2D_Mem_BW"), (Unit::BytesPerSec, 1e9, HigherIsBetter));
        assert_eq!(measure("gemm-flops", "int8_tc_iops"), (Unit::OpsPerSec, 1e9, HigherIsBetter));
        assert_eq!(measure("nccl-bw", "allreduce_8_time"), (Unit::Nanos, 1e3, LowerIsBetter));
        assert_eq!(measure("ib-traffic", "ib_write_lat_8_cpu-to-cpu_0_1:a_b"), (Unit::Nanos, 1e3, LowerIsBetter));
        assert_eq!(measure("disk-benchmark", "nvme0n1_rand_read_read_lat_ns_99.9"), (Unit::Nanos, 1.0, LowerIsBetter));
        assert_eq!(measure("bert_models", "fp16_train_throughput"), (Unit::OpsPerSec, 1.0, HigherIsBetter));
        assert_eq!(measure("bert_models", "steptime_train_float16"), (Unit::Nanos, 1e6, LowerIsBetter));
        for metric in ["matmul_time", "mul_time", "matmul_time_ms", "mul_cost"] {
            let benchmark = "computation-communication-overlap";
            assert_eq!(measure(benchmark, metric), (Unit::Nanos, 1e6, LowerIsBetter), "{metric}");
        }
        for metric in ["nosharding_time", "allreduce_time", "allgather_time", "matmul_sharding_allreduce"] {
            assert_eq!(measure("sharding-matmul", metric), (Unit::Nanos, 1e6, LowerIsBetter), "{metric}");
        }
        assert_eq!(of_superbench("mem-bw", "return_code"), Meaning::Flag { good: 0.0 });
        assert_eq!(of_superbench("gpu-burn", "gpu_3_pass"), Meaning::Flag { good: 1.0 });
        assert_eq!(of_superbench("monitor", "gpu_temperature"), Meaning::Neutral);
        assert_eq!(of_superbench("something-new", "speed"), Meaning::Unknown);
    }

    #[test]
    fn a_metric_that_a_reader_named_keeps_its_unit_and_direction_without_its_file() {
        let of = |benchmark: &str, name: &str, engine: &str| of_metric(&MetricId::new(benchmark, name, engine));
        let (time, rate) = (Some((Unit::Nanos, LowerIsBetter)), Some((Unit::BytesPerSec, HigherIsBetter)));
        assert_eq!(of("kernel-launch", "event_time:7", "superbench"), time);
        assert_eq!(of("model-benchmarks:nlp/pytorch-gpt2-large", "fp16_train_step_time:0", "superbench"), time);
        assert_eq!(of("mem-bw", "h2d_bw:0", "superbench"), rate);
        assert_eq!(of("nccl-bw", "allreduce_8_inplace_time", "nccl-tests"), time);
        assert_eq!(of("nccl-bw", "allreduce_8_busbw", "nccl-tests"), rate);
        assert_eq!(of("ib-send-lat", "2_p99", "perftest"), time);
        assert_eq!(of("ib-write-bw-bidirectional", "65536_avg", "perftest"), rate);
        assert_eq!(of("disk", "seq_read_lat_p99.9", "fio"), time);
        assert_eq!(of("disk", "seq_read_iops", "fio"), Some((Unit::OpsPerSec, HigherIsBetter)));
        assert_eq!(of("nvbandwidth", "host_device_latency_sm_cpu0_gpu0_lat", "nvbandwidth"), time);
        assert_eq!(of("something-new", "speed", "superbench"), None);
        assert_eq!(of("disk", "seq-read", "own"), None);
    }
}
