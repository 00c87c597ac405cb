//! By which way do commands get to a node?

/// How commands get to a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Our own; the system's `ssh` where we have no usable key.
    #[default]
    Auto,
    /// Only our own.
    Own,
    /// Only the system's `ssh`, one process for each node.
    OpenSsh,
    /// No SSH: Slurm's `srun`, one process for each node.
    Slurm,
}

impl Transport {
    /// Each with the word for it.
    pub const WORDS: [(&str, Self); 4] =
        [("auto", Self::Auto), ("own", Self::Own), ("openssh", Self::OpenSsh), ("slurm", Self::Slurm)];

    /// The one that `word` stands for.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, transport)| *transport)
    }

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, transport)| *transport == self).map_or("auto", |(word, _)| word)
    }
}
