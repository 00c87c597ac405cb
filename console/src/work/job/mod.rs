//! What do the nodes know of a job? Asked of all of them at once; what they tell becomes a bundle.

mod bundle;
mod kept;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_fleet::{Clock, Event, EventKind, Failure, Node, Probe, Settings, Talk};
use muster_wire::{Frame, JobOrder, Request};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use bundle::{ALERTS, bundle};
pub use kept::{is_of, keep, make_room, next_to};

use crate::clock::now_ms;

/// Longest time for everything: a verdict is wanted within a minute.
const LONGEST: Duration = Duration::from_secs(54);
/// Longest look of one node, from its first frame.
const LOOK: Duration = Duration::from_secs(60);
/// Nodes whose RAS is asked: each answers for all ranks that its mesh reaches, and asking has its price.
pub const VIEWS: usize = 8;
/// Files of one node.
const FILES: usize = 8_192;

/// What one node told.
#[derive(Debug)]
pub struct Told {
    /// Which.
    pub node: Node,
    /// Where it is connected to, by the SSH configuration: a name or an address.
    pub host: String,
    /// Its files, by the names that the probe gives them.
    pub files: Vec<(String, Vec<u8>)>,
    /// How its wall clock stands to ours.
    pub clock: Option<Clock>,
    /// It spoke at all.
    pub reached: bool,
    /// Why it told nothing, or not everything.
    pub why: Option<String>,
}

/// What happens meanwhile, for whoever waits.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A node told everything.
    Done,
    /// A node could not be reached, or did not end.
    Lost(&'a str, &'a str),
}

/// One node while it is asked.
struct Asked {
    told: Told,
    /// The file whose pieces come.
    open: Option<(String, Vec<u8>)>,
    /// Gone once it told everything, which lets its probe leave.
    orders: Option<mpsc::Sender<Request>>,
    ended: bool,
}

/// Asks all nodes for what `order` says, of whom only some are to ask RAS, and waits no longer than a minute. Gives what each told, in
/// the order of `nodes`, and when that was, epoch milliseconds.
pub async fn collect(
    nodes: &[Node],
    order: &JobOrder,
    ways: (Arc<Probe>, Arc<Settings>, CancellationToken),
    say: &mut (dyn FnMut(Progress<'_>) + Send),
) -> (Vec<Told>, u64) {
    let (probe, settings, cancel) = ways;
    let cancel = cancel.child_token();
    let (sender, mut events) = mpsc::channel(256);
    let views = views(nodes.len());
    let (mut asked, mut talks) = (Vec::new(), Vec::new());
    let hosts = muster_fleet::hosts(nodes, &settings);
    for (place, node) in nodes.iter().enumerate() {
        let (orders, requests) = mpsc::channel(4);
        let order = JobOrder { ras: order.ras && views.contains(&place), ..order.clone() };
        // There is room for the first of four.
        let _ = orders.try_send(Request::Job(order));
        talks.push(Talk { node: node.clone(), orders: requests, limit: LOOK });
        let host = hosts.get(place).and_then(|host| host.clone().ok()).unwrap_or_else(|| node.host.clone());
        let told = Told { node: node.clone(), host, files: Vec::new(), clock: None, reached: false, why: None };
        asked.push(Asked { told, open: None, orders: Some(orders), ended: false });
    }
    let places: BTreeMap<&str, usize> = nodes.iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
    let fleet = tokio::spawn(muster_fleet::talk(talks, probe, settings, sender, cancel.clone()));
    let until = Instant::now() + LONGEST;
    while asked.iter().any(|one| !one.ended) {
        let event = tokio::select! {
            event = events.recv() => event,
            () = tokio::time::sleep_until(until.into()) => break,
            () = cancel.cancelled() => break,
        };
        let Some(event) = event else { break };
        if let Some(place) = places.get(event.node.as_str()) {
            asked[*place].hear(event, say);
        }
    }
    let end_ms = now_ms();
    for one in asked.iter_mut().filter(|one| !one.ended) {
        if !one.told.files.iter().any(|(name, _)| name == bundle::PROCESSES) {
            let why = format!("no end within {} s", LONGEST.as_secs());
            say(Progress::Lost(&one.told.node.name, &why));
            one.told.why = Some(why);
        }
    }
    // The verdict does not wait for probes that leave; whoever keeps the program alive lets them.
    cancel.cancel();
    let leaving = async {
        while events.recv().await.is_some() {}
        let _ = fleet.await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(4), leaving).await;
    (asked.into_iter().map(|one| one.told).collect(), end_ms)
}

/// Places of the nodes whose RAS is asked, spread evenly.
fn views(nodes: usize) -> Vec<usize> {
    let most = nodes.min(VIEWS);
    (0..most).map(|view| view * nodes / most).collect()
}

impl Asked {
    fn hear(&mut self, event: Event, say: &mut (dyn FnMut(Progress<'_>) + Send)) {
        match event.kind {
            EventKind::Frame(Frame::Hello(_)) => self.told.reached = true,
            EventKind::Frame(Frame::Chunk(chunk)) => self.take(chunk.name, &chunk.bytes, chunk.last),
            EventKind::Frame(Frame::Collected(collected)) => {
                self.told.why = collected.outcome.why().map(str::to_owned);
                self.orders = None;
            }
            EventKind::Clock(clock) => self.told.clock = Some(clock),
            EventKind::Ended(result) => self.end(result.err(), say),
            _ => {}
        }
    }

    fn take(&mut self, name: String, bytes: &[u8], last: bool) {
        if self.told.files.len() >= FILES {
            return;
        }
        // What was cut off by another file is not whole, and not kept.
        let mut open = self.open.take().filter(|(known, _)| *known == name).unwrap_or((name, Vec::new()));
        open.1.extend_from_slice(bytes);
        if last {
            self.told.files.push(open);
        } else {
            self.open = Some(open);
        }
    }

    fn end(&mut self, failure: Option<Failure>, say: &mut (dyn FnMut(Progress<'_>) + Send)) {
        self.ended = true;
        let node = &self.told.node.name;
        if self.orders.take().is_none() {
            return say(Progress::Done);
        }
        let why = failure.map_or_else(|| "the probe left before the end".to_owned(), |failure| failure.message);
        let why = why.strip_prefix(&format!("{node}: ")).map_or(why.clone(), str::to_owned);
        say(Progress::Lost(node, &why));
        self.told.why = Some(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_nodes_spread_over_all_are_asked_for_ras() {
        assert_eq!(views(3), [0, 1, 2]);
        assert_eq!(views(64), [0, 8, 16, 24, 32, 40, 48, 56]);
        assert!(views(0).is_empty());
    }

    #[test]
    fn pieces_become_files_and_what_was_cut_off_is_not_kept() {
        let told = Told {
            node: Node::default(),
            host: String::new(),
            files: Vec::new(),
            clock: None,
            reached: true,
            why: None,
        };
        let mut asked = Asked { told, open: None, orders: None, ended: false };
        asked.take("a".into(), b"12", false);
        asked.take("a".into(), b"3", true);
        asked.take("b".into(), b"x", false);
        asked.take("c".into(), b"y", true);
        assert_eq!(asked.told.files, [("a".to_owned(), b"123".to_vec()), ("c".to_owned(), b"y".to_vec())]);
    }
}
