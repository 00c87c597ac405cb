//! The JSON of RAS, 2.28.7 and later.

use muster_logs::stamp::Stamp;
use muster_triage::case::{Comm, CommRank, Poll, Process};
use muster_wire::{clean, limits};
use serde_json::Value;

use super::repair::repaired;
use super::{COMMS, RANK};
use crate::Bad;
use crate::bundle::{number, word};

pub(super) fn read(text: &str) -> Result<Poll, Bad> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(why) => serde_json::from_str(&repaired(text)).map_err(|_| Bad::json(1, &why))?,
    };
    let comms = value
        .get("communicators")
        .and_then(Value::as_array)
        .ok_or_else(|| Bad::format(1, "no communicators: not an answer of RAS"))?;
    Ok(Poll {
        at: value.get("timestamp").and_then(Value::as_str).and_then(Stamp::of),
        version: value.get("nccl_version").and_then(word),
        comms: comms.iter().take(COMMS).map(comm).collect(),
        ..Poll::default()
    })
}

fn comm(value: &Value) -> Comm {
    let all = |name: &str| value.get(name).and_then(Value::as_array).into_iter().flatten().take(COMMS);
    Comm {
        hash: value.get("hash").map(|hash| word(hash).unwrap_or_else(|| hash.to_string())).unwrap_or_default(),
        size: value.get("size").and_then(number).and_then(|n| u32::try_from(n).ok()),
        ranks: all("ranks").filter_map(rank).collect(),
        missing: all("missing_ranks").map(process).collect(),
        others: std::collections::BTreeMap::new(),
    }
}

fn rank(value: &Value) -> Option<CommRank> {
    let status = value.get("status");
    let is = |name: &str| {
        status
            .and_then(|status| status.get(name))
            .is_some_and(|flag| flag.as_bool().unwrap_or_else(|| number(flag).is_some_and(|n| n != 0)))
    };
    let process = process(value);
    process.rank?;
    let counts = value.get("collective_counts").and_then(Value::as_object).into_iter().flatten();
    let counts =
        counts.take(64).filter_map(|(op, n)| Some((clean(op, limits::NAME_BYTES), u64::try_from(number(n)?).ok()?)));
    Some(CommRank { process, counts: counts.collect(), failed: is("async_error") || is("abort_flag") })
}

fn process(value: &Value) -> Process {
    let whole = |name: &str| value.get(name).and_then(number).and_then(|n| u32::try_from(n).ok());
    let dead = value.get("status").and_then(|status| status.get("considered_dead")).and_then(Value::as_bool);
    Process {
        host: value.get("host").and_then(word).unwrap_or_default(),
        pid: whole("pid"),
        gpu: whole("nvml_dev").or_else(|| whole("cuda_dev")),
        rank: whole("rank").filter(|rank| *rank < RANK),
        dead: dead.unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROKEN: &str = r#"{"nccl_version": "2.28.9", "timestamp": "2026-01-09 00:23:44", "communicators": [{"hash": "0x1", "size": 3, "ranks": [
        {"rank": 0, "host": "10.0.0.1", "pid": 5, "cuda_dev": 0, "nvml_dev": 3, "status": {"init_state": 0, "async_error": 0}, "collective_counts": {"AllReduce": 7}},
        {"rank": 1057455228, "host": "10.0.0.1", "pid": 6, "collective_counts": {"AllReduce": 7}}],
        "missing_ranks": [{"rank": 2, "host": "10.0.0.2", "pid": 9, "cuda_dev": 0, "nvml_dev": 0 "status": {"unresponsive": true, "considered_dead": true}}]}]}"#;

    #[test]
    fn the_missing_comma_of_2_28_9_is_repaired_and_garbage_ranks_are_dropped() {
        let poll = read(BROKEN).unwrap();
        let comm = &poll.comms[0];
        assert_eq!((comm.ranks.len(), comm.missing.len()), (1, 1));
        assert_eq!((comm.ranks[0].process.gpu, comm.ranks[0].counts["AllReduce"]), (Some(3), 7));
        assert!(comm.missing[0].dead);
        assert_eq!(poll.at.map(|at| at.seconds(1970)), Some(1_767_918_224.0));
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        assert!(read("{}").is_err());
        assert!(read("{\"communicators\": [").is_err());
        assert!(read(&format!("{{\"communicators\": {}", "[".repeat(100_000))).is_err());
    }
}
