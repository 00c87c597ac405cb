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
    /// The pairs of the fleet.
    Network,
    /// What can be run, and how far it is.
    Playbooks,
    /// What happened.
    Log,
}

impl Screen {
    /// All, in the order of their digits.
    pub const ALL: [Self; 6] = [Self::Fleet, Self::Node, Self::Benchmarks, Self::Network, Self::Playbooks, Self::Log];

    /// The word in the tab.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Fleet => "Fleet",
            Self::Node => "Node",
            Self::Benchmarks => "Benchmarks",
            Self::Network => "Network",
            Self::Playbooks => "Playbooks",
            Self::Log => "Log",
        }
    }
}
