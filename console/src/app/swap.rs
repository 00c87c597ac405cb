//! In whose hands the nodes are, and how the screen puts them into others: by the code of `muster swap`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use muster_analysis::Params;
use muster_analysis::service::{Marked, Service};
use muster_fleet::{Node, hostlist};
use muster_store::Db;
use muster_tui::Hand;
use muster_wire::Level;

use super::App;
use super::run::{Going, Returned};
use crate::config::Config;
use crate::service;
use crate::session;
use crate::views::{self, Board, Labelled};

/// Reads in whose hands the nodes are; clones take turns.
#[derive(Clone, Debug)]
pub(super) struct Hands {
    board: Board,
    config: Config,
    nodes: Arc<[Labelled]>,
    /// Held while somebody reads, so that a slow reader never replaces what a later one has found.
    reading: Arc<Mutex<()>>,
}

impl Hands {
    /// Of the nodes called `names`, with the labels of `known`.
    pub(super) fn new(board: &Board, config: &Config, names: &[String], known: &[Node]) -> Self {
        let known: HashMap<&str, &Node> = known.iter().map(|node| (node.name.as_str(), node)).collect();
        let labels = |name: &String| known.get(name.as_str()).map(|node| node.labels.clone()).unwrap_or_default();
        let nodes = names.iter().map(|name| (name.clone(), labels(name))).collect();
        Self { board: board.clone(), config: config.clone(), nodes, reading: Arc::default() }
    }

    /// Reads it beside whatever goes on, and shows it.
    pub(super) fn begin(&self) {
        let hands = self.clone();
        std::thread::spawn(move || {
            // A large fleet takes seconds. Where that is not allowed it reads as fast as everything else.
            let _ = rustix::process::nice(10);
            hands.read();
        });
    }

    /// Reads and shows it.
    pub(super) fn read(&self) {
        let _turn = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let params = session::params(&self.config);
        let store = Db::open_read_only(&self.config.db.value).map_err(Into::into);
        match store.and_then(|store| views::hands(&store, &params, &self.nodes)) {
            Ok(hands) => self.board.hands(hands),
            Err(why) => self
                .board
                .say(Level::Warn, format!("cannot read which nodes are in repair or in the hot buffer: {why:#}")),
        }
    }

    fn labelled(&self, names: &[String]) -> Vec<Labelled> {
        let names: HashSet<&String> = names.iter().collect();
        self.nodes.iter().filter(|(name, _)| names.contains(name)).cloned().collect()
    }
}

impl App {
    /// Puts nodes into other hands.
    pub(super) fn swap(&mut self, hand: Hand, names: &[String], reason: &str) {
        if self.read_only {
            return self.board.say(Level::Warn, "--read-only forbids changing where a node stands");
        }
        let nodes = self.hands.labelled(names);
        if nodes.is_empty() {
            return self.board.say(Level::Warn, "none of these nodes is in the inventory");
        }
        match hand {
            Hand::Repair => self.put((Marked::InRepair, Service::InRepair), &nodes, reason),
            Hand::Replace => self.replace(&nodes, reason),
            Hand::Spare => self.put((Marked::HotBuffer, Service::HotBuffer), &nodes, reason),
            Hand::Return => self.give_back(nodes, reason),
        }
    }

    fn put(&mut self, (mark, state): (Marked, Service), nodes: &[Labelled], reason: &str) {
        let names: Vec<String> = nodes.iter().map(|(name, _)| name.clone()).collect();
        let Some(store) = &mut self.store else { return self.busy() };
        match tokio::task::block_in_place(|| service::put(store, &names, mark, reason)) {
            Ok(None) => {
                self.board.say(Level::Info, format!("{}: {}", folded(&names), state.title()));
                self.hands.begin();
            }
            Ok(Some(why)) => self.board.say(Level::Warn, why),
            Err(why) => self.problem(&why),
        }
    }

    /// Which spares there are is read of the whole fleet.
    fn replace(&mut self, nodes: &[Labelled], reason: &str) {
        let names: Vec<String> = nodes.iter().map(|(name, _)| name.clone()).collect();
        let (all, reason) = (Arc::clone(&self.hands.nodes), reason.to_owned());
        self.aside(format!("looking for spares for {}", folded(&names)), move |store, params| {
            exchanged(store, params, (&all, &names), &reason)
        });
    }

    fn give_back(&mut self, nodes: Vec<Labelled>, reason: &str) {
        let names: Vec<String> = nodes.iter().map(|(name, _)| name.clone()).collect();
        let reason = reason.to_owned();
        self.aside(format!("reading what the runs say of {}", folded(&names)), move |store, params| {
            given_back(store, params, &nodes, &reason)
        });
    }

    /// Judging runs takes its time, and the screen goes on meanwhile.
    fn aside(&mut self, what: String, work: impl FnOnce(&mut Db, &Params) -> Result<(Level, String)> + Send + 'static) {
        let Some(mut store) = self.store.take() else { return self.busy() };
        self.board.say(Level::Info, what);
        let params = session::params(&self.config);
        let ends = tokio::task::spawn_blocking(move || {
            let said = work(&mut store, &params).unwrap_or_else(|why| (Level::Error, format!("{why:#}")));
            Returned { store: Some(store), said: Some(said) }
        });
        let ends = Box::pin(async move { ends.await.unwrap_or(Returned { store: None, said: None }) });
        self.going = Some(Going::reading(ends));
    }
}

/// Puts nodes into repair and into service the spares that are listed for them among `all`; what came of it in one sentence.
fn exchanged(
    store: &mut Db,
    params: &Params,
    (all, names): (&[Labelled], &[String]),
    reason: &str,
) -> Result<(Level, String)> {
    let all = service::standings(&*store, params, all)?;
    let (mut out, mut spares, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for one in service::replace_listed(store, params, &all, names, reason)? {
        match one.by {
            Ok(spare) => {
                out.push(one.node);
                spares.push(spare);
            }
            Err(why) => refused.push(format!("{}: not replaced: {why}", one.node)),
        }
    }
    let done = format!("{}: {}, replaced by {}", folded(&out), Service::InRepair.title(), folded(&spares));
    Ok(match refused.as_slice() {
        [] => (Level::Info, done),
        [first, more @ ..] => {
            let done = if out.is_empty() { String::new() } else { format!("{done}; ") };
            let more = if more.is_empty() { String::new() } else { format!("; {} more not replaced", more.len()) };
            (Level::Warn, format!("{done}{first}{more}"))
        }
    })
}

/// Gives nodes back that nothing speaks against; what came of it in one sentence.
fn given_back(store: &mut Db, params: &Params, nodes: &[Labelled], reason: &str) -> Result<(Level, String)> {
    let (mut back, mut refused) = (Vec::new(), Vec::new());
    for standing in service::standings(&*store, params, nodes)? {
        let why = service::give_back(store, params, &standing, reason)?;
        let name = standing.machine.name;
        if why.is_empty() {
            back.push(name);
        } else {
            let why: Vec<String> = why.into_iter().map(|refusal| refusal.why).collect();
            refused.push((name, why.join("; ")));
        }
    }
    Ok(match refused.as_slice() {
        [] => (Level::Info, format!("{}: {}", folded(&back), Service::InService.title())),
        [(node, why)] if back.is_empty() => (Level::Warn, format!("{node}: not given back: {why}")),
        some => {
            let names: Vec<String> = some.iter().map(|(node, _)| node.clone()).collect();
            let (given, all) = (back.len(), back.len() + some.len());
            let names = folded(&names);
            (
                Level::Warn,
                format!("{given} of {all} nodes given back; not {names}: the screen Node lists what each still needs"),
            )
        }
    })
}

fn folded(names: &[String]) -> String {
    hostlist::fold(names.iter().map(String::as_str))
}
