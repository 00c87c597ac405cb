//! One part of a GPU at fault, and the sentence that says so.

use std::fmt;

/// What is wrong, where, and by how much evidence.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A multiprocessor computes other bits than the others on the same operands.
    WrongSm {
        /// GPU of the node.
        gpu: u32,
        /// Multiprocessor.
        sm: u32,
        /// Units that were wrong.
        units: Vec<String>,
        /// Runs of those units in which it was wrong, and all of them.
        runs: (usize, usize),
        /// Multiprocessors that agreed with each other.
        agree: usize,
    },
    /// A GPU computes other bits than other GPUs: all its multiprocessors alike, or what they did together.
    WrongGpu {
        /// GPU of the node.
        gpu: u32,
        /// Unit that was wrong.
        unit: String,
        /// GPUs that agreed with each other.
        agree: usize,
        /// Nodes that they are on.
        nodes: usize,
        /// The multiprocessors worked together, so that one of them may be the cause.
        whole: bool,
    },
    /// No value has a majority: something is wrong, and this cannot say where.
    Disagree {
        /// GPU of the node.
        gpu: u32,
        /// Unit that worked.
        unit: String,
    },
    /// A multiprocessor takes longer for the same instructions.
    SlowSm {
        /// GPU of the node.
        gpu: u32,
        /// Multiprocessor.
        sm: u32,
        /// Unit that was slowest.
        unit: String,
        /// Its cycles over the median of the others'.
        ratio: f64,
        /// Multiprocessors it was compared with.
        peers: usize,
    },
    /// A page of memory does not keep what is written.
    BadPage {
        /// GPU of the node.
        gpu: u32,
        /// Page of 2 MiB, from the start of the tested memory.
        page: u64,
        /// Bits that were wrong, in any word.
        bits: u32,
        /// First wrong word of the page.
        first: u32,
        /// Passes that found it.
        passes: u32,
    },
}

impl Finding {
    /// GPU of the node.
    #[must_use]
    pub const fn gpu(&self) -> u32 {
        match self {
            Self::WrongSm { gpu, .. }
            | Self::WrongGpu { gpu, .. }
            | Self::Disagree { gpu, .. }
            | Self::SlowSm { gpu, .. }
            | Self::BadPage { gpu, .. } => *gpu,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongSm { gpu, sm, units, runs: (wrong, all), agree } => {
                let units = units.join(", ");
                write!(f, "GPU {gpu}: multiprocessor {sm} computes wrong bits ({units}: {wrong} of {all} runs)")?;
                write!(f, ", {agree} others agree")
            }
            Self::WrongGpu { gpu, unit, agree, nodes, whole } => {
                let who = if *whole { "it computes" } else { "all its multiprocessors compute" };
                write!(f, "GPU {gpu}: {who} other bits than {agree} other GPUs")?;
                match nodes {
                    0 | 1 => write!(f, " of its node ({unit})"),
                    nodes => write!(f, " on {nodes} nodes ({unit})"),
                }
            }
            Self::Disagree { gpu, unit } => {
                write!(f, "GPU {gpu}: its multiprocessors disagree on the same work ({unit}), without a majority")
            }
            Self::SlowSm { gpu, sm, unit, ratio, peers } => {
                let slower = (ratio - 1.0) * 100.0;
                write!(f, "GPU {gpu}: multiprocessor {sm} takes {slower:.1} % more cycles than {peers} others ({unit})")
            }
            Self::BadPage { gpu, page, bits, first, passes } => {
                let bit = bits.trailing_zeros();
                let what = if bits.count_ones() == 1 { format!("bit {bit}") } else { format!("bits {bits:#010x}") };
                write!(f, "GPU {gpu}: page {page} of memory does not keep {what} of word {first} ({passes} passes)")
            }
        }
    }
}
