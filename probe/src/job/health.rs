//! What collectors see of the node meanwhile, for health checks: each aside, since one that meets a dead disk or driver never ends.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use muster_wire::{Facts, Frame, LOOKED_BYTES, Looked, Outcome};

use super::send::Send;
use crate::collect::Root;
use crate::work;

/// Most collectors that are asked for.
const COLLECTORS: usize = 32;

/// Collectors that look, and what they saw so far.
pub(super) struct Looking {
    names: Vec<String>,
    looked: Receiver<Looked>,
}

impl Looking {
    /// Begins to look.
    pub(super) fn begin(names: &[String], root: &Root) -> Self {
        let names: Vec<String> = names.iter().take(COLLECTORS).cloned().collect();
        let (give, looked) = channel();
        for name in names.clone() {
            let (give, root) = (give.clone(), root.clone());
            // One that cannot begin has not ended either, and is told so.
            let _ = thread::Builder::new().name("collector".to_owned()).spawn(move || {
                // Nobody waits any more: then it is not wanted.
                let _ = give.send(look(name, &root));
            });
        }
        Self { names, looked }
    }

    /// Sends what was seen up to now, in the order that was asked for.
    pub(super) fn end(self, send: &mut Send<'_>) {
        if self.names.is_empty() {
            return;
        }
        let mut seen: Vec<Looked> = self.looked.try_iter().collect();
        for name in &self.names {
            if !seen.iter().any(|looked| looked.saw.collector == *name) {
                let why = "it did not end while the job was looked at";
                seen.push(empty(name.clone(), Outcome::Failed(why.to_owned())));
            }
        }
        seen.sort_by_key(|looked| self.names.iter().position(|name| *name == looked.saw.collector));
        let document = serde_json::to_vec(&seen).unwrap_or_default();
        if document.len() <= LOOKED_BYTES {
            send.file("facts.json", &document);
        } else {
            send.left_out.push("facts.json".to_owned());
        }
    }
}

fn look(name: String, root: &Root) -> Looked {
    let mut looked = empty(name.clone(), Outcome::Done);
    let finished = work::collector(&name, root, &mut |frame| {
        if let Frame::Facts(facts) = frame {
            looked.saw = facts;
        }
    });
    Looked { outcome: finished.outcome, ..looked }
}

const fn empty(collector: String, outcome: Outcome) -> Looked {
    Looked { outcome, saw: Facts { collector, facts: Vec::new() } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_collectors_saw_is_sent_in_the_order_asked_and_one_that_does_not_end_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["cpu", "unheard-of", "memory"].map(str::to_owned);
        let mut looking = Looking::begin(&names, &Root::at(dir.path()));
        let first: Vec<Looked> = looking.looked.iter().collect();
        let (give, looked) = channel();
        first.into_iter().filter(|looked| looked.saw.collector != "cpu").for_each(|one| give.send(one).unwrap());
        looking.looked = looked;
        let mut bytes = Vec::new();
        let mut say = |frame| {
            if let Frame::Chunk(chunk) = frame {
                bytes.extend(chunk.bytes);
            }
        };
        looking.end(&mut Send::new(8 << 20, &mut say));
        let read: Vec<Looked> = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read.iter().map(|one| one.saw.collector.as_str()).collect::<Vec<_>>(), names);
        assert_eq!(read[0].outcome, Outcome::Failed("it did not end while the job was looked at".to_owned()));
        assert!(matches!(read[1].outcome, Outcome::NotRun(_)), "{:?}", read[1]);
        assert!(matches!(read[2].outcome, Outcome::NotApplicable(_)), "{:?}", read[2]);
    }
}
