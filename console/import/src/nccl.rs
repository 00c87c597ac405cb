//! What nccl-tests and rccl-tests print: one line per message size, out of place and in place.

use std::io::BufRead;

use muster_wire::MetricId;

use crate::lines::Lines;
use crate::meaning::{GB_PER_S, MICROS};
use crate::series::Gather;
use crate::{Bad, Limits, Series, component};

/// What was printed.
#[derive(Debug)]
pub struct Output {
    /// `nccl-bw/{operation}_{bytes}_{busbw|algbw|time}@nccl-tests`, in place with `_inplace` before the last word.
    pub series: Vec<Series>,
    /// Values the test found wrong; `None` when the output ends before it says.
    pub out_of_bounds: Option<u64>,
    /// Values that lines of the table count as wrong, and the first message size with any.
    pub wrong: Option<(u64, u64)>,
    /// Why this is not all of the output: a test prints a summary at its end, and one that died does not.
    pub unfinished: Option<String>,
    /// Bandwidths printed as 0.00, of messages too small for two decimals; they are no measurements.
    pub rounded_to_zero: usize,
}

/// Columns of a table line, counted from its end: fields in front of them may be empty.
#[derive(Clone, Copy)]
struct Columns {
    /// Out of place, then in place, each `time algbw busbw`.
    from_end: [[usize; 3]; 2],
    /// Where `#wrong` stands; older versions print the largest difference in its place, which is no count.
    wrong: [Option<usize>; 2],
}

/// Benchmark of all metrics.
pub(crate) const BENCHMARK: &str = "nccl-bw";
const NAMES: [&str; 3] = ["time", "algbw", "busbw"];

/// Reads the output of `operation` (such as `allreduce`, which the output does not name) on `node`. Output of
/// `mpirun -tag-output` is read too, and several tests after another; lines of other kinds are passed over.
///
/// # Errors
/// With the line: a table line that is cut or holds no numbers, no table at all, or more than `limits` allow.
pub fn read(input: impl BufRead, node: &str, operation: &str, limits: Limits) -> Result<Output, Bad> {
    let mut lines = Lines::of(input, limits);
    let mut gather = Gather::new(node, limits, component::nccl);
    let mut out = Output { series: Vec::new(), out_of_bounds: None, wrong: None, unfinished: None, rounded_to_zero: 0 };
    let mut columns = None;
    // Message size of the last line of a table whose summary has not come yet; 0 behind its header.
    let mut open: Option<u64> = None;
    let mut last = 0;
    while let Some((line, bytes)) = lines.next()? {
        last = line;
        let text = String::from_utf8_lossy(bytes);
        let words: Vec<&str> = untagged(&text).split_whitespace().collect();
        if is_summary(&words) {
            open = None;
            let count = bounds(&words).map(|count| out.out_of_bounds.unwrap_or(0) + count);
            out.out_of_bounds = count.or(out.out_of_bounds);
        } else if let Some(found) = header(&words) {
            columns = Some(found);
            out.unfinished = out.unfinished.or_else(|| open.map(stopped));
            open = Some(0);
        } else if let (Some(columns), Some(size)) = (columns, words.first().and_then(|w| w.parse::<u64>().ok())) {
            open = Some(size);
            // SuperBench leaves messages of no bytes out as well.
            if size > 0 {
                let row = Row { operation, size, line };
                row.wrong(&words, columns, &mut out)?;
                out.rounded_to_zero += row.take(&words, columns, &mut gather)?;
            }
        }
    }
    out.unfinished = out.unfinished.or_else(|| open.map(stopped));
    out.series = gather.done();
    if out.series.is_empty() && out.unfinished.is_none() {
        return Err(Bad::format(last, "no table of sizes and bandwidths"));
    }
    Ok(out)
}

/// Why the output of a test is not whole that ends after the line of `size` bytes.
fn stopped(size: u64) -> String {
    match size {
        0 => "the test did not end: its output stops behind the header".to_owned(),
        size => format!("the test did not end: its output stops after {size} bytes, without a summary"),
    }
}

struct Row<'a> {
    operation: &'a str,
    size: u64,
    line: usize,
}

impl Row<'_> {
    fn take(&self, words: &[&str], columns: Columns, gather: &mut Gather<'_>) -> Result<usize, Bad> {
        let mut zeros = 0;
        for (place, ends) in ["", "inplace_"].into_iter().zip(columns.from_end) {
            for (name, end) in NAMES.into_iter().zip(ends) {
                let word = words.len().checked_sub(end).and_then(|i| words.get(i)).copied().unwrap_or_default();
                // Reduce to one root is not measured in place and prints N/A.
                if word == "N/A" {
                    continue;
                }
                let value: f64 =
                    word.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0).ok_or_else(|| {
                        Bad::format(self.line, format!("{name} is '{}'", muster_wire::clean(word, 40)))
                    })?;
                let meaning = if name == "time" { MICROS } else { GB_PER_S };
                if value == 0.0 && name != "time" {
                    zeros += 1;
                    continue;
                }
                let metric = format!("{}_{}_{place}{name}", self.operation, self.size);
                gather.add(MetricId::new(BENCHMARK, metric, "nccl-tests"), meaning, value, self.line)?;
            }
        }
        Ok(zeros)
    }

    /// Counts what the line says is wrong. Tests that were told not to look (`-c 0`) print N/A.
    fn wrong(&self, words: &[&str], columns: Columns, out: &mut Output) -> Result<(), Bad> {
        for end in columns.wrong.into_iter().flatten() {
            let word = words.len().checked_sub(end).and_then(|i| words.get(i)).copied().unwrap_or_default();
            if word == "N/A" {
                continue;
            }
            let count = word.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0);
            let count =
                count.ok_or_else(|| Bad::format(self.line, format!("#wrong is '{}'", muster_wire::clean(word, 40))))?;
            if count > 0.0 {
                let (before, first) = out.wrong.unwrap_or((0, self.size));
                out.wrong = Some((before.saturating_add(count.ceil() as u64), first));
            }
        }
        Ok(())
    }
}

/// The header line gives the columns: `# size count type redop time algbw busbw error time algbw busbw error`.
fn header(words: &[&str]) -> Option<Columns> {
    let (&first, words) = words.split_first()?;
    if first != "#" || words.first() != Some(&"size") {
        return None;
    }
    let at = |name: &str| -> Vec<usize> {
        let found = words.iter().enumerate().filter(|(_, w)| **w == name);
        found.map(|(i, _)| words.len() - i).collect()
    };
    let all = NAMES.map(at);
    let nth = |k: usize| Some([*all[0].get(k)?, *all[1].get(k)?, *all[2].get(k)?]);
    let wrong = at("#wrong");
    Some(Columns { from_end: [nth(0)?, nth(1)?], wrong: [wrong.first().copied(), wrong.get(1).copied()] })
}

/// Whether a line is one of those that a test prints when it has come to its end.
fn is_summary(words: &[&str]) -> bool {
    let ends: [&[&str]; 3] = [
        &["#", "Out", "of", "bounds", "values"],
        &["#", "Avg", "bus", "bandwidth"],
        &["#", "Collective", "test", "concluded:"],
    ];
    ends.into_iter().any(|end| words.starts_with(end))
}

/// `# Out of bounds values : 0 OK`
fn bounds(words: &[&str]) -> Option<u64> {
    if words.first() == Some(&"#") && words.get(1..5) == Some(&["Out", "of", "bounds", "values"]) {
        return words.get(6)?.parse().ok();
    }
    None
}

/// Without mpirun's `[1,0]<stdout>:`.
fn untagged(line: &str) -> &str {
    match line.split_once("<stdout>:") {
        Some((tag, rest)) if tag.starts_with('[') => rest,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
# nThread 1 nGpus 8 minBytes 8 maxBytes 8388608
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
host:3442:3442 [0] NCCL INFO Launch mode Parallel
           0             0   float     sum    35.20    0.00    0.00    N/A    34.05    0.00    0.00    N/A
           8             2   float     sum    34.66    0.00    0.00    N/A    34.84    0.00    0.00    N/A
[1,0]<stdout>:     8388608       2097152   float     sum    162.0   51.79   90.63    N/A    160.0   52.44   91.77    N/A
# Out of bounds values : 0 OK
";

    #[test]
    fn a_table_is_read_by_its_header() {
        let out = read(TEXT.as_bytes(), "n", "allreduce", Limits::default()).unwrap();
        assert_eq!((out.out_of_bounds, out.rounded_to_zero), (Some(0), 4));
        let of = |name: &str| {
            let wanted = MetricId::new("nccl-bw", name, "nccl-tests");
            out.series.iter().find(|s| s.metric == wanted).unwrap().values.clone()
        };
        assert_eq!(of("allreduce_8388608_busbw"), [90.63 * 1e9]);
        assert_eq!(of("allreduce_8388608_inplace_algbw"), [52.44 * 1e9]);
        assert_eq!(of("allreduce_8_time"), [34.66 * 1e3]);
    }

    #[test]
    fn what_is_cut_is_said() {
        let cut: String = TEXT.lines().take(7).map(|l| format!("{l}\n")).collect();
        assert_eq!(read(cut.as_bytes(), "n", "allreduce", Limits::default()).unwrap().out_of_bounds, None);
        let broken = TEXT.replace("   90.63    N/A    160.0   52.44", "   90.63    N/A");
        let error = read(broken.as_bytes(), "n", "allreduce", Limits::default()).unwrap_err();
        assert!(error.to_string().starts_with("line 8"), "{error}");
        assert!(read(&b"nothing here\n"[..], "n", "allreduce", Limits::default()).is_err());
    }

    const CHECKED: &str = "\
#       size         count    type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144   float     sum      -1    65.00   16.13   28.23      0    65.00   16.13   28.23      0
     8388608       2097152   float     sum      -1    162.0   51.79   90.63      0    160.0   52.44   91.77      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 59.7
";

    fn checked(text: &str) -> Output {
        read(text.as_bytes(), "n", "allreduce", Limits::default()).unwrap()
    }

    #[test]
    fn an_output_without_a_summary_is_one_of_a_test_that_did_not_end() {
        assert_eq!((checked(CHECKED).unfinished, checked(TEXT).unfinished), (None, None));
        let lines = |count: usize| CHECKED.lines().take(count).map(|l| format!("{l}\n")).collect::<String>();
        let stopped = |text: &str| checked(text).unfinished.unwrap();
        assert!(stopped(&lines(3)).contains("stops after 1048576 bytes"), "{}", stopped(&lines(3)));
        assert_eq!(checked(&lines(3)).series.len(), 6, "what it measured is kept");
        assert!(stopped(&lines(2)).contains("behind the header"));
        // A test that died before another one came to its end did not end.
        assert!(stopped(&format!("{}{CHECKED}", lines(3))).contains("1048576"));
        let average = CHECKED.replace("# Out of bounds values : 0 OK\n", "");
        assert_eq!((checked(&average).unfinished, checked(&average).out_of_bounds), (None, None));
    }

    #[test]
    fn wrong_values_are_counted_line_by_line_and_what_was_not_checked_is_no_error() {
        assert_eq!(checked(CHECKED).wrong, None);
        let wrong = CHECKED.replace("90.63      0", "90.63      7").replace("91.77      0", "91.77  1e+03");
        assert_eq!(checked(&wrong).wrong, Some((1007, 8_388_608)));
        let unchecked = CHECKED.replace("28.23      0", "28.23    N/A").replace("90.63      0", "90.63    N/A");
        assert_eq!(checked(&unchecked).wrong, None);
        // The largest difference of an older version is no count.
        assert_eq!(checked(&wrong.replace("#wrong", "error")).wrong, None);
    }

    proptest! {
        #[test]
        fn no_output_is_too_strange(cut in 0usize..900, flip in 0usize..900, byte in any::<u8>()) {
            let mut bytes = TEXT.as_bytes()[..cut.min(TEXT.len())].to_vec();
            if let Some(b) = bytes.get_mut(flip) {
                *b = byte;
            }
            let _ = read(&bytes[..], "n", "allreduce", Limits::default());
        }
    }
}
