//! `muster results`: values and verdicts of a run, recomputed from its samples.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write;

use clap::Args;
use muster_analysis::State;
use muster_playbook::report::{NodeReport, PairsReport, Summary, headline};
use muster_run::{Run, visit_of};
use muster_store::Store;
use muster_tui::stale::Stale;
use muster_wire::Outcome;

use crate::clock::now_ms;
use crate::config::Config;
use crate::exit::{Code, Ended, IO, Problem};
use crate::judge::{self, ByNode};
use crate::options::{Line, Pick, Which};
use crate::out::{self, Rows};
use crate::patience::Patience;
use crate::{database, session};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster results
  muster results 20261121T143000Z-cbd-1f2e --node node007 --json
  muster results -w @rack7 --fail-on fail

Below the table stands why nodes do not pass and, where all nodes of the run are shown, what pairs of them point at.

Exit codes, over the nodes shown: 0 all passed, 1 warnings, 2 at least one failed,
3 could not decide.")]
pub struct Options {
    /// Run id; the newest when left out.
    #[command(flatten)]
    pub which: Which,
    /// Only this node.
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Only these nodes of the run.
    #[command(flatten)]
    pub pick: Pick,
    /// Print every metric of every node, however many.
    #[arg(long)]
    pub all: bool,
    /// Show check results instead of metrics.
    #[arg(long)]
    pub checks: bool,
    /// Print the whole report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Mildest finding that gives a non-zero exit code.
    #[arg(long, value_enum, default_value_t = Line::Warn)]
    pub fail_on: Line,
    /// Exit 74 if any part of the database is unreadable, instead of leaving it out.
    #[arg(long)]
    pub strict: bool,
}

/// Reasons told of a node, as in the summary for a ticket.
const REASONS: usize = 5;

/// Rows past which those that pass are left out, unless they are asked for.
const MANY: u64 = 10_000;

/// Prints a report; the exit code is by its verdicts.
pub fn run(options: &Options, config: &Config) -> Ended {
    let store = database::read(config)?;
    let run = session::run_of(&*store, options.which.id())?;
    let mut pick = options.pick.clone();
    pick.include.extend(options.node.clone());
    let picked = if pick.given() { Some(pick.of_run(&run, config)?) } else { None };
    let picked: Option<BTreeSet<&str>> = picked.as_ref().map(|names| names.iter().map(String::as_str).collect());
    let is_picked = |node: &str| picked.as_ref().is_none_or(|names| names.contains(node));
    if !options.json {
        return rows(&*store, &run, config, (options, is_picked));
    }
    let waiting = Patience::new(format!("judging {}", run.id));
    let mut report = session::report_of(&*store, Some(&run.id), config)?;
    drop(waiting);
    database::sound(&*store, options.strict)?;
    if picked.is_some() {
        report.nodes.retain(|node| is_picked(&node.node));
        report.summary = Summary::of(report.nodes.iter().map(|node| (node.state, node.undecided)));
        // Pairs speak of links between nodes, of which one may not be shown.
        report.network = report.network.filter(|_| report.nodes.len() == run.nodes.len());
    }
    out::json(&report)?;
    Ok(session::exit_code(&report, options.fail_on))
}

/// Prints what is asked of the picked nodes, row by row: all verdicts of a large fleet would take gigabytes.
fn rows(
    store: &dyn Store,
    run: &Run,
    config: &Config,
    (options, is_picked): (&Options, impl Fn(&str) -> bool),
) -> Ended {
    let summaries = store.summaries(&run.id).code(IO)?;
    let series: u64 = summaries.iter().filter(|one| is_picked(&one.node)).map(|one| one.series).sum();
    let whole = options.all || series <= MANY;
    let waiting = Patience::new(format!("judging {}", run.id));
    let said = session::nodes_of(store, run, config, is_picked)?;
    let age = Age::of(summaries, config);
    let shown = if options.checks {
        let table = Table {
            header: ["node", "check", "state", "evidence"],
            said: &said,
            rows: &|node, row| answers(node, &age, row),
        };
        table.print(waiting, (store, options))?
    } else {
        let header = ["node", "metric", "median", "similarity", "state"];
        let table = Table { header, said: &said, rows: &|node, row| metrics(node, whole, &age, row) };
        table.print(waiting, (store, options))?
    };
    let network = said.rest.network.as_ref().filter(|_| shown.states.len() == run.nodes.len());
    let summary = Summary::of(shown.states);
    below(&summary, network, (shown.rows, &shown.why)).iter().try_for_each(|line| out::line(line))?;
    if !options.checks && shown.rows < shown.verdicts {
        let left = shown.verdicts - shown.rows;
        out::note(format_args!("{left} metrics that pass are left out; --node shows those of a node, --all shows all"));
    }
    Ok(session::exit_code_of(&summary, network, options.fail_on))
}

/// What stands below the table, or instead of one without `rows`: how many nodes ended how, why they do not pass, and what pairs of them
/// point at.
fn below(summary: &Summary, network: Option<&PairsReport>, (rows, why): (usize, &[String])) -> Vec<String> {
    let counts = (rows == 0).then(|| headline(summary, network));
    let pairs = network.into_iter().flat_map(PairsReport::lines).map(|line| format!("pairs: {}", line.trim_start()));
    counts.into_iter().chain(why.iter().cloned()).chain(pairs).collect()
}

/// What takes the cells of a row.
type Row<'r, const N: usize> = &'r mut dyn FnMut([&str; N]) -> anyhow::Result<()>;

/// What is printed of nodes that come one after another.
struct Table<'t, const N: usize> {
    header: [&'static str; N],
    said: &'t ByNode,
    /// Gives the rows of a node.
    rows: &'t dyn Fn(&NodeReport, Row<'_, N>) -> anyhow::Result<()>,
}

/// What was seen meanwhile.
#[derive(Default)]
struct Shown {
    rows: usize,
    verdicts: usize,
    states: Vec<(State, bool)>,
    /// Why nodes do not pass.
    why: Vec<String>,
}

impl<const N: usize> Table<'_, N> {
    fn print(&self, waiting: Patience, (store, options): (&dyn Store, &Options)) -> Result<Shown, Problem> {
        database::sound(store, options.strict)?;
        let (mut shown, mut waiting) = (Shown::default(), Some(waiting));
        out::by(|to| {
            let mut to = Heard { to, waiting: &mut waiting };
            let mut table = Rows::below(self.header);
            // Where nobody listens any more, all nodes still count.
            let mut heard = Ok(());
            judge::each_report(self.said, &mut |_, node| {
                shown.verdicts += node.verdicts.len();
                shown.states.push((node.state, node.undecided));
                shown.why.extend(reasons(&node));
                (self.rows)(&node, &mut |cells| {
                    shown.rows += 1;
                    if heard.is_ok() {
                        heard = table.add(cells, &mut to);
                    }
                    Ok(())
                })
            })?;
            heard?;
            Ok(table.end(&mut to)?)
        })?;
        Ok(shown)
    }
}

/// Standard output, before whose first byte nobody is told any more that it takes a while.
struct Heard<'h> {
    to: &'h mut dyn Write,
    waiting: &'h mut Option<Patience>,
}

impl Write for Heard<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        drop(self.waiting.take());
        self.to.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Why a node does not pass, a reason a line.
fn reasons(node: &NodeReport) -> Vec<String> {
    if node.state == State::Pass {
        return Vec::new();
    }
    let own = format!("{}: ", node.node);
    // Some reasons name the node themselves: `n1: no answer`, `n1 is 50 % slower`.
    let names_it = |why: &str| why.strip_prefix(&node.node).is_some_and(|rest| rest.starts_with([' ', ':']));
    let line = |why: &String| if names_it(why) { why.clone() } else { format!("{own}{why}") };
    let mut lines: Vec<String> = node.reasons.iter().take(REASONS).map(line).collect();
    if node.reasons.len() > REASONS {
        lines.push(format!("{own}and {} more", node.reasons.len() - REASONS));
    }
    lines
}

/// When the results of a run came, and which of them are stale.
struct Age {
    stale: Stale,
    /// The newest of each node and work.
    of: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Age {
    fn of(summaries: Vec<muster_run::Summary>, config: &Config) -> Self {
        let mut of: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for one in summaries.into_iter().filter(|one| !matches!(one.outcome, Outcome::NotRun(_))) {
            let newest = of.entry(one.node).or_default().entry(visit_of(&one.work).0.to_owned()).or_default();
            *newest = one.at_ms.max(*newest);
        }
        Self { stale: Stale::new(config.stale_after_ms(), now_ms()), of }
    }

    /// `pass`, or `pass, stale (41 d)`: as the screen says it of what `work` gave on `node`, or of whatever is newest there.
    fn state(&self, (node, work): (&str, Option<&str>), state: State) -> String {
        let own = self.of.get(node).filter(|_| state != State::NotRun);
        let at = own.and_then(|own| work.and_then(|work| own.get(work)).or_else(|| own.values().max()).copied());
        let word = session::word(&state);
        self.stale.words(at).map_or_else(|| word.clone(), |stale| format!("{word}, {stale}"))
    }
}

/// A row a verdict; those that pass only where the `whole` is shown.
fn metrics(node: &NodeReport, whole: bool, age: &Age, row: Row<'_, 5>) -> anyhow::Result<()> {
    // Neighbours are of the same benchmark and mostly in the same state.
    let mut last: (&str, State, String) = ("", State::Pass, String::new());
    let mut similarity = String::new();
    for verdict in node.verdicts.iter().filter(|verdict| whole || verdict.state != State::Pass) {
        let metric = verdict.of.metric.as_str();
        let same = metric.strip_prefix(last.0).is_some_and(|rest| rest.starts_with('/'));
        if last.2.is_empty() || !same || last.1 != verdict.state {
            let benchmark = metric.split('/').next().unwrap_or_default();
            last = (benchmark, verdict.state, age.state((&node.node, Some(benchmark)), verdict.state));
        }
        let value = match (verdict.value, verdict.of.unit) {
            (Some(value), Some(unit)) => unit.show(value),
            _ => "-".to_owned(),
        };
        similarity.clear();
        match verdict.similarity {
            Some(s) => write!(similarity, "{s:.3}")?,
            None => similarity.push('-'),
        }
        row([&node.node, &verdict.of.metric, &value, &similarity, &last.2])?;
    }
    Ok(())
}

/// A row a check.
fn answers(node: &NodeReport, age: &Age, row: Row<'_, 4>) -> anyhow::Result<()> {
    node.checks.iter().try_for_each(|check| {
        let state = age.state((&node.node, None), check.state);
        row([&node.node, &check.id, &state, &check.said])
    })
}

#[cfg(test)]
mod tests {
    use muster_analysis::network::topology::Source;

    use super::*;

    fn node(state: State, reasons: &[&str]) -> NodeReport {
        NodeReport {
            node: "n1".to_owned(),
            state,
            undecided: false,
            reasons: reasons.iter().map(|why| (*why).to_owned()).collect(),
            components: Vec::new(),
            findings: Vec::new(),
            verdicts: Vec::new(),
            checks: Vec::new(),
        }
    }

    #[test]
    fn a_node_that_does_not_pass_says_why() {
        let slow = node(State::Fail, &["n1 is 50 % slower than 6 peers", "n11 too"]);
        assert_eq!(reasons(&slow), ["n1 is 50 % slower than 6 peers", "n1: n11 too"]);
        let lost = node(State::Unknown, &["n1: connect: 10.0.0.1:22 refuses TCP", "no answer"]);
        assert_eq!(reasons(&lost), ["n1: connect: 10.0.0.1:22 refuses TCP", "n1: no answer"]);
        assert_eq!(reasons(&node(State::Pass, &["x"])), Vec::<String>::new());
        let many = reasons(&node(State::Fail, &["a"; 7]));
        assert_eq!((many.len(), many.last().map(String::as_str)), (REASONS + 1, Some("n1: and 2 more")));
    }

    #[test]
    fn counts_stand_where_no_row_does_and_pairs_stand_below_either() {
        let summary = Summary::of([(State::Pass, false); 8]);
        assert_eq!(below(&summary, None, (0, &[])), ["8 nodes: 8 pass"]);
        assert_eq!(below(&summary, None, (3, &[])), Vec::<String>::new());
        let mut network = PairsReport::new(Source::Csv);
        assert_eq!(below(&summary, Some(&network), (0, &[])), ["8 nodes: 8 pass", "pairs: nothing stands out"]);
        let left_out = vec![muster_playbook::report::LeftOut { node: "n8".to_owned(), reason: "no route".to_owned() }];
        let (id, rounds, visits, failed, again) = ("r1".to_owned(), 3, 21, 0, 0);
        network.run = Some(muster_playbook::report::PairsRun { id, rounds, visits, failed, again, left_out });
        let said = below(&summary, Some(&network), (0, &["n1: slow".to_owned()]));
        assert_eq!(said[..2], ["8 nodes: 8 pass; the network between them was not measured whole", "n1: slow"]);
        assert!(said.contains(&"pairs: left out: n8: no route".to_owned()), "{said:?}");
    }

    #[test]
    fn a_state_is_told_with_its_age_in_the_words_of_the_screen() {
        const DAY: u64 = 86_400_000;
        let works = BTreeMap::from([("disk".to_owned(), 59 * DAY), ("cpu-gemm".to_owned(), 99 * DAY)]);
        let age = Age { stale: Stale::new(30 * DAY, 100 * DAY), of: BTreeMap::from([("n1".to_owned(), works)]) };
        assert_eq!(age.state(("n1", Some("disk")), State::Fail), "fail, stale (41 d)");
        assert_eq!(age.state(("n1", Some("cpu-gemm")), State::Pass), "pass");
        assert_eq!(age.state(("n1", Some("disk")), State::NotRun), "not_run", "it has no result that could be old");
        assert_eq!(age.state(("n1", None), State::Pass), "pass", "the newest counts");
        assert_eq!(age.state(("n2", Some("disk")), State::Unknown), "unknown");
    }
}
