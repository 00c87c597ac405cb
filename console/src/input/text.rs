//! Text files given on the command line: bounded, and unpacked where they are gzip.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail};
use flate2::read::GzDecoder;
use muster_analysis::risk::import::Limits;

/// Text of `file`.
///
/// # Errors
/// When it cannot be read, is no UTF-8, or is longer than an import may be; the message names the file.
pub fn text(file: &Path) -> anyhow::Result<String> {
    let name = || file.display().to_string();
    let mut reader = BufReader::new(File::open(file).with_context(name)?);
    let gzip = reader.fill_buf().with_context(name)?.starts_with(&[0x1f, 0x8b]);
    let text = if gzip { bounded(GzDecoder::new(reader)) } else { bounded(reader) };
    let text = text.with_context(name)?;
    if text.len() > Limits::default().bytes {
        bail!("{}: more than {} MB of text", name(), Limits::default().bytes >> 20);
    }
    Ok(text)
}

/// At most one byte more than is allowed, so that the caller can tell.
fn bounded(reader: impl Read) -> io::Result<String> {
    let mut text = String::new();
    reader.take(Limits::default().bytes as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn packed_and_plain_files_read_alike_and_errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let (plain, packed) = (dir.path().join("a.csv"), dir.path().join("a.csv.gz"));
        std::fs::write(&plain, "node\n").unwrap();
        let mut gz = flate2::write::GzEncoder::new(File::create(&packed).unwrap(), flate2::Compression::fast());
        gz.write_all(b"node\n").unwrap();
        gz.finish().unwrap();
        assert_eq!(text(&plain).unwrap(), text(&packed).unwrap());
        std::fs::write(&plain, [0xff, 0xfe]).unwrap();
        assert!(format!("{:#}", text(&plain).unwrap_err()).contains("a.csv"));
    }
}
