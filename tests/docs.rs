//! What the documents point at is there: files, headings, and the paths they name.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Markdown file of the repository, and its text.
fn documents() -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !["target", ".git", ".cache", "artifacts"].contains(&&*name) {
                folders.push(path);
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// The text without fenced blocks.
fn prose(text: &str) -> String {
    let mut code = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        } else if !code {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

/// What stands between round brackets behind square ones.
fn links(text: &str) -> Vec<&str> {
    text.match_indices("](").map(|(at, _)| text[at + 2..].split([')', ' ', '\n']).next().unwrap_or_default()).collect()
}

/// Names of its headings, as they are linked to.
fn anchors(text: &str) -> Vec<String> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let before = times.entry(anchor.clone()).or_default();
            *before += 1;
            if *before > 1 { format!("{anchor}-{}", *before - 1) } else { anchor }
        })
        .collect()
}

/// What is wrong with one link of the file at `from`.
fn broken(from: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let to = if file.is_empty() { from.to_owned() } else { from.parent().unwrap().join(file) };
    let there = if file.is_empty() { Ok(text.to_owned()) } else { fs::read_to_string(&to) };
    if !to.exists() {
        return Some(format!("{}: {link}: there is no such file", from.display()));
    }
    let headed = anchor.is_empty() || there.is_ok_and(|text| anchors(&text).iter().any(|known| known == anchor));
    (!headed).then(|| format!("{}: {link}: there is no such heading", from.display()))
}

#[test]
fn every_link_of_a_document_leads_to_a_file_or_a_heading() {
    let documents = documents();
    assert!(documents.len() > 15, "{}", documents.len());
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (path, text) in &documents {
        let prose = prose(text);
        let links = links(&prose);
        seen += links.len();
        wrong.extend(links.iter().filter_map(|link| broken(path, text, link)));
    }
    assert!(seen > 50, "{seen}");
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn every_path_that_a_document_names_is_in_the_repository() {
    let root = root();
    let tops =
        [".ci/", ".github/", "assets/", "console/", "docs/", "kernels/", "packages/", "playbooks/", "probe/", "tests/"];
    // A record that the console writes is no file.
    let records = ["console/asked"];
    let mut wrong = Vec::new();
    // The changelog also tells of what is gone.
    for (path, text) in documents().iter().filter(|(path, _)| !path.ends_with("CHANGELOG.md")) {
        for quoted in prose(text).split('`').skip(1).step_by(2) {
            let name = quoted.split([' ', ':', '#']).next().unwrap_or_default().trim_end_matches('/');
            let ours = tops.iter().any(|top| quoted.starts_with(top));
            let exact = !name.contains(['*', '<', '{', '[', '…']) && !name.contains(char::is_uppercase);
            if ours && exact && !records.contains(&name) && !root.join(name).exists() {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_heading_is_linked_to_by_its_words() {
    let text = "# One metric: compared\n\n```sh\n# no heading\n```\n## A `b`, c\n## A b c\n";
    assert_eq!(anchors(text), ["one-metric-compared", "a-b-c", "a-b-c-1"]);
    assert_eq!(links("see [a](b.md#c) and [d](e)"), ["b.md#c", "e"]);
    let here = root().join("README.md");
    assert_eq!(broken(&here, text, "#a-b-c"), None);
    assert!(broken(&here, text, "#nothing").is_some() && broken(&here, text, "nothing.md").is_some());
}
