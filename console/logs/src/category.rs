//! What went wrong with a job: the answer of triage in one word.

use serde::{Deserialize, Serialize};

/// What went wrong with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// A part of a machine is broken.
    HardwareCritical,
    /// Machines lost each other.
    DistributedError,
    /// A rank did not enqueue a collective that the others entered.
    HangNotLaunched,
    /// Enqueued, and its GPU did not run it.
    HangNotStarted,
    /// Running on all, and data do not arrive.
    HangInNetwork,
    /// The program, its settings or its environment are wrong.
    UserBug,
    /// Shared or local storage does not answer.
    Storage,
    /// A host does not run what it should: lock-up, no memory, no processor.
    HostStall,
    /// A rank waits for its next batch.
    DataloaderStall,
    /// A GPU computes more slowly than its peers.
    SlowGpu,
    /// A link carries less than its peers.
    SlowLink,
    /// A process of the job ended.
    ProcessExited,
    /// Nothing is wrong with machines or program.
    None,
    /// Too little is known.
    Undecided,
}

impl Category {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::HardwareCritical,
        Self::DistributedError,
        Self::HangNotLaunched,
        Self::HangNotStarted,
        Self::HangInNetwork,
        Self::UserBug,
        Self::Storage,
        Self::HostStall,
        Self::DataloaderStall,
        Self::SlowGpu,
        Self::SlowLink,
        Self::ProcessExited,
        Self::None,
        Self::Undecided,
    ];

    /// Name in files and on the screen.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HardwareCritical => "hardware-critical",
            Self::DistributedError => "distributed-error",
            Self::HangNotLaunched => "hang-not-launched",
            Self::HangNotStarted => "hang-not-started",
            Self::HangInNetwork => "hang-in-network",
            Self::UserBug => "user-bug",
            Self::Storage => "storage",
            Self::HostStall => "host-stall",
            Self::DataloaderStall => "dataloader-stall",
            Self::SlowGpu => "slow-gpu",
            Self::SlowLink => "slow-link",
            Self::ProcessExited => "process-exited",
            Self::None => "none",
            Self::Undecided => "undecided",
        }
    }

    /// What it means, in a few words.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::HardwareCritical => "a part of a machine is broken",
            Self::DistributedError => "the machines lost one of them",
            Self::HangNotLaunched => "a rank did not enqueue what the others did",
            Self::HangNotStarted => "a GPU did not run what was enqueued",
            Self::HangInNetwork => "all ranks are in it and no data arrive",
            Self::UserBug => "the program or its settings are wrong",
            Self::Storage => "storage does not answer",
            Self::HostStall => "a host does not run what it should",
            Self::DataloaderStall => "a rank waits for its next batch",
            Self::SlowGpu => "a GPU makes the others wait",
            Self::SlowLink => "a link makes the others wait",
            Self::ProcessExited => "a process of the job ended",
            Self::None => "nothing is wrong with machines or program",
            Self::Undecided => "too little is known",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Category;

    #[test]
    fn a_category_is_written_by_its_name() {
        for category in Category::ALL {
            assert_eq!(serde_json::to_value(category).unwrap(), category.name());
        }
    }

    #[test]
    fn every_category_has_a_meaning_of_its_own() {
        let meanings: std::collections::BTreeSet<&str> = Category::ALL.iter().map(|of| of.meaning()).collect();
        assert_eq!(meanings.len(), Category::ALL.len());
        assert!(meanings.iter().all(|meaning| meaning.split(' ').count() > 3), "{meanings:?}");
    }
}
