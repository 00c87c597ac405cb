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
    /// What can be run, and how far it is.
    Playbooks,
    /// What happened.
    Log,
}

impl Screen {
    /// All, in the order of their digits.
    pub const ALL: [Self; 5] = [Self::Fleet, Self::Node, Self::Benchmarks, Self::Playbooks, Self::Log];

    /// The word in the tab.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Fleet => "Fleet",
            Self::Node => "Node",
            Self::Benchmarks => "Benchmarks",
            Self::Playbooks => "Playbooks",
            Self::Log => "Log",
        }
    }
}
