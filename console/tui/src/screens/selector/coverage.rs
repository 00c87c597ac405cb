//! Which benchmark found which defects so far.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::snapshot::Selector;
use crate::text::elide;
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{block, put, put_right};

/// Minimum cells of a column.
const COLUMN: u16 = 6;

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
    let words: Vec<String> = table.categories.iter().map(|category| category.name().replace('_', " ")).collect();
    let widths: Vec<u16> = words.iter().map(|word| COLUMN.max(word.len() as u16 + 2)).collect();
    let names = inner.width.saturating_sub(widths.iter().sum()).clamp(14, 28);
    // Columns that do not fit whole are left out.
    let ends: Vec<(u16, u16)> = widths
        .iter()
        .scan(inner.x + names, |end, width| {
            *end += width;
            Some((*end - width, *width))
        })
        .take_while(|(start, width)| start + width <= inner.right())
        .collect();
    for (((start, width), word), defects) in ends.iter().zip(&words).zip(table.defects.iter()) {
        put_right(buffer, (*start, inner.y), *width, word, theme.style(Role::Head));
        put_right(buffer, (*start, inner.y + 1), *width, &format!("n {defects}"), theme.style(Role::Dim));
    }
    let picked = |name: &str| selector.selection.picks.iter().any(|p| p.benchmark == name);
    for ((y, name), row) in (inner.y + 2..inner.bottom()).zip(table.benchmarks.iter()).zip(table.found.chunks(columns))
    {
        let role = if picked(name) { Role::Head } else { Role::Text };
        let mark = if picked(name) { theme.pick("▸", ">") } else { " " };
        let text = format!("{mark}{}", elide(name, usize::from(names).saturating_sub(2), theme.is_ascii()));
        put(buffer, (inner.x, y), names, &text, theme.style(role));
        for (share, (start, width)) in row.iter().zip(&ends) {
            let text = share.map_or(theme.absent().to_owned(), |s| format!("{:.0}", (s * 100.0).max(0.0)));
            let role = if share.is_none_or(|s| s < 0.005) { Role::Dim } else { role };
            put_right(buffer, (*start, y), *width, &text, theme.style(role));
        }
    }
}
