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
    /// What `sent` holds, gunzipped first where it is `packed`; `None` where that fails.
    pub(super) fn content(&self, sent: Vec<u8>, packed: bool) -> Option<Content> {
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| known.sent == sent) {
            return Some(known.content.clone());
        }
        let mut unpacked = Vec::new();
        let bytes = if packed {
            GzDecoder::new(sent.as_slice()).take(MOST as u64).read_to_end(&mut unpacked).ok()?;
            &unpacked
        } else {
            &sent
        };
        let content = Content { size: bytes.len(), sha256: hex(&Sha256::digest(bytes)) };
        let known = Known { sent, content: content.clone() };
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(known));
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
        for _ in 0..2 {
            let content = uploads.content(packed(b"abc"), true).unwrap();
            assert_eq!((content.size, content.sha256.as_str()), (3, abc));
        }
        let mut damaged = packed(b"abc");
        damaged[12] ^= 1;
        assert_ne!(uploads.content(damaged, true).map(|content| content.sha256), Some(abc.to_owned()));
        assert_eq!(uploads.content(b"abc".to_vec(), false).unwrap().sha256, abc);
        assert_ne!(uploads.content(b"abd".to_vec(), false).unwrap().sha256, abc);
    }
}
