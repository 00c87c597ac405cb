//! The GPUs of a node as one rank of a training over many nodes, on simulated devices: two nodes, with this test between them, come
//! to what replicas on CPUs come to.

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
        let driver = Driver::new(&format!("{TWO}{settings}"));
        let file = driver.path().join("sums");
        std::fs::write(&file, "").unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_muster-gpu"))
            .args(["train", "lstm-nano", file.to_str().unwrap()])
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

    fn ask(&mut self, order: &str) -> Result<BTreeMap<String, String>, Outcome> {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
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
