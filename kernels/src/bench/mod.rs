//! What the worker measures on one GPU: which benchmarks there are, and what each of them runs.

mod allreduce;
mod answers;
mod burn;
mod collectives;
mod comm_overlap;
mod copy;
mod ddp;
mod distance;
mod function;
mod gemm;
mod launch;
mod links;
mod node;
mod overlap;
mod pages;
mod run;
mod sharding;
mod stream;
mod together;
mod train;
mod vendor_gemm;

use muster_wire::{Frame, Profile};

use crate::driver::{Gpu, Trouble};
use crate::health::Watch;
pub(crate) use node::fill;
pub(crate) use pages::compare;

use node::Node;
use run::Run;
pub(crate) use train::usual;

/// Runs the benchmark called `name` on `gpu`; what it has to say goes to `say`.
///
/// # Errors
/// When it cannot be done, or its results are wrong.
pub fn run(name: &str, gpu: &Gpu, profile: Profile, say: &mut dyn FnMut(Frame)) -> Result<(), Trouble> {
    type Body = fn(&mut Run<'_>) -> Result<(), Trouble>;
    let bodies: [(&'static str, Body); 18] = [
        ("kernel-launch", launch::run),
        ("gpu-stream", stream::run),
        ("gpu-copy-bw", copy::run),
        ("gemm-flops", gemm::run),
        ("cublaslt-gemm", vendor_gemm::run),
        ("cublas-function", function::cublas),
        ("cudnn-function", function::cudnn),
        ("gpu-overlap", overlap::run),
        ("gpu-burn", burn::load),
        ("sm-sdc", burn::agree),
        ("gpu-memory-map", pages::run),
        ("gpu-train-gpt2", |run| train::GPT2.run(run)),
        ("gpu-train-bert", |run| train::BERT.run(run)),
        ("gpu-train-lstm", |run| train::LSTM.run(run)),
        ("gpu-train-resnet", |run| train::RESNET.run(run)),
        ("gpu-train-densenet", |run| train::DENSENET.run(run)),
        ("gpu-train-vgg", |run| train::VGG.run(run)),
        ("gpu-train-stress", train::stress),
    ];
    let found = bodies.into_iter().find(|(known, _)| *known == name);
    let (name, body) = found.ok_or_else(|| unknown(name))?;
    let mut run = Run::new(name, gpu, profile, say);
    run.introduce();
    let watch = Watch::start(&gpu.uuid);
    let done = body(&mut run);
    let watched = watch.map_or(Ok(()), |watch| watched(&mut run, watch));
    done.and(watched)
}

/// Runs the benchmark called `name` over all GPUs of the node together.
///
/// # Errors
/// When it cannot be done, or its results are wrong.
pub fn run_all(name: &str, gpus: &[Gpu], profile: Profile, say: &mut dyn FnMut(Frame)) -> Result<(), Trouble> {
    match name {
        "gpu-peer-bw" => Node::new("gpu-peer-bw", gpus, profile, say).run(links::run),
        "p2p-allreduce" => Node::new("p2p-allreduce", gpus, profile, say).run(allreduce::run),
        "nccl-bw" => Node::new("nccl-bw", gpus, profile, say).run(collectives::run),
        "gpu-train-ddp" => Node::new("gpu-train-ddp", gpus, profile, say).run(ddp::run),
        "ib-allreduce" => Node::new("ib-allreduce", gpus, profile, say).run(collectives::run_adapters),
        "gpu-comm-overlap" => Node::new("gpu-comm-overlap", gpus, profile, say).run(comm_overlap::run),
        "gpu-sharding-matmul" => Node::new("gpu-sharding-matmul", gpus, profile, say).run(sharding::run),
        _ => Err(unknown(name)),
    }
}

/// What has to stand in the environment before the benchmark called `name` loads a library.
#[must_use]
pub fn environment(name: &str) -> &'static [(&'static str, &'static str)] {
    if name == "ib-allreduce" { &collectives::ADAPTERS_ALONE } else { &[] }
}

fn unknown(name: &str) -> Trouble {
    Trouble::NotRun(format!("this worker has no benchmark called '{name}'"))
}

/// Sends what was seen of the GPU meanwhile.
fn watched(run: &mut Run<'_>, watch: Watch) -> Result<(), Trouble> {
    let Some(seen) = watch.end() else {
        run.fact("health", "silent: the management library did not answer".to_owned());
        return Ok(());
    };
    run.fact("health", seen.line());
    if let Some(company) = seen.company() {
        run.fact("company", company);
    }
    let sensors = ["temperature", "power", "clock"].into_iter().zip(seen.series());
    sensors
        .filter_map(|(name, values)| Some((name, values?)))
        .try_for_each(|(name, values)| run.series(name, values, 0))
}
