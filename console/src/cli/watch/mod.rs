//! `muster watch`: which machine of a job is unlike its peers, in which metric, since when.

mod keep;
mod live;
mod openmetrics;
mod past;
mod recorded;
mod tape;
mod tell;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use muster_analysis::watch::Settings;

use crate::config::Config;
use crate::exit::Ended;
use crate::options::Pick;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster watch -w 'n[001-128]'                    watch nodes until ctrl-c; an alert is told when it comes up
  muster watch --job 4711 --log                   the nodes of a Slurm job; alerts go into the incident log, too
  muster watch -w @hall7 --for 30m --record --json
  muster watch --from telemetry.csv.gz
  muster watch --from recording/ --json           all .csv and .csv.gz files of a folder are one recording
  muster watch --from telemetry.csv -w 'n[01-16]' -x n09 --metrics 'gpu_*,net_tx_gbs'
  muster watch -w @hall7 --false-alarms 0.01      one healthy machine of a hundred named in a day, told later for it

Every node is compared with the others, and with how it usually compares. At least 4 nodes and 2 metrics are needed, and about \
3 minutes to learn what is usual; a machine is named after 80 to 130 seconds of being unlike its peers. Live, a probe on every \
node reads /proc and /sys once a second; nothing else is done there, and nothing is left when the console goes away. A \
recording is CSV with the columns time_s,node,metric,value (epoch seconds, rows in any order, gaps and NaN allowed), and is \
gone through as if the job were running: alerted_s is when an alert would have been given. A group that differs together is \
called by a label of the inventory (leaf, rack, rail) that its nodes share. --record keeps what nodes told in the database, at most 10 GB and 30 days of it, and says the file for --from.

Exit codes: 0 nothing odd, 2 at least one alert, 3 undecided (what is missing is said)")]
pub struct Options {
    /// Recordings: CSV, CSV.gz or what --record kept, or a folder of such files. Without it, nodes are watched live.
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
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
    /// JSON on standard output, at the end.
    #[arg(long)]
    pub json: bool,
}

impl Options {
    /// What the detector goes by.
    fn settings(&self) -> Settings {
        Settings { false_alarms: self.false_alarms, ..Settings::default() }
    }
}

/// From files, or from nodes.
pub async fn run(options: &Options, config: &Config) -> Ended {
    if options.from.is_empty() { live::run(options, config).await } else { recorded::run(options, config) }
}

/// False alarms per machine-day.
fn budget(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1e-6..=10.0).contains(number));
    number.ok_or_else(|| format!("'{text}' is no number of false alarms per machine and day between 0.000001 and 10"))
}

/// A number with `s`, `m`, `h` or `d` behind it.
fn long(text: &str) -> Result<Duration, String> {
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
