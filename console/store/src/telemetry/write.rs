//! Writing a recording: looks gather in memory, and go out as a chunk with one sync.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::chunk::{Chunk, rounded};
use super::{HEADER, header};
use crate::StoreError;
use crate::error::failed;
use crate::frame::frame;
use crate::log::sync_dir;
use crate::place;

/// Longest time that a look is only in memory.
const PERIOD: Duration = Duration::from_secs(30);
/// Values at which a chunk is full before that.
const FULL: usize = 4 << 20;

/// A recording that is being written.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: fs::File,
    /// Bytes that are durable.
    bytes: u64,
    /// Most bytes that the file may have.
    most: u64,
    chunk: Chunk,
    values: usize,
    metrics: HashMap<&'static str, u32>,
    since: Instant,
}

impl Recorder {
    /// Begins recording `id` of these nodes in the database at `dir`, in at most `most` bytes.
    ///
    /// # Errors
    /// When the file is there already or cannot be made.
    pub fn create(dir: &Path, id: &str, nodes: Vec<String>, most: u64) -> Result<Self, StoreError> {
        place::claim(dir)?;
        let folder = place::telemetry(dir);
        fs::create_dir_all(&folder).map_err(failed("create", &folder))?;
        let path = place::recording(dir, id);
        let make = || -> io::Result<fs::File> {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            file.write_all(&header())?;
            file.sync_all()?;
            sync_dir(&folder)?;
            Ok(file)
        };
        let file = make().map_err(failed("create", &path))?;
        let chunk = Chunk { nodes, ..Chunk::default() };
        let (metrics, since) = (HashMap::new(), Instant::now());
        Ok(Self { path, file, bytes: HEADER as u64, most, chunk, values: 0, metrics, since })
    }

    /// Where it is written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes written so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes one look at the `node`-th node, `time_s` in epoch seconds; writes a chunk when it is time. False where the recording is full, and
    /// nothing was taken.
    ///
    /// # Errors
    /// When a chunk cannot be written; what was acknowledged before is kept.
    pub fn push(&mut self, node: u32, time_s: f64, values: &[(&'static str, f64)]) -> Result<bool, StoreError> {
        if self.bytes >= self.most || node as usize >= self.chunk.nodes.len() {
            return Ok(false);
        }
        let looks = self.chunk.looks.entry(node).or_default();
        let known = looks.times_ms.len();
        looks.times_ms.push((time_s * 1e3).round() as i64);
        for (name, value) in values {
            let next = self.metrics.len() as u32;
            let metric = *self.metrics.entry(*name).or_insert(next);
            if metric == next {
                self.chunk.metrics.push((*name).to_owned());
            }
            let column = looks.columns.entry(metric).or_default();
            column.resize(known, f32::NAN);
            column.push(rounded(*value));
        }
        looks.columns.values_mut().for_each(|column| column.resize(known + 1, f32::NAN));
        self.values += looks.columns.len();
        if self.since.elapsed() >= PERIOD || self.values >= FULL {
            self.commit()?;
        }
        Ok(true)
    }

    /// Writes what is only in memory, and syncs it.
    ///
    /// # Errors
    /// When it cannot be written; what was acknowledged before is kept.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        let empty = Chunk { nodes: self.chunk.nodes.clone(), metrics: self.chunk.metrics.clone(), ..Chunk::default() };
        let chunk = std::mem::replace(&mut self.chunk, empty);
        (self.values, self.since) = (0, Instant::now());
        if chunk.looks.is_empty() {
            return Ok(());
        }
        let write = || -> io::Result<u64> {
            let mut bytes = Vec::new();
            frame(&chunk.pack().map_err(io::Error::other)?, &mut bytes)?;
            (&self.file).write_all(&bytes)?;
            self.file.sync_data()?;
            Ok(bytes.len() as u64)
        };
        match write() {
            Ok(written) => {
                self.bytes += written;
                Ok(())
            }
            Err(error) => {
                // What was half written is cut off, so that the next chunk is found.
                let _ = self.file.set_len(self.bytes).and_then(|()| {
                    use std::io::Seek;
                    self.file.seek(io::SeekFrom::Start(self.bytes)).map(drop)
                });
                Err(failed("write", &self.path)(error))
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Who wants to know whether it worked commits himself.
        let _ = self.commit();
    }
}
