//! Frames to bytes and back. `[length: u32 BE][CBOR body]` after a preamble that login noise cannot fake.
//!
//! The decoder is fed whatever arrives and never allocates for a length it has not checked.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bounded::Key;
use crate::limits::{
    CAPABILITIES, CHUNK_BYTES, COLUMNS, FACTS, FRAME_BYTES, NAME_BYTES, NOISE_BYTES, PAIR_FACTS, PAIR_SERIES, PEERS,
    SERIES_VALUES, TEXT_BYTES,
};
use crate::{Datum, Fact, Facts, Frame, MetricId, Outcome, Reading, Request, Series, clean};

/// Begins every stream in either direction; banners and shell noise before it are skipped.
pub const MAGIC: [u8; 16] = *b"\0\xffmuster-wire\x01\r\n";
/// The same bytes as a slice.
pub const PREAMBLE: &[u8] = &MAGIC;

/// Memory that a decoder keeps between frames, bytes.
const SMALL: usize = 64 * 1024;

/// Why a stream cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// No preamble within [`NOISE_BYTES`].
    #[error("no probe answered: {bytes} bytes without a preamble, beginning with {start:?}")]
    NoPreamble {
        /// Bytes seen.
        bytes: usize,
        /// Their start, cleaned.
        start: String,
    },
    /// A frame claims more than [`FRAME_BYTES`].
    #[error("a frame of {bytes} bytes is over the limit of {FRAME_BYTES}")]
    TooLong {
        /// Claimed size.
        bytes: usize,
    },
    /// A frame's body is not what the contract says.
    #[error("a frame does not decode: {why}")]
    Malformed {
        /// What the CBOR reader said.
        why: String,
    },
    /// A frame decodes and breaks a limit.
    #[error("a frame breaks a limit: {what}")]
    Limit {
        /// Which.
        what: String,
    },
}

/// Bytes of one frame, length first. Write [`MAGIC`] once before the first.
///
/// # Errors
/// When the frame is larger than the contract allows.
pub fn encode(frame: &Frame) -> Result<Vec<u8>, CodecError> {
    pack(frame)
}

/// Bytes of one request, length first. Write [`MAGIC`] once before the first.
///
/// # Errors
/// When the request is larger than the contract allows.
pub fn encode_request(request: &Request) -> Result<Vec<u8>, CodecError> {
    pack(request)
}

fn pack<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = vec![0; 4];
    ciborium::into_writer(value, &mut bytes).map_err(|e| CodecError::Malformed { why: e.to_string() })?;
    let length = bytes.len() - 4;
    let Some(prefix) = u32::try_from(length).ok().filter(|_| length <= FRAME_BYTES) else {
        return Err(CodecError::TooLong { bytes: length });
    };
    bytes[..4].copy_from_slice(&prefix.to_be_bytes());
    Ok(bytes)
}

/// Turns arriving bytes into frames.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
    /// Bytes of noise in which no preamble begins.
    searched: usize,
    greeted: bool,
    last: usize,
    unknown: u64,
}

impl Decoder {
    /// A decoder that waits for the preamble.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes as they arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.greeted && self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.buffer.is_empty() {
                self.buffer.shrink_to(SMALL);
            }
        }
        // Exactly: doubling would hold twice what the largest frame needs.
        self.buffer.reserve_exact(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// Whether the preamble was seen.
    #[must_use]
    pub const fn greeted(&self) -> bool {
        self.greeted
    }

    /// Bytes of the frame that came last.
    #[must_use]
    pub const fn last_bytes(&self) -> usize {
        self.last
    }

    /// Frames of kinds this version does not know, skipped.
    #[must_use]
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    /// What came before the preamble, or has come so far without one; cleaned, for an error message.
    #[must_use]
    pub fn noise(&self) -> String {
        let end = self.buffer.len().min(self.start + 512);
        clean(&String::from_utf8_lossy(&self.buffer[self.start..end]), 200)
    }

    /// The next whole frame, `None` when more bytes are needed.
    ///
    /// # Errors
    /// When the stream breaks the contract; it cannot be read on after that.
    pub fn frame(&mut self) -> Result<Option<Frame>, CodecError> {
        while let Some(body) = self.body()? {
            match unpack::<Frame>(&self.buffer[body.clone()]) {
                Ok(frame) => return checked(frame).map(Some),
                Err(why) if known_kind(&self.buffer[body]) => return Err(CodecError::Malformed { why }),
                Err(_) => self.unknown += 1,
            }
        }
        Ok(None)
    }

    /// The next whole request, `None` when more bytes are needed.
    ///
    /// # Errors
    /// When the stream breaks the contract.
    pub fn request(&mut self) -> Result<Option<Request>, CodecError> {
        let Some(body) = self.body()? else { return Ok(None) };
        unpack(&self.buffer[body]).map(Some).map_err(|why| CodecError::Malformed { why })
    }

    fn body(&mut self) -> Result<Option<std::ops::Range<usize>>, CodecError> {
        if !self.greeted && !self.skip_noise()? {
            return Ok(None);
        }
        let rest = &self.buffer[self.start..];
        let Some(prefix) = rest.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*prefix) as usize;
        if length > FRAME_BYTES {
            return Err(CodecError::TooLong { bytes: length });
        }
        if rest.len() < 4 + length {
            return Ok(None);
        }
        let begin = self.start + 4;
        (self.start, self.last) = (begin + length, length);
        Ok(Some(begin..begin + length))
    }

    fn skip_noise(&mut self) -> Result<bool, CodecError> {
        if let Some(at) = self.buffer[self.searched..].windows(MAGIC.len()).position(|w| w == MAGIC) {
            self.start = self.searched + at + MAGIC.len();
            self.greeted = true;
            return Ok(true);
        }
        let bytes = self.buffer.len();
        if bytes > NOISE_BYTES {
            return Err(CodecError::NoPreamble { bytes, start: self.noise() });
        }
        self.searched = bytes.saturating_sub(MAGIC.len() - 1);
        Ok(false)
    }
}

fn unpack<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    // The depth limit keeps a hostile nest of arrays from exhausting the stack.
    ciborium::de::from_reader_with_recursion_limit(body, 32).map_err(|e| e.to_string())
}

/// Whether the body is a one-entry map whose key this version knows: then it is malformed, not new.
fn known_kind(body: &[u8]) -> bool {
    const KINDS: [&str; 15] = [
        "hello",
        "facts",
        "progress",
        "series",
        "finished",
        "log",
        "beat",
        "listening",
        "paired",
        "columns",
        "tick",
        "peers",
        "chunk",
        "collected",
        "bye",
    ];
    !matches!(unpack(body), Ok(Key(Some(kind))) if !KINDS.contains(&kind.as_str()))
}

fn checked(mut frame: Frame) -> Result<Frame, CodecError> {
    match &mut frame {
        Frame::Hello(hello) => {
            tidy(&mut hello.build, NAME_BYTES);
            for reading in [&mut hello.boot_id, &mut hello.hostname] {
                match reading {
                    Reading::Value(text) | Reading::Failed(text) => tidy(text, NAME_BYTES),
                    Reading::Absent | Reading::Denied => {}
                }
            }
            bounded("capabilities", hello.capabilities.len(), CAPABILITIES)?;
            hello.capabilities.iter_mut().for_each(|c| tidy(c, NAME_BYTES));
        }
        Frame::Facts(facts) => {
            bounded("facts", facts.facts.len(), FACTS)?;
            tidy_facts(facts);
        }
        Frame::Progress(progress) => {
            tidy(&mut progress.benchmark, NAME_BYTES);
            tidy(&mut progress.note, 256);
            progress.done = if progress.done.is_finite() { progress.done.clamp(0.0, 1.0) } else { 0.0 };
        }
        Frame::Series(series) => tidy_series(series)?,
        Frame::Finished(finished) => {
            tidy(&mut finished.name, NAME_BYTES);
            tidy_outcome(&mut finished.outcome);
        }
        Frame::Log(line) => tidy(&mut line.text, TEXT_BYTES),
        Frame::Beat(_) | Frame::Listening(_) => {}
        Frame::Paired(paired) => {
            tidy_outcome(&mut paired.outcome);
            bounded("series of a pair", paired.series.len(), PAIR_SERIES)?;
            bounded("facts of a pair", paired.facts.len(), PAIR_FACTS)?;
            let values = paired.series.iter().map(|series| series.values.len()).sum();
            bounded("values of a pair", values, SERIES_VALUES)?;
            paired.series.iter_mut().try_for_each(tidy_series)?;
            paired.facts.iter_mut().for_each(tidy_fact);
        }
        Frame::Columns(columns) => {
            bounded("columns", columns.metrics.len(), COLUMNS)?;
            columns.metrics.iter_mut().for_each(|name| tidy(name, NAME_BYTES));
        }
        Frame::Tick(tick) => bounded("values of a tick", tick.values.len(), COLUMNS)?,
        Frame::Peers(peers) => bounded("peers", peers.trips.len(), PEERS)?,
        Frame::Chunk(chunk) => {
            tidy(&mut chunk.name, NAME_BYTES);
            bounded("bytes of a piece", chunk.bytes.len(), CHUNK_BYTES)?;
        }
        Frame::Collected(collected) => tidy_outcome(&mut collected.outcome),
        Frame::Bye(bye) => tidy(&mut bye.reason, TEXT_BYTES),
    }
    Ok(frame)
}

fn tidy(text: &mut String, limit: usize) {
    *text = clean(text, limit);
}

fn tidy_series(series: &mut Series) -> Result<(), CodecError> {
    bounded("series values", series.values.len(), SERIES_VALUES)?;
    tidy_metric(&mut series.metric);
    Ok(())
}

pub(crate) fn tidy_facts(facts: &mut Facts) {
    tidy(&mut facts.collector, NAME_BYTES);
    facts.facts.iter_mut().for_each(tidy_fact);
}

pub(crate) fn tidy_outcome(outcome: &mut Outcome) {
    match outcome {
        Outcome::Done => {}
        Outcome::NotApplicable(why) | Outcome::Denied(why) | Outcome::NotRun(why) | Outcome::Failed(why) => {
            tidy(why, TEXT_BYTES);
        }
    }
}

fn tidy_metric(metric: &mut MetricId) {
    let parts = metric.parts_mut();
    tidy(&mut parts.benchmark, NAME_BYTES);
    tidy(&mut parts.name, NAME_BYTES);
    tidy(&mut parts.engine, NAME_BYTES);
}

fn tidy_fact(fact: &mut Fact) {
    tidy(&mut fact.key, NAME_BYTES);
    match &mut fact.reading {
        Reading::Value(Datum::Text(text)) | Reading::Failed(text) => tidy(text, TEXT_BYTES),
        _ => {}
    }
}

fn bounded(what: &str, have: usize, limit: usize) -> Result<(), CodecError> {
    if have > limit {
        return Err(CodecError::Limit { what: format!("{have} {what}, at most {limit}") });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Beat, Direction, Engine, FileChunk, Load, PairOrder, Paired, Role, Secret, Unit};
    use proptest::prelude::*;

    fn stream(frames: &[Frame]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for frame in frames {
            bytes.extend(encode(frame).unwrap());
        }
        bytes
    }

    fn series(values: Vec<f64>) -> Frame {
        Frame::Series(Series {
            metric: MetricId::new("cpu-stream", "triad", "own"),
            unit: Unit::BytesPerSec,
            direction: Direction::HigherIsBetter,
            values,
            warmup: 3,
            started_ns: 17,
        })
    }

    #[test]
    fn noise_before_the_preamble_is_skipped() {
        let mut decoder = Decoder::new();
        decoder.push(b"Welcome to node 7\r\n\x1b[31mmotd\n");
        assert_eq!(decoder.frame(), Ok(None));
        assert_eq!((decoder.greeted(), decoder.noise().as_str()), (false, "Welcome to node 7  motd "));
        decoder.push(&stream(&[series(vec![1.0, 2.0])]));
        assert_eq!(decoder.frame(), Ok(Some(series(vec![1.0, 2.0]))));
        assert!(decoder.greeted());
    }

    #[test]
    fn a_stream_cut_at_any_byte_waits_and_never_lies() {
        let whole = stream(&[series(vec![1.0, 2.0, 3.0])]);
        for cut in 0..whole.len() {
            let mut decoder = Decoder::new();
            decoder.push(&whole[..cut]);
            assert_eq!(decoder.frame(), Ok(None), "cut at {cut}");
            decoder.push(&whole[cut..]);
            assert!(decoder.frame().unwrap().is_some());
        }
    }

    #[test]
    fn an_oversized_length_is_refused_before_allocation() {
        let mut decoder = Decoder::new();
        decoder.push(&MAGIC);
        decoder.push(&u32::MAX.to_be_bytes());
        assert!(matches!(decoder.frame(), Err(CodecError::TooLong { .. })));
        let longest = |length: usize| {
            let mut decoder = Decoder::new();
            decoder.push(&MAGIC);
            decoder.push(&(length as u32).to_be_bytes());
            decoder.frame()
        };
        assert!(matches!(longest(FRAME_BYTES), Ok(None)), "the longest frame is waited for");
        assert!(matches!(longest(FRAME_BYTES + 1), Err(CodecError::TooLong { bytes }) if bytes == FRAME_BYTES + 1));
    }

    #[test]
    fn endless_noise_is_refused() {
        let mut decoder = Decoder::new();
        decoder.push(&vec![b'x'; NOISE_BYTES + 1]);
        assert!(matches!(decoder.frame(), Err(CodecError::NoPreamble { .. })));
    }

    #[test]
    fn unknown_kinds_are_skipped_and_counted() {
        let mut body = Vec::new();
        ciborium::into_writer(&std::collections::BTreeMap::from([("aura", 1)]), &mut body).unwrap();
        let mut decoder = Decoder::new();
        decoder.push(&MAGIC);
        decoder.push(&u32::try_from(body.len()).unwrap().to_be_bytes());
        decoder.push(&body);
        let beat = Frame::Beat(Beat { wall_ns: 1, monotonic_ns: 2, nonce: 3 });
        let encoded = encode(&beat).unwrap();
        decoder.push(&encoded);
        assert_eq!((decoder.unknown(), decoder.last_bytes()), (0, 0));
        assert_eq!(decoder.frame(), Ok(Some(beat)));
        assert_eq!((decoder.unknown(), decoder.last_bytes()), (1, encoded.len() - 4));
        decoder.push(&u32::try_from(body.len()).unwrap().to_be_bytes());
        decoder.push(&body);
        assert_eq!(decoder.frame(), Ok(None));
        assert_eq!(decoder.unknown(), 2);
    }

    #[test]
    fn escapes_in_names_do_not_reach_the_console() {
        let mut decoder = Decoder::new();
        let mut hostile = series(vec![1.0]);
        if let Frame::Series(s) = &mut hostile {
            s.metric.parts_mut().name = "tri\u{1b}[2Jad".into();
        }
        decoder.push(&stream(&[hostile]));
        assert_eq!(decoder.frame(), Ok(Some(series(vec![1.0]))));
    }

    #[test]
    fn an_order_for_a_pair_arrives_as_it_was_given() {
        let order = Request::Pair(PairOrder {
            visit: 9,
            peer: "n2".into(),
            local: "10.0.0.1".parse().unwrap(),
            remote: "fd00::2".parse().unwrap(),
            secret: Secret([3; 32]),
            role: Role::Connect { port: 4711, start_ns: u64::MAX },
            load: Load { streams: 4, duration_ms: 200, sizes: vec![64, 1 << 20], round_trips: 40, engine: Engine::Tcp },
            meet_ms: 2000,
            limit_ms: 9000,
        });
        let mut decoder = Decoder::new();
        decoder.push(&MAGIC);
        decoder.push(&encode_request(&order).unwrap());
        assert_eq!(decoder.request(), Ok(Some(order)));
    }

    #[test]
    fn a_piece_of_a_file_arrives_as_it_was_and_a_larger_one_is_refused() {
        let chunk = |bytes: Vec<u8>| Frame::Chunk(FileChunk { name: "fr/\u{1b}[31mdump_3".into(), bytes, last: true });
        let read = |frame: &Frame| {
            let mut decoder = Decoder::new();
            decoder.push(&stream(std::slice::from_ref(frame)));
            decoder.frame()
        };
        let all: Vec<u8> = (0..CHUNK_BYTES).map(|at| at as u8).collect();
        let Ok(Some(Frame::Chunk(seen))) = read(&chunk(all.clone())) else { panic!("not read") };
        assert_eq!((seen.name.as_str(), seen.bytes == all, seen.last), ("fr/dump_3", true, true));
        assert!(matches!(read(&chunk(vec![0; CHUNK_BYTES + 1])), Err(CodecError::Limit { .. })));
    }

    #[test]
    fn a_piece_of_a_file_that_was_written_as_a_list_is_the_same_and_cut_where_it_is_too_long() {
        let read = |bytes: Vec<u8>| {
            let bytes = ciborium::Value::Array(bytes.into_iter().map(Into::into).collect());
            let map = [("name", "log/1".into()), ("bytes", bytes), ("last", false.into())];
            let map = ciborium::Value::Map(map.map(|(key, value)| (key.into(), value)).into());
            let mut written = Vec::new();
            ciborium::into_writer(&map, &mut written).unwrap();
            ciborium::from_reader::<FileChunk, _>(written.as_slice()).unwrap().bytes
        };
        assert_eq!(read(vec![1, 2, 255]), [1, 2, 255]);
        assert_eq!(read(vec![7; CHUNK_BYTES + 9]).len(), CHUNK_BYTES + 1);
    }

    #[test]
    fn what_a_node_says_is_cut_and_made_harmless() {
        let long = || format!("\u{1b}[31m{}", "x".repeat(2 * TEXT_BYTES));
        let tidied = |reading| {
            let mut fact = Fact { key: long(), unit: None, reading };
            tidy_fact(&mut fact);
            assert!(fact.key.len() <= NAME_BYTES && !fact.key.contains('\u{1b}'));
            fact.reading
        };
        let text = |reading: &Reading<Datum>| match reading {
            Reading::Value(Datum::Text(text)) | Reading::Failed(text) => text.clone(),
            other => format!("{other:?}"),
        };
        for reading in [Reading::Value(Datum::Text(long())), Reading::Failed(long())] {
            let tidied = text(&tidied(reading));
            assert!(tidied.len() <= TEXT_BYTES && tidied.starts_with('x'), "{tidied}");
        }
        assert_eq!(tidied(Reading::Denied), Reading::Denied);
    }

    #[test]
    fn a_node_cannot_flood_the_console_through_a_pair() {
        let Frame::Series(one) = series(vec![1.0]) else { unreachable!() };
        let paired = |count| {
            let outcome = Outcome::Failed("\u{1b}[2Jgone".into());
            let series = vec![one.clone(); count];
            Frame::Paired(Paired { visit: 1, outcome, started_ns: 0, ended_ns: 0, series, facts: Vec::new() })
        };
        let read = |frame: &Frame| {
            let mut decoder = Decoder::new();
            decoder.push(&stream(std::slice::from_ref(frame)));
            decoder.frame()
        };
        let Ok(Some(Frame::Paired(seen))) = read(&paired(2)) else { panic!("not read") };
        assert_eq!((seen.outcome, seen.series.len()), (Outcome::Failed("gone".into()), 2));
        assert!(matches!(read(&paired(PAIR_SERIES + 1)), Err(CodecError::Limit { .. })));
    }

    #[test]
    fn a_small_frame_cannot_become_a_large_memory() {
        let list = |kind: &str, key: &str, count: usize| {
            let nulls = ciborium::Value::Array(vec![ciborium::Value::Null; count]);
            let body = ciborium::Value::Map(vec![(key.into(), nulls)]);
            let mut bytes = Vec::new();
            ciborium::into_writer(&ciborium::Value::Map(vec![(kind.into(), body)]), &mut bytes).unwrap();
            bytes
        };
        // Of a kind that is not known, only the name of the kind is ever held.
        assert!(!known_kind(&list("aura", "x", 500_000)));
        assert!(known_kind(&list("series", "values", 500_000)));
        assert!(known_kind(&list("peers", "trips", 500_000)));
        let Frame::Hello(mut hello) = Frame::Hello(crate::Hello {
            protocol: 1,
            build: String::new(),
            boot_id: Reading::Absent,
            hostname: Reading::Absent,
            wall_ns: 0,
            monotonic_ns: 0,
            pid: 2,
            capabilities: Vec::new(),
        }) else {
            unreachable!()
        };
        hello.capabilities = vec![String::new(); 400_000];
        let bytes = encode(&Frame::Hello(hello)).unwrap();
        let Ok(Frame::Hello(read)) = unpack::<Frame>(&bytes[4..]) else { panic!("not read") };
        assert_eq!(read.capabilities.len(), CAPABILITIES + 1);
        let mut decoder = Decoder::new();
        decoder.push(&MAGIC);
        decoder.push(&bytes);
        assert!(matches!(decoder.frame(), Err(CodecError::Limit { .. })));
    }

    #[test]
    fn a_decoder_holds_one_frame_and_lets_it_go() {
        let mut decoder = Decoder::new();
        decoder.push(&MAGIC);
        let whole = encode(&series(vec![0.1; SERIES_VALUES])).unwrap();
        for _ in 0..5 {
            for chunk in whole.chunks(32 << 10) {
                decoder.push(chunk);
                while decoder.frame().unwrap().is_some() {}
                assert!(decoder.buffer.capacity() <= FRAME_BYTES + (64 << 10), "{}", decoder.buffer.capacity());
            }
        }
        decoder.push(&whole[..3]);
        assert!(decoder.buffer.capacity() <= SMALL, "{}", decoder.buffer.capacity());
    }

    #[test]
    fn a_preamble_in_pieces_is_found_behind_noise_in_pieces() {
        let mut decoder = Decoder::new();
        let mut bytes = vec![b'x'; 1_000];
        bytes.extend(stream(&[series(vec![1.0])]));
        let mut seen = None;
        for byte in bytes {
            decoder.push(&[byte]);
            seen = decoder.frame().unwrap().or(seen);
        }
        assert_eq!(seen, Some(series(vec![1.0])));
    }

    #[test]
    fn too_many_values_break_a_limit() {
        let mut decoder = Decoder::new();
        decoder.push(&stream(&[series(vec![0.0; SERIES_VALUES + 1])]));
        assert!(matches!(decoder.frame(), Err(CodecError::Limit { .. })));
    }

    #[test]
    fn noise_is_read_over_up_to_its_limit_and_kept_for_the_message() {
        let mut decoder = Decoder::new();
        decoder.push(&vec![b'x'; NOISE_BYTES]);
        assert_eq!(decoder.frame(), Ok(None), "as much noise as may be");
        assert_eq!(decoder.noise(), "x".repeat(200));
        decoder.push(&stream(&[series(vec![1.0])]));
        assert_eq!(decoder.frame(), Ok(Some(series(vec![1.0]))));
    }

    #[test]
    fn what_is_of_a_known_kind_and_does_not_decode_is_an_error_and_not_something_new() {
        let body = |value: ciborium::Value| {
            let mut bytes = Vec::new();
            ciborium::into_writer(&value, &mut bytes).unwrap();
            bytes
        };
        let beat = body(ciborium::Value::Map(vec![("beat".into(), "no clock".into())]));
        for bytes in [beat, body("beat".into()), vec![0xff]] {
            let decoder = || {
                let mut decoder = Decoder::new();
                decoder.push(&MAGIC);
                decoder.push(&u32::try_from(bytes.len()).unwrap().to_be_bytes());
                decoder.push(&bytes);
                decoder
            };
            let mut frames = decoder();
            assert!(matches!(frames.frame(), Err(CodecError::Malformed { .. })), "{bytes:?}");
            assert_eq!(frames.unknown(), 0);
            assert!(matches!(decoder().request(), Err(CodecError::Malformed { .. })), "{bytes:?}");
        }
    }

    #[test]
    fn the_longest_frame_is_written_and_one_byte_more_is_not() {
        let log = |length: usize| Frame::Log(crate::LogLine { level: crate::Level::Info, text: "x".repeat(length) });
        let around = encode(&log(FRAME_BYTES / 2)).unwrap().len() - 4 - FRAME_BYTES / 2;
        let longest = encode(&log(FRAME_BYTES - around)).unwrap();
        assert_eq!((longest.len(), &longest[..4]), (4 + FRAME_BYTES, &(FRAME_BYTES as u32).to_be_bytes()[..]));
        let too_long = encode(&log(FRAME_BYTES - around + 1));
        assert_eq!(too_long, Err(CodecError::TooLong { bytes: FRAME_BYTES + 1 }));
    }

    /// One frame of each kind, with as much terminal control in it as it may have.
    fn hostile() -> Vec<Frame> {
        let bad = || "\u{1b}[31mred\u{7}\u{202e}".to_owned();
        let fact = Fact { key: bad(), reading: Reading::Value(Datum::Text(bad())), unit: None };
        let Frame::Series(mut one) = series(vec![1.0]) else { unreachable!() };
        one.metric = MetricId::new(bad(), bad(), bad());
        let reason = || Outcome::Failed(bad());
        vec![
            Frame::Hello(crate::Hello {
                protocol: 1,
                build: bad(),
                boot_id: Reading::Value(bad()),
                hostname: Reading::Failed(bad()),
                wall_ns: 1,
                monotonic_ns: 2,
                pid: 3,
                capabilities: vec![bad()],
            }),
            Frame::Facts(Facts { collector: bad(), facts: vec![fact.clone()] }),
            Frame::Progress(crate::Progress { benchmark: bad(), done: 0.5, note: bad() }),
            Frame::Series(one.clone()),
            Frame::Finished(crate::Finished { name: bad(), outcome: reason(), elapsed_ns: 1 }),
            Frame::Log(crate::LogLine { level: crate::Level::Warn, text: bad() }),
            Frame::Beat(Beat { wall_ns: 1, monotonic_ns: 2, nonce: 3 }),
            Frame::Listening(crate::Listening { visit: 1, port: 2 }),
            Frame::Paired(Paired {
                visit: 1,
                outcome: reason(),
                started_ns: 2,
                ended_ns: 3,
                series: vec![one],
                facts: vec![fact],
            }),
            Frame::Columns(crate::Columns { metrics: vec![bad()] }),
            Frame::Tick(crate::Tick { at_ns: 1, values: vec![2.0] }),
            Frame::Peers(crate::Peers {
                at_ns: 1,
                trips: vec![crate::Trip {
                    own: "10.0.0.1".parse().unwrap(),
                    peer: "10.0.0.2".parse().unwrap(),
                    micros: 3,
                }],
            }),
            Frame::Chunk(FileChunk { name: bad(), bytes: vec![1], last: true }),
            Frame::Collected(crate::Collected { outcome: reason(), files: 1, bytes: 2 }),
            Frame::Bye(crate::Bye { frames: 1, series: 2, dropped: 3, reason: bad() }),
        ]
    }

    #[test]
    fn every_kind_of_frame_arrives_with_all_its_texts_made_harmless() {
        let (sent, mut decoder) = (hostile(), Decoder::new());
        decoder.push(&stream(&sent));
        for frame in &sent {
            assert!(known_kind(&encode(frame).unwrap()[4..]), "{frame:?}");
            let arrived = decoder.frame().unwrap().unwrap();
            // All that a text has to lose is what nobody may see of it.
            let expected = format!("{frame:?}").replace("\\u{1b}[31mred\\u{7}\\u{202e}", "red");
            // An identity prints its parts as they are.
            let expected = expected.replace("\u{1b}[31mred\u{7}\u{202e}", "red");
            assert_eq!(format!("{arrived:?}"), expected);
        }
        assert_eq!((decoder.frame(), decoder.unknown()), (Ok(None), 0));
    }

    #[test]
    fn a_share_done_is_one_whatever_a_node_says() {
        for (said, done) in [(0.25, 0.25), (-3.0, 0.0), (7.0, 1.0), (f64::NAN, 0.0), (f64::INFINITY, 0.0)] {
            let frame = Frame::Progress(crate::Progress { benchmark: String::new(), done: said, note: String::new() });
            let mut decoder = Decoder::new();
            decoder.push(&stream(&[frame]));
            let Ok(Some(Frame::Progress(progress))) = decoder.frame() else { panic!("not read") };
            assert_eq!(progress.done, done, "{said}");
        }
    }

    #[test]
    fn lists_of_every_kind_of_frame_are_taken_up_to_their_limit() {
        let read = |frame: Frame| {
            let mut decoder = Decoder::new();
            decoder.push(&stream(&[frame]));
            decoder.frame().map(|frame| frame.is_some())
        };
        let fact = Fact { key: "k".into(), reading: Reading::Absent, unit: None };
        let own = "10.0.0.1".parse().unwrap();
        let Frame::Series(one) = series(Vec::new()) else { unreachable!() };
        let paired = |series: Vec<Series>, facts: usize| {
            let facts = vec![fact.clone(); facts];
            Frame::Paired(Paired { visit: 1, outcome: Outcome::Done, started_ns: 0, ended_ns: 0, series, facts })
        };
        let of = |count: usize| vec![one.clone(); count];
        let half = |more: usize| vec![Series { values: vec![0.0; SERIES_VALUES / 2 + more], ..one.clone() }; 2];
        let facts = |count| Frame::Facts(Facts { collector: "c".into(), facts: vec![fact.clone(); count] });
        let columns = |count| Frame::Columns(crate::Columns { metrics: vec!["m".into(); count] });
        let tick = |count| Frame::Tick(crate::Tick { at_ns: 1, values: vec![0.0; count] });
        let trips = |count| vec![crate::Trip { own, peer: own, micros: 1 }; count];
        let peers = |count| Frame::Peers(crate::Peers { at_ns: 1, trips: trips(count) });
        for (least, more) in [
            (series(vec![0.0; SERIES_VALUES]), series(vec![0.0; SERIES_VALUES + 1])),
            (facts(FACTS), facts(FACTS + 1)),
            (columns(COLUMNS), columns(COLUMNS + 1)),
            (tick(COLUMNS), tick(COLUMNS + 1)),
            (peers(PEERS), peers(PEERS + 1)),
            (paired(of(PAIR_SERIES), 0), paired(of(PAIR_SERIES + 1), 0)),
            (paired(Vec::new(), PAIR_FACTS), paired(Vec::new(), PAIR_FACTS + 1)),
            (paired(half(0), 0), paired(half(1), 0)),
        ] {
            assert_eq!(read(least), Ok(true));
            assert!(matches!(read(more), Err(CodecError::Limit { .. })));
        }
    }

    #[test]
    fn a_decoder_keeps_room_for_usual_frames_between_them() {
        let mut decoder = Decoder::new();
        decoder.push(&stream(&[series(vec![0.1; SERIES_VALUES / 2])]));
        assert!(decoder.frame().unwrap().is_some());
        decoder.push(&[0]);
        assert_eq!(decoder.buffer.capacity(), 65_536);
    }

    proptest! {
        #[test]
        fn what_is_sent_arrives(values in proptest::collection::vec(-1e12f64..1e12, 0..200), step in 1usize..40) {
            let bytes = stream(&[series(values.clone())]);
            let mut decoder = Decoder::new();
            let mut seen = None;
            for chunk in bytes.chunks(step) {
                decoder.push(chunk);
                if let Some(frame) = decoder.frame().unwrap() { seen = Some(frame); }
            }
            prop_assert_eq!(seen, Some(series(values)));
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let mut decoder = Decoder::new();
            decoder.push(&MAGIC);
            decoder.push(&bytes);
            for _ in 0..50 {
                match decoder.frame() { Ok(Some(_)) => {}, _ => break }
            }
        }
    }
}
