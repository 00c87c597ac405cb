//! `muster watch`: which machine of a job is unlike its peers, in which metric, since when.

mod input;
mod list;
mod live;
mod recorded;
mod tape;
mod tell;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::config::Config;
use crate::exit::Ended;
use crate::options::Pick;

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster watch -w 'n[001-128]'                    watch nodes until ctrl-c; an alert is told when it comes up
  muster watch -w @hall7 --for 30m --record --json
  muster watch --from telemetry.csv.gz
  muster watch --from recording/ --json           all recordings in a folder are one
  muster watch --from metrics.parquet
  muster watch --from dcgm.json node.json         what Prometheus' query_range answered
  muster watch --list                             what --record kept; --from takes the id
  muster watch --from telemetry.csv -w 'n[01-16]' -x n09 --metrics 'gpu_*,net_tx_gbs'

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
that cannot go on (disk full) is said, and changes nothing of that")]
pub struct Options {
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
    /// List what --record kept, and watch nothing.
    #[arg(long, conflicts_with_all = ["from", "include", "exclude", "metrics", "long", "record"])]
    pub list: bool,
    /// JSON on standard output, at the end.
    #[arg(long)]
    pub json: bool,
}

/// From files, or from nodes.
pub async fn run(options: &Options, config: &Config) -> Ended {
    if options.list {
        return list::run(options.json, config);
    }
    if options.from.is_empty() { live::run(options, config).await } else { recorded::run(options, config) }
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
    fn a_time_has_a_unit_and_bounds() {
        assert_eq!(long("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(long("1.5h"), Ok(Duration::from_secs(5400)));
        for wrong in ["", "30", "m", "-5m", "0.1s", "400d", "NaNs", "30µ"] {
            assert!(long(wrong).is_err(), "{wrong}");
        }
    }
}
