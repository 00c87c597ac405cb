//! How the program ends: the codes that scripts read.

/// All asked-for work ran and passed.
pub const PASS: u8 = 0;
/// Warnings only, or not without a validation.
pub const WARN: u8 = 1;
/// At least one failed.
pub const FAIL: u8 = 2;
/// Could not decide.
pub const UNDECIDED: u8 = 3;
/// The command line is wrong.
pub const USAGE: u8 = 64;
/// The database or a file cannot be read or written, whatever it was for.
pub const IO: u8 = 74;
/// Configuration or inventory is wrong.
pub const CONFIG: u8 = 78;
/// The terminal went away.
pub const HUNG_UP: u8 = 129;
/// Interrupted by the user.
pub const INTERRUPTED: u8 = 130;
/// Told to end by TERM.
pub const TERMINATED: u8 = 143;

/// What each code says, where a subcommand says nothing else.
pub const MEANINGS: [(u8, &str); 10] = [
    (PASS, "all passed"),
    (WARN, "warnings"),
    (FAIL, "at least one node failed"),
    (UNDECIDED, "could not decide"),
    (USAGE, "usage"),
    (IO, "database or file"),
    (CONFIG, "configuration"),
    (HUNG_UP, "the terminal went away; results so far are kept"),
    (INTERRUPTED, "interrupted; results so far are kept"),
    (TERMINATED, "ended by TERM; results so far are kept"),
];

/// An error that knows its exit code.
#[derive(Debug)]
pub struct Problem {
    /// Exit code.
    pub code: u8,
    /// What to tell.
    pub error: anyhow::Error,
}

/// Result of a subcommand: its exit code.
pub type Ended = Result<u8, Problem>;

/// Gives an error its exit code.
pub trait Code<T> {
    /// `self` with `code` for the error; where a file that configures cannot be read at all, with [`IO`].
    ///
    /// # Errors
    /// The same error, as a [`Problem`].
    fn code(self, code: u8) -> Result<T, Problem>;
}

impl<T, E: Into<anyhow::Error>> Code<T> for Result<T, E> {
    fn code(self, code: u8) -> Result<T, Problem> {
        self.map_err(|error| {
            let error = error.into();
            let unreadable = code == CONFIG && error.chain().any(|cause| cause.is::<std::io::Error>());
            Problem { code: if unreadable { IO } else { code }, error }
        })
    }
}

impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        Self { code: IO, error }
    }
}
