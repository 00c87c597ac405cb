//! Which node ran what, and how it ended: a row a node, equal rows together.

use std::collections::{BTreeMap, BTreeSet};

use muster_analysis::State as Verdict;
use muster_page::{Cell, Names, Part, State, Table};
use muster_playbook::report::{NodeFindings, RunReport};
use muster_run::{PAIRS, Summary, is_work, visit_of};
use muster_wire::Outcome;

use super::head::shown;

/// Rows of the table; of more, the best are left out.
const ROWS: usize = 150;
/// Benchmarks in one table, which still fit a screen.
const COLUMNS: usize = 16;

/// How each work of each node ended.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    works: Vec<String>,
    of: BTreeMap<String, BTreeMap<String, State>>,
}

impl Coverage {
    /// Of all results of a run; works in the order of its `plan`, then by name.
    #[must_use]
    pub fn of(plan: &[String], results: &[Summary]) -> Self {
        let mut newest: BTreeMap<(&str, &str), (usize, State)> = BTreeMap::new();
        for result in results.iter().filter(|result| is_work(&result.work)) {
            let (work, visit) = visit_of(&result.work);
            let work = if work.starts_with(PAIRS) { PAIRS } else { work };
            let ended = ended(&result.outcome);
            let known = newest.entry((&result.node, work)).or_insert((visit, ended));
            // Of many pairs of one node the worst counts, of several visits the newest.
            *known = if visit > known.0 {
                (visit, ended)
            } else {
                (known.0, if work == PAIRS { known.1.max(ended) } else { known.1 })
            };
        }
        let mut coverage = Self::default();
        let ran: BTreeSet<&str> = newest.keys().map(|(_, work)| *work).collect();
        let planned = plan.iter().map(String::as_str).filter(|work| is_work(work));
        for work in planned.chain(ran) {
            if !coverage.works.iter().any(|known| known == work) {
                coverage.works.push(work.to_owned());
            }
        }
        for ((node, work), (_, ended)) in newest {
            coverage.of.entry(node.to_owned()).or_default().insert(work.to_owned(), ended);
        }
        coverage
    }

    /// Adds what the metrics of a node came to.
    pub fn add(&mut self, node: &NodeFindings) {
        let Some(own) = self.of.get_mut(&node.node) else { return };
        for verdict in &node.verdicts {
            let Some(ended) = own.get_mut(&verdict.metric.benchmark) else { continue };
            match (verdict.state, *ended) {
                (Verdict::NotApplicable, _) => {}
                (state, State::Ran) => *ended = shown(state),
                (state, known) => *ended = known.max(shown(state)),
            }
        }
    }

    /// The tables of the nodes in `report`.
    pub(super) fn parts(&self, report: &RunReport) -> Vec<Part> {
        let rows = self.rows(report);
        if rows.is_empty() || self.works.is_empty() {
            return Vec::new();
        }
        let words = "A benchmark is as bad as its worst metric. ○ ran: nothing of it is judged by itself. – there is no result. Nodes with \
                     equal rows share one.";
        let mut parts = vec![Part::Text(words.to_owned())];
        for works in self.works.chunks(COLUMNS) {
            let caption = if self.works.len() > COLUMNS {
                format!("Nodes and benchmarks, {} to {}", works[0], works[works.len() - 1])
            } else {
                "Nodes and benchmarks".to_owned()
            };
            let columns: Vec<&str> = ["nodes", "#number"].into_iter().chain(works.iter().map(String::as_str)).collect();
            let mut table = Table::new(caption, &columns);
            for (nodes, cells) in rows.iter().take(ROWS) {
                let names = Cell::Names(Names::of(nodes.iter().copied()));
                let cell = |work: &String| cells.get(work).map_or(Cell::Nothing, |state| Cell::State(*state));
                let number = Cell::Number(nodes.len().to_string());
                table.rows.push([names, number].into_iter().chain(works.iter().map(cell)).collect());
            }
            if rows.len() > ROWS {
                let nodes: usize = rows[ROWS..].iter().map(|(nodes, _)| nodes.len()).sum();
                table.left_out = format!("{nodes} nodes with fewer troubles are not in this table.");
            }
            parts.push(Part::Table(table));
        }
        parts
    }

    /// Equal rows together, those with most troubles first.
    fn rows<'r>(&'r self, report: &'r RunReport) -> Vec<(Vec<&'r str>, &'r BTreeMap<String, State>)> {
        static NONE: BTreeMap<String, State> = BTreeMap::new();
        let mut groups: BTreeMap<&BTreeMap<String, State>, Vec<&str>> = BTreeMap::new();
        for node in &report.nodes {
            groups.entry(self.of.get(&node.node).unwrap_or(&NONE)).or_default().push(&node.node);
        }
        let mut rows: Vec<_> = groups.into_iter().map(|(cells, nodes)| (nodes, cells)).collect();
        let count = |cells: &BTreeMap<String, State>, state| cells.values().filter(|own| **own == state).count();
        rows.sort_by_cached_key(|(nodes, cells)| {
            let bad = [State::Fail, State::Unknown, State::Warn].map(|state| count(cells, state));
            (std::cmp::Reverse((bad, cells.is_empty())), nodes.first().copied())
        });
        rows
    }
}

const fn ended(outcome: &Outcome) -> State {
    match outcome {
        Outcome::Done => State::Ran,
        Outcome::NotApplicable(_) => State::NotApplicable,
        Outcome::NotRun(_) => State::NotRun,
        Outcome::Denied(_) => State::Unknown,
        Outcome::Failed(_) => State::Fail,
    }
}
