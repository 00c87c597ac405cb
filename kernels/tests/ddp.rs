//! A training by several GPUs, on simulated devices: losses are the CPU's, the sums hide behind computing, and who computes or
//! sends wrongly is named.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

mod process;

use std::sync::LazyLock;

use muster_gpu::train::SEED;
use muster_tape::{Model, Replica, Size, Tape};
use muster_wire::Outcome;
use process::{Driver, Said, worker};

const STEPS: usize = 2;
const SIZE: Size = Size { batch: 2, seq: 1 };
const THREE: &str = "devices 3\nsms 2\nmemory 33554432\nclock_khz 1000\n";

fn run(driver: &Driver) -> Said {
    worker(driver.path(), &["run", "gpu-train-ddp", "smoke", "all"])
}

fn all(settings: &str) -> Said {
    run(&Driver::new(&format!("{THREE}{settings}")))
}

/// What sound GPUs do.
static SOUND: LazyLock<Said> = LazyLock::new(|| all(""));

fn failed(settings: &str) -> String {
    match all(settings).outcome {
        Outcome::Failed(why) => why,
        other => panic!("{settings}: {other:?}"),
    }
}

/// The last loss of each GPU.
fn losses(said: &Said, engine: &str) -> Vec<f32> {
    let text = said.fact(&format!("gpu.0.vgg-nano_bf16_ddp.{engine}"));
    text.rsplit_once("losses=").unwrap().1.split(',').map(|loss| loss.parse().unwrap()).collect()
}

/// How many series there are beside those of sensors.
fn measured(said: &Said) -> usize {
    said.series.keys().filter(|name| name.contains("_bf16_")).count()
}

fn median(said: &Said, metric: &str) -> f64 {
    let name = format!("gpu-train-ddp/{metric}");
    let mut values = said.series.get(&name).unwrap_or_else(|| panic!("{name}: {said:?}")).values.clone();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The last loss of each replica, when the CPU trains them on the same data.
fn on_cpus(tape: &Tape, replicas: usize) -> Vec<f32> {
    let mut team: Vec<Replica<'_>> = (0..replicas).map(|_| Replica::new(tape, SEED).unwrap()).collect();
    team.iter_mut().enumerate().for_each(|(rank, replica)| replica.load(rank as u64));
    let mut losses = Vec::new();
    for _ in 0..STEPS {
        let mut sums = vec![0.0; team[0].parameters()];
        losses = team.iter_mut().map(Replica::backward).collect();
        team.iter_mut().for_each(|replica| replica.gradients(&mut sums));
        sums.iter_mut().for_each(|sum| *sum /= replicas as f32);
        team.iter_mut().for_each(|replica| replica.update(&sums));
    }
    losses
}

#[test]
fn losses_of_every_gpu_are_those_of_replicas_on_cpus_and_the_sums_hide_behind_computing() {
    let (said, right) = (&*SOUND, on_cpus(&Model::VggNano.parallel_sized(SIZE), 3));
    assert_eq!(said.outcome, Outcome::Done);
    let got = losses(said, "own-ptx");
    assert_eq!(got.len(), 3);
    for (got, right) in got.iter().zip(&right) {
        assert!((got / right - 1.0).abs() < 2e-2, "{got} and not {right}");
    }
    assert!(got[0] != got[1] && got[1] != got[2], "each has data of its own");
    assert_eq!(measured(said), 2 * (3 + 3));
    for model in ["vgg-nano", "lstm-nano"] {
        let of = |what: &str| median(said, &format!("{model}_bf16_{what}@own-ptx"));
        let (step, sum, alone, overlap) = (of("step_time"), of("reduce_time"), of("compute_time:1"), of("overlap"));
        assert!(step < 0.98 * (alone + sum) && step > alone.max(sum), "{model} {step} {alone} {sum}");
        assert!(overlap > 0.5 && overlap <= 1.0, "{model} {overlap}");
    }
}

#[test]
fn through_the_host_the_sums_are_the_same_and_slower() {
    let (direct, host) = (&*SOUND, all("link 0 1 none\nlink 1 0 none\n"));
    assert_eq!(host.outcome, Outcome::Done);
    assert_eq!(losses(&host, "own-ptx-host"), losses(direct, "own-ptx"), "both add up in the order of the GPUs");
    let [fast, slow] = [(direct, ""), (&host, "-host")]
        .map(|(said, way)| median(said, &format!("lstm-nano_bf16_reduce_time@own-ptx{way}")));
    assert!(slow > 2.0 * fast, "{slow} {fast}");
}

#[test]
fn where_nccl_is_there_it_is_measured_beside_own_kernels() {
    let said = run(&Driver::with(THREE, &["libnccl.so.2"]));
    assert_eq!(said.outcome, Outcome::Done);
    assert_eq!(
        losses(&said, "own-ptx+nccl-2.21"),
        losses(&said, "own-ptx"),
        "the simulated one adds up in the same order"
    );
    assert_eq!(measured(&said), 2 * (3 + 3 + 3));
    median(&said, "vgg-nano_bf16_step_time@own-ptx+nccl-2.21");
}

#[test]
fn a_gpu_that_computes_wrongly_is_named_and_nothing_measured_with_it() {
    let why = failed("gpu 1 flip sm=1 unit=mma bit=20 every=9\n");
    assert!(
        why.starts_with(
            "vgg-nano_bf16 by own-ptx: GPU 1: its gradients of the same batch are not those of 2 other GPUs: "
        ),
        "{why}"
    );
    assert!(!why.contains("GPU 0") && !why.contains("GPU 2"), "{why}");
}

#[test]
fn of_two_gpus_that_differ_either_may_be_the_wrong_one() {
    let driver =
        Driver::new("devices 2\nsms 2\nmemory 33554432\nclock_khz 1000\ngpu 1 flip sm=all unit=mma bit=20 every=9\n");
    let said = run(&driver);
    let Outcome::Failed(why) = &said.outcome else { panic!("{said:?}") };
    assert!(why.contains("GPUs 0, 1 have different gradients of the same batch"), "{why}");
    assert!(measured(&said) == 0, "a wrong answer is no measurement");
}

#[test]
fn a_way_that_changes_data_is_named_with_who_sums_or_both_ends() {
    let why = failed("link 2 1 flip bit=2 every=64\n");
    assert!(why.contains("a sum of known numbers: GPU 1 holds wrong sums of its own chunk: "), "{why}");
}

#[test]
fn a_slow_gpu_and_a_slow_way_each_show_where_they_are() {
    let (good, slow, link) =
        (&*SOUND, all("gpu 2 slow sm=0 factor=2\ngpu 2 slow sm=1 factor=2\n"), all("link 0 1 slow factor=20\n"));
    let of = |said: &Said, what: &str| median(said, &format!("vgg-nano_bf16_{what}@own-ptx"));
    assert!(of(&slow, "compute_time:2") > 1.8 * of(&slow, "compute_time:1"));
    assert!(of(&slow, "step_time") > 1.8 * of(good, "step_time"), "all wait for the slowest");
    assert!(of(&link, "reduce_time") > 4.0 * of(good, "reduce_time"));
    assert!(of(&link, "compute_time:0") < 1.1 * of(good, "compute_time:0"));
    let (step, alone, sum) = (of(&link, "step_time"), of(&link, "compute_time:0"), of(&link, "reduce_time"));
    assert!(step > alone && step < alone + 0.3 * sum, "all but the last bucket is hidden: {step} {alone} {sum}");
}

#[test]
fn a_model_without_room_is_not_applicable_and_says_where() {
    let said = all("memory 131072\n");
    let Outcome::NotApplicable(why) = said.outcome else { panic!("{said:?}") };
    assert!(why.starts_with("vgg-nano_bf16 needs ") && why.contains(" are free on GPU 0"), "{why}");
}

#[test]
fn a_gpu_that_is_lost_is_named() {
    let why = failed("gpu 2 lost after=200\n");
    assert!(why.contains("GPU 2: ") && why.contains("CUDA_ERROR_LAUNCH_FAILED"), "{why}");
}

#[test]
fn a_library_that_does_not_work_is_said_in_its_words_and_own_kernels_are_measured() {
    let said = run(&Driver::with(&format!("{THREE}nccl ncclCommInitAll 2\n"), &["libnccl.so.2"]));
    assert_eq!(
        said.outcome,
        Outcome::Failed("ncclCommInitAll: unhandled system error (run with NCCL_DEBUG=INFO for details)".into())
    );
    assert_eq!(measured(&said), 2 * (3 + 3));
}

#[test]
fn where_streams_do_not_run_side_by_side_nothing_is_hidden() {
    let serial: String = (0..3).map(|gpu| format!("gpu {gpu} serial\n")).collect();
    let said = all(&format!("{serial}link 0 1 slow factor=20\n"));
    let of = |what: &str| median(&said, &format!("vgg-nano_bf16_{what}@own-ptx"));
    let (step, alone, sum) = (of("step_time"), of("compute_time:0"), of("reduce_time"));
    assert!(step > alone + 0.8 * sum && of("overlap") < 0.9, "{step} {alone} {sum}");
}
