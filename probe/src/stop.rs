//! Whether the probe has to end, why, and since when. Benchmarks look at the flag; the first reason stays.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// What made the probe end before its work did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The console said so.
    Asked,
    /// The console is gone, or the system wants the process to end.
    Left,
    /// What arrived is not the contract.
    Refused,
}

#[derive(Debug)]
struct Order {
    cause: Cause,
    why: String,
    at: Instant,
}

/// The order to end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    flag: AtomicBool,
    order: OnceLock<Order>,
}

impl Stop {
    /// Orders the end. Later orders change nothing.
    pub(crate) fn ask(&self, cause: Cause, why: impl Into<String>) {
        self.order.get_or_init(|| Order { cause, why: why.into(), at: Instant::now() });
        self.flag.store(true, Ordering::Release);
    }

    /// The flag that benchmarks look at.
    pub(crate) const fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Whether the end was ordered.
    pub(crate) fn asked(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Why, once it was ordered.
    pub(crate) fn order(&self) -> Option<(Cause, &str)> {
        self.order.get().map(|order| (order.cause, order.why.as_str()))
    }

    /// Time since the order, zero without one.
    pub(crate) fn age(&self) -> Duration {
        self.order.get().map(|order| order.at.elapsed()).unwrap_or_default()
    }
}

static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    // A second signal means that nobody listened to the first.
    if SIGNAL.swap(signal, Ordering::Relaxed) != 0 {
        // SAFETY: _exit may be called from a signal handler.
        #[expect(unsafe_code, reason = "the only way out that is safe in a signal handler")]
        unsafe {
            libc::_exit(128 + signal)
        }
    }
}

/// Catches SIGTERM, SIGHUP and SIGINT from now on; [`signal`] tells.
pub(crate) fn catch_signals() {
    for number in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        // SAFETY: `action` is fully initialised, the handler only touches an atomic and calls _exit,
        // and the signal numbers are valid.
        #[expect(unsafe_code, reason = "std has no signal handlers")]
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(libc::c_int) = note;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(number, &raw const action, std::ptr::null_mut());
        }
    }
}

static WISH: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

extern "C" fn wish(_: libc::c_int) {
    WISH.store(true, Ordering::Relaxed);
}

/// Catches SIGUSR1 from now on; [`wished`] tells.
pub(crate) fn catch_wishes() {
    // SAFETY: `action` is fully initialised, the handler only touches an atomic, and the signal number is valid.
    #[expect(unsafe_code, reason = "std has no signal handlers")]
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int) = wish;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
}

/// Whether SIGUSR1 arrived since the last call.
pub(crate) fn wished() -> bool {
    WISH.swap(false, Ordering::Relaxed)
}

/// The signal that arrived, by name.
pub(crate) fn signal() -> Option<&'static str> {
    match SIGNAL.load(Ordering::Relaxed) {
        libc::SIGTERM => Some("SIGTERM"),
        libc::SIGHUP => Some("SIGHUP"),
        libc::SIGINT => Some("SIGINT"),
        _ => None,
    }
}

/// Its number, 0 when none arrived.
pub(crate) fn number() -> i32 {
    SIGNAL.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let stop = Stop::default();
        assert!(!stop.asked());
        assert_eq!(stop.order(), None);
        stop.ask(Cause::Left, "input ended");
        stop.ask(Cause::Asked, "stopped");
        assert!(stop.asked());
        assert_eq!(stop.order(), Some((Cause::Left, "input ended")));
    }
}
