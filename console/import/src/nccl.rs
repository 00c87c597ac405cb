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
    /// Bandwidths printed as 0.00, of messages too small for two decimals; they are no measurements.
    pub rounded_to_zero: usize,
}

/// Columns of a table line, counted from its end: fields in front of them may be empty.
#[derive(Clone, Copy)]
struct Columns {
    /// Out of place, then in place, each `time algbw busbw`.
    from_end: [[usize; 3]; 2],
}

const NAMES: [&str; 3] = ["time", "algbw", "busbw"];

/// Reads the output of `operation` (such as `allreduce`, which the output does not name) on `node`. Output of
/// `mpirun -tag-output` is read too; lines of other kinds are passed over.
///
/// # Errors
/// With the line: a table line that is cut or holds no numbers, no table at all, or more than `limits` allow.
pub fn read(input: impl BufRead, node: &str, operation: &str, limits: Limits) -> Result<Output, Bad> {
    let mut lines = Lines::of(input, limits);
    let mut gather = Gather::new(node, limits, component::nccl);
    let mut out = Output { series: Vec::new(), out_of_bounds: None, rounded_to_zero: 0 };
    let mut columns = None;
    let mut last = 0;
    while let Some((line, bytes)) = lines.next()? {
        last = line;
        let text = String::from_utf8_lossy(bytes);
        let words: Vec<&str> = untagged(&text).split_whitespace().collect();
        if let Some(count) = bounds(&words) {
            out.out_of_bounds = Some(out.out_of_bounds.unwrap_or(0) + count);
        } else if let Some(found) = header(&words) {
            columns = Some(found);
        } else if let (Some(columns), Some(size)) = (columns, words.first().and_then(|w| w.parse::<u64>().ok())) {
            // SuperBench leaves messages of no bytes out as well.
            if size > 0 {
                let row = Row { operation, size, line };
                out.rounded_to_zero += row.take(&words, columns, &mut gather)?;
            }
        }
    }
    out.series = gather.done();
    if out.series.is_empty() {
        return Err(Bad::format(last, "no table of sizes and bandwidths"));
    }
    Ok(out)
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
                gather.add(MetricId::new("nccl-bw", metric, "nccl-tests"), meaning, value, self.line)?;
            }
        }
        Ok(zeros)
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
    Some(Columns { from_end: [nth(0)?, nth(1)?] })
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
