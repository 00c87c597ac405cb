//! The screen: machines over time with the verdict below them, a line, and two lists beside it.
//!
//! ```text
//! machine  score  evidence  |time                 metrics, what speaks loudest first
//! n07       -7.2     130 s  ····▄██
//! verdict                                      alerts, the newest first
//! line of that machine, band of its peers
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::screens::watch::layout::{Layout, parts};
use crate::screens::watch::state::Pane;
use crate::screens::watch::{line, lists, strip, words};
use crate::snapshot::{Origin, Snapshot, Watching};
use crate::text::{counted, width, wrap};
use crate::ui::Ui;
use crate::widgets::{Panel, block, framed_panel, instead, put, put_right};

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let none = || {
        Panel::empty(
            "Nothing is watched yet.",
            "W watches the marked nodes, else all; `muster watch --from FILE --show` plays a recording.",
        )
    };
    let part = &snapshot.watch;
    let instead = instead(ui, snapshot, (&part.load, part.data.is_some()), none);
    let (Some(watch), None) = (part.data.as_deref(), &instead) else {
        return framed_panel(buffer, area, &ui.theme, ("Watch", &instead.unwrap_or_else(none)));
    };
    let layout = parts(ui, watch);
    top(ui, watch, buffer, &layout);
    match (layout.lists, ui.states.watch.below()) {
        (Some([metrics, alerts]), _) => {
            line::draw(ui, watch, buffer, &layout);
            lists::metrics(ui, watch, buffer, metrics);
            lists::alerts(ui, watch, buffer, alerts);
        }
        (None, Some(Pane::Metrics)) => lists::metrics(ui, watch, buffer, layout.line),
        (None, Some(_)) => lists::alerts(ui, watch, buffer, layout.line),
        (None, None) => line::draw(ui, watch, buffer, &layout),
    }
}

fn top(ui: &Ui, watch: &Watching, buffer: &mut Buffer, layout: &Layout) {
    let (theme, state) = (&ui.theme, &ui.states.watch);
    let metric = watch.metrics.get(state.metric).map_or("Watch", |metric| metric.title());
    let marker = if state.pane == Pane::Machines { theme.pick("▸ ", "> ") } else { "" };
    let frame = block(theme, layout.top, &format!("{marker}{metric}"), &note(ui, watch));
    let inner = frame.inner(layout.top);
    frame.render(layout.top, buffer);
    let room = inner.width.saturating_sub(2);
    let moment = words::moment(state, watch);
    let used = u16::try_from(width(&moment.text)).unwrap_or(room).min(room);
    put_right(buffer, (inner.x + 1, inner.y), room, &moment.text, theme.style(moment.role));
    let said = words::standing(watch, state.frame(watch).map(AsRef::as_ref));
    let left = room.saturating_sub(used + 2);
    let text = words::fit(&said.text, left.into(), theme.is_ascii());
    put(buffer, (inner.x + 1, inner.y), left, &text, theme.style(said.role));
    strip::draw(ui, watch, buffer, layout);
    verdict(ui, watch, buffer, layout.verdict);
}

/// What is gathered and how much time a column is.
fn note(ui: &Ui, watch: &Watching) -> String {
    let state = &ui.states.watch;
    let machines = counted(watch.nodes.len(), "machine", "machines");
    let shown: usize = state.rows.iter().map(|row| row.nodes.len()).sum();
    let which = match &state.inside {
        Some((_, value)) => format!("{} of {machines} ({value})", shown),
        None if shown < watch.nodes.len() => format!("{shown} of {machines}"),
        None => machines,
    };
    let from = match &watch.origin {
        Origin::Live => String::new(),
        Origin::Recording { name, .. } => format!("{name}, "),
    };
    format!("{from}{which}, {} s a column", 10 * state.window.each.max(1))
}

/// The sentence in the lines that there are; what does not fit ends in a whole word.
fn verdict(ui: &Ui, watch: &Watching, buffer: &mut Buffer, area: Rect) {
    let said = words::verdict(&ui.states.watch, watch);
    let style = ui.theme.style(said.role);
    let mut lines = wrap(&said.text, area.width.into());
    let most = usize::from(area.height);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            let mark = ui.theme.pick("…", "~");
            while width(last) + 2 > area.width.into() {
                match last.rfind(' ') {
                    Some(at) => last.truncate(at),
                    None => break,
                }
            }
            last.push(' ');
            last.push_str(mark);
        }
    }
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        put(buffer, (area.x, y), area.width, &line, style);
    }
}
