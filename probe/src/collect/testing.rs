//! Small trees of files for the tests of what looks at them.

use std::fs;
use std::path::Path;

use muster_wire::{Datum, Fact, Reading};
use tempfile::TempDir;

use super::{Facts, Root};

/// A tree that lives as long as the test.
pub(crate) struct Tree(TempDir);

impl Tree {
    /// A tree with these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = dir.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self(dir)
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// What a collector sees in it.
    pub(super) fn look(&self, look: fn(&Root, &mut Facts)) -> Vec<Fact> {
        let mut facts = Facts::default();
        look(&Root::at(self.path()), &mut facts);
        facts.done()
    }
}

/// The reading of the fact called `key`.
pub(super) fn reading_of(facts: &[Fact], key: &str) -> Reading<Datum> {
    let fact = facts.iter().find(|fact| fact.key == key);
    fact.unwrap_or_else(|| panic!("no fact {key} in {facts:#?}")).reading.clone()
}

/// Its number.
pub(super) fn number(facts: &[Fact], key: &str) -> f64 {
    match reading_of(facts, key) {
        Reading::Value(Datum::Number(number)) => number,
        other => panic!("{key} is {other:?}"),
    }
}

/// Its text.
pub(super) fn text(facts: &[Fact], key: &str) -> String {
    match reading_of(facts, key) {
        Reading::Value(Datum::Text(text)) => text,
        other => panic!("{key} is {other:?}"),
    }
}
