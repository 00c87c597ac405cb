//! Playbooks on the left, the chosen one with its steps and their progress on the right.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;
use ratatui::widgets::Widget;

use crate::snapshot::{PlaybookRow, RunInfo, RunProgress, Snapshot, StepProgress, StepRow};
use crate::text::{age, counted, cut, elide, width, wrap};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Panel, block, framed_panel, instead, put, put_spans};

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let none = || {
        Panel::empty(
            "There is no playbook.",
            "Start muster where its playbooks are, or name a file: `muster run FILE`.",
        )
    };
    if let Some(instead) = instead(ui, snapshot, (&snapshot.load, !snapshot.playbooks.is_empty()), none) {
        return framed_panel(buffer, area, &ui.theme, ("Playbooks", &instead));
    }
    let width = (area.width / 4).clamp(20, 36);
    list(ui, snapshot, buffer, Rect { width, ..area });
    if let Some(playbook) = snapshot.playbooks.get(ui.states.playbooks.cursor.at) {
        chosen(ui, snapshot, playbook, buffer, Rect { x: area.x + width, width: area.width - width, ..area });
    }
}

fn list(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let title = format!("Playbooks {}", snapshot.playbooks.len());
    let block = block(&ui.theme, area, &title, "");
    let inner = block.inner(area);
    block.render(area, buffer);
    let window = ui.states.playbooks.cursor.window(snapshot.playbooks.len(), inner.height.into());
    for (y, row) in (inner.y..inner.bottom()).zip(window) {
        let name = &snapshot.playbooks[row].name;
        let running = Ui::going(snapshot).is_some_and(|r| r.playbook == *name);
        put(buffer, (inner.x + 1, y), inner.width.saturating_sub(1), name, ui.theme.style(Role::Text));
        if running {
            put(buffer, (inner.right().saturating_sub(8), y), 7, "running", ui.theme.style(Role::Head));
        }
        if row == ui.states.playbooks.cursor.at {
            buffer.set_style(Rect { y, height: 1, ..inner }, ui.theme.style(Role::Selected));
        }
    }
}

type Row<'a> = Vec<Span<'a>>;

fn chosen(ui: &Ui, snapshot: &Snapshot, playbook: &PlaybookRow, buffer: &mut Buffer, area: Rect) {
    let run = snapshot.run.as_deref().filter(|r| r.playbook == playbook.name);
    let note = run.map_or(String::new(), |r| r.phase.word().to_owned());
    let block = block(&ui.theme, area, &playbook.name, &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let room = usize::from(inner.width.saturating_sub(2));
    let mut rows: Vec<Row<'_>> = Vec::new();
    rows.push(vec![Span::styled(playbook.title.clone(), ui.theme.style(Role::Head))]);
    if run.is_none() || inner.height > 24 {
        rows.extend(wrap(&playbook.about, room).into_iter().map(|l| vec![Span::raw(l)]));
    }
    let profile = run.map_or(playbook.profile, |r| r.profile);
    let facts = format!("profile {profile}, {}", counted(playbook.steps.len(), "step", "steps"));
    rows.push(vec![Span::styled(facts, ui.theme.style(Role::Dim))]);
    if let Some(run) = run {
        rows.push(overall(ui, snapshot, run, room));
    }
    rows.push(Vec::new());
    for (i, step) in playbook.steps.iter().enumerate() {
        let progress = run.and_then(|_| snapshot.progress.steps.iter().find(|s| s.id == step.id));
        rows.extend(step_rows(ui, i, step, progress, room));
    }
    for (y, row) in (inner.y..inner.bottom()).zip(&rows) {
        put_spans(buffer, (inner.x + 1, y), inner.width.saturating_sub(2), row);
    }
}

fn overall<'a>(ui: &Ui, snapshot: &Snapshot, run: &RunInfo, room: usize) -> Row<'a> {
    let end = run.ended_ms.unwrap_or_else(|| ui.data_ms(snapshot));
    let took = age(end.saturating_sub(run.started_ms) / 1000 * 1000);
    let RunProgress { left, done, total, .. } = &snapshot.progress;
    let left = left.filter(|_| run.phase.is_going()).map_or(String::new(), |left| format!(", {}", left.words()));
    let text = format!("{done} of {total} work items in {took}{left}");
    vec![
        Span::styled(
            ui.theme.bar(share(*done, *total), room.saturating_sub(text.len() + 2).min(30)),
            ui.theme.style(Role::Text),
        ),
        Span::raw("  "),
        Span::raw(text),
    ]
}

fn share(done: usize, total: usize) -> f64 {
    if total == 0 { 0.0 } else { done as f64 / total as f64 }
}

fn step_rows<'a>(ui: &Ui, i: usize, step: &StepRow, progress: Option<&StepProgress>, room: usize) -> Vec<Row<'a>> {
    let theme = &ui.theme;
    let mut head = vec![Span::styled(format!("{}. {}", i + 1, step.id), theme.style(Role::Head)), Span::raw("  ")];
    if let Some(p) = progress {
        head.push(Span::raw(theme.bar(share(p.done, p.total), 12)));
        head.push(Span::raw(format!("  {}/{}", p.done, p.total)));
        if p.failed > 0 {
            head.push(Span::styled(format!("  {} failed", p.failed), theme.style(Role::Act)));
        }
    }
    let mut rows = vec![head];
    let indent = |text: &str| {
        vec![Span::styled(
            format!("   {}", cut(text, room.saturating_sub(3), theme.is_ascii())),
            theme.style(Role::Dim),
        )]
    };
    match progress {
        None => {
            rows.push(indent(&step.about));
            rows.push(indent(&step.work.join("  ")));
        }
        Some(p) => {
            let widest = p.groups.iter().map(|group| width(&group.what)).max().unwrap_or(0).min(28);
            for group in p.groups.iter() {
                let role = if group.what.starts_with("failed") { Role::Act } else { Role::Text };
                let what = cut(&group.what, widest, theme.is_ascii());
                let left = room.saturating_sub(3 + widest + 1 + 15);
                rows.push(vec![
                    Span::styled(format!("   {what:<widest$} "), theme.style(role)),
                    Span::raw(format!("{} {:>4}  ", theme.bar(group.done, 8), group.count)),
                    Span::styled(elide(&group.nodes, left, theme.is_ascii()), theme.style(Role::Dim)),
                ]);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::theme::Theme;

    #[test]
    fn work_that_failed_is_done_and_counts_once() {
        let ui = Ui::new(Theme::new(true, true), 120, 40);
        let step = StepRow { id: "disk".to_owned(), about: String::new(), work: Vec::new() };
        let progress = StepProgress { id: "disk".to_owned(), done: 2, failed: 2, total: 4, groups: Arc::from([]) };
        let rows = step_rows(&ui, 0, &step, Some(&progress), 80);
        let head: String = rows[0].iter().map(|span| &*span.content).collect();
        assert_eq!(head, "1. disk  ######......  2/4  2 failed");
    }
}
