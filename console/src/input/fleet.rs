//! Metric by metric and node by node what files hold, whichever tool wrote them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Result, bail};
use muster_analysis::{Observation, Table};
use muster_import::superbench::Key;
use muster_import::superbench::summary::Summary;
use muster_import::{Meaning, Series, component};
use muster_run::{Record, Run};
use muster_wire::limits::{FACTS, SERIES_VALUES};
use muster_wire::{Declared, Direction, Fact, MetricId, Outcome, Unit, describe};

use crate::options::Better;

/// Names told in one line of notes.
const NAMED: usize = 5;

/// One metric over the nodes of a fleet.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Identity.
    pub id: MetricId,
    /// Name that a plain file gives it; `None` where the identity says it.
    pub shown: Option<String>,
    /// Unit of the values.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// What it speaks of, and whether its values are averages.
    pub declared: Declared,
    /// What records keep of that; `None` where its name says as much.
    fact: Option<Fact>,
    cells: Cells,
}

/// Values by index of the node; past the end there are none.
#[derive(Clone, Debug)]
enum Cells {
    /// One value a node, NaN where there is none: millions of them fit into memory.
    One(Vec<f64>),
    /// In step order.
    Many(Vec<Vec<f64>>),
}

impl Metric {
    /// Values of the node with this index, in step order.
    #[must_use]
    pub fn values(&self, node: usize) -> &[f64] {
        match &self.cells {
            Cells::One(all) => all.get(node..=node).filter(|v| !v[0].is_nan()).unwrap_or_default(),
            Cells::Many(all) => all.get(node).map_or(&[], Vec::as_slice),
        }
    }

    fn push(&mut self, node: usize, values: &[f64]) {
        if let Cells::One(all) = &self.cells {
            let many = all.iter().map(|v| if v.is_nan() { Vec::new() } else { vec![*v] }).collect();
            self.cells = Cells::Many(many);
        }
        if let Cells::Many(all) = &mut self.cells {
            if all.len() <= node {
                all.resize(node + 1, Vec::new());
            }
            all[node].extend(values);
        }
    }
}

/// All that was read.
#[derive(Debug, Default)]
pub struct Fleet {
    /// Names, in the order met.
    pub nodes: Vec<String>,
    /// In the order met.
    pub metrics: Vec<Metric>,
    /// What was left out and why, for standard error.
    pub notes: Vec<String>,
    /// Why a benchmark failed, by node and benchmark.
    failed: HashMap<(usize, String), String>,
    /// Why a benchmark did not come to its end, or not to a result, by node and benchmark.
    open: HashMap<(usize, String), String>,
    places: HashMap<String, usize>,
    known: HashMap<MetricId, usize>,
}

impl Fleet {
    /// Index of `node`, new or known.
    pub fn node(&mut self, node: &str) -> usize {
        if let Some(&at) = self.places.get(node) {
            return at;
        }
        self.places.insert(node.to_owned(), self.nodes.len());
        self.nodes.push(node.to_owned());
        self.nodes.len() - 1
    }

    /// Says that `benchmark` failed on `node`; the first reason stays.
    pub fn fail(&mut self, node: &str, benchmark: &str, why: String) {
        let node = self.node(node);
        self.failed.entry((node, benchmark.to_owned())).or_insert(why);
    }

    /// Says that `benchmark` did not come to its end on `node`, or not to a result: what it measured is judged, and the node does
    /// not pass by it. The first reason stays.
    pub fn leave_open(&mut self, node: &str, benchmark: &str, why: String) {
        let node = self.node(node);
        self.open.entry((node, benchmark.to_owned())).or_insert(why);
    }

    /// Benchmarks that failed: node, benchmark and why, sorted.
    #[must_use]
    pub fn failures(&self) -> Vec<(&str, &str, &str)> {
        self.told(&self.failed)
    }

    /// Benchmarks that did not come to their end and did not fail: node, benchmark and why, sorted.
    #[must_use]
    pub fn left_open(&self) -> Vec<(&str, &str, &str)> {
        let mut all = self.told(&self.open);
        let failed: BTreeSet<(&str, &str)> = self.failures().into_iter().map(|(node, work, _)| (node, work)).collect();
        all.retain(|(node, work, _)| !failed.contains(&(*node, *work)));
        all
    }

    fn told<'f>(&'f self, ended: &'f HashMap<(usize, String), String>) -> Vec<(&'f str, &'f str, &'f str)> {
        let all = ended.iter().map(|((node, work), why)| (self.nodes[*node].as_str(), work.as_str(), why.as_str()));
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Results that are NaN or infinite, as of a benchmark that went wrong: node, benchmark, and of which metrics.
    #[must_use]
    pub fn broken(&self) -> Vec<(&str, &str, String)> {
        let mut found: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for metric in &self.metrics {
            for (at, node) in self.nodes.iter().enumerate() {
                let values = metric.values(at);
                let bad = values.iter().filter(|value| !value.is_finite()).count();
                if bad > 0 {
                    let name = metric.shown.as_deref().unwrap_or(&metric.id.name);
                    let said = format!("{name} is NaN or infinite in {bad} of {}", values.len());
                    found.entry((node.as_str(), metric.id.benchmark.as_str())).or_default().push(said);
                }
            }
        }
        let all = |all: Vec<String>| some(&all.iter().map(String::as_str).collect::<Vec<_>>());
        found.into_iter().map(|((node, work), said)| (node, work, all(said))).collect()
    }

    /// Adds values behind those that are there.
    ///
    /// # Errors
    /// When the metric is known in another unit or direction.
    pub fn add(&mut self, series: &Series, shown: Option<&str>) -> Result<()> {
        let node = self.node(&series.node);
        let at = self.metric(&series.metric, (series.unit, series.direction), &series.declared)?;
        self.metrics[at].shown = shown.map(str::to_owned);
        self.metrics[at].push(node, &series.values);
        Ok(())
    }

    fn metric(&mut self, id: &MetricId, (unit, direction): (Unit, Direction), declared: &Declared) -> Result<usize> {
        if let Some(&at) = self.known.get(id) {
            let metric = &mut self.metrics[at];
            // Single steps among averages: then none may count as an average.
            if metric.declared.aggregated && !declared.aggregated {
                metric.declared.aggregated = false;
                metric.fact = kept(id, &metric.declared);
            }
            if (metric.unit, metric.direction) != (unit, direction) {
                bail!(
                    "{id} comes in two units or directions: {:?} {:?} and {unit:?} {direction:?}",
                    metric.unit,
                    metric.direction
                );
            }
            return Ok(at);
        }
        self.known.insert(id.clone(), self.metrics.len());
        let fact = kept(id, declared);
        let (id, declared, cells) = (id.clone(), declared.clone(), Cells::Many(Vec::new()));
        self.metrics.push(Metric { id, shown: None, unit, direction, declared, fact, cells });
        Ok(self.metrics.len() - 1)
    }

    /// Adds a SuperBench summary. Flags that are not what they should be fail their benchmark on that node; metrics
    /// of unknown meaning are measured where `better` says which way. NaN is a result, of a benchmark that went wrong; what is null
    /// and was measured on another node is not measured.
    ///
    /// # Errors
    /// As [`Fleet::add`].
    pub fn add_table(&mut self, summary: &Summary, better: &Better) -> Result<()> {
        let (table, holes) = (&summary.table, Holes::of(summary));
        let rows: Vec<usize> = table.nodes().iter().map(|node| self.node(node)).collect();
        let plain = rows.iter().enumerate().all(|(row, node)| row == *node);
        let (mut unknown, mut rounded_away) = (Vec::new(), Vec::new());
        for (column, name) in table.metrics().iter().enumerate() {
            let Some(key) = Key::parse(name) else {
                unknown.push(name.as_str());
                continue;
            };
            let (unit, factor, direction) = match (key.meaning(), better.direction(name)) {
                (Meaning::Measure { unit, factor, direction }, said) => (unit, factor, said.unwrap_or(direction)),
                (Meaning::Flag { good }, _) => {
                    self.flags(table, column, &rows, (&key, good));
                    self.without_flag(&holes, (table, column), &rows, &key);
                    continue;
                }
                (Meaning::Unknown, Some(direction)) => (Unit::Count, 1.0, direction),
                (Meaning::Unknown, None) => {
                    unknown.push(name.as_str());
                    continue;
                }
                (Meaning::Neutral, _) => continue,
            };
            let values = table.column(column);
            let nan = holes.nan.get(&column);
            if nan.is_none() && are_rounded_away(&key, values) {
                rounded_away.push(name.as_str());
                continue;
            }
            let before = self.metrics.len();
            let at = self.metric(&key.metric_id(), (unit, direction), &component::superbench(&key, true))?;
            self.not_measured(&holes, (table, column), &rows, &key);
            if plain && at == before && nan.is_none() {
                self.metrics[at].cells = Cells::One(values.iter().map(|v| v * factor).collect());
                continue;
            }
            let is_result = |row: &usize| nan.is_some_and(|nan| nan.binary_search(row).is_ok());
            for (row, value) in values.iter().enumerate().filter(|(row, v)| !v.is_nan() || is_result(row)) {
                self.metrics[at].push(rows[row], &[value * factor]);
            }
        }
        if !rounded_away.is_empty() {
            let which = some(&rounded_away);
            self.notes.push(format!("left out, as 0.00 is printed of messages too small for two decimals: {which}"));
        }
        self.unknown(&unknown);
        Ok(())
    }

    /// Leaves the benchmark open on the nodes where one of its metrics is null that others have.
    fn not_measured(&mut self, holes: &Holes, (table, column): (&Table, usize), rows: &[usize], key: &Key<'_>) {
        let Some(null) = holes.null.get(&column) else { return };
        // What only few have the others do not lack.
        let have = table.column(column).iter().filter(|value| !value.is_nan()).count();
        if have < null.len().max(1) {
            return;
        }
        let metric = key.metric_id();
        for row in null {
            let node = self.nodes[rows[*row]].clone();
            self.leave_open(&node, &metric.benchmark, format!("{} is null: it was not measured", metric.name));
        }
    }

    /// The same of a flag; one that is NaN is not what it should be.
    fn without_flag(&mut self, holes: &Holes, (table, column): (&Table, usize), rows: &[usize], key: &Key<'_>) {
        for row in holes.nan.get(&column).into_iter().flatten() {
            let node = self.nodes[rows[*row]].clone();
            self.fail(&node, &key.metric_id().benchmark, format!("{} NaN", key.metric.replace('_', " ")));
        }
        self.not_measured(holes, (table, column), rows, key);
    }

    fn flags(&mut self, table: &Table, column: usize, rows: &[usize], (key, good): (&Key<'_>, f64)) {
        for (row, value) in table.column(column).iter().enumerate().filter(|(_, v)| !v.is_nan() && **v != good) {
            let what = key.metric.replace('_', " ");
            let node = self.nodes[rows[row]].clone();
            self.fail(&node, &key.metric_id().benchmark, format!("{what} {value}"));
        }
    }

    fn unknown(&mut self, names: &[&str]) {
        if !names.is_empty() {
            self.notes.push(format!(
                "left out, since nothing says which way they are better: {}; say --higher-is-better or --lower-is-better",
                some(names)
            ));
        }
    }

    /// Notes the first few benchmarks that were left open, and how many more.
    pub fn tell_open(&mut self) {
        let open: Vec<String> =
            self.left_open().into_iter().map(|(node, work, why)| format!("{node}: {work}: {why}")).collect();
        if !open.is_empty() {
            let open: Vec<&str> = open.iter().map(String::as_str).collect();
            self.notes.push(format!("no pass: {}", some(&open)));
        }
    }

    /// What every node has for `metric`, in the order of [`Fleet::nodes`].
    #[must_use]
    pub fn observations(&self, metric: &Metric) -> Vec<(String, Observation)> {
        let own = |ended: &HashMap<(usize, String), String>| -> HashMap<usize, String> {
            let own = ended.iter().filter(|((_, work), _)| *work == metric.id.benchmark);
            own.map(|((node, _), why)| (*node, why.clone())).collect()
        };
        let (failed, open) = (own(&self.failed), own(&self.open));
        let of = |(at, node): (usize, &String)| {
            let failed = failed.get(&at).map(|why| Observation::Failed(why.clone()));
            let observed = failed.unwrap_or_else(|| match metric.values(at) {
                [] => {
                    Observation::Missing(open.get(&at).cloned().unwrap_or_else(|| "the file has no value".to_owned()))
                }
                values => Observation::from_values(values),
            });
            (node.clone(), observed)
        };
        self.nodes.iter().enumerate().map(of).collect()
    }

    /// Names of the work that the fleet holds results of, sorted.
    #[must_use]
    pub fn works(&self) -> Vec<String> {
        let measured = self.metrics.iter().map(|m| m.id.benchmark.as_str());
        let ended = self.failed.keys().chain(self.open.keys()).map(|(_, work)| work.as_str());
        let all: BTreeSet<&str> = measured.chain(ended).collect();
        all.into_iter().map(str::to_owned).collect()
    }

    /// Records of one node for `run`, one per benchmark it has something of.
    #[must_use]
    pub fn records(&self, run: &Run, node: usize, by_work: &HashMap<&str, Vec<&Metric>>) -> Vec<Record> {
        let record = |work: &String| {
            let metrics = by_work.get(work.as_str()).map_or(&[][..], Vec::as_slice);
            let series: Vec<muster_wire::Series> = metrics.iter().flat_map(|m| wired(m, m.values(node))).collect();
            let of = (node, work.clone());
            let outcome = match (self.failed.get(&of), self.open.get(&of)) {
                (Some(why), _) => Outcome::Failed(why.clone()),
                (None, Some(why)) => Outcome::NotRun(why.clone()),
                (None, None) if series.is_empty() => return None,
                (None, None) => Outcome::Done,
            };
            let measured = metrics.iter().filter(|metric| !metric.values(node).is_empty());
            let facts = measured.filter_map(|metric| metric.fact.clone()).take(FACTS).collect();
            Some(Record {
                run: run.id.clone(),
                node: self.nodes[node].clone(),
                work: work.clone(),
                outcome,
                at_ms: run.started_ms,
                elapsed_ns: 0,
                series,
                facts,
            })
        };
        run.plan.iter().filter_map(record).collect()
    }
}

/// Cells of a summary that were named and hold no number: rows by column.
struct Holes {
    nan: HashMap<usize, Vec<usize>>,
    null: HashMap<usize, Vec<usize>>,
}

impl Holes {
    fn of(summary: &Summary) -> Self {
        let by_column = |cells: &[(usize, usize)]| {
            let mut found: HashMap<usize, Vec<usize>> = HashMap::new();
            cells.iter().for_each(|(row, column)| found.entry(*column).or_default().push(*row));
            found
        };
        Self { nan: by_column(&summary.nan), null: by_column(&summary.null) }
    }
}

/// What records keep of a declaration; `None` where the metric's name says as much.
fn kept(id: &MetricId, declared: &Declared) -> Option<Fact> {
    (declared.describe(id) != describe(id)).then(|| declared.fact(id))
}

fn wired(metric: &Metric, values: &[f64]) -> Vec<muster_wire::Series> {
    let part = |values: &[f64]| muster_wire::Series {
        metric: metric.id.clone(),
        unit: metric.unit,
        direction: metric.direction,
        values: values.to_vec(),
        warmup: 0,
        started_ns: 0,
    };
    values.chunks(SERIES_VALUES).map(part).collect()
}

/// The first few of `names`, and how many more.
pub fn some(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    if names.len() > NAMED { format!("{shown} and {} more", names.len() - NAMED) } else { shown }
}

/// Whether nccl-tests or rccl-tests printed these bandwidths with two decimals of a GB/s too few: of tiny messages they are 0.00.
fn are_rounded_away(key: &Key<'_>, values: &[f64]) -> bool {
    /// With less, a bandwidth has but one digit.
    const DIGITS: f64 = 0.05;
    /// Bytes of a message up to which that is its size, and not a network that carries nothing.
    const TINY: u64 = 64 << 10;
    let size = key.metric.split('_').find_map(|word| word.parse::<u64>().ok());
    let printed = ["nccl-bw", "rccl-bw"].contains(&key.benchmark);
    let bandwidth = key.metric.contains("busbw") || key.metric.contains("algbw");
    let tiny = printed && bandwidth && size.is_some_and(|size| size <= TINY);
    tiny && values.contains(&0.0) && values.iter().all(|value| value.is_nan() || *value < DIGITS)
}

#[cfg(test)]
mod tests;
