//! The log's lines, by tui-logger's widget.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;
use tui_logger::{TuiLoggerLevelOutput, TuiLoggerWidget};

use crate::snapshot::Snapshot;
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Panel, block, panel};

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, _: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let level = ui.states.log.level.as_str().to_lowercase();
    let note = if ui.states.log.scrolled { "scrolled, esc follows" } else { "" };
    let block = block(theme, area, &format!("Log {} {level} and worse", theme.pick("─", "-")), note);
    let inner = block.inner(area);
    block.render(area, buffer);
    TuiLoggerWidget::default()
        .state(&ui.states.log.widget)
        .style(theme.style(Role::Text))
        .style_error(theme.style(Role::Act))
        .style_warn(theme.style(Role::Attention))
        .style_debug(theme.style(Role::Dim))
        .style_trace(theme.style(Role::Dim))
        .output_level(Some(TuiLoggerLevelOutput::Long))
        .output_separator(' ')
        .output_file(false)
        .output_line(false)
        .render(inner, buffer);
    // The widget cannot say whether it has lines; blank cells can.
    if inner.positions().all(|at| buffer[at].symbol() == " ") {
        let next = if ui.states.log.is_last() {
            "It is the last level; lines come as things happen."
        } else {
            "+ shows less important lines too."
        };
        panel(buffer, inner, theme, &Panel::empty(format!("No line of level {level} or worse yet."), next));
    }
}
