//! How does the network use wide vectors on processors that have them? Its loops are compiled twice.
//!
//! Rust never merges or reorders float operations, so both versions give the same bits and a model does not depend
//! on the machine that trained it. The wide one is about 3 times faster.

/// A computation whose inner functions are all inlined into it.
pub(super) trait Work {
    /// What it gives.
    type Output;

    /// Does it. Implementations and what they call are `#[inline(always)]`, else they stay narrow.
    fn run(self) -> Self::Output;
}

/// Does `work` with the widest vectors there are.
#[cfg(target_arch = "x86_64")]
pub(super) fn widely<W: Work>(work: W) -> W::Output {
    #[target_feature(enable = "avx2")]
    fn with_avx2<W: Work>(work: W) -> W::Output {
        work.run()
    }
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "calls a function compiled for a processor feature")]
        // SAFETY: the processor has just said that it has the feature.
        return unsafe { with_avx2(work) };
    }
    work.run()
}

/// Does `work`; other architectures have their vectors switched on from the start.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn widely<W: Work>(work: W) -> W::Output {
    work.run()
}
