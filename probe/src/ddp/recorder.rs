//! Which operations did this rank launch lately, and how far did each come?
//!
//! An operation runs on the thread that launches it: it starts as it is launched.

use std::collections::VecDeque;
use std::time::Duration;

use super::group::Op;
use crate::clock;

/// Operations that are kept: PyTorch's default.
const KEPT: usize = 2000;

/// One operation.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: u64,
    /// Place of the communicator, and number of the operation in it.
    pub(super) place: (usize, u64),
    pub(super) op: Op,
    pub(super) elements: usize,
    pub(super) timeout: Duration,
    pub(super) launched_ns: u64,
    pub(super) completed_ns: Option<u64>,
}

/// The latest operations.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) entries: VecDeque<Entry>,
    next: u64,
}

impl Recorder {
    /// Notes a launch; gives the number to complete it by.
    pub(super) fn launch(&mut self, place: (usize, u64), op: Op, elements: usize, timeout: Duration) -> u64 {
        let id = self.next;
        self.next += 1;
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        let launched_ns = clock::wall_ns();
        self.entries.push_back(Entry { id, place, op, elements, timeout, launched_ns, completed_ns: None });
        id
    }

    pub(super) fn complete(&mut self, id: u64) {
        // The newest is nearly always the one.
        if let Some(entry) = self.entries.iter_mut().rev().find(|entry| entry.id == id) {
            entry.completed_ns = Some(clock::wall_ns());
        }
    }
}
