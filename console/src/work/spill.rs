//! Where do values wait whose work has not finished? What is too much for memory lies in a file without a name beside the
//! database, frame by frame as it came; it goes with the console, however that ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use muster_wire::{Decoder, Frame, MAGIC, encode};
use rustix::fs::{FallocateFlags, fallocate};

/// One file for all nodes of a run; made when first needed.
#[derive(Clone, Debug)]
pub(super) struct Spill(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    folder: PathBuf,
    file: Option<File>,
    end: u64,
    /// Frames in it that somebody still wants.
    wanted: usize,
}

/// A frame in the file; its room is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Part {
    spill: Spill,
    at: u64,
    bytes: usize,
}

impl Spill {
    /// Below `folder`.
    pub fn new(folder: &Path) -> Self {
        Self(Arc::new(Mutex::new(Kept { folder: folder.to_owned(), file: None, end: 0, wanted: 0 })))
    }

    /// Puts `frame` aside.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn put(&self, frame: &Frame) -> io::Result<Part> {
        let bytes = encode(frame).map_err(io::Error::other)?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match kept.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&kept.folder)?,
        };
        let written = file.write_all_at(&bytes, kept.end);
        kept.file = Some(file);
        written?;
        let part = Part { spill: self.clone(), at: kept.end, bytes: bytes.len() };
        kept.end += bytes.len() as u64;
        kept.wanted += 1;
        Ok(part)
    }
}

impl Part {
    /// The frame.
    ///
    /// # Errors
    /// When the disk does not give it back as it was.
    pub fn frame(&self) -> io::Result<Frame> {
        let mut bytes = vec![0; self.bytes];
        let kept = self.spill.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.file.as_ref().ok_or(io::ErrorKind::NotFound)?.read_exact_at(&mut bytes, self.at)?;
        drop(kept);
        let mut decoder = Decoder::new();
        decoder.push(&MAGIC);
        decoder.push(&bytes);
        decoder.frame().map_err(io::Error::other)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut kept = self.spill.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.wanted -= 1;
        let last = kept.wanted == 0;
        if let Some(file) = &kept.file {
            // Where a file system cannot give back the middle of a file, the end of the run does.
            let _ = match last {
                true => file.set_len(0),
                false => {
                    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                    fallocate(file, hole, self.at, self.bytes as u64).map_err(io::Error::from)
                }
            };
        }
        if last {
            kept.end = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use muster_wire::{Finished, Outcome};

    use super::*;

    fn frame(name: &str) -> Frame {
        Frame::Finished(Finished { name: name.repeat(20), outcome: Outcome::Done, elapsed_ns: 1 })
    }

    #[test]
    fn frames_come_back_as_they_were_and_their_room_is_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let spill = Spill::new(dir.path());
        let [first, second] = ["a", "b"].map(|name| spill.put(&frame(name)).unwrap());
        assert_eq!((first.frame().unwrap(), second.frame().unwrap()), (frame("a"), frame("b")));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "it has no name");
        drop(first);
        assert_eq!(second.frame().unwrap(), frame("b"));
        drop(second);
        let length = || spill.0.lock().unwrap().file.as_ref().unwrap().metadata().unwrap().size();
        assert_eq!(length(), 0);
        let third = spill.put(&frame("c")).unwrap();
        assert_eq!((third.at, third.frame().unwrap()), (0, frame("c")));
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error_and_not_a_crash() {
        let dir = tempfile::tempdir().unwrap();
        let spill = Spill::new(&dir.path().join("gone"));
        assert!(spill.put(&frame("a")).is_err());
    }
}
