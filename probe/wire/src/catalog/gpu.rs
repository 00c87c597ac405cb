//! Benchmarks of GPUs and of the links between them.

use super::entry::{Benchmark, Metric, MetricRole, RunsOn, Stage};
use crate::ComponentKind::{Gpu, GpuLink, Gpus, Nic};
use crate::{Category, Unit};

const TEMPERATURE: Metric =
    Metric::cost("temperature:{gpu}", Gpu, Unit::Celsius, "GPU temperature").role(MetricRole::Informational);
const POWER: Metric = Metric::cost("power:{gpu}", Gpu, Unit::Watts, "GPU power").role(MetricRole::Informational);
/// How fast a GPU may be, which its clock says only where the work asks for all of it.
const CLOCK: Metric = Metric::rate("clock:{gpu}", Gpu, Unit::Hertz, "SM clock");
/// Recorded during every benchmark of a GPU.
pub(super) const SENSORS: &[Metric] = &[TEMPERATURE, POWER, CLOCK.role(MetricRole::Informational)];
const UNDER_FULL_LOAD: &[Metric] = &[TEMPERATURE, POWER, CLOCK];

const fn bandwidth(pattern: &'static str, title: &'static str) -> Metric {
    Metric::rate(pattern, Gpu, Unit::BytesPerSec, title)
}

const fn flops(pattern: &'static str, title: &'static str) -> Metric {
    Metric::rate(pattern, Gpu, Unit::FlopPerSec, title)
}

const fn ops(pattern: &'static str, title: &'static str) -> Metric {
    Metric::rate(pattern, Gpu, Unit::OpsPerSec, title)
}

const fn time(pattern: &'static str, title: &'static str) -> Metric {
    Metric::time(pattern, Gpu, title)
}

const fn cycles(pattern: &'static str, title: &'static str) -> Metric {
    Metric::cost(pattern, Gpu, Unit::Count, title)
}

const fn collective(pattern: &'static str, title: &'static str) -> Metric {
    Metric::rate(pattern, Gpus, Unit::BytesPerSec, title).category(Category::NvLink)
}

const fn joint(pattern: &'static str, title: &'static str) -> Metric {
    Metric::time(pattern, Gpus, title).category(Category::NvLink)
}

pub(super) const ALL: [Benchmark; 15] = [
    Benchmark::gpu(
        "kernel-launch",
        "GPU: time to start an empty kernel",
        &[
            time("event:{gpu}", "kernel launch, by GPU events"),
            time("wall:{gpu}", "kernel launch and synchronise, wall clock"),
            time("call:{gpu}", "launch call"),
            time("graph-node:{gpu}", "kernel launch in a CUDA graph"),
        ],
        SENSORS,
    )
    .limit_s([60, 120, 180, 600]),
    Benchmark::gpu(
        "gpu-stream",
        "GPU: memory bandwidth (write, copy, read, triad) and latency, verified",
        &[
            bandwidth("write:{gpu}", "HBM write"),
            bandwidth("copy:{gpu}", "HBM copy"),
            bandwidth("read:{gpu}", "HBM read"),
            bandwidth("triad:{gpu}", "HBM triad"),
            time("latency:{gpu}", "HBM latency"),
            bandwidth("l2-read:{gpu}", "L2 read"),
            time("l2-latency:{gpu}", "L2 latency"),
        ],
        SENSORS,
    ),
    Benchmark::gpu(
        "gpu-copy-bw",
        "GPU: copies from the host, to the host and on the device, verified",
        &[
            bandwidth("host-to-device:{gpu}", "copy host to device").category(Category::Pcie),
            bandwidth("device-to-host:{gpu}", "copy device to host").category(Category::Pcie),
            bandwidth("device-to-device:{gpu}", "copy on the device"),
        ],
        SENSORS,
    )
    .limit_s([120, 240, 600, 1200])
    .runs_on(RunsOn::GpuByGpu),
    Benchmark::gpu(
        "gpu-peer-bw",
        "GPUs: copies from each to each other, by copy engine and by kernels, verified",
        &[
            Metric::rate("gpu{gpu}-to-gpu{gpu}", GpuLink, Unit::BytesPerSec, "copy between two GPUs by copy engine"),
            bandwidth("read:{gpu}", "read from all other GPUs by kernels").category(Category::NvLink),
            bandwidth("write:{gpu}", "write to all other GPUs by kernels").category(Category::NvLink),
        ],
        SENSORS,
    )
    .limit_s([120, 240, 600, 1200])
    .runs_on(RunsOn::AllGpus)
    .category(Category::NvLink),
    Benchmark::gpu(
        "p2p-allreduce",
        "GPUs: sum over all GPUs of a node by own kernels, bus bandwidth, every sum checked",
        &[collective("{size}", "all-reduce bus bandwidth, own kernels")],
        SENSORS,
    )
    .runs_on(RunsOn::AllGpus)
    .category(Category::NvLink),
    Benchmark::gpu(
        "nccl-bw",
        "GPUs: NCCL's all-reduce, all-gather and all-to-all over a node, where it is installed, verified",
        &[
            collective("all-reduce-{size}", "NCCL all-reduce bus bandwidth"),
            collective("all-gather-{size}", "NCCL all-gather bus bandwidth"),
            collective("all-to-all-{size}", "NCCL all-to-all bus bandwidth"),
        ],
        SENSORS,
    )
    .limit_s([120, 240, 600, 1200])
    .runs_on(RunsOn::AllGpus)
    .category(Category::NvLink),
    Benchmark::gpu(
        "gpu-comm-overlap",
        "GPUs: matrix products and squares beside an all-reduce over all GPUs of a node, and what each loses by it, verified",
        &[
            time("matmul:{gpu}", "30 fp32 GEMMs of 640 x 1024 x 1880 alone"),
            time("matmul-beside-all-reduce:{gpu}", "30 fp32 GEMMs beside an all-reduce"),
            time("mul:{gpu}", "30 squares of 640 x 1024 alone"),
            time("mul-beside-all-reduce:{gpu}", "30 squares beside an all-reduce"),
            joint("all-reduce", "all-reduce of 28 MB alone"),
            joint("all-reduce-beside-matmul", "all-reduce of 28 MB beside GEMMs"),
            joint("all-reduce-beside-mul", "all-reduce of 28 MB beside squares"),
            joint("matmul-step", "30 GEMMs and an all-reduce together"),
            joint("mul-step", "30 squares and an all-reduce together"),
            Metric::rate("overlap-matmul", Gpus, Unit::Ratio, "overlap of GEMMs and all-reduce"),
            Metric::rate("overlap-mul", Gpus, Unit::Ratio, "overlap of squares and all-reduce"),
        ],
        SENSORS,
    )
    .limit_s([120, 240, 600, 1200])
    .runs_on(RunsOn::AllGpus)
    .category(Category::NvLink),
    Benchmark::gpu(
        "gpu-sharding-matmul",
        "GPUs: one large matrix product, on each GPU whole and sharded over all GPUs of a node, verified",
        &[
            time("bf16-no-sharding:{gpu}", "large bf16 GEMM on one GPU"),
            joint("bf16-all-reduce", "large bf16 GEMM sharded along k, with all-reduce"),
            joint("bf16-all-gather", "large bf16 GEMM sharded by rows, with all-gather"),
            time("fp32-no-sharding:{gpu}", "large fp32 GEMM on one GPU"),
            joint("fp32-all-reduce", "large fp32 GEMM sharded along k, with all-reduce"),
            joint("fp32-all-gather", "large fp32 GEMM sharded by rows, with all-gather"),
        ],
        SENSORS,
    )
    .limit_s([120, 240, 600, 1200])
    .runs_on(RunsOn::AllGpus)
    .category(Category::NvLink),
    Benchmark::gpu(
        "ib-allreduce",
        "GPUs: NCCL's all-reduce over a node through its InfiniBand and RoCE adapters alone, verified",
        &[Metric::rate("all-reduce-{size}", Nic, Unit::BytesPerSec, "NCCL all-reduce bus bandwidth through adapters")],
        SENSORS,
    )
    .limit_s([120, 240, 600, 1200])
    .runs_on(RunsOn::AllGpus)
    .category(Category::Network),
    Benchmark::gpu(
        "gemm-flops",
        "GPU: matrix products of every type on tensor cores, fp32 and fp64, verified",
        &[
            flops("bf16:{gpu}", "bf16 GEMM (mma)"),
            flops("fp16:{gpu}", "fp16 GEMM (mma)"),
            flops("tf32:{gpu}", "tf32 GEMM (mma)"),
            ops("int8:{gpu}", "int8 GEMM (mma)"),
            flops("bf16-wgmma:{gpu}", "bf16 GEMM (wgmma)"),
            flops("fp16-wgmma:{gpu}", "fp16 GEMM (wgmma)"),
            flops("tf32-wgmma:{gpu}", "tf32 GEMM (wgmma)"),
            flops("fp8-wgmma:{gpu}", "fp8 GEMM (wgmma)"),
            ops("int8-wgmma:{gpu}", "int8 GEMM (wgmma)"),
            flops("fp32:{gpu}", "fp32 GEMM"),
            flops("fp64:{gpu}", "fp64 GEMM"),
        ],
        UNDER_FULL_LOAD,
    ),
    Benchmark::gpu(
        "gpu-overlap",
        "GPU: matrix products and copies at the same time, and what each loses by it",
        &[
            time("gemm:{gpu}", "bf16 GEMM alone"),
            time("host-to-device:{gpu}", "copy host to device alone").category(Category::Pcie),
            time("gemm-beside-host-to-device:{gpu}", "bf16 GEMM beside a copy from the host"),
            time("host-to-device-beside-gemm:{gpu}", "copy host to device beside a GEMM").category(Category::Pcie),
            Metric::rate("overlap-host-to-device:{gpu}", Gpu, Unit::Ratio, "overlap of GEMM and copy from the host"),
            time("device-to-device:{gpu}", "copy on the device alone"),
            time("gemm-beside-device-to-device:{gpu}", "bf16 GEMM beside a copy on the device"),
            time("device-to-device-beside-gemm:{gpu}", "copy on the device beside a GEMM"),
            Metric::rate("overlap-device-to-device:{gpu}", Gpu, Unit::Ratio, "overlap of GEMM and copy on the device"),
        ],
        SENSORS,
    )
    .limit_s([120, 240, 600, 1200])
    .runs_on(RunsOn::GpuByGpu),
    Benchmark::gpu(
        "cublaslt-gemm",
        "GPU: matrix products by cuBLASLt, where it is installed, bits compared",
        &[
            flops("bf16:{gpu}", "bf16 GEMM (cuBLASLt)"),
            flops("fp16:{gpu}", "fp16 GEMM (cuBLASLt)"),
            flops("tf32:{gpu}", "tf32 GEMM (cuBLASLt)"),
            ops("int8:{gpu}", "int8 GEMM (cuBLASLt)"),
            flops("fp8:{gpu}", "fp8 GEMM (cuBLASLt)"),
            flops("fp32:{gpu}", "fp32 GEMM (cuBLASLt)"),
            flops("fp64:{gpu}", "fp64 GEMM (cuBLASLt)"),
        ],
        SENSORS,
    ),
    Benchmark::gpu(
        "gpu-burn",
        "GPU: every multiprocessor under load, bits compared",
        &[
            flops("bf16-mma:{gpu}", "bf16 tensor cores under load (mma)"),
            flops("bf16-wgmma:{gpu}", "bf16 tensor cores under load (wgmma)"),
            flops("ffma:{gpu}", "fp32 FMA under load"),
            flops("dfma:{gpu}", "fp64 FMA under load"),
            flops("imad:{gpu}", "int32 multiply-add under load"),
            flops("bf16-beside-copy:{gpu}", "bf16 tensor cores beside an HBM copy"),
            bandwidth("copy-beside-bf16:{gpu}", "HBM copy beside bf16 tensor cores"),
            flops("bf16-pulse:{gpu}", "bf16 tensor cores in pulses"),
        ],
        UNDER_FULL_LOAD,
    )
    .stage(Stage::Burn),
    Benchmark::gpu(
        "sm-sdc",
        "GPU: does each multiprocessor compute the same bits in the same time, as far from L2 as before",
        &[
            cycles("bf16-mma-cycles:{gpu}", "cycles of one SM, bf16 mma"),
            cycles("bf16-wgmma-cycles:{gpu}", "cycles of one SM, bf16 wgmma"),
            cycles("ffma-cycles:{gpu}", "cycles of one SM, fp32 FMA"),
            cycles("dfma-cycles:{gpu}", "cycles of one SM, fp64 FMA"),
            cycles("imad-cycles:{gpu}", "cycles of one SM, int32 multiply-add"),
        ],
        SENSORS,
    ),
    Benchmark::gpu(
        "gpu-memory-map",
        "GPU: which pages keep what is written, and how long each takes",
        &[cycles("page-cycles:{gpu}", "cycles to read one 2 MiB page")],
        SENSORS,
    ),
];
