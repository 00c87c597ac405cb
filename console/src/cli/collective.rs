//! `muster collective`: what nodes reach when they all compute together, and whether the data is right.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use muster_playbook::report::CollectiveReport;
use muster_run::RunState;
use muster_store::Store;
use muster_wire::{COLLECTIVE_BYTES, Collective, Profile, SIZES};

use super::pairs::topology;
use crate::config::Config;
use crate::exit::{Code, Ended, INTERRUPTED, IO, Problem, UNDECIDED, USAGE};
use crate::judge::pairs;
use crate::options::{Line, Pick, Say};
use crate::{database, out, session, work};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster collective allreduce -w 'node[001-016]'
  muster collective alltoall -w @hall7 --sizes 64K-16M --json
  muster collective allgather -w @hall7 --sizes 1M,64M --streams 8 --deadline 60
  muster collective --run

Ring all-reduce, ring all-gather and pairwise all-to-all between the nodes over TCP, without MPI. Sizes, algorithm and bus \
bandwidth are those of nccl-tests: of an all-reduce over n nodes every link carries 2(n-1)/n of the size each way, of the \
others (n-1)/n. A size is rounded down to as many whole elements of four bytes for every node, and shown as what was used. \
Every byte that arrives is compared with what it must be; a wrong one is named with node and step. The ring follows \
the leaves of the fabric (labels leaf, aggregate, core, or --topology). Which node or link slows all down is told by \
`muster pairs --engine allreduce`.
Exit codes: 0 right and to the end, 2 wrong data, 3 not to the end or a node took no part.")]
pub struct Options {
    /// What to compute: allreduce, allgather or alltoall; several are separated by commas.
    #[arg(required_unless_present = "run", value_delimiter = ',', value_name = "COLLECTIVE")]
    pub what: Vec<Collective>,
    /// Show the collectives of a run in the database; the newest when no id is given.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "what")]
    pub run: Option<String>,
    /// Which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// Bytes of an operation: a list such as 64K,1M, or a range that doubles from 64K to 16M with 64K-16M.
    #[arg(long, value_name = "SIZES", value_parser = sizes)]
    pub sizes: Option<Sizes>,
    /// How long each size is measured, and which sizes: smoke, quick, standard or full.
    #[arg(long, default_value = "quick")]
    pub profile: Profile,
    /// Connections to each neighbour.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub streams: Option<u16>,
    /// Milliseconds that each size is measured.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=600_000))]
    pub duration: Option<u32>,
    /// Longest that one size may take, seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub deadline: Option<u64>,
    /// Which leaf each node is attached to.
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(short, long)]
    pub quiet: bool,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Sizes of a sweep, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(Vec<u64>);

/// Measures or looks up, prints.
pub async fn run(options: &Options, config: &Config) -> Ended {
    let (report, state) = match &options.run {
        Some(id) => {
            let store = database::read(config)?;
            let report = stored(&*store, Some(id.as_str()).filter(|id| !id.is_empty()))?;
            database::damaged(&*store);
            (report, RunState::Finished)
        }
        None => measure(options, config).await?,
    };
    if options.json {
        out::json(&report)?;
    } else {
        let fold = |names: &[&str]| muster_fleet::hostlist::fold(names.iter().copied());
        out::line(&report.lines(&fold).join("\n"))?;
    }
    Ok(match state {
        RunState::Finished | RunState::Incomplete => report.exit_code(),
        RunState::Cancelled => INTERRUPTED,
        _ => UNDECIDED,
    })
}

async fn measure(options: &Options, config: &Config) -> Result<(CollectiveReport, RunState), Problem> {
    let fabric = work::Fabric {
        topology: options.topology.as_deref().map(topology).transpose()?,
        streams: options.streams,
        duration_ms: options.duration,
        sizes: options.sizes.clone().map(|sizes| sizes.0).unwrap_or_default(),
        deadline: options.deadline.map(Duration::from_secs),
        ..work::Fabric::default()
    };
    let mut playbook = session::playbook("network-full")?;
    "collective".clone_into(&mut playbook.name);
    playbook.profile = options.profile;
    for step in &mut playbook.steps {
        (step.pairs, step.collective) = (None, options.what.clone());
        step.collective.sort_unstable();
        step.collective.dedup();
    }
    let nodes = session::nodes_for_work(config, &options.pick)?;
    if nodes.len() < 2 {
        return Err(Problem { code: USAGE, error: anyhow!("a collective needs at least two nodes") });
    }
    let settings = session::settings_for(config, &nodes).await?;
    let mut store = database::write(config)?;
    // Sizes may differ from those of an unfinished run, and none takes long.
    let job = session::Job { fabric, fresh: true, ..session::Job::new(playbook, nodes, settings) };
    let say = Say { json: options.json, quiet: options.quiet, fail_on: Line::Warn };
    let done = session::headless(job, &mut store, config, &say).await?;
    Ok((stored(&store, Some(&done.report.run.id))?, done.state))
}

/// The collectives of a run in the database.
fn stored(store: &dyn Store, id: Option<&str>) -> Result<CollectiveReport, Problem> {
    let run = session::run_of(store, id)?;
    let records = store.records(&run.id).code(IO)?;
    let none = || anyhow!("run {} has no collective; see `muster collective --help`", run.id);
    pairs::collectives(&run, &records).with_context(none).code(USAGE)
}

/// `64K-16M` doubles from one to the other; commas list sizes and ranges.
fn sizes(text: &str) -> Result<Sizes, String> {
    let mut out = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => out.push(size(part)?),
            Some((first, last)) => {
                let (first, last) = (size(first)?, size(last)?);
                if first > last {
                    return Err(format!("{part} runs backwards"));
                }
                out.extend(std::iter::successors(Some(first), |size| Some(size * 2)).take_while(|size| *size <= last));
            }
        }
    }
    if out.len() > SIZES {
        return Err(format!("{} sizes, at most {SIZES}", out.len()));
    }
    out.sort_unstable();
    out.dedup();
    Ok(Sizes(out))
}

/// Bytes with K, M or G for powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.trim().to_ascii_uppercase().as_str() {
        "" => return Err("a size is missing".to_owned()),
        all => match all.strip_suffix(['K', 'M', 'G']) {
            Some(number) => (number.to_owned(), 10 * (1 + "KMG".find(&all[number.len()..]).unwrap_or(0))),
            None => (all.to_owned(), 0),
        },
    };
    let number: u64 = number.parse().map_err(|_| format!("'{text}' is no size such as 4096, 64K or 16M"))?;
    let bytes = number.checked_mul(1 << unit).filter(|bytes| (1..=COLLECTIVE_BYTES).contains(bytes));
    bytes.ok_or_else(|| format!("{text} is not within 1 and {COLLECTIVE_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_lists_and_doubling_ranges_within_bounds() {
        let of = |text: &str| sizes(text).map(|sizes| sizes.0);
        assert_eq!(of("64K-512K").unwrap(), [64 << 10, 128 << 10, 256 << 10, 512 << 10]);
        assert_eq!(of("1m, 8,1M,1g").unwrap(), [8, 1 << 20, 1 << 30]);
        assert_eq!(of("3-20").unwrap(), [3, 6, 12]);
        for wrong in ["", "0", "2G", "16M-64K", "64Q", "1,,2", "1-1G,3-1G", "K"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
