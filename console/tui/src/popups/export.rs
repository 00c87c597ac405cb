//! Asks in which form something is to be written.

use crossterm::event::{KeyCode, KeyEvent};

use crate::intent::{Export, Format, Intent};
use crate::popups::Popup;
use crate::ui::Ui;

/// What can be chosen: key, form, and for whom it is.
pub(crate) const FORMATS: [(char, Format, &str); 4] = [
    ('j', Format::Json, "JSON, for programs"),
    ('m', Format::Markdown, "Markdown, for a ticket"),
    ('c', Format::Csv, "CSV, for a spreadsheet"),
    ('h', Format::Html, "HTML, for a browser or paper"),
];

/// The question.
#[derive(Debug)]
pub(crate) struct ExportBox {
    pub(crate) what: Export,
    /// Place in [`FORMATS`].
    pub(crate) at: usize,
}

impl ExportBox {
    /// Asks how to write `what`.
    pub(crate) const fn new(what: Export) -> Self {
        Self { what, at: 0 }
    }

    /// The question in words.
    pub(crate) fn question(&self) -> String {
        match &self.what {
            Export::Run => "Write this run to a file?".to_owned(),
            Export::Fleet { nodes } => {
                format!("Write the {} shown to a file?", crate::text::counted(nodes.len(), "node", "nodes"))
            }
            Export::Node { node } => format!("Write {node} to a file?"),
            Export::Metric { metric } => format!("Write {} to a file?", metric.path()),
            Export::Watch => "Write what the watch found to a file?".to_owned(),
            Export::Triage => "Write what triage found to a file?".to_owned(),
            Export::Log => "Write the log to a file?".to_owned(),
        }
    }
}

/// Takes a key for the question on top of the stack.
pub(crate) fn key(ui: &mut Ui, mut export: ExportBox, key: KeyEvent) -> Vec<Intent> {
    let last = FORMATS.len() - 1;
    match key.code {
        KeyCode::Esc | KeyCode::Char('n' | 'q') => return Vec::new(),
        KeyCode::Enter => return vec![Intent::Export(export.what, FORMATS[export.at].1)],
        KeyCode::Down | KeyCode::Tab => export.at = (export.at + 1).min(last),
        KeyCode::Up | KeyCode::BackTab => export.at = export.at.saturating_sub(1),
        KeyCode::Char(c) => {
            if let Some((_, format, _)) = FORMATS.iter().find(|(key, ..)| *key == c.to_ascii_lowercase()) {
                return vec![Intent::Export(export.what, *format)];
            }
        }
        _ => {}
    }
    ui.popups.push(Popup::Export(export));
    Vec::new()
}
