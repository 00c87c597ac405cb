//! Settles which layouts of the directory this program understands, and how an older one becomes the newest.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::StoreError;
use crate::error::failed;
use crate::log::sync_dir;

const FILE: &str = "version";
/// Layout this program writes.
pub(crate) const SCHEMA: u32 = 1;

/// Brings the directory from one layout to the next. It must be repeatable: a crash may fall between it and the
/// new version number.
pub(crate) type Step = fn(&Path) -> io::Result<()>;

/// `STEPS[n]` leads from layout `n + 1` to `n + 2`. Layout 1 is the first, so there is none yet.
pub(crate) const STEPS: &[Step] = &[];

/// The layout of `dir`, `None` for a new one. A newer one is refused.
pub(crate) fn read(dir: &Path, known: u32) -> Result<Option<u32>, StoreError> {
    let path = dir.join(FILE);
    let text = match fs::read(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => String::from_utf8_lossy(&other.map_err(failed("read", &path))?).into_owned(),
    };
    match number(text.trim()) {
        Some(found) if found > known => Err(StoreError::Newer { path, found, known }),
        Some(found) if found > 0 => Ok(Some(found)),
        _ => {
            let why = format!("{:?} is no version number (`muster db rebuild` writes it anew)", clip(&text));
            Err(StoreError::Damaged { path, why })
        }
    }
}

/// The number in `text`: behind it stands its checksum, so that a rotten byte is not taken for a newer layout. Layout 1 was
/// once written without.
fn number(text: &str) -> Option<u32> {
    match text.split_once(' ') {
        Some((number, crc)) if crc == checksum(number) => number.parse().ok(),
        None if text == "1" => Some(1),
        _ => None,
    }
}

fn checksum(number: &str) -> String {
    format!("{:08x}", crc32fast::hash(number.as_bytes()))
}

/// Writes a version that cannot be read anew; whether it had to. Only layout 1 was ever written without a checksum, and a later one
/// has log files of a later format, which are refused by themselves.
pub(crate) fn heal(dir: &Path) -> Result<bool, StoreError> {
    match read(dir, SCHEMA) {
        Err(StoreError::Damaged { .. }) => write(dir, SCHEMA).map(|()| true),
        other => other.map(|_| false),
    }
}

fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Brings `dir` to the layout behind the last of `steps`. Returns what was done, in words.
pub(crate) fn bring_up(dir: &Path, steps: &[Step]) -> Result<Option<String>, StoreError> {
    let newest = u32::try_from(steps.len()).map_or(u32::MAX, |n| n + 1);
    let Some(found) = read(dir, newest)? else {
        write(dir, newest)?;
        return Ok(None);
    };
    for (from, step) in (1..newest).zip(steps).skip(found as usize - 1) {
        step(dir).map_err(failed("migrate", dir))?;
        write(dir, from + 1)?;
    }
    Ok((found < newest).then(|| format!("database migrated from layout {found} to {newest}")))
}

fn write(dir: &Path, version: u32) -> Result<(), StoreError> {
    let (path, new) = (dir.join(FILE), dir.join("version.new"));
    let put = || {
        let mut file = fs::File::create(&new)?;
        writeln!(file, "{version} {}", checksum(&version.to_string()))?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        sync_dir(dir)
    };
    put().map_err(failed("write", &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(dir: &Path, word: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(dir.join("done"))?;
        writeln!(file, "{word}")
    }

    #[test]
    fn the_steps_and_the_newest_layout_agree() {
        assert_eq!(STEPS.len() + 1, SCHEMA as usize);
    }

    #[test]
    fn an_older_layout_takes_the_missing_steps_in_order_and_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let steps: [Step; 3] = [|d| add(d, "one"), |d| add(d, "two"), |d| add(d, "three")];
        write(dir.path(), 2).unwrap();
        let said = bring_up(dir.path(), &steps).unwrap();
        assert_eq!(said.as_deref(), Some("database migrated from layout 2 to 4"));
        assert_eq!(bring_up(dir.path(), &steps).unwrap(), None);
        assert_eq!(fs::read_to_string(dir.path().join("done")).unwrap(), "two\nthree\n");
        assert_eq!(read(dir.path(), 4).unwrap(), Some(4));
    }

    #[test]
    fn a_step_that_fails_leaves_the_number_of_the_last_good_one() {
        let dir = tempfile::tempdir().unwrap();
        let steps: [Step; 2] = [|d| add(d, "one"), |_| Err(io::Error::other("no"))];
        fs::write(dir.path().join(FILE), "1").unwrap();
        assert!(bring_up(dir.path(), &steps).unwrap_err().to_string().contains("migrate"));
        assert_eq!(read(dir.path(), 3).unwrap(), Some(2));
    }

    #[test]
    fn a_newer_layout_and_nonsense_are_refused_in_words() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), 7).unwrap();
        let said = bring_up(dir.path(), STEPS).unwrap_err().to_string();
        assert!(said.contains("newer muster") && said.contains("format 7"), "{said}");
        for rotten in ["seven", "", "7", "0", "1 00000000"] {
            fs::write(dir.path().join(FILE), rotten).unwrap();
            let said = bring_up(dir.path(), STEPS).unwrap_err().to_string();
            let expected = format!("is damaged: {rotten:?} is no version number (`muster db rebuild` writes it anew)");
            assert!(said.ends_with(&expected), "{said}");
            assert!(heal(dir.path()).unwrap() && !heal(dir.path()).unwrap());
            assert_eq!(bring_up(dir.path(), STEPS).unwrap(), None);
        }
    }
}
