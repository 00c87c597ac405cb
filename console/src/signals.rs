//! Signals that end a run or the console: the first one ends it in order and its results are kept, the second one ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::exit::{HUNG_UP, INTERRUPTED, TERMINATED};
use crate::out;

/// Which signal came first.
#[derive(Clone, Debug, Default)]
pub struct Signals(Arc<AtomicU8>);

impl Signals {
    /// Exit code of the first signal; `None` while none came.
    #[must_use]
    pub fn code(&self) -> Option<u8> {
        Some(self.0.load(Ordering::Relaxed)).filter(|code| *code > 0)
    }

    /// Ends by `end`, which leaves the terminal to whoever comes next, when the first signal comes; the second one quits at once.
    pub fn end(&self, end: CancellationToken) -> JoinHandle<()> {
        let first = self.0.clone();
        tokio::spawn(async move {
            let mut sources = Sources::open();
            first.store(sources.next().await, Ordering::Relaxed);
            end.cancel();
            std::process::exit(i32::from(sources.next().await));
        })
    }

    /// Cancels by `cancel` when the first signal comes. Aborting the task stops listening.
    pub fn listen(&self, cancel: CancellationToken) -> JoinHandle<()> {
        let first = self.0.clone();
        tokio::spawn(async move {
            let mut sources = Sources::open();
            let code = sources.next().await;
            first.store(code, Ordering::Relaxed);
            out::note("\ncancelling: stopping probes; results so far are kept (a second signal quits at once)");
            cancel.cancel();
            std::process::exit(i32::from(sources.next().await));
        })
    }
}

/// The signals that are listened to, each with its exit code.
struct Sources(Vec<(Signal, u8)>);

impl Sources {
    fn open() -> Self {
        let hangup = SignalKind::hangup();
        let kinds = [(SignalKind::interrupt(), INTERRUPTED), (SignalKind::terminate(), TERMINATED), (hangup, HUNG_UP)];
        // Under nohup(1) a run outlives its terminal, and shall.
        let wanted = kinds.into_iter().filter(|(kind, _)| *kind != hangup || !is_ignored(hangup));
        Self(wanted.filter_map(|(kind, code)| Some((signal(kind).ok()?, code))).collect())
    }

    async fn next(&mut self) -> u8 {
        std::future::poll_fn(|context| {
            for (source, code) in &mut self.0 {
                if source.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*code);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

/// Whether this process was started with `kind` ignored, by what the kernel says of it.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}
