//! What the board shows besides the updates of a run: playbooks, a node's past, and answers to questions.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use muster_playbook::{Playbook, builtin};
use muster_run::Record;
use muster_tui::snapshot::{
    Counts, Criteria, Network, Part, Past, PlaybookRow, Progress, Reading, Runs, StepRow, Testing, Triaged, Watching,
    WhatIf,
};

use super::{Board, Inner};
use crate::clock::now_ms;
use crate::judge::{Count, Pairs};

/// Minimum time between two updates on how far a stored run is judged, milliseconds.
const WAIT_MS: u64 = 200;

/// What is known of the pairs of the run, and the metric and the pair that the screen looks at.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pairs: Option<Arc<Pairs>>,
    metric: Option<String>,
    pair: Option<[String; 2]>,
    progress: Option<Progress>,
    began_ms: u64,
}

impl Board {
    /// The pairs of the run, as far as they are measured.
    pub fn pairs(&self, pairs: Arc<Pairs>) {
        let metric = self.lock().scan.metric.clone().filter(|name| pairs.matrices.contains_key(name));
        let Some(name) = metric.or_else(|| pairs.first().map(str::to_owned)) else { return };
        self.lock().scan.pairs = Some(pairs.clone());
        self.show_pairs(&pairs, &name);
    }

    /// The screen looks at this metric of the pairs.
    pub fn pair_metric(&self, name: &str) {
        let pairs = {
            let mut inner = self.lock();
            inner.scan.metric = Some(name.to_owned());
            inner.scan.pairs.clone()
        };
        if let Some(pairs) = pairs {
            self.show_pairs(&pairs, name);
        }
    }

    /// Shows `metric` of `pairs`, and the samples of the pair that the screen looks at.
    fn show_pairs(&self, pairs: &Arc<Pairs>, metric: &str) {
        // Made without the lock: it takes as long as localising.
        let Some(network) = pairs.picture(metric) else { return };
        let seen = self.lock().scan.pair.clone();
        let pair = seen.and_then(|[src, dst]| pairs.pair(&network, &src, &dst)).map(Arc::new);
        let mut inner = self.lock();
        // Meanwhile there may be newer ones, or a replay has begun again.
        if inner.scan.pairs.as_ref().is_some_and(|newest| Arc::ptr_eq(newest, pairs)) {
            let progress = inner.scan.progress.clone();
            inner.now.network = Part::ready(Network { progress, pair, ..network });
            inner.dirty = true;
        }
    }

    /// The screen looks at this pair.
    pub fn pair(&self, src: &str, dst: &str) {
        let (pairs, shown) = {
            let mut inner = self.lock();
            inner.scan.pair = Some([src.to_owned(), dst.to_owned()]);
            (inner.scan.pairs.clone(), inner.now.network.data.clone())
        };
        let Some((pairs, shown)) = pairs.zip(shown) else { return };
        let pair = pairs.pair(&shown, src, dst).map(Arc::new);
        let mut inner = self.lock();
        if let Some(network) = &mut inner.now.network.data {
            Arc::make_mut(network).pair = pair;
        }
        inner.dirty = true;
    }

    /// The job that is watched looks like this.
    pub fn watching(&self, watch: Watching) {
        let mut inner = self.lock();
        inner.now.watch = Part::ready(watch);
        inner.dirty = true;
    }

    /// The case that is looked into, or how far it is read.
    pub fn triage(&self, part: Part<Triaged>) {
        let mut inner = self.lock();
        inner.now.triage = part;
        inner.dirty = true;
    }

    /// An offline diagnosis goes on like this, or none does.
    pub fn testing(&self, testing: Option<Testing>) {
        let mut inner = self.lock();
        inner.now.testing = testing.map(Arc::new);
        inner.dirty = true;
    }

    /// The offline diagnosis is at its next step.
    pub fn testing_step(&self, step: &str) {
        self.testing_changed(|testing| step.clone_into(&mut testing.step));
    }

    /// The offline diagnosis is cancelled, and ends as soon as its probes have.
    pub fn testing_cancelled(&self) {
        self.testing_changed(|testing| testing.cancelling = true);
    }

    fn testing_changed(&self, change: impl FnOnce(&mut Testing)) {
        let mut inner = self.lock();
        if let Some(testing) = &mut inner.now.testing {
            change(Arc::make_mut(testing));
            inner.dirty = true;
        }
    }

    /// The runs that are shown, newest first.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        self.lock().told.iter().map(|told| told.run.id.clone()).collect()
    }

    /// From now on `reader`, too, is told the focused node whenever the database is to be asked about it.
    pub fn read_by(&self, reader: Sender<String>) {
        self.lock().readers.push(reader);
    }

    /// What the database knows of `node`, and its records in the runs that are shown, newest first; kept while the screen looks at
    /// it.
    pub fn past(&self, node: &str, past: Past, stored: Vec<Record>) {
        let mut inner = self.lock();
        let (past, stored) = inner.until_now(past, stored);
        if inner.focus.as_deref() == Some(node) {
            (inner.past, inner.stored) = (Some(Arc::new(past)), stored);
            (inner.refocus, inner.dirty) = (true, true);
        }
    }

    /// The answer to a question about other terms; `None` shows what is in force.
    pub fn what_if(&self, answer: Option<WhatIf>) {
        let mut inner = self.lock();
        inner.now.what_if = answer.map(Arc::new);
        inner.dirty = true;
    }

    /// This console only looks, for this reason.
    pub fn only_looks(&self, why: &str) {
        let mut inner = self.lock();
        inner.now.only_looks = Some(why.into());
        inner.dirty = true;
    }

    /// Results older than this are stale from now on.
    pub fn stale_after(&self, ms: u64) {
        let mut inner = self.lock();
        inner.now.stale_result_ms = ms;
        inner.dirty = true;
    }

    /// A reader of earlier runs starts, or has finished.
    pub fn looking_back(&self, begins: bool) {
        let mut inner = self.lock();
        inner.looking_back = if begins { inner.looking_back + 1 } else { inner.looking_back.saturating_sub(1) };
        inner.now.looking_back = inner.looking_back > 0;
        inner.dirty = true;
    }

    /// A stored run is being read and judged until the returned guard is dropped.
    #[must_use]
    pub fn reads(&self, run: &str) -> Reads {
        let mut inner = self.lock();
        inner.waits = Some(Waits { run: run.to_owned(), since_ms: now_ms(), count: None });
        inner.dirty = true;
        Reads(self.clone())
    }

    /// The versions of criteria in the database.
    pub fn criteria(&self, part: Part<Criteria>) {
        let mut inner = self.lock();
        inner.now.criteria = part;
        inner.dirty = true;
    }

    /// The runs in the database.
    pub fn runs(&self, part: Part<Runs>) {
        let mut inner = self.lock();
        inner.now.runs = part;
        inner.dirty = true;
    }
}

impl Inner {
    /// Has the database asked about the focused node.
    pub(super) fn ask(&self) {
        let Some(node) = &self.focus else { return };
        for reader in &self.readers {
            // The reader ends with the console only.
            let _ = reader.send(node.clone());
        }
    }

    /// Updates which stored run is being read, and how far it is judged.
    pub(super) fn wait(&mut self, now: u64) {
        if self.waits.is_some() && now >= self.now.now_ms + WAIT_MS {
            self.dirty = true;
        }
        if self.dirty {
            self.now.reading = self.waits.as_ref().map(Waits::reading);
        }
    }

    /// Counts the nodes in each state, and those among them that have only stale results.
    pub(super) fn count(&mut self, now: u64) {
        let limit = self.now.stale_result_ms;
        let now = self.now.replay().map_or(now, |replay| replay.at_ms);
        let stale = |at: u64| now.saturating_sub(at) > limit;
        let old = self.counted().iter().filter(|node| node.result_ms.is_some_and(stale));
        let (old, all) = (old.map(|node| node.state), self.counted().iter().map(|node| node.state));
        (self.now.stale, self.now.counts) = (Counts::of(old), Counts::of(all));
    }

    /// Another run is shown, or the same from its beginning: no pair is known. The screen still looks at its metric and its pair.
    pub(super) fn forget_pairs(&mut self) {
        let Scan { metric, pair, .. } = std::mem::take(&mut self.scan);
        self.scan = Scan { metric, pair, ..Scan::default() };
        self.now.network = Part::default();
    }

    /// Step number `step` begins with `left` pieces of work to be done.
    pub(super) fn begins(&mut self, step: usize, left: usize) {
        let Some(of) = self.steps.get_mut(step) else { return };
        of.done = of.total.saturating_sub(left);
        let more = left.saturating_sub(of.total);
        self.grow(step, more);
    }

    /// Adds `more` pieces of work to step number `step` and to the run. No total is less than what is done.
    pub(super) fn grow(&mut self, step: usize, more: usize) {
        let Some(step) = self.steps.get_mut(step) else { return };
        let more = more.max(step.done.saturating_sub(step.total));
        step.total += more;
        let progress = &mut self.now.progress;
        progress.total = (progress.total + more).max(progress.done);
    }

    /// The scan of pairs has ended.
    pub(super) fn rounds_over(&mut self) {
        let over = |progress: &mut Option<Progress>| {
            if let Some(progress) = progress {
                (progress.going, progress.eta_ms) = (false, None);
            }
        };
        over(&mut self.scan.progress);
        if let Some(network) = &mut self.now.network.data {
            over(&mut Arc::make_mut(network).progress);
        }
    }

    /// A round of pairs begins; `planned` are rounds and pairs in all, where they are known.
    pub(super) fn round(
        &mut self,
        now: u64,
        (number, planned): (usize, Option<(usize, u64)>),
        done: usize,
        dropped: Arc<[String]>,
    ) {
        if number == 0 || self.scan.began_ms == 0 {
            self.scan.began_ms = now;
        }
        // The plan of a stored scan does not have what was visited again.
        let at_least = |(rounds, pairs): (usize, u64)| (rounds.max(number + 1), done.max(pairs as usize));
        let (rounds, total) = planned.map_or((0, 0), at_least);
        let took = now.saturating_sub(self.scan.began_ms);
        let left = rounds.saturating_sub(number) as u64;
        let eta_ms = (number > 0 && rounds > 0).then(|| took * left / number as u64);
        let progress = Progress { round: number + 1, rounds, done, total, eta_ms, going: true, dropped };
        if let Some(network) = &mut self.now.network.data {
            Arc::make_mut(network).progress = Some(progress.clone());
        }
        self.scan.progress = Some(progress);
    }
}

/// A stored run that is being read and judged.
#[derive(Debug)]
pub(super) struct Waits {
    run: String,
    since_ms: u64,
    count: Option<Arc<Count>>,
}

impl Waits {
    fn reading(&self) -> Reading {
        let judged = self.count.as_ref().map(|count| count.get());
        Reading { run: self.run.clone(), since_ms: self.since_ms, judged }
    }
}

/// A stored run is being read and judged until this is dropped.
#[derive(Debug)]
pub struct Reads(Board);

impl Reads {
    /// Its results are read; `count` tells how many of its metrics are judged.
    pub fn judges(&self, count: &Arc<Count>) {
        let mut inner = self.0.lock();
        if let Some(waits) = &mut inner.waits {
            waits.count = Some(count.clone());
        }
        inner.dirty = true;
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.waits = None;
        inner.dirty = true;
    }
}

/// The playbooks that come with muster.
pub(super) fn playbooks() -> Arc<[PlaybookRow]> {
    let parsed = builtin().iter().filter_map(|(name, text)| Playbook::parse(text, name).ok());
    parsed
        .map(|book| PlaybookRow {
            steps: book
                .steps
                .iter()
                .map(|s| StepRow {
                    id: s.id.clone(),
                    about: s.about.clone(),
                    work: s.collect.iter().chain(&s.run).cloned().collect(),
                })
                .collect(),
            name: book.name,
            title: book.title,
            about: book.about,
            profile: book.profile,
        })
        .collect()
}
