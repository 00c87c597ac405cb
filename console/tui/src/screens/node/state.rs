//! Which of the node's lists has the keys, and where in it.

use crate::widgets::Cursor;

/// The list that has the keys. A narrow terminal shows only this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Verdicts,
    Facts,
    Log,
}

impl Pane {
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Verdicts => Self::Facts,
            Self::Facts => Self::Log,
            Self::Log => Self::Verdicts,
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Verdicts => "Verdicts",
            Self::Facts => "Facts",
            Self::Log => "Its log",
        }
    }
}

/// State of the node's screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) pane: Pane,
    pub(crate) verdicts: Cursor,
    pub(crate) facts: Cursor,
    pub(crate) log: Cursor,
}

impl State {
    pub(crate) const fn cursor(&mut self) -> &mut Cursor {
        match self.pane {
            Pane::Verdicts => &mut self.verdicts,
            Pane::Facts => &mut self.facts,
            Pane::Log => &mut self.log,
        }
    }
}
