//! In whose hands the node is: since when, by whom and why, who replaces it, what its return needs, which parts failed before.

use muster_analysis::service::Service;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::screens::node::Pane;
use crate::screens::node::panes::select;
use crate::snapshot::{FailureRow, Focus, HandedRow, NodeRow, ServicePast, ServiceRow, Snapshot};
use crate::text::{cut, day, whole_age, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::put;

/// Rows below the list: the chosen line in full.
pub(super) const EXTRA: u16 = 3;
/// Cells of the labels.
const LABELS: u16 = 14;

/// One line: what it is about, and what is to be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) label: &'static str,
    pub(crate) text: String,
    pub(crate) role: Role,
}

impl Field {
    fn new(label: &'static str, text: impl Into<String>, role: Role) -> Self {
        Self { label, text: text.into(), role }
    }
}

/// What stands above the node's lists: the state with all that belongs to it, and the parts that fail again. Of a node that is simply in
/// service there is nothing to say, of a suspect one nothing that its reasons do not say, but in whose place it is.
pub(crate) fn head(node: &NodeRow) -> Vec<(String, Role)> {
    let Some(row) = node.service.as_deref() else { return Vec::new() };
    let again = row.repeated.iter().map(|said| (said.clone(), Role::Attention));
    if matches!(row.state, Service::InService | Service::Suspect) {
        let swap = (!row.swap.is_empty()).then(|| (format!("{}, {}", row.state.title(), row.swap), Role::Text));
        return swap.into_iter().chain(again).collect();
    }
    let mut said = row.state.title().to_owned();
    if let Some(since) = row.since_ms {
        said += &format!(" since {}", day(since));
    }
    said += &by(&row.who, own_reason(row));
    if !row.swap.is_empty() {
        said += &format!("; {}", row.swap);
    }
    std::iter::once((said, Theme::service_role(row.state))).chain(again).collect()
}

/// What a person said; why it is defective stands among the reasons already.
fn own_reason(row: &ServiceRow) -> &str {
    if row.state == Service::Defective { "" } else { &row.why }
}

/// ` (kim: RMA 4711)`, as far as it is known.
fn by(who: &str, why: &str) -> String {
    match (who, why) {
        ("", "") => String::new(),
        (one, "") | ("", one) => format!(" ({one})"),
        (who, why) => format!(" ({who}: {why})"),
    }
}

/// All that is known of it, a line each.
pub(super) fn fields(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, focus: Option<&Focus>) -> Vec<Field> {
    let Some(row) = node.service.as_deref() else { return Vec::new() };
    let past = focus.and_then(|focus| focus.service.as_deref());
    let mut fields = vec![Field::new("state", since(ui, snapshot, row), Theme::service_role(row.state))];
    let told = [("put there by", &row.who), ("why", &row.why), ("spare", &row.swap)];
    fields.extend(
        told.into_iter().filter(|(_, text)| !text.is_empty()).map(|(label, text)| Field::new(label, text, Role::Text)),
    );
    fields.extend(needs(row, past));
    fields.extend(row.repeated.iter().map(|said| Field::new("fails again", said, Role::Attention)));
    if let Some(past) = past {
        fields.extend(past.failures.iter().map(|failure| Field::new("failed", failed(failure), Role::Text)));
        fields.extend(past.handed.iter().map(|handed| Field::new("history", was_handed(handed), Role::Dim)));
    }
    fields.extend(row.commands.iter().map(|command| Field::new("for Slurm", command, Role::Dim)));
    fields
}

fn since(ui: &Ui, snapshot: &Snapshot, row: &ServiceRow) -> String {
    let title = row.state.title();
    row.since_ms.map_or_else(
        || title.to_owned(),
        |at| format!("{title} since {} ({})", day(at), whole_age(ui.now_ms(snapshot).saturating_sub(at))),
    )
}

/// What stands between the node and its return, where somebody has to give it back.
fn needs(row: &ServiceRow, past: Option<&ServicePast>) -> Vec<Field> {
    if !matches!(row.state, Service::InRepair | Service::HotBuffer) {
        return Vec::new();
    }
    let Some(needs) = past.and_then(|past| past.needs.as_ref()) else {
        return vec![Field::new("return", "reading its runs", Role::Dim)];
    };
    if needs.is_empty() {
        return vec![Field::new("return", "nothing speaks against it: H, then swap return", Role::Good)];
    }
    needs.iter().map(|why| Field::new("no return", why, Role::Text)).collect()
}

/// `2026-11-20 gpu:3, serial 1654922000123, third time this GPU fails here: 31 % below 63 peers`.
fn failed(row: &FailureRow) -> String {
    let serial =
        row.serial.as_ref().map_or_else(|| ", serial number not told".to_owned(), |no| format!(", serial {no}"));
    let said = if row.said.is_empty() { String::new() } else { format!(", {}", row.said) };
    let reason = if row.reason.is_empty() { String::new() } else { format!(": {}", row.reason) };
    format!("{} {}{serial}{said}{reason}", day(row.at_ms), row.component)
}

fn was_handed(row: &HandedRow) -> String {
    let swap = if row.swap.is_empty() { String::new() } else { format!(", {}", row.swap) };
    format!("{} {}{swap}{}", day(row.at_ms), row.into, by(&row.who, &row.why))
}

/// Draws the list and the chosen line in full.
pub(super) fn draw(
    ui: &Ui,
    snapshot: &Snapshot,
    node: &NodeRow,
    focus: Option<&Focus>,
    (buffer, inner): (&mut Buffer, Rect),
) {
    let theme = &ui.theme;
    let fields = fields(ui, snapshot, node, focus);
    let cursor = ui.states.node.cursor(Pane::Service);
    let height = inner.height.saturating_sub(EXTRA);
    for (y, row) in (inner.y..inner.y + height).zip(cursor.window(fields.len(), height.into())) {
        let (field, line) = (&fields[row], Rect { y, height: 1, ..inner });
        put(buffer, (line.x, y), LABELS - 1, field.label, theme.style(Role::Dim));
        let room = line.width.saturating_sub(LABELS);
        let text = cut(&field.text, room.into(), theme.is_ascii());
        put(buffer, (line.x + LABELS, y), room, &text, theme.style(field.role));
        select(ui, Pane::Service, cursor, row, (buffer, line));
    }
    let Some(chosen) = fields.get(cursor.at.min(fields.len().saturating_sub(1))) else { return };
    // What fits its line needs no second one.
    if crate::text::width(&chosen.text) <= usize::from(inner.width.saturating_sub(LABELS)) {
        return;
    }
    let below = inner.y + height..inner.bottom();
    for (y, line) in below.zip(wrap(&chosen.text, inner.width.into())) {
        put(buffer, (inner.x, y), inner.width, &line, theme.style(Role::Text));
    }
}

/// The chosen line, to be taken along.
pub(super) fn copied(ui: &Ui, snapshot: &Snapshot, node: &NodeRow, focus: Option<&Focus>) -> Option<String> {
    let fields = fields(ui, snapshot, node, focus);
    let chosen = fields.get(ui.states.node.cursor(Pane::Service).at)?;
    // A command is taken along to be run.
    let command = chosen.label == "for Slurm";
    Some(if command { chosen.text.clone() } else { format!("{}: {}: {}", node.name, chosen.label, chosen.text) })
}
