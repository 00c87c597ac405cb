//! What the records of a node say by how they ended, whatever was measured: a lost link, a benchmark that broke or did not run,
//! parts of a GPU proved faulty, foreign load.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::findings::{Finding, Source};
use crate::{State, gpu};
use muster_run::{LINK, OUT_OF_TURN, Record, Run, WARNED, is_work};
use muster_wire::{Component, ComponentKind, Datum, Outcome, benchmark, fact_of};

use super::Evidence;

/// What to do about a node whose values cannot be judged for foreign load.
const WHEN_IDLE: &str = "measure again when the node is idle";

/// The part of the node that a benchmark speaks of as a whole.
pub fn component(work: &str) -> Component {
    let kind = benchmark(work).and_then(|known| known.metrics.first()).map(|metric| metric.of);
    match kind {
        Some(ComponentKind::Cpu | ComponentKind::Core) => Component::Cpu,
        Some(ComponentKind::Memory) => Component::Memory,
        Some(ComponentKind::Disk) => Component::Disk(None),
        Some(ComponentKind::Nic | ComponentKind::IbPort) => Component::Nic(None),
        Some(ComponentKind::Gpu | ComponentKind::Gpus | ComponentKind::GpuLink) => Component::Gpus,
        Some(ComponentKind::Application) => Component::Application,
        Some(ComponentKind::Node) | None => Component::Node,
    }
}

/// Work that failed on at least half of the nodes that tried: then the work is suspect, not the nodes.
pub fn widespread<'a>(run: &Run, evidence: &Evidence<'a>) -> BTreeSet<&'a str> {
    let mut tried: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let members: HashSet<&str> = run.nodes.iter().map(String::as_str).collect();
    for record in evidence.latest.values().filter(|r| is_work(&r.work) && members.contains(r.node.as_str())) {
        let count = tried.entry(record.benchmark()).or_default();
        count.0 += 1;
        count.1 += usize::from(matches!(record.outcome, Outcome::Failed(_)));
    }
    tried.into_iter().filter(|(_, (all, failed))| *failed > 1 && failed * 2 >= *all).map(|(work, _)| work).collect()
}

/// What the records of `node` say.
pub fn findings(node: &str, evidence: &Evidence<'_>, widespread: &BTreeSet<&str>) -> Vec<Finding> {
    let mut found = Vec::new();
    for record in evidence.of_node(node) {
        // A link that failed and later carried results is history.
        let overtaken =
            record.work == LINK && evidence.of_node(node).any(|r| is_work(&r.work) && r.at_ms > record.at_ms);
        found.extend(ended(node, record, widespread).filter(|_| !overtaken));
        found.extend(gpu_parts(node, record));
    }
    found.extend(foreign_load(node, evidence));
    found.extend(gpu_load(node, evidence));
    found
}

fn ended(node: &str, record: &Record, widespread: &BTreeSet<&str>) -> Option<Finding> {
    let work = record.benchmark();
    let of = |state, why: String| Finding::new(node, component(work), Source::Benchmark(work.to_owned()), state, why);
    if work == LINK {
        return match &record.outcome {
            Outcome::Failed(why) => {
                Some(Finding::new(node, Component::Node, Source::Link, State::Unknown, why.clone()))
            }
            _ => None,
        };
    }
    if work == OUT_OF_TURN {
        let Outcome::Failed(said) = &record.outcome else { return None };
        let said = format!("{node}: speaks out of turn: {said}");
        let next = "find out what answers on this node, and trust none of its results until then";
        return Some(Finding::new(node, Component::Node, Source::OutOfTurn, State::Fail, said).next(next));
    }
    // A look that is denied or absent is no judgement on the node.
    if work.starts_with("collect/") {
        return None;
    }
    match &record.outcome {
        Outcome::Done | Outcome::NotApplicable(_) => None,
        Outcome::Failed(why) if widespread.contains(work) => {
            let why = format!("{node}: {work} failed here and on most other nodes: {why}");
            Some(
                of(State::Unknown, why)
                    .next("find out what is wrong with the benchmark or the roll-out before blaming the nodes"),
            )
        }
        Outcome::Failed(why) => Some(of(State::Fail, format!("{node}: {work} failed: {why}"))),
        Outcome::Denied(why) => Some(of(State::Unknown, format!("{node}: {work} is not permitted: {why}"))),
        Outcome::NotRun(why) if why.starts_with(WARNED) => Some(of(State::Warn, format!("{node}: {work}: {why}"))),
        Outcome::NotRun(why) if !record.series.is_empty() => {
            Some(of(State::Unknown, format!("{node}: {work} gave only a part of its results: {why}")))
        }
        Outcome::NotRun(why) => Some(of(State::Unknown, format!("{node}: {work} did not run: {why}"))),
    }
}

/// Parts of GPUs that a record proves faulty.
fn gpu_parts(node: &str, record: &Record) -> Vec<Finding> {
    let texts = record.facts.iter().filter_map(|fact| match fact.reading.value() {
        Some(Datum::Text(text)) => Some((fact.key.as_str(), text.as_str())),
        _ => None,
    });
    let finding = |part: &gpu::Finding| {
        let work = record.benchmark();
        let said = format!("{node}: {work}: {part}");
        Finding::new(node, Component::Gpu(part.gpu()), Source::Digests(work.to_owned()), State::Fail, said)
    };
    gpu::findings(texts).iter().map(finding).collect()
}

/// Benchmarks of which no visit can be judged for foreign load: one sentence for all of them, one finding per component.
fn foreign_load(node: &str, evidence: &Evidence<'_>) -> Vec<Finding> {
    let busy: Vec<(&str, String)> = evidence
        .of_node(node)
        // What a collector reads is as true on a busy node.
        .filter(|record| !record.work.starts_with("collect/"))
        .filter(|record| {
            let visits = evidence.visits(node, record.benchmark());
            visits.iter().flatten().all(|visit| evidence.load(visit).is_some())
        })
        .filter_map(|record| Some((record.benchmark(), evidence.load(record)?)))
        .collect();
    let Some((first, why)) = busy.first() else { return Vec::new() };
    let what = match busy.len() {
        1 => (*first).to_owned(),
        count => format!("{count} benchmarks"),
    };
    let components: BTreeSet<Component> = busy.iter().map(|(work, _)| component(work)).collect();
    let finding = |(at, component): (usize, Component)| {
        let said = if at == 0 { format!("{node}: {what} not judged: {why}") } else { String::new() };
        Finding::new(node, component, Source::Load, State::Unknown, said).next(WHEN_IDLE).again(true)
    };
    components.into_iter().enumerate().map(finding).collect()
}

/// GPUs on which other processes computed meanwhile.
fn gpu_load(node: &str, evidence: &Evidence<'_>) -> Vec<Finding> {
    let gpu = |key: &str| match fact_of(key)? {
        (Component::Gpu(gpu), "company") => Some(gpu),
        _ => None,
    };
    let mut busy: BTreeMap<u32, &str> = BTreeMap::new();
    for record in evidence.of_node(node) {
        for index in record.facts.iter().filter_map(|fact| gpu(&fact.key)) {
            busy.entry(index).or_insert(record.benchmark());
        }
    }
    let finding = |(index, work): (u32, &str)| {
        let said = format!("{node}: GPU {index}: {work} not judged: other processes computed on it");
        Finding::new(node, Component::Gpu(index), Source::Load, State::Unknown, said).next(WHEN_IDLE)
    };
    busy.into_iter().map(finding).collect()
}
