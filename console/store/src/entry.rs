//! Settles the bytes of one entry: CBOR maps with names, each series' values as one packed byte string, zstd around.
//!
//! Packing: the little-endian bytes of the doubles, transposed, so that all first bytes come first, then all second
//! bytes, and so on. Measurements of one kind share sign, exponent and leading digits, which then lie side by
//! side for zstd. Every bit of every value comes back, NaN payloads included.

use muster_wire::limits::BENCHMARK_BYTES;
use muster_wire::{Direction, Fact, MetricId, Outcome, Series, Unit};
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::{Incident, Record, Run, RunState};

/// Largest entry before compression, bytes: one benchmark's share and room for names.
pub(crate) const ENTRY_BYTES: usize = BENCHMARK_BYTES + (1 << 20);
const LEVEL: i32 = 3;

/// What a log file is made of.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    Begin(Run),
    Record(Packed),
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

/// A record as it lies in the file; its run is the file's.
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct Packed {
    pub(crate) node: String,
    pub(crate) work: String,
    pub(crate) outcome: Outcome,
    pub(crate) at_ms: u64,
    pub(crate) elapsed_ns: u64,
    #[serde(default)]
    pub(crate) series: Vec<PackedSeries>,
    #[serde(default)]
    pub(crate) facts: Vec<Fact>,
}

#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct PackedSeries {
    metric: MetricId,
    unit: Unit,
    direction: Direction,
    #[serde(default)]
    warmup: u32,
    #[serde(default)]
    started_ns: u64,
    values: Bytes,
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

impl Packed {
    /// The record as the rest of muster knows it.
    pub(crate) fn unpack(self, run: &str) -> Result<Record, String> {
        let series = self.series.into_iter().map(PackedSeries::unpack).collect::<Result<_, _>>()?;
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

    /// Values in all series.
    pub(crate) fn values(&self) -> u64 {
        self.series.iter().map(|s| s.values.0.len() as u64 / 8).sum()
    }
}

impl PackedSeries {
    fn unpack(self) -> Result<Series, String> {
        Ok(Series {
            values: unshuffle(&self.values.0)?,
            metric: self.metric,
            unit: self.unit,
            direction: self.direction,
            warmup: self.warmup,
            started_ns: self.started_ns,
        })
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

/// The entry in a frame's payload.
pub(crate) fn decode(payload: &[u8]) -> Result<Entry, String> {
    let size = zstd::zstd_safe::get_frame_content_size(payload).ok().flatten();
    let Some(size) = size.and_then(|n| usize::try_from(n).ok()).filter(|&n| n <= ENTRY_BYTES) else {
        return Err("its compressed size is not believable".to_owned());
    };
    let cbor = zstd::bulk::decompress(payload, size).map_err(|e| format!("it does not decompress: {e}"))?;
    ciborium::from_reader(cbor.as_slice()).map_err(|e| format!("it does not decode: {e}"))
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
        assert!(decode(&bomb).unwrap_err().contains("believable"));
    }
}
