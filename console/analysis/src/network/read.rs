//! What does a file of `src,dst,metric,value[,up]` rows say?

use std::collections::BTreeMap;

use muster_wire::Direction;

use super::rows::{fields, rows};
use super::{Malformed, Matrix};

/// Words in a metric's name that mean less is better.
const LOWER: [&str; 9] = ["lat", "rtt", "retrans", "loss", "lost", "drop", "error", "time", "jitter"];

/// Which way a metric is better, by its name: latencies, losses and times where less is, rates otherwise.
#[must_use]
pub fn direction_of(metric: &str) -> Direction {
    let name = metric.to_ascii_lowercase();
    if LOWER.iter().any(|word| name.contains(word)) { Direction::LowerIsBetter } else { Direction::HigherIsBetter }
}

/// Reads one matrix per metric, in the order of their names. Rows of one pair that follow each other are one visit
/// with several values; a value that is empty, `failed`, `timeout`, `nan` or negative is a failed measurement. The header is
/// optional and may hold the columns in any order. `direction` says which way a metric is better ([`direction_of`]).
///
/// # Errors
/// Names the line: a missing column, a name that is empty, a value that is no number, no row at all.
pub fn read_matrix(text: &str, direction: impl Fn(&str) -> Direction) -> Result<BTreeMap<String, Matrix>, Malformed> {
    let mut out: BTreeMap<String, Matrix> = BTreeMap::new();
    let mut columns = Columns::default();
    let mut first = true;
    let mut last: Option<[String; 4]> = None;
    for (line, row) in rows(text) {
        let at_line = |what: String| Malformed::new(line, what);
        let fields = fields(row).map_err(at_line)?;
        let field = |column: Option<usize>| column.and_then(|c| fields.get(c)).map_or("", AsRef::as_ref);
        if std::mem::take(&mut first) && fields.iter().any(|f| f.eq_ignore_ascii_case("src")) {
            columns = Columns::named(&fields).map_err(at_line)?;
            continue;
        }
        let [src, dst, metric, up] = [columns.src, columns.dst, columns.metric, columns.up].map(field);
        if src.is_empty() || dst.is_empty() || metric.is_empty() || fields.len() <= columns.value {
            return Err(at_line("expected src,dst,metric,value[,up]".to_owned()));
        }
        if src == dst {
            return Err(at_line(format!("{src} is paired with itself")));
        }
        let value = number(field(Some(columns.value))).map_err(at_line)?;
        let matrix = out.entry(metric.to_owned()).or_insert_with(|| Matrix::new(metric, direction(metric)));
        let known = last.as_ref().is_some_and(|l| [src, dst, metric, up].iter().zip(l).all(|(a, b)| a == b));
        if known {
            matrix.extend_last(value);
        } else {
            matrix.push_named(src, dst, &[value], Some(up).filter(|u| !u.is_empty()));
            last = Some([src, dst, metric, up].map(str::to_owned));
        }
    }
    if out.is_empty() {
        return Err(Malformed::new(text.lines().count().max(1), "no src,dst,metric,value row in the whole text"));
    }
    Ok(out)
}

#[derive(Clone, Copy)]
struct Columns {
    src: Option<usize>,
    dst: Option<usize>,
    metric: Option<usize>,
    up: Option<usize>,
    value: usize,
}

impl Default for Columns {
    fn default() -> Self {
        Self { src: Some(0), dst: Some(1), metric: Some(2), value: 3, up: Some(4) }
    }
}

impl Columns {
    fn named<S: AsRef<str>>(header: &[S]) -> Result<Self, String> {
        let find = |name: &str| header.iter().position(|h| h.as_ref().eq_ignore_ascii_case(name));
        let need = |name: &str| find(name).ok_or_else(|| format!("the header has no column {name}"));
        Ok(Self {
            src: Some(need("src")?),
            dst: Some(need("dst")?),
            metric: Some(need("metric")?),
            value: need("value")?,
            up: find("up"),
        })
    }
}

/// NaN for a failed measurement.
fn number(text: &str) -> Result<f64, String> {
    if ["", "failed", "timeout", "nan"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Ok(f64::NAN);
    }
    text.parse().map_err(|_| format!("{text} is no value"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_of_one_pair_are_its_sample_and_missing_values_are_failures() {
        let text = "src,dst,metric,value,up\na,b,bw,5,l1-s1\na,b,bw,6,l1-s1\nb,a,bw,failed,\na,b,latency,2,\n";
        let all = read_matrix(text, direction_of).unwrap();
        assert_eq!(all.keys().collect::<Vec<_>>(), ["bw", "latency"]);
        let bw = &all["bw"];
        assert_eq!((bw.values(0), bw.values(1)), (&[5.0, 6.0][..], &[][..]));
        assert_eq!(bw.ups(), ["l1-s1"]);
        assert_eq!(all["latency"].direction(), Direction::LowerIsBetter);
    }

    #[test]
    fn mistakes_name_their_line() {
        let error = |text: &str| read_matrix(text, direction_of).unwrap_err().to_string();
        assert_eq!(error("a,b,bw,1\n\na,b,bw,x\n"), "line 3: x is no value");
        assert_eq!(error("src,dst,value\n"), "line 1: the header has no column metric");
        assert_eq!(error("a,b,bw\n"), "line 1: expected src,dst,metric,value[,up]");
        assert_eq!(error("a,a,bw,1\n"), "line 1: a is paired with itself");
        assert!(error("").contains("no src,dst"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(src,dst,metric,value|a,b,bw,|[0-9.,\"# \n]|\\PC){0,40}") {
            let _ = read_matrix(&text, direction_of);
        }
    }
}
