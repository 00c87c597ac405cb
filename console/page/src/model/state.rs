//! The words, glyphs and colours of states.

/// State of a node, a finding or a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// In order.
    Pass,
    /// Ran, and nothing of it is judged.
    Ran,
    /// Cannot apply here.
    NotApplicable,
    /// Asked for, but did not run.
    NotRun,
    /// To be looked at.
    Warn,
    /// Could not be decided.
    Unknown,
    /// Not in order.
    Fail,
}

impl State {
    /// As sentences and tables have it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Ran => "ran",
            Self::NotApplicable => "not applicable",
            Self::NotRun => "not run",
            Self::Warn => "warn",
            Self::Unknown => "unknown",
            Self::Fail => "fail",
        }
    }

    /// The same glyphs as on the screen.
    #[must_use]
    pub const fn glyph(self) -> &'static str {
        match self {
            Self::Pass => "✓",
            Self::Ran => "○",
            Self::NotApplicable => "-",
            Self::NotRun => "·",
            Self::Warn => "!",
            Self::Unknown => "?",
            Self::Fail => "✗",
        }
    }

    /// Its class in the style sheet.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Ran => "ran",
            Self::NotApplicable => "na",
            Self::NotRun => "notrun",
            Self::Warn => "warn",
            Self::Unknown => "unknown",
            Self::Fail => "fail",
        }
    }
}
