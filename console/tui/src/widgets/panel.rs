//! What stands where data would be: what is waited for, why there is nothing, or what failed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::snapshot::{Load, Snapshot};
use crate::text::{age, wrap};
use crate::theme::{Role, Theme};
use crate::ui::Ui;
use crate::widgets::put;

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

/// The panel while nothing is known, if that is so.
pub(crate) fn waiting(ui: &Ui, snapshot: &Snapshot) -> Option<Panel> {
    let Load::Loading { what, since_ms } = &snapshot.load else { return None };
    let waited = ui.now_ms(snapshot).saturating_sub(*since_ms);
    let frames: [&str; 4] = if ui.theme.is_ascii() { ["|", "/", "-", "\\"] } else { ["⠋", "⠙", "⠴", "⠦"] };
    // No spinner in the first 300 ms: what is quick should not flicker.
    let spinner = if waited < 300 { " " } else { frames[(waited / 250 % 4) as usize] };
    Some(Panel { head: format!("{spinner} {what}"), role: Role::Text, lines: vec![format!("for {}", age(waited))] })
}

/// The panel of a failure, if there was one.
pub(crate) fn failed(ui: &Ui, snapshot: &Snapshot) -> Option<Panel> {
    let Load::Failed { what, why, since_ms, next } = &snapshot.load else { return None };
    let since = age(ui.now_ms(snapshot).saturating_sub(*since_ms));
    Some(Panel { head: format!("{what} failed {since} ago"), role: Role::Act, lines: vec![why.clone(), next.clone()] })
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

fn wrap_keeping_indent(text: &str, room: usize) -> Vec<String> {
    if text.starts_with(' ') { vec![text.to_owned()] } else { wrap(text, room) }
}
