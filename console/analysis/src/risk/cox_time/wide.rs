//! A computation of the network whose inner functions are all inlined into one body, so that the compiler vectorises
//! its loops. Compiling it once more for wider vectors would make it about 3 times faster, and take `unsafe`, of which
//! the console has none.

/// A computation whose inner functions are all inlined into it.
pub(super) trait Work {
    /// What it gives.
    type Output;

    /// Does it. Implementations and what they call are `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// Does `work`.
pub(super) fn widely<W: Work>(work: W) -> W::Output {
    work.run()
}
