//! Nodes that are watched while the job runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use anyhow::anyhow;
use muster_fleet::pattern::matches;
use muster_fleet::{Node, Settings as FleetSettings};
use muster_watch::{AlertKind, Settings, Watch};
use muster_wire::{WatchOrder, finely, telemetry_names};
use tokio_util::sync::CancellationToken;

use super::keep::Keep;
use super::openmetrics::Scores;
use super::tape::Tape;
use super::{Options, past, tell};
use crate::config::Config;
use crate::exit::{Ended, INTERRUPTED, Problem, USAGE};
use crate::signals::Signals;
use crate::views::DemoJob;
use crate::work::feed::Feed;
use crate::work::lookout::{Lookout, Seen};
use crate::work::ticks::Member;
use crate::{out, session, slurm, work};

/// Time from one look at everything to the next, milliseconds.
const PERIOD_MS: u32 = 1_000;
/// Most looks a second at all nodes together.
const MOST_LOOKS: usize = 10_000;

/// Watches until the time is over or somebody ends it, tells alerts as they come up, and all of it at the end.
pub(super) async fn run(options: &Options, config: &Config) -> Ended {
    let wanted = metrics(&options.metrics)?;
    let nodes = session::nodes_for_work(config, &options.pick)?;
    let order = order(options, nodes.len())?;
    let settings = session::settings_for(config, &nodes).await?;
    let (cancel, signals) = (CancellationToken::new(), Signals::default());
    let listening = signals.listen(cancel.clone());
    let until = options.long.map(|long| Instant::now() + long);
    let mut lookout = Lookout::open(&nodes, order, work::embedded(), settings, cancel);
    let mut live = Live::new(&nodes, &wanted, Watch::new(options.settings()), !options.json);
    let mut keep = options.log.then(|| Keep::new(config));
    let mut scores = options.openmetrics.as_deref().map(Scores::to);
    let mut tape = if options.record { Some(Tape::begin(&nodes, config)?) } else { None };
    out::note(format_args!(
        "watching {}; what is usual is known after about 3 minutes",
        out::counted(nodes.len(), "node", "nodes")
    ));
    let keeps = options.record || options.log || options.openmetrics.is_some();
    // Who reads nothing any more and has nothing kept needs no watch.
    while keeps || !out::left() {
        match lookout.next(until).await {
            Seen::Values(node, at_s, values) => {
                let clock_error_s = lookout.clock_error_s(node);
                if let Some(tape) = &mut tape {
                    tape.take(node, at_s, &values, clock_error_s);
                }
                live.take(node, at_s, &values, clock_error_s)?;
                if let Some(keep) = &mut keep {
                    keep.take(live.watch().alerts());
                }
                if let Some(scores) = &mut scores {
                    scores.take(live.watch(), live.reporting(), false);
                }
            }
            Seen::Fine(node, at_s, values) => {
                if let Some(tape) = &mut tape {
                    let named = |(name, value): (&'static str, f64)| Some((finely(name)?, value));
                    tape.take(node, at_s, &values.into_iter().filter_map(named).collect::<Vec<_>>(), None);
                }
            }
            Seen::Over => break,
            seen => live.hear(seen),
        }
    }
    let strange = lookout.strange();
    lookout.close().await;
    if let Some(tape) = tape {
        tape.end(live.watch());
    }
    listening.abort();
    live.feed.watch.finish();
    keep.iter_mut().for_each(|keep| keep.finish(live.watch().alerts()));
    scores.iter_mut().for_each(|scores| scores.take(live.watch(), live.reporting(), true));
    let notes = past::notes(live.watch(), &config.db.value);
    let ended = live.end(strange, notes, options.json);
    // Who ends a watch by hand wants to know what it saw.
    match signals.code() {
        Some(code) if code != INTERRUPTED => ended.map(|_| code),
        _ => ended,
    }
}

/// Watches the nodes of a demo's job in these metrics until a machine is named or the time is over, and tells all of it at the end. Of a
/// job to which nothing is done, all of the time is watched.
pub(crate) async fn until_named(
    nodes: &[Node],
    settings: Arc<FleetSettings>,
    (metrics, job): (&[&'static str], Option<String>),
    until: Instant,
    (demo, json): (DemoJob, bool),
) -> Ended {
    let (cancel, signals) = (CancellationToken::new(), Signals::default());
    let listening = signals.listen(cancel.clone());
    let order = WatchOrder { period_ms: PERIOD_MS, fine_ms: 0, job };
    let mut lookout = Lookout::open(nodes, order, work::embedded(), settings, cancel);
    let mut live = Live::new(nodes, metrics, Watch::new(Settings::default()), !json);
    out::note(format_args!("watching {}: {}", out::counted(nodes.len(), "node", "nodes"), demo.how));
    while demo.hurt.is_empty() || live.watch().alerts().is_empty() {
        match lookout.next(Some(until)).await {
            Seen::Values(node, at_s, values) => live.take(node, at_s, &values, lookout.clock_error_s(node))?,
            Seen::Over => break,
            seen => live.hear(seen),
        }
    }
    let strange = lookout.strange();
    lookout.close().await;
    listening.abort();
    live.feed.watch.finish();
    live.demo = Some(demo);
    let ended = live.end(strange, Vec::new(), json);
    match signals.code() {
        Some(code) => ended.map(|_| code),
        None => ended,
    }
}

/// What every node is to look at, and how often.
fn order(options: &Options, nodes: usize) -> Result<WatchOrder, Problem> {
    if nodes.saturating_mul(options.hz as usize) > MOST_LOOKS && options.hz > 1 {
        let most = (MOST_LOOKS / nodes.max(1)).max(1);
        let error = anyhow!(
            "--hz {} on {nodes} nodes is more than {MOST_LOOKS} looks a second; --hz {most} is not",
            options.hz
        );
        return Err(Problem { code: USAGE, error });
    }
    let fine_ms = if options.hz > 1 { PERIOD_MS / options.hz } else { 0 };
    Ok(WatchOrder { period_ms: PERIOD_MS, fine_ms, job: job(options) })
}

/// The Slurm job whose processes are meant.
pub(super) fn job(options: &Options) -> Option<String> {
    options.pick.job.as_deref().and_then(slurm::known_to_processes)
}

/// The metrics of the catalogue that are meant; a pattern that means none is a slip.
pub(super) fn metrics(patterns: &[String]) -> Result<Vec<&'static str>, Problem> {
    let known: Vec<&'static str> = telemetry_names().collect();
    let strange: Vec<&str> = patterns
        .iter()
        .filter(|pattern| !known.iter().any(|name| matches(pattern, name)))
        .map(String::as_str)
        .collect();
    if !strange.is_empty() {
        let error = anyhow!("--metrics: not known: {}; nodes tell {}", strange.join(", "), known.join(", "));
        return Err(Problem { code: USAGE, error });
    }
    let meant = |name: &&'static str| patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, name));
    Ok(known.into_iter().filter(meant).collect())
}

/// The detector, and what was told so far.
struct Live<'a> {
    nodes: &'a [Node],
    /// Metrics to compare.
    wanted: BTreeSet<&'static str>,
    feed: Feed,
    /// What each alert was when it was told.
    told: Vec<AlertKind>,
    /// Alerts whose end was told.
    ended: BTreeSet<usize>,
    /// Nodes that answered once.
    seen: BTreeSet<usize>,
    /// Nodes that told something once.
    reporting: BTreeSet<usize>,
    aloud: bool,
    demo: Option<DemoJob>,
}

impl<'a> Live<'a> {
    fn new(nodes: &'a [Node], wanted: &[&'static str], watch: Watch, aloud: bool) -> Self {
        let members: Vec<Member> = nodes.iter().map(Member::from).collect();
        let (feed, wanted) = (Feed::new(&members, watch), wanted.iter().copied().collect());
        let (told, ended, seen, reporting) = (Vec::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { nodes, wanted, feed, told, ended, seen, reporting, aloud, demo: None }
    }

    const fn watch(&self) -> &Watch {
        &self.feed.watch
    }

    /// Names of the nodes that told something.
    fn reporting(&self) -> impl Iterator<Item = &str> {
        self.reporting.iter().map(|node| self.nodes[*node].name.as_str())
    }

    fn take(
        &mut self,
        node: usize,
        at_s: f64,
        values: &[(&'static str, f64)],
        clock_error_s: Option<f64>,
    ) -> Result<(), Problem> {
        self.reporting.insert(node);
        for (name, value) in values.iter().filter(|(name, _)| self.wanted.contains(name)) {
            self.feed.take(node, name, at_s, *value);
        }
        if let Some(error_s) = clock_error_s {
            self.feed.clock(node, error_s);
        }
        if self.aloud { self.tell() } else { Ok(()) }
    }

    /// Tells what has come up, is known better or is over since the last time.
    fn tell(&mut self) -> Result<(), Problem> {
        for (at, alert) in self.feed.watch.alerts().iter().enumerate() {
            match self.told.get_mut(at) {
                Some(told) if *told == alert.kind => {}
                Some(told) => {
                    *told = alert.kind;
                    tell::alert(alert)?;
                }
                None => {
                    self.told.push(alert.kind);
                    tell::alert(alert)?;
                }
            }
            if let Some(until_s) = alert.until_s
                && self.ended.insert(at)
            {
                tell::over(alert, until_s)?;
            }
        }
        Ok(())
    }

    /// Tells what is said of a node, or by it.
    fn hear(&mut self, seen: Seen) {
        match seen {
            Seen::Said(node, text) => out::note(format_args!("{}: {text}", self.nodes[node].name)),
            Seen::There(node) if !self.seen.insert(node) => {
                out::note(format_args!("{} is back", self.nodes[node].name))
            }
            Seen::There(_) if self.seen.len() == self.nodes.len() => out::note("all nodes answer"),
            Seen::Lost(_, failure) => out::note(failure.message),
            Seen::There(_) | Seen::Values(..) | Seen::Fine(..) | Seen::Over => {}
        }
    }

    fn end(mut self, strange: u64, mut notes: Vec<String>, json: bool) -> Ended {
        let silent: Vec<&str> = (0..self.nodes.len())
            .filter(|node| !self.seen.contains(node))
            .map(|node| self.nodes[node].name.as_str())
            .collect();
        if !silent.is_empty() {
            notes.push(format!("never reached: {}", muster_fleet::hostlist::fold(silent.into_iter())));
        }
        if strange > 0 {
            let ticks = out::counted(strange as usize, "look", "looks");
            notes.push(format!("{ticks} left out: the node's clock jumped"));
        }
        let (metrics, demo) = (self.feed.told(), self.demo.take());
        let of = (self.nodes.len(), self.reporting.len(), metrics.as_slice());
        if json {
            return tell::document(self.watch(), of, notes, (true, demo));
        }
        self.tell()?;
        tell::end(self.watch(), of, notes)
    }
}
