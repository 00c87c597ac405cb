//! What perftest's `ib_write_bw`, `ib_read_lat` and their like print: one line per message size.

use std::collections::HashSet;
use std::io::BufRead;

use muster_wire::MetricId;

use crate::lines::Lines;
use crate::meaning::{GBIT_PER_S, MIB_PER_S, MICROS};
use crate::series::Gather;
use crate::{Bad, Limits, Meaning, Series, component};

/// Reads one output, or a server's and a client's in one: lines that are equal to the last digit are one
/// measurement. Metrics are `ib-{write|read|send|atomic}-{bw|lat}/{bytes}_{column}@perftest`, columns `avg` and
/// `peak` for bandwidth; `min`, `max`, `typical`, `avg`, `p99` and `p99.9` for latency. Both ways at once is a benchmark
/// of its own, `ib-write-bw-bidirectional`. `MB/sec` are 2^20 bytes, as perftest counts them.
///
/// # Errors
/// With the line: a table line that is cut or holds no numbers, no table at all, or more than `limits` allow.
pub fn read(input: impl BufRead, node: &str, limits: Limits) -> Result<Vec<Series>, Bad> {
    let mut lines = Lines::of(input, limits);
    let mut gather = Gather::new(node, limits, component::perftest);
    let mut test = None;
    let mut columns: Vec<Column> = Vec::new();
    let mut seen = HashSet::new();
    let mut last = 0;
    while let Some((line, bytes)) = lines.next()? {
        last = line;
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        if let Some(name) = named(text) {
            test = Some(name);
        } else if text.starts_with("#bytes") {
            columns = header(text);
        } else if text.starts_with(|c: char| c.is_ascii_digit()) && !columns.is_empty() {
            let words: Vec<&str> = text.split_whitespace().collect();
            if seen.insert(words.join(" ")) {
                let benchmark = test.as_deref().unwrap_or("ib-unnamed");
                take(&words, benchmark, &columns, (&mut gather, line))?;
            }
        }
    }
    let series = gather.done();
    if series.is_empty() { Err(Bad::format(last, "no table of sizes")) } else { Ok(series) }
}

/// perftest's word for traffic in both directions at once, which is nearly twice as much.
const BOTH_WAYS: &str = "Bidirectional";

/// A column after `#bytes`; `None` for one that is not kept.
type Column = Option<(&'static str, Meaning)>;

fn take(
    words: &[&str],
    benchmark: &str,
    columns: &[Column],
    (gather, line): (&mut Gather<'_>, usize),
) -> Result<(), Bad> {
    let size = words.first().and_then(|w| w.parse::<u64>().ok()).ok_or_else(|| Bad::format(line, "no message size"))?;
    for (at, column) in columns.iter().enumerate() {
        let Some((name, meaning)) = column else { continue };
        let word = words.get(at + 1).copied().unwrap_or_default();
        let value = word.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0);
        let value = value.ok_or_else(|| Bad::format(line, format!("{name} is '{}'", muster_wire::clean(word, 40))))?;
        // perftest prints a peak of zero when it was not asked to measure one.
        if *name == "peak" && value == 0.0 {
            continue;
        }
        gather.add(MetricId::new(benchmark, format!("{size}_{name}"), "perftest"), *meaning, value, line)?;
    }
    Ok(())
}

/// `RDMA_Write BW Test` is `ib-write-bw`, `RDMA_Write Bidirectional BW Test` is `ib-write-bw-bidirectional`.
fn named(text: &str) -> Option<String> {
    let name = text.strip_suffix(" Test")?;
    let (operation, kind) = name.rsplit_once(' ')?;
    let kind = match kind {
        "BW" => "bw",
        "Latency" => "lat",
        _ => return None,
    };
    let both = operation.split(['_', ' ']).any(|w| w == BOTH_WAYS);
    let operation = operation.rsplit(['_', ' ']).find(|w| !matches!(*w, BOTH_WAYS | "Post" | "List"))?;
    let ways = if both { "-bidirectional" } else { "" };
    Some(format!("ib-{}-{kind}{ways}", muster_wire::clean(operation, 40).to_ascii_lowercase()))
}

/// Columns by name; their units are in brackets, and names hold spaces.
fn header(text: &str) -> Vec<Column> {
    let rest = text.trim_start_matches("#bytes").trim();
    let (iterations, rest) = match rest.strip_prefix("#iterations") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let mut columns = if iterations { vec![None] } else { Vec::new() };
    for column in rest.split_inclusive(']').filter(|c| c.ends_with(']')) {
        let Some((name, unit)) = column.trim().trim_end_matches(']').rsplit_once('[') else { continue };
        let meaning = match unit {
            "MB/sec" => MIB_PER_S,
            "Gb/sec" => GBIT_PER_S,
            "usec" => MICROS,
            _ => Meaning::Unknown,
        };
        let name = match name.trim() {
            "BW average" => Some("avg"),
            "BW peak" => Some("peak"),
            "t_min" => Some("min"),
            "t_max" => Some("max"),
            "t_typical" => Some("typical"),
            "t_avg" => Some("avg"),
            "99% percentile" => Some("p99"),
            "99.9% percentile" => Some("p99.9"),
            _ => None,
        };
        columns.push(name.map(|name| (name, meaning)).filter(|_| meaning != Meaning::Unknown));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{Direction, Unit};
    use proptest::prelude::*;

    const BW: &str = "\
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : ib0
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 8388608    20000            24056.74            24050.00\t\t   0.003007
 8388608    20000            24056.74            24050.00\t\t   0.003007
";
    const LAT: &str = "\
                    Send Latency Test
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 2       1000          1.50           9.37         1.55                1.60            0.10            2.00                    9.37
";

    fn value(series: &[Series], metric: &str) -> (Vec<f64>, Unit, Direction) {
        let found = series.iter().find(|s| s.metric.path() == metric).unwrap();
        (found.values.clone(), found.unit, found.direction)
    }

    #[test]
    fn both_kinds_of_tables_are_read() {
        let bw = read(BW.as_bytes(), "n", Limits::default()).unwrap();
        let (values, unit, direction) = value(&bw, "ib-write-bw/8388608_avg");
        assert_eq!(
            (values, unit, direction),
            (vec![24050.0 * 1_048_576.0], Unit::BytesPerSec, Direction::HigherIsBetter)
        );
        let lat = read(LAT.as_bytes(), "n", Limits::default()).unwrap();
        assert_eq!(value(&lat, "ib-send-lat/2_p99").0, [2000.0]);
        assert_eq!(value(&lat, "ib-send-lat/2_avg").2, Direction::LowerIsBetter);
        let gbit = BW.replace("MB/sec", "Gb/sec");
        assert_eq!(
            value(&read(gbit.as_bytes(), "n", Limits::default()).unwrap(), "ib-write-bw/8388608_avg").0,
            [24050.0 * 1.25e8]
        );
    }

    #[test]
    fn both_ways_at_once_is_another_benchmark_than_one_way() {
        let both = BW.replace("Write BW", "Write Bidirectional BW").replace("24050.00", "46000.00");
        let series = read(format!("{BW}{both}").as_bytes(), "n", Limits::default()).unwrap();
        assert_eq!(value(&series, "ib-write-bw/8388608_avg").0, [24050.0 * 1_048_576.0]);
        assert_eq!(value(&series, "ib-write-bw-bidirectional/8388608_avg").0, [46000.0 * 1_048_576.0]);
        assert_eq!(named("Send Bidirectional BW Test").unwrap(), "ib-send-bw-bidirectional");
    }

    #[test]
    fn a_cut_line_is_refused() {
        let cut = BW.replace("            24050.00\t\t   0.003007", "");
        assert!(read(cut.as_bytes(), "n", Limits::default()).unwrap_err().to_string().starts_with("line 4"));
        assert!(read(&b"Couldn't connect\n"[..], "n", Limits::default()).is_err());
    }

    proptest! {
        #[test]
        fn no_output_is_too_strange(cut in 0usize..600, flip in 0usize..600, byte in any::<u8>()) {
            for text in [BW, LAT] {
                let mut bytes = text.as_bytes()[..cut.min(text.len())].to_vec();
                if let Some(b) = bytes.get_mut(flip) {
                    *b = byte;
                }
                let _ = read(&bytes[..], "n", Limits::default());
            }
        }
    }
}
