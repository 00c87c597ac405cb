//! HTML reports of stored runs, written from the command line and from the screen.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use muster_analysis::Sample;
use muster_fleet::hostlist;
use muster_fleet::inventory::nearest;
use muster_page::{Page, Part};
use muster_playbook::report::RunReport;
use muster_run::{Record, Run, joined};
use muster_store::Store;
use muster_wire::{MetricId, Series};

use crate::config::Config;
use crate::exit::{Code, IO, Problem, USAGE};
use crate::judge::{self, Pairs};
use crate::redact::{Redact, Redaction};
use crate::session;
use crate::views::page::{Coverage, Ran, metric_page, metrics, node_page, run_page, wanted};

/// Names that are told where none is like the one that was given.
const NAMED: usize = 3;

/// What a page is about.
#[derive(Clone, Copy, Debug)]
pub enum About<'a> {
    /// A whole run.
    Run,
    /// One of its nodes.
    Node(&'a str),
    /// One of its metrics, as `cpu-stream/triad-1t`.
    Metric(&'a str),
}

/// The page as a file, its names said as `redaction` has them.
pub fn written(mut page: Page, redaction: &mut Redaction) -> Result<String> {
    page.settle(&mut |text| redaction.text(text), &|names| hostlist::fold(names.iter().copied()));
    if let Some(remark) = redaction.remark() {
        page.notes.insert(0, remark);
        // A command would be pasted with a stand-in for a node.
        let is_command = |part: &Part| matches!(part, Part::Code(text) if text.starts_with("muster "));
        page.sections.iter_mut().for_each(|section| section.parts.retain(|part| !is_command(part)));
    }
    page.html().map_err(|_| anyhow!("the page could not be made"))
}

/// The report of a stored run, or of a part of it, with what `hidden` names replaced by pseudonyms.
///
/// # Errors
/// [`USAGE`] for a node or metric that the run does not have, with the one most like it; [`IO`] where it cannot be read.
pub fn of_run(
    (store, run): (&dyn Store, &Run),
    config: &Config,
    about: About<'_>,
    hidden: &[Redact],
) -> Result<String, Problem> {
    let said = session::nodes_of(store, run, config, |_| true)?;
    let report = judge::report_of_nodes(run, &said).code(IO)?;
    let report = session::weighed(store, run, report, config)?;
    let mut coverage = Coverage::of(&run.plan, &store.summaries(&run.id).code(IO)?);
    said.each(&mut |node| {
        coverage.add(node);
        Ok(())
    })
    .code(IO)?;
    let facts = store.facts(&run.id).code(IO)?;
    let is_whole = matches!(about, About::Run);
    let pairs = if is_whole && report.network.is_some() { pairs(store, run, config)? } else { None };
    let samples = Samples::of(store, run, &report);
    let ran = Ran {
        report: &report,
        judged: &said.rest.judged,
        facts: &facts,
        coverage: &coverage,
        pairs: pairs.as_ref(),
        sample: &|node, metric| samples.get(node, metric),
    };
    written(page(&ran, about)?, &mut Redaction::of(hidden, run, &facts)).code(IO)
}

fn page(ran: &Ran<'_>, about: About<'_>) -> Result<Page, Problem> {
    let (page, kind, word) = match about {
        About::Run => return Ok(run_page(ran)),
        About::Node(node) => (node_page(ran, node), "node", node),
        About::Metric(metric) => (metric_page(ran, metric), "metric", metric),
    };
    let known: BTreeSet<&str> = match kind {
        "node" => ran.report.nodes.iter().map(|node| node.node.as_str()).collect(),
        _ => metrics(ran.report),
    };
    page.ok_or_else(|| {
        let few: Vec<&str> = known.iter().take(NAMED).copied().collect();
        let near = match nearest(word, known.iter().copied()) {
            Some(near) => format!("; did you mean {near}?"),
            None if known.len() > NAMED => format!("; it has {} and {} more", few.join(", "), known.len() - NAMED),
            None => format!("; it has {}", few.join(", ")),
        };
        Problem { code: USAGE, error: anyhow!("run {} has no {kind} '{word}'{near}", ran.report.run.id) }
    })
}

/// The pairs of a run, for its maps.
fn pairs(store: &dyn Store, run: &Run, config: &Config) -> Result<Option<Pairs>, Problem> {
    let judging = judge::Judging::of(store, run, session::params(config)).code(IO)?;
    let records: Vec<Arc<Record>> =
        store.records(&run.id).code(IO)?.into_iter().filter(judge::pairs::is_pair).map(Arc::new).collect();
    let params = &judging.context.params;
    let found = judge::pairs::network(run, records.iter().map(Arc::as_ref), None, params);
    Ok(found.map(|found| Pairs::of_run(run, &records, found, params)))
}

/// Samples of the nodes that a chart shows; what was judged keeps only those of the worst.
struct Samples<'s> {
    store: &'s dyn Store,
    run: &'s Run,
    nodes: BTreeSet<String>,
    read: RefCell<HashMap<String, Vec<Record>>>,
}

impl<'s> Samples<'s> {
    fn of(store: &'s dyn Store, run: &'s Run, report: &RunReport) -> Self {
        Self { store, run, nodes: wanted(report), read: RefCell::default() }
    }

    /// The newest sample of `metric` on `node`; `None` where it cannot be read: the chart is then without it.
    fn get(&self, node: &str, metric: &MetricId) -> Option<Sample> {
        if !self.nodes.contains(node) {
            return None;
        }
        let mut read = self.read.borrow_mut();
        let records = read
            .entry(node.to_owned())
            .or_insert_with(|| self.store.records_of(&self.run.id, node).unwrap_or_default());
        let own = |record: &&Record| record.series.iter().any(|series| series.metric == *metric);
        let newest = records.iter().filter(own).max_by_key(|record| record.visit())?;
        let series: Vec<&Series> = newest.series.iter().filter(|series| series.metric == *metric).collect();
        Sample::new(&joined(series)).ok()
    }
}

#[cfg(test)]
mod tests {
    use muster_page::Section;

    use super::*;

    fn page() -> Page {
        let parts = vec![Part::Text("n7 is slow".to_owned()), Part::Code("muster drain -w n7".to_owned())];
        Page {
            kind: "Run",
            title: "cbd".to_owned(),
            state: None,
            counts: Vec::new(),
            undecided: String::new(),
            facts: Vec::new(),
            notes: Vec::new(),
            sections: vec![Section { id: "verdict", title: "Verdict".to_owned(), parts }],
            program: "muster".to_owned(),
        }
    }

    #[test]
    fn a_page_says_that_names_are_replaced_and_has_no_command_with_one() {
        let nodes = ["n7".to_owned()];
        let html = written(page(), &mut Redaction::new(&[Redact::Names], &nodes, [])).unwrap();
        assert!(html.contains("Names are replaced: node-001 is no host name."), "{html}");
        assert!(html.contains("node-001 is slow") && !html.contains("muster drain"), "{html}");
        let html = written(page(), &mut Redaction::new(&[Redact::Addresses], &nodes, [])).unwrap();
        assert!(html.contains("muster drain -w n7") && !html.contains("Names are replaced"), "{html}");
    }
}
