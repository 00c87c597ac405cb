//! The CDFs: peers as a dim band, the criterion, the defects and the selected node as lines, each with its letter.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::snapshot::{MetricRow, Snapshot};
use crate::text::width;
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{Line, Plot, put, put_spans};

/// Defects that get a line each; the similarity list has them all.
const DEFECTS: usize = 5;

struct Entry<'a> {
    points: &'a [(f64, f64)],
    role: Role,
    tag: char,
    name: String,
}

/// Draws the chart with its legend in the first row.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, metric: &MetricRow, buffer: &mut Buffer, area: Rect) {
    let entries = entries(ui, snapshot, metric);
    if entries.is_empty() && metric.peers.is_none() {
        let text = "No sample yet; the chart fills as nodes finish.";
        return put(buffer, (area.x, area.y + area.height / 3), area.width, text, ui.theme.style(Role::Dim));
    }
    legend(ui, metric, &entries, buffer, area);
    let lines = entries.iter().map(|e| Line { points: e.points, style: ui.theme.style(e.role), tag: e.tag }).collect();
    let show = |x: f64| metric.unit.show(x);
    let plot = Plot { theme: &ui.theme, show: &show, start: 0.0, band: metric.peers.as_ref(), lines };
    plot.draw(buffer, Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area });
}

fn entries<'a>(ui: &Ui, snapshot: &'a Snapshot, metric: &'a MetricRow) -> Vec<Entry<'a>> {
    let mut entries = Vec::new();
    if !metric.criterion.is_empty() {
        entries.push(Entry {
            points: &metric.criterion,
            role: Role::Criterion,
            tag: 'C',
            name: "criterion".to_owned(),
        });
    }
    let selected = ui.selected();
    // Letters A, B, D, E, F: C is the criterion and S the selected node.
    for (defect, tag) in metric.defects.iter().take(DEFECTS).zip(['A', 'B', 'D', 'E', 'F']) {
        entries.push(Entry { points: &defect.curve, role: Role::Act, tag, name: defect.node.clone() });
    }
    if let Some(name) = selected
        && !entries.iter().any(|e| e.name == name)
        && let Some(points) = selected_curve(snapshot, name, metric)
    {
        entries.push(Entry { points, role: Role::Focus, tag: 'S', name: name.to_owned() });
    }
    entries
}

fn selected_curve<'a>(snapshot: &'a Snapshot, name: &str, metric: &'a MetricRow) -> Option<&'a [(f64, f64)]> {
    let defect = metric.defects.iter().find(|d| d.node == name).map(|d| &*d.curve);
    let focus = snapshot.focus.as_deref().filter(|f| f.node == name);
    defect.or_else(|| focus?.series.iter().find(|s| s.metric == metric.id).map(|s| &*s.curve))
}

fn legend(ui: &Ui, metric: &MetricRow, entries: &[Entry<'_>], buffer: &mut Buffer, area: Rect) {
    let theme: &Theme = &ui.theme;
    let mut spans = Vec::new();
    for entry in entries {
        let under = ui.selected() == Some(&entry.name);
        spans.push(Span::styled(format!("{} ", entry.tag), theme.style(entry.role)));
        spans.push(Span::styled(
            format!("{}  ", ui.states.fleet.names().short(&entry.name, 18, theme.is_ascii())),
            theme.style(if under { Role::Head } else { Role::Text }),
        ));
    }
    if metric.peers.is_some() {
        spans.push(Span::styled(format!("{} peers  ", theme.pick("░░", "::")), theme.style(Role::Peers)));
    }
    let more = metric.defects.len().saturating_sub(DEFECTS);
    if more > 0 {
        spans.push(Span::styled(format!("+{more} more below alpha"), theme.style(Role::Act)));
    }
    let used: usize = spans.iter().map(|s| width(&s.content)).sum();
    let indent = if used + 5 < usize::from(area.width) { 5 } else { 0 };
    put_spans(buffer, (area.x + indent, area.y), area.width.saturating_sub(indent), &spans);
}
