//! Benchmarks of single calls on GPUs.

use super::entry::{Benchmark, Metric};
use super::gpu::SENSORS;
use crate::ComponentKind::Gpu;

const fn function(name: &'static str, about: &'static str, metrics: &'static [Metric]) -> Benchmark {
    Benchmark::gpu(name, about, metrics, SENSORS).limit_s([120, 180, 600, 1800])
}

const fn time(pattern: &'static str, title: &'static str) -> Metric {
    Metric::time(pattern, Gpu, title)
}

pub(super) const ALL: [Benchmark; 2] = [
    function(
        "cublas-function",
        "GPU: single matrix products in SuperBench's shapes, by own kernels and by cuBLAS where it is installed, verified",
        &[
            time("cgemm-tn-40x24x9:{gpu}", "Cgemm 40x24x9 TN"),
            time("cgemm3m-nt-16x8x3-b3:{gpu}", "Cgemm3mStridedBatched 16x8x3 NT, batch of 3"),
            time("gemm-half-nn-24x40x36-b3:{gpu}", "GemmStridedBatchedEx in half precision 24x40x36 NN, batch of 3"),
            time("gemm-half-tn-72x24x40:{gpu}", "GemmEx in half precision 72x24x40 TN"),
            time("gemm-float-nn-72x24x40:{gpu}", "GemmEx in float 72x24x40 NN"),
            time("sgemm-tn-40x72x40:{gpu}", "Sgemm 40x72x40 TN"),
            time("sgemm-nn-16x24x24-b3:{gpu}", "SgemmStridedBatched 16x24x24 NN, batch of 3"),
            time("cgemm-tn-512x512x32:{gpu}", "Cgemm 512x512x32 TN"),
            time("cgemm-tn-2048x512x32:{gpu}", "Cgemm 2048x512x32 TN"),
            time("cgemm-tn-512x2048x32:{gpu}", "Cgemm 512x2048x32 TN"),
            time("cgemm-tn-640x1280x32:{gpu}", "Cgemm 640x1280x32 TN"),
            time("cgemm-tn-896x1792x32:{gpu}", "Cgemm 896x1792x32 TN"),
            time("cgemm3m-nt-64x32x3-b544:{gpu}", "Cgemm3mStridedBatched 64x32x3 NT, batch of 544"),
            time("cgemm3m-tn-64x32x64-b544:{gpu}", "Cgemm3mStridedBatched 64x32x64 TN, batch of 544"),
            time("cgemm3m-nt-128x32x128-b544:{gpu}", "Cgemm3mStridedBatched 128x32x128 NT, batch of 544"),
            time("cgemm3m-nt-128x32x64-b544:{gpu}", "Cgemm3mStridedBatched 128x32x64 NT, batch of 544"),
            time("cgemm3m-nt-64x32x128-b544:{gpu}", "Cgemm3mStridedBatched 64x32x128 NT, batch of 544"),
            time(
                "gemm-half-nn-224x224x64-b160:{gpu}",
                "GemmStridedBatchedEx in half precision 224x224x64 NN, batch of 160",
            ),
            time(
                "gemm-half-nn-64x224x224-b160:{gpu}",
                "GemmStridedBatchedEx in half precision 64x224x224 NN, batch of 160",
            ),
            time("gemm-float-nn-4000x224x1000:{gpu}", "GemmEx in float 4000x224x1000 NN"),
            time("gemm-half-tn-4000x224x1000:{gpu}", "GemmEx in half precision 4000x224x1000 TN"),
            time("gemm-half-nn-1000x224x4000:{gpu}", "GemmEx in half precision 1000x224x4000 NN"),
            time("gemm-float-nn-1000x224x4000:{gpu}", "GemmEx in float 1000x224x4000 NN"),
            time("sgemm-tn-1024x7168x1024:{gpu}", "Sgemm 1024x7168x1024 TN"),
            time("sgemm-nn-64x224x224-b512:{gpu}", "SgemmStridedBatched 64x224x224 NN, batch of 512"),
            time("sgemm-nn-64x224x224-b160:{gpu}", "SgemmStridedBatched 64x224x224 NN, batch of 160"),
        ],
    ),
    function(
        "cudnn-function",
        "GPU: single convolutions in SuperBench's shapes, by own kernels and by cuDNN where it is installed, verified",
        &[
            time("forward-float-3x3-5to4:{gpu}", "convolution forward, float, 3x3, 5 to 4 channels"),
            time("forward-half-3x3-5to4:{gpu}", "convolution forward, half, 3x3, 5 to 4 channels"),
            time("backward-data-float-3x3-5to4:{gpu}", "convolution backward data, float, 3x3, 5 to 4 channels"),
            time("backward-data-half-3x3-5to4:{gpu}", "convolution backward data, half, 3x3, 5 to 4 channels"),
            time("backward-filter-float-3x3-5to4:{gpu}", "convolution backward filter, float, 3x3, 5 to 4 channels"),
            time("backward-filter-half-3x3-5to4:{gpu}", "convolution backward filter, half, 3x3, 5 to 4 channels"),
            time(
                "backward-filter-float-3x3-128to32:{gpu}",
                "convolution backward filter, float, 3x3, 128 to 32 channels",
            ),
            time(
                "backward-filter-half-3x3-128to32:{gpu}",
                "convolution backward filter, half, 3x3, 128 to 32 channels",
            ),
            time(
                "backward-filter-float-1x1-256to1024:{gpu}",
                "convolution backward filter, float, 1x1, 256 to 1024 channels",
            ),
            time(
                "backward-filter-half-1x1-256to1024:{gpu}",
                "convolution backward filter, half, 1x1, 256 to 1024 channels",
            ),
            time(
                "backward-filter-float-3x3-512to512:{gpu}",
                "convolution backward filter, float, 3x3, 512 to 512 channels",
            ),
            time(
                "backward-filter-half-3x3-512to512:{gpu}",
                "convolution backward filter, half, 3x3, 512 to 512 channels",
            ),
            time("backward-data-half-3x3-128to32:{gpu}", "convolution backward data, half, 3x3, 128 to 32 channels"),
            time("backward-data-float-3x3-128to32:{gpu}", "convolution backward data, float, 3x3, 128 to 32 channels"),
            time(
                "backward-data-float-1x1-256to1024:{gpu}",
                "convolution backward data, float, 1x1, 256 to 1024 channels",
            ),
            time(
                "backward-data-half-1x1-256to1024:{gpu}",
                "convolution backward data, half, 1x1, 256 to 1024 channels",
            ),
            time(
                "backward-data-float-3x3-512to512:{gpu}",
                "convolution backward data, float, 3x3, 512 to 512 channels",
            ),
            time("backward-data-half-3x3-512to512:{gpu}", "convolution backward data, half, 3x3, 512 to 512 channels"),
            time("forward-float-3x3-128to32:{gpu}", "convolution forward, float, 3x3, 128 to 32 channels"),
            time("forward-half-3x3-128to32:{gpu}", "convolution forward, half, 3x3, 128 to 32 channels"),
            time("forward-float-1x1-256to1024:{gpu}", "convolution forward, float, 1x1, 256 to 1024 channels"),
            time("forward-half-1x1-256to1024:{gpu}", "convolution forward, half, 1x1, 256 to 1024 channels"),
            time("forward-float-3x3-512to512:{gpu}", "convolution forward, float, 3x3, 512 to 512 channels"),
            time("forward-half-3x3-512to512:{gpu}", "convolution forward, half, 3x3, 512 to 512 channels"),
        ],
    ),
];
