//! The verdict, and a row a suspect.

use muster_triage::SURE;
use ratatui::buffer::Buffer;
use ratatui::widgets::Widget;

use crate::screens::triage::layout::Layout;
use crate::screens::triage::state::{Pane, has_hint, suspects};
use crate::screens::triage::words;
use crate::snapshot::{Snapshot, Triaged};
use crate::text::{counted, cut, width};
use crate::theme::Role;
use crate::ui::Ui;
use crate::widgets::{block, put, put_right};

/// Draws the border, the sentences and the suspects.
pub(crate) fn draw(ui: &Ui, (snapshot, triaged): (&Snapshot, &Triaged), buffer: &mut Buffer, parts: &Layout) {
    let (theme, report) = (&ui.theme, &triaged.overview.report);
    let marker = if ui.states.triage.pane == Pane::Suspects { theme.pick("▸ ", "> ") } else { "" };
    let frame = block(theme, parts.top, &format!("{marker}{}", triaged.name), &note(triaged));
    frame.render(parts.top, buffer);
    let area = parts.head;
    let testing = snapshot.testing.as_deref().filter(|_| ui.states.triage.testing);
    let testing = testing.map(|testing| (words::testing(testing, ui.now_ms(snapshot)), Role::Attention));
    let verdict = words::head(report, area.width.into(), has_hint(ui));
    let lines: Vec<(String, Role)> = testing.into_iter().chain(verdict).collect();
    let cut_short = lines.len() > usize::from(area.height);
    for (nr, (y, (line, role))) in (area.y..area.bottom()).zip(&lines).enumerate() {
        put(buffer, (area.x, y), area.width, line, theme.style(*role));
        if cut_short && nr + 1 == usize::from(area.height) {
            put_right(buffer, (area.x, y), area.width, theme.pick(" …", " ~"), theme.style(*role));
        }
    }
    rows(ui, triaged, buffer, parts);
}

/// `32 of 32 ranks seen, 4 nodes`.
fn note(triaged: &Triaged) -> String {
    let (ranks, nodes) = (&triaged.overview.report.ranks, triaged.overview.nodes.len());
    format!("{} of {} seen, {}", ranks.seen, counted(ranks.n, "rank", "ranks"), counted(nodes, "node", "nodes"))
}

fn rows(ui: &Ui, triaged: &Triaged, buffer: &mut Buffer, parts: &Layout) {
    let (theme, state, area) = (&ui.theme, &ui.states.triage, parts.suspects);
    let count = suspects(triaged).count();
    if count == 0 {
        let text = "nobody is suspected; the steps say what was found";
        return put(buffer, (area.x, area.y), area.width, text, theme.style(Role::Dim));
    }
    let window = state.suspects.window(count, area.height.into());
    let has_keys = state.pane == Pane::Suspects;
    for (y, (at, (suspect, wrong))) in (area.y..area.bottom()).zip(suspects(triaged).enumerate().skip(window.start)) {
        let chosen = at == state.suspects.at;
        let paint = |role: Role| theme.style(if chosen && has_keys { Role::Selected } else { role });
        put(buffer, (area.x, y), area.width, &" ".repeat(area.width.into()), paint(Role::Text));
        let mark = if chosen { theme.pick("▸", ">") } else { " " };
        let role = match suspect.confidence {
            _ if wrong => Role::Dim,
            sure if sure >= SURE => Role::Act,
            _ => Role::Attention,
        };
        put(buffer, (area.x, y), area.width, &format!("{mark} {:.2}", suspect.confidence), paint(role));
        let confirmed = triaged.confirmed.contains(&suspect.subject());
        let word = match () {
            () if wrong => "marked wrong",
            () if confirmed => "confirmed",
            () => words::kind(suspect.kind),
        };
        let room = area.width.saturating_sub(9 + u16::try_from(width(word)).unwrap_or(0));
        let who = cut(&words::who(suspect), room.into(), theme.is_ascii());
        put(buffer, (area.x + 7, y), room, &who, paint(if wrong { Role::Dim } else { Role::Text }));
        let role = if confirmed { Role::Good } else { Role::Dim };
        put_right(buffer, (area.x + 7, y), area.width.saturating_sub(7), word, paint(role));
    }
}
