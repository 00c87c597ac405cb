//! The metric catalogue: every benchmark, metric and collector that a probe of this version knows, declared once.
//!
//! [`describe`] says what a number means: component, role, category, unit, direction, decimals, title. Nobody else reads
//! meaning out of a name. What other tools measured is not here: an importer says what it is ([`Declared`]), and
//! [`describe_in`] hears it.
//!
//! # Adding a benchmark
//! Its own file, one entry here, in the table of its source (`cpu`, `disk`, `net`, `gpu`, `gpu_function`, `train`, `gpu_train`), and the line that calls
//! it: in `bench/mod.rs` of the probe, or in `bench/mod.rs` of the GPU worker. The entry names its metrics; units in
//! frames, judging, playbooks, screens and incidents follow from it.

mod collectors;
mod cpu;
mod declared;
mod describe;
mod disk;
mod entry;
mod facts;
mod gpu;
mod gpu_function;
mod gpu_train;
mod net;
mod pattern;
mod telemetry;
mod train;

pub use collectors::{BUSY, COLLECTORS, Collector, DIGEST, FOREIGN_CPU, HELD_CPU, IDLE, collector};
pub use declared::{DECLARED, Declarations, Declared, describe_in};
pub use describe::{Described, describe, role};
pub use entry::{Benchmark, Metric, MetricRole, RunsOn, Stage};
pub use facts::{fact_of, gpu_fact};
pub use telemetry::{CLOCK_ERROR, SaysOfJob, Telemetry, finely, is_fine, telemetry, telemetry_names, watched};

/// The tables, in the order a plain `run` takes them.
const TABLES: [&[Benchmark]; 8] =
    [&cpu::PARTS, &disk::ALL, &net::ALONE, &gpu::ALL, &gpu_function::ALL, &cpu::TOGETHER, &train::ALL, &gpu_train::ALL];

const COUNT: usize = {
    let (mut count, mut table) = (0, 0);
    while table < TABLES.len() {
        count += TABLES[table].len();
        table += 1;
    }
    count
};

static JOINED: [Benchmark; COUNT] = {
    let mut all = [cpu::PARTS[0]; COUNT];
    let (mut at, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut row = 0;
        while row < TABLES[table].len() {
            all[at] = TABLES[table][row];
            (at, row) = (at + 1, row + 1);
        }
        table += 1;
    }
    all
};

/// Every benchmark, in the order a plain `run` takes them.
pub static BENCHMARKS: &[Benchmark] = &JOINED;

/// What is measured between nodes, when a scan of the network asks for it.
pub static BETWEEN_NODES: &[Benchmark] = &net::BETWEEN;

/// The entry called `name`, of those that a plain `run` knows.
#[must_use]
pub fn benchmark(name: &str) -> Option<&'static Benchmark> {
    BENCHMARKS.iter().find(|b| b.name == name)
}

/// The entry of a metric, by the names of its benchmark and of itself.
#[must_use]
pub fn metric(benchmark: &str, name: &str) -> Option<&'static Metric> {
    describe::find(benchmark, name).map(|(_, metric, _)| metric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn a_collector_is_found_by_its_name() {
        assert!(COLLECTORS.iter().all(|one| collector(one.name).is_some_and(|found| found.name == one.name)));
        assert!(collector("no such collector").is_none());
    }

    #[test]
    fn every_name_stands_once_and_every_pattern_is_its_own_alone() {
        let mut names = BTreeSet::new();
        for benchmark in BENCHMARKS.iter().chain(BETWEEN_NODES) {
            assert!(names.insert(benchmark.name), "{} twice", benchmark.name);
            assert!(!benchmark.metrics.is_empty(), "{} measures nothing", benchmark.name);
            let patterns: Vec<&str> = benchmark.all_metrics().map(|m| m.pattern).collect();
            assert_eq!(patterns.iter().collect::<BTreeSet<_>>().len(), patterns.len(), "{}", benchmark.name);
            for metric in benchmark.all_metrics() {
                let name = describe::example(metric.pattern);
                let found = super::metric(benchmark.name, &name).map(|m| m.pattern);
                assert_eq!(found, Some(metric.pattern), "{}/{name}", benchmark.name);
                assert!(!metric.title.is_empty());
            }
        }
    }

    #[test]
    fn what_is_known_of_each_benchmark_and_the_limits_of_frames_are_as_they_were_written_down() {
        use crate::{COLLECTIVE_BYTES, LOOKED_BYTES, PROCESSES_BYTES, limits};
        let mut text = format!(
            "bytes: frame {}, noise {}, benchmark {}, chunk {}, job {}, list {LOOKED_BYTES}, processes {PROCESSES_BYTES}, collective {COLLECTIVE_BYTES}\n",
            limits::FRAME_BYTES,
            limits::NOISE_BYTES,
            limits::BENCHMARK_BYTES,
            limits::CHUNK_BYTES,
            limits::JOB_BYTES
        );
        for of in BENCHMARKS.iter().chain(BETWEEN_NODES) {
            let Benchmark { name, about, limit_s, runs_on, stage, category, .. } = of;
            text += &format!("\n{name}: {about} {limit_s:?} s, {runs_on:?}, {stage:?}, {category:?}\n");
            of.all_metrics().for_each(|metric| text += &format!("    {metric:?}\n"));
        }
        muster_golden::hold(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/benchmarks.txt"), &text);
    }

    #[test]
    fn the_gpu_worker_runs_what_runs_on_gpus_and_the_probe_the_rest() {
        for (name, is_gpu) in [
            ("gpu-stream", true),
            ("gpu-overlap", true),
            ("nccl-bw", true),
            ("ib-loopback", false),
            ("disk", false),
            ("overlap", false),
        ] {
            assert_eq!(benchmark(name).map(Benchmark::is_gpu), Some(is_gpu), "{name}");
        }
    }

    #[test]
    fn a_plain_run_takes_parts_before_what_they_explain() {
        let at = |name: &str| BENCHMARKS.iter().position(|b| b.name == name).unwrap();
        let order = [
            "cpu-gemm",
            "disk",
            "net-loopback",
            "kernel-launch",
            "gpu-memory-map",
            "overlap",
            "train-resnet",
            "gpu-train-vgg",
        ];
        assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])));
        assert_eq!(BENCHMARKS.len(), 41);
    }
}
