//! Settles how a convenience is kept in a file beside a run file: compressed, behind a checksum, whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// `value`, compressed.
pub(crate) fn pack<T: Serialize>(value: &T, level: i32) -> io::Result<Vec<u8>> {
    let mut cbor = Vec::new();
    ciborium::into_writer(value, &mut cbor).map_err(io::Error::other)?;
    zstd::bulk::compress(&cbor, level)
}

/// The value in the bytes that [`pack`] made; `None` in all others, and where it takes more than `most` bytes.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8], most: usize) -> Option<T> {
    let size = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten()?;
    let size = usize::try_from(size).ok().filter(|size| *size <= most)?;
    minicbor_serde::from_slice(&zstd::bulk::decompress(bytes, size).ok()?).ok()
}

/// Keeps `parts`, one after the other, in the file `path`. Until it is whole it is called with `extension` and the number of this
/// process: readers keep, too.
pub(crate) fn write(path: &Path, extension: &str, parts: &[&[u8]]) -> io::Result<()> {
    let mut crc = crc32fast::Hasher::new();
    parts.iter().for_each(|part| crc.update(part));
    let new = path.with_extension(format!("{extension}.{}", std::process::id()));
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(&crc.finalize().to_le_bytes())?;
        parts.iter().try_for_each(|part| file.write_all(part))
    });
    let kept = written.and_then(|()| fs::rename(&new, path));
    if kept.is_err() {
        let _ = fs::remove_file(&new);
    }
    kept
}

/// What [`write`] kept in the file `path`; `None` where there is nothing, or a bit of it has changed.
pub(crate) fn read(path: &Path) -> Option<Vec<u8>> {
    let mut all = fs::read(path).ok()?;
    let (crc, rest) = all.split_first_chunk()?;
    let sound = crc32fast::hash(rest) == u32::from_le_bytes(*crc);
    sound.then(|| {
        all.drain(..4);
        all
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_unpacked_where_it_takes_no_more_than_it_may() {
        let packed = pack(&vec![7_u8; 100], 1).unwrap();
        let size = zstd::bulk::decompress(&packed, 1_000).unwrap().len();
        assert_eq!(unpack::<Vec<u8>>(&packed, size), Some(vec![7; 100]));
        assert_eq!(unpack::<Vec<u8>>(&packed, size - 1), None);
        assert_eq!((unpack::<String>(&packed, size), unpack::<Vec<u8>>(b"", size)), (None, None));
    }

    #[test]
    fn what_is_kept_comes_back_whole_or_not_at_all_and_leaves_nothing_else_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.kept");
        write(&path, "kept", &[b"one", b"", b"two"]).unwrap();
        assert_eq!(read(&path).as_deref(), Some(&b"onetwo"[..]));
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut rotten = whole.clone();
            rotten[at] ^= 1;
            fs::write(&path, &rotten).unwrap();
            assert_eq!(read(&path), None, "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(read(&path), None, "cut at {at}");
        }
        let folder = dir.path().join("folder.kept");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), b"").unwrap();
        assert!(write(&folder, "kept", &[b"x"]).is_err(), "a folder lies there");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
