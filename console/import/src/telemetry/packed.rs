//! What lies in a file that may be packed with gzip, and when is it too much?

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

/// Most bytes that a file may have once it is unpacked: more than all rows take that are kept, and an end to what unpacks for ever.
const UNPACKED: u64 = 8 << 30;
const BUFFER: usize = 1 << 18;

/// `input` unpacked where it is gzip, by its first bytes; an error past 8 GiB.
///
/// # Errors
/// When it cannot be read.
pub fn unpacked<'a>(mut input: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let gzip = input.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if gzip {
        Box::new(BufReader::with_capacity(BUFFER, Capped { inner: MultiGzDecoder::new(input), left: UNPACKED }))
    } else {
        Box::new(BufReader::with_capacity(BUFFER, Capped { inner: input, left: UNPACKED }))
    })
}

/// A stream that fails, rather than ends, when it is too long.
pub(super) struct Capped<R> {
    pub(super) inner: R,
    pub(super) left: u64,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left =
            self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other("it unpacks to more than is read"))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_fails_and_does_not_end() {
        let mut short = Vec::new();
        assert!(Capped { inner: &b"1234"[..], left: 4 }.read_to_end(&mut short).is_ok() && short == b"1234");
        let why = Capped { inner: &b"12345"[..], left: 4 }.read_to_end(&mut short).unwrap_err();
        assert_eq!(why.to_string(), "it unpacks to more than is read");
    }
}
