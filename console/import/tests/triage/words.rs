//! What is said of a case, word for word: the verdict, its steps, events and ranks, as they stand in `words/`.
//!
//! With `MUSTER_BLESS=1` it is written there instead; read the difference before you commit it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use muster_import::bundle::{gather, part};
use muster_logs::Rules;
use muster_triage::overview::{Overview, overview};
use serde_json::{Value, json};

use super::made::{FAULTS, Made};
use super::misled::{Bundle, XID};
use super::pytorch_gloo::unpack;
use super::ras_dialects::{DIALECTS, later, polls};

/// All that a person can read of a case.
fn words(of: &Overview) -> String {
    let mut report = serde_json::to_value(&of.report).unwrap();
    // Its events are among the moments, with more.
    report.as_object_mut().unwrap().remove("timeline");
    let mut text = serde_json::to_string_pretty(&report).unwrap();
    writeln!(
        text,
        "\nlast step {:?}, {:?}, nodes {:?}, {} moments left out",
        of.last_step_s, of.movement, of.nodes, of.left_out
    )
    .unwrap();
    of.moments.iter().for_each(|moment| writeln!(text, "{moment:?}").unwrap());
    let matrix = &of.matrix;
    writeln!(text, "{} columns level, {} left out", matrix.level, matrix.left_out).unwrap();
    matrix.columns.iter().for_each(|column| writeln!(text, "{column:?}").unwrap());
    matrix.folded.iter().for_each(|line| writeln!(text, "{line:?}").unwrap());
    text
}

/// Holds what is said of these files to `words/NAME.txt`.
fn hold<T: AsRef<[u8]>>(name: &str, files: &[(String, T)]) {
    let rules = Rules::built_in().unwrap();
    let case = gather(files.iter().map(|(path, bytes)| (path.clone(), part(path, bytes.as_ref(), &rules))));
    let text = words(&overview(&case, &rules, &[]));
    muster_golden::hold(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/triage/words/{name}.txt")), &text);
}

#[test]
fn of_each_made_fault_the_same_is_said() {
    for fault in FAULTS {
        let made = Made { fault, nodes: 3, per: 2, culprit: 3, skew: 0.4 };
        let name = format!("made-{}", fault.name());
        hold(&name, &made.files());
        let logs: Vec<_> = made
            .files()
            .into_iter()
            .filter(|(path, _)| !path.starts_with("fr/") && !path.starts_with("ras/"))
            .collect();
        hold(&format!("{name}-without-dumps-and-ras"), &logs);
    }
}

#[test]
fn of_each_real_job_on_gloo_the_same_is_said() {
    for name in ["exception", "hang", "hang-ended", "healthy", "mismatch", "mismatch-ended", "sigstop"] {
        hold(&format!("gloo-{name}"), &unpack(name));
    }
}

#[test]
fn of_each_dialect_of_ras_the_same_is_said() {
    for (name, text) in DIALECTS {
        let files: Vec<_> =
            polls(name, text, &later(text)).into_iter().map(|(path, text)| (path.to_owned(), text)).collect();
        hold(&format!("ras-{}", name.trim_end_matches(".txt").trim_end_matches(".json")), &files);
    }
}

#[test]
fn of_ranks_that_only_ras_tells_of_the_same_is_said() {
    let (_, text) = DIALECTS[2];
    // Without processes, and of a communicator whose ranks are not those of the job.
    for (name, first, last) in [("alone", "n1", "n2"), ("of-other-ranks", "n2", "n1")] {
        let job = format!(
            r#"{{"world_size": 4, "nodes": [{{"node": "n1", "ip": ["10.0.0.1"]}}, {{"node": "n2", "ip": ["10.0.0.2"]}}],
                "ranks": [{{"rank": 0, "node": "{first}"}}, {{"rank": 3, "node": "{last}"}}]}}"#
        );
        let files = [("job.json", job), ("ras/poll1.json", text.to_owned()), ("ras/poll2.json", later(text))];
        hold(&format!("ras-{name}"), &files.map(|(path, text)| (path.to_owned(), text)));
    }
}

#[test]
fn of_a_line_that_ends_a_job_the_same_is_said() {
    let mut xid = Bundle::new(61);
    xid.kernel("n2.hall", 605, XID);
    hold("line-xid", &xid.files());
    let mut exception = Bundle::new(61);
    exception.exception(5, "KeyError: 'input_ids'");
    hold("line-exception", &exception.files());
    let mut full = Bundle::new(61);
    full.exception(5, "OSError: [Errno 28] No space left on device: '/local/ckpt/step_60'");
    hold("line-disk-full", &full.files());
    let mut memory = Bundle::new(61);
    memory.kernel(
        "n2",
        604,
        "Out of memory: Killed process 1005 (python3) total-vm:204800kB, anon-rss:102400kB, UID:1000",
    );
    memory.exception(4, "EOFError");
    hold("line-out-of-memory", &memory.files());
    // By a clock that may be a minute wrong: before the job for certain, and perhaps not.
    for (name, seconds) in [("long-before", 500), ("shortly-before", 540)] {
        let mut killed = Bundle::new(0);
        killed.steps(57, 61);
        killed.kernel(
            "n2",
            seconds,
            "Out of memory: Killed process 1005 (python3) total-vm:204800kB, anon-rss:102400kB, UID:1000",
        );
        hold(&format!("line-out-of-memory-{name}"), &killed.files());
    }
    let mut limit = Bundle::new(61);
    limit.says(0, "slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-20T10:10:05 DUE TO TIME LIMIT ***");
    hold("line-time-limit", &limit.files());
    let mut lost = Bundle::new(60);
    lost.says(0, "n0:1000:2000 [0] NCCL WARN NET/IB: Got completion from peer n3<37730> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_2");
    for rank in 1..6 {
        lost.says(
            rank,
            &format!(
                "n{}:{}:2000 [0] NCCL WARN socketProgress: Connection closed by remote peer n0<4791>",
                rank / 2,
                1000 + rank
            ),
        );
    }
    hold("line-peer-lost", &lost.files());
}

#[test]
fn of_a_hang_among_harmless_troubles_the_same_is_said() {
    let mut hang = Bundle::new(60);
    hang.hangs(3, 60);
    hang.steps(130, 200);
    hang.hangs(5, 200);
    hang.kernel("n1", 1800, "mce: CPU3: Package temperature above threshold, cpu clock throttled (total events = 17)");
    hang.kernel("n1", 1810, "mce: CPU3: Package temperature/speed normal");
    hold("hang-of-two-attempts", &hang.files());
    let mut storage = Bundle::new(60);
    for node in ["n0", "n1", "n3"] {
        storage.kernel(node, 592, "nfs: server 10.9.0.4 not responding, still trying");
        storage.kernel(node, 1300, "nfs: server 10.9.0.4 OK");
    }
    storage.hangs(5, 60);
    hold("hang-on-storage", &storage.files());
}

/// Holds what is said of the real job that hangs, without its dumps, where its JSON files are changed so.
fn live(name: &str, change: impl Fn(&mut BTreeMap<String, Value>)) {
    let files: Vec<_> = unpack("hang").into_iter().filter(|(path, _)| !path.starts_with("fr/")).collect();
    let (documents, mut files): (Vec<_>, Vec<_>) = files.into_iter().partition(|(path, _)| path.ends_with(".json"));
    let mut documents =
        documents.into_iter().map(|(path, bytes)| (path, serde_json::from_slice(&bytes).unwrap())).collect();
    change(&mut documents);
    files.extend(documents.into_iter().map(|(path, document)| (path, document.to_string().into_bytes())));
    hold(&format!("live-{name}"), &files);
}

/// The second process on n002, rank 3.
fn rank_3(documents: &mut BTreeMap<String, Value>) -> &mut Value {
    &mut documents.get_mut("processes/n002.json").unwrap()["processes"][1]
}

fn states(of: &mut Value, letter: &str) {
    let looks = of["states"].as_str().unwrap().len();
    of["states"] = letter.repeat(looks).into();
}

#[test]
fn of_what_processes_do_the_same_is_said() {
    live("nothing", |_| ());
    live("debugger", |documents| states(rank_3(documents), "t"));
    live("frozen", |documents| rank_3(documents)["wait_channel"] = json!({"value": "__refrigerator"}));
    live("device", |documents| {
        states(rank_3(documents), "D");
        rank_3(documents)["wait_channel"] = json!({"value": "nvidia_dma_wait"});
    });
    live("disk", |documents| {
        states(rank_3(documents), "D");
        rank_3(documents)["wait_channel"] = json!({"value": "io_schedule"});
    });
    live("nfs", |documents| {
        for node in ["n002", "n003"] {
            let told = documents.get_mut(&format!("processes/{node}.json")).unwrap();
            told["stalled"] = json!(["/data/shards/0", "/data/shards/1"]);
            states(&mut told["processes"][0], "D");
            told["processes"][0]["wait_channel"] = json!({"value": "rpc_wait_bit_killable"});
        }
    });
    live("ended", |documents| {
        let process = rank_3(documents);
        process["states"] = format!("{}-", process["states"].as_str().unwrap()).into();
    });
    live("vanished", |documents| {
        documents.get_mut("processes/n002.json").unwrap()["processes"].as_array_mut().unwrap().pop();
    });
    live("busy", |documents| {
        for told in documents.iter_mut().filter(|(path, _)| path.starts_with("processes/")).map(|(_, told)| told) {
            told["processes"].as_array_mut().unwrap().iter_mut().for_each(|process| process["cpu"] = json!(0.001));
        }
        rank_3(documents)["cpu"] = json!(0.99);
    });
    live("unreached", |documents| {
        documents.remove("processes/n003.json");
        let node = &mut documents.get_mut("collected.json").unwrap()["nodes"][2];
        (node["reached"], node["why"]) = (json!(false), json!("connect: timed out"));
    });
    live("most-unreached", |documents| {
        for (at, node) in ["n001", "n002", "n003", "n004"].into_iter().enumerate().skip(1) {
            documents.remove(&format!("processes/{node}.json"));
            let node = &mut documents.get_mut("collected.json").unwrap()["nodes"][at];
            (node["reached"], node["why"]) = (json!(false), json!("connect: timed out"));
        }
    });
    live("backlog", |documents| {
        let mut queues = |node: &str, peer: &str, full: u32| {
            let told = documents.get_mut(&format!("processes/{node}.json")).unwrap();
            let queue = json!({"peer": peer, "looks": 14, "full": full, "most": 400_000});
            told["queues"].as_array_mut().unwrap().push(queue);
        };
        queues("n001", "n003", 13);
        queues("n002", "n003", 14);
        queues("n004", "n003", 12);
        queues("n003", "n001", 9);
    });
}

#[test]
fn of_counters_checks_and_alerts_the_same_is_said() {
    let counted = |documents: &mut BTreeMap<String, Value>, name: &str, device: &str, grown: f64| {
        for node in ["n001", "n002", "n003", "n004"] {
            let by = if node == "n003" { grown } else { 0.0 };
            let told = documents.get_mut(&format!("processes/{node}.json")).unwrap();
            let counter = json!({"device": device, "name": name, "first": 100.0, "last": 100.0 + by, "seconds": 10.0});
            told["counters"].as_array_mut().unwrap().push(counter);
        }
    };
    live("memory-errors", |documents| counted(documents, "ecc.uncorrected", "GPU 2", 2.0));
    live("heat", |documents| counted(documents, "held.heat", "GPU 2", 9000.0));
    live("symbol-errors", |documents| counted(documents, "symbol_error", "mlx5_0/1", 700.0));
    live("mtu", |documents| {
        for node in ["n001", "n002", "n003", "n004"] {
            let mtu = if node == "n003" { 1400.0 } else { 1500.0 };
            let facts = json!([{"outcome": "done", "collector": "nic", "facts": [
                {"key": "eth0.mtu", "reading": {"value": {"number": mtu}}},
                {"key": "eth0.up", "reading": {"value": {"flag": true}}}]}]);
            documents.insert(format!("facts/{node}.json"), facts);
        }
    });
    live("alerts", |documents| {
        let since_s = documents["collected.json"]["at_s"].as_f64().unwrap() - 120.0;
        let alert = json!({"node": "n003", "metric": "gpu_power_w", "since_s": since_s, "until_s": null, "group": null,
            "sentence": "n003: GPU power 210 W, 55 % below 3 peers (median 470 W) for 100 s."});
        documents.insert("watch.json".to_owned(), json!({"schema": "muster.watch", "version": 1, "alerts": [alert]}));
    });
}
