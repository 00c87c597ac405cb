//! What SuperBench calls work that a metric of ours measures as well, so that its baselines and rules apply to it.
//!
//! Only the same work counts: the same function on the same shape by the same vendor's library, a launch, a copy between GPU and
//! host. Whatever our own kernels compute has no name there. Of
//! `cudnn-function` the calls in half precision are left out: SuperBench 0.12 sets the type of the data a second time with that
//! of the sums (`set_conv_type` in `cudnn_config.h`), so what it lists as half precision is computed on floats.
//!
//! Source of names: SuperBench 0.12, `cublas_function.py` and `cudnn_function.py`, which join sorted parameters, and
//! `docs/user-tutorial/benchmarks/micro-benchmarks.md`.

use muster_wire::{Component, MetricId, describe};

/// A function on matrices: our name, then theirs and what else its name says.
struct Product {
    ours: &'static str,
    function: &'static str,
    batch: Option<u32>,
    /// Type of the numbers, and whether tensor cores are asked for.
    typed: Option<(&'static str, bool)>,
    /// m, n, k.
    sizes: [u32; 3],
    transposed: [u8; 2],
}

const fn plain(ours: &'static str, function: &'static str, sizes: [u32; 3], transposed: [u8; 2]) -> Product {
    Product { ours, function, batch: None, typed: None, sizes, transposed }
}

const fn batched(
    ours: &'static str,
    function: &'static str,
    sizes: [u32; 3],
    (transposed, batch): ([u8; 2], u32),
) -> Product {
    Product { ours, function, batch: Some(batch), typed: None, sizes, transposed }
}

const fn typed(
    ours: &'static str,
    kind: (&'static str, bool),
    sizes: [u32; 3],
    (transposed, batch): ([u8; 2], Option<u32>),
) -> Product {
    let function = if batch.is_some() { "gemmstridedbatchedex" } else { "gemmex" };
    Product { ours, function, batch, typed: Some(kind), sizes, transposed }
}

const NN: [u8; 2] = [0, 0];
const NT: [u8; 2] = [0, 1];
const TN: [u8; 2] = [1, 0];
const COMPLEX: &str = "cgemm3mstridedbatched";

const PRODUCTS: [Product; 19] = [
    plain("cgemm-tn-512x512x32", "cgemm", [512, 512, 32], TN),
    plain("cgemm-tn-2048x512x32", "cgemm", [2048, 512, 32], TN),
    plain("cgemm-tn-512x2048x32", "cgemm", [512, 2048, 32], TN),
    plain("cgemm-tn-640x1280x32", "cgemm", [640, 1280, 32], TN),
    plain("cgemm-tn-896x1792x32", "cgemm", [896, 1792, 32], TN),
    batched("cgemm3m-nt-64x32x3-b544", COMPLEX, [64, 32, 3], (NT, 544)),
    batched("cgemm3m-tn-64x32x64-b544", COMPLEX, [64, 32, 64], (TN, 544)),
    batched("cgemm3m-nt-128x32x128-b544", COMPLEX, [128, 32, 128], (NT, 544)),
    batched("cgemm3m-nt-128x32x64-b544", COMPLEX, [128, 32, 64], (NT, 544)),
    batched("cgemm3m-nt-64x32x128-b544", COMPLEX, [64, 32, 128], (NT, 544)),
    typed("gemm-half-nn-224x224x64-b160", ("half", true), [224, 224, 64], (NN, Some(160))),
    typed("gemm-half-nn-64x224x224-b160", ("half", true), [64, 224, 224], (NN, Some(160))),
    typed("gemm-float-nn-4000x224x1000", ("float", false), [4000, 224, 1000], (NN, None)),
    typed("gemm-half-tn-4000x224x1000", ("half", true), [4000, 224, 1000], (TN, None)),
    typed("gemm-half-nn-1000x224x4000", ("half", false), [1000, 224, 4000], (NN, None)),
    typed("gemm-float-nn-1000x224x4000", ("float", false), [1000, 224, 4000], (NN, None)),
    plain("sgemm-tn-1024x7168x1024", "sgemm", [1024, 7168, 1024], TN),
    batched("sgemm-nn-64x224x224-b512", "sgemmstridedbatched", [64, 224, 224], (NN, 512)),
    batched("sgemm-nn-64x224x224-b160", "sgemmstridedbatched", [64, 224, 224], (NN, 160)),
];

impl Product {
    fn theirs(&self) -> String {
        let batch = self.batch.map_or_else(String::new, |batch| format!("_batchcount_{batch}"));
        let (kind, cores) = self.typed.map_or_else(Default::default, |(kind, cores)| {
            (format!("_datatype_{kind}"), format!("_use_tensor_core_{cores}"))
        });
        let ([m, n, k], [a, b]) = (self.sizes, self.transposed);
        let sizes = format!("_k_{k}_m_{m}_n_{n}_transa_{a}_transb_{b}");
        format!("name_cublas{}{batch}{kind}{sizes}{cores}_time", self.function)
    }
}

/// A convolution of 32 images of 14 x 14 in floats: our name, function, algorithm, edge of the filter, channels in and out.
struct Convolution(&'static str, &'static str, u32, (u32, u32, u32));

const FORWARD: &str = "forward";
const DATA: &str = "backwarddata";
const FILTER: &str = "backwardfilter";

const CONVOLUTIONS: [Convolution; 9] = [
    Convolution("backward-filter-float-3x3-128to32", FILTER, 0, (3, 128, 32)),
    Convolution("backward-filter-float-1x1-256to1024", FILTER, 1, (1, 256, 1024)),
    Convolution("backward-filter-float-3x3-512to512", FILTER, 1, (3, 512, 512)),
    Convolution("backward-data-float-3x3-128to32", DATA, 4, (3, 128, 32)),
    Convolution("backward-data-float-1x1-256to1024", DATA, 1, (1, 256, 1024)),
    Convolution("backward-data-float-3x3-512to512", DATA, 1, (3, 512, 512)),
    Convolution("forward-float-3x3-128to32", FORWARD, 6, (3, 128, 32)),
    Convolution("forward-float-1x1-256to1024", FORWARD, 1, (1, 256, 1024)),
    Convolution("forward-float-3x3-512to512", FORWARD, 1, (3, 512, 512)),
];

impl Convolution {
    fn theirs(&self) -> String {
        let Self(_, function, algorithm, (size, inputs, outputs)) = self;
        // What is read comes first: images, or the gradient of what came out.
        let (first, second) = if *function == DATA { (outputs, inputs) } else { (inputs, outputs) };
        let images = |what: &str, channels: &u32| {
            format!("_{what}dims_[32_{channels}_14_14]_{what}stride_[{}_196_14_1]", channels * 196)
        };
        let pad = size / 2;
        format!(
            "name_cudnnconvolution{function}_algo_{algorithm}_arraylength_2_convtype_0_dilationa_[1_1]\
             _filterdims_[{outputs}_{inputs}_{size}_{size}]_filterstridea_[1_1]{}_inputtype_0_mode_1{}\
             _pada_[{pad}_{pad}]_tensorop_false_time",
            images("input", first),
            images("output", second),
        )
    }
}

/// Writes of an adapter to itself: its own number stands at the end of its name, as SuperBench counts the adapters of a node
/// (`ib_loopback_performance.py`). It is the adapter that does this work, so that it is the same whoever asks for it.
fn loopback(name: &str) -> Option<String> {
    let (size, port) = name.strip_prefix("write-")?.split_once(':')?;
    // `mlx5_3` is the fourth; `rocep1s0f0` is named after its slot.
    let number: u32 = port.strip_suffix(":1")?.strip_prefix("mlx5_")?.parse().ok()?;
    Some(format!("ib-loopback/ib_write_bw_{}:{number}", bytes(size)?))
}

/// All-reduce of a node through its adapters alone, under the name that SuperBench's configurations give it.
fn through_adapters(name: &str) -> Option<String> {
    Some(format!("nccl-bw:gdr-only/allreduce_{}_busbw:0", bytes(name.strip_prefix("all-reduce-")?)?))
}

/// Bytes of `8MiB`.
fn bytes(size: &str) -> Option<u64> {
    let (digits, shift) = [("KiB", 10), ("MiB", 20), ("GiB", 30)]
        .into_iter()
        .find_map(|(unit, shift)| Some((size.strip_suffix(unit)?, shift)))?;
    digits.parse::<u64>().ok()?.checked_shl(shift)
}

/// The key under which SuperBench's results have what `metric` measures, such as
/// `cublas-function/name_cublascgemm_k_32_m_512_n_512_transa_1_transb_0_time:3`; `None` where it measures no such thing.
#[must_use]
pub fn alias(metric: &MetricId) -> Option<String> {
    match (&*metric.benchmark, &*metric.engine) {
        ("ib-loopback", "own") => return loopback(&metric.name),
        ("ib-allreduce", engine) if engine.starts_with("nccl-") => return through_adapters(&metric.name),
        _ => {}
    }
    let rank = match describe(metric).component {
        Component::Gpu(gpu) => gpu,
        // The first process of a node tells what all of them did.
        Component::Gpus => 0,
        _ => return None,
    };
    let name = metric.name.rsplit_once(':').map_or(&*metric.name, |(name, _)| name);
    let library = metric.engine.split_once('-').map_or(&*metric.engine, |(library, _)| library);
    let theirs = match (&*metric.benchmark, library) {
        ("cublas-function", "cublas") => PRODUCTS.iter().find(|product| product.ours == name)?.theirs(),
        ("cudnn-function", "cudnn") => CONVOLUTIONS.iter().find(|convolution| convolution.0 == name)?.theirs(),
        ("nccl-bw", "nccl") => collective(name)?,
        (benchmark, _) => SIMPLE.iter().find(|(ours, _)| *ours == (benchmark, name))?.1.to_owned(),
    };
    let benchmark = if &*metric.benchmark == "gpu-copy-bw" { "mem-bw" } else { &metric.benchmark };
    Some(format!("{benchmark}/{theirs}:{rank}"))
}

/// Benchmark and metric, and what it is called there.
const SIMPLE: [((&str, &str), &str); 4] = [
    (("kernel-launch", "event"), "event_time"),
    (("kernel-launch", "wall"), "wall_time"),
    (("gpu-copy-bw", "host-to-device"), "h2d_bw"),
    (("gpu-copy-bw", "device-to-host"), "d2h_bw"),
];

/// `allreduce_268435456_busbw` of `all-reduce-256MiB`.
fn collective(name: &str) -> Option<String> {
    let (kind, size) = name.rsplit_once('-')?;
    Some(format!("{}_{}_busbw", kind.replace('-', ""), bytes(size)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Meaning;
    use crate::meaning::MICROS;
    use crate::superbench::Key;

    fn of(benchmark: &str, name: &str, engine: &str) -> Option<String> {
        alias(&MetricId::new(benchmark, name, engine))
    }

    #[test]
    fn names_are_what_superbench_s_results_have() {
        for (benchmark, name, engine, theirs) in [
            (
                "cublas-function",
                "cgemm-tn-512x512x32:3",
                "cublas-12.4",
                "name_cublascgemm_k_32_m_512_n_512_transa_1_transb_0_time:3",
            ),
            (
                "cublas-function",
                "gemm-half-nn-224x224x64-b160:0",
                "cublas-13.1",
                "name_cublasgemmstridedbatchedex_batchcount_160_datatype_half_k_64_m_224_n_224_transa_0_transb_0_use_tensor_core_true_time:0",
            ),
            (
                "cublas-function",
                "cgemm3m-nt-64x32x3-b544:7",
                "cublas-12.4",
                "name_cublascgemm3mstridedbatched_batchcount_544_k_3_m_64_n_32_transa_0_transb_1_time:7",
            ),
            (
                "cudnn-function",
                "backward-data-float-1x1-256to1024:1",
                "cudnn-9.1",
                "name_cudnnconvolutionbackwarddata_algo_1_arraylength_2_convtype_0_dilationa_[1_1]_filterdims_[1024_256_1_1]_filterstridea_[1_1]_inputdims_[32_1024_14_14]_inputstride_[200704_196_14_1]_inputtype_0_mode_1_outputdims_[32_256_14_14]_outputstride_[50176_196_14_1]_pada_[0_0]_tensorop_false_time:1",
            ),
        ] {
            assert_eq!(of(benchmark, name, engine), Some(format!("{benchmark}/{theirs}")));
        }
    }

    #[test]
    fn every_name_is_its_own_is_in_the_catalogue_and_is_read_as_what_it_is() {
        let ours = PRODUCTS.iter().map(|p| ("cublas-function", p.ours, "cublas-12.4"));
        let all: Vec<_> = ours.chain(CONVOLUTIONS.iter().map(|c| ("cudnn-function", c.0, "cudnn-9.1"))).collect();
        let mut theirs = BTreeSet::new();
        for (benchmark, name, engine) in all.iter().copied() {
            let metric = MetricId::new(benchmark, format!("{name}:5"), engine);
            assert!(muster_wire::metric(benchmark, &metric.name).is_some(), "{name}");
            let text = alias(&metric).unwrap();
            let key = Key::parse(&text).unwrap();
            assert_eq!((key.benchmark, key.rank, key.meaning()), (benchmark, Some(5), MICROS), "{text}");
            // What is imported under their name has the same unit and direction.
            let Meaning::Measure { unit, direction, .. } = key.meaning() else { panic!("{text}") };
            let described = describe(&metric);
            assert_eq!((described.unit, described.direction), (Some(unit), Some(direction)));
            theirs.insert(text);
        }
        assert_eq!(theirs.len(), all.len());
    }

    #[test]
    fn launches_copies_and_collectives_have_names_in_the_same_unit_there() {
        for (benchmark, name, engine, theirs) in [
            ("kernel-launch", "event:2", "own", "kernel-launch/event_time:2"),
            ("kernel-launch", "wall:0", "own-ptx", "kernel-launch/wall_time:0"),
            ("gpu-copy-bw", "host-to-device:7", "own", "mem-bw/h2d_bw:7"),
            ("gpu-copy-bw", "device-to-host:1", "own", "mem-bw/d2h_bw:1"),
            ("nccl-bw", "all-reduce-256MiB", "nccl-2.21", "nccl-bw/allreduce_268435456_busbw:0"),
            ("nccl-bw", "all-to-all-8GiB", "nccl-2.21", "nccl-bw/alltoall_8589934592_busbw:0"),
            ("nccl-bw", "all-gather-4KiB", "nccl-2.21", "nccl-bw/allgather_4096_busbw:0"),
        ] {
            let metric = MetricId::new(benchmark, name, engine);
            assert_eq!(alias(&metric).as_deref(), Some(theirs));
            let Meaning::Measure { unit, direction, .. } = Key::parse(theirs).unwrap().meaning() else {
                panic!("{theirs}");
            };
            let described = describe(&metric);
            assert_eq!((described.unit, described.direction), (Some(unit), Some(direction)), "{theirs}");
        }
    }

    #[test]
    fn what_adapters_do_has_their_numbers_and_is_read_as_what_it_is() {
        for (benchmark, name, engine, theirs) in [
            ("ib-loopback", "write-8MiB:mlx5_3:1", "own", Some("ib-loopback/ib_write_bw_8388608:3")),
            ("ib-loopback", "write-64KiB:mlx5_11:1", "own", Some("ib-loopback/ib_write_bw_65536:11")),
            ("ib-loopback", "write-8MiB:mlx5_3:2", "own", None),
            ("ib-loopback", "write-8MiB:rocep1s0f0:1", "own", None),
            ("ib-loopback", "write-8MiB:mlx5_bond_0:1", "own", None),
            ("ib-loopback", "write-gpu-8MiB:mlx5_3:1", "own", None),
            ("ib-loopback", "perftest-8MiB:mlx5_3:1", "ib_write_bw", None),
            ("ib-allreduce", "all-reduce-256MiB", "nccl-2.21", Some("nccl-bw:gdr-only/allreduce_268435456_busbw:0")),
            ("ib-allreduce", "temperature:3", "own", None),
        ] {
            assert_eq!(of(benchmark, name, engine).as_deref(), theirs, "{name}");
            let Some(key) = theirs.and_then(Key::parse) else { continue };
            let described = describe(&MetricId::new(benchmark, name, engine));
            let Meaning::Measure { unit, direction, .. } = key.meaning() else { panic!("{name}") };
            assert_eq!((described.unit, described.direction), (Some(unit), Some(direction)));
        }
        // What SuperBench 0.2 called the same.
        assert_eq!(crate::meaning::of_superbench("ib-loopback", "IB_write_8388608_Avg_0"), crate::meaning::MIB_PER_S);
    }

    #[test]
    fn what_is_other_work_has_no_name_there() {
        // Bytes on the device are counted once here and twice there, and a call is timed by nobody there.
        assert_eq!(of("gpu-copy-bw", "device-to-device:0", "own"), None);
        assert_eq!(of("kernel-launch", "call:0", "own"), None);
        assert_eq!(of("gpu-stream", "copy:0", "own"), None);
        assert_eq!(of("p2p-allreduce", "256MiB", "own"), None);
        assert_eq!(of("cublas-function", "cgemm-tn-512x512x32:3", "own"), None, "our own kernel");
        assert_eq!(of("cublas-function", "cgemm-tn-40x24x9:3", "cublas-12.4"), None, "a small one");
        assert_eq!(of("cudnn-function", "forward-half-3x3-128to32:0", "cudnn-9.1"), None, "floats there");
        assert_eq!(of("cublaslt-gemm", "bf16:0", "cublaslt-12.4"), None);
        assert_eq!(of("cublas-function", "temperature:0", "cublas-12.4"), None);
        assert_eq!(of("gpu-sharding-matmul", "fp32-all-reduce", "own+nccl-2.21"), None, "products by own kernels");
        assert_eq!(
            of("gpu-comm-overlap", "matmul-step", "own+nccl-2.21"),
            None,
            "until all is done, which is not timed there"
        );
    }
}
