//! A node's verdicts as rows: what each says now, and what the same metric showed before.

use std::collections::HashMap;
use std::sync::Arc;

use muster_analysis::history::{Noise, Showed, since};
use muster_analysis::{Criterion, Sample};
use muster_playbook::report::Known;
use muster_tui::snapshot::{Before, EarlierRun, VerdictRow};
use muster_wire::MetricId;

use super::Index;
use crate::engine::earlier::Then;
use crate::engine::{Earlier, Told};

/// What rows of nodes are made of.
pub(super) struct Sources<'a> {
    pub(super) runs: &'a [Arc<Told>],
    pub(super) index: &'a [Index<'a>],
    pub(super) ids: &'a HashMap<&'a MetricId, &'a Arc<MetricId>>,
    pub(super) from: &'a [Arc<EarlierRun>],
    pub(super) earlier: &'a Earlier,
}

impl Sources<'_> {
    /// The row of the verdict number `nr` of `node`.
    pub(super) fn verdict(&self, (places, known): (&[usize], &Known), nr: usize, run: Arc<str>) -> Option<VerdictRow> {
        let (v, at) = (&known.found.verdicts[nr], places[known.verdicts[nr]]);
        let criterion = self.index[at].judged(&v.metric, &v.node);
        let usual = criterion.and_then(|criterion| criterion.sample.as_ref());
        let usual = usual.map(Sample::median).filter(|median| *median != 0.0);
        let before = criterion.and_then(|criterion| self.before((places, known), nr, criterion));
        Some(VerdictRow {
            metric: (*self.ids.get(&v.metric)?).clone(),
            state: v.state,
            similarity: v.similarity,
            value: v.value,
            deviation: v.value.zip(usual).map(|(value, usual)| value / usual - 1.0),
            reason: v.reason.clone(),
            at_ms: self.runs[at].at_ms(),
            run,
            before,
        })
    }

    /// What the verdict number `nr` was before, in whichever run is the newest of those before its own.
    fn before(&self, (places, known): (&[usize], &Known), nr: usize, now: &Criterion) -> Option<Before> {
        let v = &known.found.verdicts[nr];
        let near = known.before(nr).and_then(|before| {
            let at = places[before.place];
            let then = self.index[at].judged(&v.metric, &v.node)?;
            Some(Then::new(&self.from[at], (before.state, before.value), then))
        });
        let far = self.earlier.of(&v.node, &v.metric, self.from[places[known.verdicts[nr]]].at_ms);
        let then = near.into_iter().chain(far).max_by_key(|then| then.from.at_ms)?;
        // Numbers of another unit compare with nothing.
        let value = then.showed.value.filter(|_| then.unit == now.unit);
        let showed = Showed { state: v.state, value: v.value, noise: Noise::of(now) };
        let shift = since(&Showed { value, ..then.showed }, &showed, now.direction);
        Some(Before { state: then.showed.state, value, shift, from: then.from.clone() })
    }
}
