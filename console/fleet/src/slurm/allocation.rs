//! How are nodes held while they are worked on? An allocation that ends with the console, however that ends.

use std::collections::HashSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use muster_wire::clean;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::step::program;
use super::{Options, host_list};

/// Seconds an allocation is waited for where nobody says otherwise.
const WAIT: u32 = 600;
/// Bytes kept of what salloc says.
const KEPT: usize = 4 << 10;

/// Waits for the end of its input, which comes with the end of the console, and ends salloc then, whether it waits or holds. Its own
/// output is closed, so that the end of that is the end of salloc.
const KEEPER: &str = r#""$@" </dev/null & p=$!; exec >/dev/null; cat; kill $p 2>/dev/null; wait $p"#;
/// What salloc runs: says its job, and sleeps until it is ended.
const HOLDER: &str = r#"echo "muster-job $SLURM_JOB_ID"; exec sleep 2147483647"#;

/// Nodes that Slurm gave to a job of ours; it ends when this is dropped.
pub(super) struct Allocation {
    pub(super) job: String,
    pub(super) nodes: HashSet<String>,
    over: Arc<AtomicBool>,
    _hold: ChildStdin,
}

impl Allocation {
    /// Asks for all of `nodes` and waits until Slurm gives them.
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
        let words: Arc<Mutex<Vec<u8>>> = Arc::default();
        if let Some(mut errors) = child.stderr.take() {
            let words = words.clone();
            tokio::spawn(async move {
                let mut some = [0; 512];
                while let Ok(read @ 1..) = errors.read(&mut some).await {
                    let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = KEPT.saturating_sub(words.len()).min(read);
                    words.extend_from_slice(some.get(..room).unwrap_or_default());
                }
            });
        }
        let over = Arc::new(AtomicBool::new(false));
        let (tell, told) = oneshot::channel();
        tokio::spawn(follow(child.stdout.take().ok_or_else(none)?, tell, over.clone()));
        let wait = options.wait.unwrap_or(WAIT);
        let said = || {
            let words = words.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let text = String::from_utf8_lossy(&words).into_owned();
            let lines = text.lines().map(|line| line.trim_start_matches("salloc: ").trim_start_matches("error: "));
            clean(&lines.collect::<Vec<_>>().join("; "), 300)
        };
        match timeout(Duration::from_secs(wait.into()), told).await {
            Ok(Ok(job)) => Ok(Self { job, nodes: nodes.iter().cloned().collect(), over, _hold: hold }),
            Ok(Err(_)) => {
                // Its last words may come a moment after its end.
                let _ = timeout(Duration::from_secs(1), child.wait()).await;
                Err(format!("salloc gave no nodes: {}", said()))
            }
            Err(_) => Err(format!("Slurm gave no nodes within {wait} s (wait=SECONDS is how long): {}", said())),
        }
    }

    /// Whether it ended, by another hand than ours.
    pub(super) fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Tells the job once it is known, and notes the end of salloc.
async fn follow(output: ChildStdout, tell: oneshot::Sender<String>, over: Arc<AtomicBool>) {
    let mut lines = BufReader::new(output.take(64 << 10)).lines();
    let mut tell = Some(tell);
    while let Ok(Some(line)) = lines.next_line().await {
        let job =
            line.strip_prefix("muster-job ").filter(|job| !job.is_empty() && job.bytes().all(|b| b.is_ascii_digit()));
        if let (Some(job), Some(tell)) = (job, tell.take()) {
            let _ = tell.send(job.to_owned());
        }
    }
    over.store(true, Ordering::Relaxed);
}
