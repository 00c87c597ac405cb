//! How long may a word of a JSON document be?
//!
//! A reader of JSON keeps a string or a number until its end, so one that does not end would fill the memory.

use std::io::{self, Read};

/// Most bytes of a string or a number.
const LONGEST: usize = 64 << 10;

/// A stream of JSON that fails at a word that is too long.
pub(super) struct Words<R> {
    input: R,
    in_string: bool,
    escaped: bool,
    length: usize,
}

impl<R: Read> Words<R> {
    pub(super) const fn of(input: R) -> Self {
        Self { input, in_string: false, escaped: false, length: 0 }
    }

    const fn see(&mut self, byte: u8) {
        self.length += 1;
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => (self.in_string, self.length) = (!self.in_string, 0),
            b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if !self.in_string => {
                self.length = 0
            }
            _ => {}
        }
    }
}

impl<R: Read> Read for Words<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        for &byte in &buffer[..read] {
            self.see(byte);
            if self.length > LONGEST {
                return Err(io::Error::other(format!("a string or number of more than {LONGEST} bytes")));
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_does_not_end_is_refused_and_many_words_are_not() {
        let read = |text: String| Words::of(text.as_bytes()).read_to_end(&mut Vec::new()).is_ok();
        assert!(read("[\"a\\\"b\", 1.5]".repeat(20_000)));
        assert!(read(" ".repeat(100_000)));
        assert!(!read(format!("[\"{}", "a".repeat(70_000))));
        assert!(!read(format!("[\"{}", "\\\"".repeat(70_000))), "escaped quotes do not end a string");
        assert!(!read("9".repeat(70_000)));
    }
}
