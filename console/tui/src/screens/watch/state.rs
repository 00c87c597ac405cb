//! What the reader has chosen: machine, metric, time, zoom, and which list has the keys.

use std::sync::Arc;

use muster_watch::{Alert, Frame};
use muster_wire::SaysOfJob;

use crate::filter::Filter;
use crate::screens::watch::rows::{self, By, Row};
use crate::screens::watch::time::{self, Window};
use crate::screens::watch::{layout, lists};
use crate::snapshot::{NodeRow, Snapshot, Watched, WatchedMetric, Watching};
use crate::stale::Stale;
use crate::ui::Ui;
use crate::widgets::Cursor;

/// Rows do not change places so soon after a key.
const HOLD_MS: u64 = 2_000;

/// Which list has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Machines,
    Metrics,
    Alerts,
}

impl Pane {
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Machines => Self::Metrics,
            Self::Metrics => Self::Alerts,
            Self::Alerts => Self::Machines,
        }
    }
}

/// How machines are gathered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fold {
    /// By the first label there is, once there are more machines than rows.
    #[default]
    Auto,
    /// A row each.
    Off,
    /// By this label.
    By(&'static str),
}

/// State of the screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) pane: Pane,
    /// What was chosen by a person; otherwise the newest open alert leads.
    pub(crate) chosen: Option<String>,
    pub(crate) chosen_metric: Option<String>,
    /// The machine and the metric that are shown, by their places.
    pub(crate) node: usize,
    pub(crate) metric: usize,
    /// The frame that is looked at; the newest one where none is chosen.
    pub(crate) seq: Option<u64>,
    /// How often a column was doubled.
    pub(crate) zoom: u32,
    pub(crate) fold: Fold,
    /// The group whose machines alone are shown.
    pub(crate) inside: Option<(String, String)>,
    pub(crate) window: Window,
    pub(crate) rows: Vec<Row>,
    /// What the rows are folded by.
    pub(crate) folded: Option<&'static str>,
    pub(crate) machines: Cursor,
    /// Places of the metrics, what speaks loudest first.
    pub(crate) ranked: Vec<usize>,
    /// The alert that was jumped to last.
    pub(crate) alert: Cursor,
    /// Something was odd, or a person chose a metric.
    led: bool,
    /// The metric and the time that the rows are sorted by.
    sorted: (usize, Option<u64>),
    /// Machines that are watched, to tell when others are.
    watched: usize,
}

impl State {
    /// The frame that is looked at.
    pub(crate) fn frame<'w>(&self, watch: &'w Watching) -> Option<&'w Arc<Frame>> {
        self.seq.and_then(|seq| time::find(&watch.frames, seq)).or(watch.frames.last())
    }

    /// Rows in order, those that the keys `n` and `p` go through: alerts, the newest first.
    pub(crate) fn alert_at<'w>(&self, watch: &'w Watching) -> Option<&'w Alert> {
        watch.alerts.iter().rev().nth(self.alert.at)
    }
}

/// Brings everything up to date.
pub(crate) fn settle(ui: &mut Ui, snapshot: &Snapshot) {
    let Some(watch) = snapshot.watch.data.as_deref() else { return };
    if watch.nodes.len() != ui.states.watch.watched {
        // Another watch: nothing that was chosen need be in it.
        ui.states.watch = State { watched: watch.nodes.len(), zoom: ui.states.watch.zoom, ..State::default() };
    }
    let columns = layout::parts(ui, watch).strip.width;
    let hold = ui.now_ms(snapshot).saturating_sub(ui.last_key_ms) < HOLD_MS && ui.last_key_ms > 0;
    let state = &mut ui.states.watch;
    settle_time(state, watch, columns);
    let frame = state.frame(watch).cloned();
    state.ranked = ranked(watch, frame.as_ref());
    lead(state, watch, frame.as_ref());
    let filter = ui.filter.clone();
    // Who leads says how long the sentence is, and that how many rows are left.
    let parts = layout::parts(ui, watch);
    let state = &mut ui.states.watch;
    settle_rows(state, watch, (snapshot, &filter), (usize::from(parts.strip.height), hold));
    state.alert.put(state.alert.at, watch.alerts.len(), lists::page(parts.lists.map_or(parts.line, |lists| lists[1])));
}

/// The window ends at the newest frame while that is followed, and stays where it is otherwise.
fn settle_time(state: &mut State, watch: &Watching, columns: u16) {
    let ends = watch.frames.first().zip(watch.frames.last());
    let Some((oldest, newest)) = ends.map(|(first, last)| (first.seq, last.seq)) else { return };
    let each = 1 << state.zoom;
    state.seq = state.seq.map(|seq| seq.clamp(oldest, newest));
    let columns = u64::from(columns.max(1));
    let last = match state.seq.map(|seq| seq / each) {
        None => newest / each,
        Some(at) => {
            let before = if state.window.each == each { state.window.last } else { newest / each };
            before.clamp(at, at + columns - 1)
        }
    };
    state.window = Window { each, last, columns };
}

/// Evidence in seconds from which a machine is shown unasked before it is named.
const LEADS: f32 = 30.0;

/// While a person chose none, the newest open alert chooses machine and metric, else the machine with most evidence.
fn lead(state: &mut State, watch: &Watching, frame: Option<&Arc<Frame>>) {
    let place = |name: &str| watch.nodes.iter().position(|node| node.name == name);
    let metric = |name: &str| watch.metrics.iter().position(|metric| metric.name == name);
    let open = watch.alerts.iter().rev().find(|alert| alert.until_s.is_none());
    let leader = match open {
        Some(alert) => place(&alert.node).map(|node| (node, alert.metric.as_deref().and_then(metric))),
        None => frame.and_then(|frame| suspect(watch, frame)).map(|(node, metric)| (node, Some(metric))),
    };
    let chosen = state.chosen.as_deref().and_then(place);
    state.node = chosen.or(leader.map(|(node, _)| node)).unwrap_or(state.node);
    // The metric of a machine that a person chose stays until it is chosen, too.
    let leading = leader.and_then(|(_, metric)| metric).filter(|_| state.chosen.is_none());
    let chosen = state.chosen_metric.as_deref().and_then(metric);
    state.led |= chosen.or(leading).is_some();
    let usual = if state.led { state.metric } else { telling(watch) };
    state.metric = chosen.or(leading).unwrap_or(usual).min(watch.metrics.len().saturating_sub(1));
}

/// The machine with most evidence against it, and the metric that has most of that.
fn suspect(watch: &Watching, frame: &Frame) -> Option<(usize, usize)> {
    let node =
        (0..watch.nodes.len()).max_by(|a, b| frame.evidence(*a).total_cmp(&frame.evidence(*b)).then(b.cmp(a)))?;
    let evidence = |metric: usize| frame.look(node, metric).evidence.abs();
    let metric = (0..watch.metrics.len()).max_by(|a, b| evidence(*a).total_cmp(&evidence(*b)).then(b.cmp(a)))?;
    (frame.evidence(node) >= LEADS).then_some((node, metric))
}

/// The metric that is shown before anything is odd: what tells most of the job.
fn telling(watch: &Watching) -> usize {
    (0..watch.metrics.len()).min_by_key(|at| says_of_job(&watch.metrics[*at])).unwrap_or_default()
}

/// What tells of the job's pace comes first.
const fn says_of_job(metric: &WatchedMetric) -> u8 {
    match metric.about.job {
        SaysOfJob::Moves => 0,
        SaysOfJob::Busy => 1,
        SaysOfJob::Waits => 2,
        SaysOfJob::Nothing => 3,
    }
}

/// Metrics by the evidence in them, then by the largest score, then by what they tell of the job.
fn ranked(watch: &Watching, frame: Option<&Arc<Frame>>) -> Vec<usize> {
    let mut all: Vec<usize> = (0..watch.metrics.len()).collect();
    if let Some(frame) = frame {
        let loudest: Vec<_> = all.iter().map(|metric| lists::loudest(watch, frame, *metric)).collect();
        let rank = |metric: &usize| loudest[*metric].map_or((0, 0), |(_, look)| lists::rank(look));
        all.sort_by_key(|metric| (std::cmp::Reverse(rank(metric)), says_of_job(&watch.metrics[*metric])));
    }
    all
}

fn settle_rows(
    state: &mut State,
    watch: &Watching,
    (snapshot, filter): (&Snapshot, &Filter),
    (page, hold): (usize, bool),
) {
    let labels = rows::labels(&watch.nodes);
    state.folded = match state.fold {
        _ if state.inside.is_some() => None,
        Fold::Off => None,
        Fold::By(label) => Some(label),
        Fold::Auto => labels.first().copied().filter(|_| watch.nodes.len() > page),
    };
    let stale = Stale::then(snapshot);
    let by_name: std::collections::HashMap<&str, &Arc<NodeRow>> = match filter.is_empty() {
        true => std::collections::HashMap::new(),
        false => snapshot.nodes.iter().map(|row| (row.name.as_str(), row)).collect(),
    };
    let keeps = |node: &Watched| {
        filter.is_empty() || by_name.get(node.name.as_str()).is_some_and(|row| filter.keeps(row, stale))
    };
    let by = By { watch, frame: state.frame(watch), metric: state.metric };
    let made = rows::rows(&by, &keeps, state.folded, state.inside.as_ref());
    let names = |rows: &[Row]| {
        let mut names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        names.sort_unstable();
        names
    };
    // Newer data alone is no reason to move rows under the cursor.
    let sorted = (state.metric, state.seq);
    if !(hold && state.sorted == sorted && names(&made) == names(&state.rows)) {
        (state.rows, state.sorted) = (made, sorted);
    }
    // The cursor stays on its machine; without one of its own, it goes to the first row.
    let of_node = state.rows.iter().position(|row| row.nodes.contains(&state.node));
    let at = of_node.unwrap_or(state.machines.at);
    state.machines.put(at, state.rows.len(), page);
    if of_node.is_none()
        && let Some(row) = state.rows.get(state.machines.at)
    {
        state.node = row.nodes.first().copied().unwrap_or_default();
    }
}
