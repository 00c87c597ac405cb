//! Since when is which rank missed?

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ddp::ask::Answer;

/// Since when which ranks are missed.
#[derive(Default)]
pub(super) struct Missed(Mutex<BTreeMap<usize, Instant>>);

impl Missed {
    /// Takes an answer; gives how long the rank has been missed, if it is.
    pub(super) fn note(&self, rank: usize, answer: &Answer) -> Option<Duration> {
        let mut missed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Answer::Said(_) => {
                missed.remove(&rank);
                None
            }
            Answer::Gone(_) | Answer::Silent => Some(missed.entry(rank).or_insert_with(Instant::now).elapsed()),
        }
    }
}
