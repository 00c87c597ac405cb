//! Reading a recording back, also one that is damaged or still being written.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::chunk::Chunk;
use super::{FORMAT, HEADER, MAGIC};
use crate::StoreError;
use crate::error::failed;
use crate::frame::{Damage, undecoded, walk};

/// One value of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told<'a> {
    /// Whose.
    pub node: &'a str,
    /// Which.
    pub metric: &'a str,
    /// When, epoch seconds.
    pub time_s: f64,
    /// In the unit of recordings.
    pub value: f32,
}

/// Whether the file at `path` begins as a recording does.
#[must_use]
pub fn is_recording(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == MAGIC
}

/// Gives every value of the recording at `path` to `each`, chunk by chunk, and what is damaged.
///
/// # Errors
/// When it cannot be read or is no recording; [`StoreError::Newer`] when a newer muster wrote it.
pub fn replay(path: &Path, each: &mut dyn FnMut(Told<'_>)) -> Result<Vec<Damage>, StoreError> {
    let mut file = File::open(path).map_err(failed("read", path))?;
    let mut start = [0; HEADER];
    file.read_exact(&mut start).map_err(failed("read", path))?;
    let (magic, format) = start.split_at(MAGIC.len());
    let format = format.try_into().map_or(0, u32::from_le_bytes);
    if magic != MAGIC {
        return Err(failed("read", path)(io::Error::other("it is no recording of telemetry")));
    }
    if format > FORMAT {
        return Err(StoreError::Newer { path: path.to_owned(), found: format, known: FORMAT });
    }
    let end = file.metadata().map_err(failed("read", path))?.len();
    let mut damages = Vec::new();
    let walked = walk(&file, (HEADER as u64, end), &mut |found| match found {
        Ok((span, payload)) => match Chunk::unpack(payload) {
            Ok(chunk) => tell(&chunk, each),
            Err(why) => damages.push(undecoded(span, why)),
        },
        Err(damage) => damages.push(damage),
    });
    walked.map_err(failed("read", path))?;
    Ok(damages)
}

fn tell(chunk: &Chunk, each: &mut dyn FnMut(Told<'_>)) {
    for (node, looks) in &chunk.looks {
        for (metric, values) in &looks.columns {
            let (node, metric) = (&chunk.nodes[*node as usize], &chunk.metrics[*metric as usize]);
            for (&time_ms, &value) in looks.times_ms.iter().zip(values).filter(|(_, value)| !value.is_nan()) {
                each(Told { node, metric, time_s: time_ms as f64 / 1e3, value });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Recorder, thin_out};
    use super::*;

    fn record(dir: &Path, id: &str, looks: u32, most: u64) -> (std::path::PathBuf, u32) {
        let nodes = vec!["n1".to_owned(), "n2".to_owned()];
        let mut recorder = Recorder::create(dir, id, nodes, most).unwrap();
        let mut taken = 0;
        for look in 0..looks {
            for node in 0..2 {
                let mut values = vec![("cpu_util_pct", f64::from(look))];
                // A metric that comes later and goes again.
                values.extend((3..6).contains(&look).then_some(("gpu_power_w", 500.0)));
                taken += u32::from(recorder.push(node, 1e9 + f64::from(look), &values).unwrap());
            }
            recorder.commit().unwrap();
        }
        (recorder.path().to_owned(), taken)
    }

    fn all(path: &Path) -> (Vec<(String, String, f64, f32)>, usize) {
        let mut told = Vec::new();
        let damages =
            replay(path, &mut |t| told.push((t.node.to_owned(), t.metric.to_owned(), t.time_s, t.value))).unwrap();
        (told, damages.len())
    }

    #[test]
    fn what_was_recorded_is_told_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, taken) = record(dir.path(), "a", 8, u64::MAX);
        let (told, damages) = all(&path);
        assert_eq!((taken, damages, told.len()), (16, 0, 2 * (8 + 3)));
        assert!(told.contains(&("n2".into(), "cpu_util_pct".into(), 1e9 + 7.0, 7.0)));
        assert_eq!(told.iter().filter(|(_, metric, ..)| metric == "gpu_power_w").count(), 6);
        assert!(is_recording(&path) && !is_recording(dir.path()));
    }

    #[test]
    fn a_recording_of_a_newer_muster_and_what_is_none_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (path, _) = record(dir.path(), "a", 2, u64::MAX);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[MAGIC.len()] += 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(replay(&path, &mut |_| ()), Err(StoreError::Newer { found: 2, known: FORMAT, .. })));
        bytes[0] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(replay(&path, &mut |_| ()).unwrap_err().to_string().contains("no recording"));
    }

    #[test]
    fn a_file_cut_anywhere_or_with_a_rotten_byte_gives_all_but_the_chunk_that_it_hit() {
        let dir = tempfile::tempdir().unwrap();
        let (path, _) = record(dir.path(), "a", 8, u64::MAX);
        let whole = std::fs::read(&path).unwrap();
        let copy = dir.path().join("copy");
        let mut least = usize::MAX;
        for at in HEADER..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            std::fs::write(&copy, &bytes).unwrap();
            let (told, damages) = all(&copy);
            assert_eq!(damages, 1, "at {at}");
            least = least.min(told.len());
            std::fs::write(&copy, &whole[..at]).unwrap();
            assert!(all(&copy).1 <= 1, "cut at {at}");
        }
        assert!(least >= 22 - 4, "{least}");
    }

    #[test]
    fn a_full_recording_takes_nothing_more_and_old_ones_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let (first, taken) = record(dir.path(), "20260101T000000Z-watch-a", 50, 500);
        assert!(taken < 100 && first.metadata().unwrap().len() < 800, "{taken}");
        let (second, _) = record(dir.path(), "20260102T000000Z-watch-b", 5, u64::MAX);
        assert_eq!(thin_out(dir.path(), u64::MAX, std::time::Duration::MAX).unwrap(), Vec::<String>::new());
        let gone = thin_out(dir.path(), second.metadata().unwrap().len(), std::time::Duration::MAX).unwrap();
        assert_eq!(gone, ["20260101T000000Z-watch-a"]);
        assert!(second.exists() && !first.exists());
        assert_eq!(thin_out(dir.path(), u64::MAX, std::time::Duration::ZERO).unwrap(), ["20260102T000000Z-watch-b"]);
    }
}
