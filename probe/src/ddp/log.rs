//! What a rank prints: lines as training jobs print them, or one JSON document a line.

use std::io::Write;

use serde_json::json;

use super::between::Lacks;
use super::comm::Kind;
use super::step::{Failure, Step};
use crate::clock;

/// Where a rank's lines go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    rank: usize,
    json: bool,
}

impl Log {
    pub(super) const fn new(rank: usize, json: bool) -> Self {
        Self { rank, json }
    }

    /// A step that all ranks ended. `of` is the last one, if it is known.
    pub(super) fn step(self, step: &Step, of: Option<u64>) {
        let Step { number, loss, digest, .. } = step;
        if self.json {
            return self.put(&json!({
                "event": "step", "rank": self.rank, "step": number, "loss": loss, "digest": format!("{digest:016x}"),
                "step_s": step.whole_s, "compute_s": step.compute_s, "comm_s": step.comm_s, "gpus_s": step.gpus_s,
                "at_ns": step.at_ns,
            }));
        }
        let of = of.map_or_else(|| "?".to_owned(), |of| of.to_string());
        self.say(&format!(
            "iteration {number}/{of} loss {loss:.5} step {:.3} s compute {:.3} s comm {:.3} s digest {digest:016x}",
            step.whole_s, step.compute_s, step.comm_s
        ));
    }

    /// What computes: GPUs, as in the identity of metrics, or the CPU, and why.
    pub(super) fn engine(self, gpus: Option<&str>, why: &str) {
        if self.json {
            let event = if gpus.is_some() { "gpus" } else { "cpu" };
            return self.put(&json!({"event": event, "rank": self.rank, "text": gpus.unwrap_or(why)}));
        }
        self.say(&gpus.map_or_else(|| format!("on the CPU: {why}"), |gpus| format!("on GPUs: {gpus}")));
    }

    /// How gradients get from node to node, and which ranks made it TCP and why.
    pub(super) fn between(self, way: &str, lacks: Option<&Lacks>) {
        if self.json {
            let (why, ranks) = lacks.map(|lacks| (&*lacks.why, &*lacks.ranks)).unwrap_or_default();
            return self
                .put(&json!({"event": "between", "rank": self.rank, "text": way, "why": why, "accused": ranks}));
        }
        let why = lacks.map(|lacks| format!(": {lacks}")).unwrap_or_default();
        self.say(&format!("gradients from node to node by {way}{why}"));
    }

    pub(super) fn say(self, text: &str) {
        if self.json {
            return self.put(&json!({"event": "log", "rank": self.rank, "text": text}));
        }
        self.line(&format!("{} [rank{}] {text}", now(), self.rank));
    }

    pub(super) fn error(self, text: &str) {
        if self.json {
            return self.put(&json!({"event": "error", "rank": self.rank, "text": text}));
        }
        self.line(&format!("[rank{}]: {} ERROR {text}", self.rank, now()));
    }

    /// The last word of a rank that did not end well.
    pub(super) fn end(self, (code, step): (u8, u64), failure: &Failure, (rank, accused): (usize, &[usize])) {
        if !self.json {
            return;
        }
        let (kind, peer) = match failure {
            Failure::Trouble(trouble) => match trouble.kind {
                Kind::Late => ("late", trouble.peer),
                Kind::Gone => ("gone", trouble.peer),
                Kind::Mismatch => ("differs", trouble.peer),
                Kind::Ended => ("told", trouble.peer),
            },
            Failure::Wrong(..) => ("differs", rank),
            Failure::Start(_) => ("start", rank),
            Failure::Exception(_) => ("ended", rank),
            Failure::Ended => ("told", rank),
        };
        self.put(&json!({
            "event": "end", "rank": rank, "code": code, "step": step, "trouble": kind, "peer": peer, "accused": accused,
        }));
    }

    fn put(self, document: &serde_json::Value) {
        self.line(&document.to_string());
    }

    /// Nobody who reads is no reason to stop training.
    fn line(self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }
}

fn now() -> String {
    let ns = clock::wall_ns();
    format!("{}.{:03}", clock::written(ns / 1_000_000_000), ns / 1_000_000 % 1000)
}
