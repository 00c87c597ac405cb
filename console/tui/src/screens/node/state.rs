//! Which of the node's lists has the keys, and where in it.

use crate::widgets::Cursor;

/// The list that has the keys. A narrow terminal shows only this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Verdicts,
    Passport,
    Checks,
    Coverage,
    Incidents,
    Facts,
    Log,
}

impl Pane {
    /// Those that stand beside the verdicts where there is room, in the order of importance.
    pub(crate) const BESIDE: [Self; 6] =
        [Self::Passport, Self::Checks, Self::Coverage, Self::Incidents, Self::Facts, Self::Log];

    pub(crate) fn next(self) -> Self {
        let at = Self::BESIDE.iter().position(|p| *p == self).map_or(0, |at| at + 1);
        Self::BESIDE.get(at).copied().unwrap_or(Self::Verdicts)
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Verdicts => "Verdicts",
            Self::Passport => "Passport",
            Self::Checks => "Checks",
            Self::Coverage => "Coverage",
            Self::Incidents => "Incidents",
            Self::Facts => "Facts",
            Self::Log => "Its log",
        }
    }
}

/// State of the node's screen.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) pane: Pane,
    pub(super) cursors: [Cursor; 7],
}

impl State {
    /// The cursor of a pane.
    pub(crate) const fn cursor(&self, pane: Pane) -> Cursor {
        self.cursors[pane as usize]
    }

    /// The cursor of the pane that has the keys.
    pub(crate) const fn cursor_mut(&mut self) -> &mut Cursor {
        &mut self.cursors[self.pane as usize]
    }
}
