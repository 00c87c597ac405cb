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
    /// Parts of it that somebody still wants.
    wanted: usize,
}

/// Some frames in the file; their room is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Part {
    spill: Spill,
    at: u64,
    bytes: usize,
    /// Frames.
    count: usize,
}

impl Spill {
    /// Below `folder`.
    pub fn new(folder: &Path) -> Self {
        Self(Arc::new(Mutex::new(Kept { folder: folder.to_owned(), file: None, end: 0, wanted: 0 })))
    }

    /// Puts `frames` aside; nothing where there are none.
    ///
    /// # Errors
    /// When the disk does not take them.
    pub fn put(&self, frames: impl IntoIterator<Item = Frame>) -> io::Result<Option<Part>> {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for frame in frames {
            bytes.extend(encode(&frame).map_err(io::Error::other)?);
            count += 1;
        }
        if count == 0 {
            return Ok(None);
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match kept.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&kept.folder)?,
        };
        let written = file.write_all_at(&bytes, kept.end);
        kept.file = Some(file);
        written?;
        let part = Part { spill: self.clone(), at: kept.end, bytes: bytes.len(), count };
        kept.end += bytes.len() as u64;
        kept.wanted += 1;
        Ok(Some(part))
    }
}

impl Part {
    /// The frames, in their order.
    ///
    /// # Errors
    /// When the disk does not give them back as they were.
    pub fn frames(&self) -> io::Result<Vec<Frame>> {
        let mut bytes = vec![0; self.bytes];
        let kept = self.spill.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.file.as_ref().ok_or(io::ErrorKind::NotFound)?.read_exact_at(&mut bytes, self.at)?;
        drop(kept);
        let mut decoder = Decoder::new();
        decoder.push(&MAGIC);
        decoder.push(&bytes);
        let mut frames = Vec::new();
        while let Some(frame) = decoder.frame().map_err(io::Error::other)? {
            frames.push(frame);
        }
        if frames.len() == self.count { Ok(frames) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
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
        let put = |names: &[&str]| spill.put(names.iter().map(|name| frame(name))).unwrap();
        let [first, second] = [&["a"][..], &["b", "c"]].map(|names| put(names).unwrap());
        assert_eq!(
            (first.frames().unwrap(), second.frames().unwrap()),
            (vec![frame("a")], vec![frame("b"), frame("c")])
        );
        assert!(put(&[]).is_none());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "it has no name");
        drop(first);
        assert_eq!(second.frames().unwrap().len(), 2);
        drop(second);
        let length = || spill.0.lock().unwrap().file.as_ref().unwrap().metadata().unwrap().size();
        assert_eq!(length(), 0);
        let third = put(&["d"]).unwrap();
        assert_eq!((third.at, third.frames().unwrap()), (0, vec![frame("d")]));
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error_and_not_a_crash() {
        let dir = tempfile::tempdir().unwrap();
        let spill = Spill::new(&dir.path().join("gone"));
        assert!(spill.put([frame("a")]).is_err());
    }
}
