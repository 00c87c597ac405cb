//! Reads plain sample files: `node,metric,value[,step]`, one value a row.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context, Result, bail};
use muster_import::Series;
use muster_wire::{Declared, Direction, MetricId, Unit, clean, describe};

use super::fleet::{Fleet, some};
use crate::options::Better;

/// Longest piece of a file repeated in a message, bytes.
const SHOWN: usize = 60;

/// What a file means: its columns under the names that it gives them, and what a value is.
#[derive(Clone, Debug)]
pub struct Columns {
    /// Whether each value is an average of many steps.
    pub aggregated: bool,
    /// Whether values that are no numbers are left out and counted instead of refused.
    pub lenient: bool,
    node: String,
    metric: Option<String>,
    value: String,
    step: String,
}

impl Columns {
    /// From `ours=theirs` pairs.
    ///
    /// # Errors
    /// When a pair names no column of ours.
    pub fn of(pairs: &[String]) -> Result<Self> {
        let [node, metric, value, step] = ["node", "metric", "value", "step"].map(str::to_owned);
        let mut columns = Self { aggregated: false, lenient: false, node, metric: Some(metric), value, step };
        let mut metric = false;
        for pair in pairs {
            match pair.split_once('=') {
                Some(("node", name)) => columns.node = name.to_owned(),
                Some(("metric", name)) => (columns.metric, metric) = (Some(name.to_owned()), true),
                Some(("value", name)) => columns.value = name.to_owned(),
                Some(("step", name)) => columns.step = name.to_owned(),
                _ => bail!("--columns '{pair}': node=…, metric=…, value=… or step=…"),
            }
        }
        // A value under a name of its own is a metric of that name.
        if columns.value != "value" && !metric {
            columns.metric = None;
        }
        Ok(columns)
    }
}

/// Reads a CSV into `fleet`. NaN and infinity are results, of a benchmark that went wrong; a value that cannot be read is none,
/// and says nothing of its node. Metrics called `benchmark/name@engine`, as we export them, keep their identity.
///
/// # Errors
/// When a column is missing, a row is broken or a value cannot be read; the message names file and line.
pub fn read(input: impl Read, file: &str, names: &Columns, fleet: &mut Fleet, better: &Better) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(input);
    let header = reader.headers().with_context(|| format!("{file}: no header"))?.clone();
    let Places { node, metric, value, step } = Places::of(&header, file, names)?;
    let mut rows: BTreeMap<(String, String), Vec<(f64, f64)>> = BTreeMap::new();
    let mut unreadable: Vec<(u64, String)> = Vec::new();
    for (index, row) in reader.records().enumerate() {
        let row = row.with_context(|| format!("{file}: row {}", index + 1))?;
        let line = row.position().map_or(0, csv::Position::line);
        let get = |at: usize| row.get(at).unwrap_or_default();
        let metric = metric.map_or(names.value.as_str(), get);
        if get(node).is_empty() || metric.is_empty() {
            bail!("{file}:{line}: node and metric must not be empty");
        }
        let order = match step.map(get) {
            None | Some("") => index as f64,
            Some(text) => text.parse().with_context(|| format!("{file}:{line}: step '{text}' is not a number"))?,
        };
        let name = clean(get(node), 255);
        let number: f64 = match get(value).parse() {
            Ok(number) => number,
            Err(_) if names.lenient => {
                // A node of which nothing can be read is still there, with nothing known of it.
                fleet.node(&name);
                unreadable.push((line, name));
                continue;
            }
            Err(_) => bail!(
                "{file}:{line}: the value '{}' of {name} in {} is not a number; --lenient leaves such values out and counts them",
                clean(get(value), SHOWN),
                clean(metric, SHOWN)
            ),
        };
        rows.entry((metric.to_owned(), name)).or_default().push((order, number));
    }
    fleet.notes.extend(left_out(file, &unreadable));
    if rows.is_empty() {
        bail!("{file}: no rows");
    }
    take(rows, names.aggregated, fleet, better)
}

/// Where the columns of a file stand.
struct Places {
    node: usize,
    metric: Option<usize>,
    value: usize,
    step: Option<usize>,
}

impl Places {
    fn of(header: &csv::StringRecord, file: &str, names: &Columns) -> Result<Self> {
        let column = |name: &str| header.iter().position(|h| h.eq_ignore_ascii_case(name));
        let metric = names.metric.as_deref().map(column);
        let (Some(node), Some(value), None | Some(Some(_))) = (column(&names.node), column(&names.value), metric)
        else {
            let wanted = [Some(names.node.as_str()), names.metric.as_deref(), Some(names.value.as_str())];
            let wanted: Vec<&str> = wanted.into_iter().flatten().collect();
            let found: Vec<&str> = header.iter().collect();
            bail!(
                "{file}:1: the columns are {} and optionally {}; found '{}' (--columns gives other names)",
                wanted.join(","),
                names.step,
                found.join(",")
            );
        };
        Ok(Self { node, metric: metric.flatten(), value, step: column(&names.step) })
    }
}

/// What is said of values that could not be read.
fn left_out(file: &str, unreadable: &[(u64, String)]) -> Option<String> {
    let (first, _) = unreadable.first()?;
    let mut nodes: Vec<&str> = unreadable.iter().map(|(_, node)| node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let values = match unreadable.len() {
        1 => "1 unreadable value was".to_owned(),
        n => format!("{n} unreadable values were"),
    };
    Some(format!("{file}: {values} left out, the first in line {first}; of {}", some(&nodes)))
}

fn take(
    rows: BTreeMap<(String, String), Vec<(f64, f64)>>,
    aggregated: bool,
    fleet: &mut Fleet,
    better: &Better,
) -> Result<()> {
    let mut assumed: Vec<String> = Vec::new();
    for ((name, node), mut values) in rows {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let direction = better.direction(&name).unwrap_or_else(|| {
            if assumed.last() != Some(&name) {
                assumed.push(name.clone());
            }
            Direction::HigherIsBetter
        });
        let (metric, shown) = match identity(&name) {
            Some(metric) => (metric, None),
            None => (MetricId::new("csv", clean(&name, 255), "imported"), Some(clean(&name, 255))),
        };
        let values = values.into_iter().map(|v| v.1).collect();
        let known = describe(&metric);
        let declared = Declared { component: known.component, role: known.role, aggregated };
        fleet.add(&Series { node, metric, unit: Unit::Count, direction, declared, values }, shown.as_deref())?;
    }
    if !assumed.is_empty() {
        let names: Vec<&str> = assumed.iter().map(String::as_str).collect();
        let which = some(&names);
        fleet.notes.push(format!(
            "{which}: taken as higher-is-better; say --higher-is-better or --lower-is-better with a pattern"
        ));
    }
    Ok(())
}

/// `benchmark/name@engine` taken apart; the name may hold slashes, as ours and SuperBench's do.
fn identity(name: &str) -> Option<MetricId> {
    let (path, engine) = name.rsplit_once('@')?;
    let (benchmark, metric) = path.rsplit_once('/')?;
    let whole = !benchmark.is_empty() && !metric.is_empty() && !engine.is_empty();
    whole.then(|| MetricId::new(clean(benchmark, 96), clean(metric, 96), clean(engine, 96)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(text: &str, columns: &[&str]) -> Result<Fleet> {
        let columns: Vec<String> = columns.iter().map(|c| (*c).to_owned()).collect();
        read_as(text, &Columns::of(&columns)?)
    }

    fn read_as(text: &str, columns: &Columns) -> Result<Fleet> {
        let mut fleet = Fleet::default();
        read(text.as_bytes(), "f.csv", columns, &mut fleet, &Better::default())?;
        Ok(fleet)
    }

    #[test]
    fn a_value_that_cannot_be_read_is_refused_with_its_line_or_left_out_and_counted() {
        let text = "node,metric,value\na,m,2\nb,m,oops\nb,m,\nc,m,1\nc,m,1 2\n";
        let said = fleet(text, &[]).unwrap_err().to_string();
        assert!(said.starts_with("f.csv:3: the value 'oops' of b in m is not a number; --lenient"), "{said}");
        let lenient = read_as(text, &Columns { lenient: true, ..Columns::of(&[]).unwrap() }).unwrap();
        assert_eq!(lenient.notes[0], "f.csv: 3 unreadable values were left out, the first in line 3; of b, c");
        assert_eq!(lenient.nodes.len(), 3, "a node without any readable value is still a node");
        let values = |node: &str| {
            let at = lenient.nodes.iter().position(|known| known == node).unwrap();
            lenient.metrics[0].values(at).len()
        };
        assert_eq!(["a", "b", "c"].map(values), [1, 0, 1]);
    }

    #[test]
    fn steps_set_the_order_and_bad_values_stay_visible() {
        let fleet = fleet("node,metric,value,step\na,m,2,2\na,m,1,1\nb,m,nan,1\n", &[]).unwrap();
        assert_eq!(fleet.metrics[0].values(0), [1.0, 2.0]);
        assert!(fleet.metrics[0].values(1)[0].is_nan());
        assert_eq!(fleet.metrics[0].shown.as_deref(), Some("m"));
    }

    #[test]
    fn values_are_single_steps_unless_somebody_says_that_they_are_averages() {
        let fleet = |aggregated| {
            let columns = Columns { aggregated, ..Columns::of(&[]).unwrap() };
            let fleet = read_as("node,metric,value\na,gpu-stream/copy:3@own,2\n", &columns).unwrap();
            fleet.metrics[0].declared.describe(&fleet.metrics[0].id)
        };
        assert!(!fleet(false).aggregated && fleet(true).aggregated);
        assert_eq!(fleet(true).component, muster_wire::Component::Gpu(3));
    }

    #[test]
    fn a_missing_column_is_named_with_the_file() {
        let said = fleet("node,value\na,1\n", &[]).unwrap_err().to_string();
        assert!(said.starts_with("f.csv:1: the columns are node,metric,value"), "{said}");
    }

    #[test]
    fn columns_may_have_other_names_and_our_own_names_keep_their_identity() {
        let fleet = fleet("gpu,perf\na,1\na,2\nb,3\n", &["node=gpu", "value=perf"]).unwrap();
        assert_eq!((fleet.metrics[0].id.name.as_str(), fleet.metrics[0].values(0)), ("perf", &[1.0, 2.0][..]));
        let own = super::identity("model:x/gpt/step@own").unwrap();
        assert_eq!((own.benchmark.as_str(), own.name.as_str(), own.engine.as_str()), ("model:x/gpt", "step", "own"));
        assert_eq!(super::identity("throughput"), None);
        assert!(Columns::of(&["colour=red".to_owned()]).is_err());
    }
}
