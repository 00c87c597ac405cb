//! A console without nodes: a database, a home and files of its own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::process::{Command, Output};

use serde_json::Value;

use crate::binary;
use crate::schema::conforms;

/// Where such a console works; gone when dropped.
#[derive(Debug)]
pub struct Place(tempfile::TempDir);

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// Empty.
    ///
    /// # Panics
    /// Without room for temporary files, as all of this.
    #[must_use]
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Where a file of this name would lie.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Writes a file; its path.
    #[must_use]
    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// What the console answers.
    #[must_use]
    pub fn muster(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(binary());
        command.env("MUSTER_DB", self.0.path().join("db")).env("HOME", self.0.path());
        command.env("MUSTER_INVENTORY", self.0.path().join("none.toml")).args(arguments).output().unwrap()
    }

    /// Everything it says; `code` is the exit code it must have.
    pub fn text(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.muster(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    /// The document it prints, which must conform to the published `schema`.
    pub fn json(&self, code: i32, schema: &str, arguments: &[&str]) -> Value {
        let output = self.muster(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        document(&output, schema)
    }

    /// What `results --json` says with these further `arguments`, whatever it is; the exit code must follow from it.
    pub fn results(&self, arguments: &[&str]) -> Value {
        let output = self.muster(&[&["results", "--json"], arguments].concat());
        let report = document(&output, "muster.run.json");
        let count = |state: &str| report["summary"][state].as_u64().unwrap();
        let code = match () {
            () if count("fail") > 0 => 2,
            () if count("unknown") + count("undecided") > 0 => 3,
            () => i32::from(count("warn") > 0),
        };
        assert_eq!(output.status.code(), Some(code), "{}", report["summary"]);
        report
    }
}

fn document(output: &Output, schema: &str) -> Value {
    let parsed = serde_json::from_slice(&output.stdout);
    let value = parsed.unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&output.stderr)));
    conforms(schema, &value, &String::from_utf8_lossy(&output.stderr));
    value
}
