//! PyTorch's flight recorder: a dump as pickle or JSON, of any version since 2.4.
//!
//! Numbers may be text, absent ones None, null, 0 or -1; `nccl_version` or `comm_lib_version`; stacks are skipped.

use muster_triage::case::{Config, Dump, Entry, State, Status};
use muster_wire::{clean, limits};
use serde_json::Value;

use super::{last_number, number, pickle};
use crate::Bad;

/// Latest entries that are kept of a dump.
const ENTRIES: usize = 4096;
/// Bytes of sizes or types that are kept.
const SIZES: usize = 200;

/// Reads one by its file's name, which ends in the rank. A file that is neither pickle nor JSON, such as a note beside the dumps, is `None`.
///
/// # Errors
/// When it is a dump that cannot be read, or nothing says of which rank.
pub fn read(file: &str, bytes: &[u8]) -> Result<Option<Dump>, Bad> {
    let stem = file
        .strip_suffix(".json")
        .or_else(|| file.strip_suffix(".pkl"))
        .or_else(|| file.strip_suffix(".pickle"))
        .unwrap_or(file);
    let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) else {
        // A dump that was begun and not written is as good as none.
        return Ok(None);
    };
    let json = *first == b'{';
    let looks = json || *first == 0x80 || bytes.starts_with(b"(d");
    if !looks {
        let noted = [".log", ".txt", ".md"].iter().any(|ending| file.ends_with(ending)) || file == "truth.json";
        return if noted { Ok(None) } else { Err(Bad::format(1, "neither a pickle nor JSON")) };
    }
    let value: Value = if json {
        serde_json::from_slice(bytes).map_err(|why| Bad::json(1, &why))?
    } else {
        pickle::read(bytes).map_err(|why| Bad::format(1, why.to_string()))?
    };
    if value.get("entries").is_none() && value.get("pg_status").is_none() {
        return if json {
            Ok(None)
        } else {
            Err(Bad::format(1, "no entries and no pg_status: not a flight recorder's"))
        };
    }
    let rank =
        value.get("rank").and_then(number).and_then(|rank| u32::try_from(rank).ok()).or_else(|| last_number(stem));
    let rank = rank.ok_or_else(|| Bad::format(1, "the file's name does not end in a rank"))?;
    Ok(Some(dump(rank, &value)))
}

fn dump(rank: u32, value: &Value) -> Dump {
    let entries = value.get("entries").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let skipped = entries.len().saturating_sub(ENTRIES);
    let objects = |name: &str| value.get(name).and_then(Value::as_object).into_iter().flatten().take(ENTRIES);
    let key = |name: &String| clean(name, limits::NAME_BYTES);
    Dump {
        rank,
        groups: objects("pg_config").filter_map(|(name, config)| group(&key(name), config)).collect(),
        status: objects("pg_status").map(|(slot, counts)| (key(slot), status(counts))).collect(),
        entries: entries.iter().skip(skipped).filter_map(entry).collect(),
        left_out: skipped as u64,
    }
}

fn group(name: &str, config: &Value) -> Option<(String, Config)> {
    let name = config
        .get("name")
        .and_then(Value::as_str)
        .map_or_else(|| name.to_owned(), |name| clean(name, limits::NAME_BYTES));
    let desc =
        config.get("desc").and_then(Value::as_str).map(|desc| clean(desc, limits::NAME_BYTES)).unwrap_or_default();
    let ranks = match config.get("ranks")? {
        Value::String(text) => {
            text.trim_matches(['[', ']']).split(',').filter_map(|rank| rank.trim().parse().ok()).collect()
        }
        Value::Array(ranks) => ranks.iter().filter_map(|rank| u32::try_from(number(rank)?).ok()).collect(),
        _ => Vec::new(),
    };
    Some((name, Config { desc, ranks }))
}

fn status(counts: &Value) -> Status {
    // -1 is "never", and so is nothing at all.
    let get = |name: &str| counts.get(name).and_then(number).and_then(|n| u64::try_from(n).ok());
    Status {
        enqueued: get("last_enqueued_collective"),
        started: get("last_started_collective"),
        completed: get("last_completed_collective"),
    }
}

fn entry(entry: &Value) -> Option<Entry> {
    let get = |name: &str| entry.get(name);
    let text =
        |name: &str| get(name).and_then(Value::as_str).map(|text| clean(text, limits::NAME_BYTES)).unwrap_or_default();
    let words = |name: &str| get(name).map(short).unwrap_or_default();
    let group = get("process_group").and_then(Value::as_array);
    let of_group = |at: usize| {
        group
            .and_then(|group| group.get(at))
            .map(|part| part.as_str().map_or_else(|| part.to_string(), |text| clean(text, limits::NAME_BYTES)))
    };
    let slot = get("pg_id").and_then(number).map(|slot| slot.to_string()).unwrap_or_default();
    let at = |name: &str| get(name).and_then(number).filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9);
    let op = text("profiling_name");
    let p2p = get("is_p2p").and_then(Value::as_bool).unwrap_or_else(|| op.contains(":send") || op.contains(":recv"));
    let seq = get("collective_seq_id").or_else(|| get("seq_id")).and_then(number)?;
    Some(Entry {
        group: of_group(0).unwrap_or_else(|| slot.clone()),
        desc: of_group(1).unwrap_or_default(),
        slot,
        seq: u64::try_from(seq).ok()?,
        op,
        p2p,
        created_s: at("time_created_ns"),
        completed_s: at("time_discovered_completed_ns"),
        inputs: words("input_sizes"),
        outputs: words("output_sizes"),
        dtypes: words("input_dtypes"),
        state: match get("state").and_then(Value::as_str) {
            Some("completed") => State::Completed,
            Some("started") => State::Started,
            _ => State::Scheduled,
        },
        retired: get("retired").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn short(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    clean(&text, SIZES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DUMP: &str = r#"{"version": "2.9", "comm_lib_version": "2.30.7",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}},
        "pg_status": {"0": {"last_enqueued_collective": "2349", "last_started_collective": "-1", "last_completed_collective": null}},
        "entries": [{"pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": "9385", "profiling_name": "nccl:all_reduce",
          "time_created_ns": 1767795699879947776, "input_sizes": [[4]], "input_dtypes": ["BFloat16"], "state": "started", "retired": false, "is_p2p": false}]}"#;

    #[test]
    fn numbers_as_text_and_absent_ones_are_read() {
        let dump = read("nccl_trace_rank_19.json", DUMP.as_bytes()).unwrap().unwrap();
        assert_eq!(dump.rank, 19);
        assert_eq!(dump.groups["0"].ranks, [0, 1, 2]);
        assert_eq!(dump.status["0"], Status { enqueued: Some(2349), started: None, completed: None });
        assert_eq!(
            (dump.entries[0].seq, dump.entries[0].state, dump.entries[0].inputs.as_str()),
            (9385, State::Started, "[[4]]")
        );
    }

    #[test]
    fn a_pickle_of_a_rank_stuck_in_python_is_empty_and_there() {
        let bytes = b"\x80\x02}(X\x07\x00\x00\x00entries]X\x09\x00\x00\x00pg_status}X\x01\x00\x00\x005}X\x18\x00\x00\x00last_enqueued_collectiveK\x07ssu.";
        let dump = read("_dump_9", bytes).unwrap().unwrap();
        assert_eq!((dump.rank, dump.entries.len(), dump.status["5"].enqueued), (9, 0, Some(7)));
    }

    #[test]
    fn notes_beside_the_dumps_are_skipped_and_strange_dumps_are_said() {
        assert_eq!(read("fault_injection.log", b"Fault ranks").unwrap(), None);
        assert_eq!(read("truth.json", b"{\"schema\": 1}").unwrap(), None);
        assert_eq!(read("_dump_3", b"").unwrap(), None);
        assert!(read("_dump_3", b"cos\nsystem\n").is_err());
        assert!(read("_dump_3", b"\x80\x02cos\nsystem\n(tR.").unwrap_err().to_string().contains("refused"));
    }

    proptest! {
        #[test]
        fn no_dump_is_too_strange(text in r#"\{"entries": \[[\{\}\[\]":,a-z0-9_ -]{0,80}\]\}"#) {
            let _ = read("d_1.json", text.as_bytes());
        }
    }
}
