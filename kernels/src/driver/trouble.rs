//! Why there is no measurement, and which of the driver's errors mean what.

use std::fmt;

use cudarc::driver::result::DriverError;
use cudarc::driver::sys;
use muster_wire::Outcome;

/// Why there is no measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No NVIDIA GPU here.
    Absent(String),
    /// A GPU that cannot be used as things are.
    NotRun(String),
    /// The driver, the GPU or its results are at fault.
    Failed(String),
}

impl From<Trouble> for Outcome {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Absent(why) => Self::NotApplicable(why),
            Trouble::NotRun(why) => Self::NotRun(why),
            Trouble::Failed(why) => Self::Failed(why),
        }
    }
}

impl Trouble {
    /// The same, about `whom`.
    #[must_use]
    pub fn about(self, whom: &str) -> Self {
        let said = |why: String| format!("{whom}: {why}");
        match self {
            Self::Absent(why) => Self::Absent(said(why)),
            Self::NotRun(why) => Self::NotRun(said(why)),
            Self::Failed(why) => Self::Failed(said(why)),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Absent(why) | Self::NotRun(why) | Self::Failed(why)) = self;
        f.write_str(why)
    }
}

/// What an error of the driver means that happened at `what`.
pub(super) fn failed(what: &str) -> impl Fn(DriverError) -> Trouble {
    move |error| {
        let text = |found: Result<&std::ffi::CStr, DriverError>| found.map(|t| t.to_string_lossy().into_owned());
        let name = text(error.error_name()).unwrap_or_else(|_| "an error without a name".to_owned());
        let words = text(error.error_string()).unwrap_or_default();
        let why = format!("{what}: {name}: {words}");
        match error.0 {
            sys::CUresult::CUDA_ERROR_NO_DEVICE => Trouble::Absent("the NVIDIA driver sees no GPU".to_owned()),
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Trouble::NotRun(why),
            _ => Trouble::Failed(why),
        }
    }
}
