//! A run, a recording of a watch or a triage case as one file for `muster replay`.

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::anyhow;

use super::{BUFFER, Options};
use crate::cli::watch;
use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, Problem, USAGE};
use crate::patience::Patience;
use crate::redact::Redact;
use crate::{database, out, portable, recordings, session};

/// Writes the file.
pub(super) fn run(options: &Options, config: &Config) -> Ended {
    let wrong = |why: &str| Problem { code: USAGE, error: anyhow!(why.to_owned()) };
    if let Some(what) = options.redact.iter().find(|what| **what != Redact::None) {
        let what = clap::ValueEnum::to_possible_value(what).map_or(String::new(), |value| value.get_name().to_owned());
        let why = format!(
            "--redact {what}: a replay file holds results as the nodes gave them; for others, --format html or --ticket"
        );
        return Err(wrong(&why));
    }
    if options.since.is_some() {
        return Err(wrong("--since writes a data set of Parquet files; a replay file holds one run"));
    }
    if options.node.is_some() || options.metric.is_some() {
        return Err(wrong("--node and --metric are for --format html; a replay file holds a whole run"));
    }
    let output = options.output.as_ref().ok_or_else(|| wrong("a replay file is no text: --output names its file"))?;
    let by = |write: &dyn Fn(&mut dyn Write) -> anyhow::Result<()>| {
        let fill = |new: &mut File| {
            let mut new = BufWriter::with_capacity(BUFFER, new);
            write(&mut new)?;
            Ok(new.flush()?)
        };
        out::replace_by(output, out::PRIVATE, fill).code(IO)
    };
    if let Some(case) = &options.case {
        let _waiting = Patience::new("reading the bundle");
        by(&|to| portable::write_case(case, to))?;
    } else if let Some(recording) = &options.recording {
        let file = recordings::find(recording, config)?;
        let nodes = watch::nodes_of(&file)?;
        by(&|to| portable::write_watch((&file, &nodes), config, to))?;
    } else {
        let store = database::read(config)?;
        let run = session::run_of(&*store, options.which.id())?;
        let _waiting = Patience::new(format!("reading {}", run.id));
        database::sound(&*store, options.strict)?;
        by(&|to| portable::write_run((&*store, &run), config, to))?;
    }
    out::note(format_args!(
        "written to {}; it holds host names, addresses and serial numbers as they are",
        output.display()
    ));
    Ok(PASS)
}
