//! `muster criteria export|import`: versions as a file, and SuperBench baselines as criteria.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use muster_analysis::Criterion;
use muster_analysis::rules::Baseline;
use muster_import::format::Content;
use muster_import::superbench::Key;
use muster_import::{Format, Meaning};
use serde::{Deserialize, Serialize};

use crate::clock::now_ms;
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS};
use crate::judge::Version;
use crate::{database, input, judge, out};

/// Options of `export`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  muster criteria export hall7.json && scp hall7.json other: && ssh other muster criteria import hall7.json"
)]
pub struct Export {
    /// File to write; it is replaced as a whole or not at all.
    pub file: PathBuf,
}

/// Options of `import`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  muster criteria import hall7.json\n  muster criteria import baseline.json && muster criteria freeze --all"
)]
pub struct Import {
    /// What `muster criteria export` wrote, or a SuperBench baseline.json.
    pub file: PathBuf,
}

/// The published document.
#[derive(Deserialize, Serialize)]
struct Set {
    schema: String,
    version: u32,
    versions: Vec<Version>,
}

const SCHEMA: &str = "muster.criteria-set";

/// Writes every version.
pub fn export(options: &Export, config: &Config) -> Ended {
    let store = database::read(config)?;
    let set = Set { schema: SCHEMA.to_owned(), version: 1, versions: judge::versions(&*store).code(IO)? };
    out::replace(&options.file, &serde_json::to_vec_pretty(&set).code(IO)?, out::PRIVATE).code(IO)?;
    out::line(&format!("{} versions written to {}", set.versions.len(), options.file.display()))?;
    Ok(PASS)
}

/// Takes versions over. A version whose content does not give its identity was changed by hand and is refused.
pub fn import(options: &Import, config: &Config) -> Ended {
    let name = options.file.display().to_string();
    let versions = read(&options.file).with_context(|| name.clone()).code(CONFIG)?;
    let mut store = database::write(config)?;
    let mut new = 0;
    for version in &versions {
        new += usize::from(judge::keep(&mut store, version).code(IO)?);
    }
    out::line(&format!("{new} new versions of {} in {name}; freeze them to judge by them", versions.len()))?;
    Ok(PASS)
}

fn read(file: &Path) -> anyhow::Result<Vec<Version>> {
    let text = std::fs::read(file)?;
    if let Ok(set) = serde_json::from_slice::<Set>(&text) {
        anyhow::ensure!(set.schema == SCHEMA && set.version == 1, "schema {} {}", set.schema, set.version);
        if let Some(bad) = set.versions.iter().find(|v| !v.criterion.is_whole()) {
            return Err(anyhow!("{} was changed after it was learned", bad.criterion.id));
        }
        return Ok(set.versions);
    }
    let reading = input::Reading::default();
    match input::content(file, Format::SuperbenchBaseline, &reading)? {
        Content::Baseline(baseline) => of_baseline(&baseline, &file.display().to_string()),
        _ => Err(anyhow!("neither versions nor a baseline")),
    }
}

/// A baseline's number is a criterion of one value that is taken on trust. Metrics of unknown meaning are told.
fn of_baseline(baseline: &Baseline, source: &str) -> anyhow::Result<Vec<Version>> {
    let (mut versions, mut left_out) = (Vec::new(), 0);
    for (name, value) in &baseline.0 {
        let meaning = Key::parse(name).map(|key| (key.metric_id(), key.meaning()));
        let Some((metric, Meaning::Measure { unit, factor, direction })) = meaning else {
            left_out += 1;
            continue;
        };
        let criterion = Criterion::reference(metric, unit, direction, value * factor).context(name.clone())?;
        let (group, source) = (String::new(), source.to_owned());
        versions.push(Version { criterion, group, learned_ms: now_ms(), source, outside: Vec::new(), spread: None });
    }
    if left_out > 0 {
        out::note(format_args!(
            "{source}: {left_out} entries are no measurements, or nothing says which way they are better"
        ));
    }
    Ok(versions)
}
