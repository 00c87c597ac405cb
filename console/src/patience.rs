//! Says on standard error that something takes its time.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::out;

/// Nobody wonders before.
const SILENT: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);

/// From its making until it is dropped: silent for two seconds, then what is done and for how long already. One line where
/// standard error is a file.
#[derive(Debug)]
pub struct Patience {
    going: Option<Sender<()>>,
    telling: Option<JoinHandle<()>>,
}

impl Patience {
    /// About `what`, such as `judging 3,000 nodes`.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        let (going, gone) = mpsc::channel();
        let what = what.into();
        Self { going: Some(going), telling: Some(std::thread::spawn(move || tell(&what, &gone))) }
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.going = None;
        let _ = self.telling.take().map(JoinHandle::join);
    }
}

fn tell(what: &str, gone: &Receiver<()>) {
    let begun = Instant::now();
    let waits = |long| gone.recv_timeout(long) == Err(RecvTimeoutError::Timeout);
    if !waits(SILENT) {
        return;
    }
    if !stderr().is_terminal() {
        out::note(format_args!("{what}: this takes a while"));
        return;
    }
    loop {
        out::part(format_args!("\r{what}: {} s ", begun.elapsed().as_secs()));
        if !waits(SECOND) {
            break;
        }
    }
    // Back to an empty line.
    out::part("\r\x1b[2K");
}
