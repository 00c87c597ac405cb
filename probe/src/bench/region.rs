//! Memory of one NUMA node, in the largest pages to be had, and which pages those are.

use std::fmt;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::steps::Halt;
use crate::topology;

const HUGE: usize = 2 << 20;
/// Share of a region that must lie in huge pages for it to count as huge.
const MOSTLY: f64 = 0.9;

/// What the addresses of a region are translated with. Part of a metric's identity: a chase with small pages
/// measures page walks as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Set aside by the administrator.
    Reserved,
    /// Put together by the kernel.
    Transparent,
    /// 4 KiB.
    Small,
}

impl Pages {
    /// The engine of what was measured with them.
    pub(super) const fn engine(self) -> &'static str {
        match self {
            Self::Reserved => "own-hugetlb",
            Self::Transparent => "own-thp",
            Self::Small => "own-4k",
        }
    }
}

/// Machine words of one node's memory, zero at first.
pub(super) struct Region {
    start: NonNull<usize>,
    bytes: usize,
    pub(super) pages: Pages,
}

// SAFETY: a region owns its mapping alone and gives out its words as ordinary borrows.
#[expect(unsafe_code, reason = "a raw mapping is neither Send nor Sync by itself")]
unsafe impl Send for Region {}
// SAFETY: as above; words are only changed through `&mut`.
#[expect(unsafe_code, reason = "a raw mapping is neither Send nor Sync by itself")]
unsafe impl Sync for Region {}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region of {} bytes, {:?}", self.bytes, self.pages)
    }
}

impl Region {
    /// At least `bytes` on `node` (anywhere, without one), every page of it touched.
    pub(super) fn new(bytes: usize, node: Option<usize>) -> Result<Self, Halt> {
        let bytes = bytes.max(1).next_multiple_of(HUGE);
        let set_aside = node.map_or(0, topology::reserved_huge_pages);
        // Others may be taking them too: a page that is gone at the first touch would be the end of the probe.
        if set_aside >= 2 * bytes / HUGE
            && let Ok(region) = Self::map(bytes, node, Pages::Reserved)
            && region.populated()
        {
            return Ok(region);
        }
        let mut region = Self::map(bytes, node, Pages::Transparent)?;
        region.words_mut().iter_mut().step_by(4096 / size_of::<usize>()).for_each(|word| *word = 0);
        if (region.in_huge_pages() as f64) < MOSTLY * bytes as f64 {
            region.pages = Pages::Small;
        }
        Ok(region)
    }

    #[expect(unsafe_code, reason = "maps memory")]
    fn map(bytes: usize, node: Option<usize>, pages: Pages) -> Result<Self, Halt> {
        let huge = pages == Pages::Reserved;
        let flags = MapFlags::PRIVATE | if huge { MapFlags::HUGETLB } else { MapFlags::empty() };
        // An address that is a multiple of a huge page: the part before it is given back.
        let slack = if huge { 0 } else { HUGE };
        let no_memory = |e| Halt::Failed(format!("no memory for {bytes} bytes: {e}"));
        // SAFETY: a new private mapping at an address of the kernel's choice touches nobody's memory.
        let mapped =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes + slack, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let mapped = mapped.map_err(no_memory)?.cast::<u8>();
        let skip = mapped.align_offset(HUGE).min(slack);
        let start = mapped.wrapping_add(skip);
        // SAFETY: both ranges lie in the mapping just made, before and behind what is kept; sizes are whole pages.
        let _kept_on_failure = unsafe {
            let before = if skip > 0 { munmap(mapped.cast(), skip) } else { Ok(()) };
            before.and(if slack > skip { munmap(start.wrapping_add(bytes).cast(), slack - skip) } else { Ok(()) })
        };
        let start = NonNull::new(start.cast::<usize>()).ok_or_else(|| Halt::Failed("a mapping at zero".into()))?;
        let region = Self { start, bytes, pages };
        if let Some(node) = node {
            region.bind(node)?;
        }
        // SAFETY: the range is this mapping; the advice changes no content, and being refused is fine.
        let _refused = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        Ok(region)
    }

    #[expect(unsafe_code, reason = "mbind takes addresses")]
    fn bind(&self, node: usize) -> Result<(), Halt> {
        const BITS: usize = usize::BITS as usize;
        let mut mask = [0usize; 16];
        let Some(word) = mask.get_mut(node / BITS) else { return Err(Halt::NotRun(format!("no NUMA node {node}"))) };
        *word |= 1 << (node % BITS);
        let (policy, flags) = (libc::MPOL_BIND, 0);
        // SAFETY: the range is our own mapping, and the mask is as long as is said (the kernel takes one bit off).
        let done = unsafe {
            libc::syscall(libc::SYS_mbind, self.start.as_ptr(), self.bytes, policy, mask.as_ptr(), 16 * BITS + 1, flags)
        };
        if done == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            // A sandbox that forbids mbind on a machine with one node takes nothing away.
            Some(libc::EPERM | libc::ENOSYS) if topology::numa_nodes().len() == 1 => Ok(()),
            Some(libc::EPERM | libc::ENOSYS) => {
                Err(Halt::Denied(format!("cannot bind memory to node {node}: {error}")))
            }
            _ => Err(Halt::Failed(format!("cannot bind memory to node {node}: {error}"))),
        }
    }

    /// Whether every page could be had now; kernels before 5.14 cannot say.
    #[expect(unsafe_code, reason = "madvise takes an address")]
    fn populated(&self) -> bool {
        const POPULATE_WRITE: libc::c_int = 23;
        // SAFETY: the range is our own mapping.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, POPULATE_WRITE) == 0 }
    }

    /// Bytes of this mapping that the kernel has put into huge pages.
    fn in_huge_pages(&self) -> usize {
        let (from, to) = (self.start.as_ptr() as usize, self.start.as_ptr() as usize + self.bytes);
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        huge_bytes(&maps, from, to)
    }

    /// The words.
    #[expect(unsafe_code, reason = "a mapping is borrowed as a slice")]
    pub(super) fn words(&self) -> &[usize] {
        // SAFETY: the mapping is readable, initialised (zero pages), aligned, lives as long as `self`, and is changed
        // only through `words_mut`, which borrows `self` alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes / size_of::<usize>()) }
    }

    /// The words, to be changed.
    #[expect(unsafe_code, reason = "a mapping is borrowed as a slice")]
    pub(super) fn words_mut(&mut self) -> &mut [usize] {
        // SAFETY: as in `words`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes / size_of::<usize>()) }
    }
}

impl Drop for Region {
    #[expect(unsafe_code, reason = "unmaps memory")]
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no borrow of it outlives `self`.
        let _nothing_to_do_about_it = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// `AnonHugePages` of the mappings that overlap `from..to`; neighbours merge into one, which then counts as a whole.
fn huge_bytes(maps: &str, from: usize, to: usize) -> usize {
    let range = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
    };
    let mut size = None;
    let mut total = 0;
    for line in maps.lines() {
        if let Some(range) = range(line) {
            size = (range.start < to && from < range.end).then_some(range.len());
        } else if let (Some(size), Some(rest)) = (size, line.strip_prefix("AnonHugePages:")) {
            let huge = rest.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) << 10;
            total += (huge as f64 / size as f64 * size.min(to - from) as f64) as usize;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_zero_aligned_and_can_be_written_to_its_last_word() {
        for node in [None, topology::numa_nodes()[0].id] {
            let mut region = Region::new(3 << 20, node).unwrap();
            assert_eq!(region.words().len() * 8, 4 << 20);
            assert_eq!(region.words().as_ptr() as usize % HUGE, 0);
            assert!(region.words().iter().all(|word| *word == 0));
            *region.words_mut().last_mut().unwrap() = 7;
            assert_eq!(region.words().iter().sum::<usize>(), 7);
        }
    }

    #[test]
    fn a_node_that_does_not_exist_is_a_halt() {
        assert!(matches!(Region::new(1, Some(1023)), Err(Halt::Failed(_))));
        assert!(matches!(Region::new(1, Some(9999)), Err(Halt::NotRun(_))));
    }

    #[test]
    fn huge_pages_are_counted_in_this_mapping_only() {
        let maps = "7f00000000-7f00400000 rw-p 0 00:00 0 \nSize: 4096 kB\nAnonHugePages:      2048 kB\n\
                    7f10000000-7f10200000 rw-p 0 00:00 0 \nAnonHugePages:      2048 kB\n";
        assert_eq!(huge_bytes(maps, 0x7f_0000_0000, 0x7f_0040_0000), 2 << 20);
        assert_eq!(huge_bytes(maps, 0x7f_0020_0000, 0x7f_0040_0000), 1 << 20);
        assert_eq!(huge_bytes(maps, 0x7f_2000_0000, 0x7f_2020_0000), 0);
    }
}
