//! What happens next? Events in order of time; of those at one time the first planned comes first, so that a run
//! is the same on every machine.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The next job arrives.
    Arrival,
    /// The run's nodes have been validated before it starts.
    Validated(usize),
    /// The run ends, by completion or incident.
    Ended(usize),
    /// The run's nodes have been validated after an incident.
    Rechecked(usize),
    /// The node comes back.
    Repaired(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Planned {
    at: f64,
    number: u64,
    event: Event,
}

impl Eq for Planned {}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Events to come.
#[derive(Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<Planned>>,
    planned: u64,
}

impl Agenda {
    pub(super) fn plan(&mut self, at: f64, event: Event) {
        self.planned += 1;
        self.heap.push(Reverse(Planned { at, number: self.planned, event }));
    }

    /// The next event before `end`.
    pub(super) fn next(&mut self, end: f64) -> Option<(f64, Event)> {
        let Reverse(planned) = self.heap.pop()?;
        (planned.at < end).then_some((planned.at, planned.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_plan() {
        let mut a = Agenda::default();
        for (at, event) in
            [(2.0, Event::Repaired(0)), (1.0, Event::Arrival), (2.0, Event::Ended(1)), (9.0, Event::Arrival)]
        {
            a.plan(at, event);
        }
        let order: Vec<_> = std::iter::from_fn(|| a.next(5.0)).collect();
        assert_eq!(order, [(1.0, Event::Arrival), (2.0, Event::Repaired(0)), (2.0, Event::Ended(1))]);
    }
}
