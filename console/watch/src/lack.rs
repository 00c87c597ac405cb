//! What is missing where nothing can be decided.

use std::fmt;

use super::settings::{BLOCK, MIN, PEERS};

/// Why nobody could be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Fewer nodes than can be told apart.
    Nodes(usize),
    /// Fewer metrics than support each other.
    Metrics(usize),
    /// At no time did enough nodes report the same metric.
    Overlap,
    /// The job ran for too short a time to learn what is usual; blocks in which it ran.
    Short(u32),
}

/// Metrics that are needed: one alone has nothing to support it.
pub(super) const METRICS: usize = 2;
/// Nodes that are needed.
pub(super) const NODES: usize = PEERS + 1;

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(n) => {
                let have = match n {
                    0 => "no node reports".to_owned(),
                    1 => "only 1 node reports".to_owned(),
                    _ => format!("only {n} nodes report"),
                };
                write!(f, "{have}; at least {NODES} are needed to tell which one is odd")
            }
            Self::Metrics(n) => {
                let have = if *n == 1 { "only 1 metric" } else { "no metric" };
                write!(f, "{have}; at least {METRICS} are needed")
            }
            Self::Overlap => {
                write!(f, "no metric is reported by {NODES} nodes at the same time (3 samples in the same {BLOCK} s)")
            }
            Self::Short(blocks) => {
                let (have, need) = (*blocks as usize * BLOCK, MIN * BLOCK);
                write!(f, "the job ran for {have} s; what is usual is known after about {need} s")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_what_would_be_needed() {
        for (lack, said) in [
            (Lack::Nodes(0), "no node reports; at least 4 are needed to tell which one is odd"),
            (Lack::Nodes(1), "only 1 node reports; at least 4 are needed to tell which one is odd"),
            (Lack::Nodes(3), "only 3 nodes report; at least 4 are needed to tell which one is odd"),
            (Lack::Metrics(0), "no metric; at least 2 are needed"),
            (Lack::Metrics(1), "only 1 metric; at least 2 are needed"),
            (Lack::Overlap, "no metric is reported by 4 nodes at the same time (3 samples in the same 10 s)"),
            (Lack::Short(9), "the job ran for 90 s; what is usual is known after about 150 s"),
        ] {
            assert_eq!(lack.to_string(), said);
        }
    }
}
