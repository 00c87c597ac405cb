//! How threads wait for each other between operations.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Looks before a waiting thread offers its core to others.
const SPINS: u32 = 2_000;

/// All members meet here; a member that fails lets the others go.
#[derive(Debug)]
pub(super) struct Barrier {
    members: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    pub(super) const fn new(members: usize) -> Self {
        Self { members, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    /// Waits for the others. False: one of them failed, and nobody waits any more.
    pub(super) fn wait(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
        }
        let mut looks = 0;
        while self.round.load(Ordering::Acquire) == round && !self.is_broken() {
            looks += 1;
            if looks < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        !self.is_broken()
    }

    pub(super) fn give_up(&self) {
        self.broken.store(true, Ordering::Release);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_before_all_have_come_and_a_failure_frees_all() {
        let barrier = Barrier::new(3);
        let count = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=500 {
                        count.fetch_add(1, Ordering::SeqCst);
                        assert!(barrier.wait());
                        assert_eq!(count.load(Ordering::SeqCst), round * 3);
                        assert!(barrier.wait());
                    }
                });
            }
        });
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait());
            barrier.give_up();
            assert!(!waiting.join().unwrap());
        });
    }
}
