//! Carries through what all nodes do together, a collective or a training: ports on every node, one order for all, and what each of
//! them said into the store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use muster_fleet::Failure;
use muster_playbook::{Phase, Train};
use muster_run::Record;
use muster_store::Store;
use muster_wire::{
    Collective, CollectiveOrder, Frame, ListenOrder, Listening, Outcome, Paired, Profile, RANKS_PER_NODE, Rank,
    Request, Secret, TRAIN_DDP,
};
use tokio_util::sync::CancellationToken;

use super::mesh::{Heard, Mesh};
use super::round::{LATE, LISTEN, millis};
use super::{append, back, keep, train};
use crate::clock::now_ms;
use crate::judge::pairs::cause;
use crate::judge::pairs::kept::told;
use crate::work::link::lost_records;
use crate::work::order::Scan;
use crate::work::{Observer, Update, failure_line};

/// All ranks find each other within this.
const MEET: Duration = Duration::from_secs(10);
/// From the order to the start, beside the error of the clocks: the connections are made meanwhile.
const LEAD: Duration = Duration::from_millis(150);
/// Each size must be over within this, unless asked otherwise.
const DEADLINE: Duration = Duration::from_secs(30);
/// Connections to each neighbour.
const STREAMS: u16 = 4;

/// How much a collective does.
#[derive(Clone, Debug)]
pub(super) struct Amount {
    pub(super) sizes: Vec<u64>,
    pub(super) streams: u16,
    pub(super) duration_ms: u32,
    /// Longest that one size may take.
    pub(super) deadline: Duration,
}

impl Amount {
    /// What a profile measures.
    pub(super) fn of(profile: Profile) -> Self {
        let (sizes, duration_ms): (&[u64], _) = match profile {
            Profile::Smoke => (&[64 << 10, 1 << 20], 200),
            Profile::Quick => (&[8 << 10, 64 << 10, 1 << 20, 16 << 20], 500),
            Profile::Standard => (&[8, 8 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20], 2_000),
            Profile::Full => (&[8, 1 << 10, 8 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20], 10_000),
        };
        Self { sizes: sizes.to_vec(), streams: STREAMS, duration_ms, deadline: DEADLINE }
    }
}

/// Visits that one work may take, a port each.
const VISITS: u64 = RANKS_PER_NODE as u64;

/// What all nodes do together.
#[derive(Clone, Copy)]
pub(super) enum What<'a> {
    Collective(Collective, &'a Amount),
    Train(&'a Train, Profile),
}

impl What<'_> {
    /// Name under which its results are kept.
    fn benchmark(self) -> &'static str {
        match self {
            Self::Collective(collective, _) => collective.benchmark(),
            Self::Train(..) => TRAIN_DDP,
        }
    }

    /// Ports that each node opens.
    fn ports(self) -> u64 {
        match self {
            Self::Collective(..) => 1,
            Self::Train(train, _) => train.ranks_per_node.into(),
        }
    }

    /// All ranks find each other within this.
    fn meet(self) -> Duration {
        match self {
            Self::Collective(..) => MEET,
            Self::Train(train, _) => train.meet(),
        }
    }

    /// Longest from the start to its end.
    fn limit(self) -> Duration {
        match self {
            Self::Collective(_, amount) => MEET + amount.deadline * amount.sizes.len() as u32,
            Self::Train(train, profile) => train.limit(profile),
        }
    }
}

/// The ports that each node opened, by the visit each is for.
pub(super) type Ports = BTreeMap<(String, u64), u16>;

/// What the nodes said of what they did together.
struct Told {
    /// Names, in the order of the ring.
    ranks: Vec<String>,
    /// The same by who does it together, in the order of their ranks.
    teams: Vec<Vec<String>>,
    /// Those that were ready and had nobody to do it with.
    lone: BTreeSet<String>,
    ends: BTreeMap<String, Paired>,
    lost: BTreeMap<String, String>,
}

impl Told {
    /// Those of `asked` that said nothing, where that is most of them: the network may have been gone.
    fn silent(&self, asked: &[String]) -> BTreeSet<String> {
        let silent: BTreeSet<String> = asked.iter().filter(|name| !self.ends.contains_key(*name)).cloned().collect();
        if 2 * silent.len() > asked.len() { silent } else { BTreeSet::new() }
    }

    /// Who does it with whom, of those that are ready.
    fn group(&mut self, teams: &[BTreeSet<String>]) {
        let of = |team: &BTreeSet<String>| self.ranks.iter().filter(|name| team.contains(*name)).cloned().collect();
        let all = if teams.is_empty() { vec![self.ranks.clone()] } else { teams.iter().map(of).collect() };
        let (teams, lone): (Vec<Vec<String>>, Vec<_>) = all.into_iter().partition(|team: &Vec<String>| team.len() > 1);
        (self.ranks, self.lone) = (teams.concat(), lone.into_iter().flatten().collect());
        self.teams = teams;
    }

    /// Its place among those that it does it with.
    fn rank(&self, node: &str) -> Option<usize> {
        self.teams.iter().find_map(|team| team.iter().position(|name| name == node))
    }
}

/// Runs the collectives and the training of `phase` one after another over its nodes. Gives the nodes that were lost on the way and may come back.
///
/// # Errors
/// When the topology cannot be used or the store cannot keep a record.
pub(in crate::work) async fn phase(
    scan: &Scan,
    phase: &Phase,
    store: &mut dyn Store,
    watchers: &mut [&mut dyn Observer],
    (index, lost, cancel): (usize, &mut BTreeSet<String>, &CancellationToken),
) -> Result<BTreeSet<String>> {
    let names: Vec<String> = phase.nodes.iter().filter(|name| !lost.contains(*name)).cloned().collect();
    let amount = scan.fabric.amount(phase.profile);
    let open = open(scan, (phase, &names, &amount), store)?;
    if open.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ring = ring(scan, &names)?;
    let update =
        Update::Phase { index, step: &phase.step, nodes: names.len(), work: names.len() * open.len(), further: &[] };
    watchers.iter_mut().for_each(|watcher| watcher.see(&update));
    let (with, without) = scan.fabric.addresses(&scan.nodes, &names, &scan.settings).await;
    let mut mesh = Mesh::open(scan, &with, phase.limit.max(Duration::from_secs(24 * 3600)), watchers, cancel).await;
    let mut gone = Gone { run: &scan.run.id, reasons: without, missed: BTreeSet::new() };
    let mut kept = append(store, &gone.take(&mut mesh, lost), watchers);
    for (visit, what) in open.into_iter().enumerate() {
        if kept.is_err() || cancel.is_cancelled() {
            break;
        }
        let here = |mesh: &Mesh| ring.iter().filter(|name| mesh.has(name)).cloned().collect::<Vec<_>>();
        let asked = here(&mesh);
        let first = 2 * VISITS * visit as u64;
        let teams = if matches!(what, What::Train(..)) { &*scan.fabric.teams } else { &[] };
        let mut told = one(&mut mesh, (asked.clone(), teams), (first, what), watchers).await;
        let silent = told.silent(&asked);
        let now = back::wait(&mut mesh, &silent, &scan.nodes, watchers).await;
        if !(now.returned.is_empty() && now.there.is_disjoint(&silent)) {
            let ranks = here(&mesh);
            told = one(&mut mesh, (ranks, teams), (first + VISITS, what), watchers).await;
        }
        if cancel.is_cancelled() {
            break;
        }
        let mut records = gone.take(&mut mesh, lost);
        told.lost = gone.reasons.clone();
        let own: Vec<Record> = ring.iter().map(|name| record(&scan.run.id, name, what, &told)).collect();
        for mut own in train::by_team(own, teams) {
            cause::settle(&mut own);
            if matches!(what, What::Train(..)) {
                train::tell(&own, watchers);
            }
            records.extend(own);
        }
        kept = append(store, &records, watchers);
    }
    mesh.close(watchers).await;
    kept.map(|()| gone.missed)
}

/// What of `phase` is still to be done: what some node did not take part in, or went away from.
fn open<'a>(
    scan: &Scan,
    (phase, names, amount): (&'a Phase, &[String], &'a Amount),
    store: &dyn Store,
) -> Result<Vec<What<'a>>> {
    let collectives = phase.collectives.iter().map(|collective| What::Collective(*collective, amount));
    let planned = collectives.chain(phase.train.iter().map(|train| What::Train(train, phase.profile)));
    if scan.done.is_empty() {
        return Ok(planned.collect());
    }
    let records = store.records(&scan.run.id).context("reading back the collectives of this run")?;
    let lost = records.iter().filter(|record| told(record, cause::TROUBLE) == Some(cause::LOST));
    let owed: BTreeSet<&str> = lost.map(|record| record.work.as_str()).collect();
    let done = |name: &String, work: &str| scan.done.contains(&(name.clone(), work.to_owned()));
    let all = |work: &str| !owed.contains(work) && names.iter().all(|name| done(name, work));
    Ok(planned.filter(|what| !all(what.benchmark())).collect())
}

/// Nodes in the order of the fabric, so that the ring enters and leaves every leaf once.
fn ring(scan: &Scan, names: &[String]) -> Result<Vec<String>> {
    let topology = scan.fabric.topology(&scan.nodes, names)?;
    let mut ring = names.to_vec();
    ring.sort_by_key(|name| topology.find(name).map(|node| topology.leaf(node)));
    Ok(ring)
}

/// Nodes that cannot take part, and why.
struct Gone<'a> {
    run: &'a str,
    reasons: BTreeMap<String, String>,
    /// Those of them that may come back.
    missed: BTreeSet<String>,
}

impl Gone<'_> {
    /// Records of the links that ended since the last call.
    fn take(&mut self, mesh: &mut Mesh, lost: &mut BTreeSet<String>) -> Vec<Record> {
        let gone: Vec<(String, Failure)> = std::mem::take(&mut mesh.lost);
        let records = gone.iter().flat_map(|(node, failure)| lost_records(self.run, node, failure)).collect();
        for (node, failure) in gone {
            if mesh.is_missed(&node, &failure) {
                self.missed.insert(node.clone());
            }
            self.reasons.insert(node.clone(), failure_line(&node, &failure));
            lost.insert(node);
        }
        records
    }
}

/// One work over the nodes `ranks`, each of `teams` by itself.
async fn one(
    mesh: &mut Mesh,
    (ranks, teams): (Vec<String>, &[BTreeSet<String>]),
    (visit, what): (u64, What<'_>),
    watchers: &mut [&mut dyn Observer],
) -> Told {
    let (ends, lost) = (BTreeMap::new(), BTreeMap::new());
    let mut told = Told { ranks, teams: Vec::new(), lone: BTreeSet::new(), ends, lost };
    if told.ranks.len() < 2 {
        return told;
    }
    let (mut ports, visits) = (Ports::new(), visit..visit + what.ports());
    for name in &told.ranks {
        let Some(local) = mesh.address(name, None) else { continue };
        for visit in visits.clone() {
            let order = ListenOrder { visit, local, hold_ms: millis(LISTEN + what.meet()) };
            mesh.ask(name, Request::Listen(order)).await;
        }
    }
    let all = |ports: &Ports, name: &str| visits.clone().all(|visit| ports.contains_key(&(name.to_owned(), visit)));
    let open = |told: &Told, ports: &Ports, name: &str| all(ports, name) || told.ends.contains_key(name);
    hear(mesh, (Instant::now() + LISTEN, &visits), watchers, (&mut told, &mut ports), open).await;
    told.ranks.retain(|name| all(&ports, name) && mesh.has(name));
    told.group(teams);
    if told.teams.is_empty() {
        return told;
    }
    let start = Instant::now() + LEAD + mesh.clock_error();
    match what {
        What::Collective(collective, amount) => {
            order(mesh, &told.ranks, &ports, (visit, collective, start), amount).await;
        }
        What::Train(train, profile) => {
            for team in &told.teams {
                train::order(mesh, team, &ports, (visit, train, profile)).await;
            }
        }
    }
    let until = start + what.limit() + LATE;
    let over = |told: &Told, _: &Ports, name: &str| told.ends.contains_key(name);
    hear(mesh, (until, &visits), watchers, (&mut told, &mut ports), over).await;
    told
}

async fn order(
    mesh: &Mesh,
    names: &[String],
    ports: &Ports,
    (visit, collective, start): (u64, Collective, Instant),
    amount: &Amount,
) {
    let rank = |name: &String| {
        Some(Rank { name: name.clone(), address: mesh.address(name, None)?, port: *ports.get(&(name.clone(), visit))? })
    };
    let ranks: Vec<Rank> = names.iter().filter_map(rank).collect();
    let secret = Secret(rand::random());
    for (rank, name) in names.iter().enumerate() {
        let order = CollectiveOrder {
            visit,
            secret,
            collective,
            rank: u16::try_from(rank).unwrap_or(u16::MAX),
            ranks: ranks.clone(),
            sizes: amount.sizes.clone(),
            streams: amount.streams,
            duration_ms: amount.duration_ms,
            start_ns: mesh.on_clock_of(name, start),
            meet_ms: millis(MEET),
            limit_ms: millis(amount.deadline),
        };
        mesh.ask(name, Request::Collective(order)).await;
    }
}

/// Hears what the ranks say until each of them is settled or gone, or the time is over.
async fn hear(
    mesh: &mut Mesh,
    (until, visits): (Instant, &Range<u64>),
    watchers: &mut [&mut dyn Observer],
    (told, ports): (&mut Told, &mut Ports),
    settled: impl Fn(&Told, &Ports, &str) -> bool,
) {
    while told.ranks.iter().any(|name| mesh.has(name) && !settled(told, ports, name)) {
        match mesh.hear(Some(until), watchers).await {
            Heard::Frame(node, Frame::Listening(Listening { visit, port })) if visits.contains(&visit) => {
                ports.insert((node, visit), port);
            }
            Heard::Frame(node, Frame::Paired(paired)) if visits.contains(&paired.visit) => {
                told.ends.insert(node, paired);
            }
            Heard::Frame(..) | Heard::Lost(_) => {}
            Heard::Nothing => return,
        }
    }
}

/// What is kept of one node.
fn record(run: &str, node: &str, what: What<'_>, told: &Told) -> Record {
    let rank = told.rank(node);
    let end = told.ends.get(node).filter(|_| !told.lost.contains_key(node));
    let silent = || match rank {
        _ if told.lost.contains_key(node) => Outcome::Failed(told.lost[node].clone()),
        _ if told.teams.is_empty() => Outcome::NotRun("fewer than two nodes could take part".to_owned()),
        _ if told.lone.contains(node) => Outcome::NotRun("no other node of its team could take part".to_owned()),
        Some(_) => Outcome::Failed(format!("{node}: it did not answer")),
        None => Outcome::Failed(format!("{node}: it opened no port")),
    };
    let outcome = end.map_or_else(silent, |end| end.outcome.clone());
    let mut facts: Vec<_> =
        rank.iter().map(|rank| keep::number(keep::RANK, (*rank as u64 * what.ports()) as f64)).collect();
    match end {
        Some(end) => facts.extend(end.facts.clone()),
        None if matches!(outcome, Outcome::Failed(_)) => facts.push(keep::text(cause::TROUBLE, cause::LOST)),
        None => {}
    }
    let begun = end.filter(|end| end.started_ns > 0);
    Record {
        run: run.to_owned(),
        node: node.to_owned(),
        work: what.benchmark().to_owned(),
        outcome,
        at_ms: now_ms(),
        elapsed_ns: begun.map_or(0, |end| end.ended_ns.saturating_sub(end.started_ns)),
        series: end.map(|end| end.series.clone()).unwrap_or_default(),
        facts,
    }
}
