//! What keys do on the benchmarks' screen.

use muster_wire::MetricId;

use crate::intent::{Export, Intent};
use crate::judgement::status_word;
use crate::keymap::{
    Action, Binding, ENTER, FREEZE, MARK, Motion, NEXT_NODE, OTHER_LIST, PLUS, PREVIOUS_NODE, Term, WIDE, either,
    letter, one,
};
use crate::screens::Screen;
use crate::screens::bench::{Pane, what_if};
use crate::snapshot::{MetricRow, Snapshot};
use crate::ui::Ui;
use crate::widgets::Cursor;

/// Keys of the screen.
pub(crate) const KEYS: &[Binding] = &[
    one(ENTER, "enter", Action::Open, "go to its nodes, then open the node").hint("nodes", 1),
    MARK,
    OTHER_LIST,
    NEXT_NODE,
    PREVIOUS_NODE,
    either(PLUS, "+ -", Action::Try(Term::Alpha(true)), "what if alpha were higher").hint("what-if", 2),
    letter("-", Action::Try(Term::Alpha(false)), "what if alpha were lower"),
    letter(">", Action::Try(Term::Tau(true)), "what if tau were higher"),
    letter("<", Action::Try(Term::Tau(false)), "what if tau were lower"),
    letter("o", Action::Try(Term::Group), "what if only the next group were judged"),
    letter("v", Action::Try(Term::Version), "what if the next stored criterion judged"),
    WIDE,
    FREEZE,
];

/// Does `action`.
pub(crate) fn act(ui: &mut Ui, action: Action, snapshot: &Snapshot) -> Option<Vec<Intent>> {
    match (action, ui.states.bench.pane) {
        (Action::Move(motion), Pane::Metrics) => {
            let page = ui.page();
            ui.states.bench.metrics.go(motion, snapshot.metrics.len(), page);
            choose(ui, snapshot);
        }
        (Action::Move(motion), Pane::Nodes) => move_node(ui, motion, snapshot),
        (Action::NextNode, _) => move_node(ui, Motion::Down, snapshot),
        (Action::PreviousNode, _) => move_node(ui, Motion::Up, snapshot),
        (Action::Pane, Pane::Metrics) | (Action::Open, Pane::Metrics) => {
            ui.states.bench.pane = Pane::Nodes;
            follow(ui, snapshot);
        }
        (Action::Pane, Pane::Nodes) => ui.states.bench.pane = Pane::Metrics,
        (Action::Open, Pane::Nodes) if ui.selected.is_some() => ui.show(Screen::Node),
        (Action::Try(term), _) => return Some(what_if::turn(ui, snapshot, term)),
        (Action::Back, _) => return what_if::restore(ui).map(|restored| vec![restored]),
        (Action::Copy, _) => return ui.states.bench.metric(snapshot).map(|m| vec![Intent::Copy(sentence(m))]),
        (Action::Export, _) => {
            let metric = ui.states.bench.metric(snapshot)?.id.clone();
            ui.ask_export(Export::Metric { metric });
        }
        _ => return None,
    }
    Some(Vec::new())
}

fn choose(ui: &mut Ui, snapshot: &Snapshot) {
    ui.states.bench.chosen = ui.states.bench.metric(snapshot).map(|m| m.id.clone());
    ui.states.bench.nodes = Cursor::default();
}

/// Opens the screen at the metric, among those of the kind of `node` if one is given.
pub(crate) fn open_metric(ui: &mut Ui, snapshot: &Snapshot, (metric, node): (&MetricId, Option<usize>)) {
    let Some(at) = snapshot.metrics.place(metric, node) else { return };
    let page = ui.page();
    ui.states.bench.metrics.put(at, snapshot.metrics.len(), page);
    choose(ui, snapshot);
    ui.states.bench.pane = Pane::Metrics;
    ui.show(Screen::Benchmarks);
}

fn move_node(ui: &mut Ui, motion: Motion, snapshot: &Snapshot) {
    let Some(metric) = ui.states.bench.metric(snapshot) else { return };
    let page = crate::screens::bench::scores::rows(ui.size);
    ui.states.bench.nodes.go(motion, metric.scores.len(), page);
    follow(ui, snapshot);
}

/// Makes the node under the cursor the selected one.
fn follow(ui: &mut Ui, snapshot: &Snapshot) {
    let score = ui.states.bench.metric(snapshot).and_then(|m| m.scores.get(ui.states.bench.nodes.at));
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
