//! In whose hands is a machine: in service, suspected, defective, in repair, or kept as a spare? And what follows from it.
//!
//! SuperBench section 3.1: a defective node is replaced at once by one of a hot buffer and repaired aside, and comes back only after
//! it has passed the validation that it failed.

mod repeat;
mod swap;

use serde::{Deserialize, Serialize};

use crate::State;

pub use repeat::{Failure, Part, Repeated, repeated, told};
pub use swap::{Machine, Near, Spare, Swap, swaps};

/// In whose hands a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Jobs may run on it.
    InService,
    /// Something about it is undecided or a warning.
    Suspect,
    /// It has an open incident, or one of its newest results fails it.
    Defective,
    /// Somebody repairs it.
    InRepair,
    /// It is kept free to replace another.
    HotBuffer,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::InService, Self::Suspect, Self::Defective, Self::InRepair, Self::HotBuffer];

    /// On the screen and in sentences.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::InService => "in service",
            Self::Suspect => "suspect",
            Self::Defective => "defective",
            Self::InRepair => "in repair",
            Self::HotBuffer => "hot buffer",
        }
    }
}

/// What somebody said of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marked {
    /// It is repaired.
    InRepair,
    /// It is kept as a spare.
    HotBuffer,
    /// It is back.
    InService,
}

impl From<Marked> for Service {
    fn from(marked: Marked) -> Self {
        match marked {
            Marked::InRepair => Self::InRepair,
            Marked::HotBuffer => Self::HotBuffer,
            Marked::InService => Self::InService,
        }
    }
}

/// What is known of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// What somebody said of it last.
    pub marked: Option<Marked>,
    /// Whether an incident of it is open.
    pub incident: bool,
    /// What its newest results say of it; `None` of one that was never measured.
    pub newest: Option<State>,
    /// Whether something that was asked for was not decided.
    pub undecided: bool,
}

impl Known {
    /// In whose hands it is. Who repairs it is believed until it is given back; a spare that is broken is no spare.
    #[must_use]
    pub fn service(self) -> Service {
        if self.marked == Some(Marked::InRepair) {
            return Service::InRepair;
        }
        if self.incident || self.newest == Some(State::Fail) {
            return Service::Defective;
        }
        if self.marked == Some(Marked::HotBuffer) {
            return Service::HotBuffer;
        }
        let open = self.undecided || matches!(self.newest, Some(State::Warn | State::Unknown));
        if open { Service::Suspect } else { Service::InService }
    }

    /// Why it cannot replace another, if so: it is kept as a spare, and nobody knows whether it is sound.
    #[must_use]
    pub fn refused(self) -> Option<&'static str> {
        match self.newest {
            Some(State::Pass) if !self.undecided => None,
            Some(State::Pass | State::Unknown) => Some("something about it is undecided"),
            Some(State::Warn) => Some("one of its newest results warns of it"),
            Some(State::Fail) => Some("one of its newest results fails it"),
            _ => Some("it was never validated"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_in_repair_stays_there_until_it_is_given_back_and_a_broken_spare_is_defective() {
        let known = Known { newest: Some(State::Pass), ..Known::default() };
        assert_eq!(known.service(), Service::InService);
        assert_eq!(Known { marked: Some(Marked::InRepair), ..known }.service(), Service::InRepair);
        assert_eq!(Known { marked: Some(Marked::InRepair), incident: true, ..known }.service(), Service::InRepair);
        assert_eq!(Known { marked: Some(Marked::HotBuffer), ..known }.service(), Service::HotBuffer);
        assert_eq!(Known { marked: Some(Marked::HotBuffer), incident: true, ..known }.service(), Service::Defective);
        assert_eq!(Known { marked: Some(Marked::InService), incident: true, ..known }.service(), Service::Defective);
        assert_eq!(Known { newest: Some(State::Fail), ..known }.service(), Service::Defective);
        assert_eq!(Known { newest: Some(State::Warn), ..known }.service(), Service::Suspect);
        assert_eq!(Known { undecided: true, ..known }.service(), Service::Suspect);
        assert_eq!(Known::default().service(), Service::InService, "nothing speaks against it");
    }

    #[test]
    fn only_a_spare_that_passed_everything_replaces_another() {
        let known = |newest, undecided| Known { newest, undecided, ..Known::default() }.refused();
        assert_eq!(known(Some(State::Pass), false), None);
        for newest in [None, Some(State::Warn), Some(State::Fail), Some(State::Unknown), Some(State::NotRun)] {
            assert!(known(newest, false).is_some(), "{newest:?}");
        }
        assert!(known(Some(State::Pass), true).is_some());
    }
}
