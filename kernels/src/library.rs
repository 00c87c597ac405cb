//! Where NVIDIA's libraries beside the driver's are, and what their functions are called.
//!
//! The dynamic loader is asked first; then the folders that the probe found are searched for the same names.

use std::env;
use std::path::{Path, PathBuf};

use crate::driver::{Trouble, loaded};

/// Environment variable with the folders that the probe found.
const FOLDERS: &str = "MUSTER_LIBRARIES";

/// A loaded library.
#[derive(Debug)]
pub struct Library {
    handle: libloading::Library,
    /// File name by which it was asked for.
    pub name: &'static str,
    /// Where it lies.
    pub path: String,
}

impl Library {
    /// Loads the first of `names` that is on this machine.
    ///
    /// # Errors
    /// When there is none, or when it is broken, in the loader's words.
    pub fn find(names: &[&'static str]) -> Result<Self, Trouble> {
        let folders: Vec<PathBuf> =
            env::var_os(FOLDERS).map(|list| env::split_paths(&list).collect()).unwrap_or_default();
        for &name in names {
            if let Some(handle) = loaded(name).map_err(|why| broken(name, &why))? {
                return Ok(Self { handle, name, path: mapped(name).unwrap_or_else(|| name.to_owned()) });
            }
            let files = folders.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
            for path in files.filter(|path| path.exists()).map(|path| path.to_string_lossy().into_owned()) {
                if let Some(handle) = loaded(&path).map_err(|why| broken(name, &why))? {
                    return Ok(Self { handle, name, path });
                }
            }
        }
        Err(Trouble::Absent(format!("no {} on this node", names[0])))
    }

    /// The function called `name`, of signature `F`.
    ///
    /// # Errors
    /// When this library has none of the name.
    ///
    /// # Safety
    /// `F` is the signature that the library's header has for the name.
    #[expect(unsafe_code, reason = "dynamic loading")]
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, Trouble> {
        // SAFETY: the caller promises the signature.
        let found = unsafe { self.handle.get::<F>(name) };
        found.map(|function| *function).map_err(|_| Trouble::Failed(format!("{} has no {name}", self.name)))
    }
}

fn broken(name: &str, why: &str) -> Trouble {
    Trouble::Failed(format!("{name} does not load: {why}"))
}

/// The file that the loader took for `name`.
fn mapped(name: &str) -> Option<String> {
    let stem = name.split(".so").next()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let is = |path: &&str| Path::new(path).file_name().is_some_and(|file| file.to_string_lossy().starts_with(stem));
    files.into_iter().find(is).map(str::to_owned)
}
