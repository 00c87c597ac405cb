//! How are nodes held while they are worked on? An allocation that ends with the console, however that ends.

use std::collections::HashSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use muster_wire::clean;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::step::program;
use super::{Options, host_list};

/// Seconds an allocation is waited for where nobody says otherwise.
const WAIT: u32 = 600;
/// Bytes kept of what salloc says.
const KEPT: usize = 4 << 10;

/// Waits for the end of its input, which comes with the end of the console, and ends salloc then, whether it waits or holds. Its own
/// outputs are closed, so that the end of those is the end of salloc.
const KEEPER: &str = r#""$@" </dev/null & p=$!; exec >/dev/null 2>&1; cat; kill $p 2>/dev/null; wait $p"#;
/// What salloc runs: says its job, and sleeps until it is ended.
const HOLDER: &str = r#"echo "muster-job $SLURM_JOB_ID"; exec sleep 2147483647"#;

/// What salloc says on its error output once the nodes are given. Our command runs only when salloc has seen them ready, for which it looks
/// at once, then after half a second, 1.5 s, 3 s and so on.
const GRANTED: &str = "Granted job allocation ";

/// Nodes that Slurm gave to a job of ours; it ends when this is dropped.
pub(super) struct Allocation {
    pub(super) job: String,
    pub(super) nodes: HashSet<String>,
    over: Arc<AtomicBool>,
    until: Instant,
    ready: watch::Receiver<bool>,
    words: Words,
    _hold: ChildStdin,
}

/// What salloc said on its error output.
#[derive(Clone, Default)]
struct Words(Arc<Mutex<Vec<u8>>>);

impl Allocation {
    /// Asks for all of `nodes` and waits until Slurm gives them. They may still be made [ready](Self::ready).
    pub(super) async fn of(nodes: &[String], options: &Options) -> Result<Self, String> {
        let mut keeper = program("sh");
        keeper.args(["-c", KEEPER, "sh", "salloc", "--job-name=muster", "--ntasks-per-node=1", "--mem=0", "--no-kill"]);
        keeper.arg(format!("--nodes={}", nodes.len()));
        let names: Vec<&str> = nodes.iter().map(String::as_str).collect();
        keeper.arg(format!("--nodelist={}", host_list(&names)));
        keeper.args(["--chdir=/", "--kill-command=TERM"]).args(options.words()).args(["sh", "-c", HOLDER]);
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |why: std::io::Error| format!("salloc cannot start: {why}");
        let mut child = keeper.spawn().map_err(failed)?;
        let none = || failed(std::io::ErrorKind::BrokenPipe.into());
        let hold = child.stdin.take().ok_or_else(none)?;
        let (words, over) = (Words::default(), Arc::new(AtomicBool::new(false)));
        let (job, mut told) = watch::channel(None);
        let (seen, ready) = watch::channel(false);
        tokio::spawn(listen(child.stderr.take().ok_or_else(none)?, job.clone(), words.clone()));
        tokio::spawn(follow(child.stdout.take().ok_or_else(none)?, (job, seen), over.clone()));
        let wait = options.wait.unwrap_or(WAIT);
        let until = Instant::now() + Duration::from_secs(wait.into());
        let granted = async { told.wait_for(Option::is_some).await.ok().and_then(|job| job.clone()) };
        match timeout_at(until, granted).await {
            Ok(Some(job)) => {
                Ok(Self { job, nodes: nodes.iter().cloned().collect(), over, until, ready, words, _hold: hold })
            }
            Ok(None) => Err(format!("salloc gave no nodes: {}", words.text())),
            Err(_) => Err(format!("Slurm gave no nodes within {wait} s (wait=SECONDS is how long): {}", words.text())),
        }
    }

    /// Waits until salloc has seen all nodes ready: their prolog is over.
    pub(super) async fn ready(&self) -> Result<(), String> {
        let mut ready = self.ready.clone();
        let why = match timeout_at(self.until, ready.wait_for(|ready| *ready)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(_)) => "Slurm took them back",
            Err(_) => "not all were ready in time (wait=SECONDS is how long)",
        };
        Err(format!("Slurm job {}: {why}: {}", self.job, self.words.text()))
    }

    /// Whether it ended, by another hand than ours.
    pub(super) fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

impl Words {
    fn add(&self, line: &str) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = KEPT.saturating_sub(words.len()).min(line.len());
        words.extend_from_slice(line.as_bytes().get(..room).unwrap_or_default());
        words.push(b'\n');
    }

    fn text(&self) -> String {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8_lossy(&words).into_owned();
        let lines = text.lines().map(|line| line.trim_start_matches("salloc: ").trim_start_matches("error: "));
        clean(&lines.collect::<Vec<_>>().join("; "), 300)
    }
}

/// Keeps what salloc says, and tells the job as soon as its nodes are given.
async fn listen(errors: ChildStderr, job: watch::Sender<Option<String>>, words: Words) {
    let mut lines = BufReader::new(errors).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let line = String::from_utf8_lossy(&line);
        words.add(&line);
        if let Some(id) = line.split_once(GRANTED).and_then(|(_, id)| id_of(id)) {
            job.send_replace(Some(id));
        }
    }
}

/// Tells the job, if nobody did, and that its nodes are ready; and notes the end of salloc.
async fn follow(
    output: ChildStdout,
    (job, ready): (watch::Sender<Option<String>>, watch::Sender<bool>),
    over: Arc<AtomicBool>,
) {
    let mut lines = BufReader::new(output.take(64 << 10)).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(id) = line.strip_prefix("muster-job ").and_then(id_of) {
            job.send_replace(Some(id));
            ready.send_replace(true);
        }
    }
    over.store(true, Ordering::Relaxed);
}

fn id_of(text: &str) -> Option<String> {
    let id = text.trim();
    (!id.is_empty() && id.bytes().all(|b| b.is_ascii_digit())).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_what_is_kept_is_seen_while_its_keeper_waits() {
        let mut keeper = program("sh");
        keeper.args(["-c", KEEPER, "sh", "sh", "-c", "echo salloc: error: no such reservation >&2; exit 1"]);
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = keeper.spawn().unwrap();
        let hold = child.stdin.take().unwrap();
        let (words, over) = (Words::default(), Arc::new(AtomicBool::new(false)));
        let (job, mut told) = watch::channel(None);
        let (seen, _ready) = watch::channel(false);
        tokio::spawn(listen(child.stderr.take().unwrap(), job.clone(), words.clone()));
        tokio::spawn(follow(child.stdout.take().unwrap(), (job, seen), over.clone()));
        let granted = tokio::time::timeout(Duration::from_secs(30), told.wait_for(Option::is_some)).await;
        assert!(granted.unwrap().is_err(), "nothing is granted, and that is known at once");
        assert_eq!((words.text().as_str(), over.load(Ordering::Relaxed)), ("no such reservation", true));
        drop(hold);
        child.wait().await.unwrap();
    }
}
