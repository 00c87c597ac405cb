//! Reads plain sample files: `node,metric,value[,step]`, one value a row.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context, Result, bail};

/// Values by metric, then node, in step order (file order where no step is given).
pub type Samples = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

/// Reads a CSV. A value that is not a number is kept as NaN, so that the node fails instead of vanishing.
///
/// # Errors
/// When a column is missing or a row is broken; the message names file and line.
pub fn read(input: impl Read, file: &str) -> Result<Samples> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(input);
    let header = reader.headers().with_context(|| format!("{file}: no header"))?.clone();
    let column = |name: &str| header.iter().position(|h| h.eq_ignore_ascii_case(name));
    let (Some(node), Some(metric), Some(value)) = (column("node"), column("metric"), column("value")) else {
        bail!("{file}:1: the columns are node,metric,value and optionally step; found '{}'", join(&header));
    };
    let step = column("step");
    let mut rows: BTreeMap<(String, String), Vec<(f64, f64)>> = BTreeMap::new();
    for (index, row) in reader.records().enumerate() {
        let row = row.with_context(|| format!("{file}: row {}", index + 1))?;
        let line = row.position().map_or(0, csv::Position::line);
        let get = |at: usize| row.get(at).unwrap_or_default();
        if get(node).is_empty() || get(metric).is_empty() {
            bail!("{file}:{line}: node and metric must not be empty");
        }
        let order = match step.map(get) {
            None | Some("") => index as f64,
            Some(text) => text.parse().with_context(|| format!("{file}:{line}: step '{text}' is not a number"))?,
        };
        let number = get(value).parse().unwrap_or(f64::NAN);
        rows.entry((get(metric).to_owned(), get(node).to_owned())).or_default().push((order, number));
    }
    Ok(ordered(rows))
}

fn ordered(rows: BTreeMap<(String, String), Vec<(f64, f64)>>) -> Samples {
    let mut samples = Samples::new();
    for ((metric, node), mut values) in rows {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        samples.entry(metric).or_default().insert(node, values.into_iter().map(|v| v.1).collect());
    }
    samples
}

fn join(header: &csv::StringRecord) -> String {
    header.iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_set_the_order_and_bad_values_stay_visible() {
        let text = "node,metric,value,step\na,m,2,2\na,m,1,1\nb,m,oops,1\n";
        let samples = read(text.as_bytes(), "f.csv").unwrap();
        assert_eq!(samples["m"]["a"], [1.0, 2.0]);
        assert!(samples["m"]["b"][0].is_nan());
    }

    #[test]
    fn a_missing_column_is_named_with_the_file() {
        let said = read("node,value\na,1\n".as_bytes(), "f.csv").unwrap_err().to_string();
        assert!(said.starts_with("f.csv:1: the columns are"), "{said}");
    }
}
