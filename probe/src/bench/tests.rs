use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use muster_wire::{Frame, Profile, RunsOn};

use super::context::Metric;
use super::*;

fn smoke(name: &str, stop: bool) -> (Outcome, Vec<Frame>) {
    let mut frames = Vec::new();
    let dir = tempfile::tempdir().unwrap();
    let outcome = run(
        name,
        &mut Context {
            profile: Profile::Smoke,
            scratch: Some(dir.path()),
            stop: &AtomicBool::new(stop),
            steps: None,
            emit: &mut |frame| frames.push(frame),
        },
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{name} left a file");
    (outcome, frames)
}

fn emits(name: &str, metrics: &[&str]) {
    let (outcome, frames) = smoke(name, false);
    assert_eq!(outcome, Outcome::Done);
    let mut seen = BTreeMap::new();
    let mut progress = 0;
    for frame in frames {
        match frame {
            Frame::Series(series) => {
                assert_eq!(series.metric.benchmark, name);
                // A step that completes no product says nothing of its bits.
                let passes = muster_wire::describe(&series.metric).limit.is_some();
                let least = if passes { 1 } else { crate::steps::ENOUGH };
                assert!(series.values.len() >= least, "{}: {} values", series.metric, series.values.len());
                assert!(series.values.iter().all(|v| v.is_finite() && *v > 0.0), "{}", series.metric);
                assert!(series.started_ns > 0);
                seen.insert(series.metric.name.clone(), series.direction);
            }
            Frame::Progress(p) => {
                assert!((0.0..=1.0).contains(&p.done), "{}", p.done);
                progress += 1;
            }
            Frame::Log(_) | Frame::Facts(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(progress > 0);
    for metric in metrics {
        assert!(seen.contains_key(*metric), "{name} has no {metric}: {seen:?}");
    }
}

#[test]
fn what_longer_profiles_measure_is_in_the_catalogue_and_nothing_else_is() {
    let core = |name: &str| name.replace("{core}", "0");
    let names: [(&str, Vec<String>); 6] = [
        (stream::NAME, [&stream::ALL_CORES[..], &stream::ONE_THREAD].concat().iter().map(|n| core(n)).collect()),
        (latency::NAME, latency::NAMES.map(core).to_vec()),
        (dispatch::NAME, dispatch::NAMES.map(core).to_vec()),
        (sharding::NAME, sharding::NAMES.map(core).to_vec()),
        (disk::NAME, disk::names()),
        (gemm::NAME, ["fp32", "fp64", "fp32-1t", "fp64-1t"].map(core).to_vec()),
    ];
    for (name, measured) in names {
        let entry = benchmark(name).unwrap();
        let known: BTreeSet<&str> =
            measured.iter().map(|metric| muster_wire::metric(name, metric).unwrap().pattern).collect();
        assert_eq!(known, entry.metrics.iter().map(|metric| metric.pattern).collect(), "{name}");
    }
}

#[test]
fn what_is_not_in_the_catalogue_is_not_measured() {
    let stop = AtomicBool::new(false);
    let mut frames = Vec::new();
    let mut emit = |frame| frames.push(frame);
    let mut context = Context { profile: Profile::Smoke, scratch: None, stop: &stop, steps: None, emit: &mut emit };
    let plan = context.plan(Duration::from_millis(1), 1);
    let ended = context.measure(Metric::of("cpu-gemm", "fp3"), &plan, (0.0, 1.0), &mut || Ok(1.0));
    assert_eq!(ended, Err(Halt::Failed("cpu-gemm/fp3 is not in the metric catalogue".into())));
    assert!(frames.is_empty());
}

#[test]
fn smoke_gemm_emits_its_metrics() {
    emits(gemm::NAME, &["fp32-1t", "fp64-1t"]);
}

#[test]
fn smoke_stream_emits_its_metrics() {
    emits(stream::NAME, &["copy-1t", "scale-1t", "add-1t", "triad-1t"]);
}

#[test]
fn smoke_latency_emits_its_metrics() {
    emits(latency::NAME, &["l1", "l2", "llc", "dram"]);
}

#[test]
fn smoke_dispatch_emits_its_metrics() {
    emits(dispatch::NAME, &["syscall", "thread-handoff"]);
}

#[test]
fn smoke_cores_and_burn_emit_metrics_per_core() {
    let core = crate::pin::Place::every_core()[0].cpu();
    emits(cores::NAME, &[&format!("speed:core{core}"), &format!("latency:core{core}")]);
    emits(burn::NAME, &["flops", &format!("core_{core}_flops"), &format!("core_{core}_pass")]);
}

#[test]
fn smoke_numa_overlap_and_sharding_emit_their_metrics() {
    let node = crate::topology::numa_nodes()[0].id.unwrap_or(0);
    let pair = |what: &str| format!("mem_bandwidth_matrix_numa_{node}_{node}_{what}");
    emits(numa::NAME, &[&pair("bw"), &pair("lat"), "mem_loaded_latency_0_lat"]);
    emits(overlap::NAME, &["compute_alone", "comm_together", "overlap_efficiency", "comm_slowdown"]);
    emits(sharding::NAME, &["nosharding_time", "allreduce_time", "allgather_time"]);
}

#[test]
fn smoke_disk_emits_its_metrics() {
    emits(disk::NAME, &["seq-write", "seq-read", "rand-read", "rand-write", "rand-read-latency"]);
}

#[test]
fn smoke_training_emits_its_metrics_and_the_same_losses_every_time() {
    for (name, model) in
        [("train-gpt2", "gpt2"), ("train-bert", "bert"), ("train-lstm", "lstm"), ("train-resnet", "resnet")]
    {
        emits(name, &[&format!("{model}-nano_fp32_train_step_time")]);
        let digest = || {
            let facts = smoke(name, false).1.into_iter().filter_map(|frame| match frame {
                Frame::Facts(facts) => Some(facts.facts),
                _ => None,
            });
            let key = format!("digest.{model}-nano_fp32_train_loss");
            facts.flatten().find(|fact| fact.key == key).unwrap().reading
        };
        let first = digest();
        assert!(matches!(&first, muster_wire::Reading::Value(muster_wire::Datum::Text(t)) if t.len() == 16 * 9 - 1));
        assert_eq!(digest(), first, "{name}");
    }
}

#[test]
fn smoke_net_emits_its_metrics() {
    emits(net::NAME, &["throughput-1t", "rtt-1t"]);
}

#[test]
fn the_catalogue_has_every_benchmark_of_the_host_and_none_that_nobody_runs() {
    let known = muster_wire::BENCHMARKS.iter().filter(|benchmark| benchmark.runs_on == RunsOn::Host);
    let mut known: Vec<&str> = known.map(|benchmark| benchmark.name).collect();
    let mut run = ALL.map(|(name, _)| name);
    known.sort_unstable();
    run.sort_unstable();
    assert_eq!(run[..], known[..]);
}

#[test]
fn every_benchmark_of_the_catalogue_obeys_stop() {
    for benchmark in muster_wire::BENCHMARKS {
        let (outcome, frames) = smoke(benchmark.name, true);
        assert_eq!(outcome, Outcome::NotRun("stopped".into()), "{}", benchmark.name);
        assert!(frames.is_empty());
    }
}

#[test]
fn an_unknown_name_is_not_run() {
    assert!(matches!(smoke("no-such-thing", false).0, Outcome::NotRun(_)));
}
