//! Metric by metric and node by node what files hold, whichever tool wrote them.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Result, bail};
use muster_analysis::{Observation, Table};
use muster_import::superbench::Key;
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

    /// Benchmarks that failed: node, benchmark and why, sorted.
    #[must_use]
    pub fn failures(&self) -> Vec<(&str, &str, &str)> {
        let all =
            self.failed.iter().map(|((node, work), why)| (self.nodes[*node].as_str(), work.as_str(), why.as_str()));
        all.collect::<BTreeSet<_>>().into_iter().collect()
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
    /// of unknown meaning are measured where `better` says which way.
    ///
    /// # Errors
    /// As [`Fleet::add`].
    pub fn add_table(&mut self, table: &Table, better: &Better) -> Result<()> {
        let rows: Vec<usize> = table.nodes().iter().map(|node| self.node(node)).collect();
        let plain = rows.iter().enumerate().all(|(row, node)| row == *node);
        let mut unknown = Vec::new();
        for (column, name) in table.metrics().iter().enumerate() {
            let Some(key) = Key::parse(name) else {
                unknown.push(name.as_str());
                continue;
            };
            let (unit, factor, direction) = match (key.meaning(), better.direction(name)) {
                (Meaning::Measure { unit, factor, direction }, said) => (unit, factor, said.unwrap_or(direction)),
                (Meaning::Flag { good }, _) => {
                    self.flags(table, column, &rows, (&key, good));
                    continue;
                }
                (Meaning::Unknown, Some(direction)) => (Unit::Count, 1.0, direction),
                (Meaning::Unknown, None) => {
                    unknown.push(name.as_str());
                    continue;
                }
                (Meaning::Neutral, _) => continue,
            };
            let before = self.metrics.len();
            let at = self.metric(&key.metric_id(), (unit, direction), &component::superbench(&key, true))?;
            let values = table.column(column);
            if plain && at == before {
                self.metrics[at].cells = Cells::One(values.iter().map(|v| v * factor).collect());
                continue;
            }
            for (row, value) in values.iter().enumerate().filter(|(_, v)| !v.is_nan()) {
                self.metrics[at].push(rows[row], &[value * factor]);
            }
        }
        self.unknown(&unknown);
        Ok(())
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

    /// What every node has for `metric`, in the order of [`Fleet::nodes`].
    #[must_use]
    pub fn observations(&self, metric: &Metric) -> Vec<(String, Observation)> {
        let own = self.failed.iter().filter(|((_, work), _)| *work == metric.id.benchmark);
        let failed: HashMap<usize, &str> = own.map(|((node, _), why)| (*node, why.as_str())).collect();
        let of = |(at, node): (usize, &String)| {
            let failed = failed.get(&at).map(|why| Observation::Failed((*why).to_owned()));
            let observed = failed.unwrap_or_else(|| match metric.values(at) {
                [] => Observation::Missing("the file has no value".to_owned()),
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
        let all: BTreeSet<&str> = measured.chain(self.failed.keys().map(|(_, work)| work.as_str())).collect();
        all.into_iter().map(str::to_owned).collect()
    }

    /// Records of one node for `run`, one per benchmark it has something of.
    #[must_use]
    pub fn records(&self, run: &Run, node: usize, by_work: &HashMap<&str, Vec<&Metric>>) -> Vec<Record> {
        let record = |work: &String| {
            let metrics = by_work.get(work.as_str()).map_or(&[][..], Vec::as_slice);
            let series: Vec<muster_wire::Series> = metrics.iter().flat_map(|m| wired(m, m.values(node))).collect();
            let outcome = match self.failed.get(&(node, work.clone())) {
                Some(why) => Outcome::Failed(why.clone()),
                None if series.is_empty() => return None,
                None => Outcome::Done,
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

#[cfg(test)]
mod tests;
