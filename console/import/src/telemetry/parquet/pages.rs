//! How large are the pages of a Parquet file, before anything believes them?
//!
//! A page's header says how long it will be once it is unpacked, and the library makes room for that. A file of some kilobytes may claim two gigabytes
//! for every column. So the headers, which are Thrift's compact encoding, are gone through first.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use ::parquet::errors::Result;
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

use super::MAGIC;
use crate::Bad;

/// Most bytes of a page, unpacked or not; writers make pages of a megabyte.
const PAGE: u64 = 64 << 20;
/// Most bytes of what a file says of itself.
const FOOTER: u64 = 8 << 20;
/// Length of the footer, and magic.
const TAIL: u64 = 8;
/// Structures within each other in a header.
const DEPTH: u32 = 8;

/// A file that several readers use.
pub(super) struct Shared<R>(pub(super) Arc<R>);

impl<R> Clone for Shared<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: ChunkReader> Length for Shared<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Shared<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Whether the file ends as it must, with a footer that is read.
pub(super) fn footer(file: &impl ChunkReader) -> std::result::Result<(), Bad> {
    let torn = || Bad::torn("it is cut off: a Parquet file ends in PAR1");
    let start = file.len().checked_sub(TAIL).ok_or_else(torn)?;
    let tail = file.get_bytes(start, TAIL as usize).map_err(|_| torn())?;
    let (length, magic) = tail.split_at(4);
    if magic != MAGIC {
        return Err(torn());
    }
    let length = length.try_into().map_or(u64::MAX, |bytes| u64::from(u32::from_le_bytes(bytes)));
    if length > FOOTER.min(start) {
        return Err(Bad::torn(format!("its footer of {length} bytes is longer than the file or than {FOOTER} bytes")));
    }
    Ok(())
}

/// Whether no page of a column claims more than is read.
pub(super) fn chunk(file: &impl ChunkReader, about: &ColumnChunkMetaData) -> std::result::Result<(), Bad> {
    let damaged = || Bad::torn("a column lies outside of the file");
    let start = about.dictionary_page_offset().unwrap_or_else(|| about.data_page_offset());
    let (start, length) = (u64::try_from(start), u64::try_from(about.compressed_size()));
    let (Ok(start), Ok(length)) = (start, length) else { return Err(damaged()) };
    if start.checked_add(length).is_none_or(|end| end > file.len()) {
        return Err(damaged());
    }
    let read = file.get_read(start).map_err(|_| damaged())?;
    walk(&mut BufReader::new(read.take(length))).map_err(|why| Bad::torn(why.to_string()))
}

/// Goes from page to page to the end.
fn walk(input: &mut impl BufRead) -> io::Result<()> {
    while !input.fill_buf()?.is_empty() {
        let mut header = Header { unpacked: 0, packed: 0 };
        fields(input, DEPTH, Some(&mut header))?;
        let (packed, unpacked) = (header.packed, header.unpacked);
        if packed > PAGE || unpacked > PAGE {
            return Err(io::Error::other(format!("a page of {} bytes is more than is read", packed.max(unpacked))));
        }
        skip(input, packed)?;
    }
    Ok(())
}

struct Header {
    unpacked: u64,
    packed: u64,
}

/// The fields of a structure up to its end. Of a page's header the second says how long it is unpacked, the third how long it lies in the file.
fn fields(input: &mut impl BufRead, depth: u32, mut header: Option<&mut Header>) -> io::Result<()> {
    let mut id = 0_u64;
    loop {
        let byte = byte(input)?;
        if byte == 0 {
            return Ok(());
        }
        id = if byte >> 4 == 0 { zigzag(number(input)?) } else { id.saturating_add(u64::from(byte >> 4)) };
        match (&mut header, id, byte & 0xf) {
            (Some(header), 2, INT32) => header.unpacked = zigzag(number(input)?),
            (Some(header), 3, INT32) => header.packed = zigzag(number(input)?),
            (_, _, kind) => value(input, kind, depth)?,
        }
    }
}

const INT32: u8 = 5;

/// Skips a value of this kind.
fn value(input: &mut impl BufRead, kind: u8, depth: u32) -> io::Result<()> {
    match kind {
        // A boolean field is its own value.
        1 | 2 => Ok(()),
        3 => skip(input, 1),
        4..=6 => number(input).map(drop),
        7 => skip(input, 8),
        8 => {
            let length = number(input)?;
            if length > PAGE { Err(strange()) } else { skip(input, length) }
        }
        12 if depth > 0 => fields(input, depth - 1, None),
        // Headers hold no lists.
        _ => Err(strange()),
    }
}

fn byte(input: &mut impl BufRead) -> io::Result<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn skip(input: &mut impl BufRead, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut input.take(bytes), &mut io::sink())?;
    if skipped < bytes { Err(strange()) } else { Ok(()) }
}

/// Seven bits a byte, the lowest first.
fn number(input: &mut impl BufRead) -> io::Result<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = byte(input)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(strange())
}

/// A number with a sign; what is negative is as wrong as what is too large.
fn zigzag(number: u64) -> u64 {
    if number & 1 == 1 { u64::MAX } else { number >> 1 }
}

fn strange() -> io::Error {
    io::Error::other("the header of a page is damaged")
}
