//! Which files are read, as what, and what becomes of them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use muster_import::format::{self, Content, HEAD, Told};
use muster_import::superbench::summary;
use muster_import::{Format, Limits};
use muster_wire::clean;
use sha2::{Digest, Sha256};

use super::checks;
use super::csv::{self, Columns};
use super::fleet::Fleet;
use crate::options::Better;

/// Collectives that a file's name may hold.
const OPERATIONS: [&str; 9] = [
    "allreduce",
    "allgather",
    "alltoall",
    "reducescatter",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "sendrecv",
    "gather",
];
/// Files of one directory that are read.
const MOST: usize = 200_000;

/// How files are read.
#[derive(Args, Clone, Debug, Default)]
pub struct Reading {
    /// File format: csv, superbench, superbench-raw, superbench-baseline, superbench-rules, nccl-tests, perftest, fio,
    /// nvbandwidth or dcgm [default: detected].
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub format: Option<Format>,
    /// Node the output belongs to [default: the file name without its extension].
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Collective of nccl-tests output, such as allreduce [default: from the file name].
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,
    /// Other column names of a CSV, such as node=uuid,value=perf,metric=exp.
    #[arg(long, value_name = "OURS=THEIRS", value_delimiter = ',', value_parser = column)]
    pub columns: Vec<String>,
    /// CSV values are averages of many steps [default: single steps].
    #[arg(long)]
    pub aggregated: bool,
    /// Skip and count CSV values that cannot be read, such as 'n/a', instead of refusing the file. NaN and inf can be read: they
    /// are results of a benchmark that went wrong, and fail the node.
    #[arg(long)]
    pub lenient: bool,
    /// Which way the metrics are better.
    #[command(flatten)]
    pub better: Better,
}

fn format(name: &str) -> Result<Format, String> {
    Format::named(name).ok_or_else(|| format!("one of {}", Format::ALL.map(Format::name).join(", ")))
}

fn column(pair: &str) -> Result<String, String> {
    Columns::of(&[pair.to_owned()]).map(|_| pair.to_owned()).map_err(|why| why.to_string())
}

/// The file and what it is.
///
/// # Errors
/// When it cannot be read, or nothing known is in it.
pub fn open(file: &Path, given: Option<Format>) -> Result<Format> {
    if let Some(format) = given {
        return Ok(format);
    }
    let mut head = Vec::new();
    let input = File::open(file).with_context(|| file.display().to_string())?;
    input.take(HEAD as u64).read_to_end(&mut head).with_context(|| file.display().to_string())?;
    let format = Format::of(&head);
    format.ok_or_else(|| anyhow!("{}: no format that is known; --format says which one it is", file.display()))
}

/// All of a file that is not CSV.
///
/// # Errors
/// With the file and the line.
pub fn content(file: &Path, format: Format, reading: &Reading) -> Result<Content> {
    let input = File::open(file).with_context(|| file.display().to_string())?;
    let place = Place::of(file, format, reading)?;
    let told = Told { node: &place.node, benchmark: &place.benchmark, rank: place.rank, operation: &place.operation };
    let input = BufReader::with_capacity(1 << 20, input);
    format::read(input, format, &told, Limits::default()).with_context(|| file.display().to_string())
}

/// Everything that `files` say of a fleet; a directory stands for the `results.json` files below its `nodes/`.
///
/// # Errors
/// With file and line, or when a file holds no measurements.
pub fn fleet(files: &[PathBuf], reading: &Reading) -> Result<Fleet> {
    let mut fleet = Fleet::default();
    for file in files {
        if file.is_dir() {
            raw_files(file)?.iter().try_for_each(|file| add(&mut fleet, file, Format::SuperbenchRaw, reading))?;
        } else {
            add(&mut fleet, file, open(file, reading.format)?, reading)?;
        }
    }
    fleet.tell_open();
    let empty = fleet.metrics.is_empty() && fleet.failures().is_empty() && fleet.left_open().is_empty();
    if empty {
        let notes = fleet.notes.join("; ");
        let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        bail!("{}: no measurements{}{notes}", names.join(", "), if notes.is_empty() { "" } else { "; " });
    }
    Ok(fleet)
}

fn add(fleet: &mut Fleet, file: &Path, format: Format, reading: &Reading) -> Result<()> {
    let name = file.display().to_string();
    if format == Format::Csv {
        let input = File::open(file).with_context(|| name.clone())?;
        let mut columns = Columns::of(&reading.columns)?;
        (columns.aggregated, columns.lenient) = (reading.aggregated, reading.lenient);
        return csv::read(input, &name, &columns, fleet, &reading.better);
    }
    if format == Format::Superbench {
        let input = File::open(file).with_context(|| name.clone())?;
        let input = BufReader::with_capacity(1 << 20, input);
        let summary = summary::read(input, Limits::default()).with_context(|| name.clone())?;
        return fleet.add_table(&summary, &reading.better).with_context(|| name);
    }
    match content(file, format, reading)? {
        Content::Table(table) => fleet.add_table(&table.into(), &reading.better).with_context(|| name)?,
        Content::Node(node) => {
            // One of which nothing could be measured is still there, with nothing known of it.
            let of = Place::of(file, format, reading)?.node;
            fleet.node(&of);
            node.series.iter().try_for_each(|series| fleet.add(series, None)).with_context(|| name.clone())?;
            node.failed.into_iter().for_each(|(work, why)| fleet.fail(&of, &work, why));
            node.open.into_iter().for_each(|(work, why)| fleet.leave_open(&of, &work, why));
            fleet.notes.extend(node.left_out.iter().map(|what| format!("{name}: left out: {what}")));
        }
        Content::Checks(found) => checks::add(&found, fleet).with_context(|| name)?,
        Content::Baseline(_) => {
            bail!("{name}: a baseline, not measurements: `muster criteria import` makes criteria of it")
        }
        Content::Rules(_) => bail!("{name}: rules, not measurements: `muster criteria judge --rules` applies them"),
    }
    Ok(())
}

/// What a file's name says of its content.
struct Place {
    node: String,
    benchmark: String,
    rank: Option<u32>,
    operation: String,
}

impl Place {
    fn of(file: &Path, format: Format, reading: &Reading) -> Result<Self> {
        let stem = file.file_stem().map(|s| clean(&s.to_string_lossy(), 255)).unwrap_or_default();
        let mut place = Self {
            node: reading.node.clone().unwrap_or_else(|| stem.clone()),
            benchmark: String::new(),
            rank: None,
            operation: String::new(),
        };
        if format == Format::SuperbenchRaw {
            let parts: Vec<String> = file.iter().rev().skip(1).map(|p| clean(&p.to_string_lossy(), 255)).collect();
            let [rank, benchmark, folder, node, ..] = parts.as_slice() else { return Err(unplaced(file)) };
            let number = rank.strip_prefix("rank").and_then(|r| r.parse().ok());
            let (Some(number), "benchmarks") = (number, folder.as_str()) else { return Err(unplaced(file)) };
            place.rank = Some(number);
            place.benchmark.clone_from(benchmark);
            place.node = reading.node.clone().unwrap_or_else(|| node.clone());
        }
        if format == Format::NcclTests {
            let found = OPERATIONS.iter().find(|op| stem.contains(**op)).map(|op| op.replace('_', ""));
            let operation = reading.operation.clone().or(found);
            place.operation = operation.ok_or_else(|| {
                anyhow!(
                    "{}: nccl-tests do not say which collective they ran; --operation allreduce does",
                    file.display()
                )
            })?;
        }
        Ok(place)
    }
}

fn unplaced(file: &Path) -> anyhow::Error {
    anyhow!(
        "{}: whose it is stands in SuperBench's path: …/NODE/benchmarks/BENCHMARK/rankN/results.json",
        file.display()
    )
}

/// `nodes/*/benchmarks/*/rank*/results.json` below `dir`, sorted.
fn raw_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let nodes = if dir.join("nodes").is_dir() { dir.join("nodes") } else { dir.to_owned() };
    let mut found = Vec::new();
    for node in entries(&nodes)? {
        let benchmarks = node.join("benchmarks");
        if !benchmarks.is_dir() {
            continue;
        }
        for benchmark in entries(&benchmarks)? {
            let ranks = if benchmark.is_dir() { entries(&benchmark)? } else { Vec::new() };
            found.extend(ranks.into_iter().map(|rank| rank.join("results.json")).filter(|file| file.is_file()));
        }
        if found.len() > MOST {
            bail!("{}: more than {MOST} files", dir.display());
        }
    }
    if found.is_empty() {
        bail!("{}: no NODE/benchmarks/BENCHMARK/rankN/results.json below it", nodes.display());
    }
    Ok(found)
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let all = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut all: Vec<PathBuf> = all.map(|e| e.map(|e| e.path())).collect::<std::io::Result<_>>()?;
    all.sort_unstable();
    Ok(all)
}

/// SHA-256 of a file, in hexadecimal.
///
/// # Errors
/// When it cannot be read.
pub fn sha256(file: &Path) -> Result<String> {
    let mut input = File::open(file).with_context(|| file.display().to_string())?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match input.read(&mut buffer).with_context(|| file.display().to_string())? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dcgm(status: &str) -> String {
        format!(
            "{{\"DCGM Diagnostic\": {{\"test_categories\": [{{\"category\": \"Hardware\", \"tests\": [{{\"name\": \"memory\", \
             \"results\": [{{\"entity_group\": \"GPU\", \"entity_id\": 2, \"status\": \"{status}\"}}]}}]}}]}}}}"
        )
    }

    #[test]
    fn a_fleet_that_passes_dcgm_is_read_a_warning_is_told_and_a_node_that_measured_nothing_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let file = dir.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let fleet = |files: &[PathBuf]| fleet(files, &Reading::default()).unwrap();
        let passes = [file("n0.json", &dcgm("Pass")), file("n1.json", &dcgm("Pass"))];
        let read = fleet(&passes);
        assert_eq!((read.metrics.len(), read.failures().len(), read.left_open().len()), (1, 0, 0));
        let warned = fleet(&[file("n2.json", &dcgm("Warn"))]);
        assert_eq!(warned.left_open(), [("n2", "dcgm/hardware/memory", "DCGM warned: gpu2")]);
        assert!(warned.notes[0].ends_with("n2: dcgm/hardware/memory: DCGM warned: gpu2"), "{:?}", warned.notes);
        let idle = file("n3.json", "{\"fio version\": \"fio-3.16\", \"jobs\": []}");
        assert_eq!(fleet(&[passes[0].clone(), idle]).nodes, ["n0", "n3"]);
    }

    #[test]
    fn a_column_that_is_none_of_ours_is_a_slip_of_the_command_line() {
        for (pair, right) in [("node=uuid", true), ("value=", true), ("x", false), ("colour=red", false)] {
            assert_eq!(column(pair).is_ok(), right, "{pair}");
        }
    }
}
