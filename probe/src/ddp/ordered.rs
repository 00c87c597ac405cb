//! How does a node take part in a training that a console ordered? Each of its ranks is a process of its own, as in any training.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use muster_wire::limits::TEXT_BYTES;
use muster_wire::{
    BETWEEN, DIGEST, Fact, Frame, Outcome, Paired, RANKS, RANKS_PER_NODE, TRAIN_MODELS, TrainOrder, clean,
};

use super::child::{News, Rank};
use super::options::{SECRET, secret};
use super::said::{Taken, digest, series, together};
use crate::collective::{Waiting, take};
use crate::pair::{number, text};
use crate::steps::Halt;
use crate::{clock, fault};

/// How often ranks are looked at.
const TICK: Duration = Duration::from_millis(100);
/// Beyond the time in which operations must be over: the ranks ask one another first.
const LONGER: Duration = Duration::from_secs(10);

/// Nodes that are named of those that made all take another way.
const NAMED: usize = 4;

/// What a node has to say of a training.
#[derive(Default)]
struct Told {
    steps: Vec<Taken>,
    facts: Vec<Fact>,
    /// The GPUs that computed, as in the identity of metrics.
    gpus: Option<String>,
}

/// Takes part as `order` says and tells the outcome as the last thing. No rank is left running.
pub(crate) fn take_part(order: &TrainOrder, ports: &mut Vec<Waiting>, stop: &AtomicBool, say: &mut dyn FnMut(Frame)) {
    let mut told = Told::default();
    let ended = fault::caught(|| whole(order, ports, stop, &mut told)).unwrap_or_else(|why| Err(Halt::Failed(why)));
    let outcome = match ended {
        Ok(()) => Outcome::Done,
        Err(Halt::Failed(why)) => Outcome::Failed(clean(&why, TEXT_BYTES)),
        Err(Halt::NotRun(why)) => Outcome::NotRun(clean(&why, TEXT_BYTES)),
        Err(halt) => halt.into(),
    };
    let engine = told.gpus.take().unwrap_or_else(|| order.per_node.to_string());
    let series = series(&told.steps, &format!("{}-{engine}", order.model));
    let started_ns = series.first().map_or(0, |series| series.started_ns);
    let (visit, facts, ended_ns) = (order.visit, told.facts, clock::monotonic_ns());
    say(Frame::Paired(Paired { visit, outcome, started_ns, ended_ns, series, facts }));
}

fn whole(order: &TrainOrder, ports: &mut Vec<Waiting>, stop: &AtomicBool, told: &mut Told) -> Result<(), Halt> {
    check(order)?;
    let peers: Vec<SocketAddr> = order.ranks.iter().map(|rank| SocketAddr::from((rank.address, rank.port))).collect();
    let mut word = String::new();
    for byte in order.secret.0 {
        let _infallible = write!(word, "{byte:02x}");
    }
    let (post, news) = channel();
    let mut ranks = Vec::new();
    for place in 0..usize::from(order.per_node) {
        let port = take(ports, order.visit + place as u64);
        let port = port.ok_or_else(|| Halt::Failed("a port was closed before all were ready".into()))?.into_listener();
        let number = usize::from(order.first) + place;
        let command = command(order, number, &peers, &word);
        ranks.push(Rank::start(command, (number, place), port, post.clone()).map_err(Halt::Failed)?);
    }
    drop(post);
    let key = secret(&word, &peers);
    attend(order, &mut ranks, &news, (&key, &peers, stop))?;
    let steps: Vec<&[Taken]> = ranks.iter().map(|rank| rank.steps.as_slice()).collect();
    told.steps = together(&steps);
    told.facts = facts(order, &told.steps);
    told.facts.extend(ranks.first().map(|rank| match &rank.engine {
        Ok(gpus) => text("engine", gpus),
        Err(why) => text("engine", &format!("cpu: {why}")),
    }));
    told.facts.extend(ranks.first().and_then(|rank| between(order, rank)));
    told.gpus = ranks.first().and_then(|rank| rank.engine.clone().ok());
    conclude(order, &ranks, told)
}

/// The console is checked as it checks nodes.
fn check(order: &TrainOrder) -> Result<(), Halt> {
    let (per_node, first) = (usize::from(order.per_node), usize::from(order.first));
    let sound = (1..=RANKS_PER_NODE).contains(&order.per_node)
        && (2..=RANKS).contains(&order.ranks.len())
        && first + per_node <= order.ranks.len()
        && first.is_multiple_of(per_node)
        && order.ranks.len().is_multiple_of(per_node)
        && TRAIN_MODELS.contains(&order.model.as_str())
        && order.batches > 0
        && (order.steps > 0 || order.duration_ms > 0);
    if sound { Ok(()) } else { Err(Halt::Failed("the order is beyond the limits of a training".into())) }
}

/// One rank, which finds its port open and ends with this process.
fn command(order: &TrainOrder, number: usize, peers: &[SocketAddr], word: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    let seconds = |ms: u32| (f64::from(ms) / 1e3).to_string();
    let peers: Vec<String> = peers.iter().map(ToString::to_string).collect();
    command.args(["train-ddp", "--json", "--inherited", "--ras-port", "0", "--model", &order.model]);
    command.args(["--rank", &number.to_string(), "--world", &order.ranks.len().to_string()]);
    command.args(["--ranks-per-node", &order.per_node.to_string(), "--peers", &peers.join(",")]);
    command.args(["--batches", &order.batches.to_string(), "--meet", &seconds(order.meet_ms)]);
    command.args(["--timeout", &seconds(order.timeout_ms), "--between", order.between.name()]);
    if order.steps > 0 {
        command.args(["--steps", &order.steps.to_string()]);
    }
    if order.duration_ms > 0 {
        command.args(["--seconds", &seconds(order.duration_ms)]);
    }
    command.env(SECRET, word);
    command
}

/// Hears the ranks until all have ended; whoever gives no sign of life any more is ended.
fn attend(
    order: &TrainOrder,
    ranks: &mut [Rank],
    news: &Receiver<(usize, News)>,
    (key, peers, stop): (&[u8; 32], &[SocketAddr], &AtomicBool),
) -> Result<(), Halt> {
    let [meet, timeout, limit] =
        [order.meet_ms, order.timeout_ms, order.limit_ms].map(|ms| Duration::from_millis(ms.into()));
    let begun = Instant::now();
    while ranks.iter().any(|rank| rank.status.is_none()) {
        if stop.load(Ordering::Acquire) {
            return Err(Halt::Stopped);
        }
        match news.recv_timeout(TICK) {
            Ok((place, News::Line(said))) => ranks[place].take(*said),
            Ok((place, News::Over)) => ranks[place].over(),
            Err(_) => {}
        }
        for rank in ranks.iter_mut().filter(|rank| rank.status.is_none()) {
            rank.look((key, peers[rank.number]), meet, timeout + LONGER);
            if begun.elapsed() > limit {
                rank.kill(format!("was not done within {} s and was ended", limit.as_secs()));
            }
        }
    }
    Ok(())
}

/// How gradients got from node to node: `nccl-2.21`, or `tcp` and which nodes made it so, and why.
fn between(order: &TrainOrder, rank: &Rank) -> Option<Fact> {
    let way = rank.between.as_ref()?;
    let names = way.accused.iter().filter_map(|rank| order.ranks.get(*rank)).take(NAMED).map(|rank| &*rank.name);
    let mut names: Vec<&str> = names.collect();
    if way.accused.len() > NAMED {
        names.push("others");
    }
    let why = if way.why.is_empty() { String::new() } else { format!(", {}: {}", names.join(" "), way.why) };
    Some(text(BETWEEN, &format!("{}{why}", way.text)))
}

fn facts(order: &TrainOrder, steps: &[Taken]) -> Vec<Fact> {
    let mut facts = vec![
        number("ranks", order.ranks.len() as f64),
        number("steps", steps.len() as f64),
        text("model", &order.model),
    ];
    facts.extend(steps.last().map(|step| number("loss", step.loss)));
    facts
}

/// What went wrong for a rank, worst first: it was ended by a signal, did not answer, ended by itself, or was told to.
fn rank_of(kind: &str) -> usize {
    ["ended", "lost", "differs", "gone", "late", "start"].iter().position(|known| *known == kind).unwrap_or(usize::MAX)
}

/// How it ended for this node, as facts that the console can compare with those of others, and in words.
fn conclude(order: &TrainOrder, ranks: &[Rank], told: &mut Told) -> Result<(), Halt> {
    let troubles = ranks.iter().filter_map(|rank| trouble(rank).map(|(kind, why)| (rank, kind, why)));
    let Some((rank, kind, why)) = troubles.min_by_key(|(_, kind, _)| rank_of(kind)) else {
        // All ranks compared their weights in every step; the console compares what each node says came of it.
        let precision = if told.gpus.is_some() { "bf16" } else { "fp32" };
        let key = format!("{DIGEST}{}_{precision}_train_ddp", order.model);
        told.facts.push(text(&key, &format!("{:016x}", digest(&told.steps))));
        return Ok(());
    };
    let end = rank.end.as_ref();
    let accused: Vec<String> = end.iter().flat_map(|end| &end.accused).map(ToString::to_string).collect();
    told.facts.extend([text("trouble", kind), number("trouble.operation", end.map_or(0, |end| end.step) as f64)]);
    let peer = end.and_then(|end| order.ranks.get(end.peer)).map(|peer| text("trouble.peer", &peer.name));
    told.facts.extend(peer);
    if !accused.is_empty() {
        told.facts.push(text("trouble.ranks", &accused.join(" ")));
    }
    if kind == "told" { Err(Halt::NotRun(why)) } else { Err(Halt::Failed(why)) }
}

/// What went wrong for a rank, and in words.
fn trouble(rank: &Rank) -> Option<(&str, String)> {
    let number = rank.number;
    if let Some(why) = &rank.killed {
        return Some(("lost", format!("rank {number} {why}")));
    }
    if let Some(signal) = rank.signal() {
        return Some(("ended", format!("rank {number} was ended by signal {signal}")));
    }
    if rank.status.is_some_and(|status| status.success()) {
        return None;
    }
    let kind = rank.end.as_ref().map_or("ended", |end| end.trouble.as_str());
    let status = rank.status.map_or_else(|| "it cannot be waited for".to_owned(), |status| status.to_string());
    Some((kind, format!("rank {number}: {}", rank.error.clone().unwrap_or(status))))
}

#[cfg(test)]
mod tests {
    use muster_wire::{Between, Rank as Place, Secret};

    use super::*;

    #[test]
    fn every_model_of_the_contract_can_be_trained_and_other_words_are_not_ordered() {
        let names: Vec<&str> = muster_tape::Model::ALL.into_iter().map(muster_tape::Model::name).collect();
        assert!(TRAIN_MODELS.iter().all(|name| names.contains(name)), "{names:?}");
        let place = |at: u8| Place { name: format!("n{at}"), address: [127, 0, 0, at].into(), port: 1 };
        let order = TrainOrder {
            visit: 4,
            secret: Secret([1; 32]),
            first: 2,
            per_node: 2,
            ranks: (0..4).map(place).collect(),
            model: "gpt2-nano".to_owned(),
            batches: 1,
            steps: 3,
            duration_ms: 0,
            between: Between::Auto,
            meet_ms: 1,
            timeout_ms: 1,
            limit_ms: 1,
        };
        assert_eq!(check(&order), Ok(()));
        let wrong: [fn(&mut TrainOrder); 5] = [
            |order| order.model = "gpt5".to_owned(),
            |order| order.first = 1,
            |order| order.first = 4,
            |order| order.per_node = 0,
            |order| order.steps = 0,
        ];
        for change in wrong {
            let mut order = order.clone();
            change(&mut order);
            assert!(check(&order).is_err(), "{order:?}");
        }
        let mut told = Vec::new();
        take_part(&order, &mut Vec::new(), &AtomicBool::new(false), &mut |frame| told.push(frame));
        let [Frame::Paired(Paired { visit: 4, outcome: Outcome::Failed(why), .. })] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(why, "a port was closed before all were ready");
    }
}
