//! `muster watch learn`: the order in which metrics are looked at, and all else that Minder learns, from recordings whose faults are known.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use muster_watch::trial::{Method, Model, Recorded, learn};

use super::evaluate::Looks;
use super::labelled;
use crate::exit::{Code, Ended, IO, PASS, Problem, UNDECIDED};
use crate::out;
use crate::patience::Patience;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster watch learn recordings/ -o fleet.json
  muster watch evaluate others/ --model fleet.json

Recordings and truth files are those of `muster watch evaluate`. What is stored: the order of metrics by a decision tree over windows \
with and without a fault, a network for each metric, and from which score on a machine is a candidate, by method. It serves \
`muster watch evaluate`; `muster watch` itself learns from the job that it watches, and needs none of it (docs/WATCH.md).

Exit codes: 0 stored, 3 no recording with a truth file. 74 for a file that cannot be read or written, 78 for a recording or truth that \
is none; the others are learned from all the same")]
pub struct Options {
    /// Folder with recordings and truth files.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Where to store it.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// When is looked, and how is learned.
    #[command(flatten)]
    pub looks: Looks,
}

/// Reads, learns, stores, says what was learned.
pub(super) fn run(options: &Options) -> Ended {
    let folder = labelled::read(&options.folder)?;
    folder.tell();
    if folder.recordings.is_empty() {
        let error = anyhow!("{}: no recording with a truth file in it to learn from", options.folder.display());
        return Err(Problem { code: folder.code.unwrap_or(UNDECIDED), error });
    }
    let all: Vec<&Recorded> = folder.recordings.iter().collect();
    let waiting = Patience::new(format!("learning from {}", out::counted(all.len(), "recording", "recordings")));
    let model = learn(&all, &Method::ALL, &options.looks.settings());
    drop(waiting);
    out::replace(&options.output, model.to_json().code(IO)?.as_bytes(), out::PUBLIC).code(IO)?;
    tell(&model)?;
    let faults: usize = all.iter().map(|recorded| recorded.truth.faults.len()).sum();
    if faults == 0 {
        out::note("no truth file names a fault: metrics are in the paper's order");
    }
    let (recordings, faults) =
        (out::counted(all.len(), "recording", "recordings"), out::counted(faults, "fault", "faults"));
    out::line(&format!("learned from {recordings} with {faults}; stored in {}", options.output.display()))?;
    Ok(folder.code.unwrap_or(PASS))
}

fn tell(model: &Model) -> Result<(), Problem> {
    let row = |(nr, one): (usize, &muster_watch::minder::Priority)| {
        let depth = one.depth.map_or("never".to_owned(), |depth| depth.to_string());
        let error = model.networks.get(&one.metric).map_or("-".to_owned(), |network| format!("{:.1e}", network.error));
        vec![(nr + 1).to_string(), one.metric.clone(), depth, format!("{:.1} %", 100.0 * one.gain), error]
    };
    let rows: Vec<Vec<String>> = model.order.iter().enumerate().map(row).collect();
    out::line(&out::table(
        &["order", "metric", "depth of first split", "impurity taken away", "error of network"],
        &rows,
    ))
}
