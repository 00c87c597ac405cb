//! Which of the node's lists has the keys, and where in it.

use crate::snapshot::NodeRow;
use crate::widgets::Cursor;

/// The list that has the keys. A narrow terminal shows only this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Verdicts,
    Service,
    Passport,
    Checks,
    Gpus,
    Coverage,
    Incidents,
    Facts,
    Log,
}

impl Pane {
    /// Those that stand beside the verdicts of a node where there is room, in the order of importance.
    pub(crate) fn beside(node: &NodeRow) -> Vec<Self> {
        let all = [
            Self::Service,
            Self::Passport,
            Self::Checks,
            Self::Gpus,
            Self::Coverage,
            Self::Incidents,
            Self::Facts,
            Self::Log,
        ];
        let holds = |pane: &Self| match pane {
            Self::Service => node.service.is_some(),
            Self::Gpus => !node.gpus.is_empty(),
            _ => true,
        };
        all.into_iter().filter(holds).collect()
    }

    pub(crate) fn next(self, node: &NodeRow) -> Self {
        let beside = Self::beside(node);
        let at = beside.iter().position(|p| *p == self).map_or(0, |at| at + 1);
        beside.get(at).copied().unwrap_or(Self::Verdicts)
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Verdicts => "Verdicts",
            Self::Service => "Service",
            Self::Passport => "Passport",
            Self::Checks => "Checks",
            Self::Gpus => "GPUs",
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
    /// Whether only metrics are listed that changed since the run before.
    pub(crate) changed: bool,
    pub(super) cursors: [Cursor; 9],
}

impl State {
    /// The same lists of another node, from their beginning.
    pub(super) fn of_another(&self) -> Self {
        Self { pane: self.pane, changed: self.changed, ..Self::default() }
    }

    /// The cursor of a pane.
    pub(crate) const fn cursor(&self, pane: Pane) -> Cursor {
        self.cursors[pane as usize]
    }

    /// The cursor of the pane that has the keys.
    pub(crate) const fn cursor_mut(&mut self) -> &mut Cursor {
        &mut self.cursors[self.pane as usize]
    }
}
