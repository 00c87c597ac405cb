//! What the GPUs do while a job runs: one worker for the node that tells it again and again, and is ended with the watch.

use std::process::Child;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use muster_wire::{Frame, Outcome, Tick, WatchOrder, watched};

use super::node;
use super::program::Program;
use super::worker::{self, News};
use crate::clock;

/// A worker that ended is started again after this time.
const AGAIN: Duration = Duration::from_secs(60);
/// Looks that may be missing before the last one is too old to be told.
const MISSING: u64 = 3;

/// The worker, where this node has a GPU.
pub(crate) struct Telemetry {
    period: Duration,
    arguments: Vec<String>,
    program: Option<Program>,
    running: Option<(Child, Receiver<(usize, News)>)>,
    again: Option<Instant>,
    columns: Vec<Option<&'static str>>,
    /// The newest look at everything, and at what changes fast, with what was told of it.
    whole: Option<Tick>,
    fine: Option<Tick>,
    fine_told_ns: u64,
    ended: Option<Outcome>,
    said: bool,
}

impl Telemetry {
    /// Starts the worker; nothing on a node without NVIDIA hardware or driver.
    pub(crate) fn start(order: &WatchOrder) -> Option<Self> {
        let arguments = ["watch".to_owned(), order.period_ms.to_string(), order.fine_ms.to_string()].to_vec();
        let mut telemetry = Self {
            period: Duration::from_millis(u64::from(order.period_ms)),
            arguments,
            program: None,
            running: None,
            again: None,
            columns: Vec::new(),
            whole: None,
            fine: None,
            fine_told_ns: 0,
            ended: None,
            said: false,
        };
        node::has_gpu().then(|| {
            telemetry.begin();
            telemetry
        })
    }

    fn begin(&mut self) {
        let program = match self.program.take().map_or_else(Program::new, Ok) {
            Ok(program) => self.program.insert(program),
            Err(why) => return self.end(Outcome::NotRun(why)),
        };
        match program.start(&self.arguments) {
            Ok(mut child) => {
                let (post, news) = channel();
                worker::hear(0, &mut child, post);
                self.running = Some((child, news));
            }
            Err(why) => self.end(Outcome::Failed(format!("the GPU worker does not start: {why}"))),
        }
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some((mut child, _)) = self.running.take() {
            worker::end(&mut child);
        }
        self.ended.get_or_insert(outcome);
        self.again = Some(Instant::now() + AGAIN);
    }

    /// The newest values of everything, with a sentence where there are none and that was not said yet.
    pub(crate) fn all(&mut self) -> (Vec<(&'static str, f64)>, Option<String>) {
        self.hear();
        if self.again.is_some_and(|again| again <= Instant::now()) {
            self.again = None;
            self.begin();
        }
        let why = self
            .ended
            .take()
            .filter(|_| !std::mem::replace(&mut self.said, true))
            .map(|outcome| outcome.why().unwrap_or("the GPU worker left").to_owned());
        let old = MISSING * u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX / MISSING);
        let fresh = |tick: &&Tick| clock::monotonic_ns().saturating_sub(tick.at_ns) <= old;
        let values = self.whole.as_ref().filter(fresh).map(|tick| self.named(tick)).unwrap_or_default();
        (values, why.map(|why| format!("its GPUs are not watched: {why}")))
    }

    /// The values of a look at what changes fast that were not told before.
    pub(crate) fn fine(&mut self) -> Vec<(&'static str, f64)> {
        self.hear();
        let new = self.fine.take_if(|tick| tick.at_ns > self.fine_told_ns);
        self.fine_told_ns = new.as_ref().map_or(self.fine_told_ns, |tick| tick.at_ns);
        new.map(|tick| self.named(&tick)).unwrap_or_default()
    }

    fn named(&self, tick: &Tick) -> Vec<(&'static str, f64)> {
        let named = self.columns.iter().zip(&tick.values);
        named.filter_map(|(name, value)| Some(((*name)?, *value))).filter(|(_, value)| value.is_finite()).collect()
    }

    /// Takes all that the worker has said.
    fn hear(&mut self) {
        while let Some((_, news)) = &self.running {
            match news.try_recv() {
                Ok((_, News::Said(Frame::Columns(columns)))) => {
                    self.columns = columns.metrics.iter().map(|name| watched(name).map(|known| known.name)).collect();
                    (self.whole, self.fine) = (None, None);
                }
                Ok((_, News::Said(Frame::Tick(tick)))) => {
                    let whole = tick.values.len() >= self.columns.len();
                    *(if whole { &mut self.whole } else { &mut self.fine }) = Some(tick);
                }
                Ok((_, News::Said(Frame::Finished(end)))) => self.end(end.outcome),
                Ok((_, News::Silent(why))) => {
                    let why = why.unwrap_or_else(|| "it closed its output".to_owned());
                    self.end(Outcome::Failed(format!("the GPU worker ended early: {why}")));
                }
                Ok(_) => {}
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.end(Outcome::Done),
            }
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.running {
            worker::end(child);
        }
    }
}
