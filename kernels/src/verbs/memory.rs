//! Memory that an adapter reads and writes: made once, told to the adapter, never moved.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

use super::layout::{LOCAL_WRITE, REMOTE_WRITE};
use super::library::Adapter;
use crate::bench::{compare, fill};
use crate::driver::{Buffer, Gpu, Trouble};
use crate::twin;

const SEED: u32 = 0x1b10;
/// As the kernel maps memory.
const PAGE: usize = 4096;
/// Most bytes that one block of a kernel compares.
const BLOCK: usize = 2 << 20;

/// Two regions of the same length: one that is read and one that is written.
pub(super) trait Regions {
    /// Bytes of each.
    fn bytes(&self) -> usize;
    /// Where they begin for the adapter: the one that is read, the one that is written.
    fn addresses(&self) -> (u64, u64);
    /// The adapter's keys for them.
    fn keys(&self) -> (u32, u32);
    /// Makes the first `bytes` of what is written something else than what is read.
    fn clear(&mut self, bytes: usize) -> Result<(), Trouble>;
    /// Compares the first `bytes` of both, word by word.
    ///
    /// # Errors
    /// When they differ, with how many words and which bits.
    fn compare(&mut self, bytes: usize) -> Result<(), Trouble>;
}

/// Both in memory of the host.
pub(super) struct Host {
    from: Block,
    to: Block,
}

impl Host {
    /// Two times `bytes`, a multiple of the size of a page, that `adapter` may read and write. Pages come from the NUMA node of
    /// the thread that calls.
    pub(super) fn new(adapter: &Adapter, bytes: usize) -> Result<Self, Trouble> {
        let (mut from, to) = (Block::new(adapter, bytes)?, Block::new(adapter, bytes)?);
        for (word, value) in from.words().iter_mut().enumerate() {
            *value = twin::pattern(SEED, word as u64);
        }
        Ok(Self { from, to })
    }
}

impl Regions for Host {
    fn bytes(&self) -> usize {
        self.from.words * 4
    }

    fn addresses(&self) -> (u64, u64) {
        (self.from.at as u64, self.to.at as u64)
    }

    fn keys(&self) -> (u32, u32) {
        (self.from.keys.0, self.to.keys.1)
    }

    fn clear(&mut self, bytes: usize) -> Result<(), Trouble> {
        self.to.words()[..bytes / 4].fill(0);
        Ok(())
    }

    fn compare(&mut self, bytes: usize) -> Result<(), Trouble> {
        equal(&self.from.words()[..bytes / 4], &self.to.words()[..bytes / 4])
    }
}

/// Fails where a word is not what was sent.
fn equal(sent: &[u32], arrived: &[u32]) -> Result<(), Trouble> {
    // One comparison of memory; words are looked at only where it finds a difference.
    if sent == arrived {
        return Ok(());
    }
    let bits = sent.iter().zip(arrived).map(|(sent, arrived)| sent ^ arrived);
    let differ: Vec<(usize, u32)> = bits.enumerate().filter(|(_, bits)| *bits != 0).collect();
    let first = differ.first().map_or(0, |(word, _)| *word);
    Err(wrong((differ.len(), sent.len()), first, differ.iter().fold(0, |all, (_, bits)| all | bits)))
}

fn wrong((count, all): (usize, usize), first: usize, bits: u32) -> Trouble {
    Trouble::Failed(format!("{count} of {all} words arrived wrong, the first is {first}, bits {bits:#010x}"))
}

/// Memory that stays where it is.
struct Block {
    at: *mut u32,
    words: usize,
    keys: (u32, u32),
}

impl Block {
    fn new(adapter: &Adapter, bytes: usize) -> Result<Self, Trouble> {
        let layout = Layout::from_size_align(bytes.next_multiple_of(PAGE).max(PAGE), PAGE);
        let layout = layout.map_err(|error| Trouble::Failed(error.to_string()))?;
        // SAFETY: the layout is not empty.
        #[expect(unsafe_code, reason = "memory that stays where it is")]
        let at = unsafe { alloc_zeroed(layout) }.cast::<u32>();
        if at.is_null() {
            handle_alloc_error(layout);
        }
        let mut block = Self { at, words: bytes / 4, keys: (0, 0) };
        // Pages that nobody wrote to would come where the adapter's driver touches them first.
        block.words().fill(0);
        block.keys = adapter.register(at.cast(), bytes, LOCAL_WRITE | REMOTE_WRITE)?;
        Ok(block)
    }

    /// All of its words. The caller has no write under way.
    fn words(&mut self) -> &mut [u32] {
        // SAFETY: allocated with this length, initialised, borrowed from `self`; the adapter writes only while a write is waited for.
        #[expect(unsafe_code, reason = "memory that stays where it is")]
        unsafe {
            std::slice::from_raw_parts_mut(self.at, self.words)
        }
    }
}

/// Tells the adapter of a buffer; its keys.
type Register<'a> = &'a dyn Fn(&Buffer) -> Result<(u32, u32), Trouble>;

/// Both in memory of one GPU.
pub(super) struct OnGpu<'a> {
    gpu: &'a Gpu,
    from: Buffer,
    to: Buffer,
    keys: (u32, u32),
    /// By what the adapter reaches it.
    pub(super) way: &'static str,
}

impl<'a> OnGpu<'a> {
    /// Two times `bytes` on `gpu`, by dma-buf or else by NVIDIA's kernel module for adapters.
    ///
    /// # Errors
    /// `NotRun` where neither works, with what each said.
    pub(super) fn new(adapter: &Adapter, gpu: &'a Gpu, bytes: usize) -> Result<Self, Trouble> {
        let (from, to) = (gpu.buffer(bytes)?, gpu.buffer(bytes)?);
        fill(gpu, &from, SEED)?;
        gpu.wait()?;
        let shared = |buffer: &Buffer| {
            let file = gpu.dma_buf(buffer)?;
            adapter.register_shared(&file, (buffer.address(), buffer.bytes), LOCAL_WRITE | REMOTE_WRITE)
        };
        let direct = |buffer: &Buffer| {
            let at = buffer.address() as *mut std::ffi::c_void;
            adapter.register(at, buffer.bytes, LOCAL_WRITE | REMOTE_WRITE)
        };
        let both = |register: Register<'_>| Ok::<_, Trouble>((register(&from)?.0, register(&to)?.1));
        let (keys, way) = match both(&shared) {
            Ok(keys) => (keys, "dma-buf"),
            Err(why) => match both(&direct) {
                Ok(keys) => (keys, "nvidia-peermem"),
                Err(other) => return Err(Trouble::NotRun(format!("dma-buf: {why}; nvidia_peermem: {other}"))),
            },
        };
        Ok(Self { gpu, from, to, keys, way })
    }
}

impl Regions for OnGpu<'_> {
    fn bytes(&self) -> usize {
        self.from.bytes
    }

    fn addresses(&self) -> (u64, u64) {
        (self.from.address(), self.to.address())
    }

    fn keys(&self) -> (u32, u32) {
        self.keys
    }

    fn clear(&mut self, _bytes: usize) -> Result<(), Trouble> {
        fill(self.gpu, &self.to, !SEED)?;
        self.gpu.wait()
    }

    fn compare(&mut self, bytes: usize) -> Result<(), Trouble> {
        let block = bytes.min(BLOCK);
        let found = compare(self.gpu, (self.to.address(), block), bytes / block, SEED)?;
        let count: u32 = found.iter().map(|record| record[0]).sum();
        let Some((at, first)) = found.iter().enumerate().find(|(_, record)| record[0] > 0) else { return Ok(()) };
        let bits = found.iter().fold(0, |all, record| all | record[1]);
        Err(wrong((count as usize, bytes / 4), at * block / 4 + first[2] as usize, bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_arrived_wrong_is_named_with_its_bits() {
        let sent: Vec<u32> = (0..64).map(|word| twin::pattern(SEED, word)).collect();
        let mut arrived = sent.clone();
        assert_eq!(equal(&sent, &arrived), Ok(()));
        (arrived[7], arrived[9]) = (arrived[7] ^ 0x100, arrived[9] ^ 1);
        let Err(Trouble::Failed(why)) = equal(&sent, &arrived) else { panic!() };
        assert_eq!(why, "2 of 64 words arrived wrong, the first is 7, bits 0x00000101");
    }
}
