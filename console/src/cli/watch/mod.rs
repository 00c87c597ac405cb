//! `muster watch`: which machine of a job is unlike its peers, in which metric, since when.

mod evaluate;
mod input;
mod keep;
mod labelled;
mod learn;
mod list;
pub(crate) mod live;
mod openmetrics;
mod past;
mod recorded;
mod show;
mod tape;
mod tell;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use muster_watch::Settings;

use crate::config::Config;
use crate::exit::Ended;
use crate::options::{Common, Pick};

pub(crate) use input::is_recording;
pub(crate) use recorded::{gone_through, nodes_of};
pub(crate) use show::played;

/// What else there is to a watch.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Score all methods on recordings whose faults are known: precision, recall, delay, false alarms, CPU time.
    Evaluate(evaluate::Options),
    /// Learn from such recordings what Minder needs, and store it: order of metrics, networks, thresholds.
    Learn(learn::Options),
}

/// Options.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  muster watch -w 'n[001-128]'                    watch nodes until ctrl-c; an alert is told when it comes up
  muster watch --job 4711 --log                   the nodes of a Slurm job; alerts go into the incident log, too
  muster watch -w @hall7 --for 30m --record --json
  muster watch --from telemetry.csv.gz
  muster watch -w @hall7 --show                   the same on the screen; W in the console watches, too
  muster watch --from telemetry.csv.gz --show --speed 10
  muster watch --from recording/ --json           all recordings in a folder are one
  muster watch --from metrics.parquet
  muster watch --from dcgm.json node.json         what Prometheus' query_range answered
  muster watch --list                             what --record kept; --from takes the id
  muster watch --from telemetry.csv -w 'n[01-16]' -x n09 --metrics 'gpu_*,net_tx_gbs'
  muster watch -w @hall7 --false-alarms 0.01      one healthy machine of a hundred named in a day, told later for it
  muster watch evaluate recordings/               all methods on recordings whose faults are known

Every node is compared with the others, and with how it usually compares. At least 4 nodes and 2 metrics are needed, and about \
3 minutes to learn what is usual; a machine is named after 80 to 130 seconds of being unlike its peers. Live, a probe on every \
node reads /proc and /sys once a second; nothing else is done there, and nothing is left when the console goes away. A \
recording is CSV or Parquet with the columns time_s,node,metric,value (epoch seconds, rows in any order, gaps and NaN allowed), a \
query_range answer of Prometheus (names of dcgm-exporter and node_exporter), or what --record kept; gzip is unpacked. It is \
gone through as if the job were running: alerted_s is when an alert would have been given. A sample is needed every 30 s at \
least. A group that differs together is called by a label of the inventory (leaf, rack, rail) that its nodes share. --record \
keeps what nodes told in the database, at most 10 GB and 30 days of it.

Exit codes: 0 nothing odd, 2 at least one alert, 3 undecided (what is missing is said). 64 for a node, metric \
or recording that is not there, 74 for a file that is torn or cannot be read, 78 for one that is no recording. A recording \
that cannot go on (disk full) is said, and changes nothing of that"
)]
pub struct Options {
    /// Something other than a watch.
    #[command(subcommand)]
    pub action: Option<Action>,
    /// Recordings: CSV, Parquet, Prometheus' JSON, gzip of these, a folder of such files, or what --record kept, by file or
    /// id. Without it, nodes are watched live.
    #[arg(long, value_name = "FILE|DIR|ID", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Which nodes, of the recording or of the inventory.
    #[command(flatten)]
    pub pick: Pick,
    /// Metrics to compare: names with * and ?, separated by commas [default: all].
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// How long to watch, such as 90s, 30m or 8h [default: until ctrl-c].
    #[arg(long = "for", value_name = "TIME", value_parser = long, conflicts_with = "from")]
    pub long: Option<Duration>,
    /// Keep what the nodes tell in the database, to go through it again with --from.
    #[arg(long, conflicts_with = "from")]
    pub record: bool,
    /// Healthy machines that may be named, per machine and day, such as 0.05: fewer means later alerts, and the answer says how much
    /// later. Learned from how long machines of this job are unlike their peers [default: 130 s of evidence name a machine].
    #[arg(long, value_name = "NUMBER", value_parser = budget)]
    pub false_alarms: Option<f64>,
    /// Looks a second, 1 to 100, at the counters of network and GPUs; the rest is looked at once a second. The finer looks go into
    /// --record, under names that end in @fine.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100), conflicts_with = "from")]
    pub hz: u32,
    /// Write alerts into the incident log, with the source `watch`.
    #[arg(long, conflicts_with = "from")]
    pub log: bool,
    /// Keep the current scores and alerts of every node in a file for node_exporter, written again every 10 seconds.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub openmetrics: Option<PathBuf>,
    /// List what --record kept, and watch nothing.
    #[arg(long, conflicts_with_all = ["from", "include", "exclude", "job", "metrics", "long", "record", "show"])]
    pub list: bool,
    /// JSON on standard output, at the end.
    #[arg(long)]
    pub json: bool,
    /// Open the console on it: machines over time, the odd one's line, alerts to jump to.
    #[arg(long, conflicts_with_all = ["json", "record", "long", "log", "openmetrics", "hz"])]
    pub show: bool,
    /// Seconds of the recording that pass in a second on the screen, 1 to 60 [default: 60].
    #[arg(long, value_name = "FACTOR", value_parser = speed, requires_all = ["show", "from"])]
    pub speed: Option<f64>,
}

impl Options {
    /// What the detector goes by.
    fn settings(&self) -> Settings {
        Settings { false_alarms: self.false_alarms, ..Settings::default() }
    }
}

/// From files, or from nodes.
pub async fn run(options: &Options, config: &Config, common: &Common) -> Ended {
    match &options.action {
        Some(Action::Evaluate(options)) => return evaluate::run(options),
        Some(Action::Learn(options)) => return learn::run(options),
        None => {}
    }
    if options.show {
        return show::run(options, config, common).await;
    }
    if options.list {
        return list::run(options.json, config);
    }
    if options.from.is_empty() { live::run(options, config).await } else { recorded::run(options, config) }
}

/// False alarms per machine-day.
fn budget(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1e-6..=10.0).contains(number));
    number.ok_or_else(|| format!("'{text}' is no number of false alarms per machine and day between 0.000001 and 10"))
}

/// How fast a recording is played.
fn speed(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is not a number from 1 to 60");
    text.trim_end_matches('x').parse().ok().filter(|speed| (1.0..=60.0).contains(speed)).ok_or_else(wrong)
}

/// A number with `s`, `m`, `h` or `d` behind it.
pub(crate) fn long(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no time: a number with s, m, h or d, such as 30m");
    let seconds_of = |unit: char| {
        Some(match unit {
            's' => 1.0,
            'm' => 60.0,
            'h' => 3600.0,
            'd' => 86_400.0,
            _ => return None,
        })
    };
    let unit = text.chars().last().and_then(seconds_of).ok_or_else(wrong)?;
    let number: f64 = text[..text.len() - 1].trim().parse().map_err(|_| wrong())?;
    let seconds = number * unit;
    // A year is as good as for ever.
    if !(1.0..=366.0 * 86_400.0).contains(&seconds) {
        return Err(format!("'{text}' is not between a second and a year"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_of_false_alarms_is_a_rate_that_can_be_kept() {
        assert_eq!(budget("0.05"), Ok(0.05));
        for wrong in ["", "0", "-1", "11", "NaN", "inf", "few"] {
            assert!(budget(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_has_a_unit_and_bounds() {
        assert_eq!(long("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(long("1.5h"), Ok(Duration::from_secs(5400)));
        for wrong in ["", "30", "m", "-5m", "0.1s", "400d", "NaNs", "30µ"] {
            assert!(long(wrong).is_err(), "{wrong}");
        }
    }
}
