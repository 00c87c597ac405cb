//! One rank as a process of the probe: how is it started, is it alive, and how did it end?

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::clean;

use super::ask;
use super::said::{Said, Taken};

/// Longest name of an engine, bytes.
const ENGINE: usize = 64;
/// Longest line of a rank, bytes.
const LINE: u64 = 64 << 10;
/// Most steps that are kept of a rank.
const STEPS: usize = 1 << 20;
/// A rank that prints nothing for so long is asked whether it is there, and again after so long.
const ASK: Duration = Duration::from_secs(2);
/// A rank that is there answers within this.
const ANSWER: Duration = Duration::from_millis(500);

/// What is heard of a rank, by its place on the node.
pub(super) enum News {
    Line(Box<Said>),
    /// Its output ended.
    Over,
}

/// A rank under way; killed when dropped.
pub(super) struct Rank {
    pub(super) number: usize,
    pub(super) steps: Vec<Taken>,
    /// What it said last of an error, and of its end.
    pub(super) error: Option<String>,
    pub(super) end: Option<Said>,
    /// The GPUs that compute, or why the CPU does.
    pub(super) engine: Result<String, String>,
    /// How its gradients got to other nodes.
    pub(super) between: Option<Said>,
    /// Why the probe ended it.
    pub(super) killed: Option<String>,
    pub(super) status: Option<ExitStatus>,
    child: Child,
    /// When it last gave a sign of life, and when it was last asked for one.
    heard: Instant,
    asked: Instant,
    met: bool,
}

impl Rank {
    /// Starts `command` with `port` as its input; what it says goes to `post` under `place`.
    pub(super) fn start(
        mut command: Command,
        (number, place): (usize, usize),
        port: TcpListener,
        post: Sender<(usize, News)>,
    ) -> Result<Self, String> {
        command.stdin(OwnedFd::from(port)).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot start rank {number}: {e}"))?;
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || listen(output, place, &post));
        }
        let now = Instant::now();
        Ok(Self {
            number,
            steps: Vec::new(),
            error: None,
            end: None,
            engine: Err(String::new()),
            between: None,
            killed: None,
            status: None,
            child,
            heard: now,
            asked: now,
            met: false,
        })
    }

    pub(super) fn take(&mut self, said: Said) {
        (self.heard, self.met) = (Instant::now(), true);
        match said.event.as_str() {
            "step" if self.steps.len() < STEPS => self.steps.extend(Taken::of(&said)),
            "error" => self.error = Some(said.text),
            "end" => self.end = Some(said),
            "gpus" => self.engine = Ok(clean(&said.text, ENGINE)),
            "between" => self.between = Some(said),
            "cpu" => self.engine = Err(said.text),
            _ => {}
        }
    }

    /// Its output has ended, so the process has ended or is about to.
    pub(super) fn over(&mut self) {
        self.status = self.child.wait().ok();
    }

    /// Ends it where it gave no sign of life for `patience`, or did not meet the others within `meet` and that.
    pub(super) fn look(&mut self, (secret, own): (&[u8; 32], SocketAddr), meet: Duration, patience: Duration) {
        if self.killed.is_some() || self.asked.elapsed() < ASK {
            return;
        }
        self.asked = Instant::now();
        if self.met && (self.heard.elapsed() < ASK || ask::answers(secret, own, ANSWER)) {
            self.heard = Instant::now();
            return;
        }
        let (mute, limit) = (self.heard.elapsed(), if self.met { patience } else { meet + patience });
        if mute >= limit {
            let (seconds, doing) = (mute.as_secs(), self.doing());
            self.kill(format!("did not answer for {seconds} s and was ended ({doing})"));
        }
    }

    pub(super) fn kill(&mut self, why: String) {
        self.killed.get_or_insert(why);
        // It may have ended meanwhile.
        let _ = self.child.kill();
    }

    /// Its process, and what the kernel says of it.
    fn doing(&self) -> String {
        let pid = self.child.id();
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        let state = match state {
            Some('T' | 't') => "stopped",
            Some('D') => "waits for a disk or a driver",
            Some('Z') => "dead",
            Some('R') => "running",
            Some(_) => "sleeping",
            None => "gone",
        };
        format!("process {pid}, {state}")
    }

    /// The signal that ended it, where nobody here sent it.
    pub(super) fn signal(&self) -> Option<i32> {
        self.status.filter(|_| self.killed.is_none())?.signal()
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // Both fail only where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines until the output ends; what is no line of a rank is passed over.
fn listen(output: impl Read, place: usize, post: &Sender<(usize, News)>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while matches!(output.by_ref().take(LINE).read_until(b'\n', &mut line), Ok(1..)) {
        if let Ok(said) = serde_json::from_slice(&line)
            && post.send((place, News::Line(said))).is_err()
        {
            return;
        }
        line.clear();
    }
    // Whoever no longer listens has killed it.
    let _ = post.send((place, News::Over));
}
