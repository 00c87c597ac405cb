//! What a run prints, and what it exits with.

use clap::{Args, ValueEnum};
use muster_playbook::report::FailOn;

/// What a run says, and which findings are failures.
#[derive(Args, Clone, Debug)]
pub struct Say {
    /// Print one JSON document.
    #[arg(long)]
    pub json: bool,
    /// Print no progress.
    #[arg(short, long)]
    pub quiet: bool,
    /// Mildest finding that gives a non-zero exit code.
    #[arg(long, value_enum, default_value_t = Line::Warn)]
    pub fail_on: Line,
}

/// The mildest finding that exits non-zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Line {
    /// Warnings, failures and undecided nodes.
    Warn,
    /// Failures only.
    Fail,
    /// Failures and undecided nodes.
    Unknown,
}

impl From<Line> for FailOn {
    fn from(line: Line) -> Self {
        match line {
            Line::Warn => Self::Warn,
            Line::Fail => Self::Fail,
            Line::Unknown => Self::Unknown,
        }
    }
}
