//! In which folders of this node NVIDIA's libraries beside the driver's lie, where the dynamic loader does not look.
//!
//! Few folders by their names, no recursion, and no more entries of each than anybody has: what lies there is the node's.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Environment variable that tells the worker, and with which whoever starts the probe by hand adds folders of his own.
pub(super) const VARIABLE: &str = "MUSTER_LIBRARIES";
const WANTED: [&str; 9] = [
    "libnccl.so.2",
    "libcublasLt.so.12",
    "libcublasLt.so.13",
    "libcublasLt.so.11",
    "libcublas.so.12",
    "libcublas.so.13",
    "libcublas.so.11",
    "libcudnn.so.9",
    "libcudnn.so.8",
];
/// Entries of a folder that are looked at, and folders that are told of.
const ENTRIES: usize = 1024;
const FOLDERS: usize = 32;

/// The folders, as a path list.
pub(super) fn list() -> OsString {
    let given = std::env::var_os(VARIABLE).unwrap_or_default();
    let given: Vec<PathBuf> = std::env::split_paths(&given).collect();
    let home = ["HOME", "VIRTUAL_ENV", "CONDA_PREFIX"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let found = found(given, &roots(home));
    std::env::join_paths(found).unwrap_or_default()
}

/// Prefixes below which `lib/python3.*/site-packages` may be.
fn roots([home, own, conda]: [Option<PathBuf>; 3]) -> Vec<PathBuf> {
    let common = ["/usr", "/usr/local", "/opt/conda", "/opt/venv"].map(PathBuf::from);
    let homely = home.into_iter().flat_map(|home| ["miniconda3", ".local"].map(|folder| home.join(folder)));
    own.into_iter().chain(conda).chain(common).chain(homely).collect()
}

/// Folders that hold one of the libraries: first those that were `given`.
fn found(given: Vec<PathBuf>, roots: &[PathBuf]) -> Vec<PathBuf> {
    let plain =
        ["/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from);
    let toolkits = below(Path::new("/usr/local"), "cuda").into_iter().map(|cuda| cuda.join("lib64"));
    let pythons = roots.iter().flat_map(|root| {
        let versions = below(&root.join("lib"), "python3").into_iter();
        let packages = versions.flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.join(name)));
        let wheels = packages.flat_map(|packages| below(&packages.join("nvidia"), ""));
        wheels.map(|wheel| wheel.join("lib")).chain([root.join("lib")]).collect::<Vec<PathBuf>>()
    });
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in given.into_iter().chain(plain).chain(toolkits).chain(pythons) {
        // A colon would end it in the list.
        let plain = folder.is_absolute() && !folder.to_string_lossy().contains(':');
        let holds = plain && WANTED.iter().any(|name| folder.join(name).is_file());
        if holds && !folders.contains(&folder) && folders.len() < FOLDERS {
            folders.push(folder);
        }
    }
    folders
}

/// Entries of a folder whose names begin so, in order.
fn below(folder: &Path, start: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let named = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(start);
    let mut found: Vec<PathBuf> = entries.take(ENTRIES).flatten().filter(named).map(|entry| entry.path()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_wheels_and_in_folders_that_were_named_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let put = |folder: &str, name: &str| {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
            fs::write(dir.path().join(folder).join(name), "").unwrap();
        };
        put("lib/python3.11/site-packages/nvidia/nccl/lib", "libnccl.so.2");
        put("lib/python3.11/site-packages/nvidia/cublas/lib", "libcublasLt.so.12");
        put("lib/python3.11/site-packages/nvidia/cudnn/lib", "libcudnn.so.9");
        put("lib/python3.11/site-packages/nvidia/cufft/lib", "libcufft.so.11");
        put("own", "libnccl.so.2");
        let given = vec![dir.path().join("own"), PathBuf::from("relative"), dir.path().join("nowhere")];
        let found = found(given, &[dir.path().to_owned()]);
        let ours: Vec<&Path> = found.iter().filter_map(|folder| folder.strip_prefix(dir.path()).ok()).collect();
        let wheels = "lib/python3.11/site-packages/nvidia";
        let wheels = ["cublas", "cudnn", "nccl"].map(|name| format!("{wheels}/{name}/lib"));
        let expected: Vec<&Path> =
            std::iter::once("own").chain(wheels.iter().map(String::as_str)).map(Path::new).collect();
        assert_eq!(ours, expected);
    }
}
