//! What all multiprocessors of a GPU said of one run, as the worker writes it.

/// One multiprocessor's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Multiprocessor, as the hardware numbers it.
    pub sm: u32,
    /// Digest of everything it computed.
    pub digest: u32,
    /// Cycles it took.
    pub cycles: u64,
}

/// The same work on every multiprocessor of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// GPU of the node.
    pub gpu: u32,
    /// Unit that worked, such as `bf16-mma`.
    pub unit: String,
    /// Rounds of work.
    pub rounds: u32,
    /// Seed of the operands.
    pub seed: u32,
    /// One per multiprocessor.
    pub shares: Vec<Share>,
}

/// Multiprocessors of one GPU at most; what claims more is not from our worker.
const MOST: usize = 1024;

impl Row {
    /// Reads `gpu.3.sm.bf16-mma.64.1` and `0:9f3a12bc:51234 1:9f3a12bc:51234`; nothing when it is something else.
    #[must_use]
    pub fn parse(key: &str, text: &str) -> Option<Self> {
        let words: Vec<&str> = key.split('.').collect();
        let ["gpu", gpu, "sm", unit, rounds, seed] = words[..] else { return None };
        let share = |word: &str| {
            let mut parts = word.split(':');
            let (sm, digest, cycles) = (parts.next()?, parts.next()?, parts.next()?);
            Some(Share {
                sm: sm.parse().ok()?,
                digest: u32::from_str_radix(digest, 16).ok()?,
                cycles: cycles.parse().ok()?,
            })
        };
        let shares = text.split_whitespace().take(MOST).map(share).collect::<Option<Vec<Share>>>()?;
        let (gpu, rounds, seed) = (gpu.parse().ok()?, rounds.parse().ok()?, seed.parse().ok()?);
        Some(Self { gpu, unit: unit.to_owned(), rounds, seed, shares })
    }
}
