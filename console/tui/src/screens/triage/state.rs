//! What the reader has chosen: the suspect, which list has the keys, and where each list is.

use std::sync::Arc;

use muster_triage::overview::Overview;
use muster_triage::report::{Subject, Suspect};
use ratatui::layout::Rect;

use crate::screens::triage::layout::{Layout, layout};
use crate::screens::triage::reader::{Entry, Reader, heights};
use crate::screens::triage::{matrix, papers, timeline, words};
use crate::snapshot::{Snapshot, Triaged};
use crate::ui::Ui;
use crate::widgets::Cursor;

/// Which list has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    /// Who is suspected.
    #[default]
    Suspects,
    /// What speaks for the suspicion.
    Evidence,
    /// Events on one clock.
    Timeline,
    /// How far each rank is.
    Matrix,
    /// The steps of the procedure.
    Steps,
    /// What was not looked at.
    Gaps,
}

impl Pane {
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Suspects => Self::Evidence,
            Self::Evidence => Self::Timeline,
            Self::Timeline => Self::Matrix,
            Self::Matrix => Self::Steps,
            Self::Steps => Self::Gaps,
            Self::Gaps => Self::Suspects,
        }
    }
}

/// State of the screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) pane: Pane,
    pub(crate) suspects: Cursor,
    /// The suspect that was chosen; it stays chosen when the case is judged anew.
    pub(crate) chosen: Option<Subject>,
    /// Places of the events that the filter keeps.
    pub(crate) moments: Vec<usize>,
    pub(crate) timeline: Reader,
    /// Whether equal ranks are one line; by their number where nobody chose.
    pub(crate) fold: Option<bool>,
    /// Places of the matrix's lines that the filter keeps.
    pub(crate) lines: Vec<usize>,
    pub(crate) matrix: Cursor,
    /// The first communicator in view.
    pub(crate) column: usize,
    pub(crate) evidence: Reader,
    pub(crate) steps: Reader,
    pub(crate) gaps: Reader,
    /// A machine that triage was asked for on another screen, and its alert.
    pub(crate) asked: Option<(String, Option<String>)>,
    /// Whether an offline diagnosis goes on: it has a line above the verdict.
    pub(crate) testing: bool,
    /// The case that is shown, to tell when it is another.
    shown: Option<(String, Arc<Overview>)>,
    /// The suspect and filter that lists were made for.
    made: (usize, String),
}

impl State {
    /// The suspect under the cursor, and whether it is marked as wrong.
    pub(crate) fn suspect<'t>(&self, triaged: &'t Triaged) -> Option<(&'t Suspect, bool)> {
        suspects(triaged).nth(self.suspects.at)
    }

    /// Whether equal ranks are one line.
    pub(crate) fn is_folded(&self, triaged: &Triaged, page: usize) -> bool {
        let ranks = triaged.overview.matrix.ranks.len();
        self.fold.unwrap_or(ranks > page || ranks >= 1_024)
    }
}

/// Who is suspected, then who is marked as wrong.
pub(crate) fn suspects(triaged: &Triaged) -> impl Iterator<Item = (&Suspect, bool)> {
    let report = &triaged.overview.report;
    let wrong = report.marked_wrong.iter().map(|suspect| (suspect, true));
    report.suspects.iter().map(|suspect| (suspect, false)).chain(wrong)
}

/// The parts of the screen as it is now.
pub(crate) fn parts(ui: &Ui, triaged: &Triaged) -> Layout {
    let room = usize::from(ui.size.width.saturating_sub(4));
    let lines = words::head(&triaged.overview.report, room, has_hint(ui)).len() + usize::from(ui.states.triage.testing);
    layout(ui.size, ui.wide, ui.states.triage.pane, (lines, suspects(triaged).count()))
}

/// Whether there is room for what can be copied anyway.
pub(crate) const fn has_hint(ui: &Ui) -> bool {
    ui.size.height >= 30
}

/// The room inside the border of a pane.
pub(crate) const fn inside(area: Rect) -> Rect {
    Rect { x: area.x + 2, y: area.y + 1, width: area.width.saturating_sub(4), height: area.height.saturating_sub(2) }
}

/// Brings everything up to date.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let Some(triaged) = snapshot.triage.data.as_deref() else { return };
    take_case(ui, triaged);
    ui.states.triage.testing = snapshot.testing.is_some();
    take_asked(ui, triaged);
    let parts = parts(ui, triaged);
    let at = ui.states.triage.chosen.as_ref().and_then(|chosen| {
        let mut all = suspects(triaged);
        all.position(|(suspect, _)| suspect.subject() == *chosen)
    });
    let page = usize::from(parts.suspects.height);
    let state = &mut ui.states.triage;
    state.suspects.put(at.unwrap_or(state.suspects.at), suspects(triaged).count(), page);
    let made = (state.suspects.at, ui.filter.text().to_owned());
    if state.made != made {
        (state.evidence, state.made) = (Reader::default(), made);
        state.moments = timeline::kept(&triaged.overview, &ui.filter);
    }
    let lines = matrix::kept(ui, triaged, &parts);
    ui.states.triage.lines = lines;
    let page = parts.of(Pane::Matrix).map_or(1, matrix::page);
    let state = &mut ui.states.triage;
    state.matrix.put(state.matrix.at, state.lines.len(), page);
    state.column = state.column.min(triaged.overview.matrix.columns.len().saturating_sub(1));
    for pane in [Pane::Evidence, Pane::Steps, Pane::Gaps, Pane::Timeline] {
        let Some(area) = parts.of(pane) else { continue };
        let (heights, page) = measured(ui, triaged, (pane, area));
        if let Some(reader) = reader(&mut ui.states.triage, pane) {
            reader.put(&heights, page);
        }
    }
}

/// Another case begins at its beginning; the same one judged anew keeps what was chosen.
fn take_case(ui: &mut Ui, triaged: &Triaged) {
    let state = &mut ui.states.triage;
    let same = state.shown.as_ref().is_some_and(|(_, overview)| Arc::ptr_eq(overview, &triaged.overview));
    if same {
        return;
    }
    let judged_anew = state.shown.as_ref().is_some_and(|(name, _)| *name == triaged.name);
    let (asked, pane) = (state.asked.take(), if judged_anew { state.pane } else { Pane::default() });
    *state = State { asked, pane, ..State::default() };
    state.shown = Some((triaged.name.clone(), triaged.overview.clone()));
    state.made = (usize::MAX, String::new());
}

/// Who was asked for on another screen is chosen, where the case suspects it.
fn take_asked(ui: &mut Ui, triaged: &Triaged) {
    let state = &mut ui.states.triage;
    let Some((node, _)) = &state.asked else { return };
    let found = suspects(triaged).find(|(suspect, _)| suspect.node.as_ref() == Some(node));
    if let Some((suspect, _)) = found {
        (state.chosen, state.asked) = (Some(suspect.subject()), None);
    } else if triaged.overview.nodes.contains(node) {
        state.asked = None;
    }
}

/// Where the reader of a pane is.
pub(crate) const fn reader(state: &mut State, pane: Pane) -> Option<&mut Reader> {
    match pane {
        Pane::Evidence => Some(&mut state.evidence),
        Pane::Steps => Some(&mut state.steps),
        Pane::Gaps => Some(&mut state.gaps),
        Pane::Timeline => Some(&mut state.timeline),
        Pane::Suspects | Pane::Matrix => None,
    }
}

/// What stands in a pane of text.
pub(crate) fn entries(ui: &Ui, triaged: &Triaged, pane: Pane) -> Vec<Entry> {
    match pane {
        Pane::Evidence => papers::evidence(ui, triaged),
        Pane::Steps => papers::steps(triaged),
        Pane::Gaps => papers::gaps(ui, triaged),
        Pane::Suspects | Pane::Matrix | Pane::Timeline => Vec::new(),
    }
}

/// Heights of the entries of a pane, and the lines that there are for them.
pub(crate) fn measured(ui: &Ui, triaged: &Triaged, (pane, area): (Pane, Rect)) -> (Vec<usize>, usize) {
    let inside = inside(area);
    if pane == Pane::Timeline {
        let list = timeline::list(ui, triaged, inside);
        return (timeline::heights(ui, triaged, list.width), list.height.into());
    }
    (heights(&entries(ui, triaged, pane), inside.width), inside.height.into())
}
