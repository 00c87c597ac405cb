//! What a person may ask on the command line, and what is printed for it.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use muster_wire::{BENCHMARKS, Finished, Frame, Outcome, Profile, benchmark};

use crate::exit::{FAILED, USAGE};
use crate::passes::{self, How};
use crate::report::{Look, Measured, Report};
use crate::stop::{self, Cause, Stop};
use crate::{collect::Root, ddp, fault, serve, table, work};

const EXAMPLES: &str = "Examples:
  muster-probe info                                   what this machine is, as a table
  muster-probe run cpu-stream disk --profile quick    measure memory and disk for under a minute
  muster-probe run all --profile smoke --format json  everything, one JSON document on stdout
  muster-probe list                                   which benchmarks and collectors there are

Exit codes: 0 done, 2 a benchmark failed, 64 not understood, 128 + n ended by signal n.";

#[derive(Parser)]
#[command(name = "muster-probe", version, about = "Looks at and measures the machine it runs on", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Read-only facts: identity, CPUs, memory, disks, network, load, kernel log
    Info {
        /// How to print
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Names of all benchmarks and collectors
    List,
    /// Run benchmarks, in the order given
    Run {
        /// Benchmark names, or 'all'
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// How much work: smoke, quick, standard, full
        #[arg(long, default_value = "quick")]
        profile: Profile,
        /// Directory for the disk benchmark's file, removed afterwards
        #[arg(long, value_name = "DIR")]
        scratch: Option<PathBuf>,
        /// How to print
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// One rank of a data-parallel training over many nodes
    TrainDdp(ddp::Options),
    /// Speak frames to a console on stdin and stdout (started by muster)
    Serve,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    fault::keep_panics();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    match cli.command {
        Command::Serve => serve::serve(),
        Command::TrainDdp(options) => ddp::run(&options),
        Command::List => print(&table::catalogue(), ExitCode::SUCCESS),
        Command::Info { format } => info(format),
        Command::Run { names, profile, scratch, format } => match chosen(&names) {
            Ok(names) => run(&names, profile, scratch, format),
            Err(unknown) => {
                eprintln!("muster-probe run: no benchmark called '{unknown}'; 'muster-probe list' shows them");
                ExitCode::from(USAGE)
            }
        },
    }
}

/// The benchmarks of the catalogue that were asked for, or the first name that is none.
fn chosen(names: &[String]) -> Result<Vec<&'static str>, String> {
    if names == ["all"] {
        return Ok(BENCHMARKS.iter().map(|entry| entry.name).collect());
    }
    names.iter().map(|name| benchmark(name).map(|entry| entry.name).ok_or_else(|| name.clone())).collect()
}

fn info(format: Format) -> ExitCode {
    let root = Root::system();
    let looks = muster_wire::COLLECTORS.iter().map(|entry| {
        let mut facts = Vec::new();
        let finished = work::collector(entry.name, &root, &mut |frame| {
            if let Frame::Facts(more) = frame {
                facts.extend(more.facts);
            }
        });
        Look { collector: entry.name, facts, outcome: finished.outcome }
    });
    finish(&Report { profile: None, looks: looks.collect(), measured: Vec::new() }, format, ExitCode::SUCCESS)
}

fn run(names: &[&'static str], profile: Profile, scratch: Option<PathBuf>, format: Format) -> ExitCode {
    let stop = Arc::new(Stop::default());
    watch_signals(&stop);
    let mut heard = |frame: Frame| {
        if let Frame::Log(line) = frame {
            eprintln!("{}", line.text);
        }
    };
    work::check_busy(&Root::system(), &mut heard);
    let measured: Vec<Measured> = names.iter().map(|name| measure(name, profile, scratch.as_deref(), &stop)).collect();
    let failed = measured.iter().any(|one| matches!(one.finished.outcome, Outcome::Failed(_)));
    let code = match stop::number() {
        0 if failed => ExitCode::from(FAILED),
        0 => ExitCode::SUCCESS,
        number => ExitCode::from(u8::try_from(128 + number).unwrap_or(FAILED)),
    };
    finish(&Report { profile: Some(profile), looks: Vec::new(), measured }, format, code)
}

fn measure(name: &str, profile: Profile, scratch: Option<&std::path::Path>, stop: &Stop) -> Measured {
    let show = io::stderr().is_terminal();
    let (mut series, mut facts) = (Vec::new(), Vec::new());
    let mut ended = None;
    let how = How { profile, scratch, stop: stop.flag(), steps: &BTreeMap::new() };
    passes::benchmarks(&[name.to_owned()], how, &mut |frame| match frame {
        Frame::Series(one) => series.push(one),
        Frame::Facts(more) => facts.extend(more.facts),
        Frame::Progress(at) if show => eprint!("\r\x1b[K{name} {:3.0} % {}", at.done * 100.0, at.note),
        Frame::Log(line) => eprintln!("{}", line.text),
        Frame::Finished(end) => ended = Some(end),
        _ => {}
    });
    let outcome = Outcome::Failed("it did not say how it ended".to_owned());
    let finished = ended.unwrap_or_else(|| Finished { name: name.to_owned(), outcome, elapsed_ns: 0 });
    if show {
        eprint!("\r\x1b[K");
    }
    Measured { finished, series, facts }
}

/// The first signal ends the work at its next step; the second ends the process at once.
fn watch_signals(stop: &Arc<Stop>) {
    stop::catch_signals();
    let stop = Arc::clone(stop);
    thread::spawn(move || {
        loop {
            if let Some(name) = stop::signal() {
                return stop.ask(Cause::Left, format!("ended by {name}"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
}

fn finish(report: &Report, format: Format, code: ExitCode) -> ExitCode {
    let text = match format {
        Format::Table => table::show(report),
        Format::Json => report.json(),
    };
    print(&text, code)
}

/// A reader that closes the pipe has seen enough: no error.
fn print(text: &str, code: ExitCode) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("muster-probe: cannot print: {error}");
            ExitCode::from(FAILED)
        }
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn all_means_the_catalogue_and_an_unknown_name_is_named() {
        assert_eq!(chosen(&["all".into()]).unwrap().len(), BENCHMARKS.len());
        assert_eq!(chosen(&["disk".into(), "cpu-gemm".into()]), Ok(vec!["disk", "cpu-gemm"]));
        assert_eq!(chosen(&["disk".into(), "aura".into()]), Err("aura".to_owned()));
    }
}
