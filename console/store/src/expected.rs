//! Settles which log files there must be, so that one that is gone, cut short or replaced is told to whoever looks.
//!
//! The file `files` has a line per log file: its length, the checksum of that much of it (`-` for run files, whose frames have
//! their own) and its name. The last line is the checksum of the others. It is written after the log files, so it may lag and
//! never leads.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::failed;
use crate::frame::Damage;
use crate::{StoreError, place};

const CHUNK: usize = 1 << 20;

/// Log files by their path within the directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected(BTreeMap<String, Mark>);

/// How far a file was written, and the checksum of that much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    length: u64,
    crc: Option<u32>,
}

impl Expected {
    /// What is expected in `dir`: nothing where there is no list yet. `Err` says what is wrong with the list itself.
    pub(crate) fn load(dir: &Path) -> Result<Self, Damage> {
        let bytes = match fs::read(place::files(dir)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            other => other.map_err(|e| Damage::of_file(e.to_string()))?,
        };
        let why = "its checksum is wrong: files that are gone may not be told (`muster db rebuild` writes it anew)";
        parse(&bytes).ok_or_else(|| Damage::of_file(why.to_owned()))
    }

    /// Replaces the list in `dir`. One that could not be written lags, which only makes it less watchful.
    pub(crate) fn save(&self, dir: &Path) {
        let line = |(name, mark): (&String, &Mark)| {
            let crc = mark.crc.map_or_else(|| "-".to_owned(), |crc| format!("{crc:08x}"));
            format!("{} {crc} {name}\n", mark.length)
        };
        let text: String = self.0.iter().map(line).collect();
        let (path, whole) = (place::files(dir), format!("{text}{}", last_line(&text)));
        let new = path.with_extension("new");
        let _ = fs::write(&new, whole).and_then(|()| fs::rename(&new, &path));
    }

    /// Takes note of what was added to the log file at `path`. A file that became shorter stays known as it was.
    pub(crate) fn note(&mut self, dir: &Path, path: &Path) {
        let Some(name) = path.strip_prefix(dir).ok().and_then(Path::to_str) else { return };
        let length = fs::metadata(path).map_or(0, |meta| meta.len());
        let known = self.0.get(name).copied().unwrap_or(Mark { length: 0, crc: Some(0) });
        if length <= known.length {
            return;
        }
        let crc = if path.starts_with(place::runs(dir)) { Ok(None) } else { checksum(path, known, length).map(Some) };
        if let Ok(crc) = crc {
            self.0.insert(name.to_owned(), Mark { length, crc });
        }
    }

    /// Takes note of every log file in `dir`.
    pub(crate) fn note_all(&mut self, dir: &Path) -> Result<(), StoreError> {
        place::logs(dir)?.iter().for_each(|path| self.note(dir, path));
        Ok(())
    }

    /// Takes the log files that are there for what they are; those that are gone stay expected, unless they are to be `forgotten`.
    pub(crate) fn renew(&mut self, dir: &Path, forgotten: bool) -> Result<(), StoreError> {
        self.0.retain(|name, _| !forgotten && !dir.join(name).exists());
        self.note_all(dir)
    }

    /// Files that are not what they were, and what of them is missing.
    pub(crate) fn missed(&self, dir: &Path) -> Result<Vec<(PathBuf, Damage)>, StoreError> {
        let mut found = Vec::new();
        for (name, mark) in &self.0 {
            let path = dir.join(name);
            let damage = missing(&path, *mark).map_err(failed("read", &path))?;
            found.extend(damage.map(|damage| (path, damage)));
        }
        Ok(found)
    }
}

fn missing(path: &Path, mark: Mark) -> io::Result<Option<Damage>> {
    let now = match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(Some(Damage::of_file(format!("the file is gone: {} bytes are missing", mark.length))));
        }
        other => other?.len(),
    };
    if now < mark.length {
        let why = format!("the file was longer: its last {} bytes are missing", mark.length - now);
        return Ok(Some(Damage::of_file(why)));
    }
    let Some(crc) = mark.crc else { return Ok(None) };
    let same = checksum(path, Mark { length: 0, crc: Some(0) }, mark.length)? == crc;
    Ok((!same).then(|| Damage::of_file("its content is not what was written".to_owned())))
}

/// The checksum of the first `length` bytes, of which those of `known` need not be read again.
fn checksum(path: &Path, known: Mark, length: u64) -> io::Result<u32> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(known.length))?;
    let mut crc = crc32fast::Hasher::new_with_initial(known.crc.unwrap_or(0));
    let mut reader = BufReader::with_capacity(CHUNK, file.take(length - known.length));
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(crc.finalize());
        }
        crc.update(bytes);
        let read = bytes.len();
        reader.consume(read);
    }
}

fn last_line(text: &str) -> String {
    format!("{:08x}\n", crc32fast::hash(text.as_bytes()))
}

fn parse(bytes: &[u8]) -> Option<Expected> {
    let whole = std::str::from_utf8(bytes).ok()?;
    let (text, last) = whole.split_at_checked(whole.len().checked_sub(9)?)?;
    if last != last_line(text) {
        return None;
    }
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (length, crc, name) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
        let crc = if crc == "-" { None } else { Some(u32::from_str_radix(crc, 16).ok()?) };
        Some((name.to_owned(), Mark { length, crc }))
    };
    text.lines().map(line).collect::<Option<_>>().map(Expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_shorter_or_replaced_is_missed_and_one_that_grew_is_not() {
        let home = tempfile::tempdir().unwrap();
        let (dir, path) = (home.path(), place::incidents_file(home.path()));
        fs::write(&path, b"first").unwrap();
        let mut expected = Expected::default();
        expected.note_all(dir).unwrap();
        assert_eq!(expected.0.len(), 1);
        fs::write(&path, b"first and second").unwrap();
        assert_eq!(expected.missed(dir).unwrap(), []);
        expected.note(dir, &path);
        expected.save(dir);
        let mut expected = Expected::load(dir).unwrap();
        assert_eq!(expected.missed(dir).unwrap(), []);
        let said = |expected: &Expected| expected.missed(dir).unwrap()[0].1.to_string();
        fs::write(&path, b"first and sixth!").unwrap();
        assert!(said(&expected).contains("not what was written"));
        fs::write(&path, b"first").unwrap();
        assert!(said(&expected).contains("last 11 bytes are missing"), "{}", said(&expected));
        fs::remove_file(&path).unwrap();
        assert!(said(&expected).contains("gone"));
        expected.renew(dir, false).unwrap();
        assert!(said(&expected).contains("gone"), "what is gone stays told");
        expected.renew(dir, true).unwrap();
        assert_eq!(expected, Expected::default());
    }

    #[test]
    fn no_list_expects_nothing_and_one_that_cannot_be_read_is_damage() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Expected::load(home.path()).unwrap(), Expected::default());
        fs::create_dir(place::files(home.path())).unwrap();
        assert!(Expected::load(home.path()).is_err(), "a folder is no list");
    }

    #[test]
    fn a_list_with_a_flipped_bit_is_no_list() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(place::incidents_file(dir.path()), b"x").unwrap();
        let mut expected = Expected::default();
        expected.note_all(dir.path()).unwrap();
        expected.save(dir.path());
        let whole = fs::read(place::files(dir.path())).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&bytes), None, "bit {bit}");
        }
    }

    #[test]
    fn a_run_file_is_known_by_its_length_and_others_by_their_content() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path();
        fs::create_dir(place::runs(dir)).unwrap();
        fs::write(place::run_file(dir, "r1"), b"frames").unwrap();
        fs::write(place::models_file(dir), b"models").unwrap();
        let mut expected = Expected::default();
        expected.note_all(dir).unwrap();
        expected.save(dir);
        let (text, crc) = (fs::read_to_string(place::files(dir)).unwrap(), crc32fast::hash(b"models"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], [format!("6 {crc:08x} models.log"), "6 - runs/r1.log".to_owned()]);
        assert_eq!((lines.len(), Expected::load(dir).unwrap()), (3, expected));
        fs::write(place::run_file(dir, "r1"), b"rotten").unwrap();
        let expected = Expected::load(dir).unwrap();
        assert_eq!(expected.missed(dir).unwrap(), [], "its frames have checksums of their own");
        fs::write(place::run_file(dir, "r1"), b"short").unwrap();
        let missed = expected.missed(dir).unwrap();
        assert_eq!(missed.len(), 1);
        assert_eq!(missed[0].1.to_string(), "the file was longer: its last 1 bytes are missing");
    }

    #[test]
    fn a_file_that_became_shorter_stays_known_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        let (dir, path) = (home.path(), place::incidents_file(home.path()));
        let mut expected = Expected::default();
        for bytes in [&b"long enough"[..], b"short", b"as long too"] {
            fs::write(&path, bytes).unwrap();
            expected.note(dir, &path);
        }
        assert!(expected.missed(dir).unwrap()[0].1.to_string().contains("not what was written"));
        fs::write(&path, b"long enough").unwrap();
        assert_eq!(expected.missed(dir).unwrap(), []);
    }
}
