//! Settles what may be kept beside a run file: what somebody made of the whole of it, for as long as it stays as it was.
//!
//! A convenience like the index, thrown away at will. It is believed where the run file, every byte of it, is the one it was made
//! from: `[crc32 of the rest][length of the run file u64][crc32 of the run file][bytes]`, little-endian.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::frame::{HEADER, only_whole};
use crate::packed::{self, read, write};
use crate::place;

const LEVEL: i32 = 1;
/// Largest piece before compression, bytes.
const MOST: usize = 1 << 30;
/// Length of the run file and its checksum.
const STAMP: usize = 8 + 4;

/// Length and checksum of `file`.
fn stamp(mut file: &File) -> io::Result<[u8; STAMP]> {
    let length = file.metadata()?.len();
    let (mut crc, mut buffer) = (crc32fast::Hasher::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => crc.update(&buffer[..n]),
        }
    }
    let mut stamp = [0; STAMP];
    stamp[..8].copy_from_slice(&length.to_le_bytes());
    stamp[8..].copy_from_slice(&crc.finalize().to_le_bytes());
    Ok(stamp)
}

/// Stores `bytes` beside the file of run `id`, replacing what was there. Does nothing if that file is damaged.
pub(crate) fn keep(dir: &Path, id: &str, bytes: &[u8]) -> io::Result<()> {
    let file = File::open(place::run_file(dir, id))?;
    if only_whole(&file, HEADER, file.metadata()?.len())? {
        write(&place::beside(dir, id), "judged", &[&stamp(&file)?, bytes])?;
    }
    Ok(())
}

/// Removes what somebody who was killed had not finished: files whose process is gone.
pub(crate) fn sweep(dir: &Path) {
    let begun = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let (_, process) = name
            .rsplit_once(".judged.")
            .or_else(|| name.rsplit_once(".overview."))
            .or_else(|| name.rsplit_once(".contents."))?;
        process.parse::<u32>().ok()
    };
    for path in fs::read_dir(place::runs(dir)).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if begun(&path).is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // What stays is in nobody's way, and tried again next time.
            let _ = fs::remove_file(&path);
        }
    }
}

/// What is kept beside the file of run `id`; `None` where there is nothing, or the file is another now.
pub(crate) fn kept(dir: &Path, id: &str) -> Option<Vec<u8>> {
    let mut all = read(&place::beside(dir, id))?;
    // It was whole when this was kept.
    let file = File::open(place::run_file(dir, id)).ok()?;
    (all.get(..STAMP)? == stamp(&file).ok()?).then(|| {
        all.drain(..STAMP);
        all
    })
}

/// `value` as compressed bytes, for [`unpack`].
///
/// # Errors
/// When it does not serialise.
pub fn pack<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    packed::pack(value, LEVEL)
}

/// The value in the bytes that [`pack`] made; `None` in all others.
#[must_use]
pub fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    packed::unpack(bytes, MOST)
}

#[cfg(test)]
mod tests {
    use muster_run::{Run, RunState};

    use super::*;
    use crate::{Db, Options, Store};

    #[test]
    fn what_is_kept_is_believed_while_the_run_file_and_itself_stay_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let mut db = Db::open(dir.path(), &Options::default()).unwrap();
        let run = Run { nodes: vec!["n1".into()], ..crate::made::run("r1") };
        db.begin(&run).unwrap();
        assert_eq!(db.beside("r1"), None);
        db.keep_beside("r1", b"early");
        assert_eq!(db.beside("r1").as_deref(), Some(&b"early"[..]));
        db.end("r1", RunState::Finished, 2).unwrap();
        assert_eq!(db.beside("r1"), None, "the run went on");
        db.keep_beside("r1", b"late");
        assert_eq!(Db::open_read_only(dir.path()).unwrap().beside("r1").as_deref(), Some(&b"late"[..]));
        for path in [place::beside(dir.path(), "r1"), place::run_file(dir.path(), "r1")] {
            let sound = fs::read(&path).unwrap();
            for at in 0..sound.len() {
                let mut rotten = sound.clone();
                rotten[at] ^= 0x10;
                fs::write(&path, &rotten).unwrap();
                assert_eq!(db.beside("r1"), None, "byte {at} of {}", path.display());
            }
            fs::write(&path, &sound).unwrap();
        }
        assert!(db.beside("r1").is_some());
    }

    #[test]
    fn what_a_killed_process_left_unfinished_is_removed_when_the_next_one_opens_for_writing() {
        let dir = tempfile::tempdir().unwrap();
        drop(Db::open(dir.path(), &Options::default()).unwrap());
        let runs = place::runs(dir.path());
        let own = std::process::id();
        // No process has the largest number of all.
        let files = [format!("r1.judged.{}", u32::MAX), format!("r1.judged.{own}"), "r1.judged".to_owned()];
        files.iter().for_each(|file| fs::write(runs.join(file), b"half").unwrap());
        drop(Db::open_read_only(dir.path()).unwrap());
        assert!(files.iter().all(|file| runs.join(file).exists()), "a reader changes nothing");
        drop(Db::open(dir.path(), &Options::default()).unwrap());
        assert_eq!(files.map(|file| runs.join(file).exists()), [false, true, true]);
    }

    #[test]
    fn every_number_comes_back_from_a_pack() {
        let values =
            vec![Some(0.5), None, Some(-0.0), Some(1e308), Some(f64::INFINITY), Some(f64::NAN), Some(1.0 / 3.0)];
        let back: Vec<Option<f64>> = unpack(&pack(&values).unwrap()).unwrap();
        assert_eq!(format!("{values:?}"), format!("{back:?}"));
        assert_eq!(unpack::<Vec<f64>>(b"no pack"), None);
    }
}
