//! Whether this node has an NVIDIA GPU, and where its driver's library lies.

use std::fs;
use std::path::{Path, PathBuf};

const LIBRARY: &str = "libcuda.so.1";
/// Where drivers put it that the dynamic loader does not know of: WSL, NixOS, container hosts.
const FOLDERS: [&str; 7] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
];

/// Hardware, or a driver's library: a node without either costs nothing and is not asked further.
pub(super) fn has_gpu() -> bool {
    Path::new("/dev/nvidiactl").exists() || on_the_bus() || library_folder().is_some()
}

fn on_the_bus() -> bool {
    let Ok(devices) = fs::read_dir("/sys/bus/pci/devices") else { return false };
    let says = |path: PathBuf, start: &str| fs::read_to_string(path).is_ok_and(|text| text.starts_with(start));
    // Display controllers of vendor 10de.
    devices.flatten().map(|d| d.path()).any(|d| says(d.join("vendor"), "0x10de") && says(d.join("class"), "0x03"))
}

/// The folder of the driver's library, when it lies where one looks.
pub(super) fn library_folder() -> Option<PathBuf> {
    let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&given).chain(FOLDERS.map(PathBuf::from));
    folders.filter(|folder| folder.is_absolute()).find(|folder| folder.join(LIBRARY).exists())
}
