//! The committed kernels are what their manifest and their sources say.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sha2::{Digest, Sha256};

fn manifest() -> Vec<Value> {
    let text = include_str!("../prebuilt/manifest.json");
    let document: Value = serde_json::from_str(text).unwrap();
    document["files"].as_array().unwrap().clone()
}

#[test]
fn every_file_has_the_hash_of_the_manifest_and_no_kernel_spills() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("prebuilt");
    let entries = manifest();
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        entries.len() + 1,
        "a file that the manifest does not name"
    );
    for entry in entries {
        let name = entry["file"].as_str().unwrap();
        let hash: String =
            Sha256::digest(std::fs::read(folder.join(name)).unwrap()).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(entry["sha256"].as_str().unwrap(), hash, "{name}");
        for (kernel, use_of) in entry["kernels"].as_object().into_iter().flatten() {
            assert_eq!((use_of["stack"].as_u64(), use_of["local"].as_u64()), (Some(0), Some(0)), "{name}: {kernel}");
        }
    }
}

#[test]
fn every_kernel_exists_for_every_device() {
    let kernels = |file: &str| -> Vec<String> {
        let entry = manifest().into_iter().find(|entry| entry["file"] == file).unwrap();
        entry["kernels"].as_object().unwrap().keys().cloned().collect()
    };
    for module in ["memory", "burn", "gemm", "peer", "tape", "norm", "image", "product", "attention", "function"] {
        let first = kernels(&format!("{module}.sm_80.cubin"));
        assert!(!first.is_empty());
        assert_eq!(first, kernels(&format!("{module}.sm_90a.cubin")));
        assert_eq!(first, kernels(&format!("{module}.sm_100a.cubin")));
        let text = std::fs::read_to_string(format!("{}/prebuilt/{module}.compute_80.ptx", env!("CARGO_MANIFEST_DIR")))
            .unwrap();
        assert!(first.iter().all(|name| text.contains(&format!(".entry {name}("))), "{module}: {first:?}");
    }
}

#[test]
fn compiling_the_sources_again_gives_the_same_bytes() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.py");
    let Ok(done) = Command::new("python3").arg(script).arg("--check").output() else {
        return skipped("no python3");
    };
    let said = String::from_utf8_lossy(&done.stderr);
    match done.status.code() {
        Some(0) => {}
        Some(3) => skipped(&said),
        _ => panic!("{said}"),
    }
}

fn skipped(why: &str) {
    muster_skip::skip("compiling_the_sources_again_gives_the_same_bytes", muster_skip::Lacks::Tool, why);
}
