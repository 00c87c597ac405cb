//! Device memory: which bytes belong to whom, what an access outside does, which cells keep a wrong bit, and who reaches
//! the memory of another device.

use crate::link::Link;
use crate::trap::Why;

/// First address that the first device hands out.
pub const BASE: u64 = 0x7000_0000_0000;
/// Addresses of one device; those of the next follow.
const SPAN: u64 = 1 << 36;
const ALIGN: u64 = 512;
/// What nobody wrote yet.
const FRESH: u8 = 0xa5;

#[derive(Debug)]
struct Allocation {
    at: u64,
    bytes: Vec<u8>,
}

/// A bit of one byte that reads the same whatever was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Bytes from the device's first address.
    pub offset: u64,
    /// 0 to 7.
    pub bit: u8,
    /// What it reads.
    pub one: bool,
}

/// What kernels did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions of PTX, each once for a warp, or for each of its parts where these go different ways.
    pub instructions: u64,
    /// Bytes that were read from global memory, caches left aside.
    pub loaded: u64,
    /// Bytes that were written there.
    pub stored: u64,
}

impl Counts {
    /// Bytes that were read and written.
    #[must_use]
    pub const fn moved(&self) -> u64 {
        self.loaded + self.stored
    }
}

/// Memory of one device.
#[derive(Debug, Default)]
pub struct Memory {
    base: u64,
    /// In address order, with a gap of at least [`ALIGN`] after each.
    allocations: Vec<Allocation>,
    capacity: u64,
    stuck: Vec<Stuck>,
    last: usize,
    /// What kernels did since the last look.
    pub(crate) counts: Counts,
    /// Other devices' memory while a kernel of this one runs.
    pub(crate) peers: Vec<Peer>,
}

/// Another device's memory, and the way to it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) memory: Memory,
    /// Whether peer access was enabled.
    pub(crate) open: bool,
    /// From that device to this one.
    pub(crate) inward: Link,
    /// From this device to that one.
    pub(crate) outward: Link,
    /// What is read arrives here.
    pub(crate) arrived: Vec<u8>,
}

impl Memory {
    /// Empty memory of `capacity` bytes of the device number `device`.
    #[must_use]
    pub fn new(device: usize, capacity: u64, stuck: Vec<Stuck>) -> Self {
        Self { base: BASE + device as u64 * SPAN, capacity, stuck, ..Self::default() }
    }

    /// Number of the device whose memory begins below `at`.
    #[must_use]
    pub fn device_of(at: u64) -> Option<usize> {
        at.checked_sub(BASE).map(|offset| (offset / SPAN) as usize)
    }

    /// Bytes free and in all.
    #[must_use]
    pub fn room(&self) -> (u64, u64) {
        let used: u64 = self.allocations.iter().map(|a| a.bytes.len() as u64).sum();
        (self.capacity.saturating_sub(used), self.capacity)
    }

    /// Address of `size` fresh bytes, in the first gap that holds them; nothing when memory is short.
    pub fn allocate(&mut self, size: u64) -> Option<u64> {
        if size == 0 || size > self.room().0 {
            return None;
        }
        let (mut at, mut slot) = (self.base, 0);
        for (next, held) in self.allocations.iter().enumerate() {
            if held.at >= at + size + ALIGN {
                break;
            }
            at = (held.at + held.bytes.len() as u64 + ALIGN).next_multiple_of(ALIGN);
            slot = next + 1;
        }
        self.allocations.insert(slot, Allocation { at, bytes: vec![FRESH; usize::try_from(size).ok()?] });
        Some(at)
    }

    /// Gives an allocation back; false when none begins there.
    pub fn free(&mut self, at: u64) -> bool {
        let found = self.allocations.iter().position(|a| a.at == at);
        found.map(|index| self.allocations.remove(index)).is_some()
    }

    fn find(&mut self, at: u64, size: usize) -> Result<(usize, usize), Why> {
        let fits = |a: &Allocation| a.at <= at && at + size as u64 <= a.at + a.bytes.len() as u64;
        if !self.allocations.get(self.last).is_some_and(fits) {
            let found = self.allocations.iter().position(fits);
            self.last = found.ok_or(Why::Outside { space: "global", at, size })?;
        }
        Ok((self.last, (at - self.allocations[self.last].at) as usize))
    }

    /// The bytes at `at`.
    ///
    /// # Errors
    /// When they do not lie in one allocation.
    pub fn read(&mut self, at: u64, size: usize) -> Result<&[u8], Why> {
        if let Some(peer) = self.elsewhere(at) {
            return self.peers[peer].read(at, size);
        }
        let (index, from) = self.find(at, size)?;
        let bytes = &mut self.allocations[index].bytes[from..from + size];
        for stuck in &self.stuck {
            let cell = (self.base + stuck.offset).checked_sub(at).and_then(|i| bytes.get_mut(i as usize));
            if let Some(cell) = cell {
                *cell = if stuck.one { *cell | 1 << stuck.bit } else { *cell & !(1 << stuck.bit) };
            }
        }
        Ok(bytes)
    }

    /// Writes `bytes` at `at`.
    ///
    /// # Errors
    /// When they do not lie in one allocation.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Why> {
        if let Some(peer) = self.elsewhere(at) {
            return self.peers[peer].write(at, bytes);
        }
        let (index, from) = self.find(at, bytes.len())?;
        self.allocations[index].bytes[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn elsewhere(&self, at: u64) -> Option<usize> {
        let base = |memory: &Self| memory.base <= at && at < memory.base + SPAN;
        if base(self) { None } else { self.peers.iter().position(|peer| base(&peer.memory)) }
    }
}

impl Peer {
    fn read(&mut self, at: u64, size: usize) -> Result<&[u8], Why> {
        if !self.open {
            return Err(Why::Closed { at });
        }
        self.arrived.clear();
        self.arrived.extend_from_slice(self.memory.read(at, size)?);
        self.inward.carry(&mut self.arrived);
        Ok(&self.arrived)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Why> {
        if !self.open {
            return Err(Why::Closed { at });
        }
        let mut bytes = bytes.to_vec();
        self.outward.carry(&mut bytes);
        self.memory.write(at, &bytes)
    }
}

/// Little-endian bytes as a number; at most eight.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    match *bytes {
        [one] => one.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        _ => bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    }
}
