//! `job.json`: who runs where.
//!
//! Nodes may be names or `{node, ip, ranks}`, ranks `{rank, node, pid, local_rank, gpu}`; everything is optional.

use muster_triage::case::{Job, Member};
use serde_json::Value;

use super::{number, word};
use crate::Bad;

/// Most ranks of a job.
const RANKS: usize = 1 << 20;

/// Reads it.
///
/// # Errors
/// When it is no JSON object.
pub fn read(text: &str) -> Result<Job, Bad> {
    let value: Value = serde_json::from_str(text).map_err(|why| Bad::json(1, &why))?;
    let object = value.as_object().ok_or_else(|| Bad::format(1, "an object is expected"))?;
    let mut job = Job {
        id: object.get("job").and_then(|id| word(id).or_else(|| number(id).map(|id| id.to_string()))),
        start_s: object.get("start_s").and_then(Value::as_f64).filter(|at| at.is_finite()),
        world_size: object.get("world_size").and_then(number).and_then(|n| u32::try_from(n).ok()),
        ..Job::default()
    };
    for node in object.get("nodes").and_then(Value::as_array).into_iter().flatten().take(RANKS) {
        add_node(&mut job, node);
    }
    for rank in object.get("ranks").and_then(Value::as_array).into_iter().flatten().take(RANKS) {
        add_rank(&mut job, rank);
    }
    job.members.sort_by_key(|member| member.rank);
    job.members.dedup_by_key(|member| member.rank);
    Ok(job)
}

fn add_node(job: &mut Job, node: &Value) {
    let Some(name) = word(node).or_else(|| ["node", "name", "host"].iter().find_map(|key| word(node.get(key)?))) else {
        return;
    };
    for key in ["ip", "address", "addr", "hostname"] {
        let one = node.get(key);
        let all = one.into_iter().flat_map(|value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]));
        job.aliases.extend(all.filter_map(|alias| Some((word(&alias)?, name.clone()))));
    }
    let ranks = node.get("ranks").and_then(Value::as_array).into_iter().flatten().take(RANKS);
    for (place, rank) in ranks.filter_map(|rank| u32::try_from(number(rank)?).ok()).enumerate() {
        job.members.push(Member { rank, node: Some(name.clone()), pid: None, gpu: Some(place as u32) });
    }
    job.aliases.insert(name.clone(), name.clone());
    job.nodes.push(name);
}

fn add_rank(job: &mut Job, rank: &Value) {
    let get = |key: &str| rank.get(key).and_then(number).and_then(|n| u32::try_from(n).ok());
    let Some(nr) = get("rank").or_else(|| number(rank).and_then(|n| u32::try_from(n).ok())) else { return };
    let node = rank.get("node").or_else(|| rank.get("host")).and_then(word);
    let member = Member { rank: nr, node, pid: get("pid"), gpu: get("gpu").or_else(|| get("local_rank")) };
    // What is told of each rank is more than what is told of its node.
    job.members.retain(|known| known.rank != nr || member.node.is_none());
    job.members.push(member);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_may_be_mixed() {
        let by_node = read(r#"{"job": 7, "nodes": [{"node": "a", "ip": "10.0.0.1", "ranks": [2, 3]}, "b"]}"#).unwrap();
        assert_eq!(by_node.members.iter().map(|m| (m.rank, m.gpu)).collect::<Vec<_>>(), [(2, Some(0)), (3, Some(1))]);
        assert_eq!(by_node.aliases["10.0.0.1"], "a");
        let by_rank =
            read(r#"{"nodes": ["a"], "ranks": [{"rank": "1", "node": "a", "pid": 5, "local_rank": 1}]}"#).unwrap();
        assert_eq!(by_rank.members[0], Member { rank: 1, node: Some("a".into()), pid: Some(5), gpu: Some(1) });
        assert!(read("[]").is_err());
    }
}
