//! `muster criteria learn`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use muster_analysis::{Learned, learn_below};
use muster_fleet::inventory::nearest;
use muster_playbook::report::CriteriaReport;
use muster_run::Record;
use muster_wire::Datum;

use super::print;
use crate::clock::now_ms;
use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, Problem, USAGE};
use crate::judge::{Judging, Version};
use crate::patience::Patience;
use crate::{database, input, judge, out, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster criteria learn                                        from the newest run; kept as versions
  muster criteria learn --group-by sku,firmware                one criterion per group of nodes
  muster criteria learn --from samples.csv --lower-is-better '*latency*' --json
  muster criteria learn --from results-summary.jsonl --alpha 0.97 --store
  muster criteria learn --from gpus.csv --columns node=uuid,value=perf --lower-is-better perf

Groups are labels of the inventory or facts of the run, such as rack or cpu.model. Status ok: a healthy node is a defect \
with a chance of at most one in a thousand. A node is a defect at a similarity of alpha or less. Two clusters of nodes are \
listed with their sizes and medians. The larger one is the criterion; if the smaller one is more than a third of the nodes \
the status is bimodal, and the metric alone does not say which of them is normal. A criterion of fewer than five nodes is \
provisional. \
Without --force only a criterion of status ok is frozen, or one that is not repeatable but still tells a node at half speed.")]
pub struct Learn {
    /// Files of any format that `muster import` reads.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Run id; the newest when left out.
    #[arg(long, conflicts_with = "from")]
    pub run: Option<String>,
    /// How the files are read.
    #[command(flatten)]
    pub reading: input::Reading,
    /// Learn separately for nodes that differ in these labels or facts.
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub group_by: Vec<String>,
    /// Only the group with these labels, such as sku=h100.
    #[arg(long, value_name = "LABEL=VALUE", value_parser = labelled)]
    pub group: Option<String>,
    /// Save criteria learned from files (those of a run are always saved).
    #[arg(long, requires = "from")]
    pub store: bool,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Learns, keeps, prints.
pub fn run(options: &Learn, config: &Config) -> Ended {
    let (run, reading) = (options.run.as_deref(), &options.reading);
    let found = Source { from: &options.from, run, reading, labels: labels(options), below: 0.0 }.learn(config)?;
    named(options, &found.iter().map(|one| one.group.as_str()).collect())?;
    let mut report = CriteriaReport::default();
    for one in found.iter().filter(|one| wanted(options, &one.group)) {
        report.push_in(one.shown.as_deref(), &one.group, &one.learned);
    }
    if options.from.is_empty() || options.store {
        let mut store = database::write(config)?;
        let at_ms = now_ms();
        for one in &found {
            judge::keep(&mut store, &Version::of(&one.learned, &one.group, &one.source, at_ms)).code(IO)?;
        }
    }
    print(&report, options.json)
}

/// Groups that are listed.
const LISTED: usize = 10;

/// One metric of one group.
pub struct Found {
    /// What was learned.
    pub learned: Learned,
    /// Name that a plain file gives the metric.
    pub shown: Option<String>,
    /// Which nodes.
    pub group: String,
    source: String,
}

/// Where the samples are.
pub struct Source<'a> {
    /// Files; a run when there are none.
    pub from: &'a [PathBuf],
    /// Run id; the newest when left out.
    pub run: Option<&'a str>,
    /// How the files are read.
    pub reading: &'a input::Reading,
    /// Labels by which nodes are learned from apart.
    pub labels: Vec<String>,
    /// Nodes of a file that pass are told of where their similarity is below this.
    pub below: f64,
}

impl Source<'_> {
    /// Learns every metric of every group.
    ///
    /// # Errors
    /// When the files or the run cannot be read, or a label is unknown.
    pub fn learn(&self, config: &Config) -> Result<Vec<Found>, Problem> {
        if self.from.is_empty() { self.of_run(config) } else { self.of_files(config) }
    }

    fn of_files(&self, config: &Config) -> Result<Vec<Found>, Problem> {
        let _waiting = Patience::new("learning");
        let fleet = input::fleet(self.from, self.reading).code(CONFIG)?;
        fleet.notes.iter().for_each(out::note);
        let groups = session::groups(config, &self.labels, &fleet.nodes, &BTreeMap::new())?;
        let source = self.from.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ");
        let params = session::params(config);
        let one = |metric: &input::Metric| {
            let mut by_group: BTreeMap<&str, Vec<_>> = BTreeMap::new();
            for (node, observed) in fleet.observations(metric) {
                by_group.entry(groups.get(&node).map_or("", String::as_str)).or_default().push((node, observed));
            }
            let learned = |(group, nodes): (&str, Vec<_>)| Found {
                learned: learn_below((&metric.id, metric.unit, metric.direction), &nodes, &params, self.below),
                shown: metric.shown.clone(),
                group: group.to_owned(),
                source: source.clone(),
            };
            by_group.into_iter().map(learned).collect::<Vec<_>>()
        };
        Ok(judge::on_all_cores(&fleet.metrics, one).into_iter().flatten().collect())
    }

    fn of_run(&self, config: &Config) -> Result<Vec<Found>, Problem> {
        let store = database::read(config)?;
        let run = session::run_of(&*store, self.run)?;
        let _waiting = Patience::new(format!("learning from {}", run.id));
        let records = store.records(&run.id).code(IO)?;
        database::damaged(&*store);
        let mut judging = Judging::own(session::params(config));
        judging.terms.groups = session::groups(config, &self.labels, &run.nodes, &facts(&records))?;
        let found = judge::assess(&run, &records, &judging);
        let found = found.into_learned().map(|(learned, basis)| Found {
            learned,
            shown: None,
            group: basis.group,
            source: run.id.clone(),
        });
        Ok(found.collect())
    }
}

fn wanted(options: &Learn, group: &str) -> bool {
    options.group.as_ref().is_none_or(|wanted| wanted.split(',').all(|part| group.split(',').any(|g| g == part)))
}

/// Refuses a group that is none of `groups`, of which something was learned.
fn named(options: &Learn, groups: &BTreeSet<&str>) -> Result<(), Problem> {
    let Some(group) = &options.group else { return Ok(()) };
    if groups.is_empty() || groups.iter().any(|known| wanted(options, known)) {
        return Ok(());
    }
    let groups: Vec<&str> = groups.iter().copied().filter(|known| !known.is_empty()).collect();
    let parts: BTreeSet<&str> = groups.iter().flat_map(|known| known.split(',')).collect();
    let strange = group.split(',').find(|part| !parts.contains(part));
    let hint = match strange.and_then(|strange| nearest(strange, parts.iter().copied())) {
        Some(near) => format!("did you mean {near}?"),
        None if groups.is_empty() => "there are no groups".to_owned(),
        None => {
            let more = groups.len().saturating_sub(LISTED);
            let few: Vec<&str> = groups.iter().take(LISTED).copied().collect();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("the groups are {}{more}", few.join("; "))
        }
    };
    Err(Problem { code: USAGE, error: anyhow!("--group {group}: no node is in it; {hint}") })
}

/// `--group` as clap takes it: labels with values, separated by commas.
fn labelled(text: &str) -> Result<String, String> {
    let is = |part: &str| part.split_once('=').is_some_and(|(label, value)| !label.is_empty() && !value.is_empty());
    if text.split(',').all(is) {
        return Ok(text.to_owned());
    }
    Err(format!("'{text}' is not LABEL=VALUE, such as sku=h100"))
}

/// Labels that `--group` names are grouped by, whether asked for or not.
fn labels(options: &Learn) -> Vec<String> {
    let named = options.group.iter().flat_map(|g| g.split(',')).filter_map(|part| part.split_once('='));
    let mut all = options.group_by.clone();
    for (label, _) in named.filter(|(label, _)| *label != "profile") {
        if !all.iter().any(|l| l == label) {
            all.push(label.to_owned());
        }
    }
    all
}

/// What collectors saw of each node, by `collector.key` and by key.
fn facts(records: &[Record]) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for record in records {
        let collector = record.work.strip_prefix("collect/").unwrap_or(&record.work);
        for fact in &record.facts {
            let value = match fact.reading.value() {
                Some(Datum::Text(text)) => text.clone(),
                Some(Datum::Number(number)) => number.to_string(),
                Some(Datum::Flag(flag)) => flag.to_string(),
                None => continue,
            };
            found.insert((record.node.clone(), format!("{collector}.{}", fact.key)), value.clone());
            found.entry((record.node.clone(), fact.key.clone())).or_insert(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        learn: Learn,
    }

    fn options(group: &str) -> Result<Learn, clap::Error> {
        Line::try_parse_from(["learn", "--group", group]).map(|line| line.learn)
    }

    #[test]
    fn a_group_is_labels_with_values_and_one_that_is_not_there_is_a_slip() {
        for wrong in ["foo", "", "sku=", "=h100", "sku=h100,rack"] {
            let why = options(wrong).unwrap_err().to_string();
            assert!(why.contains("is not LABEL=VALUE, such as sku=h100"), "{wrong}: {why}");
        }
        let known = BTreeSet::from(["profile=quick,sku=h100", "profile=quick,sku=mi300"]);
        let why = |group: &str| named(&options(group).unwrap(), &known).map_err(|why| why.error.to_string());
        assert_eq!(why("sku=h100"), Ok(()));
        assert_eq!(why("sku=h10"), Err("--group sku=h10: no node is in it; did you mean sku=h100?".to_owned()));
        let all = "the groups are profile=quick,sku=h100; profile=quick,sku=mi300";
        assert_eq!(why("firmware=17.3.0"), Err(format!("--group firmware=17.3.0: no node is in it; {all}")));
        let alone = named(&options("profile=quick").unwrap(), &BTreeSet::from([""])).unwrap_err().error.to_string();
        assert_eq!(alone, "--group profile=quick: no node is in it; there are no groups");
        assert!(named(&options("sku=b200").unwrap(), &BTreeSet::new()).is_ok(), "nothing was learned");
    }
}
