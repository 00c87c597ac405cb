//! What does the probe of a virtual node say? What was recorded of the works that it is told to do, in its own way and in its own time.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use muster_wire::{Beat, Bye, Decoder, Finished, Frame, MAGIC, Outcome, Request, encode};
use russh::server::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::node::{Node, Site};
use super::recording::names;

/// A sign of life comes this often, as from a real probe.
const BEAT: Duration = Duration::from_millis(500);

/// A probe at work.
pub(super) struct Stream<'a> {
    site: &'a Site,
    node: &'a Node,
    write: &'a ChannelWriteHalf<Msg>,
    decoder: Decoder,
    /// What is to be said and when, in order of time.
    due: VecDeque<(Instant, Vec<Frame>)>,
    visit: u64,
    frames: u64,
    series: u64,
}

/// The console is gone, or the probe has said goodbye.
struct Over;

impl<'a> Stream<'a> {
    pub(super) fn new((site, node): (&'a Site, &'a Node), write: &'a ChannelWriteHalf<Msg>, visit: u64) -> Self {
        let (decoder, due) = (Decoder::new(), VecDeque::new());
        Self { site, node, write, decoder, due, visit, frames: 0, series: 0 }
    }

    /// Greets and does what it is asked until it is over; `rest` came before.
    pub(super) async fn serve(mut self, read: &mut ChannelReadHalf, rest: &[u8]) {
        // Either side may end it at any time.
        let _ = self.talk(read, rest).await;
    }

    async fn talk(&mut self, read: &mut ChannelReadHalf, rest: &[u8]) -> Result<(), Over> {
        let hello = self.site.recording.hello.as_ref().ok_or(Over)?;
        let hello = self.node.variation.hello(hello, clocks(), self.node.pid);
        self.send(&[Frame::Hello(hello)], &MAGIC).await?;
        self.decoder.push(rest);
        let mut beats = interval_at(Instant::now() + BEAT, BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while let Some(request) = self.decoder.request().map_err(|_| Over)? {
                self.take(&request).await?;
            }
            let due = self.due.front().map(|(at, _)| *at);
            tokio::select! {
                message = read.wait() => match message {
                    Some(ChannelMsg::Data { data }) => self.decoder.push(&data),
                    Some(ChannelMsg::Eof | ChannelMsg::Close) | None => return Err(Over),
                    Some(_) => {}
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let (_, frames) = self.due.pop_front().unwrap_or_else(|| (Instant::now(), Vec::new()));
                    self.send(&frames, &[]).await?;
                    if self.due.is_empty() {
                        return self.leave("finished").await;
                    }
                }
                _ = beats.tick() => self.beat(0).await?,
            }
        }
    }

    async fn take(&mut self, request: &Request) -> Result<(), Over> {
        match request {
            Request::Ping { nonce } => self.beat(*nonce).await,
            Request::Stop => self.leave("stopped").await,
            Request::Run { .. } => {
                self.plan(&names(request));
                Ok(())
            }
            _ => self.leave("a virtual node only replays the works that were recorded").await,
        }
    }

    /// Puts down what is said of these works and when: how far one is while it lasts, its results when it is over.
    fn plan(&mut self, works: &[String]) {
        let mut at = Instant::now();
        for name in works {
            let Some(work) = self.site.recording.work(name) else {
                let outcome = Outcome::NotRun("not among the works that were recorded for virtual nodes".to_owned());
                let finished = Finished { name: name.clone(), outcome, elapsed_ns: 0 };
                self.due.push_back((at, vec![Frame::Finished(finished)]));
                continue;
            };
            let elapsed = Duration::from_nanos(work.finished.elapsed_ns).mul_f64(self.node.variation.severity);
            let takes = elapsed.div_f64(self.site.pace);
            let parts = u32::try_from(work.progress.len()).unwrap_or(u32::MAX).saturating_add(1);
            for (frame, part) in work.progress.iter().zip(0..) {
                self.due.push_back((at + takes / parts * part, vec![frame.clone()]));
            }
            at += takes;
            let mut frames: Vec<Frame> =
                work.results.iter().map(|frame| self.node.variation.of(frame, self.visit)).collect();
            let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
            frames.push(Frame::Finished(Finished { elapsed_ns, ..work.finished.clone() }));
            self.due.push_back((at, frames));
        }
    }

    async fn beat(&mut self, nonce: u64) -> Result<(), Over> {
        let (wall_ns, monotonic_ns) = clocks();
        self.send(&[Frame::Beat(Beat { wall_ns, monotonic_ns, nonce })], &[]).await
    }

    async fn leave(&mut self, reason: &str) -> Result<(), Over> {
        let bye = Bye { frames: self.frames, series: self.series, dropped: 0, reason: reason.to_owned() };
        self.send(&[Frame::Bye(bye)], &[]).await?;
        Err(Over)
    }

    /// Sends `before` and then `frames` in one piece.
    async fn send(&mut self, frames: &[Frame], before: &[u8]) -> Result<(), Over> {
        let mut bytes = before.to_vec();
        for frame in frames {
            bytes.extend(encode(frame).map_err(|_| Over)?);
            self.frames += 1;
            self.series += u64::from(matches!(frame, Frame::Series(_)));
        }
        self.write.data_bytes(bytes).await.map_err(|_| Over)
    }
}

/// The node's wall and monotonic clock, which are this machine's, nanoseconds.
fn clocks() -> (u64, u64) {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let monotonic = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(monotonic.tv_sec).unwrap_or(0);
    let part = u64::try_from(monotonic.tv_nsec).unwrap_or(0);
    (u64::try_from(wall.as_nanos()).unwrap_or(0), seconds.saturating_mul(1_000_000_000).saturating_add(part))
}
