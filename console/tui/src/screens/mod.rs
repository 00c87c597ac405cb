//! Which screens there are. Adding one is a folder with a [`View`], its `mod` line and its row in the table below.

pub(crate) mod bench;
pub(crate) mod criteria;
pub(crate) mod fleet;
mod log;
mod network;
mod node;
mod playbooks;
mod runs;
mod selector;
mod triage;
mod view;
mod watch;

pub(crate) use view::View;

macro_rules! screens {
    ($(#[doc = $about:literal] $name:ident in $folder:ident,)*) => {
        /// A screen.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Screen {
            $(#[doc = $about] $name,)*
        }

        impl Screen {
            /// All, in the order of their digits.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            /// What it shows, and what keys do on it.
            pub(crate) const fn view(self) -> &'static View {
                match self {
                    $(Self::$name => &$folder::VIEW,)*
                }
            }
        }

        /// What every screen remembers between two events.
        #[derive(Debug, Default)]
        pub(crate) struct States {
            $(pub(crate) $folder: $folder::State,)*
        }
    };
}

screens! {
    /// Every node, one row each.
    Fleet in fleet,
    /// One node.
    Node in node,
    /// One metric over the fleet.
    Benchmarks in bench,
    /// The versions of the criteria.
    Criteria in criteria,
    /// Which nodes are risky before a job, and what to run on them.
    Selector in selector,
    /// The pairs of the fleet.
    Network in network,
    /// What can be run, and how far it is.
    Playbooks in playbooks,
    /// What happened.
    Log in log,
    /// What was measured when, on which nodes.
    Runs in runs,
    /// Which machine of a running job is unlike its peers.
    Watch in watch,
    /// Why a job failed, hangs or is slow.
    Triage in triage,
}

impl Screen {
    /// The word in the tab.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.view().title
    }
}
