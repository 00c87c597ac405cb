//! Golden files: text that a person has read, such as sentences and drawn screens, and that tests hold to that.

use std::path::Path;

/// Compares `text` with that of the file; with `MUSTER_BLESS=1` writes it there instead.
///
/// # Panics
/// When the texts differ (it tells the first line that does), or when the file cannot be written.
pub fn hold(path: &Path, text: &str) {
    if std::env::var_os("MUSTER_BLESS").is_some() {
        let written = std::fs::write(path, text);
        assert!(written.is_ok(), "{}: {written:?}", path.display());
        return;
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    if let Some(differs) = difference(&stored, text) {
        panic!("{} differs from {differs}\nRead it, then run with MUSTER_BLESS=1.\n{text}", path.display());
    }
}

/// The first line, counted from 1, in which two texts differ, as each has it.
fn difference(stored: &str, text: &str) -> Option<String> {
    if stored == text {
        return None;
    }
    let (mut stored, mut now) = (stored.split('\n'), text.split('\n'));
    let mut line = 0;
    loop {
        line += 1;
        let (old, new) = (stored.next(), now.next());
        if old != new {
            return Some(format!("line {line}:\nstored: {old:?}\nnow:    {new:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_told_also_where_a_text_only_goes_on() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\nc", "a\nx\ny").unwrap(), "line 2:\nstored: Some(\"b\")\nnow:    Some(\"x\")");
        assert_eq!(difference("a\n", "a").unwrap(), "line 2:\nstored: Some(\"\")\nnow:    None");
        assert_eq!(difference("", "a").unwrap(), "line 1:\nstored: Some(\"\")\nnow:    Some(\"a\")");
    }
}
