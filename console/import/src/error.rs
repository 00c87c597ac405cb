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
    /// Not what the format says, in a file that has no lines.
    #[error("{why}")]
    File {
        /// What is wrong.
        why: String,
    },
    /// More than a reader may hold.
    #[error("{}more than {limit} {what}", at(*line))]
    TooMuch {
        /// Line, from 1; 0 where there are no lines.
        line: usize,
        /// The limit.
        limit: usize,
        /// Of what.
        what: &'static str,
    },
    /// The stream broke.
    #[error("{}cannot be read", place(*line))]
    Io {
        /// Line, from 1; 0 where there are no lines.
        line: usize,
        /// Why.
        source: std::io::Error,
    },
}

impl Bad {
    pub(crate) fn format(line: usize, why: impl Into<String>) -> Self {
        Self::Format { line, why: why.into() }
    }

    pub(crate) fn file(why: impl Into<String>) -> Self {
        Self::File { why: why.into() }
    }

    pub(crate) fn torn(why: impl Into<String>) -> Self {
        Self::Io { line: 0, source: std::io::Error::new(std::io::ErrorKind::InvalidData, why.into()) }
    }

    pub(crate) fn json(line: usize, error: &serde_json::Error) -> Self {
        Self::Format { line: line + error.line().saturating_sub(1), why: error.to_string() }
    }
}

fn at(line: usize) -> String {
    if line > 0 { format!("line {line}: ") } else { String::new() }
}

fn place(line: usize) -> String {
    if line > 0 { format!("line {line} ") } else { "it ".to_owned() }
}
