//! What live nodes told: `processes/NODE.json`, `facts/NODE.json`, and `collected.json` about the asking itself.

use muster_triage::case::Reached;
use muster_wire::{LOOKED_BYTES, Looked, PROCESSES_BYTES, Processes, clean, limits};
use serde_json::Value;

use super::{Part, word};
use crate::Bad;

/// Most nodes of a job.
const NODES: usize = 65_536;
/// Collectors of one node that are read.
const COLLECTORS: usize = 64;
/// A clock further off than this is no clock, seconds.
const FARTHEST_S: f64 = 1e9;

/// Reads what a node said of the job's processes; the file is called by the node.
///
/// # Errors
/// When it is too long, or not such a document.
pub(super) fn processes(file: &str, bytes: &[u8]) -> Result<Part, Bad> {
    if bytes.len() > PROCESSES_BYTES {
        return Err(Bad::TooMuch { line: 1, limit: PROCESSES_BYTES, what: "bytes of a node's processes" });
    }
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(Bad::format(1, "an object is expected"));
    }
    let told: Processes = serde_json::from_slice(bytes).map_err(|why| Bad::json(1, &why))?;
    Ok(Part::Processes(node(file), Box::new(told.bounded())))
}

/// Reads what collectors saw of a node's health; the file is called by the node.
///
/// # Errors
/// When it is too long, or no such list.
pub(super) fn looked(file: &str, bytes: &[u8]) -> Result<Part, Bad> {
    if bytes.len() > LOOKED_BYTES {
        return Err(Bad::TooMuch { line: 1, limit: LOOKED_BYTES, what: "bytes of a node's facts" });
    }
    let looked: Vec<Looked> = serde_json::from_slice(bytes).map_err(|why| Bad::json(1, &why))?;
    let looked = looked.into_iter().take(COLLECTORS).map(Looked::bounded).collect();
    Ok(Part::Looked(node(file), looked))
}

fn node(file: &str) -> String {
    clean(file.strip_suffix(".json").unwrap_or(file), limits::NAME_BYTES)
}

/// Reads which nodes were asked, which of them could not be, and how their clocks stand.
///
/// # Errors
/// When it is no such document.
pub(super) fn reached(text: &str) -> Result<Vec<Reached>, Bad> {
    let value: Value = serde_json::from_str(text).map_err(|why| Bad::json(1, &why))?;
    let nodes = value.get("nodes").and_then(Value::as_array);
    let nodes = nodes.ok_or_else(|| Bad::format(1, "no nodes: not what muster writes beside a collected bundle"))?;
    let one = |node: &Value| {
        let number = |key: &str| node.get(key).and_then(Value::as_f64).filter(|number| number.abs() < FARTHEST_S);
        Some(Reached {
            node: word(node.get("node")?)?,
            why: node.get("why").and_then(Value::as_str).map(|why| clean(why, 400)),
            unreached: node.get("reached").and_then(Value::as_bool) == Some(false),
            clock: number("offset_s").zip(number("error_s")).map(|(offset, error)| (offset, error.abs())),
        })
    };
    Ok(nodes.iter().take(NODES).filter_map(one).collect())
}

#[cfg(test)]
mod tests {
    use muster_wire::{Datum, Outcome, Reading};

    use super::*;

    #[test]
    fn nodes_that_were_asked_are_read_with_their_clocks() {
        let text = r#"{"nodes": [{"node": "n1", "reached": true, "offset_s": 0.5, "error_s": 0.01}, {"node": "n2", "reached": false, "why": "no route"}, 7]}"#;
        let reached = reached(text).unwrap();
        assert_eq!((reached.len(), reached[0].clock, reached[0].unreached), (2, Some((0.5, 0.01)), false));
        assert_eq!((reached[1].unreached, reached[1].why.as_deref()), (true, Some("no route")));
    }

    #[test]
    fn what_collectors_saw_is_read_without_escapes_and_other_lists_are_refused() {
        let text = r#"[{"outcome": "done", "collector": "nic", "facts": [
            {"key": "eth0.mtu", "reading": {"value": {"number": 1400.0}}},
            {"key": "eth0.driver", "reading": {"value": {"text": "e\u001b[1mx"}}}]},
            {"outcome": {"failed": "no end"}, "collector": "disk", "facts": []}]"#;
        let Ok(Part::Looked(node, looked)) = looked("n1.json", text.as_bytes()) else { panic!("not read") };
        assert_eq!((node.as_str(), looked.len(), &looked[1].outcome), ("n1", 2, &Outcome::Failed("no end".into())));
        let Reading::Value(Datum::Text(driver)) = &looked[0].saw.facts[1].reading else { panic!("no text") };
        assert!(!driver.contains('\u{1b}'), "{driver}");
        for other in ["{}", "[7]", "["] {
            assert!(super::looked("n1.json", other.as_bytes()).is_err(), "{other}");
        }
    }

    #[test]
    fn what_is_no_document_of_processes_is_said() {
        assert!(processes("n1.json", b"[]").is_err() && processes("n1.json", b"{\"processes\": 7}").is_err());
        let Ok(Part::Processes(node, told)) =
            processes("n1.json", br#"{"processes": [{"pid": 5, "states": "TTT", "future": 1}]}"#)
        else {
            panic!("not read");
        };
        assert_eq!((node.as_str(), told.processes[0].pid), ("n1", 5));
    }
}
