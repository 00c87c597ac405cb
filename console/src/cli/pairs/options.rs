//! What may be asked of `muster pairs`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use muster_wire::Profile;

use crate::options::{Better, Pick};
use crate::work::PairEngine;

/// Options.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("source").required(true).args(["scan", "run", "from"]))]
#[command(after_help = "Examples:
  muster pairs --scan full -w 'node[001-128]'
  muster pairs --scan bisect -w @hall7 --topology /etc/slurm/topology.conf --json
  muster pairs --scan full -w @hall7 --engine allreduce
  muster pairs --scan sample --rounds 20 -w @hall7 --png hall7.png
  muster pairs --run --csv > matrix.csv
  muster pairs --run --visits
  muster pairs --run -w @hall7                     only the pairs between these nodes
  muster pairs --from matrix.csv --topology topo.csv
  muster pairs --from matrix.csv --topology topo.csv --show

A scan measures pairs of nodes over TCP, all pairs of a round at the same time, and resumes an interrupted scan of the \
same nodes. Without --topology the labels leaf, aggregate and core of the inventory say which switch a node is attached to; the label \
fabric gives the address to measure with where it is not the one of SSH.
A matrix has rows src,dst,metric,value and optionally up, the uplink that the pair crossed; several rows of a pair \
are its sample. A topology is node,leaf[,aggregate...] rows, a Slurm topology.conf or the output of ibnetdiscover.
Exit codes: 0 nothing stands out, 1 warnings or a topology that does not fit, 2 an element is accused, 3 undecided, \
contested, or a node was left out.")]
pub struct Options {
    /// Measure now: every pair, every node once per hop distance, some rounds, or only what it takes to decide.
    #[arg(long, value_enum, value_name = "METHOD")]
    pub scan: Option<Scan>,
    /// Show a recorded run [default: the newest].
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub run: Option<String>,
    /// Read a CSV with the columns src,dst,metric,value and optionally up.
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// Rounds of a sample.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// How long each pair is measured: smoke, quick, standard or full.
    #[arg(long, default_value = "quick")]
    pub profile: Profile,
    /// What loads the network: streams each way, the all-reduce of the two nodes (its bus bandwidth is the metric), or RDMA
    /// writes by perftest's ib_write_bw where nodes have it and an RDMA device; the address of `fabric` says which.
    #[arg(long, value_enum, default_value = "tcp")]
    pub engine: PairEngine,
    /// Connections of each pair.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub streams: Option<u16>,
    /// Milliseconds that each direction is loaded.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(36..=600_000))]
    pub duration: Option<u32>,
    /// Which leaf each node is attached to [default: inferred from labels, latencies or the pairs].
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// CSV with the columns src,dst,up: the uplink that each ordered pair crosses.
    #[arg(long, value_name = "FILE")]
    pub routes: Option<PathBuf>,
    /// Only metrics whose name matches, with * and ?.
    #[arg(long, value_name = "PATTERN")]
    pub metric: Vec<String>,
    /// Which way the metrics of a file are better.
    #[command(flatten)]
    pub better: Better,
    /// Start a new scan instead of resuming an interrupted one.
    #[arg(long)]
    pub new: bool,
    /// No progress on standard error.
    #[arg(short, long)]
    pub quiet: bool,
    /// When every pair of a scan was measured, as CSV on standard output.
    #[arg(long, conflicts_with_all = ["csv", "json", "from"])]
    pub visits: bool,
    /// Show the matrix in the console, once it is known.
    #[arg(long, conflicts_with_all = ["csv", "json", "visits"])]
    pub show: bool,
    /// JSON on standard output.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// The matrix as CSV on standard output.
    #[arg(long)]
    pub csv: bool,
    /// The matrix as a picture: one square a pair, senders down, receivers across.
    #[arg(long, value_name = "FILE")]
    pub png: Option<PathBuf>,
}

/// Which pairs are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scan {
    /// Every pair.
    Full,
    /// Every node once at every hop distance.
    Quick,
    /// Some rounds of a full scan.
    Sample,
    /// Only what it takes to decide.
    Bisect,
}
