//! What this rank recorded, as the file of PyTorch's flight recorder.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::board::Board;
use super::group::Op;
use super::pickle::Value;
use super::recorder::{Entry, Recorder};

/// The layout that is written (PyTorch 2.8 and later).
const VERSION: &str = "2.10";
/// Begin of the names of PyTorch's own files.
const PREFIX: &str = "nccl_trace_rank_";

/// Writes what `board` recorded, as pickle and as JSON, into `dir`. Returns the pickle's path.
pub(super) fn dump(board: &Board, dir: &Path) -> io::Result<PathBuf> {
    // Held until both files are there: a signal may ask for them while trouble does.
    let recorder = board.recorder.lock().unwrap_or_else(PoisonError::into_inner);
    let pickle = whole(board, &recorder, false).pickle();
    let json = whole(board, &recorder, true).json().to_string();
    let path = dir.join(format!("{PREFIX}{}", board.rank));
    std::fs::create_dir_all(dir)?;
    put(&path.with_extension("json"), json.as_bytes())?;
    put(&path, &pickle)?;
    Ok(path)
}

/// A reader sees the whole file or none.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("part");
    std::fs::write(&draft, bytes)?;
    std::fs::rename(&draft, path)
}

/// JSON has strings where the pickle has numbers, and 0 where it has none.
fn whole(board: &Board, recorder: &Recorder, json: bool) -> Value {
    let map = |of: &dyn Fn(usize) -> Value, key: &dyn Fn(usize) -> String| {
        Value::Map((0..board.kept.len()).map(|comm| (key(comm), of(comm))).collect())
    };
    let name = |comm: usize| board.kept[comm].group.name.clone();
    Value::of([
        ("version", Value::text(VERSION)),
        ("comm_lib_version", Value::text(&format!("muster {}", env!("CARGO_PKG_VERSION")))),
        ("nccl_comm_state", map(&|comm| state(board, comm), &|comm| format!("{:#018x}", board.kept[comm].group.hash))),
        ("pg_config", map(&|comm| config(board, comm), &name)),
        ("pg_status", map(&|comm| status(board, recorder, (comm, json)), &|comm| comm.to_string())),
        ("entries", Value::List(recorder.entries.iter().map(|entry| entry_of(board, entry, json)).collect())),
    ])
}

fn config(board: &Board, comm: usize) -> Value {
    let group = &board.kept[comm].group;
    let ranks: Vec<String> = group.ranks.iter().map(ToString::to_string).collect();
    let ranks = format!("[{}]", ranks.join(", "));
    Value::of([("name", Value::text(&group.name)), ("desc", Value::text(&group.about)), ("ranks", Value::text(&ranks))])
}

fn status(board: &Board, recorder: &Recorder, (comm, json): (usize, bool)) -> Value {
    let launched = board.kept[comm].launched();
    let open = recorder.entries.iter().find(|entry| entry.place.0 == comm && entry.completed_ns.is_none());
    let completed = open.map_or(launched, |entry| entry.place.1 - 1);
    let number = |of: u64| if json { Value::text(&of.to_string()) } else { Value::whole(of) };
    Value::of([
        ("last_enqueued_collective", number(launched)),
        ("last_started_collective", number(launched)),
        ("last_completed_collective", number(completed)),
    ])
}

/// Operations launched, and requests to and from each peer with those that are over.
fn state(board: &Board, comm: usize) -> Value {
    let kept = &board.kept[comm];
    let mut words = vec![
        ("launched".to_owned(), kept.launched().to_string()),
        ("ranks".to_owned(), kept.group.ranks.len().to_string()),
    ];
    for (peer, work) in kept.works() {
        words.push((format!("work_requested.{peer}"), work.requested.to_string()));
        words.push((format!("work_completed.{peer}"), work.completed.to_string()));
    }
    Value::Map(words.into_iter().map(|(key, word)| (key, Value::text(&word))).collect())
}

fn entry_of(board: &Board, entry: &Entry, json: bool) -> Value {
    let (comm, seq) = entry.place;
    let group = &board.kept[comm].group;
    let (gathers, n) = (entry.op == Op::AllGather, group.ranks.len());
    let sizes = |elements: usize| Value::List(vec![Value::List(vec![Value::whole(elements as u64)])]);
    let types = || Value::List(vec![Value::text(if gathers { "UInt64" } else { "Float" })]);
    let named = vec![Value::text(&group.name), Value::text(&group.about)];
    let completed = match entry.completed_ns {
        Some(ns) => Value::whole(ns),
        None if json => Value::whole(0),
        None => Value::None,
    };
    let mut fields = vec![
        ("record_id", Value::whole(entry.id)),
        ("pg_id", Value::whole(comm as u64)),
        ("process_group", if json { Value::List(named) } else { Value::Tuple(named) }),
        ("collective_seq_id", Value::whole(seq)),
        ("p2p_seq_id", Value::whole(0)),
        ("op_id", Value::whole(seq)),
        ("profiling_name", Value::text(&format!("muster:{}", entry.op.name()))),
        ("time_created_ns", Value::whole(entry.launched_ns)),
        ("input_sizes", sizes(entry.elements)),
        ("input_dtypes", types()),
        ("output_sizes", sizes(if gathers { entry.elements * n } else { entry.elements })),
        ("output_dtypes", types()),
        ("state", Value::text(if entry.completed_ns.is_some() { "completed" } else { "started" })),
        ("time_discovered_started_ns", Value::whole(entry.launched_ns)),
        ("time_discovered_completed_ns", completed),
        ("retired", Value::Bool(entry.completed_ns.is_some())),
        ("timeout_ms", Value::whole(u64::try_from(entry.timeout.as_millis()).unwrap_or(u64::MAX))),
        ("is_p2p", Value::Bool(false)),
        ("thread_id", Value::text(&std::process::id().to_string())),
        ("thread_name", Value::text("muster-probe")),
    ];
    if let Some(ns) = entry.completed_ns {
        fields.push(("duration_ms", Value::Float(ns.saturating_sub(entry.launched_ns) as f64 / 1e6)));
    }
    if !json {
        fields.push(("frames", Value::List(Vec::new())));
    }
    Value::Map(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
