//! What the board has besides a run's updates: playbooks, a node's past, and answers to questions.

use std::sync::Arc;

use muster_playbook::{Playbook, builtin};
use muster_store::Record;
use muster_tui::snapshot::{Criteria, Part, Past, PlaybookRow, StepRow, WhatIf};

use super::Board;

impl Board {
    /// What the database knows of `node`; kept while the screen looks at it.
    pub fn past(&self, node: &str, past: Past) {
        let mut inner = self.lock();
        if inner.focus.as_deref() == Some(node) {
            inner.past = Some(Arc::new(past));
            (inner.refocus, inner.dirty) = (true, true);
        }
    }

    /// The answer to a question about other terms; `None` shows what is in force.
    pub fn what_if(&self, answer: Option<WhatIf>) {
        let mut inner = self.lock();
        inner.now.what_if = answer.map(Arc::new);
        inner.dirty = true;
    }

    /// The versions of criteria in the database.
    pub fn criteria(&self, part: Part<Criteria>) {
        let mut inner = self.lock();
        inner.now.criteria = part;
        inner.dirty = true;
    }

    /// Records of the run that is shown.
    #[must_use]
    pub fn records(&self) -> Vec<Arc<Record>> {
        self.lock().records.clone()
    }
}

/// The playbooks that come with muster.
pub(super) fn playbooks() -> Arc<[PlaybookRow]> {
    let parsed = builtin().iter().filter_map(|(name, text)| Playbook::parse(text, name).ok());
    parsed
        .map(|book| PlaybookRow {
            steps: book
                .steps
                .iter()
                .map(|s| StepRow {
                    id: s.id.clone(),
                    about: s.about.clone(),
                    work: s.collect.iter().chain(&s.run).cloned().collect(),
                })
                .collect(),
            name: book.name,
            title: book.title,
            about: book.about,
            profile: book.profile,
        })
        .collect()
}
