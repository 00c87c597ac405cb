//! NCCL Inspector's JSON lines: finished operations with the time each took.

use std::io::BufRead;

use muster_triage::case::{OPERATIONS, Timed};
use muster_wire::{clean, limits};
use serde::Deserialize;
use serde_json::Value;

use super::number;
use crate::Bad;
use crate::lines::{Limits, Lines};

/// Bytes of a line: with event traces they are long.
const LINE: usize = 1 << 20;
/// Operations that one file may add.
const EACH: usize = OPERATIONS / 8;

#[derive(Deserialize)]
struct Row {
    header: Header,
    metadata: Metadata,
    coll_perf: Option<Value>,
    p2p_perf: Option<Value>,
}

#[derive(Deserialize)]
struct Header {
    id: Value,
    rank: Value,
    n_ranks: Value,
    #[serde(default)]
    nnodes: Value,
}

#[derive(Deserialize)]
struct Metadata {
    hostname: String,
    pid: Value,
}

/// Operations of a file, with how many were not kept. Lines that are none are skipped: a job that ends leaves a torn one.
///
/// # Errors
/// When the stream breaks, a line is longer than a megabyte, or no line is one of Inspector's.
pub fn read(input: impl BufRead) -> Result<(Vec<Timed>, u64), Bad> {
    let mut lines = Lines::of(input, Limits { line: LINE, rows: usize::MAX, ..Limits::default() });
    let (mut timed, mut left_out, mut strange) = (Vec::new(), 0, 0_usize);
    while let Some((_, line)) = lines.next()? {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice::<Row>(line).ok().and_then(operation) {
            Some(_) if timed.len() >= EACH => left_out += 1,
            Some(one) => timed.push(one),
            None => strange += 1,
        }
    }
    if timed.is_empty() && strange > 0 {
        return Err(Bad::format(1, "no line is one of NCCL Inspector"));
    }
    Ok((timed, left_out))
}

fn operation(row: Row) -> Option<Timed> {
    let whole = |value: &Value| number(value).and_then(|n| u32::try_from(n).ok());
    let (perf, kind) = row
        .coll_perf
        .as_ref()
        .map(|perf| (perf, "coll"))
        .or_else(|| row.p2p_perf.as_ref().map(|perf| (perf, "p2p")))?;
    let get = |name: &str| perf.get(format!("{kind}{name}"));
    let took_us = get("_exec_time_us").and_then(Value::as_f64).filter(|took| took.is_finite() && *took > 0.0)?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), |text| clean(text, limits::NAME_BYTES));
    Some(Timed {
        comm: text(&row.header.id),
        rank: whole(&row.header.rank)?,
        ranks: whole(&row.header.n_ranks)?,
        nodes: whole(&row.header.nnodes).unwrap_or(1),
        host: clean(&row.metadata.hostname, limits::NAME_BYTES),
        pid: whole(&row.metadata.pid)?,
        op: get("").map(text).unwrap_or_default(),
        peer: if kind == "p2p" { Some(get("_peer").and_then(whole)?) } else { None },
        seq: get("_sn").and_then(number).and_then(|n| u64::try_from(n).ok())?,
        bytes: get("_msg_size_bytes").and_then(number).and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
        took_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINES: &str = r#"{"header": {"id": "0x43", "rank": 1, "n_ranks": 8, "nnodes": 1}, "metadata": {"inspector_output_format_version": "v4.0", "dump_timestamp_us": 1, "hostname": "n1", "pid": 27}, "coll_perf": {"coll": "AllReduce", "coll_sn": 26, "coll_msg_size_bytes": 4194, "coll_exec_time_us": 637, "coll_busbw_gbs": 1.2}}
{"header": {"id": "0x43", "rank": 1, "n_ranks": 8, "nnodes": 1}, "metadata": {"hostname": "n1", "pid": 27}, "p2p_perf": {"p2p": "Send", "p2p_sn": 3, "p2p_peer": 2, "p2p_msg_size_bytes": 9, "p2p_exec_time_us": 5}}
{"header": {"id": "0x43", "ra"#;

    #[test]
    fn collectives_and_transfers_are_read_and_a_torn_line_is_skipped() {
        let (timed, left_out) = read(LINES.as_bytes()).unwrap();
        assert_eq!((timed.len(), left_out), (2, 0));
        assert_eq!(
            (timed[0].op.as_str(), timed[0].seq, timed[0].took_us, timed[0].peer),
            ("AllReduce", 26, 637.0, None)
        );
        assert_eq!((timed[1].op.as_str(), timed[1].peer), ("Send", Some(2)));
        assert!(read(&b"hello\n"[..]).is_err());
    }

    proptest! {
        #[test]
        fn no_file_is_too_strange(text in r#"([\{\}\[\]":,a-z0-9_ .\n-]{0,120}|\PC{0,80})"#) {
            let _ = read(text.as_bytes());
        }
    }
}
