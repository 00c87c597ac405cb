//! The GPUs of a node as one rank of a training over many nodes, on simulated devices: two nodes, with this test or NCCL between
//! them, come to what replicas on CPUs come to, and who is wrong, late or gone is told.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

#[expect(dead_code, unused_imports, reason = "other tests run benchmarks")]
mod process;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use muster_gpu::train::SEED;
use muster_tape::{Model, Replica, Size};
use muster_wire::{Datum, Decoder, Frame, Outcome, Reading};
use process::Driver;

const TWO: &str = "devices 2\nsms 2\nmemory 33554432\n";

struct Rank {
    child: Child,
    orders: Option<ChildStdin>,
    output: ChildStdout,
    decoder: Decoder,
    driver: Driver,
}

impl Rank {
    fn start(settings: &str) -> Self {
        Self::with(Driver::new(&format!("{TWO}{settings}")), &[])
    }

    /// One that may sum by NCCL.
    fn able(settings: &str) -> Self {
        Self::with(Driver::with(&format!("{TWO}{settings}"), &["libnccl.so.2"]), &["nccl"])
    }

    fn with(driver: Driver, words: &[&str]) -> Self {
        let file = driver.path().join("sums");
        std::fs::write(&file, "").unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_muster-gpu"))
            .args(["train", "lstm-nano", file.to_str().unwrap()])
            .args(words)
            .env("NCCL_SOCKET_IFNAME", "=lo")
            .env("LD_LIBRARY_PATH", driver.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, orders, output, decoder: Decoder::new(), driver }
    }

    /// The facts of the next answer, or how it ended.
    fn hear(&mut self) -> Result<BTreeMap<String, String>, Outcome> {
        let mut chunk = [0; 4096];
        loop {
            match self.decoder.frame().unwrap() {
                Some(Frame::Facts(facts)) => {
                    let told = facts.facts.into_iter().map(|fact| match fact.reading {
                        Reading::Value(Datum::Text(text)) => (fact.key, text),
                        Reading::Value(Datum::Number(number)) => (fact.key, number.to_string()),
                        other => panic!("{other:?}"),
                    });
                    return Ok(told.collect());
                }
                Some(Frame::Finished(end)) => return Err(end.outcome),
                Some(_) => {}
                None => {
                    let count = self.output.read(&mut chunk).unwrap();
                    assert!(count > 0, "it said nothing more");
                    self.decoder.push(&chunk[..count]);
                }
            }
        }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
    }

    fn ask(&mut self, order: &str) -> Result<BTreeMap<String, String>, Outcome> {
        self.order(order);
        self.hear()
    }

    fn sums(&self) -> Vec<f32> {
        let bytes = std::fs::read(self.driver.path().join("sums")).unwrap();
        bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    }

    fn bring(&self, sums: &[f32]) {
        let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        let path: &Path = &self.driver.path().join("sums");
        std::fs::write(path, bytes).unwrap();
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_nodes_with_two_gpus_each_come_to_the_losses_of_four_replicas_on_cpus_and_to_the_same_weights() {
    let mut nodes = [Rank::start(""), Rank::start("")];
    let told = nodes.each_mut().map(|node| node.hear().unwrap());
    assert_eq!((told[0]["gpus"].as_str(), told[0]["engine"].as_str()), ("2", "own-ptx"));
    assert_eq!(told[0], told[1]);
    let same = [0, 1].map(|at| nodes[at].ask(&format!("begin {}", 2 * at)).unwrap()["same"].clone());
    assert_eq!(same[0], same[1], "one batch gives the same everywhere");

    let tape = Model::LstmNano.parallel_sized(Size { batch: 2, seq: 4 });
    let mut team: Vec<Replica<'_>> = (0..4).map(|_| Replica::new(&tape, SEED).unwrap()).collect();
    team.iter_mut().enumerate().for_each(|(rank, replica)| replica.load(rank as u64));
    for step in 0..2 {
        let answers = nodes.each_mut().map(|node| node.ask("backward").unwrap());
        assert!(answers[0]["ms.1"].parse::<f64>().unwrap() > 0.0);
        let loss: f32 = answers.iter().map(|answer| answer["loss"].parse::<f32>().unwrap()).sum();
        let right: f32 = team.iter_mut().map(Replica::backward).sum();
        assert!((loss / right - 1.0).abs() < 2e-2, "step {step}: {loss} and not {right}");
        let mut sums = nodes[0].sums();
        assert_eq!(sums.len().to_string(), told[0]["words"]);
        sums.iter_mut().zip(nodes[1].sums()).for_each(|(sum, other)| *sum = (*sum + other) / 4.0);
        nodes.iter().for_each(|node| node.bring(&sums));
        let weights = nodes.each_mut().map(|node| node.ask("update").unwrap()["weights"].clone());
        assert_eq!(weights[0], weights[1]);
        let mut own = vec![0.0; team[0].parameters()];
        team.iter_mut().for_each(|replica| replica.gradients(&mut own));
        own.iter_mut().for_each(|sum| *sum /= 4.0);
        team.iter_mut().for_each(|replica| replica.update(&own));
    }
    // It ends with whoever started it.
    let [node, _] = &mut nodes;
    node.orders = None;
    assert_eq!(node.hear(), Err(Outcome::Done));
}

#[test]
fn a_wrong_gpu_ends_it_before_the_first_step_and_an_order_that_nobody_knows_does_too() {
    let mut node = Rank::start("devices 3\ngpu 2 flip sm=all unit=mma bit=20 every=7\n");
    node.hear().unwrap();
    let Err(Outcome::Failed(why)) = node.ask("begin 0") else { panic!("it went on") };
    assert!(why.starts_with("GPU 2: its gradients of the same batch are not those of 2 other GPUs"), "{why}");
    let mut node = Rank::start("");
    node.hear().unwrap();
    assert_eq!(node.ask("begin x"), Err(Outcome::Failed("the training has no command 'begin x'".into())));
}

type Told = BTreeMap<String, String>;

/// Tells all of them the same, and hears what each answers.
fn ask_all(nodes: &mut [Rank], order: &str) -> Vec<Result<Told, Outcome>> {
    nodes.iter_mut().for_each(|node| node.order(order));
    nodes.iter_mut().map(Rank::hear).collect()
}

/// Nodes with two GPUs each that NCCL has brought together.
fn joined(settings: &[&str]) -> Vec<Rank> {
    let mut nodes: Vec<Rank> = settings.iter().map(|settings| Rank::able(settings)).collect();
    for node in &mut nodes {
        assert_eq!(node.hear().unwrap()["nccl"], "22105");
        assert_eq!(node.ask("alone"), Ok(Told::new()), "NCCL's lines are no frames");
    }
    let id = nodes[0].ask("id").unwrap()["id"].clone();
    let world = 2 * nodes.len();
    nodes.iter_mut().enumerate().for_each(|(at, node)| node.order(&format!("join {id} {} {world}", 2 * at)));
    for node in &mut nodes {
        assert_eq!(node.hear().unwrap()["engine"], "own-ptx+nccl-2.21-nodes");
    }
    nodes
}

fn begin(nodes: &mut [Rank]) {
    nodes.iter_mut().enumerate().for_each(|(at, node)| node.order(&format!("begin {}", 2 * at)));
    nodes.iter_mut().for_each(|node| drop(node.hear().unwrap()));
}

/// What each node answers is wrong with sums of known numbers of those GPUs.
fn wrong(nodes: &mut [Rank], first: usize, count: usize) -> Vec<Option<String>> {
    let told = ask_all(nodes, &format!("known {first} {count}"));
    told.into_iter().map(|told| told.unwrap().get("wrong").cloned()).collect()
}

#[test]
fn by_nccl_two_nodes_come_to_the_losses_of_four_replicas_on_cpus_and_to_the_same_weights() {
    let mut nodes = joined(&["", ""]);
    assert_eq!(wrong(&mut nodes, 0, 4), [None, None]);
    begin(&mut nodes);
    let tape = Model::LstmNano.parallel_sized(Size { batch: 2, seq: 4 });
    let mut team: Vec<Replica<'_>> = (0..4).map(|_| Replica::new(&tape, SEED).unwrap()).collect();
    team.iter_mut().enumerate().for_each(|(rank, replica)| replica.load(rank as u64));
    for step in 0..2 {
        let answers: Vec<Told> = ask_all(&mut nodes, "backward").into_iter().map(Result::unwrap).collect();
        let loss: f32 = answers.iter().map(|answer| answer["loss"].parse::<f32>().unwrap()).sum();
        let right: f32 = team.iter_mut().map(Replica::backward).sum();
        assert!((loss / right - 1.0).abs() < 2e-2, "step {step}: {loss} and not {right}");
        let weights: Vec<Told> = ask_all(&mut nodes, "update").into_iter().map(Result::unwrap).collect();
        assert_eq!(weights[0]["weights"], weights[1]["weights"]);
        let mut own = vec![0.0; team[0].parameters()];
        team.iter_mut().for_each(|replica| replica.gradients(&mut own));
        own.iter_mut().for_each(|sum| *sum /= 4.0);
        team.iter_mut().for_each(|replica| replica.update(&own));
    }
    assert_eq!(nodes[0].sums(), [0.0; 0], "no gradient leaves the GPUs");
}

#[test]
fn what_one_gpu_of_three_nodes_brings_wrongly_is_wrong_everywhere_and_told_apart_by_bringing_it_alone() {
    let mut nodes = joined(&["", "nccl ncclAllReduce 1001\n", ""]);
    let all = wrong(&mut nodes, 0, 6);
    assert!(all.iter().all(|why| why.as_ref().is_some_and(|why| why.starts_with("GPU 0 holds "))), "{all:?}");
    let alone: Vec<bool> = (0..6).map(|gpu| wrong(&mut nodes, gpu, 1).iter().any(Option::is_some)).collect();
    assert_eq!(alone, [false, false, false, true, false, false], "GPU 1 of the second node");
}

#[test]
fn all_wait_for_a_slow_rank_whose_sums_are_right() {
    let [quick, slow] = ["", "nccl ncclAllReduce 1002\n"].map(|settings| {
        let mut nodes = joined(&["", settings]);
        let begun = std::time::Instant::now();
        assert_eq!(wrong(&mut nodes[..], 0, 4), [None, None]);
        begun.elapsed()
    });
    assert!(slow > quick + std::time::Duration::from_millis(100), "{slow:?} {quick:?}");
}

#[test]
fn a_node_that_leaves_is_an_error_of_the_others_and_not_their_fault() {
    let mut nodes = joined(&["", "gpu 1 lost after=400\n"]);
    begin(&mut nodes);
    let ended = loop {
        let answers = ask_all(&mut nodes, "backward");
        if answers.iter().any(Result::is_err) {
            break answers;
        }
        ask_all(&mut nodes, "update");
    };
    let Err(Outcome::Failed(why)) = &ended[1] else { panic!("{ended:?}") };
    assert!(why.contains("GPU 1: "), "{why}");
    let Err(Outcome::NotRun(why)) = &ended[0] else { panic!("{ended:?}") };
    assert!(why.contains("remote process exited or there was a network error"), "{why}");
}

#[test]
fn an_error_that_nccl_finds_beside_is_told_while_the_others_are_waited_for() {
    let mut nodes = joined(&["", ""]);
    begin(&mut nodes);
    nodes[0].order("backward");
    drop(nodes.pop());
    let Err(Outcome::NotRun(why)) = nodes[0].hear() else { panic!("it went on") };
    assert!(why.starts_with("GPU 0: ") && why.contains("remote process"), "{why}");
}

#[test]
fn without_the_library_or_with_another_version_a_node_says_so_and_trains_all_the_same() {
    let mut node = Rank::with(Driver::new(TWO), &["nccl"]);
    assert_eq!(node.hear().unwrap()["nccl.lacks"], "no libnccl.so.2 on this node");
    node.ask("begin 0").unwrap();
    let mut node = Rank::able("nccl-version 22304\n");
    assert_eq!(node.hear().unwrap()["nccl"], "22304");
    let mut node = Rank::able("nccl ncclCommInitRank 2\n");
    node.hear().unwrap();
    let Err(Outcome::Failed(why)) = node.ask("alone") else { panic!("it went on") };
    assert_eq!(why, "ncclCommInitRank: unhandled system error (run with NCCL_DEBUG=INFO for details)");
}
