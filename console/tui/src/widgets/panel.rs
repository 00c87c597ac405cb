//! What stands where data would be: what is waited for, why there is nothing, or what failed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::snapshot::{Load, Snapshot};
use crate::text::{age, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::{block, put};

/// A few sentences in place of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panel {
    /// Subject first.
    pub(crate) head: String,
    pub(crate) role: Role,
    /// Below it, and what the user can do.
    pub(crate) lines: Vec<String>,
}

impl Panel {
    /// Nothing to show: why, and the key that changes it.
    pub(crate) fn empty(why: impl Into<String>, key: impl Into<String>) -> Self {
        Self { head: why.into(), role: Role::Text, lines: vec![key.into()] }
    }
}

/// What stands in place of data, if anything has to: what is waited for, what failed while there is no data, or `none`.
pub(crate) fn instead(
    ui: &Ui,
    snapshot: &Snapshot,
    (load, has_data): (&Load, bool),
    none: impl FnOnce() -> Panel,
) -> Option<Panel> {
    let now = ui.now_ms(snapshot);
    match load {
        Load::Loading { what, since_ms } => Some(waiting(ui, what, now.saturating_sub(*since_ms))),
        _ if has_data => None,
        Load::Failed { what, why, since_ms, next } => {
            let since = age(now.saturating_sub(*since_ms));
            let (head, lines) = (format!("{what} failed {since} ago"), vec![why.clone(), next.clone()]);
            Some(Panel { head, role: Role::Act, lines })
        }
        Load::Ready => Some(match &snapshot.reading {
            Some(reading) => waiting(ui, &reading.words(), now.saturating_sub(reading.since_ms)),
            None => none(),
        }),
    }
}

fn waiting(ui: &Ui, what: &str, waited: u64) -> Panel {
    let frames: [&str; 4] = if ui.theme.is_ascii() { ["|", "/", "-", "\\"] } else { ["⠋", "⠙", "⠴", "⠦"] };
    // No spinner in the first 300 ms: what is quick should not flicker.
    let spinner = if waited < 300 { " " } else { frames[(waited / 250 % 4) as usize] };
    Panel { head: format!("{spinner} {what}"), role: Role::Text, lines: vec![format!("for {}", age(waited))] }
}

/// Draws a panel in the upper third of `area`.
pub(crate) fn panel(buffer: &mut Buffer, area: Rect, theme: &Theme, panel: &Panel) {
    let room = area.width.saturating_sub(4).min(90);
    let mut y = area.y + area.height / 5;
    let style = theme.style(Role::Text);
    let head = std::iter::once((&panel.head, theme.style(panel.role)));
    for (text, style) in head.chain(panel.lines.iter().map(|l| (l, style))) {
        for line in wrap_keeping_indent(text, usize::from(room)) {
            if y < area.bottom() {
                put(buffer, (area.x + 2, y), room, &line, style);
            }
            y += 1;
        }
    }
}

/// Draws a panel inside the border of a body called `title`.
pub(crate) fn framed_panel(buffer: &mut Buffer, area: Rect, theme: &Theme, (title, text): (&str, &Panel)) {
    let block = block(theme, area, title, "");
    let inner = block.inner(area);
    block.render(area, buffer);
    panel(buffer, inner, theme, text);
}

fn wrap_keeping_indent(text: &str, room: usize) -> Vec<String> {
    if text.starts_with(' ') { vec![text.to_owned()] } else { wrap(text, room) }
}
