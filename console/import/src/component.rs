//! What another tool's metric speaks of, and whether its values are raw steps or averages: one table per format.
//!
//! Source: as for [`crate::meaning`]. SuperBench starts one process a GPU and numbers them, so a rank is a GPU wherever a
//! benchmark uses GPUs, and also where nothing is known of the benchmark: numbers of two ranks never speak of one thing.

use muster_wire::{Component, Declared, MetricId, MetricRole, role};

use crate::superbench::Key;

/// What a SuperBench benchmark measures.
#[derive(Clone, Copy)]
enum Of {
    /// One GPU a rank, or those that the metric names.
    Gpu,
    /// All GPUs together, whichever rank says it.
    Gpus,
    /// Between nodes, unless its annotation says that all of it stays in one.
    Fabric,
    /// One adapter a rank.
    Port,
    Cpu,
    Memory,
    /// The disk that the metric begins with.
    Disk,
    Network,
    Application,
}

/// SuperBench's benchmarks by name. What is not here is a GPU's where it has a rank, else an application's.
const SUPERBENCH: &[(&str, Of)] = &[
    ("kernel-launch", Of::Gpu),
    ("gemm-flops", Of::Gpu),
    ("cublaslt-gemm", Of::Gpu),
    ("hipblaslt-gemm", Of::Gpu),
    ("cublas-function", Of::Gpu),
    ("cudnn-function", Of::Gpu),
    ("matmul", Of::Gpu),
    ("pytorch-matmul", Of::Gpu),
    ("gpu-burn", Of::Gpu),
    ("mem-bw", Of::Gpu),
    ("gpu-copy-bw", Of::Gpu),
    ("gpu-sm-copy-bw", Of::Gpu),
    ("gpu-stream", Of::Gpu),
    ("nvbandwidth", Of::Gpu),
    ("tensorrt-inference", Of::Gpu),
    ("ort-inference", Of::Gpu),
    ("directx-gpu-core-flops", Of::Gpu),
    ("directx-gpu-copy-bw", Of::Gpu),
    ("directx-gpu-mem-bw", Of::Gpu),
    ("directx-gpu-encoding-latency", Of::Gpu),
    ("sharding-matmul", Of::Gpus),
    ("pytorch-sharding-matmul", Of::Gpus),
    ("computation-communication-overlap", Of::Gpus),
    ("pytorch-computation-communication-overlap", Of::Gpus),
    ("dist-inference", Of::Gpus),
    ("pytorch-dist-inference", Of::Gpus),
    ("nccl-bw", Of::Fabric),
    ("rccl-bw", Of::Fabric),
    ("ib-loopback", Of::Port),
    ("ib-traffic", Of::Network),
    ("gpcnet-network-test", Of::Network),
    ("gpcnet-network-load-test", Of::Network),
    ("tcp-connectivity", Of::Network),
    ("cpu-hpl", Of::Cpu),
    ("cpu-stream", Of::Memory),
    ("cpu-memory-bw-latency", Of::Memory),
    ("disk-benchmark", Of::Disk),
    ("megatron-gpt", Of::Application),
];

/// What a key of SuperBench is; `aggregated` as its file says: summaries average, `raw_data` does not.
#[must_use]
pub fn superbench(key: &Key<'_>, aggregated: bool) -> Declared {
    let known = SUPERBENCH.iter().find(|(name, _)| *name == key.benchmark).map(|(_, of)| *of);
    let rank = || key.rank.map(Component::Gpu);
    let component = match known {
        Some(Of::Gpu) => gpus_in(key.metric).or_else(rank).unwrap_or(Component::Gpus),
        Some(Of::Gpus) => Component::Gpus,
        Some(Of::Fabric) if key.annotation.is_none_or(|a| a == "nvlink") => Component::Gpus,
        Some(Of::Fabric | Of::Network) => Component::Nic(None),
        Some(Of::Port) => key.rank.map_or(Component::Nic(None), |rank| Component::IbPort(rank.to_string())),
        Some(Of::Cpu) => Component::Cpu,
        Some(Of::Memory) => Component::Memory,
        Some(Of::Disk) => Component::Disk(disk_in(key.metric)),
        Some(Of::Application) => Component::Application,
        None if !key.model.is_empty() => Component::Application,
        None => rank().unwrap_or(Component::Application),
    };
    declared(component, &key.metric_id(), aggregated)
}

/// What nccl-tests print: averages over all GPUs.
pub(crate) fn nccl(metric: &MetricId) -> Declared {
    declared(Component::Gpus, metric, true)
}

/// What perftest prints: averages and percentiles of many messages over one adapter.
pub(crate) fn perftest(metric: &MetricId) -> Declared {
    declared(Component::Nic(None), metric, true)
}

/// What fio prints: averages and percentiles of a job.
pub(crate) fn fio(metric: &MetricId) -> Declared {
    declared(Component::Disk(None), metric, true)
}

/// What nvbandwidth prints of the devices of a row and a column: averages.
pub(crate) fn nvbandwidth(metric: &MetricId, gpus: &[u32]) -> Declared {
    declared(between(gpus).unwrap_or(Component::Gpus), metric, true)
}

fn declared(component: Component, metric: &MetricId, aggregated: bool) -> Declared {
    // The slowest of many is as moody as any percentile.
    let role = if metric.name.ends_with("_max") { MetricRole::Tail } else { role(metric) };
    Declared { component, role, aggregated }
}

/// GPUs that a name speaks of, `gpu0_to_gpu1_by_sm_bw` or `STREAM_COPY_double_gpu_0_buffer_4096_block_128_bw`.
fn gpus_in(metric: &str) -> Option<Component> {
    let parts = metric.split("gpu").skip(1);
    let numbers = parts.filter_map(|rest| {
        let rest = rest.strip_prefix('_').unwrap_or(rest);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().ok()
    });
    between(&numbers.take(2).collect::<Vec<u32>>())
}

fn between(gpus: &[u32]) -> Option<Component> {
    match *gpus {
        [a, b, ..] if a != b => Some(Component::GpuLink(a.min(b), a.max(b))),
        [gpu, ..] => Some(Component::Gpu(gpu)),
        [] => None,
    }
}

/// `nvme0n1` of `nvme0n1_rand_read_write_iops`.
fn disk_in(metric: &str) -> Option<String> {
    let at = ["_seq_", "_rand_"].into_iter().filter_map(|word| metric.find(word)).min()?;
    Some(metric[..at].to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_of_superbench_key_has_its_component() {
        for (text, component) in [
            ("gemm-flops/fp64_flops:3", Component::Gpu(3)),
            ("gemm-flops/FP64", Component::Gpus),
            ("mem-bw/h2d_bw:0", Component::Gpu(0)),
            ("kernel-launch/event_time:7", Component::Gpu(7)),
            ("gpu-copy-bw:correctness/cpu_to_gpu5_by_sm_under_numa1_bw", Component::Gpu(5)),
            ("gpu-copy-bw/gpu7_to_gpu2_write_by_dma_bw", Component::GpuLink(2, 7)),
            ("gpu-copy-bw/gpu3_to_gpu3_by_dma_bw", Component::Gpu(3)),
            ("gpu-copy-bw/gpu_all_to_gpu_all_write_by_sm_bw", Component::Gpus),
            ("gpu-stream/STREAM_COPY_double_gpu_4_buffer_4096_block_128_bw", Component::Gpu(4)),
            ("nccl-bw:nvlink/allreduce_8589934592_busbw", Component::Gpus),
            ("nccl-bw/allreduce_8_busbw:0", Component::Gpus),
            ("nccl-bw:ib/allreduce_0_3:8589934592_busbw:0", Component::Nic(None)),
            ("ib-loopback/ib_write_bw_8388608:6", Component::IbPort("6".into())),
            ("ib-traffic/ib_write_bw_8388608_gpu-to-gpu_2_5:nodeA_nodeB:3", Component::Nic(None)),
            ("cpu-memory-bw-latency/mem_bandwidth_matrix_numa_0_1_bw", Component::Memory),
            ("disk-benchmark/nvme0n1_rand_read_write_iops", Component::Disk(Some("nvme0n1".into()))),
            ("model-benchmarks:bert/pytorch-bert-large/fp16_train_step_time:2", Component::Application),
            ("bert_models/pytorch-bert-large/fp16_train_throughput", Component::Application),
            ("of-tomorrow/speed:5", Component::Gpu(5)),
            ("of-tomorrow/speed", Component::Application),
        ] {
            let found = superbench(&Key::parse(text).unwrap(), true);
            assert_eq!(
                (found.component, found.role, found.aggregated),
                (component, MetricRole::Judged, true),
                "{text}"
            );
        }
    }

    #[test]
    fn percentiles_and_the_slowest_of_many_are_tails() {
        for text in [
            "disk-benchmark/nvme0n1_seq_read_read_lat_ns_99.9",
            "ort-inference/fp16_resnet50_time_95:1",
            "gpcnet-network-test/rr_two-sided_lat_max",
            "cpu-stream/copy_time_max",
        ] {
            assert_eq!(superbench(&Key::parse(text).unwrap(), true).role, MetricRole::Tail, "{text}");
        }
        assert!(!superbench(&Key::parse("mem-bw/h2d_bw:0").unwrap(), false).aggregated);
    }

    proptest! {
        #[test]
        fn no_key_is_too_strange(text in "(gpu-copy-bw|disk-benchmark|x)/(gpu|_seq_|\\PC){0,12}") {
            if let Some(key) = Key::parse(&text) {
                let _ = superbench(&key, false);
            }
        }
    }
}
