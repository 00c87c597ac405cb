//! The calls that are measured: SuperBench's, and small ones that are quick on simulated GPUs.
//!
//! Source: SuperBench 0.12, the default parameters of `cublas_function.py` and `cudnn_function.py`.

use super::product::Function::{
    Cgemm, Cgemm3mStridedBatched, GemmEx, GemmStridedBatchedEx, Sgemm, SgemmStridedBatched,
};
use super::{Call, Convolution, Function, Precision, Product, Way};

/// A call with its name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// That of its metric, without the GPU.
    pub name: &'static str,
    /// What is done.
    pub call: Call,
}

const N: bool = false;
const T: bool = true;

const fn product(
    name: &'static str,
    (function, precision): (Function, Precision),
    transposed: [bool; 2],
    [m, n, k]: [u32; 3],
    batch: u32,
) -> Entry {
    Entry { name, call: Call::Product(Product { function, precision, m, n, k, transposed, batch }) }
}

const fn complex(name: &'static str, mnk: [u32; 3]) -> Entry {
    product(name, (Cgemm, Precision::Complex), [T, N], mnk, 1)
}

const fn complex_3m(name: &'static str, transposed: [bool; 2], mnk: [u32; 3], batch: u32) -> Entry {
    product(name, (Cgemm3mStridedBatched, Precision::Complex), transposed, mnk, batch)
}

/// SuperBench's nineteen, in its order.
const PRODUCTS: [Entry; 19] = [
    complex("cgemm-tn-512x512x32", [512, 512, 32]),
    complex("cgemm-tn-2048x512x32", [2048, 512, 32]),
    complex("cgemm-tn-512x2048x32", [512, 2048, 32]),
    complex("cgemm-tn-640x1280x32", [640, 1280, 32]),
    complex("cgemm-tn-896x1792x32", [896, 1792, 32]),
    complex_3m("cgemm3m-nt-64x32x3-b544", [N, T], [64, 32, 3], 544),
    complex_3m("cgemm3m-tn-64x32x64-b544", [T, N], [64, 32, 64], 544),
    complex_3m("cgemm3m-nt-128x32x128-b544", [N, T], [128, 32, 128], 544),
    complex_3m("cgemm3m-nt-128x32x64-b544", [N, T], [128, 32, 64], 544),
    complex_3m("cgemm3m-nt-64x32x128-b544", [N, T], [64, 32, 128], 544),
    product("gemm-half-nn-224x224x64-b160", (GemmStridedBatchedEx, Precision::Fp16), [N, N], [224, 224, 64], 160),
    product("gemm-half-nn-64x224x224-b160", (GemmStridedBatchedEx, Precision::Fp16), [N, N], [64, 224, 224], 160),
    product("gemm-float-nn-4000x224x1000", (GemmEx, Precision::Fp32), [N, N], [4000, 224, 1000], 1),
    product("gemm-half-tn-4000x224x1000", (GemmEx, Precision::Fp16), [T, N], [4000, 224, 1000], 1),
    product("gemm-half-nn-1000x224x4000", (GemmEx, Precision::Fp16), [N, N], [1000, 224, 4000], 1),
    product("gemm-float-nn-1000x224x4000", (GemmEx, Precision::Fp32), [N, N], [1000, 224, 4000], 1),
    product("sgemm-tn-1024x7168x1024", (Sgemm, Precision::Fp32), [T, N], [1024, 7168, 1024], 1),
    product("sgemm-nn-64x224x224-b512", (SgemmStridedBatched, Precision::Fp32), [N, N], [64, 224, 224], 512),
    product("sgemm-nn-64x224x224-b160", (SgemmStridedBatched, Precision::Fp32), [N, N], [64, 224, 224], 160),
];

const SMALL_PRODUCTS: [Entry; 7] = [
    complex("cgemm-tn-40x24x9", [40, 24, 9]),
    complex_3m("cgemm3m-nt-16x8x3-b3", [N, T], [16, 8, 3], 3),
    product("gemm-half-nn-24x40x36-b3", (GemmStridedBatchedEx, Precision::Fp16), [N, N], [24, 40, 36], 3),
    product("gemm-half-tn-72x24x40", (GemmEx, Precision::Fp16), [T, N], [72, 24, 40], 1),
    product("gemm-float-nn-72x24x40", (GemmEx, Precision::Fp32), [N, N], [72, 24, 40], 1),
    product("sgemm-tn-40x72x40", (Sgemm, Precision::Fp32), [T, N], [40, 72, 40], 1),
    product("sgemm-nn-16x24x24-b3", (SgemmStridedBatched, Precision::Fp32), [N, N], [16, 24, 24], 3),
];

/// Of 32 images of 14 x 14.
const fn convolution(
    name: &'static str,
    (way, precision, algorithm): (Way, Precision, u32),
    (size, inputs, outputs): (u32, u32, u32),
) -> Entry {
    let call = Convolution { way, precision, images: 32, edge: 14, size, inputs, outputs, algorithm };
    Entry { name, call: Call::Convolution(call) }
}

const fn small_convolution(name: &'static str, (way, precision, algorithm): (Way, Precision, u32)) -> Entry {
    let call = Convolution { way, precision, images: 2, edge: 6, size: 3, inputs: 5, outputs: 4, algorithm };
    Entry { name, call: Call::Convolution(call) }
}

const FORWARD: Way = Way::Forward;
const DATA: Way = Way::BackwardData;
const FILTER: Way = Way::BackwardFilter;
const FLOAT: Precision = Precision::Fp32;
const HALF: Precision = Precision::Fp16;
const FEW: (u32, u32, u32) = (3, 128, 32);
const POINTS: (u32, u32, u32) = (1, 256, 1024);
const MANY: (u32, u32, u32) = (3, 512, 512);

/// SuperBench's eighteen, each with the algorithm that it asks for.
const CONVOLUTIONS: [Entry; 18] = [
    convolution("backward-filter-float-3x3-128to32", (FILTER, FLOAT, 0), FEW),
    convolution("backward-filter-half-3x3-128to32", (FILTER, HALF, 1), FEW),
    convolution("backward-filter-float-1x1-256to1024", (FILTER, FLOAT, 1), POINTS),
    convolution("backward-filter-half-1x1-256to1024", (FILTER, HALF, 1), POINTS),
    convolution("backward-filter-float-3x3-512to512", (FILTER, FLOAT, 1), MANY),
    convolution("backward-filter-half-3x3-512to512", (FILTER, HALF, 1), MANY),
    convolution("backward-data-half-3x3-128to32", (DATA, HALF, 1), FEW),
    convolution("backward-data-float-3x3-128to32", (DATA, FLOAT, 4), FEW),
    convolution("backward-data-float-1x1-256to1024", (DATA, FLOAT, 1), POINTS),
    convolution("backward-data-half-1x1-256to1024", (DATA, HALF, 1), POINTS),
    convolution("backward-data-float-3x3-512to512", (DATA, FLOAT, 1), MANY),
    convolution("backward-data-half-3x3-512to512", (DATA, HALF, 1), MANY),
    convolution("forward-float-3x3-128to32", (FORWARD, FLOAT, 6), FEW),
    convolution("forward-half-3x3-128to32", (FORWARD, HALF, 1), FEW),
    convolution("forward-float-1x1-256to1024", (FORWARD, FLOAT, 1), POINTS),
    convolution("forward-half-1x1-256to1024", (FORWARD, HALF, 1), POINTS),
    convolution("forward-float-3x3-512to512", (FORWARD, FLOAT, 1), MANY),
    convolution("forward-half-3x3-512to512", (FORWARD, HALF, 1), MANY),
];

const SMALL_CONVOLUTIONS: [Entry; 6] = [
    small_convolution("forward-float-3x3-5to4", (FORWARD, FLOAT, 1)),
    small_convolution("forward-half-3x3-5to4", (FORWARD, HALF, 1)),
    small_convolution("backward-data-float-3x3-5to4", (DATA, FLOAT, 1)),
    small_convolution("backward-data-half-3x3-5to4", (DATA, HALF, 1)),
    small_convolution("backward-filter-float-3x3-5to4", (FILTER, FLOAT, 0)),
    small_convolution("backward-filter-half-3x3-5to4", (FILTER, HALF, 1)),
];

/// Calls of linear algebra: those of SuperBench, or `small` ones.
#[must_use]
pub const fn products(small: bool) -> &'static [Entry] {
    if small { &SMALL_PRODUCTS } else { &PRODUCTS }
}

/// Convolutions: those of SuperBench, or `small` ones.
#[must_use]
pub const fn convolutions(small: bool) -> &'static [Entry] {
    if small { &SMALL_CONVOLUTIONS } else { &CONVOLUTIONS }
}
