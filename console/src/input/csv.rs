//! Reads plain sample files: `node,metric,value[,step]`, one value a row.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read};

use anyhow::{Context, Result, bail};
use muster_import::{Limits, Series, meaning};
use muster_wire::{Declared, Direction, MetricId, Unit, clean, describe};

use super::by_name;
use super::fleet::{Fleet, some};
use crate::options::Better;

/// Longest piece of a file repeated in a message, bytes.
const SHOWN: usize = 60;

/// Gives no more than so many bytes until it is told that a row has ended: one without an end would fill the memory.
struct Rows<'l, R> {
    input: R,
    left: &'l Cell<usize>,
}

impl<R: Read> Read for Rows<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other(format!("longer than {} MiB", Limits::default().line >> 20)));
        }
        let most = buffer.len().min(left);
        let read = self.input.read(&mut buffer[..most])?;
        self.left.set(left - read);
        Ok(read)
    }
}

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
                _ => bail!("'{}' is none of node=…, metric=…, value=… and step=…", clean(pair, SHOWN)),
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
/// and says nothing of its node. Metrics called `benchmark/name@engine`, as we export them, keep their identity. Where there are
/// columns `unit` and `direction` in our words, they are heard.
///
/// # Errors
/// When a column is missing, a row is broken or a value cannot be read; the message names file and line.
pub fn read(input: impl Read, file: &str, names: &Columns, fleet: &mut Fleet, better: &Better) -> Result<()> {
    let most = Limits::default().line;
    let left = Cell::new(most);
    let rows = Rows { input, left: &left };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(rows);
    let header = reader.headers().with_context(|| format!("{file}: header"))?.clone();
    let Places { node, metric, value, step, says } = Places::of(&header, file, names)?;
    let mut rows = Values::new();
    let mut unreadable: Vec<Unreadable> = Vec::new();
    for (index, row) in reader.records().enumerate() {
        let row = row.with_context(|| format!("{file}: row {}", index + 1))?;
        left.set(most);
        let line = row.position().map_or(0, csv::Position::line);
        let get = |at: usize| row.get(at).unwrap_or_default();
        let metric = metric.map_or(names.value.as_str(), get);
        if get(node).is_empty() || metric.is_empty() {
            bail!("{file}:{line}: node and metric must not be empty");
        }
        let order = match step.map(get) {
            None | Some("") => index as f64,
            Some(text) => {
                let shown = || format!("{file}:{line}: step '{}' is not a number", clean(text, SHOWN));
                text.parse().with_context(shown)?
            }
        };
        let name = clean(get(node), 255);
        let number: f64 = match get(value).parse() {
            Ok(number) => number,
            Err(_) if names.lenient => {
                // A node of which nothing can be read is still there, with nothing known of it.
                fleet.node(&name);
                unreadable.push(Unreadable { line, node: name, metric: metric.to_owned() });
                continue;
            }
            Err(_) => bail!(
                "{file}:{line}: the value '{}' of {name} in {} is not a number; --lenient leaves such values out and counts them",
                clean(get(value), SHOWN),
                clean(metric, SHOWN)
            ),
        };
        let of = || OfMetric { said: Said::of(says.map(|at| at.map_or("", get))), nodes: BTreeMap::new() };
        rows.entry(metric.to_owned()).or_insert_with(of).nodes.entry(name).or_default().push((order, number));
    }
    fleet.notes.extend(left_out(file, &unreadable));
    if rows.is_empty() {
        bail!("{file}: no rows");
    }
    leave_open(&unreadable, &rows, fleet);
    take(rows, names.aggregated, fleet, better)
}

/// What was read, by metric.
type Values = BTreeMap<String, OfMetric>;

/// What was read of one metric.
struct OfMetric {
    said: Said,
    /// Order and value, by node.
    nodes: BTreeMap<String, Vec<(f64, f64)>>,
}

/// A value that could not be read.
struct Unreadable {
    line: u64,
    node: String,
    metric: String,
}

/// What the first row of a metric says of its values.
#[derive(Clone, Copy)]
struct Said {
    unit: Option<Unit>,
    direction: Option<Direction>,
}

impl Said {
    /// Of the columns `unit` and `direction`; other words than ours say nothing.
    fn of([unit, direction]: [&str; 2]) -> Self {
        let unit = UNITS.into_iter().find(|known| !unit.is_empty() && known.symbol() == unit);
        let direction = match direction {
            "higher_is_better" => Some(Direction::HigherIsBetter),
            "lower_is_better" => Some(Direction::LowerIsBetter),
            _ => None,
        };
        Self { unit, direction }
    }
}

/// Units that have a symbol.
const UNITS: [Unit; 9] = [
    Unit::BytesPerSec,
    Unit::FlopPerSec,
    Unit::OpsPerSec,
    Unit::Nanos,
    Unit::Seconds,
    Unit::Bytes,
    Unit::Hertz,
    Unit::Celsius,
    Unit::Watts,
];

/// Where the columns of a file stand.
struct Places {
    node: usize,
    metric: Option<usize>,
    value: usize,
    step: Option<usize>,
    /// `unit` and `direction`.
    says: [Option<usize>; 2],
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
                clean(&found.join(","), SHOWN)
            );
        };
        let says = ["unit", "direction"].map(column);
        Ok(Self { node, metric: metric.flatten(), value, step: column(&names.step), says })
    }
}

/// What is said of values that could not be read.
fn left_out(file: &str, unreadable: &[Unreadable]) -> Option<String> {
    let first = unreadable.first()?.line;
    let mut nodes: Vec<&str> = unreadable.iter().map(|one| one.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let values = match unreadable.len() {
        1 => "1 unreadable value was".to_owned(),
        n => format!("{n} unreadable values were"),
    };
    Some(format!("{file}: {values} left out, the first in line {first}; of {}", some(&nodes)))
}

/// A node of which no value of a metric could be read does not pass by its other metrics.
fn leave_open(unreadable: &[Unreadable], rows: &Values, fleet: &mut Fleet) {
    for Unreadable { line, node, metric } in unreadable {
        // What nobody has cannot be missing on one.
        let missing = rows.get(metric).is_some_and(|of| !of.nodes.contains_key(node));
        if missing {
            let (id, _) = named(metric);
            fleet.leave_open(node, &id.benchmark, format!("the value of {} in line {line} could not be read", id.name));
        }
    }
}

fn take(rows: Values, aggregated: bool, fleet: &mut Fleet, better: &Better) -> Result<()> {
    let mut assumed = Assumed::default();
    for (name, OfMetric { said, nodes }) in rows {
        let (metric, shown) = named(&name);
        let known = describe(&metric);
        let read = meaning::of_metric(&metric);
        let unit = known.unit.or(said.unit).or(read.map(|(unit, _)| unit)).unwrap_or(Unit::Count);
        let told = known.direction.or(said.direction).or(read.map(|(_, direction)| direction));
        let direction = assumed.direction(&name, &metric, (better.direction(&name), told));
        for (node, mut values) in nodes {
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            let values = values.into_iter().map(|v| v.1).collect();
            let declared = Declared { component: known.component.clone(), role: known.role, aggregated };
            let series = Series { node, metric: metric.clone(), unit, direction, declared, values };
            fleet.add(&series, shown.as_deref())?;
        }
    }
    fleet.notes.extend(assumed.notes());
    Ok(())
}

/// Metrics by what their direction was taken from, where that may be wrong.
#[derive(Default)]
struct Assumed {
    lower_by_name: Vec<String>,
    higher_by_name: Vec<String>,
    higher_by_nothing: Vec<String>,
    against: Vec<String>,
}

impl Assumed {
    /// Which way a metric is better: as `asked`, as it is `told` of the metric, as its name says, or higher.
    fn direction(
        &mut self,
        name: &str,
        metric: &MetricId,
        (asked, told): (Option<Direction>, Option<Direction>),
    ) -> Direction {
        let shown = || clean(name, SHOWN);
        if let (Some(asked), Some(told)) = (asked, told)
            && asked != told
        {
            self.against.push(shown());
        }
        if let Some(known) = asked.or(told) {
            return known;
        }
        match by_name::direction(&metric.name).or_else(|| by_name::direction(&metric.benchmark)) {
            Some(Direction::LowerIsBetter) => {
                self.lower_by_name.push(shown());
                Direction::LowerIsBetter
            }
            Some(Direction::HigherIsBetter) => {
                self.higher_by_name.push(shown());
                Direction::HigherIsBetter
            }
            None => {
                self.higher_by_nothing.push(shown());
                Direction::HigherIsBetter
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let all = [
            (
                &self.higher_by_nothing,
                "taken as higher-is-better; say --higher-is-better or --lower-is-better with a pattern",
            ),
            (
                &self.lower_by_name,
                "taken as lower-is-better, as the name says; --higher-is-better with a pattern says otherwise",
            ),
            (
                &self.higher_by_name,
                "taken as higher-is-better, as the name says; --lower-is-better with a pattern says otherwise",
            ),
            (&self.against, "the direction is the one asked for, which is not the one that is known of it"),
        ];
        let told = all.into_iter().filter(|(names, _)| !names.is_empty());
        told.map(|(names, what)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{}: {what}", some(&names))
        })
        .collect()
    }
}

/// Identity of a metric, and the name that the file gives it where that is none of ours.
fn named(name: &str) -> (MetricId, Option<String>) {
    match identity(name) {
        Some(metric) => (metric, None),
        None => (MetricId::new("csv", clean(name, 255), "imported"), Some(clean(name, 255))),
    }
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

    fn told(text: &str, higher: &[&str]) -> (Vec<(String, Unit, Direction)>, Vec<String>) {
        let better = Better { higher_is_better: higher.iter().map(|p| (*p).to_owned()).collect(), ..Better::default() };
        let mut fleet = Fleet::default();
        read(text.as_bytes(), "f.csv", &Columns::of(&[]).unwrap(), &mut fleet, &better).unwrap();
        (fleet.metrics.iter().map(|m| (m.id.to_string(), m.unit, m.direction)).collect(), fleet.notes)
    }

    #[test]
    fn what_is_known_of_a_metric_gives_its_direction_and_unit_and_only_the_operator_says_otherwise() {
        let (higher, lower) = (Direction::HigherIsBetter, Direction::LowerIsBetter);
        let text = "node,metric,value\na,disk/rand-read-p50@own,300\na,mem-bw/h2d_bw:0@superbench,26e9\n\
                    a,kernel-launch/event_time:0@superbench,6000\na,disk/seq-read@own,1e9\n";
        let (found, notes) = told(text, &[]);
        assert_eq!(
            found,
            [
                ("disk/rand-read-p50@own".to_owned(), Unit::Nanos, lower),
                ("disk/seq-read@own".to_owned(), Unit::BytesPerSec, higher),
                ("kernel-launch/event_time:0@superbench".to_owned(), Unit::Nanos, lower),
                ("mem-bw/h2d_bw:0@superbench".to_owned(), Unit::BytesPerSec, higher),
            ]
        );
        assert_eq!(notes, Vec::<String>::new());
        let (found, notes) = told(text, &["disk/*"]);
        assert_eq!((found[0].2, found[1].2, found[2].2), (higher, higher, lower));
        let said =
            "disk/rand-read-p50@own: the direction is the one asked for, which is not the one that is known of it";
        assert_eq!(notes, [said]);
    }

    #[test]
    fn a_name_says_the_direction_that_nobody_knows_and_what_was_assumed_is_said() {
        let (found, notes) = told("node,metric,value\na,lat0,3\na,gemm,3\na,busbw,3\na,\u{1b}[2Jodd,3\n", &[]);
        let of = |name: &str| found.iter().find(|(id, ..)| id == &format!("csv/{name}@imported")).unwrap().2;
        assert_eq!(of("lat0"), Direction::LowerIsBetter);
        assert_eq!([of("gemm"), of("busbw"), of("odd")], [Direction::HigherIsBetter; 3]);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].starts_with("odd, gemm: taken as higher-is-better; say"), "{notes:?}");
        assert!(notes[1].starts_with("lat0: taken as lower-is-better, as the name says"), "{notes:?}");
        assert!(notes[2].starts_with("busbw: taken as higher-is-better, as the name says"), "{notes:?}");
    }

    #[test]
    fn columns_of_unit_and_direction_are_heard_and_words_of_others_are_not() {
        let head = "node,metric,value,step,unit,direction\n";
        let (found, notes) = told(&format!("{head}a,odd,3,0,B/s,lower_is_better\n"), &[]);
        assert_eq!((found[0].1, found[0].2, notes.len()), (Unit::BytesPerSec, Direction::LowerIsBetter, 0));
        let (found, notes) = told(&format!("{head}a,odd,3,0,GB/s,read\n"), &[]);
        assert_eq!((found[0].1, found[0].2, notes.len()), (Unit::Count, Direction::HigherIsBetter, 1));
    }

    #[test]
    fn a_node_without_a_readable_value_of_a_metric_is_left_open_and_one_with_some_is_not() {
        let text = "node,metric,value\na,copy,1\na,copy,oops\nb,copy,oops\nb,triad,1\na,triad,1\n";
        let lenient = read_as(text, &Columns { lenient: true, ..Columns::of(&[]).unwrap() }).unwrap();
        assert_eq!(lenient.left_open(), [("b", "csv", "the value of copy in line 4 could not be read")]);
    }

    #[test]
    fn a_row_without_an_end_is_refused_before_it_fills_the_memory() {
        let said = |start: &str| {
            let (mut fleet, endless) = (Fleet::default(), start.as_bytes().chain(io::repeat(b'1')));
            let why = read(endless, "f.csv", &Columns::of(&[]).unwrap(), &mut fleet, &Better::default()).unwrap_err();
            format!("{why:#}")
        };
        assert!(said("").starts_with("f.csv: header: "), "{}", said(""));
        let row = said("node,metric,value\na,m,2\nb,m,");
        assert!(row.starts_with("f.csv: row 2: ") && row.ends_with("longer than 64 MiB"), "{row}");
    }

    #[test]
    fn a_missing_column_is_named_with_the_file() {
        let said = fleet("node,value\na,1\n", &[]).unwrap_err().to_string();
        assert!(said.starts_with("f.csv:1: the columns are node,metric,value"), "{said}");
        let raw = format!("\u{1b}[31mnode,{}\na,1\n", "x".repeat(9000));
        let said = fleet(&raw, &[]).unwrap_err().to_string();
        assert!(said.contains("found 'node,xxx") && said.len() < 300 && !said.contains('\u{1b}'), "{said}");
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
