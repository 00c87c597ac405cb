//! How frames leave: one thread writes, a bounded queue feeds it, and what had to be dropped is counted.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::limits::{FACTS, SERIES_VALUES, TEXT_BYTES};
use muster_wire::{Beat, Bye, Facts, Frame, Level, LogLine, MAGIC, Series, clean, encode};

use crate::clock;
use crate::stop::{Cause, Stop};

const QUEUE: usize = 64;
/// Facts per frame: keeps a frame below its limit in bytes however long their texts are.
const FACTS_EACH: usize = if FACTS < 128 { FACTS } else { 128 };
/// How often a full queue is tried again.
const RETRY: Duration = Duration::from_millis(5);

enum Item {
    Frame(Frame),
    Bye(String),
}

/// The way out for frames; clones lead to the same thread.
#[derive(Clone)]
pub(crate) struct Out {
    queue: SyncSender<Item>,
    dropped: Arc<AtomicU64>,
    closed: Arc<AtomicBool>,
}

/// Tells when everything is written.
pub(crate) struct Done(Receiver<()>);

impl Done {
    /// Whether everything was written, or given up, within `limit`.
    pub(crate) fn within(&self, limit: Duration) -> bool {
        !matches!(self.0.recv_timeout(limit), Err(RecvTimeoutError::Timeout))
    }
}

impl Out {
    /// Starts the thread that writes to `sink`, the preamble first. A sink that refuses orders the end.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(sink: impl Write + Send + 'static, stop: Arc<Stop>) -> io::Result<(Self, Done)> {
        let (queue, items) = sync_channel(QUEUE);
        let (tell, done) = channel();
        let dropped = Arc::new(AtomicU64::new(0));
        let closed = Arc::new(AtomicBool::new(false));
        let counter = Arc::clone(&dropped);
        thread::Builder::new().name("writer".to_owned()).spawn(move || {
            if let Err(error) = drain(sink, &items, &counter) {
                stop.ask(Cause::Left, format!("output closed: {error}"));
            }
            drop(tell);
        })?;
        Ok((Self { queue, dropped, closed }, Done(done)))
    }

    /// Sends a frame, cut into pieces where the contract limits it. Waits while the queue is full, except for
    /// signs of life and progress, which are dropped then; after the order to end nothing waits longer than 1 s.
    pub(crate) fn send(&self, frame: Frame, stop: &Stop) {
        match frame {
            Frame::Beat(_) | Frame::Progress(_) => self.offer(frame),
            Frame::Series(series) => split_series(series).for_each(|part| self.insist(Frame::Series(part), stop)),
            Frame::Facts(facts) => split_facts(facts).for_each(|part| self.insist(Frame::Facts(part), stop)),
            other => self.insist(other, stop),
        }
    }

    /// A sign of life; `nonce` is 0 when unasked.
    pub(crate) fn beat(&self, nonce: u64) {
        self.offer(Frame::Beat(Beat { wall_ns: clock::wall_ns(), monotonic_ns: clock::monotonic_ns(), nonce }));
    }

    /// A line for the log.
    pub(crate) fn log(&self, level: Level, text: &str, stop: &Stop) {
        self.insist(Frame::Log(LogLine { level, text: clean(text, TEXT_BYTES) }), stop);
    }

    /// Says `Bye`; nothing leaves after it. Waits at most `limit` for a place in the queue. Only the first counts.
    pub(crate) fn bye(&self, reason: &str, limit: Duration) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut item = Item::Bye(clean(reason, TEXT_BYTES));
        let until = Instant::now() + limit;
        while let Err(TrySendError::Full(back)) = self.queue.try_send(item) {
            if Instant::now() >= until {
                return;
            }
            item = back;
            thread::sleep(RETRY);
        }
    }

    fn offer(&self, frame: Frame) {
        if matches!(self.queue.try_send(Item::Frame(frame)), Err(TrySendError::Full(_))) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn insist(&self, frame: Frame, stop: &Stop) {
        let mut item = Item::Frame(frame);
        while let Err(TrySendError::Full(back)) = self.queue.try_send(item) {
            if stop.age() > Duration::from_secs(1) {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            item = back;
            thread::sleep(RETRY);
        }
    }
}

fn drain(mut sink: impl Write, items: &Receiver<Item>, dropped: &AtomicU64) -> io::Result<()> {
    sink.write_all(&MAGIC)?;
    let (mut frames, mut series) = (0, 0);
    for item in items {
        match item {
            Item::Frame(frame) => match encode(&frame) {
                Ok(bytes) => {
                    sink.write_all(&bytes)?;
                    sink.flush()?;
                    frames += 1;
                    series += u64::from(matches!(frame, Frame::Series(_)));
                }
                Err(_) => {
                    dropped.fetch_add(1, Ordering::Relaxed);
                }
            },
            Item::Bye(reason) => {
                let bye = Bye { frames, series, dropped: dropped.load(Ordering::Relaxed), reason };
                let bytes = encode(&Frame::Bye(bye)).map_err(io::Error::other)?;
                sink.write_all(&bytes)?;
                return sink.flush();
            }
        }
    }
    Ok(())
}

fn split_series(series: Series) -> impl Iterator<Item = Series> {
    let Series { metric, unit, direction, values, warmup, started_ns } = series;
    let pieces: Vec<Vec<f64>> = if values.len() > SERIES_VALUES {
        values.chunks(SERIES_VALUES).map(<[f64]>::to_vec).collect()
    } else {
        vec![values]
    };
    pieces.into_iter().map(move |values| Series { metric: metric.clone(), unit, direction, values, warmup, started_ns })
}

fn split_facts(facts: Facts) -> impl Iterator<Item = Facts> {
    let Facts { collector, facts } = facts;
    let pieces: Vec<Vec<_>> = facts.chunks(FACTS_EACH).map(<[_]>::to_vec).collect();
    pieces.into_iter().map(move |facts| Facts { collector: collector.clone(), facts })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use muster_wire::{Decoder, Direction, MetricId, Unit};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn frames(kept: &Kept) -> Vec<Frame> {
        let mut decoder = Decoder::new();
        decoder.push(&kept.0.lock().unwrap());
        std::iter::from_fn(|| decoder.frame().unwrap()).collect()
    }

    fn series(values: usize) -> Frame {
        Frame::Series(Series {
            metric: MetricId::new("b", "m", "own"),
            unit: Unit::Nanos,
            direction: Direction::LowerIsBetter,
            values: vec![0.1; values],
            warmup: 0,
            started_ns: 1,
        })
    }

    #[test]
    fn bye_counts_what_was_written_and_nothing_follows_it() {
        let (kept, stop) = (Kept::default(), Arc::new(Stop::default()));
        let (out, done) = Out::start(kept.clone(), Arc::clone(&stop)).unwrap();
        out.beat(7);
        out.send(series(3), &stop);
        out.bye("finished", Duration::from_secs(10));
        out.beat(8);
        assert!(done.within(Duration::from_secs(60)));
        let frames = frames(&kept);
        assert_eq!(frames.len(), 3);
        assert_eq!(frames[2], Frame::Bye(Bye { frames: 2, series: 1, dropped: 0, reason: "finished".into() }));
    }

    #[test]
    fn a_series_over_the_limit_leaves_in_pieces() {
        let (kept, stop) = (Kept::default(), Arc::new(Stop::default()));
        let (out, done) = Out::start(kept.clone(), Arc::clone(&stop)).unwrap();
        out.send(series(SERIES_VALUES + 1), &stop);
        out.bye("finished", Duration::from_secs(10));
        assert!(done.within(Duration::from_secs(60)));
        let lengths: Vec<usize> = frames(&kept)
            .iter()
            .filter_map(|f| if let Frame::Series(s) = f { Some(s.values.len()) } else { None })
            .collect();
        assert_eq!(lengths, [SERIES_VALUES, 1]);
    }

    #[test]
    fn a_sink_that_refuses_orders_the_end() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let stop = Arc::new(Stop::default());
        let (_out, done) = Out::start(Closed, Arc::clone(&stop)).unwrap();
        assert!(done.within(Duration::from_secs(60)));
        assert_eq!(stop.order().map(|(cause, _)| cause), Some(Cause::Left));
    }
}
