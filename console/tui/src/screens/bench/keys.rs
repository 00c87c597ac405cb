//! What keys do on the benchmarks' screen.

use muster_wire::MetricId;

use crate::intent::{Export, Intent};
use crate::judgement::status_word;
use crate::keymap::{Action, Motion};
use crate::screens::Screen;
use crate::screens::bench::{Pane, what_if};
use crate::snapshot::{MetricRow, Snapshot};
use crate::ui::Ui;
use crate::widgets::Cursor;

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Vec<Intent> {
    match (action, ui.bench.pane) {
        (Action::Move(motion), Pane::Metrics) => {
            let page = ui.page();
            ui.bench.metrics.go(motion, snapshot.metrics.len(), page);
            choose(ui, snapshot);
        }
        (Action::Move(motion), Pane::Nodes) => move_node(ui, motion, snapshot),
        (Action::NextNode, _) => move_node(ui, Motion::Down, snapshot),
        (Action::PreviousNode, _) => move_node(ui, Motion::Up, snapshot),
        (Action::Pane, Pane::Metrics) | (Action::Open, Pane::Metrics) => {
            ui.bench.pane = Pane::Nodes;
            follow(ui, snapshot);
        }
        (Action::Pane, Pane::Nodes) => ui.bench.pane = Pane::Metrics,
        (Action::Open, Pane::Nodes) if ui.selected.is_some() => ui.show(Screen::Node),
        (Action::Try(term), _) => return what_if::turn(ui, snapshot, term),
        (Action::Mark, _) => {
            if let Some((name, _)) = ui.selected.clone()
                && !ui.marks.remove(&name)
            {
                ui.marks.insert(name);
            }
        }
        (Action::Copy, _) => {
            return ui.bench.metric(snapshot).map(|m| Intent::Copy(sentence(m))).into_iter().collect();
        }
        (Action::Export, _) => {
            if let Some(metric) = ui.bench.metric(snapshot).map(|metric| metric.id.clone()) {
                ui.ask_export(Export::Metric { metric });
            }
        }
        _ => {}
    }
    Vec::new()
}

fn choose(ui: &mut Ui, snapshot: &Snapshot) {
    ui.bench.chosen = ui.bench.metric(snapshot).map(|m| m.id.clone());
    ui.bench.nodes = Cursor::default();
}

/// Opens the screen at the metric, among those of the kind of `node` if one is given.
pub(crate) fn open_metric(ui: &mut Ui, snapshot: &Snapshot, (metric, node): (&MetricId, Option<usize>)) {
    let Some(at) = snapshot.metrics.place(metric, node) else { return };
    let page = ui.page();
    ui.bench.metrics.put(at, snapshot.metrics.len(), page);
    choose(ui, snapshot);
    ui.bench.pane = Pane::Metrics;
    ui.show(Screen::Benchmarks);
}

fn move_node(ui: &mut Ui, motion: Motion, snapshot: &Snapshot) {
    let Some(metric) = ui.bench.metric(snapshot) else { return };
    let page = crate::screens::bench::scores::rows(ui.size);
    ui.bench.nodes.go(motion, metric.scores.len(), page);
    follow(ui, snapshot);
}

/// Makes the node under the cursor the selected one.
fn follow(ui: &mut Ui, snapshot: &Snapshot) {
    let score = ui.bench.metric(snapshot).and_then(|m| m.scores.get(ui.bench.nodes.at));
    if let Some(node) = score.map(|s| s.node) {
        ui.select(snapshot, node);
    }
}

fn sentence(metric: &MetricRow) -> String {
    let status = metric.status.map_or("no criterion yet", status_word);
    let repeatability = metric.repeatability.map_or(String::new(), |r| format!(", repeatability {r:.3}"));
    let defects: Vec<&str> = metric.defects.iter().map(|d| d.node.as_str()).collect();
    let below =
        if defects.is_empty() { "none below alpha".to_owned() } else { format!("below alpha: {}", defects.join(", ")) };
    format!("{}: {status}, {} of {} nodes healthy{repeatability}, {below}", metric.id, metric.healthy, metric.n)
}
