//! A training over several ranks, each a process: sound, broken by its program, killed, stopped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Two nodes with two ranks each.
const WORLD: usize = 4;

static JOBS: AtomicU8 = AtomicU8::new(0);

struct Job {
    ranks: Vec<Child>,
    hosts: [String; WORLD],
    ras: u16,
}

impl Drop for Job {
    fn drop(&mut self) {
        for rank in &mut self.ranks {
            // It may have ended.
            let _ = rank.kill();
            let _ = rank.wait();
        }
    }
}

/// What a rank printed, and its exit code.
struct Ended {
    code: Option<i32>,
    text: String,
}

impl Job {
    /// `more` are the options of all, `odd` those of one rank alone.
    fn start(more: &[&str], odd: (usize, &[&str])) -> Self {
        let ras = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // Addresses of loopback that no other job has, so that nobody can take the ports.
        let own = format!("127.{}.{}", 1 + std::process::id() % 250, JOBS.fetch_add(1, Ordering::Relaxed));
        let hosts = [1, 1, 2, 2].map(|node| format!("{own}.{node}"));
        let peers: Vec<String> = (0..WORLD).map(|rank| format!("{}:{}", hosts[rank], 7000 + rank)).collect();
        let one = |rank: usize| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_muster-probe"));
            command.args(["train-ddp", "--world", "4", "--ranks-per-node", "2", "--peers", &peers.join(",")]);
            command.args(["--rank", &rank.to_string(), "--meet", "20", "--ras-patience", "1"]);
            let port = if rank == 0 { ras } else { 0 };
            command.args(["--ras-port", &port.to_string()]).args(more);
            command.args(if rank == odd.0 { odd.1 } else { &[] });
            command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
        };
        Self { ranks: (0..WORLD).map(one).collect(), hosts, ras }
    }

    fn end(&mut self) -> Vec<Ended> {
        let read = |mut rank: Child| {
            let mut text = String::new();
            rank.stdout.take().unwrap().read_to_string(&mut text).unwrap();
            Ended { code: rank.wait().unwrap().code(), text }
        };
        let running: Vec<_> = self.ranks.drain(..).map(|rank| thread::spawn(move || read(rank))).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    }

    /// A rank as others name it.
    fn who(&self, rank: usize) -> String {
        format!("rank {rank} ({}, process {})", self.hosts[rank], self.ranks[rank].id())
    }

    fn signal(&self, rank: usize, signal: Signal) {
        kill_process(Pid::from_child(&self.ranks[rank]), signal).unwrap();
    }

    /// What RAS says in JSON, once it answers.
    fn ras(&self) -> Value {
        let text = self.say("SET FORMAT json\nSTATUS\n");
        let (ok, document) = text.split_once('\n').unwrap();
        assert_eq!(ok, "OK");
        serde_json::from_str(document).unwrap()
    }

    fn say(&self, words: &str) -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.ras)) {
                stream.write_all(words.as_bytes()).unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                return text;
            }
            assert!(Instant::now() < until, "RAS never answered");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Steps of a rank that printed JSON.
fn steps(ended: &Ended) -> Vec<Value> {
    let all = ended.text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|line| line["event"] == "step").collect()
}

fn dumped(dir: &Path, rank: usize) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join(format!("nccl_trace_rank_{rank}.json"))).unwrap()).unwrap()
}

#[test]
fn all_ranks_have_the_same_weights_after_every_step_and_the_loss_falls() {
    for model in ["nano", "resnet-nano"] {
        let ended = Job::start(&["--steps", "12", "--json", "--bucket", "64", "--model", model], (0, &[])).end();
        let all: Vec<Vec<Value>> = ended.iter().map(steps).collect();
        for (rank, ended) in ended.iter().enumerate() {
            assert_eq!((ended.code, all[rank].len()), (Some(0), 12), "{}", ended.text);
            for (step, first) in all[rank].iter().zip(&all[0]) {
                assert_eq!((&step["digest"], &step["loss"]), (&first["digest"], &first["loss"]), "{step}");
            }
        }
        let loss = |at: usize| all[0][at]["loss"].as_f64().unwrap();
        assert!(loss(11) < loss(0), "{model}: {} to {}", loss(0), loss(11));
    }
}

#[test]
fn a_killed_rank_is_named_by_all_others_with_the_step() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().to_str().unwrap();
    let mut job = Job::start(&["--seconds", "60", "--pause", "20", "--dir", place], (0, &[]));
    let ras = job.ras();
    assert_eq!(ras["communicators_count"], 3, "{ras:#}");
    assert_eq!((&ras["communicators"][0]["size"], &ras["communicators"][1]["ranks_count"]), (&4.into(), &2.into()));
    let (lost, others) = (job.who(2), [0, 1, 3].map(|rank| job.who(rank)));
    job.signal(2, Signal::KILL);
    let ended = job.end();
    for rank in [0, 1, 3] {
        let Ended { code, text } = &ended[rank];
        assert!(matches!(code, Some(5 | 6)), "{code:?} {text}");
        assert!(text.contains("step ") && text.contains(&format!("{lost} is gone")), "{text}");
        // Nobody is said to be the cause for having suffered.
        assert!(others.iter().all(|other| !text.contains(other)), "{text}");
        assert_eq!(dumped(dir.path(), rank)["pg_config"]["0"]["ranks"], "[0, 1, 2, 3]");
    }
    assert!(!dir.path().join("nccl_trace_rank_2.json").exists());
}

#[test]
fn a_stopped_rank_is_missing_for_ras_and_named_when_the_time_is_over() {
    let mut job = Job::start(&["--seconds", "60", "--pause", "20", "--timeout", "6", "--ras-dead", "0.5"], (0, &[]));
    assert_eq!(job.ras()["communicators"][0]["missing_ranks_count"], 0);
    job.signal(3, Signal::STOP);
    // A thread may still answer while the others are stopped already.
    let seen = (0..5).map(|_| job.ras()).find(|ras| ras["communicators"][0]["missing_ranks_count"] == 1);
    let ras = seen.unwrap();
    let missing = ras["communicators"][0]["missing_ranks"].as_array().unwrap();
    assert_eq!((missing.len(), &missing[0]["rank"]), (1, &3.into()), "{ras:#}");
    assert_eq!(missing[0]["status"], serde_json::json!({"unresponsive": true, "considered_dead": false}));
    assert_eq!(ras["ras"]["timeouts_count"], 1);
    let text = job.say("CLIENT PROTOCOL 2\nverbose status\n");
    assert!(text.starts_with("SERVER PROTOCOL 2\nNCCL version ") && text.contains("INCOMPLETE"), "{text}");
    assert!(text.contains(&format!("managed by process {} on node {}", job.ranks[3].id(), job.hosts[3])), "{text}");
    let (silent, stopped) = (format!("{} does not answer", job.who(3)), job.ranks.pop().unwrap());
    let ended = job.end();
    job.ranks.push(stopped);
    for Ended { code, text } in &ended {
        assert!(matches!(code, Some(4 | 6)), "{code:?} {text}");
        assert!(text.contains(&silent), "{text}");
    }
}

#[test]
fn what_a_program_does_wrong_is_told_and_stands_in_the_recorders_dump() {
    // Long enough for a step on a machine that is busy otherwise.
    let broken = |how: &str| {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().to_str().unwrap().to_owned();
        let timeout = if how.starts_with("deadlock") { "6" } else { "30" };
        let more = ["--steps", "50", "--timeout", timeout, "--dir", &place];
        let mut job = Job::start(&more, (1, &["--break", how]));
        let odd = job.who(1);
        (job.end(), dir, odd)
    };
    let (ended, dir, odd) = broken("wrong-size@4");
    let all: String = ended.iter().map(|ended| ended.text.as_str()).collect();
    assert!(ended.iter().all(|ended| matches!(ended.code, Some(2 | 6))), "{all}");
    // The broken rank may be the first to see it, before a third one has come so far.
    let undecided = "two ranks cannot tell which of them is wrong";
    assert!(all.contains("step 4, ") && (all.contains(&odd) || all.contains(undecided)), "{all}");
    let last = |rank: usize| dumped(dir.path(), rank)["entries"].as_array().unwrap().last().unwrap().clone();
    let own = last(1);
    // Of the others, one at least was in the same operation: who it summed with.
    let mate = [0, 2, 3].map(last).into_iter().find(|other| other["collective_seq_id"] == own["collective_seq_id"]);
    assert_ne!(own["input_sizes"], mate.unwrap()["input_sizes"]);
    assert_eq!(own["state"], "started");

    let (ended, dir, _) = broken("deadlock@3");
    let all: String = ended.iter().map(|ended| ended.text.as_str()).collect();
    assert!(ended.iter().all(|ended| matches!(ended.code, Some(4 | 6))), "{all}");
    assert!(all.contains("has not launched it: it waits in all_reduce"), "{all}");
    let status = |rank: usize, group: &str| {
        dumped(dir.path(), rank)["pg_status"][group]["last_enqueued_collective"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    // The broken rank is ahead in the world and behind among the ranks of its node.
    assert!(status(1, "0") > status(0, "0") && status(1, "1") < status(0, "1"));

    let (ended, _dir, odd) = broken("exception@3");
    assert_eq!(ended[1].code, Some(1));
    assert!(ended[1].text.contains("[rank1]: ") && ended[1].text.contains("RuntimeError"), "{}", ended[1].text);
    assert!(ended[3].text.contains(&odd), "{}", ended[3].text);
}
