//! One way for all tests to say that they did not run, and why, or that they needed several tries: on standard error, and in the
//! file that `MUSTER_SKIPS` names, from which `.ci/run` counts and lists them. A test that returns early in any other way is
//! counted as passed.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};

/// What a test lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// Files that cannot be part of the repository.
    Data,
    /// The right to make namespaces, mounts and control groups.
    Root,
    /// A program, a library or an ability of this machine's kernel.
    Tool,
    /// A machine quiet enough for an honest verdict; only after having tried.
    Quiet,
}

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "needs data from outside",
            Self::Root => "needs root",
            Self::Tool => "needs tool",
            Self::Quiet => "machine too busy",
        })
    }
}

/// Says that `test` does not run. The caller returns.
///
/// # Panics
/// When `MUSTER_SKIPS` names a file that cannot be written: a skip that nobody counts would pass for a test that ran.
pub fn skip(test: &str, lacks: Lacks, why: &str) {
    record(&format!("SKIPPED {test}: {lacks}: {}", one_line(why)));
}

/// Says that one part of `test` does not run, while the rest of it does.
///
/// # Panics
/// As [`skip`].
pub fn skip_part(test: &str, part: &str, lacks: Lacks, why: &str) {
    record(&format!("SKIPPED IN PART {test}, {part}: {lacks}: {}", one_line(why)));
}

/// Says how a test that may need several tries got on: `what` of which try it was, and what it came to.
///
/// # Panics
/// As [`skip`].
pub fn tried(test: &str, what: &str) {
    record(&format!("TRIED {test}: {}", one_line(what)));
}

fn one_line(why: &str) -> String {
    why.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn record(line: &str) {
    // Not by a macro: its words are kept back when a test passes. The name of the test stands before them on the line.
    let _ = writeln!(io::stderr(), "\n{line}");
    let Some(file) = std::env::var_os("MUSTER_SKIPS").filter(|file| !file.is_empty()) else { return };
    // One write, so that lines of tests that run at once do not mix.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    if let Err(why) = written {
        panic!("MUSTER_SKIPS names {}: {why}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// The environment belongs to the whole process, so a process of its own writes.
    #[test]
    fn every_skip_is_one_line_of_the_file_with_its_kind_and_reason() {
        const CHILD: &str = "MUSTER_SKIP_TEST_CHILD";
        if std::env::var_os(CHILD).is_some() {
            super::skip("a_test", super::Lacks::Data, "no\n file");
            super::skip_part("other_test", "its end", super::Lacks::Quiet, "others work");
            return super::tried("other_test", "decided by try 1 of 2");
        }
        let file = std::env::temp_dir().join(format!("muster-skip-{}", std::process::id()));
        let test = "tests::every_skip_is_one_line_of_the_file_with_its_kind_and_reason";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .envs([(CHILD, "1".as_ref()), ("MUSTER_SKIPS", file.as_os_str())])
            .output()
            .unwrap();
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(&file);
        assert!(child.status.success());
        let expected = "SKIPPED a_test: needs data from outside: no file\n\
                        SKIPPED IN PART other_test, its end: machine too busy: others work\n\
                        TRIED other_test: decided by try 1 of 2\n";
        assert_eq!(written, expected);
    }
}
