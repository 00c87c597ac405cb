//! The names and numbers of the screens.

/// A screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Screen {
    /// Every node, one row each.
    Fleet,
    /// One node.
    Node,
    /// One metric over the fleet.
    Benchmarks,
    /// The versions of the criteria.
    Criteria,
    /// Which nodes are risky before a job, and what to run on them.
    Selector,
    /// The pairs of the fleet.
    Network,
    /// What can be run, and how far it is.
    Playbooks,
    /// What happened.
    Log,
    /// What was measured when, on which nodes.
    Runs,
}

impl Screen {
    /// All, in the order of their digits.
    pub const ALL: [Self; 9] = [
        Self::Fleet,
        Self::Node,
        Self::Benchmarks,
        Self::Criteria,
        Self::Selector,
        Self::Network,
        Self::Playbooks,
        Self::Log,
        Self::Runs,
    ];

    /// The word in the tab where all do not fit.
    #[must_use]
    pub const fn short_title(self) -> &'static str {
        match self {
            Self::Benchmarks => "Bench",
            Self::Selector => "Select",
            Self::Network => "Net",
            Self::Playbooks => "Plays",
            _ => self.title(),
        }
    }

    /// The word in the tab.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Fleet => "Fleet",
            Self::Node => "Node",
            Self::Benchmarks => "Benchmarks",
            Self::Criteria => "Criteria",
            Self::Selector => "Selector",
            Self::Network => "Network",
            Self::Playbooks => "Playbooks",
            Self::Log => "Log",
            Self::Runs => "Runs",
        }
    }
}
