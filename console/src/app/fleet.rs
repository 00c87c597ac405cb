//! Which runs the picture of the fleet is made of, and when it is made anew.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use muster_run::{Run, is_work, visit_of};
use muster_store::Store;
use muster_wire::Level;

use crate::config::Config;
use crate::judge::{self, Asked, Judging, Kept, Told};
use crate::session;
use crate::views::{Board, Earlier, Reads, Stage};

/// Stored runs that are looked into, newest first.
pub(super) const RUNS: usize = 64;

/// The runs in the picture; clones share it.
#[derive(Clone, Debug)]
pub struct Fleet {
    board: Board,
    runs: Arc<Mutex<Runs>>,
    /// Held while a picture is made, so that a slow one never replaces a newer one.
    drawing: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct Runs {
    /// Newest first.
    stored: Vec<Arc<Told>>,
    live: Option<(Arc<Told>, Stage)>,
    /// What the runs before the stored ones said.
    earlier: Arc<Earlier>,
    /// The stored runs that it was read for, or is.
    looked: Vec<String>,
    alone: Option<Alone>,
    /// Grows when a run begins or ends: what was judged before is of the past.
    epoch: u64,
}

/// The run that is shown by itself, and what those before it said.
#[derive(Debug)]
struct Alone {
    told: Arc<Told>,
    earlier: Arc<Earlier>,
    /// Whether somebody has read that, or does.
    looked: bool,
}

/// Runs for which what was before is to be read.
#[derive(Debug)]
pub(super) struct Base {
    /// Newest first.
    pub(super) runs: Vec<Arc<Told>>,
    /// The nodes of which it is wanted.
    pub(super) names: Vec<String>,
    alone: bool,
}

impl Fleet {
    /// Of no run yet.
    #[must_use]
    pub fn new(board: Board) -> Self {
        Self { board, runs: Arc::default(), drawing: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        // A panic elsewhere leaves a list that is still a list.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the picture anew.
    fn draw(&self) {
        let _turn = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        let (runs, earlier, stage) = (self.shown(), self.earlier(), self.stage());
        if let Some(pairs) = runs.iter().find_map(|told| told.pairs.clone()) {
            self.board.pairs(pairs);
        }
        self.board.show(runs, earlier, &stage);
    }

    /// The runs that are shown, the newest first.
    #[must_use]
    pub fn shown(&self) -> Vec<Arc<Told>> {
        let runs = self.lock();
        match &runs.alone {
            Some(alone) => vec![alone.told.clone()],
            None => {
                // A resumed run is among the stored ones as it was before.
                let live = runs.live.as_ref().map(|(told, _)| told);
                let again = |told: &&Arc<Told>| live.is_none_or(|live| live.run.id != told.run.id);
                live.into_iter().chain(runs.stored.iter().filter(again)).cloned().collect()
            }
        }
    }

    fn earlier(&self) -> Arc<Earlier> {
        let runs = self.lock();
        runs.alone.as_ref().map_or(&runs.earlier, |alone| &alone.earlier).clone()
    }

    /// The runs for which what was before is still to be read; whoever asks is to read it.
    pub(super) fn to_look_back(&self) -> Option<Base> {
        let mut runs = self.lock();
        if let Some(alone) = &mut runs.alone {
            let base = || Base { runs: vec![alone.told.clone()], names: alone.told.run.nodes.clone(), alone: true };
            let base = (!alone.looked).then(base)?;
            alone.looked = true;
            self.board.looking_back(true);
            return Some(base);
        }
        let stored: Vec<String> = runs.stored.iter().map(|told| told.run.id.clone()).collect();
        if stored == runs.looked {
            return None;
        }
        runs.looked = stored;
        self.board.looking_back(true);
        Some(Base { runs: runs.stored.clone(), names: self.board.names(), alone: false })
    }

    /// What was said before `base`, if that could be read; of a run alone it counts as long as that is shown.
    pub(super) fn looked_back(&self, base: &Base, earlier: Option<Earlier>) {
        if let Some(earlier) = earlier.filter(|earlier| !earlier.is_empty() || !self.earlier().is_empty()).map(Arc::new)
        {
            {
                let mut runs = self.lock();
                match &mut runs.alone {
                    Some(alone) if base.alone && Arc::ptr_eq(&alone.told, &base.runs[0]) => alone.earlier = earlier,
                    _ if base.alone => {}
                    _ => runs.earlier = earlier,
                }
            }
            self.draw();
        }
        self.board.looking_back(false);
    }

    /// Tells the user something.
    pub(super) fn say(&self, level: Level, text: impl Into<String>) {
        self.board.say(level, text);
    }

    /// Says what of the database could not be read.
    pub(super) fn tell_damage(&self, store: &dyn Store) {
        self.board.tell_damage(store);
    }

    /// Where the newest of them stands.
    fn stage(&self) -> Stage {
        let runs = self.lock();
        match (&runs.alone, &runs.live) {
            (None, Some((_, stage))) => stage.clone(),
            (alone, _) => alone
                .as_ref()
                .map(|alone| &alone.told)
                .or(runs.stored.first())
                .map_or(Stage::Over, |told| Stage::of(told)),
        }
    }

    /// A run begins; gives what [`Fleet::live`] is to be told.
    pub fn began(&self) -> u64 {
        let mut runs = self.lock();
        runs.alone = None;
        runs.epoch += 1;
        runs.epoch
    }

    /// A replay begins again, and nothing is said yet; gives what [`Fleet::live`] is to be told.
    pub fn rewound(&self) -> u64 {
        let epoch = self.began();
        self.lock().live = None;
        // A picture that is being made shows what is no longer so, and must not come after this.
        drop(self.drawing.lock().unwrap_or_else(PoisonError::into_inner));
        epoch
    }

    /// What the run that goes on says so far, and where it stood then.
    pub fn live(&self, epoch: u64, told: Told, stage: Stage) {
        {
            let mut runs = self.lock();
            if runs.epoch != epoch {
                return;
            }
            runs.live = Some((Arc::new(told), stage));
        }
        self.draw();
    }

    /// What the run said when it ended.
    pub fn ended(&self, told: Told) {
        {
            let mut runs = self.lock();
            runs.epoch += 1;
            runs.live = None;
            let looked = runs.stored.iter().map(|told| &told.run.id).eq(&runs.looked);
            runs.stored.retain(|known| known.run.id != told.run.id);
            runs.stored.insert(0, Arc::new(told));
            // What was before the others is still before them, and they are at hand.
            if looked {
                runs.looked = runs.stored.iter().map(|told| told.run.id.clone()).collect();
            }
        }
        self.draw();
    }

    /// Shows one run alone, or all again.
    pub fn alone(&self, told: Option<Told>) {
        self.lock().alone = told.map(|told| Alone { told: Arc::new(told), earlier: Arc::default(), looked: false });
        self.draw();
    }

    /// Whether one run is shown by itself.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.lock().alone.is_some()
    }

    /// The newest stored run that counts.
    #[must_use]
    pub fn newest(&self) -> Option<Arc<Told>> {
        self.lock().stored.first().cloned()
    }

    /// Runs of which something stands: they hold the newest result of at least one node. Takes time where newer ones replace all of a
    /// large one.
    #[must_use]
    pub fn current(&self) -> HashSet<String> {
        let runs: Vec<Arc<Told>> = {
            let runs = self.lock();
            runs.live.iter().map(|(told, _)| told).chain(&runs.stored).cloned().collect()
        };
        let stands = |at: &usize| *at == 0 || runs[*at].stands_beside(&runs[..*at]);
        (0..runs.len()).filter(stands).map(|at| runs[at].run.id.clone()).collect()
    }

    /// Reads the runs that hold the newest results of the nodes called `names`, and shows them one by one. `first` is told of
    /// the newest of them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn read(
        &self,
        store: &dyn Store,
        (names, config): (&[String], &Config),
        first: impl FnOnce(&Told),
    ) -> Result<()> {
        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
        let mut newer: HashSet<Asked> = HashSet::new();
        let mut first = Some(first);
        let known = self.lock().stored.clone();
        let mut read: Vec<Arc<Told>> = Vec::new();
        let ours = |run: &Run| run.nodes.iter().any(|node| names.contains(node.as_str()));
        for run in store.runs()?.into_iter().filter(ours).take(RUNS) {
            // Later the rows stand while what is new is read.
            let reads = known.is_empty().then(|| self.board.reads(&run.id));
            let summaries = store.summaries(&run.id)?;
            let adds = summaries.iter().any(|one| {
                let asked = || (one.node.clone(), visit_of(&one.work).0.to_owned());
                is_work(&one.work) && names.contains(one.node.as_str()) && !newer.contains(&asked())
            });
            if !adds {
                continue;
            }
            let same = |told: &&Arc<Told>| (&told.run, told.results) == (&run, summaries.len());
            let told = match known.iter().find(same) {
                Some(told) => told.clone(),
                None => {
                    let mut told = judged(store, run, config, reads.as_ref())?;
                    told.forget(&newer);
                    Arc::new(told)
                }
            };
            newer.extend(told.settled());
            if let Some(first) = first.take() {
                first(&told);
            }
            read.push(told);
            // The first time one by one, as they come; later only whole, so that nothing is missing in between.
            if known.is_empty() {
                self.lock().stored.clone_from(&read);
                self.draw();
            }
        }
        if !known.is_empty() {
            self.lock().stored = read;
            self.draw();
        }
        Ok(())
    }
}

/// A stored run by what it is judged by now; `reads` is told how far that is.
///
/// # Errors
/// When the store cannot be read.
pub fn judged(store: &dyn Store, run: Run, config: &Config, reads: Option<&Reads>) -> Result<Told> {
    let judging = Judging::of(store, &run, session::params(config))?;
    if let Some(known) = known(store, &run, &judging)? {
        return Ok(known);
    }
    let records: Vec<_> = store.records(&run.id)?.into_iter().map(Arc::new).collect();
    if let Some(reads) = reads {
        reads.judges(&judging.context.count);
    }
    let mut told = Told::judge(run, &records, &judging);
    drop(records);
    told.drop_series();
    judge::keep_assessment(store, &told.run, &judging, &told.assessment);
    Ok(told)
}

/// The same by what was kept of it; `None` where that no longer holds, or where it measured pairs of nodes.
fn known(store: &dyn Store, run: &Run, judging: &Judging) -> Result<Option<Told>> {
    let Some(said) = Kept::of(store, run, judging).and_then(Kept::assessment) else { return Ok(None) };
    let records: Vec<_> = store.facts(&run.id)?.into_iter().map(Arc::new).collect();
    Ok(Told::known(run.clone(), &records, said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Count;
    use muster_analysis::State;

    #[test]
    fn nodes_are_not_told_as_not_run_while_a_stored_run_is_read_and_judged() {
        let board = Board::new("one", &["n1".to_owned()], &[]);
        let look = || {
            board.publish();
            let snapshot = board.snapshot();
            (snapshot.awaited(State::NotRun), snapshot.reading.as_ref().map(|reading| reading.words()))
        };
        assert_eq!(look(), (None, None));
        let reads = board.reads("r1");
        assert_eq!(look(), (Some("reading"), Some("reading run r1".to_owned())));
        assert_eq!(board.snapshot().awaited(State::Fail), None, "what is known stands");
        let count = Arc::new(Count::default());
        reads.judges(&count);
        count.begin(2_000, 2);
        (0..2_680).for_each(|_| count.add());
        assert_eq!(look(), (Some("judging"), Some("judging 1,340 of 2,000 metrics".to_owned())));
        drop(reads);
        assert_eq!(look(), (None, None));
    }
}
