//! The table of runs, and below it what the chosen one measured.
//!
//! ```text
//! ┌ Runs ───────────────────────────────────────────────────────── 1/14 ┐
//!   started  took   playbook   profile  state     current nodes
//! ▸ 3h       4m10s  cbd-light  quick    finished  yes     n[001-016]
//! └─────────────────────────────────────────────────────────────────────┘
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::snapshot::{RunPhase, RunRow, Runs, Snapshot};
use crate::text::{counted, elide, whole_age, wrap};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{Panel, block, framed_panel, instead, put};

/// Rows for the details of the chosen run.
const BELOW: u16 = 4;
/// Columns: title, width, rank; lower stays longer when the table is narrow. Names take what is left.
const COLUMNS: [(&str, u16, u8); 6] =
    [("started", 9, 0), ("took", 7, 3), ("playbook", 20, 1), ("profile", 9, 5), ("state", 12, 2), ("current", 7, 4)];
/// Minimum width of the names.
const NAMES: u16 = 16;

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let none =
        || Panel::empty("No run is stored yet.", "R runs a playbook; `muster import` takes results of other tools.");
    let part = &snapshot.runs;
    let has = part.data.as_ref().is_some_and(|runs| !runs.rows.is_empty());
    let instead = instead(ui, snapshot, (&part.load, has), none);
    let (Some(runs), None) = (part.data.as_deref(), &instead) else {
        return framed_panel(buffer, area, &ui.theme, ("Runs", &instead.unwrap_or_else(none)));
    };
    let theme = &ui.theme;
    let note = format!("{}/{}", ui.states.runs.rows.at + 1, runs.rows.len());
    let block = block(theme, area, "Runs", &note);
    let inner = block.inner(area);
    block.render(area, buffer);
    let columns = columns(inner.width.saturating_sub(2));
    let mut x = inner.x + 2;
    for (title, width) in &columns {
        put(buffer, (x, inner.y), *width, title, theme.style(Role::Head));
        x += width + 1;
    }
    put(buffer, (x, inner.y), inner.right().saturating_sub(x), "nodes", theme.style(Role::Head));
    let height = inner.height.saturating_sub(1 + BELOW);
    for (y, at) in (inner.y + 1..inner.y + 1 + height).zip(ui.states.runs.rows.window(runs.rows.len(), height.into())) {
        let line = Rect { y, height: 1, ..inner };
        row(ui, snapshot, (&columns, &runs.rows[at]), (buffer, line));
        if at == ui.states.runs.rows.at {
            put(buffer, (inner.x, y), 1, theme.pick("▸", ">"), theme.style(Role::Head));
            buffer.set_style(Rect { x: inner.x + 1, width: inner.width - 1, ..line }, theme.style(Role::Selected));
        }
    }
    below(ui, runs, (buffer, Rect { y: inner.bottom() - BELOW, height: BELOW, ..inner }));
}

/// The columns that fit, with their widths.
fn columns(room: u16) -> Vec<(&'static str, u16)> {
    let mut ranks: Vec<u8> = COLUMNS.iter().map(|(_, _, rank)| *rank).collect();
    ranks.sort_unstable();
    let width = |most: u8| COLUMNS.iter().filter(|c| c.2 <= most).map(|c| c.1 + 1).sum::<u16>() + NAMES;
    let most = ranks.into_iter().rev().find(|most| width(*most) <= room).unwrap_or(0);
    COLUMNS.iter().filter(|c| c.2 <= most).map(|c| (c.0, c.1)).collect()
}

fn row(ui: &Ui, snapshot: &Snapshot, (columns, row): (&[(&str, u16)], &RunRow), (buffer, line): (&mut Buffer, Rect)) {
    let (theme, run) = (&ui.theme, &row.run);
    let took = run.ended_ms.map(|end| whole_age(end.saturating_sub(run.started_ms)));
    let mut x = line.x + 2;
    for (title, width) in columns {
        let (text, role) = match *title {
            "started" => (whole_age(ui.now_ms(snapshot).saturating_sub(run.started_ms)), Role::Text),
            "took" => (took.clone().unwrap_or_else(|| theme.absent().to_owned()), Role::Dim),
            "playbook" => (run.playbook.clone(), Role::Text),
            "profile" => (run.profile.to_string(), Role::Dim),
            "state" if run.phase == RunPhase::Finished => (run.phase.word().to_owned(), Role::Dim),
            "state" => (run.phase.word().to_owned(), Role::Attention),
            _ => (if row.current { "yes" } else { "no" }.to_owned(), Role::Dim),
        };
        put(buffer, (x, line.y), *width, &elide(&text, (*width).into(), theme.is_ascii()), theme.style(role));
        x += width + 1;
    }
    let room = line.right().saturating_sub(x);
    put(buffer, (x, line.y), room, &elide(&row.names, room.into(), theme.is_ascii()), theme.style(Role::Text));
}

fn below(ui: &Ui, runs: &Runs, (buffer, area): (&mut Buffer, Rect)) {
    let theme = &ui.theme;
    let Some(row) = ui.states.runs.chosen(runs) else { return };
    let head = format!("{}  {}", row.run.id, counted(row.nodes, "node", "nodes"));
    let current = match row.current {
        true => "Current: it holds the newest result of at least one node.",
        false => "Superseded: everything it measured has been measured again since.",
    };
    let plan = format!("measured {}", row.plan.join(", "));
    let mut lines = vec![(head, Role::Head), (current.to_owned(), Role::Dim)];
    lines.extend(wrap(&plan, usize::from(area.width) - 3).into_iter().map(|line| (line, Role::Dim)));
    for (y, (text, role)) in (area.y..area.bottom()).zip(lines) {
        let room = area.width.saturating_sub(3);
        put(buffer, (area.x + 2, y), room, &elide(&text, room.into(), theme.is_ascii()), theme.style(role));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_keeps_when_what_and_how_it_ended() {
        let titles = |room| columns(room).iter().map(|c| c.0).collect::<Vec<_>>();
        assert_eq!(titles(60), ["started", "playbook", "state"]);
        assert_eq!(titles(76), ["started", "took", "playbook", "state", "current"]);
        assert_eq!(titles(116).len(), COLUMNS.len());
    }
}
