//! Which files does an `Include` with wildcards stand for?

use std::path::{Component, Path, PathBuf};

use crate::pattern;

/// Files that match, in lexical order; nothing where nothing matches. `*` and `?` are known, character classes are not.
pub(super) fn glob(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let name = name.to_string_lossy();
        if !name.contains(['*', '?']) {
            found.iter_mut().for_each(|path| path.push(&*name));
            continue;
        }
        found = found.iter().flat_map(|folder| entries(folder, &name)).collect();
    }
    found.retain(|path| path.exists());
    found
}

fn entries(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let Ok(read) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = read.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let wanted =
        |name: &String| pattern::matches(pattern, name) && (pattern.starts_with('.') || !name.starts_with('.'));
    let mut names: Vec<String> = names.filter(wanted).collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
}
