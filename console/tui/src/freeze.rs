//! Holds what was measured still while newer results arrive behind it.

use std::borrow::Cow;

use crate::snapshot::Snapshot;

/// The picture that is held.
#[derive(Debug)]
pub(crate) struct Frozen {
    held: Snapshot,
    /// Clock of the console when it was taken.
    pub(crate) since_ms: u64,
}

impl Frozen {
    /// Holds `snapshot` from `now_ms` on.
    pub(crate) fn new(snapshot: &Snapshot, now_ms: u64) -> Self {
        Self { held: snapshot.clone(), since_ms: now_ms }
    }

    /// Whether `live` lists the same nodes: the cursor and the marks mean nodes of the list, so another list ends it.
    pub(crate) fn fits(&self, live: &Snapshot) -> bool {
        let names = |snapshot: &Snapshot| (snapshot.nodes.len(), snapshot.nodes.first().map(|node| node.name.clone()));
        self.held.alone == live.alone && names(&self.held) == names(live)
    }

    /// `live` with what was measured as it was held. The clock, messages and answers to questions go on, so that whatever
    /// the user does meanwhile is answered.
    fn over(&self, live: &Snapshot) -> Snapshot {
        let held = &self.held;
        // A run that has ended, or another one that has begun, is shown: what may be asked of it depends on that.
        let which = |snapshot: &Snapshot| snapshot.run.as_ref().map(|run| (run.id.clone(), run.phase));
        let same = which(held) == which(live);
        let focus = match (&held.focus, &live.focus) {
            (Some(held), Some(live)) if held.node == live.node => Some(held.clone()),
            (_, live) => live.clone(),
        };
        Snapshot {
            generation: held.generation,
            last_frame_ms: held.last_frame_ms,
            run: if same { held.run.clone() } else { live.run.clone() },
            progress: if same { held.progress.clone() } else { live.progress.clone() },
            nodes: held.nodes.clone(),
            counts: held.counts,
            hands: held.hands.clone(),
            metrics: held.metrics.clone(),
            focus,
            network: held.network.clone(),
            watch: held.watch.clone(),
            ..live.clone()
        }
    }
}

/// What is drawn and answered: `live`, or what is held over it.
pub(crate) fn seen<'s>(frozen: Option<&Frozen>, live: &'s Snapshot) -> Cow<'s, Snapshot> {
    frozen.map_or(Cow::Borrowed(live), |frozen| Cow::Owned(frozen.over(live)))
}
