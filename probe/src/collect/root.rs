//! Reading small files below a root: absent, denied and failed are told apart in this one place.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use muster_wire::Reading;

use super::Then;

/// Most bytes read from one file.
const MOST: u64 = 1 << 20;
/// Longest line of a table, bytes; a longer one counts as several.
const LINE: u64 = 4 << 10;
/// Most names listed in one directory.
const NAMES: usize = 1 << 17;

/// The tree a collector looks at: `/`, or a copy of parts of one in tests.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// This machine.
    pub(crate) fn system() -> Self {
        Self(PathBuf::from("/"))
    }

    /// The tree at `path`.
    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Whether system calls speak of the same machine as the files.
    pub(crate) fn is_system(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Where `path`, given from the root, lies.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A file's text without the space around it; an empty file is [`Reading::Absent`].
    pub(crate) fn text(&self, path: &str) -> Reading<String> {
        let bytes = File::open(self.path(path)).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(MOST).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        match reading(bytes).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()) {
            Reading::Value(text) if text.is_empty() => Reading::Absent,
            other => other,
        }
    }

    /// Gives each line of a table that may be long to `each`, at most `rows` of them, until it says that it has enough.
    pub(crate) fn rows(&self, path: &str, rows: usize, mut each: impl FnMut(&str) -> bool) -> Reading<usize> {
        let read = File::open(self.path(path)).and_then(|file| {
            let mut input = BufReader::with_capacity(64 << 10, file);
            let (mut line, mut count) = (Vec::new(), 0);
            while count < rows {
                line.clear();
                if input.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
                    break;
                }
                count += 1;
                if !each(&String::from_utf8_lossy(&line)) {
                    break;
                }
            }
            Ok(count)
        });
        reading(read)
    }

    /// A file that holds one number.
    pub(crate) fn number(&self, path: &str) -> Reading<f64> {
        self.text(path).and_then(|text| number(&text))
    }

    /// A number that is 0 or more; drivers say -1 where they know none.
    pub(crate) fn counted(&self, path: &str) -> Reading<f64> {
        match self.number(path) {
            Reading::Value(number) if number < 0.0 => Reading::Absent,
            other => other,
        }
    }

    /// A file that holds 0 or 1.
    pub(crate) fn flag(&self, path: &str) -> Reading<bool> {
        self.text(path).and_then(|text| match text.as_str() {
            "0" => Reading::Value(false),
            "1" => Reading::Value(true),
            other => Reading::Failed(format!("neither 0 nor 1: {other}")),
        })
    }

    /// Names in a directory, in natural order (`node2` before `node10`).
    pub(crate) fn names(&self, path: &str) -> Reading<Vec<String>> {
        let names = fs::read_dir(self.path(path)).map(|entries| {
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let mut names: Vec<String> = names.take(NAMES).collect();
            names.sort_by_cached_key(|name| natural(name));
            names
        });
        reading(names)
    }

    /// Names in a directory that are `prefix` and a number; none where there is no such directory.
    pub(crate) fn numbered(&self, path: &str, prefix: &str) -> Vec<String> {
        let names = self.names(path).value().cloned().unwrap_or_default();
        let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
        names.into_iter().filter(|name| name.strip_prefix(prefix).is_some_and(is_number)).collect()
    }

    /// The last part of what a link points at.
    pub(crate) fn link_name(&self, path: &str) -> Reading<String> {
        let target = fs::read_link(self.path(path));
        reading(target).and_then(|target| match target.file_name() {
            Some(name) => Reading::Value(name.to_string_lossy().into_owned()),
            None => Reading::Failed("a link to nowhere".to_owned()),
        })
    }
}

/// Absent, denied and failed, from what the system said.
pub(crate) fn reading<T>(result: io::Result<T>) -> Reading<T> {
    match result {
        Ok(value) => Reading::Value(value),
        Err(error) => match (error.kind(), error.raw_os_error()) {
            (ErrorKind::NotFound | ErrorKind::NotADirectory, _) => Reading::Absent,
            // The device or attribute is known and there is nothing behind it.
            (_, Some(libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP)) => Reading::Absent,
            (ErrorKind::PermissionDenied, _) => Reading::Denied,
            _ => Reading::Failed(error.to_string()),
        },
    }
}

/// One finite number.
pub(crate) fn number(text: &str) -> Reading<f64> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Reading::Value(number),
        _ => Reading::Failed(format!("not a number: {}", text.chars().take(40).collect::<String>())),
    }
}

/// Digits count by their value, everything else by its character.
fn natural(name: &str) -> Vec<(u64, char)> {
    let mut key = Vec::new();
    let mut digits: Option<u64> = None;
    for c in name.chars() {
        if let Some(digit) = c.to_digit(10) {
            digits = Some(digits.unwrap_or(0).saturating_mul(10).saturating_add(u64::from(digit)));
            continue;
        }
        key.extend(digits.take().map(|number| (number, '0')));
        key.push((0, c));
    }
    key.extend(digits.map(|number| (number, '0')));
    key
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_missing_file_is_absent_and_garbage_has_failed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("number"), "12\n").unwrap();
        fs::write(dir.path().join("garbage"), [0xff, 0xfe, b'x']).unwrap();
        fs::write(dir.path().join("empty"), "\n").unwrap();
        let root = Root::at(dir.path());
        assert_eq!(root.number("/number"), Reading::Value(12.0));
        assert_eq!(root.number("/nothing"), Reading::Absent);
        assert_eq!(root.number("/number/below"), Reading::Absent);
        assert_eq!(root.text("/empty"), Reading::Absent);
        assert!(matches!(root.number("/garbage"), Reading::Failed(_)));
        assert!(matches!(root.text("/"), Reading::Failed(_)));
    }

    #[test]
    fn what_we_may_not_read_is_denied() {
        assert_eq!(reading::<()>(Err(io::Error::from_raw_os_error(libc::EACCES))), Reading::Denied);
        assert_eq!(reading::<()>(Err(io::Error::from_raw_os_error(libc::EPERM))), Reading::Denied);
        assert_eq!(reading::<()>(Err(io::Error::from_raw_os_error(libc::ENOENT))), Reading::Absent);
        assert!(matches!(reading::<()>(Err(io::Error::from_raw_os_error(libc::EIO))), Reading::Failed(_)));
    }

    #[test]
    fn names_come_in_natural_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["node10", "node2", "nodes", "node"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        assert_eq!(Root::at(dir.path()).numbered("/", "node"), ["node2", "node10"]);
    }

    #[test]
    fn a_table_of_many_megabytes_is_read_line_by_line_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let text: String = (0..60_000).map(|n| format!("{n:>5} {}\n", "x".repeat(60))).collect();
        assert!(text.len() as u64 > MOST);
        fs::write(dir.path().join("table"), &text).unwrap();
        let (root, mut last) = (Root::at(dir.path()), String::new());
        let mut keep = |line: &str| {
            line[..5].clone_into(&mut last);
            true
        };
        assert_eq!(root.rows("/table", 1 << 20, &mut keep), Reading::Value(60_000));
        assert_eq!(last, "59999");
        assert_eq!(root.rows("/table", 7, |_| true), Reading::Value(7));
        assert_eq!(root.rows("/table", 7, |_| false), Reading::Value(1));
        assert_eq!(root.rows("/none", 7, |_| true), Reading::Absent);
    }

    #[test]
    fn a_link_gives_its_last_name() {
        let dir = tempfile::tempdir().unwrap();
        symlink("../../drivers/mlx5_core", dir.path().join("driver")).unwrap();
        let root = Root::at(dir.path());
        assert_eq!(root.link_name("/driver"), Reading::Value("mlx5_core".to_owned()));
        assert_eq!(root.link_name("/none"), Reading::Absent);
    }
}
