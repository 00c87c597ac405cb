//! Memory that direct I/O accepts: aligned to a page.

use crate::pin::filled;
use crate::steps::Halt;

/// Largest logical block size in use.
const PAGE: usize = 4096;

/// A page-aligned buffer of incompressible bytes, so that a file system or disk that compresses gains nothing.
#[derive(Debug)]
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    pub(super) fn new(len: usize) -> Result<Self, Halt> {
        let mut memory = filled(len + PAGE, 0u8)?;
        let start = memory.as_ptr().align_offset(PAGE);
        for (word, at) in memory[start..start + len].chunks_exact_mut(8).zip(0..) {
            word.copy_from_slice(&super::kernel::mixed(at).to_le_bytes());
        }
        Ok(Self { memory, start, len })
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_starts_on_a_page_and_is_not_blank() {
        let mut buffer = Aligned::new(12_288).unwrap();
        assert_eq!(buffer.bytes().as_ptr() as usize % PAGE, 0);
        assert_eq!(buffer.bytes().len(), 12_288);
        let (first, second) = buffer.bytes().split_at(8);
        assert_ne!(first, &second[..8]);
    }
}
