//! Settles the bytes of one entry: CBOR maps with names, each series' values as one packed byte string, zstd around.
//!
//! Packing: the little-endian bytes of the doubles, transposed, so that all first bytes come first, then all second
//! bytes, and so on. Measurements of one kind share sign, exponent and leading digits, which then lie side by
//! side for zstd. Every bit of every value comes back, NaN payloads included.

use std::collections::{HashMap, HashSet};

use muster_wire::limits::BENCHMARK_BYTES;
use muster_wire::{Direction, Fact, MetricId, Outcome, Series, Unit};
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::Incident;
use muster_run::{Record, Run, RunState, Summary};

/// Largest entry before compression, bytes: one benchmark's share and room for names.
pub(crate) const ENTRY_BYTES: usize = BENCHMARK_BYTES + (1 << 20);
const LEVEL: i32 = 3;
/// Identities that are looked through for the next one: a node may lack a few series that others have.
const AHEAD: usize = 4;

/// What a log file is made of; of a record only what the index needs, unless all of it is asked for.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry<R = Head> {
    Begin(Run),
    Record(R),
    End { state: RunState, at_ms: u64 },
    Criterion { name: String, at_ms: u64, bytes: Bytes },
    Incidents(Vec<Incident>),
    Model { version: u64, at_ms: u64, bytes: Bytes },
}

/// The same, borrowed, for writing.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryRef<'a> {
    Begin(&'a Run),
    Record(PackedRef<'a>),
    End { state: RunState, at_ms: u64 },
    Criterion { name: &'a str, at_ms: u64, bytes: Raw<'a> },
    Incidents(&'a [&'a Incident]),
    Model { version: u64, at_ms: u64, bytes: Raw<'a> },
}

/// A record without its samples and facts, which are counted.
#[derive(Debug, PartialEq)]
pub(crate) struct Head(pub(crate) Summary);

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Counted { node, work, outcome, at_ms, elapsed_ns, series, facts } = Counted::deserialize(from)?;
        let values = series.iter().map(|s| s.values.len() as u64 / 8).sum();
        let (series, facts) = (series.len() as u64, facts.len() as u64);
        Ok(Self(Summary { node, work, outcome, at_ms, elapsed_ns, series, values, facts }))
    }
}

#[derive(Deserialize)]
struct Counted<'a> {
    node: String,
    work: String,
    outcome: Outcome,
    at_ms: u64,
    elapsed_ns: u64,
    #[serde(default, borrow)]
    series: Vec<Values<'a>>,
    #[serde(default)]
    facts: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Values<'a> {
    values: &'a [u8],
}

/// A record as it lies in the file; its run is the file's.
#[derive(Deserialize)]
pub(crate) struct Packed<'a> {
    pub(crate) node: String,
    pub(crate) work: String,
    outcome: Outcome,
    at_ms: u64,
    elapsed_ns: u64,
    #[serde(default, borrow)]
    series: Vec<PackedSeries<'a>>,
    #[serde(default)]
    facts: Vec<Fact>,
}

/// A record as it lies in the file, its series left out.
#[derive(Deserialize)]
pub(crate) struct Bare {
    pub(crate) node: String,
    pub(crate) work: String,
    outcome: Outcome,
    at_ms: u64,
    elapsed_ns: u64,
    #[serde(default)]
    facts: Vec<Fact>,
}

impl Bare {
    /// The record as the rest of muster knows it.
    pub(crate) fn unpack(self, run: &str) -> Record {
        let Self { node, work, outcome, at_ms, elapsed_ns, facts } = self;
        Record { run: run.to_owned(), node, work, outcome, at_ms, elapsed_ns, series: Vec::new(), facts }
    }
}

#[derive(Deserialize)]
struct PackedSeries<'a> {
    #[serde(borrow)]
    metric: Parts<'a>,
    unit: Unit,
    direction: Direction,
    #[serde(default)]
    warmup: u32,
    #[serde(default)]
    started_ns: u64,
    values: &'a [u8],
}

/// The parts of a [`MetricId`].
#[derive(Deserialize)]
struct Parts<'a> {
    benchmark: &'a str,
    name: &'a str,
    engine: &'a str,
}

#[derive(Serialize)]
pub(crate) struct PackedRef<'a> {
    node: &'a str,
    work: &'a str,
    outcome: &'a Outcome,
    at_ms: u64,
    elapsed_ns: u64,
    series: Vec<PackedSeriesRef<'a>>,
    facts: &'a [Fact],
}

#[derive(Serialize)]
struct PackedSeriesRef<'a> {
    metric: &'a MetricId,
    unit: Unit,
    direction: Direction,
    warmup: u32,
    started_ns: u64,
    values: Bytes,
}

impl<'a> From<&'a Record> for EntryRef<'a> {
    fn from(record: &'a Record) -> Self {
        Self::Record(PackedRef {
            node: &record.node,
            work: &record.work,
            outcome: &record.outcome,
            at_ms: record.at_ms,
            elapsed_ns: record.elapsed_ns,
            series: record.series.iter().map(PackedSeriesRef::from).collect(),
            facts: &record.facts,
        })
    }
}

impl<'a> From<&'a Series> for PackedSeriesRef<'a> {
    fn from(s: &'a Series) -> Self {
        Self {
            metric: &s.metric,
            unit: s.unit,
            direction: s.direction,
            warmup: s.warmup,
            started_ns: s.started_ns,
            values: Bytes(shuffle(&s.values)),
        }
    }
}

impl Packed<'_> {
    /// The record as the rest of muster knows it.
    pub(crate) fn unpack(self, run: &str, names: &mut Names) -> Result<Record, String> {
        let mut series = Vec::with_capacity(self.series.len());
        names.next = names.first.get(&self.work).copied().unwrap_or(names.ids.len());
        names.first.entry(self.work.clone()).or_insert(names.next);
        for packed in &self.series {
            series.push(packed.unpack(names)?);
        }
        Ok(Record {
            run: run.to_owned(),
            node: self.node,
            work: self.work,
            outcome: self.outcome,
            at_ms: self.at_ms,
            elapsed_ns: self.elapsed_ns,
            series,
            facts: self.facts,
        })
    }
}

impl PackedSeries<'_> {
    fn unpack(&self, names: &mut Names) -> Result<Series, String> {
        Ok(Series {
            values: unshuffle(self.values)?,
            metric: names.of(&self.metric),
            unit: self.unit,
            direction: self.direction,
            warmup: self.warmup,
            started_ns: self.started_ns,
        })
    }
}

/// Identities that were met, so that millions of series share a few.
#[derive(Default)]
pub(crate) struct Names {
    known: HashSet<MetricId>,
    /// In the order met.
    ids: Vec<MetricId>,
    /// Where the first series of each work stands in it.
    first: HashMap<String, usize>,
    /// Where the next one is expected: nodes that did the same give their series in the same order.
    next: usize,
}

impl Names {
    fn of(&mut self, parts: &Parts<'_>) -> MetricId {
        let same =
            |id: &MetricId| (&*id.benchmark, &*id.name, &*id.engine) == (parts.benchmark, parts.name, parts.engine);
        let expected = self.ids.iter().skip(self.next).take(AHEAD).position(same);
        if let Some(ahead) = expected {
            self.next += ahead + 1;
            return self.ids[self.next - 1].clone();
        }
        let id = MetricId::new(parts.benchmark, parts.name, parts.engine);
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        self.known.insert(id.clone());
        self.ids.push(id.clone());
        self.next = self.ids.len();
        id
    }
}

fn shuffle(values: &[f64]) -> Vec<u8> {
    let n = values.len();
    let mut out = vec![0; n * 8];
    for (i, value) in values.iter().enumerate() {
        for (plane, byte) in value.to_le_bytes().into_iter().enumerate() {
            out[plane * n + i] = byte;
        }
    }
    out
}

fn unshuffle(bytes: &[u8]) -> Result<Vec<f64>, String> {
    if !bytes.len().is_multiple_of(8) {
        return Err(format!("a series of {} bytes is not made of doubles", bytes.len()));
    }
    let n = bytes.len() / 8;
    Ok((0..n).map(|i| f64::from_le_bytes(std::array::from_fn(|plane| bytes[plane * n + i]))).collect())
}

/// Turns entries into compressed bytes, with one compressor for many.
pub(crate) struct Encoder {
    zstd: zstd::bulk::Compressor<'static>,
    cbor: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { zstd: zstd::bulk::Compressor::new(LEVEL)?, cbor: Vec::new() })
    }

    /// The payload of one frame.
    pub(crate) fn encode(&mut self, entry: &EntryRef<'_>) -> std::io::Result<Vec<u8>> {
        self.cbor.clear();
        ciborium::into_writer(entry, &mut self.cbor).map_err(std::io::Error::other)?;
        if self.cbor.len() > ENTRY_BYTES {
            return Err(std::io::Error::other(format!("an entry of {} bytes is too large", self.cbor.len())));
        }
        self.zstd.compress(&self.cbor)
    }
}

/// Takes compressed bytes apart, with one decompressor and one buffer for many.
pub(crate) struct Decoder {
    zstd: zstd::bulk::Decompressor<'static>,
    cbor: Vec<u8>,
}

impl Decoder {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { zstd: zstd::bulk::Decompressor::new()?, cbor: Vec::new() })
    }

    /// The entry in a frame's payload.
    pub(crate) fn decode<'s, R: Deserialize<'s>>(&'s mut self, payload: &[u8]) -> Result<Entry<R>, String> {
        let size = zstd::zstd_safe::get_frame_content_size(payload).ok().flatten();
        let Some(size) = size.and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= ENTRY_BYTES) else {
            return Err("its compressed size is not believable".to_owned());
        };
        self.cbor.resize(size, 0);
        let done = self.zstd.decompress_to_buffer(payload, &mut self.cbor[..]);
        done.map_err(|e| format!("it does not decompress: {e}"))?;
        minicbor_serde::from_slice(&self.cbor).map_err(|e| format!("it does not decode: {e}"))
    }
}

/// A CBOR byte string, owned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

/// A CBOR byte string, borrowed.
pub(crate) struct Raw<'a>(pub(crate) &'a [u8]);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Want;
        impl<'de> Visitor<'de> for Want {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a byte string")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
            fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Bytes, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(Bytes(bytes))
            }
        }
        from.deserialize_byte_buf(Want)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_every_value_comes_back() {
        let odd = [0.0, -0.0, 1.5, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::from_bits(0x7ff8_dead_beef_0001)];
        let back = unshuffle(&shuffle(&odd)).unwrap();
        assert_eq!(odd.map(f64::to_bits).to_vec(), back.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
        assert!(unshuffle(&[0; 9]).is_err());
    }

    #[test]
    fn a_payload_that_claims_gigabytes_is_refused_before_allocation() {
        let mut zstd = zstd::bulk::Compressor::new(1).unwrap();
        let bomb = zstd.compress(&vec![0; ENTRY_BYTES + 1]).unwrap();
        let decoded = Decoder::new().unwrap().decode::<Head>(&bomb).map(drop);
        assert!(decoded.unwrap_err().contains("believable"));
    }

    #[test]
    fn an_entry_of_the_largest_size_is_written_and_read_and_one_byte_more_is_refused() {
        let mut encoder = Encoder::new().unwrap();
        let mut encode = |bytes: usize| {
            let zeros = vec![0; bytes];
            encoder.encode(&EntryRef::Model { version: 1, at_ms: 2, bytes: Raw(&zeros) }).map_err(|e| e.to_string())
        };
        let mut plain = Vec::new();
        let small = vec![0; 1 << 20];
        ciborium::into_writer(&EntryRef::Model { version: 1, at_ms: 2, bytes: Raw(&small) }, &mut plain).unwrap();
        let most = ENTRY_BYTES - (plain.len() - small.len());
        let largest = encode(most).unwrap();
        let Ok(Entry::<IgnoredAny>::Model { version: 1, at_ms: 2, bytes }) = Decoder::new().unwrap().decode(&largest)
        else {
            panic!("it does not come back")
        };
        assert_eq!(bytes.0.len(), most);
        assert_eq!(encode(most + 1), Err(format!("an entry of {} bytes is too large", ENTRY_BYTES + 1)));
        assert_eq!(ENTRY_BYTES, 65 << 20, "one benchmark's share and room for names");
    }

    #[test]
    fn what_is_no_byte_string_is_refused_with_what_was_expected() {
        use serde::de::IntoDeserializer;
        use serde::de::value::{BoolDeserializer, Error, SeqDeserializer};
        let wrong: BoolDeserializer<Error> = true.into_deserializer();
        let said = Bytes::deserialize(wrong).unwrap_err().to_string();
        assert!(said.ends_with("expected a byte string"), "{said}");
        let list = SeqDeserializer::<_, Error>::new([1_u8, 2, 255].into_iter());
        assert_eq!(Bytes::deserialize(list).unwrap(), Bytes(vec![1, 2, 255]));
    }

    #[test]
    fn equal_identities_are_shared_in_whatever_order_they_come() {
        let all = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let part = |name: &'static str| Parts { benchmark: "bench", name, engine: "own" };
        let mut names = Names::default();
        let first: Vec<MetricId> = all.iter().map(|name| names.of(&part(name))).collect();
        // From the beginning, with gaps, backwards, and with one that is new between them.
        for order in [&all[..], &["a", "c", "h"], &["h", "g", "a"], &["b", "b"], &["e", "new", "f"]] {
            names.next = 0;
            for name in order {
                let id = names.of(&part(name));
                assert_eq!(id.to_string(), format!("bench/{name}@own"));
                let known = first.iter().find(|known| known.name == *name);
                assert!(known.is_none_or(|known| std::ptr::eq(&**known, &*id)), "{name} is there twice");
            }
        }
        assert_eq!(names.of(&Parts { engine: "fio", ..part("a") }).engine, "fio");
        assert_eq!(names.of(&Parts { benchmark: "other", ..part("a") }).benchmark, "other");
    }
}
