//! How a bad playbook is told: file, line, column, the line itself, and the name that was probably meant.

use std::fmt;
use std::ops::Range;

/// Longest piece of the user's text repeated in a message, bytes.
const SHOWN: usize = 200;

/// Everything wrong with one playbook file, in the order of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PlaybookError {
    /// The file as the caller named it.
    pub file: String,
    /// In the order of the file.
    pub problems: Vec<Problem>,
}

/// One thing wrong with a playbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// One sentence without a full stop.
    pub message: String,
    /// The line of the file, cleaned of control characters.
    pub text: String,
}

impl PlaybookError {
    /// Line of the first problem, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.problems.first().map_or(1, |problem| problem.line)
    }
}

impl fmt::Display for PlaybookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let Problem { line, column, message, text } = problem;
            writeln!(f, "{}:{line}:{column}: {message}", self.file)?;
            writeln!(f, "{line:>5} | {text}")?;
            write!(f, "      | {:>column$}", "^")?;
        }
        Ok(())
    }
}

impl Problem {
    /// A problem at a byte range of `source`.
    pub(crate) fn at(source: &str, span: &Range<usize>, message: String) -> Self {
        let mut start = span.start.min(source.len());
        while !source.is_char_boundary(start) {
            start -= 1;
        }
        let before = &source[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let text = source[line_start..].lines().next().unwrap_or("");
        Self {
            line: before.matches('\n').count() + 1,
            column: source[line_start..start].chars().count() + 1,
            message,
            text: muster_wire::clean(text, SHOWN),
        }
    }
}

/// "no X 'y': did you mean 'z'?", or the list of what there is.
pub(crate) fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let name = muster_wire::clean(name, SHOWN);
    match nearest(&name, &known) {
        Some(near) => format!("no {kind} '{name}': did you mean '{near}'?"),
        None => format!("no {kind} '{name}': there are {}", known.join(", ")),
    }
}

/// The known name closest to `name`, if it is close: at most two edits, or a third of the word.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(2);
    known
        .iter()
        .map(|candidate| (edits(name, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in characters.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_as_levenshtein_does() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("cpu-gemm", "cpu-gemm"), 0);
    }

    #[test]
    fn columns_count_characters_and_the_caret_stands_under_them() {
        let source = "a = 1\nname = \"äöü\" x\n";
        let at = source.find('x').unwrap();
        let problem = Problem::at(source, &(at..at + 1), "odd".to_owned());
        assert_eq!((problem.line, problem.column), (2, 14));
        let error = PlaybookError { file: "f.toml".to_owned(), problems: vec![problem] };
        assert_eq!(error.to_string(), "f.toml:2:14: odd\n    2 | name = \"äöü\" x\n      |              ^");
    }

    #[test]
    fn escapes_in_the_file_do_not_reach_the_terminal() {
        let problem = Problem::at("a = \"\u{1b}[31mred\"", &(0..1), "odd".to_owned());
        assert_eq!(problem.text, "a = \"red\"");
    }
}
