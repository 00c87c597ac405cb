//! Reading a replay file that anybody may have written: with bounded memory, and every fault told with its place.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{CHUNK, FORMAT, FRAME, HEADER, Head, MAGIC, PARTS, PortableError, TEXT, checksum};
use crate::place;

/// Permissions of an unpacked part: what is in it names machines.
const PRIVATE: u32 = 0o600;

/// Whether the file at `path` begins as a replay file does.
#[must_use]
pub fn is_portable(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == MAGIC
}

/// An open replay file of which the head was read.
#[derive(Debug)]
pub struct Portable<R> {
    path: PathBuf,
    /// What it says of itself.
    head: Head,
    from: R,
    /// Bytes read so far.
    at: u64,
    /// Length of the file.
    length: u64,
}

impl Portable<BufReader<File>> {
    /// Opens the file at `path` and reads its head.
    ///
    /// # Errors
    /// When it cannot be read, is none, is of a newer muster, is cut off, or its head is damaged.
    pub fn open(path: &Path) -> Result<Self, PortableError> {
        let refused = |source| PortableError::Io { doing: "read", path: path.to_owned(), source };
        let file = File::open(path).map_err(refused)?;
        let length = file.metadata().map_err(refused)?.len();
        Self::of(path, BufReader::with_capacity(CHUNK, file), length)
    }
}

impl<R: Read> Portable<R> {
    /// The same of `from`, which is `length` bytes long and called `path` in messages.
    ///
    /// # Errors
    /// As [`Portable::open`].
    pub fn of(path: &Path, from: R, length: u64) -> Result<Self, PortableError> {
        let nothing =
            Head { kind: super::Kind::Run, name: String::new(), writer: String::new(), written_ms: 0, parts: vec![] };
        let mut new = Self { path: path.to_owned(), head: nothing, from, at: 0, length };
        let mut magic = [0; MAGIC.len()];
        if length < HEADER as u64 {
            return Err(PortableError::Other { path: path.to_owned() });
        }
        new.take(&mut magic)?;
        if magic != MAGIC {
            return Err(PortableError::Other { path: path.to_owned() });
        }
        let mut format = [0; 4];
        new.take(&mut format)?;
        let found = u32::from_le_bytes(format);
        if found > FORMAT {
            return Err(PortableError::Newer { path: path.to_owned(), found, known: FORMAT });
        }
        if found == 0 {
            return Err(new.damaged(MAGIC.len() as u64, "its format is 0"));
        }
        let bytes = new.frame((0, 0), CHUNK)?;
        let at = HEADER as u64;
        new.head = ciborium::from_reader(&bytes[..]).map_err(|_| new.damaged(at, "the head does not decode"))?;
        new.sound().map_err(|why| new.damaged(at, why))?;
        let whole = new.whole().ok_or_else(|| new.damaged(at, "its parts are longer than any file"))?;
        if whole > new.length {
            return Err(new.cut_off(format!("{} bytes are missing", whole - new.length)));
        }
        if whole < new.length {
            return Err(new.damaged(whole, "something follows the last part"));
        }
        Ok(new)
    }

    /// What it says of itself.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// Writes every part into the folder `dir` as a file of its name.
    ///
    /// # Errors
    /// When bytes are not what was written, or a file cannot be made; what was unpacked before stays.
    pub fn unpack(mut self, dir: &Path) -> Result<Head, PortableError> {
        for (part, number) in self.head.parts.clone().into_iter().zip(1..) {
            let path = dir.join(&part.name);
            let refused = |source| PortableError::Io { doing: "unpack into", path: path.clone(), source };
            let mut to = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&path).map_err(refused)?;
            self.part((number, part.bytes), &mut |bytes| to.write_all(bytes).map_err(refused))?;
        }
        Ok(self.head)
    }

    /// Reads the frames of a part, one after another.
    fn part(
        &mut self,
        (number, bytes): (u32, u64),
        each: &mut dyn FnMut(&[u8]) -> Result<(), PortableError>,
    ) -> Result<(), PortableError> {
        let (mut left, mut nr) = (bytes, 0);
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let begins = self.at;
            let frame = self.frame((number, nr), room)?;
            if frame.len() != room {
                return Err(self.damaged(begins, "a frame is shorter than its part"));
            }
            each(&frame)?;
            (left, nr) = (left - room as u64, nr + 1);
        }
        Ok(())
    }

    /// The next frame, which has `most` bytes at most.
    fn frame(&mut self, place: (u32, u64), most: usize) -> Result<Vec<u8>, PortableError> {
        let begins = self.at;
        let mut head = [0; FRAME];
        self.take(&mut head)?;
        let [length, crc] = [0, 4].map(|at| head[at..at + 4].try_into().map_or(0, u32::from_le_bytes));
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > most {
            return Err(self.damaged(begins, "a frame is longer than its part"));
        }
        let mut bytes = vec![0; length];
        self.take(&mut bytes)?;
        if checksum(place, &bytes) != crc {
            return Err(self.damaged(begins, &format!("the checksum of the next {length} bytes is wrong")));
        }
        Ok(bytes)
    }

    fn take(&mut self, bytes: &mut [u8]) -> Result<(), PortableError> {
        let wanted = bytes.len() as u64;
        if self.length - self.at < wanted {
            return Err(self.cut_off("a frame has no end".to_owned()));
        }
        self.from.read_exact(bytes).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => self.cut_off("it became shorter while it was read".to_owned()),
            _ => PortableError::Io { doing: "read", path: self.path.clone(), source },
        })?;
        self.at += wanted;
        Ok(())
    }

    /// Whether the head is one that muster writes; what is wrong with it otherwise.
    fn sound(&self) -> Result<(), &'static str> {
        let Head { name, writer, parts, .. } = &self.head;
        if name.len() > TEXT
            || writer.len() > TEXT
            || [name, writer].iter().any(|text| text.chars().any(char::is_control))
        {
            return Err("the head names what it holds by no name");
        }
        let names: BTreeSet<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        if parts.is_empty() || parts.len() > PARTS || names.len() != parts.len() {
            return Err("the head lists too few or too many parts");
        }
        if names.iter().any(|name| place::run_id(name).is_err()) {
            return Err("a part has a name that may name no file");
        }
        Ok(())
    }

    /// Length that the file has by its head.
    fn whole(&self) -> Option<u64> {
        self.head.parts.iter().try_fold(self.at, |whole, part| {
            let frames = part.bytes.div_ceil(CHUNK as u64);
            whole.checked_add(part.bytes)?.checked_add(frames.checked_mul(FRAME as u64)?)
        })
    }

    fn damaged(&self, at: u64, why: &str) -> PortableError {
        PortableError::Damaged { path: self.path.clone(), at, why: why.to_owned() }
    }

    fn cut_off(&self, why: String) -> PortableError {
        PortableError::CutOff { path: self.path.clone(), at: self.length, why }
    }
}
