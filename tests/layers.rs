//! Which package may use which: the arrows of DESIGN, read from cargo's own metadata.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

fn ours() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |v: &Value| v["name"].as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|p| (name(p), p["dependencies"].as_array().unwrap().iter().map(name).collect())).collect()
}

#[test]
fn packages_use_only_what_their_layer_may() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("muster-wire", ["muster-golden"].as_slice()),
        ("muster-tape", &[]),
        ("muster-probe", &["muster-wire", "muster-tape"]),
        ("muster-gpu", &["muster-wire", "muster-tape", "muster-ptxsim", "muster-verbs", "muster-skip"]),
        ("muster-ptxsim", &[]),
        ("muster-verbs", &[]),
        ("muster-skip", &[]),
        ("muster-golden", &[]),
        ("muster-run", &["muster-wire"]),
        ("muster-logs", &["muster-wire", "muster-skip"]),
        ("muster-analysis", &["muster-wire", "muster-run", "muster-skip", "muster-golden"]),
        ("muster-watch", &["muster-wire", "muster-run", "muster-analysis", "muster-golden"]),
        ("muster-triage", &["muster-wire", "muster-run", "muster-logs", "muster-analysis", "muster-golden"]),
        (
            "muster-import",
            &[
                "muster-wire",
                "muster-logs",
                "muster-analysis",
                "muster-watch",
                "muster-triage",
                "muster-skip",
                "muster-golden",
            ],
        ),
        ("muster-store", &["muster-wire", "muster-run", "muster-skip"]),
        ("muster-fleet", &["muster-wire", "muster-skip"]),
        ("muster-playbook", &["muster-wire", "muster-run", "muster-analysis"]),
        ("muster-page", &["muster-wire"]),
        (
            "muster-tui",
            &[
                "muster-wire",
                "muster-logs",
                "muster-analysis",
                "muster-watch",
                "muster-triage",
                "muster-playbook",
                "muster-golden",
            ],
        ),
    ]);
    for (package, dependencies) in ours() {
        if package == "muster" || package == "muster-tests" {
            continue;
        }
        let allowed = allowed.get(package.as_str()).unwrap_or_else(|| panic!("{package} is not in the layout"));
        for dependency in dependencies.iter().filter(|d| d.starts_with("muster")) {
            assert!(allowed.contains(&dependency.as_str()), "{package} must not use {dependency}");
        }
    }
}

#[test]
fn each_big_library_lives_in_one_package() {
    let homes = [
        ("sled", "muster-store"),
        ("russh", "muster-fleet"),
        ("ratatui", "muster-tui"),
        ("askama", "muster-page"),
        ("plotters", "muster-page"),
    ];
    for (library, home) in homes {
        let users: Vec<String> =
            ours().into_iter().filter(|(_, uses)| uses.contains(library)).map(|(package, _)| package).collect();
        assert_eq!(users, [home], "users of {library}");
    }
}

#[test]
fn the_pure_layer_has_no_way_to_the_outside() {
    for package in ["muster-logs", "muster-analysis", "muster-watch", "muster-triage"] {
        for banned in ["tokio", "rustix", "libc", "russh", "sled"] {
            assert!(!ours()[package].contains(banned), "{package} uses {banned}");
        }
    }
}

/// Folders of the console, each with those that it may use. What all may use (configuration, exit codes, the clock) stands beside them.
const ARROWS: [(&str, &[&str]); 7] = [
    ("judge", &[]),
    ("risk", &["judge"]),
    ("service", &["judge", "risk"]),
    ("work", &["judge"]),
    ("views", &["judge", "risk", "service", "work"]),
    ("app", &["judge", "risk", "service", "work", "views"]),
    ("cli", &["judge", "risk", "service", "work", "views", "app", "input"]),
];

/// What a file uses of its own crate: the first word of every path, also of those in braces.
fn used(text: &str) -> BTreeSet<&str> {
    let word = |path: &'_ str| path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
    let mut found = BTreeSet::new();
    for path in text.split("crate::").skip(1) {
        let group = path.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or(path);
        let most = if path.starts_with('{') { usize::MAX } else { 1 };
        let paths = group.split(',').map(str::trim_start).take(most);
        found.extend(paths.map(|path| &path[..word(path)]));
    }
    found
}

#[test]
fn a_path_in_braces_is_found_like_any_other() {
    let text = "use crate::{clock, views::Board, work};\nuse crate::risk::Log;\nlet x = crate::judge::assess();";
    assert_eq!(used(text), BTreeSet::from(["clock", "judge", "risk", "views", "work"]));
}

#[test]
fn folders_of_the_console_use_only_those_below_them() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../console/src");
    let folders: Vec<&str> = ARROWS.iter().map(|(folder, _)| *folder).chain(["input"]).collect();
    for (folder, may) in ARROWS {
        let mut left = vec![src.join(folder)];
        let mut files = 0;
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            files += 1;
            let all = std::fs::read_to_string(&path).unwrap();
            // Tests may look at more than what they test.
            let text = all.split("#[cfg(test)]").next().unwrap_or_default();
            let used = used(text);
            for other in folders.iter().filter(|other| **other != folder && !may.contains(other)) {
                assert!(!used.contains(*other), "{} uses {other}", path.display());
            }
        }
        assert!(files > 1, "{folder} is not where it was");
    }
}

/// Modules of a package, each with those that it uses.
fn modules(src: &std::path::Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut left = vec![src.to_owned()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let inner = path.strip_prefix(src).unwrap().with_extension("");
        let module = inner.iter().next().unwrap().to_str().unwrap().to_owned();
        if module == "lib" || module == "main" {
            continue;
        }
        let all = std::fs::read_to_string(&path).unwrap();
        let own = all.split("#[cfg(test)]").next().unwrap_or_default();
        found.entry(module).or_default().extend(used(own).into_iter().map(str::to_owned));
    }
    for (module, uses) in &mut found {
        uses.remove(module);
    }
    found
}

#[test]
fn modules_of_these_packages_use_each_other_in_no_circle() {
    for package in ["analysis/src", "triage/src", "watch/src", "fleet/src", "playbook/src", "run/src", "src"] {
        let mut left = modules(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../console").join(package));
        assert!(left.len() > 1, "{package} is not where it was");
        // What uses nothing that is left cannot be in a circle.
        loop {
            let free: Vec<String> = left
                .iter()
                .filter(|(_, uses)| !uses.iter().any(|other| left.contains_key(other)))
                .map(|(m, _)| m.clone())
                .collect();
            if free.is_empty() {
                break;
            }
            left.retain(|module, _| !free.contains(module));
        }
        assert!(left.is_empty(), "{package} has a circle among {:?}", left.keys());
    }
}
