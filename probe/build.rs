//! Embeds the GPU worker that `MUSTER_GPU` names. Without it the probe is whole but for GPUs, and says so.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MUSTER_GPU");
    let worker = std::env::var_os("MUSTER_GPU").map(PathBuf::from).unwrap_or_else(|| {
        let out = std::env::var_os("OUT_DIR").unwrap_or_else(|| panic!("cargo sets OUT_DIR"));
        let empty = PathBuf::from(out).join("no-worker");
        std::fs::write(&empty, []).unwrap_or_else(|why| panic!("{}: {why}", empty.display()));
        empty
    });
    println!("cargo::rerun-if-changed={}", worker.display());
    println!("cargo::rustc-env=MUSTER_GPU_PATH={}", worker.display());
}
