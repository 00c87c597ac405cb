//! Where NVIDIA's libraries beside the driver's are, and what their functions are called.
//!
//! The dynamic loader is asked first; then the folders that the probe found are searched for the same names.

use std::env;
use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};

use crate::driver::Trouble;

/// Environment variable with the folders that the probe found.
const FOLDERS: &str = "MUSTER_LIBRARIES";

/// Words of the loader for a file that is not there.
pub(crate) const NO_FILE: &str = "cannot open shared object file: No such file or directory";

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

/// What a library's function answered that is an error: its own words, by its function `words` for them.
pub(crate) fn wrong(library: &Library, (name, words): (&str, &str), code: c_int) -> Trouble {
    type Words = unsafe extern "C" fn(c_int) -> *const c_char;
    // SAFETY: such a function takes a code and gives a C string that lives as long as the library.
    #[expect(unsafe_code, reason = "dynamic loading")]
    let text = unsafe {
        let said = library.function::<Words>(words).ok().map(|f| f(code)).filter(|text| !text.is_null());
        said.map(|text| CStr::from_ptr(text).to_string_lossy().into_owned())
    };
    Trouble::Failed(format!("{name}: {}", text.unwrap_or_else(|| format!("status {code}"))))
}

/// The library `name`, a file's name or path; nothing when there is none, the loader's words when it is broken.
pub(crate) fn loaded(name: &str) -> Result<Option<libloading::Library>, String> {
    // SAFETY: loading runs the library's initialisers, which is what every program that uses it does.
    #[expect(unsafe_code, reason = "dynamic loading")]
    match unsafe { libloading::Library::new(name) } {
        Ok(library) => Ok(Some(library)),
        Err(error) => {
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            // The loader names the file that it does not find; anything else is a library that is here and broken.
            if why.starts_with(&format!("{name}: {NO_FILE}")) { Ok(None) } else { Err(why) }
        }
    }
}

fn broken(name: &str, why: &str) -> Trouble {
    Trouble::Failed(format!("{name} does not load: {why}"))
}

/// The file that the loader took for `name`.
fn mapped(name: &str) -> Option<String> {
    let stem = format!("{}.so", name.split(".so").next()?);
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let is = |path: &&str| Path::new(path).file_name().is_some_and(|file| file.to_string_lossy().starts_with(&stem));
    files.into_iter().find(is).map(str::to_owned)
}
