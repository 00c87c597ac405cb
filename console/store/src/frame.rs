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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_length_that_no_frame_has_is_not_believed() {
        let most = u32::try_from(zstd::zstd_safe::compress_bound(ENTRY_BYTES)).unwrap();
        let least = u32::try_from(ZSTD.len()).unwrap();
        assert!(believable(least) && believable(most) && !believable(least - 1) && !believable(most + 1));
    }

    /// A file that holds these bytes.
    fn file(bytes: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        file
    }

    /// A log file of frames that hold compressed numbers, and where each of them lies.
    fn framed(payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<Span>) {
        let mut bytes = header();
        let spans = payloads.iter().map(|payload| frame(payload, &mut bytes).unwrap()).collect();
        (bytes, spans)
    }

    fn compressed(seed: u64) -> Vec<u8> {
        let text: Vec<u8> = (0..seed % 40).map(|at| (seed.wrapping_mul(at + 7) >> 3) as u8).collect();
        zstd::bulk::compress(&text, 1).unwrap()
    }

    /// Offsets of the whole frames, and all that is told of damage.
    fn walked(bytes: &[u8]) -> (Vec<Span>, Vec<Damage>, u64) {
        let (mut whole, mut damaged) = (Vec::new(), Vec::new());
        let end = walk(&file(bytes), (HEADER, bytes.len() as u64), &mut |found| match found {
            Ok((span, payload)) => {
                assert_eq!(payload, &bytes[span.offset as usize + HEAD..(span.offset + span.length) as usize]);
                whole.push(span);
            }
            Err(damage) => damaged.push(damage),
        });
        (whole, damaged, end.unwrap())
    }

    proptest! {
        /// Payloads are spoiled and lengths are not, so that how many frames were lost is known.
        #[test]
        fn spoiled_frames_are_damage_and_all_others_are_given(
            seeds in proptest::collection::vec(any::<u64>(), 1..9),
            spoiled in proptest::collection::vec(any::<proptest::sample::Index>(), 0..5),
        ) {
            let payloads: Vec<Vec<u8>> = seeds.into_iter().map(compressed).collect();
            let (mut bytes, spans) = framed(&payloads);
            let spoiled: std::collections::BTreeSet<usize> = spoiled.iter().map(|at| at.index(spans.len())).collect();
            for at in &spoiled {
                bytes[(spans[*at].offset + spans[*at].length) as usize - 1] ^= 0x20;
            }
            let (whole, damaged, end) = walked(&bytes);
            let kept: Vec<Span> = (0..spans.len()).filter(|at| !spoiled.contains(at)).map(|at| spans[at]).collect();
            prop_assert_eq!(&whole, &kept);
            let mut expected: Vec<(u64, u64, bool, u64)> = Vec::new();
            for at in &spoiled {
                let Span { offset, length } = spans[*at];
                let tail = (*at..spans.len()).all(|later| spoiled.contains(&later));
                match expected.last_mut() {
                    Some(before) if before.0 + before.1 == offset => {
                        (before.1, before.3) = (before.1 + length, before.3 + 1);
                    }
                    _ => expected.push((offset, length, tail, 1)),
                }
            }
            let found: Vec<_> = damaged.iter().map(|one| (one.offset, one.bytes, one.tail, one.frames)).collect();
            prop_assert_eq!(&found, &expected);
            let last = expected.last().filter(|last| last.2).map_or(bytes.len() as u64, |last| last.0);
            prop_assert_eq!(end, last, "a writer goes on behind the last whole frame");
            let all = only_whole(&file(&bytes), HEADER, bytes.len() as u64).unwrap();
            prop_assert_eq!(all, spoiled.is_empty());
        }

        #[test]
        fn whatever_bytes_lie_before_a_frame_it_is_found(junk in proptest::collection::vec(any::<u8>(), 0..200), seed in any::<u64>()) {
            let mut bytes = [&header()[..], &junk].concat();
            let span = frame(&compressed(seed), &mut bytes).unwrap();
            let (whole, ..) = walked(&bytes);
            prop_assert!(whole.contains(&span), "{whole:?}");
        }
    }

    #[test]
    fn a_file_that_ends_within_a_frame_says_what_was_not_finished() {
        let payload = compressed(39);
        let (bytes, spans) = framed(&[compressed(5), payload.clone()]);
        let last = spans[1];
        for left in 0..last.length {
            let (whole, damaged, end) = walked(&bytes[..(last.offset + left) as usize]);
            assert_eq!((whole, end), (vec![spans[0]], last.offset));
            let why: Vec<String> = damaged.into_iter().map(|damage| damage.why).collect();
            let expected = match left {
                0 => vec![],
                1..8 => vec![format!("{left} bytes of a frame that was not finished")],
                _ => vec![format!("a frame of {} bytes was not finished", payload.len())],
            };
            assert_eq!(why, expected);
        }
    }

    #[test]
    fn a_frame_is_found_behind_more_damage_than_is_looked_through_at_once() {
        for odd in 0..24 {
            let mut bytes = header();
            bytes.extend(vec![0xee; CHUNK - 16 + odd]);
            let span = frame(&compressed(39), &mut bytes).unwrap();
            let (whole, damaged, _) = walked(&bytes);
            assert_eq!((whole, damaged.len()), (vec![span], 1), "{odd}");
            assert_eq!((damaged[0].offset, damaged[0].bytes), (HEADER, span.offset - HEADER));
        }
    }

    #[test]
    fn lengths_that_do_not_lead_to_the_next_whole_frame_count_as_one_frame() {
        let (mut bytes, spans) = framed(&[compressed(9), compressed(19), compressed(29), compressed(39)]);
        for at in [1, 2] {
            bytes[spans[at].offset as usize + HEAD + 1] ^= 1;
        }
        assert_eq!(walked(&bytes).1[0].frames, 2, "their lengths are as they were");
        bytes[spans[2].offset as usize] ^= 1;
        let (whole, damaged, _) = walked(&bytes);
        assert_eq!((whole, damaged.len(), damaged[0].frames), (vec![spans[0], spans[3]], 1, 1));
    }

    #[test]
    fn a_frame_is_read_where_it_lies_and_nothing_else_passes_for_it() {
        let payload = compressed(39);
        let (mut bytes, spans) = framed(&[compressed(5), payload.clone(), compressed(7)]);
        let span = spans[1];
        let mut buffer = Vec::new();
        let mut read = |bytes: &[u8], span| read_at(&file(bytes), span, &mut buffer).map(<[u8]>::to_vec);
        assert_eq!(read(&bytes, span), Ok(payload.clone()));
        let wrong = Err("its checksum is wrong".to_owned());
        for other in [
            Span { length: span.length - 1, ..span },
            Span { length: span.length + 1, ..span },
            Span { offset: span.offset + 1, ..span },
        ] {
            assert_eq!(read(&bytes, other), wrong, "{other:?}");
        }
        assert_eq!(read(&bytes, Span { length: 8, ..span }), Err("a frame of 8 bytes cannot be".to_owned()));
        assert_eq!(read(&bytes, Span { length: 3, ..span }), Err("a frame of 3 bytes cannot be".to_owned()));
        bytes[span.offset as usize + HEAD] ^= 1;
        assert_eq!(read(&bytes, span), wrong);
    }

    #[test]
    fn the_start_of_a_file_says_its_format() {
        let said = |bytes: &[u8]| match start(&file(bytes)).unwrap() {
            Start::Known => "known".to_owned(),
            Start::Newer(format) => format!("newer: {format}"),
            Start::Damaged(why) => why,
        };
        let of = |format: u32| [&MAGIC[..], &format.to_le_bytes()].concat();
        assert_eq!(said(&header()), "known");
        assert_eq!(said(&of(7 | (!7 & 0xffff) << 16)), "newer: 7");
        assert_eq!(said(&of(7)), "its header names format 7, which cannot be");
        assert_eq!(said(&of(7 | 7 << 16)), "its header names format 458759, which cannot be");
        assert_eq!(said(&header()[..15]), "it ends after 15 bytes, within its header");
        assert_eq!(said(&[7; 16]), "its header is not that of a muster log");
    }

    #[test]
    fn damage_is_told_with_its_place_and_what_follows_it() {
        let damage = Damage { offset: 16, bytes: 9, why: "it rotted".to_owned(), tail: false, frames: 1 };
        assert_eq!(damage.to_string(), "9 bytes at offset 16 are damaged: it rotted (what follows is readable)");
        let last = Damage { tail: true, ..damage };
        assert_eq!(last.to_string(), "9 bytes at offset 16 are damaged: it rotted (nothing whole follows)");
        assert_eq!(Damage::of_file("it is gone".to_owned()).to_string(), "it is gone");
    }
}
