//! Writing a replay file, piece by piece.

use std::io::{self, Error, Read, Write};

use super::{CHUNK, FORMAT, Head, Kind, MAGIC, PARTS, Part, TEXT, checksum};

/// A part to be written.
pub struct Source<'s> {
    /// File name of the part.
    pub name: String,
    /// Its length; so many bytes are taken of `from`, and no more.
    pub bytes: u64,
    /// Its content.
    pub from: Box<dyn Read + 's>,
}

/// Writes a file that holds `parts`: a `kind` called `name`, written by this version of muster at `at_ms`.
///
/// # Errors
/// When it cannot be written, or a part is shorter than it was said to be.
pub fn write(
    to: &mut dyn Write,
    (kind, name): (Kind, &str),
    (writer, at_ms): (&str, u64),
    parts: Vec<Source<'_>>,
) -> io::Result<()> {
    if parts.len() > PARTS {
        return Err(Error::other(format!(
            "{} parts are more than the {PARTS} that a replay file may have",
            parts.len()
        )));
    }
    let listed = parts.iter().map(|part| Part { name: part.name.clone(), bytes: part.bytes }).collect();
    let name = muster_wire::clean(name, TEXT);
    let head = Head { kind, name, writer: muster_wire::clean(writer, TEXT), written_ms: at_ms, parts: listed };
    let mut bytes = Vec::new();
    ciborium::into_writer(&head, &mut bytes).map_err(Error::other)?;
    to.write_all(&MAGIC)?;
    to.write_all(&FORMAT.to_le_bytes())?;
    frame(to, (0, 0), &bytes)?;
    for (part, number) in parts.into_iter().zip(1..) {
        body(to, number, part)?;
    }
    Ok(())
}

fn body(to: &mut dyn Write, number: u32, part: Source<'_>) -> io::Result<()> {
    let Source { name, bytes, mut from } = part;
    let (mut left, mut buffer, mut nr) = (bytes, vec![0; CHUNK], 0);
    while left > 0 {
        let room = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        from.read_exact(&mut buffer[..room]).map_err(|why| match why.kind() {
            io::ErrorKind::UnexpectedEof => Error::other(format!("{name} became shorter while it was read")),
            _ => why,
        })?;
        frame(to, (number, nr), &buffer[..room])?;
        (left, nr) = (left - room as u64, nr + 1);
    }
    Ok(())
}

fn frame(to: &mut dyn Write, place: (u32, u64), bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(Error::other)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&checksum(place, bytes).to_le_bytes())?;
    to.write_all(bytes)
}
