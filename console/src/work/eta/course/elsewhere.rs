//! How far is a run that another console carries, of which only the results are seen?

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use muster_playbook::Plan;
use muster_run::Record;

use super::{BEGUN, Course, Durations, Stretch, Told};
use crate::work::followed;

impl Course {
    /// A run of `plan` by another console, reconstructed from its results. `None` while it measures doubtful nodes again: only the
    /// other console knows which.
    #[must_use]
    pub fn elsewhere(plan: &Plan, durations: &Durations, at_once: usize, told: &Told) -> Option<Self> {
        let of = |record: &'_ Arc<Record>| Some((followed::part(plan, record)?, record.clone()));
        let mut records: Vec<(usize, Arc<Record>)> = told.all().filter_map(of).collect();
        records.sort_by_key(|(part, record)| (record.at_ms, *part));
        let mut course = Self::of_records(plan, durations, at_once, &records);
        course.gone.extend(told.gone.iter().filter_map(|node| course.numbers.get(node)));
        (course.at < course.planned).then_some(course)
    }

    /// What `records` tell, in the order of time and each with its part of the plan.
    pub(in crate::work::eta) fn of_records(
        plan: &Plan,
        durations: &Durations,
        at_once: usize,
        records: &[(usize, Arc<Record>)],
    ) -> Self {
        let mut course = Self::new(plan, durations, at_once, &BTreeSet::new());
        let mut under_way: Option<Range<usize>> = None;
        for (part, record) in records {
            if !under_way.as_ref().is_some_and(|stretch| stretch.contains(part)) {
                let stretch = plan.stretch_of(*part);
                course.begin(stretch.start, (0, 0), stretch.len() - 1, record.at_ms);
                course.begin_turns(records.iter().filter(|(part, _)| stretch.contains(part)).map(|(_, record)| record));
                under_way = Some(stretch);
            }
            course.recorded(record, record.at_ms);
        }
        course
    }

    /// Starts the nodes that `records` of the current phase show at work, and of the others among the first `at_once` those that have
    /// begun as well if nodes begin at the rate seen: connections are opened a few at a time.
    fn begin_turns<'r>(&mut self, records: impl Iterator<Item = &'r Arc<Record>>) {
        let Some(Stretch::Each { nodes, .. }) = self.phases.get(self.at) else { return };
        let nodes = nodes.clone();
        let (mut began, mut seen) = (HashMap::new(), 0);
        for record in records {
            let Some(nr) = self.number(&record.node) else { continue };
            let at = record.at_ms.saturating_sub(record.elapsed_ns / 1_000_000);
            began.entry(nr).and_modify(|first: &mut u64| *first = at.min(*first)).or_insert(at);
            seen = seen.max(record.at_ms);
        }
        let Some((first, last)) = began.values().min().copied().zip(began.values().max().copied()) else { return };
        let each = if began.len() < BEGUN { 0.0 } else { (last - first) as f64 / (began.len() - 1) as f64 };
        let others = nodes.iter().take(self.at_once).filter(|nr| !began.contains_key(nr)).zip(began.len()..);
        let expected = others.map(|(nr, before)| (*nr, first + (each * before as f64) as u64));
        let begun: Vec<(usize, u64)> = expected.filter(|(_, at)| *at <= seen).collect();
        for (nr, at) in began.into_iter().chain(begun) {
            self.turn(nr, at).since_ms = Some(at);
        }
    }
}
