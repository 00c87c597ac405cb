//! Builds the static probe that the console pushes to nodes, so that one `cargo build` makes both.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Architectures that the probe is built for, each with the variable that names a prebuilt probe.
const MACHINES: [(&str, &str); 2] = [("x86_64", "MUSTER_PROBE_X86_64"), ("aarch64", "MUSTER_PROBE_AARCH64")];

/// A prebuilt probe for the console's own architecture may also be named by `MUSTER_PROBE`; without one, it is built here. The probe for the
/// other architecture is included only where its variable names one: building it takes another linker.
fn main() {
    let own = env("CARGO_CFG_TARGET_ARCH");
    let (owns, others): (Vec<_>, Vec<_>) = MACHINES.into_iter().partition(|(machine, _)| *machine == own);
    let ([(_, own_variable)], [(machine, variable)]) = (&owns[..], &others[..]) else {
        panic!("the probe is built for x86_64 and aarch64, not for {own}");
    };
    let probe = given("MUSTER_PROBE").or_else(|| given(own_variable)).unwrap_or_else(|| build(&own));
    println!("cargo::rustc-env=MUSTER_PROBE_PATH={}", probe.display());
    let other = given(variable).unwrap_or_else(|| {
        let none = PathBuf::from(env("OUT_DIR")).join("no-probe");
        std::fs::write(&none, "").unwrap_or_else(|why| panic!("cannot write {}: {why}", none.display()));
        none
    });
    println!("cargo::rustc-env=MUSTER_OTHER_PROBE_PATH={}", other.display());
    println!("cargo::rustc-env=MUSTER_OTHER_MACHINE={machine}");
}

/// The probe that a variable names.
fn given(variable: &str) -> Option<PathBuf> {
    println!("cargo::rerun-if-env-changed={variable}");
    let path = PathBuf::from(std::env::var_os(variable).filter(|value| !value.is_empty())?);
    println!("cargo::rerun-if-changed={}", path.display());
    Some(path)
}

fn build(machine: &str) -> PathBuf {
    let target = format!("{machine}-unknown-linux-gnu");
    let root = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("..");
    for watched in [
        "probe/src",
        "probe/build.rs",
        "probe/Cargo.toml",
        "probe/wire/src",
        "probe/wire/Cargo.toml",
        "probe/tape/src",
        "probe/tape/Cargo.toml",
        "kernels/build.rs",
        "kernels/src",
        "kernels/prebuilt",
        "kernels/Cargo.toml",
        "Cargo.lock",
        "Cargo.toml",
    ] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    // The GPU worker must load the driver's library, so it alone is linked dynamically; the probe carries it.
    let worker = cargo((&root, &target), "muster-gpu", &[("RUSTFLAGS", "")]);
    let worker = worker.to_string_lossy();
    let variables = [("RUSTFLAGS", "-C target-feature=+crt-static"), ("MUSTER_GPU", &*worker)];
    cargo((&root, &target), "muster-probe", &variables)
}

/// Builds one program for nodes, with these variables.
fn cargo((root, target): (&Path, &str), program: &str, variables: &[(&str, &str)]) -> PathBuf {
    let target_dir = shared_target_dir(Path::new(&env("OUT_DIR")));
    let mut cargo = Command::new(env("CARGO"));
    cargo
        .current_dir(root)
        .args(["build", "--package", program, "--bin", program, "--profile", "probe", "--target", target])
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
    target_dir.join(target).join("probe").join(program)
}

/// One folder for every profile of the console, so that the probe is built once.
fn shared_target_dir(out: &Path) -> PathBuf {
    // OUT_DIR is <target>/<profile>/build/<package>/out.
    out.ancestors().nth(4).unwrap_or(out).join("probe-static")
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
