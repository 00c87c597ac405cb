//! What subcommands share: opening the store, choosing nodes, beginning or resuming a run, judging it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use muster_analysis::risk::Saved;
use muster_fleet::inventory::nearest;
use muster_fleet::{Inventory, Node, Probe, Settings, Tell, Transport, slurm};
use muster_playbook::report::{self, RunReport};
use muster_playbook::{Plan, Playbook, builtin, plan};
use muster_run::{Run, RunState};
use muster_store::{Db, Store};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Deadlines, Source};
use crate::exit::{CONFIG, Code, Ended, FAIL, INTERRUPTED, IO, PASS, Problem, UNDECIDED, USAGE, WARN};
use crate::judge::Judging;
use crate::options::{Line, Pick, Say};
use crate::risk::{Basis, Log, Measured};
use crate::signals::Signals;
use crate::work::{Observer, Scan};
use crate::{clock, database, judge, out, risk, service, work};

/// How often somebody is asked about keys: jump hosts of jump hosts become known one after another.
const HOPS: usize = 8;

/// Playbook whose benchmarks the Selector chooses from.
pub const REGULAR: &str = "regular";

/// Most visits of a node in doubt, the first one included, where nobody says otherwise.
pub const VISITS: u8 = 3;

/// Everything a run needs.
#[derive(Debug)]
pub struct Job {
    /// What to do.
    pub playbook: Playbook,
    /// On which nodes.
    pub nodes: Vec<Node>,
    /// How to connect.
    pub settings: Arc<Settings>,
    /// What to push.
    pub probe: Arc<Probe>,
    /// What is known of the fabric before pairs of nodes are measured.
    pub fabric: work::Fabric,
    /// Start anew even when an unfinished run of the same kind exists.
    pub fresh: bool,
    /// Most visits of a node in doubt, the first one included.
    pub visits: u8,
    /// How long after its start a run begins no further visit; `None` for as long as there are visits.
    pub patience: Option<Duration>,
}

impl Job {
    /// With the embedded probe, the usual visits and nothing known of the fabric; goes on with an unfinished run if there is one.
    pub fn new(playbook: Playbook, nodes: Vec<Node>, settings: Arc<Settings>) -> Self {
        let (probe, fabric) = (work::embedded(), work::Fabric::default());
        Self { playbook, nodes, settings, probe, fabric, fresh: false, visits: VISITS, patience: None }
    }
}

/// What standard error hears of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// How far it is, and which nodes are lost.
    Progress,
    /// Which nodes are lost.
    Problems,
    /// Nothing: a screen has the terminal.
    Nothing,
}

/// A run that ended.
#[derive(Debug)]
pub struct Done {
    /// Verdicts.
    pub report: RunReport,
    /// How it ended.
    pub state: RunState,
    /// Exit code of the signal that cancelled it.
    pub signal: Option<u8>,
    /// From the last that a node said until every verdict stood.
    pub verdict: Duration,
}

/// Nodes named on the command line, or those of the Slurm job whose allocation is used, or all of the inventory.
///
/// # Errors
/// When the inventory is wrong or a name is unknown.
pub fn nodes(config: &Config, pick: &Pick) -> Result<Vec<Node>, Problem> {
    let pick = &in_job(config, pick);
    let (inventory, pick) = match inventory(config, pick)? {
        Some((inventory, whole)) => {
            let pick = pick.resolved(whole, |name| inventory.node(name).is_some())?;
            (inventory, pick)
        }
        None => {
            // Without an inventory the names on the command line, or of the job, are hosts for ~/.ssh/config to explain.
            let named = pick.resolved("the job", |_| true)?.include.join(",");
            let exclude = pick.exclude.iter().map(|list| bare(list)).collect();
            // All of them are meant: users and ports are no part of a name that could be looked up again.
            (Inventory::from_names(&named).code(USAGE)?, Pick { include: Vec::new(), exclude, job: None })
        }
    };
    let nodes = inventory.select(&pick.selection()).code(USAGE)?;
    if nodes.is_empty() {
        return Err(Problem { code: USAGE, error: anyhow!("no node is left after -w and -x") });
    }
    Ok(nodes)
}

/// The same, of the job that the options of Slurm name where nobody names nodes: no other node can have a step of it.
fn in_job(config: &Config, pick: &Pick) -> Pick {
    let (transport, options) = asked(config);
    let job = options.job.filter(|_| !pick.names() && (transport == Transport::Slurm || asks_slurm(config)));
    Pick { job: job.or_else(|| pick.job.clone()), ..pick.clone() }
}

/// The hosts of a list as an inventory of them calls them, without users; what is no list of hosts is left as it is.
fn bare(list: &str) -> String {
    let hosts = Inventory::from_names(list);
    let names = |hosts: Inventory| hosts.nodes().iter().map(|node| node.name.clone()).collect::<Vec<_>>().join(",");
    hosts.map_or_else(|_| list.to_owned(), names)
}

/// The inventory, and what it is called: of the file, or Slurm's; none where the names on the command line must do.
fn inventory(config: &Config, pick: &Pick) -> Result<Option<(Inventory, &'static str)>, Problem> {
    let file = &config.inventory.value;
    let asked = config.slurm.value.is_some() || config.transport.value == Transport::Slurm;
    if asks_slurm(config) || asked && !file.exists() {
        return Ok(Some((of_slurm()?, "Slurm")));
    }
    // Only a file that nobody named may be missing; the environment names one for whole shells, with and without nodes in it.
    let of_shell = std::env::var_os("MUSTER_INVENTORY").is_some_and(|set| std::path::Path::new(&set) == file.as_path());
    if !file.exists() && pick.names() && (of_shell || config.inventory.source == Source::Default) {
        return Ok(None);
    }
    let loaded = Inventory::load(file)
        .map_err(|why| anyhow!("{why}"))
        .context("no usable inventory; `muster demo` needs none, and assets/inventory.sample.toml is a start")
        .code(if file.exists() { CONFIG } else { IO })?;
    let left = loaded.slurm.is_some() || loaded.transport == Some(Transport::Slurm);
    if loaded.nodes().is_empty() && (left || asked) {
        return Ok(Some((of_slurm()?, "Slurm")));
    }
    if loaded.nodes().is_empty() {
        return Err(Problem { code: USAGE, error: anyhow!("{}: the inventory has no node", file.display()) });
    }
    Ok(Some((loaded, "the inventory")))
}

/// Whether the command line asks for Slurm's nodes rather than those of a file.
fn asks_slurm(config: &Config) -> bool {
    let flag = config.slurm.value.is_some() && config.slurm.source == Source::Flag;
    flag && config.inventory.source != Source::Flag
}

fn of_slurm() -> Result<Inventory, Problem> {
    slurm::scan().map_err(anyhow::Error::msg).code(IO)
}

/// Those of `nodes` that are in the partition which the command line names with Slurm's nodes; all where it names none.
///
/// # Errors
/// [`UNDECIDED`], as of a run, where none is in it; [`IO`] where Slurm does not answer.
pub fn in_partition(nodes: Vec<Node>, config: &Config) -> Result<Vec<Node>, Problem> {
    let partition =
        config.slurm.value.as_ref().filter(|_| asks_slurm(config)).and_then(|asked| asked.partition.as_ref());
    let Some(partition) = partition else { return Ok(nodes) };
    let listed = slurm::listed().map_err(anyhow::Error::msg).code(IO)?;
    within(nodes, &listed, partition)
}

fn within(mut nodes: Vec<Node>, listed: &[slurm::Listed], partition: &str) -> Result<Vec<Node>, Problem> {
    let inside = listed.iter().filter(|one| one.partitions.iter().any(|own| own == partition));
    let inside: BTreeSet<&str> = inside.map(|one| one.name.as_str()).collect();
    if !nodes.iter().any(|node| inside.contains(node.name.as_str())) {
        let all = muster_fleet::hostlist::fold(nodes.iter().map(|node| node.name.as_str()));
        return Err(Problem { code: UNDECIDED, error: anyhow!("{all}: not in Slurm's partition {partition}") });
    }
    nodes.retain(|node| inside.contains(node.name.as_str()));
    Ok(nodes)
}

/// How commands get to nodes, and how Slurm is asked: by the command line, then the inventory, then the configuration file.
pub fn ways(config: &Config) -> (Transport, slurm::Options) {
    let (transport, options) = asked(config);
    // Inside an allocation its job is the one to work in.
    let around = || std::env::var("SLURM_JOB_ID").ok().filter(|id| crate::slurm::id(id).is_ok());
    let job = options.job.clone().or_else(around);
    (transport, slurm::Options { job, ..options })
}

/// The same, whatever allocation this console is in.
fn asked(config: &Config) -> (Transport, slurm::Options) {
    let file = if asks_slurm(config) { None } else { Inventory::load(&config.inventory.value).ok() };
    let file = file.unwrap_or_default();
    let given = config.slurm.value.clone();
    let flag = given.is_some() && config.slurm.source == Source::Flag;
    let (first, second) = (given.unwrap_or_default(), file.slurm.unwrap_or_default());
    let options = if flag { first.over(second) } else { second.over(first) };
    let transport = match file.transport.unwrap_or(config.transport.value) {
        _ if flag && !options.ssh => Transport::Slurm,
        Transport::Slurm if options.ssh => Transport::Auto,
        other => other,
    };
    (transport, options)
}

/// How to connect, from the configuration.
///
/// # Errors
/// When the SSH configuration does not exist.
pub fn settings(config: &Config) -> Result<Arc<Settings>, Problem> {
    let mut settings = Settings { fan_out: config.fan_out.value, ..Settings::default() };
    settings.at_once = config.at_once.value.unwrap_or(settings.at_once);
    if let Some(file) = &config.ssh_config.value {
        if !file.exists() {
            return Err(Problem { code: IO, error: anyhow!("{}: no such file", file.display()) });
        }
        settings.ssh_config = Some(file.clone());
    }
    settings.host_key_policy = config.host_keys.value;
    settings.tell = Tell::new(|what| out::note(format_args!("{what}")));
    let (transport, options) = ways(config);
    settings.transport = transport;
    settings.slurm = (transport == Transport::Slurm).then(|| Arc::new(slurm::Launcher::new(options)));
    wait_as_told(&mut settings, &config.deadlines.value);
    Ok(Arc::new(settings))
}

/// The same for work on `nodes` that begins now: a person at the terminal is asked about their new host keys, all at once.
///
/// # Errors
/// When the SSH configuration does not exist, or a key cannot be recorded.
pub async fn settings_for(config: &Config, nodes: &[Node]) -> Result<Arc<Settings>, Problem> {
    let settings = settings(config)?;
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    // Behind a jump host that was unknown there may be more.
    for _ in 0..if asks { HOPS } else { 0 } {
        let new = muster_fleet::unknown_keys(nodes, settings.clone()).await;
        if new.is_empty() {
            break;
        }
        out::note(format_args!("no record of {}:", out::counted(new.len(), "host key", "host keys")));
        new.iter().for_each(|key| out::note(format_args!("  {key}")));
        if !out::confirmed("trust and record these keys?") {
            break;
        }
        new.iter().try_for_each(muster_fleet::NewKey::record).code(IO)?;
    }
    Ok(settings)
}

fn wait_as_told(settings: &mut Settings, deadlines: &Deadlines) {
    let mut places = [
        &mut settings.connect,
        &mut settings.banner,
        &mut settings.login,
        &mut settings.upload,
        &mut settings.start,
        &mut settings.idle,
    ];
    for (place, (_, given)) in places.iter_mut().zip(deadlines.named()) {
        if let Some(seconds) = given {
            **place = Duration::from_secs_f64(seconds);
        }
    }
    // A probe that is asked less often than it must speak would hang by definition.
    settings.ping = settings.ping.min(settings.idle / 3);
}

/// A playbook by name or file.
///
/// # Errors
/// When it does not exist or does not parse.
pub fn playbook(name: &str) -> Result<Playbook, Problem> {
    if let Some((_, text)) = builtin().iter().find(|(n, _)| *n == name) {
        return Playbook::parse(text, name).code(CONFIG);
    }
    let known: Vec<&str> = builtin().iter().map(|b| b.0).collect();
    let file = name.contains('/') || name.ends_with(".toml");
    let text = std::fs::read_to_string(name)
        .with_context(|| format!("no playbook '{name}': one of {}, or a file", known.join(", ")))
        .code(if file { IO } else { USAGE })?;
    Playbook::parse(&text, name).code(CONFIG)
}

/// A run to carry through: a new one, or an interrupted one resumed.
///
/// # Errors
/// When the store cannot keep it.
pub fn begin(job: &Job, store: &mut dyn Store, config: &Config) -> Result<(Run, Scan), Problem> {
    let names: Vec<String> = job.nodes.iter().map(|n| n.name.clone()).collect();
    let plan = plan(&job.playbook, &names);
    let (run, done) = match unfinished(job, &names, &plan, store)? {
        Some(run) => {
            let done = acknowledged(store, &run)?;
            store.begin(&run).code(IO)?;
            (run, done)
        }
        None => {
            let run = new_run(&job.playbook, names, &plan);
            store.begin(&run).code(IO)?;
            let groups = labels(&job.nodes, &config.group_by.value);
            Judging::now(store, params(config), groups).and_then(|judging| judging.keep(store, &run.id)).code(IO)?;
            (run, BTreeSet::new())
        }
    };
    let judging = Judging::of(store, &run, params(config)).code(IO)?;
    let scan = Scan {
        run: run.clone(),
        judging,
        plan,
        nodes: job.nodes.clone(),
        probe: job.probe.clone(),
        settings: job.settings.clone(),
        fabric: job.fabric.clone(),
        folder: config.db.value.clone(),
        done,
        visits: usize::from(job.visits),
        until: job.patience.map(|patience| Instant::now() + patience),
    };
    Ok((run, scan))
}

/// A name that nothing else has, such as `20261121T143000Z-cbd-1f2e`: when, what, and a few random digits.
#[must_use]
pub fn named(at_ms: u64, what: &str) -> String {
    let stamp: String = report::rfc3339(at_ms).chars().filter(char::is_ascii_alphanumeric).take(15).collect();
    format!("{stamp}-{what}-{:04x}", rand::random::<u16>())
}

fn new_run(playbook: &Playbook, nodes: Vec<String>, plan: &Plan) -> Run {
    let started_ms = clock::now_ms();
    Run {
        id: named(started_ms, &playbook.name),
        playbook: playbook.name.clone(),
        profile: playbook.profile,
        started_ms,
        ended_ms: None,
        nodes,
        plan: plan.work_names(),
        state: RunState::Running,
    }
}

fn unfinished(job: &Job, names: &[String], plan: &Plan, store: &dyn Store) -> Result<Option<Run>, Problem> {
    if job.fresh {
        return Ok(None);
    }
    let same = |run: &Run| {
        run.playbook == job.playbook.name
            && run.profile == job.playbook.profile
            && run.nodes == names
            && run.plan == plan.work_names()
    };
    let newest = store.runs().code(IO)?.into_iter().find(same);
    Ok(newest.filter(|run| run.state != RunState::Finished))
}

fn acknowledged(store: &dyn Store, run: &Run) -> Result<BTreeSet<(String, String)>, Problem> {
    Ok(store.done(&run.id).code(IO)?.into_iter().filter(|(_, work)| muster_run::is_work(work)).collect())
}

/// Runs a job with progress on standard error and judges it. The first signal cancels, the second quits.
///
/// # Errors
/// When the store fails.
pub async fn headless(job: Job, store: &mut Db, config: &Config, say: &Say) -> Result<Done, Problem> {
    let cancel = CancellationToken::new();
    let signals = Signals::default();
    let listening = signals.listen(cancel.clone());
    let heard = if say.quiet { Heard::Problems } else { Heard::Progress };
    let done = carried(&job, store, config, (heard, &cancel)).await;
    listening.abort();
    let done = done?;
    if done.state == RunState::Incomplete {
        out::note(format_args!(
            "run {} is incomplete: some nodes were lost on the way; the same command asks them again",
            done.report.run.id
        ));
    }
    database::damaged(store);
    Ok(Done { signal: signals.code(), ..done })
}

/// Runs a job and judges it, until somebody cancels it.
///
/// # Errors
/// When the store fails.
pub async fn carried(
    job: &Job,
    store: &mut Db,
    config: &Config,
    (heard, cancel): (Heard, &CancellationToken),
) -> Result<Done, Problem> {
    let (run, scan) = begin(job, store, config)?;
    if !scan.done.is_empty() && heard != Heard::Nothing {
        let recorded = out::counted(scan.done.len(), "result", "results");
        out::note(format_args!("resuming run {}: {recorded} already recorded (--new starts a new run)", run.id));
    }
    let durations = work::Durations::known(store, &run);
    let course = work::Course::new(&scan.plan, &durations, scan.settings.at_once, &scan.done);
    let mut progress = work::Progress::new(heard != Heard::Progress, course, cancel.clone());
    let mut all: [&mut dyn Observer; 1] = [&mut progress];
    let watchers = if heard == Heard::Nothing { &mut [] } else { all.as_mut_slice() };
    let (state, found) = work::scan_judged(&scan, store, watchers, cancel).await.code(IO)?;
    let report = conclude(store, &run.id, (state, found), config)?;
    Ok(Done { report, state, signal: None, verdict: progress.silence() })
}

/// Ends a run, judges it unless it is known what was `found`, and tells the incident log what a finished one found.
fn conclude(
    store: &mut Db,
    id: &str,
    (state, found): (RunState, Option<judge::Assessment>),
    config: &Config,
) -> Result<RunReport, Problem> {
    let run = ended(store, id, state)?;
    let judging = Judging::of(store, &run, params(config)).code(IO)?;
    let found = match found {
        Some(found) => found,
        None => judge::assess(&run, &store.records(&run.id).code(IO)?, &judging),
    };
    let report = weighed(store, &run, judge::report(&run, &found), config)?;
    keep_end(store, &run, &report)?;
    judge::keep_assessment(store, &run, &judging, &found);
    Ok(report)
}

/// A run as it ends now.
///
/// # Errors
/// When there is no such run or it cannot be read.
pub fn ended(store: &dyn Store, id: &str, state: RunState) -> Result<Run, Problem> {
    Ok(Run { state, ended_ms: Some(clock::now_ms()), ..run_of(store, Some(id))? })
}

/// Ends a judged run, and tells the incident log what a finished one found.
///
/// # Errors
/// When the store fails.
pub fn keep_end(store: &mut Db, run: &Run, report: &RunReport) -> Result<(), Problem> {
    let id = run.id.as_str();
    if matches!(run.state, RunState::Finished | RunState::Incomplete) {
        // Told before the end: a console that is killed in between resumes the run and tells it once more.
        let (known, works) = (store.incidents().code(IO)?, store.summaries(id).code(IO)?);
        store.record_incidents(&risk::incidents::incidents_of(run, report, &works, &known)).code(IO)?;
        risk::keep_validations(store, report, &works).code(IO)?;
        judge::keep_cards(store, run).code(IO)?;
        service::keep_failures(store, run, report).code(IO)?;
    }
    store.end(id, run.state, run.ended_ms.unwrap_or(run.started_ms)).code(IO)
}

/// Judges a run from its samples; the newest when `id` is left out.
///
/// # Errors
/// When there is no such run or it cannot be read.
pub fn report_of(store: &dyn Store, id: Option<&str>, config: &Config) -> Result<RunReport, Problem> {
    let run = &run_of(store, id)?;
    let report = judge::report_of_nodes(run, &nodes_of(store, run, config, |_| true)?).code(IO)?;
    weighed(store, run, report, config)
}

/// What is said of the nodes of `run` that are `picked`, one by one.
///
/// # Errors
/// When the run cannot be read.
pub fn nodes_of(
    store: &dyn Store,
    run: &Run,
    config: &Config,
    picked: impl Fn(&str) -> bool,
) -> Result<judge::ByNode, Problem> {
    let judging = Judging::of(store, run, params(config)).code(IO)?;
    judge::ByNode::of(store, run, &judging, picked).code(IO)
}

/// The report of a run with its alarms weighed against earlier runs.
///
/// # Errors
/// When the store cannot be read.
pub fn weighed(store: &dyn Store, run: &Run, mut report: RunReport, config: &Config) -> Result<RunReport, Problem> {
    // What is usual only ever takes an alarm back, and asking for it means judging earlier runs.
    if !report.alarms.is_empty() {
        report.weigh(&judge::usual(store, run, &params(config)).code(IO)?);
    }
    Ok(report)
}

/// Groups of nodes by their labels, such as `rack=r1,sku=h100`; empty where nothing is grouped by.
fn labels(nodes: &[Node], by: &[String]) -> BTreeMap<String, String> {
    let of = |node: &Node| {
        let label = |label: &String| format!("{label}={}", node.labels.get(label).map_or("?", String::as_str));
        (node.name.clone(), by.iter().map(label).collect::<Vec<_>>().join(","))
    };
    // A label that nobody has tells nobody apart.
    let known = |label: &String| nodes.iter().any(|node| node.labels.contains_key(label));
    if by.iter().any(known) { nodes.iter().map(of).collect() } else { BTreeMap::new() }
}

/// Groups of `names` by the labels that the configuration compares apart; a node that the inventory lacks has none.
#[must_use]
pub fn groups_in_force(config: &Config, names: &[String]) -> BTreeMap<String, String> {
    groups(config, &config.group_by.value, names, &BTreeMap::new()).unwrap_or_default()
}

/// Groups of `names` by labels of the inventory and, where it has none, by `facts` (node and key).
///
/// # Errors
/// When nothing knows a label of any node, or the inventory is wrong.
pub fn groups(
    config: &Config,
    by: &[String],
    names: &[String],
    facts: &BTreeMap<(String, String), String>,
) -> Result<BTreeMap<String, String>, Problem> {
    if by.is_empty() {
        return Ok(BTreeMap::new());
    }
    let file = &config.inventory.value;
    let known = if file.exists() { nodes(config, &Pick::default())? } else { Vec::new() };
    let known: BTreeMap<&str, &Node> = known.iter().map(|n| (n.name.as_str(), n)).collect();
    let value = |name: &String, label: &String| {
        let labelled = known.get(name.as_str()).and_then(|node| node.labels.get(label));
        labelled.or_else(|| facts.get(&(name.clone(), label.clone())))
    };
    if let Some(label) = by.iter().find(|label| names.iter().all(|name| value(name, label).is_none())) {
        let why = anyhow!("no node has a label or fact '{label}' (inventory {})", file.display());
        return Err(Problem { code: USAGE, error: why });
    }
    let group = |name: &String| {
        let part = |label: &String| format!("{label}={}", value(name, label).map_or("?", String::as_str));
        (name.clone(), by.iter().map(part).collect::<Vec<_>>().join(","))
    };
    Ok(names.iter().map(group).collect())
}

/// The run called `id`, or the newest.
///
/// # Errors
/// When there is no such run or it cannot be read.
pub fn run_of(store: &dyn Store, id: Option<&str>) -> Result<Run, Problem> {
    let run = match id {
        Some(id) => store.run(id).code(IO)?,
        None => store.runs().code(IO)?.into_iter().next(),
    };
    if let Some(run) = run {
        return Ok(run);
    }
    let what = match id {
        Some(id) => match near(id, &store.runs().code(IO)?) {
            near if near.is_empty() => format!("there is no run '{id}'; see `muster runs`"),
            near => format!("there is no run '{id}': did you mean {near}, or another of `muster runs`?"),
        },
        None => "there is no run yet".to_owned(),
    };
    Err(Problem { code: USAGE, error: anyhow!(what) })
}

/// `A or B`: the newest runs with `id` in their name, else the one that is most like it; empty where none is.
fn near(id: &str, runs: &[Run]) -> String {
    const NAMED: usize = 3;
    let part = id.to_lowercase();
    let within = runs.iter().filter(|run| !part.is_empty() && run.id.to_lowercase().contains(&part)).take(NAMED);
    let mut names: Vec<String> = within.map(|run| run.id.clone()).collect();
    if names.is_empty() {
        names.extend(nearest(id, runs.iter().map(|run| run.id.as_str())));
    }
    names.join(" or ")
}

/// Limits of the verdicts.
#[must_use]
pub fn params(config: &Config) -> muster_analysis::Params {
    muster_analysis::Params { alpha: config.alpha.value, tau: config.tau.value, ..Default::default() }
}

/// Prints the verdicts and turns them into an exit code.
///
/// # Errors
/// When standard output cannot be written.
pub fn finish(done: &Done, say: &Say) -> Ended {
    if say.json {
        out::json(&done.report)?;
    } else {
        let fold = |names: &[&str]| muster_fleet::hostlist::fold(names.iter().copied());
        out::line(report::table(&done.report, width(), &fold).trim_end())?;
    }
    Ok(match done.state {
        RunState::Finished | RunState::Incomplete => exit_code(&done.report, say.fail_on),
        RunState::Cancelled => done.signal.unwrap_or(INTERRUPTED),
        _ => UNDECIDED,
    })
}

/// Exit code of the verdicts on nodes, and on pairs of them.
#[must_use]
pub fn exit_code(report: &RunReport, fail_on: Line) -> u8 {
    exit_code_of(&report.summary, report.network.as_ref(), fail_on)
}

/// The same of how many nodes ended how, and of the pairs.
#[must_use]
pub fn exit_code_of(summary: &report::Summary, network: Option<&report::PairsReport>, fail_on: Line) -> u8 {
    let network = match network.map_or(PASS, report::PairsReport::exit_code) {
        WARN if fail_on != Line::Warn => PASS,
        UNDECIDED if fail_on == Line::Fail => PASS,
        code => code,
    };
    worse(report::exit_code(summary, fail_on.into()), network)
}

/// The graver of two exit codes: 2 before 3 before 1.
fn worse(a: u8, b: u8) -> u8 {
    [FAIL, UNDECIDED].into_iter().find(|code| [a, b].contains(code)).unwrap_or(a.max(b))
}

fn width() -> usize {
    std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(100)
}

/// The word of a state as JSON has it.
#[must_use]
pub fn word(state: &impl serde::Serialize) -> String {
    match serde_json::to_value(state) {
        Ok(serde_json::Value::String(word)) => word,
        _ => "?".to_owned(),
    }
}

/// The same from the database alone: its log, its runs, and `given` or its newest model. Curves are kept at `times`.
///
/// # Errors
/// When the database cannot be read.
pub fn stored_basis(
    store: &dyn Store,
    (names, playbook): (&[String], &Playbook),
    given: Option<(Saved, String)>,
    times: Vec<f64>,
) -> Result<Basis, Problem> {
    let kept = || risk::saved(store).map(|kept| kept.map(|(model, version)| (model, format!("model {version}"))));
    let saved = given.map_or_else(kept, |given| Ok(Some(given))).code(IO)?;
    let measured = Measured::stored(store, playbook.profile).code(IO)?;
    let log = Log::stored(store, playbook, clock::now_ms()).code(IO)?;
    Basis::new(&log, &measured, saved, (names, playbook), times).code(CONFIG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_store::Options;
    use muster_wire::Profile;

    fn said(store: &Db, id: Option<&str>) -> String {
        let problem = run_of(store, id).unwrap_err();
        assert_eq!(problem.code, USAGE);
        problem.error.to_string()
    }

    #[test]
    fn of_a_partition_its_own_nodes_are_listed_and_of_one_that_is_not_there_nothing() {
        let nodes = || Inventory::from_names("n1,n2").unwrap().nodes().to_vec();
        let one = |name: &str, partition: &str| slurm::Listed {
            name: name.to_owned(),
            partitions: vec![partition.to_owned()],
            ..slurm::Listed::default()
        };
        let listed = [one("n1", "gpu"), one("n2", "cpu"), one("n3", "gpu")];
        let names: Vec<String> = within(nodes(), &listed, "gpu").unwrap().into_iter().map(|node| node.name).collect();
        assert_eq!(names, ["n1"]);
        let problem = within(nodes(), &listed, "nope").unwrap_err();
        assert_eq!(problem.code, UNDECIDED);
        assert_eq!(problem.error.to_string(), "n[1-2]: not in Slurm's partition nope");
    }

    #[test]
    fn the_job_that_probes_are_started_in_names_the_nodes_where_nobody_else_does() {
        let missing = tempfile::tempdir().unwrap().path().join("none.toml");
        let job = |slurm: &str, pick: &Pick| {
            let flags = crate::config::Raw {
                inventory: Some(missing.clone()),
                slurm: Some(slurm::Options::parse(slurm).unwrap()),
                ..Default::default()
            };
            let path = std::path::Path::new("none");
            let mut config = crate::config::resolve(flags, crate::config::Raw::default(), path).unwrap();
            config.inventory.source = Source::Default;
            in_job(&config, pick).job
        };
        let named = Pick { include: vec!["n1".to_owned()], ..Pick::default() };
        let other = Pick { job: Some("5".to_owned()), ..Pick::default() };
        let without = Pick { exclude: vec!["n1".to_owned()], ..Pick::default() };
        for slurm in ["job=4711", "job=4711,ssh"] {
            assert_eq!(job(slurm, &Pick::default()).as_deref(), Some("4711"), "{slurm}");
            assert_eq!(job(slurm, &without).as_deref(), Some("4711"), "{slurm}");
            assert_eq!((job(slurm, &named), job(slurm, &other).as_deref()), (None, Some("5")), "{slurm}");
        }
        assert_eq!(job("partition=gpu", &Pick::default()), None);
    }

    #[test]
    fn hosts_named_with_user_and_port_need_no_inventory_and_can_be_left_out_by_either_name() {
        let file = tempfile::tempdir().unwrap().path().join("none.toml");
        let config = crate::config::resolve(
            crate::config::Raw { inventory: Some(file), ..Default::default() },
            crate::config::Raw::default(),
            std::path::Path::new("none"),
        );
        let mut config = config.unwrap();
        let one = Pick { include: vec!["n1".to_owned()], ..Pick::default() };
        assert_eq!(nodes(&config, &one).unwrap_err().code, IO, "a file that somebody named must be there");
        config.inventory.source = Source::Default;
        let named = |include: &str, exclude: &[&str]| {
            let exclude = exclude.iter().map(|list| (*list).to_owned()).collect();
            let pick = Pick { include: vec![include.to_owned()], exclude, job: None };
            let nodes = nodes(&config, &pick).map_err(|problem| problem.error.to_string())?;
            Ok::<_, String>(nodes.into_iter().map(|node| (node.name, node.user, node.port)).collect::<Vec<_>>())
        };
        let root = |name: &str| (name.to_owned(), Some("root".to_owned()), 2222);
        let list = "root@10.0.0.[1-3]:2222";
        assert_eq!(named(list, &[]).unwrap(), ["10.0.0.1:2222", "10.0.0.2:2222", "10.0.0.3:2222"].map(root));
        let left = ["10.0.0.1:2222", "10.0.0.3:2222"].map(root);
        for exclude in ["root@10.0.0.2:2222", "10.0.0.2:2222"] {
            assert_eq!(named(list, &[exclude]).unwrap(), left, "{exclude}");
        }
        assert!(named(list, &["10.0.0.9:2222"]).unwrap_err().contains("10.0.0.9:2222"));
        assert!(named("root@n1,@rack7", &[]).unwrap_err().contains("needs an inventory"));
    }

    #[test]
    fn a_run_that_is_not_there_is_64_and_those_that_were_probably_meant_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Db::open(dir.path(), &Options::default()).unwrap();
        assert_eq!(said(&store, None), "there is no run yet");
        assert_eq!(said(&store, Some("x")), "there is no run 'x'; see `muster runs`");
        for (at, id) in
            (1..).zip(["20261120T080000Z-cbd-00aa", "20261121T143000Z-cbd-1f2e", "20261121T150000Z-demo-7c01"])
        {
            let run = Run {
                id: id.to_owned(),
                playbook: "cbd".to_owned(),
                profile: Profile::Smoke,
                started_ms: at,
                ended_ms: None,
                nodes: vec!["n1".to_owned()],
                plan: Vec::new(),
                state: RunState::Running,
            };
            store.begin(&run).unwrap();
        }
        let meant = |id: &str, names: &str| {
            assert_eq!(
                said(&store, Some(id)),
                format!("there is no run '{id}': did you mean {names}, or another of `muster runs`?")
            );
        };
        meant("1F2E", "20261121T143000Z-cbd-1f2e");
        meant("cbd", "20261121T143000Z-cbd-1f2e or 20261120T080000Z-cbd-00aa");
        meant("20261121T143000Z-cdb-1f2e", "20261121T143000Z-cbd-1f2e");
        assert_eq!(said(&store, Some("nosuchrun")), "there is no run 'nosuchrun'; see `muster runs`");
        assert_eq!(run_of(&store, Some("20261120T080000Z-cbd-00aa")).unwrap().started_ms, 1);
    }
}
