//! One running worker: its frames, and how it ended.

use std::io::Read;
use std::process::Child;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::{Decoder, Frame, Outcome};

/// Time that a killed worker has to be gone; one that is stuck in the driver stays.
const FAREWELL: Duration = Duration::from_secs(2);

/// What a worker lets the probe know.
pub(super) enum News {
    Said(Frame),
    /// Its output ended, for this reason if it was not by itself.
    Silent(Option<String>),
}

/// Reads a worker's frames until its output ends.
pub(super) fn hear(gpu: usize, child: &mut Child, post: Sender<(usize, News)>) {
    let Some(mut output) = child.stdout.take() else { return };
    thread::spawn(move || {
        let mut decoder = Decoder::new();
        let mut chunk = [0; 16 << 10];
        let why = loop {
            match output.read(&mut chunk) {
                Ok(0) => break None,
                Ok(count) => decoder.push(&chunk[..count]),
                Err(error) => break Some(error.to_string()),
            }
            loop {
                match decoder.frame() {
                    Ok(Some(frame)) => {
                        if post.send((gpu, News::Said(frame))).is_err() {
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        let _ = post.send((gpu, News::Silent(Some(error.to_string()))));
                        return;
                    }
                }
            }
        };
        let _ = post.send((gpu, News::Silent(why)));
    });
}

/// How long the worker was ready to work and got no core, since it started: the worst of its threads. Zero where the kernel does
/// not count. A GPU that hangs does not make its worker wait for a core; a busy node does.
pub(super) fn starved(child: &Child) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    let waited = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    };
    Duration::from_nanos(threads.filter_map(waited).max().unwrap_or(0))
}

/// How a worker ended that never said so; `at` is what it last began.
pub(super) fn post_mortem(child: &mut Child, why: Option<String>, at: &str) -> Outcome {
    let ended = match child.try_wait() {
        Ok(Some(status)) => status.to_string(),
        _ => "it closed its output".to_owned(),
    };
    Outcome::Failed(format!("the GPU worker ended early after '{at}': {}", why.unwrap_or(ended)))
}

/// Ends a worker, and says when even that does not work: the driver holds it.
pub(super) fn end(child: &mut Child) -> Option<&'static str> {
    let _ = child.kill();
    let begin = Instant::now();
    while begin.elapsed() < FAREWELL {
        if !matches!(child.try_wait(), Ok(None)) {
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
    Some("it cannot even be killed: the driver hangs")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::thread::Pid;

    use super::*;
    use crate::pin::Place;

    #[test]
    fn a_worker_that_gets_no_core_is_known_from_one_that_waits_by_itself() {
        let core = Place::every_core().remove(0);
        let shell = |script: &str| Command::new("sh").args(["-c", script]).spawn().unwrap();
        // Not by a shell: killed, it would leave its child behind, and that this program's output open.
        let sleeping = Command::new("sleep").arg("600").spawn().unwrap();
        let mut all = [shell("while :; do :; done"), shell("while :; do :; done"), sleeping];
        all.iter().for_each(|child| core.bind_thread(Some(Pid::from_child(child))).unwrap());
        let begun = Instant::now();
        while starved(&all[0]) < Duration::from_millis(100) && begun.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(20));
        }
        let (busy, waits) = (starved(&all[0]), starved(&all[2]));
        for child in &mut all {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(busy >= Duration::from_millis(100) && waits < busy / 2, "{busy:?} {waits:?}");
    }
}
