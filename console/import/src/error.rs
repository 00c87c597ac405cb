//! What cannot be read, and where.

/// A file that cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum Bad {
    /// Not what the format says.
    #[error("line {line}: {why}")]
    Format {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// More than a reader may hold.
    #[error("line {line}: more than {limit} {what}")]
    TooMuch {
        /// Line, from 1.
        line: usize,
        /// The limit.
        limit: usize,
        /// Of what.
        what: &'static str,
    },
    /// The stream broke.
    #[error("line {line}: {source}")]
    Io {
        /// Line, from 1.
        line: usize,
        /// Why.
        source: std::io::Error,
    },
}

impl Bad {
    pub(crate) fn format(line: usize, why: impl Into<String>) -> Self {
        Self::Format { line, why: why.into() }
    }

    pub(crate) fn json(line: usize, error: &serde_json::Error) -> Self {
        Self::Format { line: line + error.line().saturating_sub(1), why: error.to_string() }
    }
}
