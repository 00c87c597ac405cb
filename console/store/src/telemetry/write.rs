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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use muster_skip::{Lacks, skip};

    use super::super::replay;
    use super::*;

    /// One look at each of `nodes`, as a chunk.
    fn look(recorder: &mut Recorder, at: u32) -> Result<(), StoreError> {
        // Values that do not pack well.
        let values: Vec<f64> = (0..40).map(|n| f64::from((at * 7_919 + n * 104_729) % 65_521) * 1.37).collect();
        let named: Vec<(&'static str, f64)> = NAMES.iter().zip(values).map(|(name, value)| (*name, value)).collect();
        recorder.push(0, 1e9 + f64::from(at), &named)?;
        recorder.commit()
    }

    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    fn told(path: &Path) -> (u64, usize) {
        let mut values = 0;
        let damages = replay(path, &mut |_| values += 1).unwrap();
        (values, damages.len())
    }

    #[test]
    fn who_reads_meanwhile_sees_all_that_was_acknowledged_and_nothing_twice() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(dir.path(), "a", vec!["n1".to_owned()], u64::MAX).unwrap();
        let path = recorder.path().to_owned();
        let (acknowledged, over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let mut before = 0;
                while !over.load(Ordering::Acquire) {
                    let known = acknowledged.load(Ordering::Acquire);
                    let (values, damages) = told(&path);
                    assert!(values >= known.max(before) && damages <= 1, "{values} of {known}, {damages} damaged");
                    before = values;
                }
            });
            for at in 0..60 {
                look(&mut recorder, at).unwrap();
                acknowledged.fetch_add(8, Ordering::Release);
            }
            over.store(true, Ordering::Release);
        });
        assert_eq!(told(&path), (60 * 8, 0));
    }

    #[test]
    fn a_full_disk_costs_the_chunk_that_did_not_fit_and_nothing_before_or_after() {
        let test = "a_full_disk_costs_the_chunk_that_did_not_fit_and_nothing_before_or_after";
        let dir = tempfile::tempdir().unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
            .arg(dir.path())
            .output();
        if !mounted.is_ok_and(|done| done.status.success()) {
            return skip(test, Lacks::Root, "for a disk that is soon full");
        }
        let mut recorder = Recorder::create(dir.path(), "a", vec!["n1".to_owned()], u64::MAX).unwrap();
        let path = recorder.path().to_owned();
        let mut kept = 0;
        look(&mut recorder, 0).unwrap();
        kept += 1;
        // Somebody else takes all that is left but a part of a page.
        let filler = dir.path().join("filler");
        let mut other = fs::File::create(&filler).unwrap();
        while other.write_all(&[1; 4_096]).is_ok() {}
        let mut failed = 0;
        for at in 1..200 {
            match look(&mut recorder, at) {
                Ok(()) => kept += 1,
                Err(why) => {
                    assert!(why.to_string().contains("No space left"), "{why}");
                    failed += 1;
                    break;
                }
            }
        }
        assert_eq!((failed, told(&path)), (1, (kept * 8, 0)));
        drop(other);
        fs::remove_file(&filler).unwrap();
        look(&mut recorder, 999).unwrap();
        let found = told(&path);
        drop(recorder);
        let _ = std::process::Command::new("umount").arg(dir.path()).output();
        assert_eq!(found, ((kept + 1) * 8, 0));
    }

    /// A recorder of two nodes, which packs nothing by itself for half a minute.
    fn recorder(dir: &Path, most: u64) -> Recorder {
        Recorder::create(dir, "r", vec!["n1".to_owned(), "n2".to_owned()], most).unwrap()
    }

    #[test]
    fn a_chunk_goes_out_once_it_holds_as_many_values_as_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = recorder(dir.path(), u64::MAX);
        recorder.values = FULL - 4;
        let mut push = |at: f64| {
            recorder.push(0, at, &[("a", 1.0), ("b", 2.0)]).unwrap();
            (recorder.bytes() > HEADER as u64, recorder.values)
        };
        assert_eq!(push(1.0), (false, FULL - 2));
        assert_eq!(push(2.0), (true, 0), "four million values are many enough");
        assert_eq!(told(&place::recording(dir.path(), "r")), (4, 0));
        assert_eq!(FULL, 4_194_304);
    }

    #[test]
    fn a_chunk_goes_out_half_a_minute_after_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = recorder(dir.path(), u64::MAX);
        let past = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        for (seconds, goes) in [(5, false), (31, true), (5, false)] {
            recorder.since = past(seconds);
            let before = recorder.bytes();
            recorder.push(0, 1.0, &[("a", 1.0)]).unwrap();
            assert_eq!(recorder.bytes() > before, goes, "{seconds} s");
        }
    }

    #[test]
    fn bytes_are_those_of_the_file_and_a_recorder_that_is_dropped_has_written_all() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = recorder(dir.path(), u64::MAX);
        let path = recorder.path().to_owned();
        assert_eq!(path, place::recording(dir.path(), "r"));
        for at in 0..3 {
            look(&mut recorder, at).unwrap();
            assert_eq!(recorder.bytes(), fs::metadata(&path).unwrap().len());
        }
        recorder.push(1, 9.0, &[("a", 1.0)]).unwrap();
        let before = recorder.bytes();
        drop(recorder);
        assert!(fs::metadata(&path).unwrap().len() > before);
        assert_eq!(told(&path), (3 * 8 + 1, 0));
    }

    #[test]
    fn nothing_is_taken_of_a_node_that_is_not_there_nor_once_the_file_is_full() {
        let dir = tempfile::tempdir().unwrap();
        let mut full = recorder(dir.path(), HEADER as u64);
        assert!(!full.push(0, 1.0, &[("a", 1.0)]).unwrap(), "full from the start");
        drop(full);
        assert!(Recorder::create(dir.path(), "r", Vec::new(), 9).is_err(), "a recording is not written over");
        let other = tempfile::tempdir().unwrap();
        let mut recorder = recorder(other.path(), HEADER as u64 + 1);
        assert_eq!(
            (0..4).map(|node| recorder.push(node, 1.0, &[("a", 1.0)]).unwrap()).collect::<Vec<_>>(),
            [true, true, false, false]
        );
        recorder.commit().unwrap();
        assert!(!recorder.push(0, 1.0, &[("a", 1.0)]).unwrap());
        assert_eq!(told(recorder.path()), (2, 0));
    }

    #[test]
    fn a_metric_that_comes_and_goes_has_its_values_at_their_times() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = recorder(dir.path(), u64::MAX);
        let looks: [(f64, &[(&'static str, f64)]); 5] = [
            (1.0004, &[("a", 10.0)]),
            (2.0006, &[("b", 20.0), ("a", 11.0)]),
            (3.0, &[]),
            (4.0, &[("b", 21.0)]),
            (5.0, &[("a", 12.0), ("c", 30.0)]),
        ];
        looks.iter().for_each(|(at, values)| assert!(recorder.push(0, *at, values).unwrap()));
        recorder.commit().unwrap();
        let mut found = Vec::new();
        replay(recorder.path(), &mut |one| found.push((one.metric.to_owned(), one.time_s, one.value))).unwrap();
        let expected = [
            ("a", 1.0, 10.0),
            ("a", 2.001, 11.0),
            ("a", 5.0, 12.0),
            ("b", 2.001, 20.0),
            ("b", 4.0, 21.0),
            ("c", 5.0, 30.0),
        ];
        assert_eq!(found, expected.map(|(metric, time_s, value)| (metric.to_owned(), time_s, value)));
    }
}
