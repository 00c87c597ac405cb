//! Builds the static probe that the console pushes to nodes, so that one `cargo build` makes both.

use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo::rerun-if-env-changed=MUSTER_PROBE");
    let probe = match std::env::var_os("MUSTER_PROBE") {
        Some(path) => PathBuf::from(path),
        None => build(),
    };
    println!("cargo::rustc-env=MUSTER_PROBE_PATH={}", probe.display());
}

fn build() -> PathBuf {
    let root = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("..");
    for watched in [
        "probe/src",
        "probe/build.rs",
        "probe/Cargo.toml",
        "probe/wire/src",
        "probe/wire/Cargo.toml",
        "probe/tape/src",
        "probe/tape/Cargo.toml",
        "kernels/src",
        "kernels/prebuilt",
        "kernels/Cargo.toml",
        "Cargo.lock",
    ] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    // The GPU worker must load the driver's library, so it alone is linked dynamically; the probe carries it.
    let worker = cargo(&root, "muster-gpu", &[("RUSTFLAGS", "")]);
    let worker = worker.to_string_lossy();
    cargo(&root, "muster-probe", &[("RUSTFLAGS", "-C target-feature=+crt-static"), ("MUSTER_GPU", &worker)])
}

/// Builds one program for nodes, with these variables.
fn cargo(root: &Path, program: &str, variables: &[(&str, &str)]) -> PathBuf {
    let target_dir = shared_target_dir(Path::new(&env("OUT_DIR")));
    let mut cargo = Command::new(env("CARGO"));
    cargo
        .current_dir(root)
        .args(["build", "--package", program, "--bin", program, "--profile", "probe", "--target", TARGET])
        .env("CARGO_TARGET_DIR", &target_dir)
        .envs(variables.iter().copied());
    // What the outer cargo set for itself (clippy as compiler, its own flags) must not reach the programs.
    for name in
        ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS", "CARGO_MAKEFLAGS"]
    {
        cargo.env_remove(name);
    }
    let status = cargo.status().unwrap_or_else(|why| panic!("cannot start cargo for {program}: {why}"));
    assert!(status.success(), "building {program} failed: {status}");
    target_dir.join(TARGET).join("probe").join(program)
}

/// One folder for every profile of the console, so that the probe is built once.
fn shared_target_dir(out: &Path) -> PathBuf {
    // OUT_DIR is <target>/<profile>/build/<package>/out.
    out.ancestors().nth(4).unwrap_or(out).join("probe-static")
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
