//! Logs of ranks that end while they are looked at: what they say last comes after their log was read.

use std::fs::File;
use std::io::Seek;

use super::files::{PATIENCE, Part};
use super::open::{ends, within};
use super::send::Send;

/// A log that was read, and is held open: with its process, the way to it goes.
pub(super) struct Held {
    pub(super) pid: u32,
    /// As what it was sent.
    pub(super) name: String,
    pub(super) file: File,
    /// Bytes that it had then.
    pub(super) length: u64,
    pub(super) part: Part,
}

impl Held {
    /// Sends it again, under the same name, if it has grown. True where its storage did not answer.
    pub(super) fn send_again(self, send: &mut Send<'_>) -> bool {
        let Self { name, mut file, length, part, .. } = self;
        let Part::Ends(head, tail) = part else { return false };
        let read = move || -> std::io::Result<Option<Vec<u8>>> {
            let now = file.metadata()?.len();
            file.rewind()?;
            if now == length { Ok(None) } else { ends(file, now, head, tail).map(Some) }
        };
        match within(PATIENCE, read) {
            None => true,
            Some(Ok(Some(bytes))) => {
                send.file(&name, &bytes);
                false
            }
            Some(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use muster_wire::Frame;

    use super::*;

    #[test]
    fn what_a_rank_says_last_is_sent_and_a_log_that_did_not_grow_is_not_sent_twice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rank_3.log");
        std::fs::write(&path, "step 1\n").unwrap();
        let hold = || {
            let mut file = File::open(&path).unwrap();
            file.read_to_string(&mut String::new()).unwrap();
            Held { pid: 7, name: "log/7.out".into(), file, length: 7, part: Part::Ends(100, 100) }
        };
        let mut texts = Vec::new();
        let mut say = |frame| {
            if let Frame::Chunk(chunk) = frame {
                texts.push(String::from_utf8(chunk.bytes).unwrap());
            }
        };
        let mut send = Send::new(1 << 20, &mut say);
        assert!(!hold().send_again(&mut send));
        let held = hold();
        std::fs::File::options().append(true).open(&path).unwrap().write_all(b"ValueError\n").unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!held.send_again(&mut send));
        drop(send);
        assert_eq!(texts, ["step 1\nValueError\n"]);
    }
}
