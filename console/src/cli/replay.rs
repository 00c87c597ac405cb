//! `muster replay`: a stored run, a recording of a watch or a triage case, played as if it were happening.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Parser};
use muster_store::portable::{Kind, is_portable};
use muster_store::{Db, telemetry};

use super::{triage, watch};
use crate::app::{App, Played};
use crate::config::{Config, Source};
use crate::exit::{Code, Ended, IO, Problem, USAGE};
use crate::options::{Common, Say};
use crate::patience::Patience;
use crate::portable::{self, Home, Recorded, Unpacked};
use crate::session::{self, Done, Job};
use crate::work::playhead::{Playhead, SPEEDS};
use crate::work::tape::Tape;
use crate::{database, recordings};

/// Recordings that come with muster: what they are called here, and their bytes.
const DEMOS: [(&str, &[u8]); 3] = [
    ("demo", include_bytes!("../../../assets/replays/run.replay")),
    ("demo-watch", include_bytes!("../../../assets/replays/watch.replay")),
    ("demo-case", include_bytes!("../../../assets/replays/case.replay")),
];
/// Why nothing is written.
const WHY: &str = "this is a replay";

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster replay                                   the newest run, in about a minute
  muster replay 20261121T143000Z-cbd-1f2e --speed 20
  muster replay bug-1234.replay                   a file that muster export --format replay wrote, here or elsewhere
  muster replay bug-1234.replay --headless        no screen: prints what muster run printed at the end, same exit code
  muster replay 20261124T031000Z-watch-1f2e       what muster watch --record kept
  muster replay job-4711.tar.gz                   the case of a failed job, as muster triage --show
  muster replay demo                              a run that comes with muster; demo-watch and demo-case are the others

Keys: P pauses and continues, comma and dot go five seconds of playing back and on, { and } to the start and the end, ( and ) half and \
twice as fast; ? lists them with all others. Nothing is written to the database, and nothing is done on nodes. A file is judged by the \
criteria and thresholds that it brings along; --alpha and --tau try others. Without a terminal there is no screen. A case is opened as \
a whole: it has no time to go through.

Exit codes: without a screen as for muster run, muster watch --from and muster triage --from. 64 for a run or recording that is not \
there, 74 for a file that is cut off, damaged or of a newer muster, 78 for one that is no replay file")]
pub struct Options {
    /// Run id, replay file, recording of a watch (id or file), bundle of a failed job, or demo, demo-watch, demo-case [default: the
    /// newest run].
    #[arg(value_name = "RUN|FILE|ID")]
    pub what: Option<String>,
    /// Seconds of the recording that pass in a second, 0.1 to 100000 [default: all of it in about a minute, never slower than it was].
    #[arg(long, value_name = "FACTOR", value_parser = speed, conflicts_with_all = ["headless", "json"])]
    pub speed: Option<f64>,
    /// No screen: print what the live command would print at the end.
    #[arg(long)]
    pub headless: bool,
    /// What is printed without a screen.
    #[command(flatten)]
    pub say: Say,
}

/// What is to be played.
enum What {
    Run(Box<Recorded>),
    /// A recording, what it is called, and the settings to play it with.
    Watch(PathBuf, String, Box<Config>, Option<Unpacked>),
    /// A bundle.
    Case(PathBuf, Box<Config>, Option<Unpacked>),
}

/// Finds what is meant and plays it.
pub async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    let waiting = Patience::new("reading the recording");
    let what = What::find(options.what.as_deref(), config)?;
    drop(waiting);
    let screen = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let headless = options.headless || options.say.json || !screen;
    // Whoever plays does nothing on nodes.
    let common = &Common { read_only: true, ..common.clone() };
    match what {
        What::Run(run) if headless => {
            let (report, state) = (run.report()?, run.run.state);
            session::finish(&Done { report, state, signal: None, verdict: Duration::ZERO }, &options.say)
        }
        What::Run(run) => on_screen(&run, options.speed, common).await,
        What::Watch(file, _, config, _kept) if headless => {
            let line: Line<watch::Options> = Line::with(&[Path::new("--from"), &file], options.say.json);
            watch::run(&line.options, &config, common).await
        }
        What::Watch(file, name, config, _kept) => {
            let home = Home::new().code(IO)?;
            let config = alone(*config, home.path())?;
            watch::played((&file, &name), options.speed, (&config, common), WHY).await
        }
        What::Case(file, config, _kept) => {
            let home = Home::new().code(IO)?;
            let config = alone(*config, home.path())?;
            if !headless {
                return triage::played(&file, &config, common).await;
            }
            let line: Line<triage::Options> = Line::with(&[Path::new("--from"), &file], options.say.json);
            triage::run(&line.options, &config, common).await
        }
    }
}

async fn on_screen(recorded: &Recorded, speed: Option<f64>, common: &Common) -> Ended {
    let tape = Tape::new(recorded.run.clone(), recorded.records()?);
    let speed = speed.unwrap_or_else(|| Playhead::pace(tape.span()));
    let played = Played { tape, judging: recorded.judging()?, speed };
    let (run, config) = (&recorded.run, recorded.config.clone());
    let job = Job::new(session::playbook("cbd-light")?, recorded.nodes.clone(), session::settings(&config)?);
    let app = App::on(run.nodes.clone(), job, Err(WHY.to_owned()), (config, common), &run.id);
    app.sit_on_replay(played).await
}

impl What {
    fn find(word: Option<&str>, config: &Config) -> Result<Self, Problem> {
        let Some(word) = word else { return Self::stored(None, config) };
        if let Some((_, bytes)) = DEMOS.iter().find(|(name, _)| *name == word) {
            let mut file = tempfile::NamedTempFile::new().code(IO)?;
            file.write_all(bytes).code(IO)?;
            return Self::of_file(file.path(), config);
        }
        let path = Path::new(word);
        if is_portable(path) {
            return Self::of_file(path, config);
        }
        if path.is_file() && (telemetry::is_recording(path) || watch::is_recording(path)) {
            return Ok(Self::Watch(path.to_owned(), name_of(path), Box::new(config.clone()), None));
        }
        if path.is_dir() || path.is_file() && is_tar(path) {
            return Ok(Self::Case(path.to_owned(), Box::new(config.clone()), None));
        }
        if path.is_file() {
            // Says that it is none, and names it.
            return Self::of_file(path, config);
        }
        if word.contains('/') || word.ends_with(".replay") {
            let error = anyhow!("{}: there is no such file", muster_wire::clean(word, 200));
            return Err(Problem { code: IO, error });
        }
        // A recording needs no run beside it.
        let is_run = database::read(config).is_ok_and(|store| store.run(word).is_ok_and(|run| run.is_some()));
        if !is_run && recordings::all(config).is_ok_and(|all| all.iter().any(|kept| kept.id == word)) {
            let file = recordings::find(path, config)?;
            return Ok(Self::Watch(file, word.to_owned(), Box::new(config.clone()), None));
        }
        Self::stored(Some(word), config)
    }

    /// A run of the database, taken along as a file is.
    fn stored(id: Option<&str>, config: &Config) -> Result<Self, Problem> {
        let store = database::read(config)?;
        let run = session::run_of(&*store, id).map_err(|Problem { code, error }| {
            let more =
                "; `muster watch --list` names recordings, and `muster replay demo` plays one that comes with muster";
            Problem { code, error: if code == USAGE { anyhow!("{error}{more}") } else { error } }
        })?;
        let mut file = tempfile::NamedTempFile::new().code(IO)?;
        portable::write_run((&*store, &run), config, file.as_file_mut()).code(IO)?;
        Self::of_file(file.path(), config)
    }

    fn of_file(path: &Path, config: &Config) -> Result<Self, Problem> {
        let file = Unpacked::of(path)?;
        let mut config = config.clone();
        Ok(match file.head.kind {
            Kind::Run => Self::Run(Box::new(Recorded::of(file, &config)?)),
            Kind::Watch => {
                if let Some(inventory) = file.inventory() {
                    (config.inventory.value, config.inventory.source) = (inventory, Source::Flag);
                }
                Self::Watch(file.part(portable::WATCH)?, file.head.name.clone(), Box::new(config), Some(file))
            }
            Kind::Case => Self::Case(portable::case_of(&file)?, Box::new(config), Some(file)),
        })
    }
}

/// The settings with an empty database in `home`: a replay shows what it plays, and nothing else.
fn alone(mut config: Config, home: &Path) -> Result<Config, Problem> {
    config.db.value = home.join("db");
    drop(Db::open(&config.db.value, &muster_store::Options::default()).code(IO)?);
    Ok(config)
}

/// The command line of another subcommand, for its defaults.
#[derive(Parser)]
struct Line<O: Args> {
    #[command(flatten)]
    options: O,
}

impl<O: Args> Line<O> {
    fn with(words: &[&Path], json: bool) -> Self {
        let all = std::iter::once(Path::new("muster")).chain(words.iter().copied());
        Self::parse_from(all.chain(json.then_some(Path::new("--json"))))
    }
}

fn name_of(path: &Path) -> String {
    muster_wire::clean(&path.file_name().unwrap_or_default().to_string_lossy(), 80)
}

fn is_tar(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    [".tar", ".tar.gz", ".tgz"].iter().any(|ending| name.ends_with(ending))
}

/// How fast a recording is played.
fn speed(text: &str) -> Result<f64, String> {
    let [least, most] = SPEEDS;
    let number = text.trim_end_matches('x').parse().ok().filter(|speed| (least..=most).contains(speed));
    number.ok_or_else(|| format!("'{text}' is not a number from {least} to {most}"))
}
