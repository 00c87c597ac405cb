//! Which benchmark found which defects so far.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::snapshot::Selector;
use crate::text::{cut, elide};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{block, put, put_right};

/// Cells of a column.
const COLUMN: u16 = 8;

/// Draws the pane.
pub(crate) fn draw(ui: &Ui, selector: &Selector, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let table = &selector.coverage;
    let known: usize = table.defects.iter().sum();
    let block = block(theme, area, "Defects found, %", &format!("{known} known"));
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if table.categories.is_empty() {
        return put(buffer, (inner.x, inner.y), inner.width, "No defect is known yet.", theme.style(Role::Dim));
    }
    let columns = table.categories.len();
    let names = inner.width.saturating_sub(COLUMN * columns as u16).clamp(10, 28);
    let shown = (usize::from(inner.width.saturating_sub(names)) / usize::from(COLUMN)).min(columns);
    for (at, (category, defects)) in table.categories.iter().zip(table.defects.iter()).take(shown).enumerate() {
        let x = inner.x + names + COLUMN * at as u16;
        let word = cut(&category.name().replace('_', " "), usize::from(COLUMN) - 1, theme.is_ascii());
        put_right(buffer, (x, inner.y), COLUMN, &word, theme.style(Role::Head));
        put_right(buffer, (x, inner.y + 1), COLUMN, &format!("n {defects}"), theme.style(Role::Dim));
    }
    let picked = |name: &str| selector.selection.picks.iter().any(|p| p.benchmark == name);
    for ((y, name), row) in (inner.y + 2..inner.bottom()).zip(table.benchmarks.iter()).zip(table.found.chunks(columns))
    {
        let role = if picked(name) { Role::Head } else { Role::Text };
        let mark = if picked(name) { theme.pick("▸", ">") } else { " " };
        let text = format!("{mark}{}", elide(name, usize::from(names).saturating_sub(2), theme.is_ascii()));
        put(buffer, (inner.x, y), names, &text, theme.style(role));
        for (at, share) in row.iter().take(shown).enumerate() {
            let text = share.map_or(theme.absent().to_owned(), |s| format!("{:.0}", (s * 100.0).max(0.0)));
            let role = if share.is_none_or(|s| s < 0.005) { Role::Dim } else { role };
            put_right(buffer, (inner.x + names + COLUMN * at as u16, y), COLUMN, &text, theme.style(role));
        }
    }
}
