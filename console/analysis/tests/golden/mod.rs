//! Text that must stay as it was read and found good.

#![expect(clippy::disallowed_methods, reason = "opens the file that holds the text")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::path::Path;

/// Compares with `tests/NAME`; with `MUSTER_BLESS=1` writes it instead.
pub fn hold(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    if std::env::var_os("MUSTER_BLESS").is_some() {
        return std::fs::write(&path, text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    for (at, (stored, said)) in stored.lines().zip(text.lines()).enumerate() {
        assert_eq!(stored, said, "line {} of {}", at + 1, path.display());
    }
    assert_eq!(stored.lines().count(), text.lines().count(), "lines of {}", path.display());
}
