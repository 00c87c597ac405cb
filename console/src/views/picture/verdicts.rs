//! A node's verdicts as rows, each with the result of the same metric in an earlier run.

use std::sync::Arc;

use muster_analysis::findings::{Effect, Finding, Source};
use muster_analysis::history::{Noise, Showed, since};
use muster_analysis::{Criterion, NodeVerdict, Sample};
use muster_playbook::report::Known;
use muster_tui::judgement::severity;
use muster_tui::snapshot::{Before, EarlierRun, Metrics, VerdictRow};

use crate::judge::{ByMetric, Told, known_of};
use crate::views::Earlier;
use crate::views::earlier::Then;

/// The verdicts of `node` in `runs`, newest run first; the worst verdicts come first. Only for the node on the screen: a fleet has
/// millions of them.
#[must_use]
pub fn verdicts_of(runs: &[Arc<Told>], (metrics, earlier): (&Metrics, &Earlier), node: &str) -> Vec<VerdictRow> {
    let Some((places, known)) = known_of(runs, node) else { return Vec::new() };
    let index: Vec<ByMetric<'_>> = runs.iter().map(|told| ByMetric::of(&told.assessment)).collect();
    let sources = Sources::new(runs, &index, (metrics, earlier));
    let rows = (0..known.found.verdicts.len()).filter_map(|nr| sources.verdict((&places, &known), nr));
    let mut rows: Vec<VerdictRow> = rows.collect();
    // Within a state the order of the catalogue stays.
    rows.sort_by_key(|row| severity(row.state));
    rows
}

/// What rows are built from.
pub(super) struct Sources<'a> {
    pub(super) runs: &'a [Arc<Told>],
    index: &'a [ByMetric<'a>],
    metrics: &'a Metrics,
    from: Vec<Arc<EarlierRun>>,
    ids: Vec<Arc<str>>,
    earlier: &'a Earlier,
}

impl<'a> Sources<'a> {
    pub(super) fn new(
        runs: &'a [Arc<Told>],
        index: &'a [ByMetric<'a>],
        (metrics, earlier): (&'a Metrics, &'a Earlier),
    ) -> Self {
        let from = runs.iter().map(|told| Arc::new(EarlierRun { id: told.run.id.clone(), at_ms: told.at_ms() }));
        let ids = runs.iter().map(|told| told.run.id.as_str().into()).collect();
        Self { runs, index, metrics, from: from.collect(), ids, earlier }
    }

    /// The row of verdict number `nr`.
    pub(super) fn verdict(&self, (places, known): (&[usize], &Known<'_>), nr: usize) -> Option<VerdictRow> {
        let (v, at) = (&known.found.verdicts[nr], places[known.verdicts[nr]]);
        let criterion = self.index[at].criterion(&v.metric, &v.node);
        let usual = criterion.and_then(|criterion| criterion.sample.as_ref());
        let usual = usual.map(Sample::median).filter(|median| *median != 0.0);
        let before = criterion.and_then(|criterion| self.before((places, known), nr, criterion));
        let said = self.runs[at].of(&v.node).and_then(|own| effect(&own.findings.findings, v));
        let deviation = || v.value.zip(usual).map(|(value, usual)| value / usual - 1.0);
        Some(VerdictRow {
            metric: self.metrics.of(&v.metric)?.id.clone(),
            state: v.state,
            similarity: v.similarity,
            value: said.map(|effect| effect.value).or(v.value),
            deviation: said.map(Effect::change).or_else(deviation),
            reason: v.reason.clone(),
            at_ms: self.runs[at].measured_ms(&v.node, &v.metric.benchmark),
            run: self.ids[at].clone(),
            before,
        })
    }

    /// The result before verdict number `nr`, from the newest run older than its own.
    fn before(&self, (places, known): (&[usize], &Known<'_>), nr: usize, now: &Criterion) -> Option<Before> {
        let v = &known.found.verdicts[nr];
        let near = known.before(nr).and_then(|before| {
            let at = places[before.place];
            let then = self.index[at].criterion(&v.metric, &v.node)?;
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

/// How far off the metric of verdict `v` is by the sentence about it, one of `findings` of its run: a row and its sentence say one
/// number. What compares a part with its own past, or with the other parts of its node, says something else.
fn effect<'f>(findings: &'f [Finding], v: &NodeVerdict) -> Option<&'f Effect> {
    let told = findings.iter().filter(|finding| matches!(finding.source, Source::Metric(_) | Source::Metrics(_)));
    let of = |effect: &&Effect| effect.metric == v.metric && effect.change().is_finite();
    let own = told.filter_map(|finding| Some((finding.state, finding.effect.as_ref().filter(of)?)));
    own.max_by_key(|(state, _)| (*state == v.state, *state)).map(|(_, effect)| effect)
}
