//! The contract between a node and the console: what the probe may say, in which bytes, and how much of it.
//!
//! Uses nothing of ours and touches no file, socket or clock. Old probes outlive consoles, so frames are
//! self-describing (CBOR maps with names) and unknown frame kinds are skipped and counted.

mod bounded;
mod catalog;
mod category;
mod codec;
mod collective;
mod component;
mod frame;
mod job;
pub mod limits;
mod pair;
mod processes;
mod reading;
mod text;
mod tick;
mod train;
mod unit;

pub use catalog::{
    BENCHMARKS, BETWEEN_NODES, BUSY, Benchmark, CLOCK_ERROR, COLLECTORS, Collector, DECLARED, DIGEST, Declarations,
    Declared, Described, FOREIGN_CPU, HELD_CPU, IDLE, Metric, MetricRole, RunsOn, SaysOfJob, Stage, Telemetry,
    benchmark, collector, describe, describe_in, fact_of, finely, gpu_fact, is_fine, metric, role, telemetry,
    telemetry_names, watched,
};
pub use category::Category;
pub use codec::{CodecError, Decoder, MAGIC, PREAMBLE, encode, encode_request};
pub use collective::{
    COLLECTIVE_BYTES, COLLECTIVE_ELEMENT, Collective, CollectiveOrder, ListenOrder, RANKS, Rank, SIZES, whole_bytes,
};
pub use component::{Component, ComponentKind, NoComponent};
pub use frame::{
    Beat, Bye, Fact, Facts, Finished, Frame, Hello, Level, LogLine, Outcome, PROTOCOL, Progress, Request, Series, Steps,
};
pub use job::{Collected, FileChunk, JobOrder, LOOKED_BYTES, Looked};
pub use pair::{Engine, Listening, Load, PERFTEST, PairOrder, Paired, RDMA, Role, Secret};
pub use processes::{Counter, GPU_COUNTERS, JobProcess, PROCESSES, PROCESSES_BYTES, Processes, Queue};
pub use reading::{Datum, Reading};
pub use text::clean;
pub use tick::{Columns, DEMO_NODE, Peers, Tick, Trip, WatchOrder};
pub use train::{BETWEEN, Between, RANKS_PER_NODE, TRAIN_DDP, TRAIN_MODELS, TrainOrder};
pub use unit::{Direction, MetricId, MetricParts, Profile, Unit};
