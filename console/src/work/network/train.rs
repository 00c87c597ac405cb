//! A training over all nodes: what is ordered, and what is said once it is over.

use std::collections::BTreeSet;

use muster_analysis::records::digests::digest;
use muster_playbook::{Length, Train};
use muster_run::Record;
use muster_wire::{BETWEEN, DIGEST, Datum, Profile, Rank, Reading, Request, Secret, TRAIN_DDP, TrainOrder};

use super::mesh::Mesh;
use super::round::millis;
use super::together::Ports;
use crate::work::{Observer, Update};

/// Orders the training on the nodes called `names`, in this order; each opened a port for each of its ranks.
pub(super) async fn order(
    mesh: &Mesh,
    names: &[String],
    ports: &Ports,
    (visit, train, profile): (u64, &Train, Profile),
) {
    let per_node = train.ranks_per_node;
    let one = |(name, place): (&String, u16)| {
        let port = *ports.get(&(name.clone(), visit + u64::from(place)))?;
        Some(Rank { name: name.clone(), address: mesh.address(name, None)?, port })
    };
    let ranks: Vec<Rank> =
        names.iter().flat_map(|name| (0..per_node).filter_map(move |place| one((name, place)))).collect();
    let (steps, duration_ms) = match train.length(profile) {
        Length::Steps(steps) => (steps, 0),
        Length::Time(time) => (0, millis(time)),
    };
    let order = TrainOrder {
        visit,
        secret: Secret(rand::random()),
        first: 0,
        per_node,
        ranks,
        model: train.model(profile).to_owned(),
        batches: train.batches(profile),
        steps,
        duration_ms,
        between: train.between,
        meet_ms: millis(train.meet()),
        timeout_ms: millis(train.timeout(profile)),
        limit_ms: millis(train.limit(profile)),
    };
    for (place, name) in names.iter().enumerate() {
        let first = u16::try_from(place * usize::from(per_node)).unwrap_or(u16::MAX);
        mesh.ask(name, Request::Train(TrainOrder { first, ..order.clone() })).await;
    }
}

/// The records of each team by themselves, all together where there are none. Teams of different size end with different weights, so
/// each has a digest of its own.
pub(super) fn by_team(records: Vec<Record>, teams: &[BTreeSet<String>]) -> Vec<Vec<Record>> {
    if teams.is_empty() {
        return vec![records];
    }
    let own = |(number, team): (usize, &BTreeSet<String>)| {
        let mut own: Vec<Record> = records.iter().filter(|record| team.contains(&record.node)).cloned().collect();
        for fact in own.iter_mut().flat_map(|record| &mut record.facts).filter(|fact| fact.key.starts_with(DIGEST)) {
            fact.key = format!("{}_team{}", fact.key, number + 1);
        }
        own
    };
    teams.iter().enumerate().map(own).collect()
}

/// Says what came of it: the digest that all nodes share, or why it ended.
pub(super) fn tell(records: &[Record], watchers: &mut [&mut dyn Observer]) {
    let said = said(records);
    watchers.iter_mut().for_each(|watcher| watcher.see(&Update::Together(&said)));
}

fn said(records: &[Record]) -> String {
    if let Some(why) = records.iter().find_map(|record| record.outcome.why()) {
        return format!("{TRAIN_DDP}: not to its end: {why}");
    }
    let digests: Vec<&str> = records.iter().filter_map(digest).collect();
    let Some(first) = digests.first() else { return format!("{TRAIN_DDP}: no node took part") };
    let nodes = crate::out::counted(records.len(), "node", "nodes");
    if digests.len() < records.len() || digests.iter().any(|digest| digest != first) {
        return format!("{TRAIN_DDP}: {nodes} do not agree on the weights that they ended with");
    }
    let way = records.iter().find_map(between).map(|way| format!("; gradients from node to node by {way}"));
    format!("{TRAIN_DDP}: the same weights on {nodes} after every step, digest {first}{}", way.unwrap_or_default())
}

/// By which way GPUs of several nodes summed, and which nodes made it a slower one.
fn between(record: &Record) -> Option<String> {
    let fact = record.facts.iter().find(|fact| fact.key == BETWEEN)?;
    match &fact.reading {
        Reading::Value(Datum::Text(way)) => Some(way.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use muster_wire::Outcome;

    use super::super::keep;
    use super::*;

    fn record(node: &str, digest: &str, outcome: Outcome) -> Record {
        Record {
            run: "r".into(),
            node: node.into(),
            work: TRAIN_DDP.into(),
            outcome,
            at_ms: 0,
            elapsed_ns: 0,
            series: Vec::new(),
            facts: vec![keep::text(&format!("{DIGEST}x"), digest)],
        }
    }

    #[test]
    fn the_digest_of_a_training_is_told_where_all_nodes_share_it() {
        let of = |digest: &str, outcome| said(&[record("n1", "aa", Outcome::Done), record("n2", digest, outcome)]);
        assert_eq!(of("aa", Outcome::Done), "train-ddp: the same weights on 2 nodes after every step, digest aa");
        assert!(of("ab", Outcome::Done).contains("do not agree"));
        assert_eq!(of("aa", Outcome::Failed("n2: gone".into())), "train-ddp: not to its end: n2: gone");
        assert!(said(&[]).contains("no node"));
        let mut on_gpus = record("n1", "aa", Outcome::Done);
        on_gpus.facts.push(keep::text(BETWEEN, "tcp, n3: no libnccl.so.2 on this node"));
        assert!(said(&[on_gpus]).ends_with("gradients from node to node by tcp, n3: no libnccl.so.2 on this node"));
    }

    #[test]
    fn teams_that_end_with_other_weights_do_not_disagree_with_each_other() {
        let records = vec![record("n1", "aa", Outcome::Done), record("n2", "ab", Outcome::Done)];
        let teams = ["n2", "n1"].map(|name| BTreeSet::from([name.to_owned()]));
        let keys: Vec<String> =
            by_team(records.clone(), &teams).concat().into_iter().map(|record| record.facts[0].key.clone()).collect();
        assert_eq!(keys, ["digest.x_team1", "digest.x_team2"]);
        assert_eq!(by_team(records.clone(), &[]), [records]);
    }
}
