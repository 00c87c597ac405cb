//! Is the probe alive, and what does it say? Frames from its first to its last, with every way it can end.

use std::time::Duration;

use muster_wire::{Bye, Decoder, Frame, Request, encode_request};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::clock::Exchange;
use crate::context::{Reporter, Shared};
use crate::event::{EventKind, Work};
use crate::link::{Failure, FailureKind, LinkState, Phase, spoken};
use crate::permit::Permit;
use crate::pipe::{Exit, Heard, Pipe, Reading};
use crate::probe::Probe;
use crate::route::Route;
use crate::script;
use crate::turn::{Breach, Turn};
use crate::upload::{self, Started};

/// Longest wait for the goodbye of a probe that was told to stop.
const GRACE: Duration = Duration::from_secs(2);

/// What an attempt at a work leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    /// What the probe has not finished, once it was asked.
    pub(crate) left: Option<Request>,
    /// The probe's process, while it may still run.
    pub(crate) pid: Option<u32>,
    /// When the probe was last heard, if it spoke.
    pub(crate) heard: Option<std::time::Instant>,
}

/// One work on one open connection.
pub(crate) struct Session<'a> {
    pub(crate) link: &'a Route,
    pub(crate) work: &'a Work,
    pub(crate) probe: &'a Probe,
    pub(crate) shared: &'a Shared,
    pub(crate) report: &'a Reporter,
    pub(crate) cancel: &'a CancellationToken,
}

/// What a probe that stays is asked.
pub(crate) struct Orders {
    pub(crate) requests: mpsc::Receiver<Request>,
}

impl Orders {
    /// The next request; `Stop` after the last, then none for ever.
    async fn next(orders: &mut Option<Self>) -> Request {
        let Some(open) = orders else { return std::future::pending().await };
        if let Some(request) = open.requests.recv().await {
            return request;
        }
        *orders = None;
        Request::Stop
    }
}

/// What the probe has told so far.
struct Stream {
    decoder: Decoder,
    /// What it was doing, for the message when it stops doing it.
    doing: String,
    /// Work not finished, in the probe's order.
    left: Vec<String>,
    pid: u32,
    turn: Turn,
    deadline: Instant,
    quiet_until: Instant,
    live: bool,
    /// When the last frame came.
    heard: Option<std::time::Instant>,
    clock: Exchange,
    orders: Option<Orders>,
    /// The turn to log in, until the probe speaks.
    login: Option<OwnedSemaphorePermit>,
}

impl Session<'_> {
    /// Starts the probe and passes its frames on until it ends, or is ended.
    pub(crate) async fn run(
        &self,
        orders: Option<Orders>,
        permit: &mut Permit,
        attempt: &mut Attempt,
    ) -> Result<Bye, Failure> {
        let node = &self.work.node.name;
        let settings = &self.shared.settings;
        let word = script::word();
        let command = script::install(&word, self.probe, &settings.scratch, "serve", self.link.seed());
        let clock = Exchange::new();
        let mut pipe = self.link.exec(node, &command, settings.start).await?;
        let started = tokio::select! {
            started = upload::install(&mut pipe, &word, self.probe, (self.shared, &mut permit.login), self.report) => started?,
            () = self.cancel.cancelled() => return Err(self.cancelled(Phase::Upload)),
        };
        let mut stream = Stream::new(&started, settings.start, self.work);
        (stream.orders, stream.clock) = (orders, clock);
        stream.login = permit.login.take();
        let mut result = self.frames(&mut pipe, &mut stream, started.rest).await;
        if let Ok(bye) = &result
            && let Some(failure) = self.stopped((&mut pipe, stream.doing.as_str()), bye).await
        {
            result = Err(failure);
        }
        if let Some(clock) = stream.clock.clock() {
            self.report.tell(EventKind::Clock(clock)).await;
        }
        if let Err(failure) = &mut result {
            let silence = self.end(&mut pipe, &mut stream).await;
            if failure.kind == FailureKind::Hang {
                looked_again(failure, silence.as_ref(), node);
            }
            attempt.pid = Some(stream.pid);
            attempt.heard = stream.heard;
            attempt.left = Some(left(&self.work.request, &stream.left));
        }
        result
    }

    async fn frames(&self, pipe: &mut Pipe, stream: &mut Stream, rest: Vec<u8>) -> Result<Bye, Failure> {
        let settings = &self.shared.settings;
        pipe.write(opening(&self.work.request).map_err(|e| self.failed(FailureKind::Protocol, e))?).await;
        if let Some(bye) = self.take(stream, &rest).await? {
            return Ok(bye);
        }
        let mut ping = interval_at(Instant::now() + settings.ping, settings.ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut nonce = 0;
        loop {
            if stream.clock.wants() {
                nonce += 1;
                Self::ping(pipe, stream, nonce).await;
            }
            tokio::select! {
                heard = pipe.hear() => match heard {
                    Heard::Data(data) => {
                        if let Some(bye) = self.take(stream, &data).await? {
                            return Ok(bye);
                        }
                    }
                    Heard::Taken | Heard::Other => {}
                    Heard::Closed => return Err(self.cut(pipe, stream)),
                    Heard::Lost => {
                        return Err(self.gone(stream, FailureKind::LinkLost, "the connection was lost", pipe));
                    }
                },
                request = Orders::next(&mut stream.orders) => {
                    stream.asked(&request);
                    pipe.write(encode_request(&request).map_err(|e| self.failed(FailureKind::Protocol, e))?).await;
                }
                _ = ping.tick() => {
                    nonce += 1;
                    Self::ping(pipe, stream, nonce).await;
                    if !self.report.heard() {
                        return Err(self.cancelled(Phase::Run));
                    }
                }
                () = sleep_until(stream.quiet_until) => return Err(self.silent(stream)),
                () = sleep_until(stream.deadline) => {
                    let what = format!("{} took longer than {}; stopped", stream.doing, spoken(self.work.limit));
                    return Err(self.failed(FailureKind::TimeLimit, what));
                }
                () = self.cancel.cancelled() => return Err(self.cancelled(Phase::Run)),
            }
        }
    }

    async fn ping(pipe: &mut Pipe, stream: &mut Stream, nonce: u64) {
        if let Ok(bytes) = encode_request(&Request::Ping { nonce }) {
            stream.clock.asked(nonce);
            pipe.write(bytes).await;
        }
    }

    /// Decodes and passes on; `Some` is the last frame.
    async fn take(&self, stream: &mut Stream, data: &[u8]) -> Result<Option<Bye>, Failure> {
        let breach = |(kind, what): Breach| self.failed(kind, format!("{what}; stopped"));
        stream.turn.heard(data.len(), Instant::now().into_std()).map_err(breach)?;
        stream.decoder.push(data);
        let mut last = None;
        while let Some(frame) = stream.decoder.frame().map_err(|e| self.failed(FailureKind::Protocol, e))? {
            if !stream.live {
                stream.live = true;
                stream.login = None;
                self.report.link(LinkState::Live).await;
            }
            stream.turn.frame(&frame).map_err(breach)?;
            stream.note(&frame);
            stream.clock.heard(&frame);
            match frame {
                Frame::Bye(bye) => last = Some(bye),
                // No result: the work is owed still.
                Frame::Finished(finished) if finished.outcome.is_stopped() => {}
                frame => self.report.frame(frame, stream.decoder.last_bytes()).await,
            }
        }
        // Counted from when we are ready to hear more, not from when a slow console took the last frame.
        if stream.decoder.greeted() {
            let now = Instant::now();
            stream.heard = stream.live.then(|| now.into_std());
            stream.quiet_until = now + self.shared.settings.idle;
        }
        Ok(last)
    }

    /// Why a probe took its leave before it was through: by Slurm's word, which srun says once the step is over, or by a signal of
    /// others. One that waits for orders stops by ours.
    async fn stopped(&self, (pipe, doing): (&mut Pipe, &str), bye: &Bye) -> Option<Failure> {
        if bye.reason == "finished" {
            return None;
        }
        if matches!(pipe.read, Reading::Srun(_)) {
            let closing = async { while !matches!(pipe.hear().await, Heard::Closed | Heard::Lost) {} };
            let _ = timeout(GRACE, closing).await;
        }
        if let Some((kind, what)) = pipe.slurm() {
            return Some(self.failed(kind, format!("{what} during {doing}{}", pipe.errors())));
        }
        let why = muster_wire::clean(&bye.reason, 120);
        let what = format!("the probe stopped during {doing}: {why}{}", pipe.errors());
        matches!(self.work.request, Request::Run { .. }).then(|| self.failed(FailureKind::Cut, what))
    }

    /// Asks the probe to stop, closes its input, and kills what is left of it. Tells why the node does not even
    /// answer a new connection, if so.
    async fn end(&self, pipe: &mut Pipe, stream: &mut Stream) -> Option<Failure> {
        if let Ok(bytes) = encode_request(&Request::Stop) {
            pipe.write(bytes).await;
        }
        let _ = timeout(Duration::from_secs(1), pipe.write.eof()).await;
        let closing = async { while !matches!(pipe.hear().await, Heard::Closed | Heard::Lost) {} };
        // A group may outlive its leader, so only a probe that took its leave is left alone.
        let said_goodbye = timeout(GRACE, closing).await.is_ok() && pipe.exit == Some(Exit::Status(0));
        let silence = if said_goodbye { None } else { self.kill(stream.pid).await.err() };
        let _ = timeout(Duration::from_secs(1), pipe.write.close()).await;
        silence
    }

    /// Kills the remote process group; over a new connection when this one is gone or opens no more sessions.
    async fn kill(&self, pid: u32) -> Result<(), Failure> {
        let node = &self.work.node.name;
        let limit = Duration::from_secs(3);
        let command = script::kill(pid);
        if self.link.run(node, &command, limit).await.is_ok() {
            return Ok(());
        }
        let again = timeout(Duration::from_secs(10), Route::to(&self.work.node, self.shared)).await;
        let killed = match again {
            Ok(Ok(link)) => link.run(node, &command, limit).await.map(drop),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::new(node, Phase::Connect, FailureKind::Unreachable, "not open within 10 s")),
        };
        if let Err(failure) = &killed {
            let why = failure.what(node);
            log::warn!("{node}: process group {pid} could not be killed ({why}); it ends itself without a console");
        }
        killed
    }

    fn failed(&self, kind: FailureKind, what: impl std::fmt::Display) -> Failure {
        Failure::new(&self.work.node.name, Phase::Run, kind, what)
    }

    fn cancelled(&self, phase: Phase) -> Failure {
        Failure::new(&self.work.node.name, phase, FailureKind::Cancelled, "cancelled")
    }

    fn silent(&self, stream: &Stream) -> Failure {
        if stream.decoder.greeted() {
            let idle = spoken(self.shared.settings.idle);
            return self.failed(FailureKind::Hang, format!("no frame for {idle} during {}", stream.doing));
        }
        let noise = stream.decoder.noise();
        let said = if noise.is_empty() { "it said nothing".to_owned() } else { format!("it said '{noise}'") };
        let what = format!("no probe answered within {}; {said}", spoken(self.shared.settings.start));
        Failure::new(&self.work.node.name, Phase::Start, FailureKind::Hang, what)
    }

    fn cut(&self, pipe: &Pipe, stream: &Stream) -> Failure {
        if let Some((kind, what)) = pipe.slurm() {
            return self.gone(stream, kind, what, pipe);
        }
        if pipe.ssh_failed() {
            return self.gone(stream, FailureKind::LinkLost, "the system's ssh failed", pipe);
        }
        let how = match &pipe.exit {
            Some(Exit::Signal(signal)) => format!("was killed by signal {signal}"),
            Some(Exit::Status(137)) => "was killed (status 137: by hand or for lack of memory)".to_owned(),
            Some(Exit::Status(status)) => format!("ended with status {status}"),
            None => "ended without a status".to_owned(),
        };
        let lost = stream.live || pipe.exit.as_ref().is_none_or(Exit::by_others);
        let kind = if lost { FailureKind::Cut } else { FailureKind::NotStarted };
        self.gone(stream, kind, &format!("the probe {how}"), pipe)
    }

    /// The stream broke off, with what the probe was at.
    fn gone(&self, stream: &Stream, kind: FailureKind, what: &str, pipe: &Pipe) -> Failure {
        let errors = pipe.errors();
        if stream.live {
            return self.failed(kind, format!("{what} during {}{errors}", stream.doing));
        }
        let what = format!("{what} before the probe's first frame{errors}");
        Failure::new(&self.work.node.name, Phase::Start, kind, what)
    }
}

impl Stream {
    fn new(started: &Started, start: Duration, work: &Work) -> Self {
        let now = Instant::now();
        let left = names(&work.request);
        let mut turn = Turn::new(now.into_std());
        turn.ordered(&work.request);
        Self {
            decoder: Decoder::new(),
            doing: left.first().cloned().unwrap_or_else(|| "its start".to_owned()),
            left,
            pid: started.pid,
            turn,
            deadline: now + work.limit,
            quiet_until: now + start,
            live: false,
            heard: None,
            clock: Exchange::new(),
            orders: None,
            login: None,
        }
    }

    fn note(&mut self, frame: &Frame) {
        match frame {
            // A hostile number must not turn the kill into one of everything: 0 and 1 mean more than a group.
            Frame::Hello(hello) if (2..=4_194_304).contains(&hello.pid) => self.pid = hello.pid,
            Frame::Progress(progress) => self.doing = progress.benchmark.clone(),
            Frame::Finished(finished) if !finished.outcome.is_stopped() => {
                self.left.retain(|work| *work != finished.name);
                self.doing = self.left.first().cloned().unwrap_or_else(|| "its goodbye".to_owned());
            }
            Frame::Paired(_) | Frame::Collected(_) => self.doing = "a wait for orders".to_owned(),
            _ => {}
        }
    }

    fn asked(&mut self, request: &Request) {
        self.turn.ordered(request);
        match request {
            Request::Pair(order) => self.doing = format!("a pair with {}", order.peer),
            Request::Watch(_) => self.doing = "watching".to_owned(),
            Request::Train(order) => self.doing = format!("a training of {} ranks", order.ranks.len()),
            Request::Job(_) => self.doing = "a look at the job".to_owned(),
            Request::Collective(order) => self.doing = format!("{} with {} nodes", order.collective, order.ranks.len()),
            _ => {}
        }
    }
}

/// Adds to a silence what a new connection to the node showed, which has `failed` where the node does not answer either.
fn looked_again(silence: &mut Failure, failed: Option<&Failure>, node: &str) {
    let why = match failed {
        Some(failed) => format!("a new connection: {}", failed.what(node)),
        None if silence.phase == Phase::Run => "the node answers, so the probe is stopped or starved".to_owned(),
        None => return,
    };
    silence.message.push_str(&format!("; {why}"));
    match failed {
        Some(failed) if silence.phase == Phase::Start && failed.passing() => silence.kind = FailureKind::LinkLost,
        Some(failed) if failed.kind == FailureKind::NoBanner => silence.kind = FailureKind::Frozen,
        _ => {}
    }
}

/// What a request asks for, by the names under which the probe finishes it.
fn names(request: &Request) -> Vec<String> {
    match request {
        Request::Run { collectors, benchmarks, .. } => {
            collectors.iter().map(|name| format!("collect/{name}")).chain(benchmarks.iter().cloned()).collect()
        }
        _ => Vec::new(),
    }
}

/// What is left of a request when only the works called `left` are to be done.
fn left(request: &Request, left: &[String]) -> Request {
    let Request::Run { collectors, benchmarks, profile, scratch, steps } = request else { return request.clone() };
    let looks = collectors.iter().filter(|name| left.contains(&format!("collect/{name}"))).cloned().collect();
    let works = benchmarks.iter().filter(|name| left.contains(name)).cloned().collect();
    let (profile, scratch, steps) = (*profile, scratch.clone(), steps.clone());
    Request::Run { collectors: looks, benchmarks: works, profile, scratch, steps }
}

fn opening(request: &Request) -> Result<Vec<u8>, muster_wire::CodecError> {
    let mut bytes = muster_wire::MAGIC.to_vec();
    bytes.extend(encode_request(request)?);
    Ok(bytes)
}
