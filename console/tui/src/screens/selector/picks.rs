//! What to run, in order, with what each benchmark is worth per minute.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::screens::selector::draw::{chance, known};
use crate::snapshot::Selector;
use crate::text::{counted, cut, elide};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{block, put, put_right};
use muster_analysis::selector::lasting;

/// Draws the pane.
pub(crate) fn draw(ui: &Ui, selector: &Selector, buffer: &mut Buffer, area: Rect) {
    let theme = &ui.theme;
    let selection = &selector.selection;
    let gap = match selection.gap {
        None => String::new(),
        Some(0.0) => ", the best".to_owned(),
        Some(g) => format!(", within {:.0} % of the best", (g * 100.0).ceil()),
    };
    let note = format!("{}, covers {:.0} %{gap}", lasting(selection.minutes), selection.coverage * 100.0);
    let title = format!("Run {}", counted(selection.picks.len(), "benchmark", "benchmarks"));
    let block = block(theme, area, &title, &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    if selection.picks.is_empty() {
        return put(buffer, (inner.x, inner.y), inner.width, "Nothing has to run.", theme.style(Role::Text));
    }
    let names = (inner.width.saturating_sub(26)).min(24);
    let reasons = inner.width.saturating_sub(names + 26);
    let cells = |y: u16, buffer: &mut Buffer, texts: [&str; 5], (text, dim): (Role, Role)| {
        put(buffer, (inner.x, y), names, &elide(texts[0], names.into(), theme.is_ascii()), theme.style(text));
        let numbers = [(texts[1], 6), (texts[2], 9), (texts[3], 8)];
        let mut x = inner.x + names;
        for (number, width) in numbers {
            put_right(buffer, (x + 1, y), width, number, theme.style(text));
            x += width + 1;
        }
        put(buffer, (x + 2, y), reasons, &cut(texts[4], reasons.into(), theme.is_ascii()), theme.style(dim));
    };
    let why = if reasons > 8 { "why" } else { "" };
    cells(inner.y, buffer, ["benchmark", "min", "risk/min", "after", why], (Role::Head, Role::Head));
    for (y, pick) in (inner.y + 1..inner.bottom()).zip(&selection.picks) {
        let gain = match pick.gain_per_minute {
            gain if !known(selector) || !gain.is_finite() => theme.absent().to_owned(),
            gain if gain < 0.0005 => "0".to_owned(),
            gain => format!("-{gain:.3}"),
        };
        let after = if known(selector) { chance(pick.risk_after) } else { theme.absent().to_owned() };
        let minutes = format!("{:.2}", pick.minutes);
        let reason = if reasons > 8 { pick.reason.as_str() } else { "" };
        cells(y, buffer, [&pick.benchmark, &minutes, &gain, &after, reason], (Role::Text, Role::Dim));
    }
}
