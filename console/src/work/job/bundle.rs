//! What nodes told, as the files of a bundle: the same that an operator could have put together by hand, and the same that is read again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use muster_import::bundle::logs;
use muster_triage::case::Whose;
use muster_wire::{JobProcess, Processes};
use serde_json::{Value, json};

use super::Told;

/// Name of the document about processes among a node's files.
pub(super) const PROCESSES: &str = "processes.json";
/// Name of the document about its health there.
const FACTS: &str = "facts.json";
/// Name of the document of what a watch of the nodes alerted of.
pub const ALERTS: &str = "watch.json";

/// The files of a bundle by their paths, in their order. `job` is the id of the job, where one was named; `at_ms` when the asking ended,
/// epoch milliseconds.
#[must_use]
pub fn bundle(told: Vec<Told>, job: Option<&str>, at_ms: u64) -> Vec<(String, Vec<u8>)> {
    let known: Vec<Option<Processes>> = told.iter().map(processes).collect();
    let mut files = BTreeMap::new();
    files.insert("job.json".to_owned(), pretty(&who(&told, &known, job)));
    files.insert("collected.json".to_owned(), pretty(&asked(&told, at_ms)));
    // A file that lies where all nodes see it comes from each of them.
    let mut seen: BTreeSet<(String, usize, Vec<u8>)> = BTreeSet::new();
    for (one, processes) in told.into_iter().zip(known) {
        let node = plain(&one.node.name);
        let ranks = ranks(processes.as_ref());
        for (name, bytes) in one.files {
            let Some(path) = path(&name, &node, &ranks, &bytes) else { continue };
            let shared = (name.clone(), bytes.len(), bytes.get(..bytes.len().min(4096)).unwrap_or_default().to_vec());
            if name.starts_with("log/beside/") && !seen.insert(shared) {
                continue;
            }
            files.insert(path, bytes);
        }
    }
    files.into_iter().collect()
}

fn processes(told: &Told) -> Option<Processes> {
    let (_, bytes) = told.files.iter().find(|(name, _)| name == PROCESSES)?;
    serde_json::from_slice::<Processes>(bytes).ok().map(Processes::bounded)
}

/// Rank of each process.
fn ranks(processes: Option<&Processes>) -> BTreeMap<u32, u32> {
    let all = processes.into_iter().flat_map(|told| &told.processes);
    all.filter_map(|process| Some((process.pid, process.rank?))).collect()
}

/// Where a node's file lies in a bundle; none for one that has no place there.
fn path(name: &str, node: &str, ranks: &BTreeMap<u32, u32>, bytes: &[u8]) -> Option<String> {
    if name == PROCESSES {
        return Some(format!("processes/{node}.json"));
    }
    if name == FACTS {
        return Some(format!("facts/{node}.json"));
    }
    if name == "dmesg" {
        return Some(format!("dmesg/{node}.log"));
    }
    let (kind, rest) = name.split_once('/')?;
    let file = plain(rest.rsplit('/').next()?);
    match kind {
        "ras" => {
            let ending = if bytes.trim_ascii_start().starts_with(b"{") { "json" } else { "txt" };
            Some(format!("ras/{node}/poll{}.{ending}", file.parse::<u32>().ok()?))
        }
        "fr" => Some(format!("fr/{node}/{file}")),
        "inspector" => Some(format!("inspector/{node}/{file}")),
        "log" if rest.starts_with("beside/") => Some(match (logs::whose(&file), rank_in(bytes)) {
            (Whose::Job(_), Some(rank)) => format!("logs/{node}/rank_{rank}.{file}"),
            _ => format!("logs/{node}/{file}"),
        }),
        "log" => {
            let (pid, kind) = file.split_once('.')?;
            let ending = if kind == "err" { "err" } else { "log" };
            let pid: u32 = pid.parse().ok()?;
            Some(match ranks.get(&pid) {
                Some(rank) => format!("logs/rank_{rank}.{ending}"),
                None => format!("logs/{node}/process-{pid}.{ending}"),
            })
        }
        _ => None,
    }
}

/// `job.json`: who runs where.
fn who(told: &[Told], known: &[Option<Processes>], job: Option<&str>) -> Value {
    let all = || told.iter().zip(known);
    let node = |(told, known): (&Told, &Option<Processes>)| {
        let name = plain(&told.node.name);
        let mut addresses: BTreeSet<&str> =
            known.iter().flat_map(|known| known.addresses.iter().map(String::as_str)).collect();
        // Of one that was not reached, what the inventory calls it is all that is known.
        if told.host.parse::<IpAddr>().is_ok() {
            addresses.insert(&told.host);
        }
        let hostname = known.as_ref().map(|known| known.hostname.as_str()).filter(|name| !name.is_empty());
        json!({"node": name, "ip": addresses, "hostname": hostname.into_iter().collect::<Vec<_>>()})
    };
    let ranks: Vec<Value> = all()
        .flat_map(|(told, known)| known.iter().flat_map(|known| &known.processes).map(move |process| (told, process)))
        .filter_map(|(told, process)| Some(rank(process.rank?, &plain(&told.node.name), process)))
        .collect();
    let mut ranks = ranks;
    ranks.extend(ended(told, known));
    let world =
        known.iter().flatten().flat_map(|known| known.processes.iter().filter_map(|process| process.world)).max();
    json!({
        "job": job,
        "world_size": world,
        "nodes": all().map(node).collect::<Vec<_>>(),
        "ranks": ranks,
    })
}

/// Ranks without a process whose log lies on one node alone: they ran there.
fn ended(told: &[Told], known: &[Option<Processes>]) -> Vec<Value> {
    let here: BTreeSet<u32> =
        known.iter().flatten().flat_map(|known| known.processes.iter().filter_map(|process| process.rank)).collect();
    let mut on: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for one in told {
        for (name, bytes) in &one.files {
            let Some(file) = name.strip_prefix("log/beside/") else { continue };
            let named = if let Whose::Rank(rank) = logs::whose(file) { Some(rank) } else { rank_in(bytes) };
            if let Some(rank) = named {
                on.entry(rank).or_default().insert(plain(&one.node.name));
            }
        }
    }
    on.retain(|rank, nodes| nodes.len() == 1 && !here.contains(rank));
    on.into_iter().map(|(rank, nodes)| json!({"rank": rank, "node": nodes.first()})).collect()
}

fn rank(rank: u32, node: &str, process: &JobProcess) -> Value {
    let gpu = match process.gpus.value().map(Vec::as_slice) {
        Some([one]) => Some(*one),
        _ => process.local_rank,
    };
    json!({"rank": rank, "node": node, "pid": process.pid, "local_rank": process.local_rank, "gpu": gpu})
}

/// `collected.json`: which nodes were asked, which could not be, and how their clocks stand.
fn asked(told: &[Told], at_ms: u64) -> Value {
    let node = |told: &Told| {
        let seconds = |ns: f64| (ns / 1e3).round() / 1e6;
        json!({
            "node": plain(&told.node.name),
            "reached": told.reached,
            "why": told.why,
            "offset_s": told.clock.map(|clock| seconds(clock.offset_ns as f64)),
            "error_s": told.clock.map(|clock| seconds(clock.uncertainty_ns as f64)),
        })
    };
    json!({
        "schema": "muster.collected",
        "version": 1,
        "at_s": at_ms as f64 / 1e3,
        "nodes": told.iter().map(node).collect::<Vec<_>>(),
    })
}

/// The one rank that a log's lines name as their writer, as PyTorch does: `[rank4]: Traceback`. A launcher names its files by ranks on the node.
fn rank_in(bytes: &[u8]) -> Option<u32> {
    let rank = |line: &[u8]| -> Option<u32> {
        let rest = line.strip_prefix(b"[rank")?;
        let end = rest.iter().take(8).position(|byte| *byte == b']')?;
        std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
    };
    let mut ranks = bytes.split(|byte| *byte == b'\n').filter_map(rank).take(1_000);
    let first = ranks.next()?;
    ranks.all(|other| other == first).then_some(first)
}

fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

/// A name as a part of a path: nothing in it leads elsewhere, and it is never hidden.
fn plain(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-+@".contains(c) { c } else { '_' };
    let name: String = name.chars().take(96).map(safe).collect();
    if name.starts_with('.') || name.is_empty() { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use muster_fleet::Node;

    use super::*;

    fn told(name: &str, files: &[(&str, &[u8])]) -> Told {
        let node = Node { name: name.into(), ..Node::default() };
        let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        Told { node, host: "10.0.0.1".into(), files, clock: None, reached: true, why: None }
    }

    #[test]
    fn a_log_that_a_launcher_calls_by_the_rank_on_the_node_is_known_by_what_its_lines_say() {
        let log = "[W1125 socket.cpp:207] x\n[rank4]: Traceback (most recent call last):\n[rank4]: KeyError: 'x'\n";
        let one = told(
            "n3",
            &[
                ("log/beside/attempt_0-0-stderr.log", log.as_bytes()),
                ("log/beside/torchrun.log", b"[rank1]: a\n[rank2]: b\n"),
            ],
        );
        let files = bundle(vec![one], None, 1_000);
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            ["collected.json", "job.json", "logs/n3/rank_4.attempt_0-0-stderr.log", "logs/n3/torchrun.log"]
        );
        let job: Value = serde_json::from_slice(&files[1].1).unwrap();
        assert_eq!((&job["ranks"][0]["rank"], &job["ranks"][0]["node"]), (&json!(4), &json!("n3")));
        assert_eq!((rank_in(b"[rank99999999999]: x"), rank_in(b"[rankx]: x"), rank_in(b"")), (None, None, None));
    }

    #[test]
    fn files_find_their_place_and_none_leads_out_of_the_bundle() {
        let document = br#"{"hostname": "h1", "processes": [{"pid": 7, "rank": 3, "world": 4}]}"#;
        let one = told(
            "n1",
            &[
                ("processes.json", document),
                ("log/7.out", b"iteration"),
                ("log/7.err", b"oops"),
                ("log/9.out", b"other"),
                ("log/beside/rank_2.log", b"dead"),
                ("ras/1", b" {}"),
                ("ras/2", b"NCCL version"),
                ("ras/../../x", b""),
                ("fr/../../etc/passwd", b"\x80"),
                ("inspector/.hidden", b""),
                ("/etc/shadow", b""),
            ],
        );
        let two = told("../n2", &[("log/beside/rank_2.log", b"dead"), ("dmesg", b"")]);
        let files = bundle(vec![one, two], Some("47"), 1_000);
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "collected.json",
                "dmesg/_.._n2.log",
                "fr/n1/passwd",
                "inspector/n1/_.hidden",
                "job.json",
                "logs/n1/process-9.log",
                "logs/n1/rank_2.log",
                "logs/rank_3.err",
                "logs/rank_3.log",
                "processes/n1.json",
                "ras/n1/poll1.json",
                "ras/n1/poll2.txt",
            ]
        );
        let job: Value = serde_json::from_slice(&files.iter().find(|(path, _)| path == "job.json").unwrap().1).unwrap();
        assert_eq!(
            (&job["world_size"], &job["ranks"][0]["node"], &job["nodes"][0]["hostname"][0]),
            (&json!(4), &json!("n1"), &json!("h1"))
        );
    }
}
