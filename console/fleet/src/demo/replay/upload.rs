//! Did the probe arrive as it was sent? Answered from the bytes that came, then they are let go.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

/// Most bytes that an upload may have, and that it may unpack to.
pub(super) const MOST: usize = 256 << 20;

/// An upload that was looked at, kept once for all nodes: what is equal to it byte for byte has the same content.
#[derive(Debug)]
struct Known {
    sent: Vec<u8>,
    content: Content,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// Bytes.
    pub(super) size: usize,
    /// SHA-256, hexadecimal.
    pub(super) sha256: String,
}

/// Uploads that nodes looked at.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    last: Mutex<Option<Arc<Known>>>,
}

impl Uploads {
    /// A new upload, nothing of which has come.
    pub(super) fn arriving(&self) -> Arriving<'_> {
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Arriving { uploads: self, known, same: 0, own: Vec::new() }
    }
}

/// An upload that is under way. While it equals the last one, only its length is kept: ten thousand nodes would hold gigabytes of
/// the same bytes.
#[derive(Debug)]
pub(super) struct Arriving<'u> {
    uploads: &'u Uploads,
    known: Option<Arc<Known>>,
    /// How many bytes came that `known` begins with.
    same: usize,
    /// All that came, once it differs from `known`; empty before.
    own: Vec<u8>,
}

impl Arriving<'_> {
    /// How many bytes came.
    pub(super) fn len(&self) -> usize {
        self.same.max(self.own.len())
    }

    /// Takes what comes next.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let sent = self.known.as_ref().map_or(&[][..], |known| &known.sent);
        if self.own.is_empty() {
            if sent[self.same..].starts_with(bytes) {
                self.same += bytes.len();
                return;
            }
            self.own.extend_from_slice(&sent[..self.same]);
        }
        self.own.extend_from_slice(bytes);
    }

    /// What it holds, gunzipped first where it is `packed`; `None` where that fails.
    pub(super) fn content(mut self, packed: bool) -> Option<Content> {
        if self.own.is_empty()
            && let Some(known) = &self.known
        {
            if self.same == known.sent.len() {
                return Some(known.content.clone());
            }
            self.own.extend_from_slice(&known.sent[..self.same]);
        }
        let sent = self.own;
        let mut unpacked = Vec::new();
        let bytes = if packed {
            GzDecoder::new(sent.as_slice()).take(MOST as u64).read_to_end(&mut unpacked).ok()?;
            &unpacked
        } else {
            &sent
        };
        let content = Content { size: bytes.len(), sha256: hex(&Sha256::digest(bytes)) };
        let known = Known { sent, content: content.clone() };
        *self.uploads.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(known));
        Some(content)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn every_upload_is_answered_for_what_it_holds() {
        let uploads = Uploads::default();
        let packed = |text: &[u8]| {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        };
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        // In pieces of every size, after an equal upload and after another one.
        for piece in 1..30 {
            let content = |sent: &[u8], packed| {
                let mut arriving = uploads.arriving();
                sent.chunks(piece).for_each(|bytes| arriving.push(bytes));
                assert_eq!(arriving.len(), sent.len());
                arriving.content(packed)
            };
            for _ in 0..2 {
                let content = content(&packed(b"abc"), true).unwrap();
                assert_eq!((content.size, content.sha256.as_str()), (3, abc));
            }
            let mut damaged = packed(b"abc");
            damaged[12] ^= 1;
            assert_ne!(content(&damaged, true).map(|content| content.sha256), Some(abc.to_owned()));
            assert_eq!(content(b"abc", false).unwrap().sha256, abc);
            assert_ne!(content(b"abd", false).unwrap().sha256, abc);
            let cut = content(b"ab", false).unwrap();
            assert_eq!((cut.size, cut.sha256 == abc), (2, false));
            assert_eq!(content(b"abc", false).unwrap().sha256, abc);
            assert_eq!(content(b"", false).unwrap().size, 0);
        }
    }
}
