//! How does the probe get onto a node and start? Talks with the install script until the probe takes over.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use crate::context::{Reporter, Shared};
use crate::link::{Failure, FailureKind, LinkState, Phase, spoken};
use crate::pipe::{Exit, Heard, Pipe, note};
use crate::probe::{Build, Probe};
use crate::script::{Answer, answer};
use crate::settings::Settings;

/// Bytes handed to the connection at a time, and between two looks at how far the upload is; slices of the one shared buffer. It goes out in the
/// largest packets that SSH has: an sshd whose node takes bytes more slowly than they come copies all that it keeps with every packet. The next ones are
/// handed over once these are taken, as a connection keeps the buffer of all that is queued at once for as long as it is open (docs/SCALE.md).
const CHUNK: usize = 64 * 1024;
/// Most bytes of noise and answers before the probe speaks.
const TALK: usize = 256 * 1024;

/// A probe that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: u32,
    /// Bytes after the last answer: they are the probe's.
    pub(crate) rest: Vec<u8>,
}

/// Answers the install script until it becomes the probe.
pub(crate) async fn install(
    pipe: &mut Pipe,
    word: &str,
    probe: &Probe,
    (shared, login): (&Shared, &mut Option<OwnedSemaphorePermit>),
    report: &Reporter,
) -> Result<Started, Failure> {
    let settings = &shared.settings;
    // Held until the node says that it has the probe.
    let mut _uploading = None;
    // The login shell reads its files before it answers, which is a part of the login.
    let patience = settings.login;
    let mut talk =
        Talk { word, patience, buffer: Vec::new(), notes: Vec::new(), noise: Vec::new(), heard: 0, sent: None };
    let mut dir = String::new();
    loop {
        match talk.answer(pipe).await? {
            Answer::Note(kind, what) => talk.notes.push((kind, what)),
            Answer::Nowhere => return Err(nowhere(&pipe.node, &talk.notes)),
            Answer::Send { .. } if !dir.is_empty() => {
                let what = "the node asked for the probe twice";
                return Err(Failure::new(&pipe.node, Phase::Upload, FailureKind::OutOfTurn, what));
            }
            Answer::Foreign(machine) => return Err(foreign(&pipe.node, &machine, probe)),
            Answer::Send { packed, file, dir: into } => {
                dir = into;
                let Some(build) = probe.builds().find(|build| build.file_name() == file) else {
                    let what = format!("the node asked for '{file}', which is not the probe");
                    return Err(Failure::new(&pipe.node, Phase::Upload, FailureKind::OutOfTurn, what));
                };
                // Whoever has logged in leaves its place to others: uploads have a window of their own.
                *login = None;
                let packed = if packed { build.packed() } else { None };
                let bytes = packed.unwrap_or_else(|| build.bytes());
                report.progress(LinkState::Uploading { done: 0, total: bytes.len() as u64 });
                _uploading = shared.uploads.clone().acquire_owned().await.ok();
                let early = send(pipe, bytes, settings, report).await?;
                talk.heard += early.heard.len();
                talk.buffer.extend(early.heard);
                talk.sent = Some(early.sent);
                talk.patience = settings.start;
            }
            Answer::Bad(why) => return Err(bad(&pipe.node, &dir, &why)),
            Answer::Ready { pid, kept, path } => {
                log::debug!("{}: probe {path} {}", pipe.node, if kept { "was there" } else { "sent" });
                report.link(LinkState::Starting).await;
                return Ok(Started { pid, rest: talk.buffer });
            }
            Answer::Gone(_) | Answer::Kept(_) | Answer::End => {}
        }
    }
}

/// What came of sending the probe.
struct Early {
    /// What was heard meanwhile.
    heard: Vec<u8>,
    /// How much was sent.
    sent: Sent,
}

/// Bytes handed to the connection, of how many.
#[derive(Clone, Copy)]
struct Sent(usize, usize);

impl std::fmt::Display for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let megabytes = |bytes: usize| bytes as f64 / 1e6;
        write!(f, "{:.1} of {:.1} MB", megabytes(self.0), megabytes(self.1))
    }
}

/// Sends from the shared buffer while listening: the channel's own messages must not pile up. Stops early when the other side
/// closes, which then says why.
async fn send(pipe: &mut Pipe, bytes: Bytes, settings: &Settings, report: &Reporter) -> Result<Early, Failure> {
    let total = bytes.len() as u64;
    let mut heard = Vec::new();
    let mut done = 0;
    let broken = |node: &str, kind, what: String| Failure::new(node, Phase::Upload, kind, what);
    while done < bytes.len() {
        let end = (done + CHUNK).min(bytes.len());
        let chunk = bytes.slice(done..end);
        match timeout(settings.upload, send_chunk(pipe, chunk, &mut heard)).await {
            Ok(Ok(_)) if heard.len() > TALK => {
                let said = muster_wire::clean(&String::from_utf8_lossy(&heard[..200]), 80);
                let (kilobytes, sent) = (heard.len() >> 10, Sent(done, bytes.len()));
                let what =
                    format!("the node sent {kilobytes} kB of its own after {sent}, beginning with '{said}'; stopped");
                return Err(Failure::new(&pipe.node, Phase::Upload, FailureKind::TooMuch, what));
            }
            Ok(Ok(true)) => {
                done = end;
                report.progress(LinkState::Uploading { done: done as u64, total });
            }
            Ok(Ok(false)) => break,
            Ok(Err(e)) => {
                let what = format!("the connection broke after {} ({e})", Sent(done, bytes.len()));
                return Err(broken(&pipe.node, FailureKind::LinkLost, what));
            }
            Err(_) => {
                let what = format!("no progress for {} after {}", spoken(settings.upload), Sent(done, bytes.len()));
                return Err(broken(&pipe.node, FailureKind::Upload, what));
            }
        }
    }
    Ok(Early { heard, sent: Sent(done, bytes.len()) })
}

/// Bytes that say when they are given back.
struct Lent {
    bytes: Bytes,
    _taken: oneshot::Sender<()>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The same bytes, and what ends when nobody holds them any more.
fn lend(bytes: Bytes) -> (Bytes, oneshot::Receiver<()>) {
    let (sender, taken) = oneshot::channel();
    (Bytes::from_owner(Lent { bytes, _taken: sender }), taken)
}

/// Whether the chunk was taken; false when the other side closed or said too much meanwhile.
async fn send_chunk(pipe: &mut Pipe, chunk: Bytes, heard: &mut Vec<u8>) -> Result<bool, russh::Error> {
    let Pipe { write, read, exit, errors, .. } = pipe;
    let sending = async {
        let (lent, taken) = lend(chunk);
        write.data(lent).await?;
        let _ = taken.await;
        Ok(())
    };
    tokio::pin!(sending);
    loop {
        tokio::select! {
            sent = &mut sending => return sent.map(|()| true),
            message = read.wait() => match note(message, exit, errors) {
                Heard::Data(data) => {
                    heard.extend_from_slice(&data);
                    if heard.len() > TALK {
                        return Ok(false);
                    }
                }
                Heard::Closed | Heard::Lost => return Ok(false),
                Heard::Taken | Heard::Other => {}
            },
        }
    }
}

struct Talk<'a> {
    word: &'a str,
    /// Longest silence before an answer.
    patience: Duration,
    buffer: Vec<u8>,
    notes: Vec<(String, String)>,
    noise: Vec<u8>,
    heard: usize,
    /// Once the node asked for the probe: how much of it was sent.
    sent: Option<Sent>,
}

impl Talk<'_> {
    /// The next answer. What was sent may lie in buffers for long: while the node takes it, the clock starts anew.
    async fn answer(&mut self, pipe: &mut Pipe) -> Result<Answer, Failure> {
        let mut deadline = Instant::now() + self.patience;
        loop {
            while let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if let Some(answer) = answer(&line, self.word) {
                    return Ok(answer);
                }
                self.noise.extend(line);
                self.noise.truncate(512);
            }
            match timeout_at(deadline, pipe.hear()).await {
                Ok(Heard::Data(data)) => {
                    self.heard += data.len();
                    if self.heard > TALK {
                        let what =
                            format!("the login shell said {} bytes and ran nothing; {}", self.heard, self.said());
                        return Err(Failure::new(&pipe.node, Phase::Start, FailureKind::NoShell, what));
                    }
                    self.buffer.extend_from_slice(&data);
                }
                Ok(Heard::Taken) => deadline = Instant::now() + self.patience,
                Ok(Heard::Other) => {}
                Ok(ended @ (Heard::Closed | Heard::Lost)) => return Err(self.ended(pipe, matches!(ended, Heard::Lost))),
                Err(_) if self.sent.is_some() => {
                    let what = format!("no answer within {}", spoken(self.patience));
                    return Err(self.cut(pipe, FailureKind::Upload, &what));
                }
                Err(_) => {
                    let (who, limit) = (pipe.starter(), spoken(self.patience));
                    let what = format!("{who} did not answer within {limit}; {}{}", self.said(), pipe.errors());
                    return Err(Failure::new(&pipe.node, Phase::Start, FailureKind::NoShell, what));
                }
            }
        }
    }

    fn said(&self) -> String {
        let noise = [self.noise.as_slice(), &self.buffer].concat();
        let text = muster_wire::clean(String::from_utf8_lossy(&noise).trim(), 200);
        if text.is_empty() { "it said nothing".to_owned() } else { format!("it said '{text}'") }
    }

    fn ended(&self, pipe: &Pipe, lost: bool) -> Failure {
        match &pipe.exit {
            _ if self.sent.is_none() && lost => pipe.lost(Phase::Start),
            _ if self.sent.is_none() => self.no_shell(pipe),
            Some(Exit::Status(status)) => {
                self.cut(pipe, FailureKind::Upload, &format!("the login shell ended with status {status}"))
            }
            Some(Exit::Signal(signal)) => {
                self.cut(pipe, FailureKind::Upload, &format!("the login shell ended by signal {signal}"))
            }
            None => self.cut(pipe, FailureKind::LinkLost, "the connection closed"),
        }
    }

    /// The upload did not come to its end.
    fn cut(&self, pipe: &Pipe, kind: FailureKind, what: &str) -> Failure {
        let sent = self.sent.map_or_else(String::new, |sent| format!(" after {sent}"));
        Failure::new(&pipe.node, Phase::Upload, kind, format!("{what}{sent}{}", pipe.errors()))
    }

    fn no_shell(&self, pipe: &Pipe) -> Failure {
        if let Some((kind, what)) = pipe.slurm() {
            return Failure::new(&pipe.node, Phase::Start, kind, format!("{what}{}", pipe.errors()));
        }
        if pipe.ssh_failed() {
            let what = format!("the system's ssh failed{}", pipe.errors());
            return Failure::new(&pipe.node, Phase::Login, FailureKind::LoginRefused, what);
        }
        let how = match &pipe.exit {
            Some(Exit::Status(status)) => format!("status {status}"),
            Some(Exit::Signal(signal)) => format!("signal {signal}"),
            None => "no status".to_owned(),
        };
        let what = format!("commands do not run (nologin or a broken shell?), {how}; {}{}", self.said(), pipe.errors());
        Failure::new(&pipe.node, Phase::Start, FailureKind::NoShell, what)
    }
}

fn nowhere(node: &str, notes: &[(String, String)]) -> Failure {
    let kind_of = |(kind, what): &(String, String)| match kind.as_str() {
        "full" => FailureKind::DiskFull,
        "noexec" => FailureKind::NoExec,
        _ if what.contains("No space left") => FailureKind::DiskFull,
        _ => FailureKind::NotWritable,
    };
    let has = |kind| notes.iter().any(|note| kind_of(note) == kind);
    let kind = [FailureKind::DiskFull, FailureKind::NoExec].into_iter().find(|kind| has(*kind));
    let told: Vec<String> = notes
        .iter()
        .map(|(kind, what)| match kind.as_str() {
            "noexec" => format!("{what} is mounted noexec"),
            "full" => format!("disk full: {what}"),
            _ => what.clone(),
        })
        .collect();
    let told = if told.is_empty() { "none exists".to_owned() } else { told.join("; ") };
    let what = format!("no directory for the probe: {told}");
    Failure::new(node, Phase::Upload, kind.unwrap_or(FailureKind::NotWritable), what)
}

fn foreign(node: &str, machine: &str, probe: &Probe) -> Failure {
    let known: Vec<&str> = probe.builds().filter_map(Build::machine).collect();
    let what = format!("its architecture is {machine}, and this muster has a probe for {}", known.join(" and "));
    Failure::new(node, Phase::Start, FailureKind::NotStarted, what)
}

fn bad(node: &str, dir: &str, why: &str) -> Failure {
    let why = muster_wire::clean(why, 300);
    if why.contains("No space left") || why.contains("quota") {
        return Failure::new(node, Phase::Upload, FailureKind::DiskFull, format!("disk full in {dir}: {why}"));
    }
    Failure::new(node, Phase::Upload, FailureKind::Upload, format!("the probe did not arrive whole: {why}"))
}
