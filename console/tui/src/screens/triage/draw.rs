//! The screen: verdict and suspects above, and below them as many of the lists as there is room for.
//!
//! ```text
//! category: what that means
//! sentence, what to do next
//! ▸ 0.98 rank 18 on node084, GPU 2                                     GPU
//! evidence of that suspect              events on one clock
//! ranks x communicators | steps of the procedure | what was not looked at
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;

use crate::screens::triage::state::{Pane, State, entries, inside, parts};
use crate::screens::triage::{matrix, reader, suspects, timeline, words};
use crate::snapshot::{Snapshot, Triaged};
use crate::ui::Ui;
use crate::widgets::{Panel, block, framed_panel, instead};

/// Draws the screen.
pub(crate) fn draw(ui: &Ui, snapshot: &Snapshot, buffer: &mut Buffer, area: Rect) {
    let part = &snapshot.triage;
    let instead = instead(ui, snapshot, (&part.load, part.data.is_some()), || none(&ui.states.triage, snapshot));
    let (Some(triaged), None) = (part.data.as_deref(), &instead) else {
        let panel = instead.unwrap_or_else(|| none(&ui.states.triage, snapshot));
        return framed_panel(buffer, area, &ui.theme, ("Triage", &panel));
    };
    let parts = parts(ui, triaged);
    suspects::draw(ui, (snapshot, triaged), buffer, &parts);
    for (pane, area) in &parts.panes {
        let (title, note) = title(ui, triaged, (*pane, area.width));
        let marker = if ui.states.triage.pane == *pane { ui.theme.pick("▸ ", "> ") } else { "" };
        block(&ui.theme, *area, &format!("{marker}{title}"), &note).render(*area, buffer);
        let inside = inside(*area);
        match pane {
            Pane::Timeline => timeline::draw(ui, triaged, buffer, inside),
            Pane::Matrix => matrix::draw(ui, triaged, buffer, inside, &parts),
            pane => {
                let has_keys = ui.states.triage.pane == *pane;
                let reader = match pane {
                    Pane::Steps => &ui.states.triage.steps,
                    Pane::Gaps => &ui.states.triage.gaps,
                    _ => &ui.states.triage.evidence,
                };
                reader::draw(&ui.theme, (buffer, inside), reader, (&entries(ui, triaged, *pane), has_keys));
            }
        }
    }
}

fn title(ui: &Ui, triaged: &Triaged, (pane, width): (Pane, u16)) -> (&'static str, String) {
    let report = &triaged.overview.report;
    match pane {
        Pane::Suspects | Pane::Evidence => {
            let found = ui.states.triage.suspect(triaged);
            let note = found.map_or_else(String::new, |(suspect, _)| words::who(suspect));
            ("Evidence", note)
        }
        Pane::Timeline => ("Time line", timeline::note(ui, triaged, width)),
        Pane::Matrix => ("Ranks by communicators", matrix::note(ui, triaged)),
        Pane::Steps => ("Steps", crate::text::counted(report.steps.len(), "step", "steps")),
        Pane::Gaps => ("Not looked at", String::new()),
    }
}

/// Nothing is read yet: how a case is opened, and what would be done for the machine that was asked for.
fn none(state: &State, snapshot: &Snapshot) -> Panel {
    let how = "Open a bundle: `:triage PATH` here, or `muster triage --from PATH --show`. docs/TRIAGE.md says what is in one.";
    let Some((node, alert)) = &state.asked else {
        return Panel::empty("No case is open.", how);
    };
    let watched = snapshot.watch.data.as_deref().map_or(0, |watch| watch.nodes.len());
    let would = format!(
        "Triage would read the output of the job's ranks, the kernel logs, NCCL RAS and recorder dumps of {node} and the {} \
         watched beside it. Collecting from running nodes is not there yet.",
        crate::text::counted(watched.saturating_sub(1), "machine", "machines")
    );
    let head = match alert {
        Some(sentence) => {
            format!("Alert on {node}: {}", sentence.split_once(": ").map_or(sentence.as_str(), |(_, what)| what))
        }
        None => format!("No case has {node} in it."),
    };
    Panel { head, role: crate::theme::Role::Text, lines: vec![String::new(), would, String::new(), how.to_owned()] }
}
