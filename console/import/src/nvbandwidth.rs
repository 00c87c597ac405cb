//! What nvbandwidth prints: a matrix per test, and its sum.

use std::io::BufRead;

use muster_wire::MetricId;

use crate::lines::Lines;
use crate::meaning::{GB_PER_S, MICROS, NANOS};
use crate::series::Gather;
use crate::{Bad, Limits, Meaning, Series, component};

/// What was printed.
#[derive(Debug)]
pub struct Output {
    /// `nvbandwidth/{test}_{cpu|gpu}{row}_{cpu|gpu}{column}_{bw|lat}@nvbandwidth`, and `{test}_sum_{bw|lat}`. The sum
    /// of latencies is left out: it measures nothing.
    pub series: Vec<Series>,
    /// Tests that were waived: they cannot run on this machine.
    pub waived: usize,
    /// Lines in which the tool reports an error.
    pub errors: Vec<String>,
}

/// The matrix being read.
#[derive(Default)]
struct Matrix {
    test: String,
    /// Unit and the word for it, from the title.
    kind: Option<(Meaning, &'static str)>,
    /// What rows and columns are: `cpu`, `gpu` or nothing.
    axes: [String; 2],
    columns: Vec<String>,
}

/// Reads nvbandwidth's text output (0.4 to 0.8), units as each table's title states them.
///
/// # Errors
/// With the line: a table line with something that is no number, no table at all, or more than `limits` allow.
pub fn read(input: impl BufRead, node: &str, limits: Limits) -> Result<Output, Bad> {
    let mut lines = Lines::of(input, limits);
    let mut gather = Gather::new(node, limits, |metric| component::nvbandwidth(metric, &[]));
    let mut out = Output { series: Vec::new(), waived: 0, errors: Vec::new() };
    let mut matrix = Matrix::default();
    let mut last = 0;
    while let Some((line, bytes)) = lines.next()? {
        last = line;
        let text = muster_wire::clean(&String::from_utf8_lossy(bytes), bytes.len());
        let text = text.trim();
        if let Some(test) = text.strip_prefix("Running ") {
            matrix = Matrix { test: test.trim_end_matches('.').to_ascii_lowercase(), ..Matrix::default() };
        } else if text.starts_with("Waived") {
            out.waived += 1;
        } else if text.starts_with("ERROR") || text.starts_with("[ERROR") {
            out.errors.push(text.to_owned());
        } else if !matrix.test.is_empty() {
            matrix.line(text, &mut gather, line)?;
        }
    }
    out.series = gather.done();
    if out.series.is_empty() && out.waived == 0 && out.errors.is_empty() {
        return Err(Bad::format(last, "no test of nvbandwidth"));
    }
    Ok(out)
}

impl Matrix {
    fn line(&mut self, text: &str, gather: &mut Gather<'_>, line: usize) -> Result<(), Bad> {
        if text.starts_with("memcpy") || text.starts_with("memory latency") {
            self.title(text);
            return Ok(());
        }
        let Some((meaning, word)) = self.kind else { return Ok(()) };
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.first() == Some(&"SUM") {
            if let (Some(value), "bw") = (words.get(2), word) {
                self.add(gather, (&format!("sum_{word}"), &[]), (meaning, number(value, line)?), line)?;
            }
            self.kind = None;
        } else if text.starts_with(|c: char| c.is_ascii_digit()) {
            if self.columns.is_empty() {
                self.columns = words.into_iter().map(str::to_owned).collect();
                return Ok(());
            }
            self.row(&words, gather, line)?;
        }
        Ok(())
    }

    fn row(&mut self, words: &[&str], gather: &mut Gather<'_>, line: usize) -> Result<(), Bad> {
        let Some((meaning, word)) = self.kind else { return Ok(()) };
        let [row, column] = &self.axes;
        for (index, text) in self.columns.iter().zip(words.iter().skip(1)) {
            // A device with itself.
            if *text == "N/A" {
                continue;
            }
            let name = format!("{row}{}_{column}{index}_{word}", words[0]);
            let ends = [(row, words[0]), (column, index.as_str())].into_iter();
            let gpus: Vec<u32> = ends.filter(|(axis, _)| *axis == "gpu").filter_map(|(_, n)| n.parse().ok()).collect();
            self.add(gather, (&name, &gpus), (meaning, number(text, line)?), line)?;
        }
        Ok(())
    }

    /// Adds one value of so many GPUs.
    fn add(
        &self,
        gather: &mut Gather<'_>,
        (name, gpus): (&str, &[u32]),
        (meaning, value): (Meaning, f64),
        line: usize,
    ) -> Result<(), Bad> {
        let metric = MetricId::new("nvbandwidth", format!("{}_{name}", self.test), "nvbandwidth");
        let declared = component::nvbandwidth(&metric, gpus);
        gather.add_declared((metric, declared), meaning, value, line)
    }

    /// `memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)`
    fn title(&mut self, text: &str) {
        self.kind = match text.rsplit_once('(').map(|(_, unit)| unit.trim_end_matches(')')) {
            Some("GB/s") => Some((GB_PER_S, "bw")),
            Some("ns") => Some((NANOS, "lat")),
            Some("us") => Some((MICROS, "lat")),
            _ => None,
        };
        self.axes = ["(row)", "(column)"].map(|axis| {
            let before = text.split_once(axis).map_or("", |(before, _)| before);
            before.rsplit(' ').next().unwrap_or("").to_ascii_lowercase()
        });
        self.columns.clear();
    }
}

fn number(text: &str, line: usize) -> Result<f64, Bad> {
    let value = text.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0);
    value.ok_or_else(|| Bad::format(line, format!("'{}' is not a number", muster_wire::clean(text, 40))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::{Direction, Unit};
    use proptest::prelude::*;

    const TEXT: &str = "\
nvbandwidth Version: v0.6
Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0    369.36    269.33

SUM host_to_device_memcpy_ce 638.69

Waived:
Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    300.00
 1    301.00       N/A

SUM device_to_device_memcpy_read_ce 601.00

Running host_device_latency_sm.
memory latency SM CPU(row) <-> GPU(column) (ns)
           0
 0    772.58

SUM host_device_latency_sm 772.58
";

    #[test]
    fn matrices_sums_and_waivers_are_read() {
        let out = read(TEXT.as_bytes(), "n", Limits::default()).unwrap();
        let names: Vec<&str> = out.series.iter().map(|s| s.metric.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "host_to_device_memcpy_ce_cpu0_gpu0_bw",
                "host_to_device_memcpy_ce_cpu0_gpu1_bw",
                "host_to_device_memcpy_ce_sum_bw",
                "device_to_device_memcpy_read_ce_gpu0_gpu1_bw",
                "device_to_device_memcpy_read_ce_gpu1_gpu0_bw",
                "device_to_device_memcpy_read_ce_sum_bw",
                "host_device_latency_sm_cpu0_gpu0_lat",
            ]
        );
        assert_eq!((out.series[1].values[0], out.waived), (269.33 * 1e9, 1));
        let latency = &out.series[6];
        assert_eq!(
            (latency.unit, latency.direction, latency.values[0]),
            (Unit::Nanos, Direction::LowerIsBetter, 772.58)
        );
    }

    #[test]
    fn what_is_no_number_is_refused_with_its_line() {
        let error = read(TEXT.replace("269.33", "fast").as_bytes(), "n", Limits::default()).unwrap_err();
        assert!(error.to_string().starts_with("line 5"), "{error}");
        assert!(read(&b"hello\n"[..], "n", Limits::default()).is_err());
    }

    proptest! {
        #[test]
        fn no_output_is_too_strange(cut in 0usize..800, flip in 0usize..800, byte in any::<u8>()) {
            let mut bytes = TEXT.as_bytes()[..cut.min(TEXT.len())].to_vec();
            if let Some(b) = bytes.get_mut(flip) {
                *b = byte;
            }
            let _ = read(&bytes[..], "n", Limits::default());
        }
    }
}
