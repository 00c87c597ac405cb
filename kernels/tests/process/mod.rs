//! The worker as a process beside a simulated driver, and what it said.

mod said;

use std::fs;
use std::path::PathBuf;

pub use said::*;

/// A folder with the simulated driver and its settings.
pub struct Driver(tempfile::TempDir);

impl Driver {
    pub fn new(settings: &str) -> Self {
        Self::with(settings, &[])
    }

    /// With the same file under the names of other libraries: a copy would not know the driver's devices.
    pub fn with(settings: &str, libraries: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Cargo builds the library beside the dependencies of this test.
        let built = std::env::current_exe().unwrap().parent().unwrap().join("libmuster_ptxsim.so");
        for library in ["libcuda.so.1", "libnvidia-ml.so.1"] {
            fs::copy(&built, dir.path().join(library)).unwrap_or_else(|why| panic!("{}: {why}", built.display()));
        }
        for library in libraries {
            std::os::unix::fs::symlink("libcuda.so.1", dir.path().join(library)).unwrap();
        }
        fs::write(dir.path().join("libcuda.conf"), settings).unwrap();
        Self(dir)
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }
}
