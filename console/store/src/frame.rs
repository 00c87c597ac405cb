//! Settles how entries lie in a log file, and how a damaged file is read: `[length u32][crc32 u32][zstd(cbor)]`.
//!
//! All integers are little-endian; the checksum covers the length too, so a run of zeros is no frame. Every payload
//! begins with zstd's magic number, which lets a reader find the next whole frame behind a damaged one.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::entry::{Decoder, ENTRY_BYTES, Entry};

/// First bytes of every log file.
pub(crate) const MAGIC: [u8; 12] = *b"MUSTERLOG\r\n\0";
/// Newest format of log files.
pub(crate) const FORMAT: u32 = 1;
/// Magic and format.
pub(crate) const HEADER: u64 = 16;
const HEAD: usize = 8;
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const CHUNK: usize = 1 << 20;

/// Bytes that are not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where they begin in the file.
    pub offset: u64,
    /// How many there are before the next whole frame, or the end of the file.
    pub bytes: u64,
    /// What is wrong.
    pub why: String,
    /// Whether nothing whole follows: what a crash in the middle of a write leaves.
    pub tail: bool,
    /// How many frames they were; 1 where their lengths cannot be believed, 0 where only the header is damaged.
    pub frames: u64,
}

/// Where a frame lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

pub(crate) enum Piece {
    Entry(Span, Entry),
    Damage(Damage),
}

/// Magic and format of a new file.
pub(crate) fn header() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT.to_le_bytes());
    bytes
}

/// Puts length and checksum before `payload`.
pub(crate) fn frame(payload: &[u8], out: &mut Vec<u8>) -> io::Result<Span> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let offset = out.len() as u64;
    out.extend(length.to_le_bytes());
    out.extend(checksum(length, payload).to_le_bytes());
    out.extend(payload);
    Ok(Span { offset, length: (HEAD + payload.len()) as u64 })
}

fn checksum(length: u32, payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&length.to_le_bytes());
    crc.update(payload);
    crc.finalize()
}

/// Length and checksum of a frame, as they lie there.
pub(crate) type FrameHead = [u8; HEAD];

/// The head of the frame at `offset`.
pub(crate) fn head_at(file: &File, offset: u64) -> io::Result<FrameHead> {
    let mut bytes = [0; HEAD];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn head(bytes: FrameHead) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = bytes;
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
}

fn believable(length: u32) -> bool {
    length as usize >= ZSTD.len() && length as usize <= zstd::zstd_safe::compress_bound(ENTRY_BYTES)
}

/// The payload of the frame at `span`, checked; `bytes` is a buffer for it.
pub(crate) fn read_at<'b>(file: &File, span: Span, bytes: &'b mut Vec<u8>) -> Result<&'b [u8], String> {
    let length = usize::try_from(span.length).map_err(|e| e.to_string())?;
    let Some(body) = length.checked_sub(HEAD).filter(|&b| u32::try_from(b).is_ok_and(believable)) else {
        return Err(format!("a frame of {length} bytes cannot be"));
    };
    bytes.resize(length, 0);
    file.read_exact_at(bytes, span.offset).map_err(|e| e.to_string())?;
    let (start, payload) = bytes.split_first_chunk::<HEAD>().ok_or("a frame without a head")?;
    let (claimed, crc) = head(*start);
    if claimed as usize != body || checksum(claimed, payload) != crc {
        return Err("its checksum is wrong".to_owned());
    }
    Ok(payload)
}

/// What stands at the start of a log file.
pub(crate) enum Start {
    Known,
    Newer(u32),
    Damaged(String),
}

/// Reads magic and format.
pub(crate) fn start(file: &File) -> io::Result<Start> {
    let mut bytes = [0; HEADER as usize];
    let have = read_some(file, &mut bytes, 0)?;
    if have < bytes.len() {
        return Ok(Start::Damaged(format!("it ends after {have} bytes, within its header")));
    }
    let Some((magic, format)) = bytes.split_first_chunk::<12>() else {
        return Ok(Start::Damaged("it has no header".to_owned()));
    };
    let format = format.try_into().map_or(0, u32::from_le_bytes);
    Ok(match format {
        _ if *magic != MAGIC => Start::Damaged("its header is not that of a muster log".to_owned()),
        FORMAT => Start::Known,
        // A later format says its number twice, so that a rotten bit of an old one is not taken for it.
        f if f >> 16 == !f & 0xffff => Start::Newer(f & 0xffff),
        f => Start::Damaged(format!("its header names format {f}, which cannot be")),
    })
}

/// Gives every entry and every damage of `path` from `from` on to `each`. Returns the end of the last whole frame
/// (or of the last damage that whole frames follow): a writer goes on there.
pub(crate) fn scan(path: &Path, from: u64, each: &mut dyn FnMut(Piece)) -> io::Result<u64> {
    let file = File::open(path)?;
    let end = file.metadata()?.len();
    let mut at = from.max(HEADER);
    if from < HEADER
        && let Start::Damaged(why) = start(&file)?
    {
        let next = resync(&file, 0, end)?;
        let stop = next.unwrap_or(end);
        let frames = frames_in(&file, HEADER, stop)?;
        each(Piece::Damage(Damage { offset: 0, bytes: stop, why, tail: next.is_none(), frames }));
        at = stop;
        if next.is_none() {
            return Ok(0);
        }
    }
    let mut decoder = Decoder::new()?;
    walk(&file, (at, end), &mut |found| {
        each(match found {
            Ok((span, payload)) => match decoder.decode(payload) {
                Ok(entry) => Piece::Entry(span, entry),
                Err(why) => Piece::Damage(undecoded(span, why)),
            },
            Err(damage) => Piece::Damage(damage),
        });
    })
}

/// Damage of a frame whose checksum is right.
pub(crate) const fn undecoded(span: Span, why: String) -> Damage {
    Damage { offset: span.offset, bytes: span.length, why, tail: false, frames: 1 }
}

/// A whole frame and its payload, or what lies where one should be.
pub(crate) type Found<'a> = Result<(Span, &'a [u8]), Damage>;

/// Gives every frame and every damage between two offsets to `each`. Returns the end of the last whole frame.
pub(crate) fn walk(file: &File, (mut at, end): (u64, u64), each: &mut dyn FnMut(Found<'_>)) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(CHUNK, file.try_clone()?);
    reader.seek(SeekFrom::Start(at))?;
    while at < end {
        match next_payload(&mut reader, end - at)? {
            Ok(payload) => {
                let span = Span { offset: at, length: (HEAD + payload.len()) as u64 };
                each(Ok((span, &payload)));
                at += span.length;
            }
            Err(why) => {
                let next = resync(file, at + 1, end)?;
                let stop = next.unwrap_or(end);
                let frames = frames_in(file, at, stop)?;
                each(Err(Damage { offset: at, bytes: stop - at, why, tail: next.is_none(), frames }));
                let Some(next) = next else { return Ok(at) };
                at = next;
                reader.seek(SeekFrom::Start(at))?;
            }
        }
    }
    Ok(at)
}

/// How many frames there were from `at` to `end`: at least one, and more where their lengths lead to the end.
fn frames_in(file: &File, mut at: u64, end: u64) -> io::Result<u64> {
    let mut frames = u64::from(at < end);
    while at + (HEAD as u64) < end {
        let (length, _) = head(head_at(file, at)?);
        at += HEAD as u64 + u64::from(length);
        frames += u64::from(at < end);
    }
    Ok(if at == end { frames } else { frames.min(1) })
}

fn next_payload(reader: &mut impl Read, left: u64) -> io::Result<Result<Vec<u8>, String>> {
    if left < HEAD as u64 {
        return Ok(Err(format!("{left} bytes of a frame that was not finished")));
    }
    let mut bytes = [0; HEAD];
    reader.read_exact(&mut bytes)?;
    let (length, crc) = head(bytes);
    if !believable(length) {
        return Ok(Err(format!("a frame of {length} bytes cannot be")));
    }
    if u64::from(length) > left - HEAD as u64 {
        return Ok(Err(format!("a frame of {length} bytes was not finished")));
    }
    let mut payload = vec![0; length as usize];
    reader.read_exact(&mut payload)?;
    if checksum(length, &payload) != crc {
        return Ok(Err(format!("the checksum of a frame of {length} bytes is wrong")));
    }
    Ok(Ok(payload))
}

/// Where the first whole frame at or behind `from` begins.
fn resync(file: &File, from: u64, end: u64) -> io::Result<Option<u64>> {
    let mut window = vec![0; CHUNK];
    let mut base = from;
    while base < end {
        let have = read_some(file, &mut window, base)?;
        for at in window[..have].windows(ZSTD.len()).enumerate().filter(|(_, w)| *w == ZSTD).map(|(i, _)| i) {
            let Some(offset) = (base + at as u64).checked_sub(HEAD as u64).filter(|&o| o >= from) else { continue };
            if whole_frame(file, offset, end)? {
                return Ok(Some(offset));
            }
        }
        if have < window.len() {
            break;
        }
        base += (have - (ZSTD.len() - 1)) as u64;
    }
    Ok(None)
}

fn whole_frame(file: &File, offset: u64, end: u64) -> io::Result<bool> {
    let mut bytes = [0; HEAD];
    file.read_exact_at(&mut bytes, offset)?;
    let (length, crc) = head(bytes);
    if !believable(length) || offset + HEAD as u64 + u64::from(length) > end {
        return Ok(false);
    }
    let mut payload = vec![0; length as usize];
    file.read_exact_at(&mut payload, offset + HEAD as u64)?;
    Ok(checksum(length, &payload) == crc)
}

/// Whether whole frames lie from `from` to `to` and nothing else.
pub(crate) fn only_whole(file: &File, from: u64, to: u64) -> io::Result<bool> {
    let mut at = from;
    while at < to && whole_frame(file, at, to)? {
        at += HEAD as u64 + u64::from(head(head_at(file, at)?).0);
    }
    Ok(at == to)
}

fn read_some(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match file.read_at(&mut buffer[have..], offset + have as u64) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(have)
}

impl Damage {
    /// Of a file as a whole.
    pub(crate) const fn of_file(why: String) -> Self {
        Self { offset: 0, bytes: 0, why, tail: true, frames: 0 }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.bytes == 0 {
            return f.write_str(&self.why);
        }
        let after = if self.tail { "nothing whole follows" } else { "what follows is readable" };
        write!(f, "{} bytes at offset {} are damaged: {} ({after})", self.bytes, self.offset, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_no_frame_has_is_not_believed() {
        let most = u32::try_from(zstd::zstd_safe::compress_bound(ENTRY_BYTES)).unwrap();
        let least = u32::try_from(ZSTD.len()).unwrap();
        assert!(believable(least) && believable(most) && !believable(least - 1) && !believable(most + 1));
    }
}
