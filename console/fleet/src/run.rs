//! Who is worked on? Every node of the fleet, in the order given; within a node one work after another.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use muster_wire::Request;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::context::{Reporter, Shared};
use crate::event::{Event, Talk, Work};
use crate::exec::Output;
use crate::inventory::Node;
use crate::link::{Failure, FailureKind, Phase};
use crate::permit::Permits;
use crate::pipe::{Exit, Heard};
use crate::probe::Probe;
use crate::roll::Roll;
use crate::route::Route;
use crate::settings::Settings;
use crate::worker::Worker;
use crate::{script, upload};

/// Does every work and tells `events` about it: states and frames as they come, and exactly one
/// [`EventKind::Ended`](crate::EventKind::Ended) for every work. Nodes get their turn, and works of one node run over one
/// connection, in the order given. A node that is lost on the way is waited for. Returns when all have ended; after `cancel` within a few seconds,
/// with the remote processes killed. A receiver that was dropped counts as cancelled.
pub async fn run(
    works: Vec<Work>,
    probe: Arc<Probe>,
    settings: Arc<Settings>,
    events: mpsc::Sender<Event>,
    cancel: CancellationToken,
) {
    let groups = by_node(works);
    let nodes: Vec<&str> = groups.iter().flat_map(|works| works.first()).map(|work| work.node.name.as_str()).collect();
    probe.pack_beside();
    let shared = tokio::select! {
        shared = Shared::on(&nodes, Some(&probe), settings.clone()) => shared,
        () = cancel.cancelled() => Shared::new(settings),
    };
    let (permits, roll) = (Permits::new(&shared.settings), Arc::new(Roll::new(groups.len())));
    let mut tasks = JoinSet::new();
    for works in groups {
        let name = works.first().map(|work| work.node.name.as_str()).unwrap_or_default();
        let report = Reporter::new(name, events.clone());
        let (probe, shared, cancel) = (probe.clone(), shared.clone(), cancel.clone());
        let worker = Worker { report, probe, shared, cancel, permits: permits.clone() };
        // Waiting here keeps the order given.
        let permit = permits.take(works.iter().any(Work::measures)).await;
        let roll = roll.clone();
        tasks.spawn(async move {
            worker.all(works, permit, &roll).await;
            roll.done();
        });
    }
    tasks.join_all().await;
}

/// Opens every talk, at most a window of them at the same time, and passes orders on until their senders are gone, which
/// ends the probe. Tells `events` what [`run`] tells; returns when all have ended.
pub async fn talk(
    talks: Vec<Talk>,
    probe: Arc<Probe>,
    settings: Arc<Settings>,
    events: mpsc::Sender<Event>,
    cancel: CancellationToken,
) {
    let nodes: Vec<&str> = talks.iter().map(|talk| talk.node.name.as_str()).collect();
    probe.pack_beside();
    let shared = tokio::select! {
        shared = Shared::on(&nodes, Some(&probe), settings.clone()) => shared,
        () = cancel.cancelled() => Shared::new(settings),
    };
    let permits = Permits::new(&shared.settings);
    let mut tasks = JoinSet::new();
    for Talk { node, orders, limit } in talks {
        let report = Reporter::new(&node.name, events.clone());
        let (probe, shared, cancel) = (probe.clone(), shared.clone(), cancel.clone());
        let worker = Worker { report, probe, shared, cancel, permits: permits.clone() };
        let permit = permits.take(false).await;
        let work = Work::new(node, Request::Ping { nonce: 0 }, limit);
        tasks.spawn(async move { worker.talk(&work, permit, orders).await });
    }
    tasks.join_all().await;
}

/// Runs one shell command on every node, within the window; in the order of `nodes`.
pub async fn command(
    nodes: &[Node],
    command: &str,
    limit: Duration,
    settings: Arc<Settings>,
) -> Vec<(String, Result<Output, Failure>)> {
    let command: Arc<str> = command.into();
    each(nodes, settings, move |node, shared| {
        let command = command.clone();
        async move {
            let link = Route::to(&node, &shared).await?;
            link.run(&node.name, &command, limit).await
        }
    })
    .await
}

/// Installs `probe` on every node and starts it with one argument; gives what it wrote after that.
pub async fn push(
    nodes: &[Node],
    probe: Arc<Probe>,
    argument: &'static str,
    settings: Arc<Settings>,
) -> Vec<(String, Result<Output, Failure>)> {
    each(nodes, settings, move |node, shared| {
        let probe = probe.clone();
        async move { push_one(&node, &probe, argument, &shared).await }
    })
    .await
}

async fn push_one(node: &Node, probe: &Probe, argument: &str, shared: &Arc<Shared>) -> Result<Output, Failure> {
    let link = Route::to(node, shared).await?;
    let word = script::word();
    let line = script::install(&word, probe, &shared.settings.scratch, argument, link.seed());
    let mut pipe = link.exec(&node.name, &line, shared.settings.start).await?;
    let broke = |e: russh::Error| {
        Failure::new(&node.name, Phase::Start, FailureKind::LinkLost, format!("the connection broke: {e}"))
    };
    let report = Reporter::silent(&node.name);
    let started = upload::install(&mut pipe, &word, probe, (shared, &mut None), &report).await?;
    pipe.write.eof().await.map_err(broke)?;
    let mut output = Output { stdout: started.rest, ..Output::default() };
    loop {
        match pipe.hear().await {
            Heard::Data(data) => output.stdout.extend_from_slice(&data),
            Heard::Taken | Heard::Other => {}
            Heard::Closed => break,
            Heard::Lost => return Err(pipe.lost(Phase::Run)),
        }
    }
    if let Some(Exit::Status(status)) = pipe.exit {
        output.status = Some(status);
    }
    Ok(output)
}

/// Does `task` on every node within the window.
pub(crate) async fn each<T, F, D>(nodes: &[Node], settings: Arc<Settings>, task: D) -> Vec<(String, Result<T, Failure>)>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
    D: Fn(Node, Arc<Shared>) -> F,
{
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    let shared = Shared::on(&names, None, settings).await;
    let window = Arc::new(Semaphore::new(shared.settings.fan_out.max(1)));
    let mut tasks = JoinSet::new();
    for (place, node) in nodes.iter().enumerate() {
        let turn = window.clone().acquire_owned().await;
        let name = node.name.clone();
        let work = task(node.clone(), shared.clone());
        tasks.spawn(async move {
            let _turn = turn;
            (place, name, work.await)
        });
    }
    let mut done = tasks.join_all().await;
    done.sort_by_key(|(place, ..)| *place);
    done.into_iter().map(|(_, name, result)| (name, result)).collect()
}

fn by_node(works: Vec<Work>) -> Vec<Vec<Work>> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<Vec<Work>> = Vec::new();
    for work in works {
        let place = *places.entry(work.node.name.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        if let Some(group) = groups.get_mut(place) {
            group.push(work);
        }
    }
    groups
}
