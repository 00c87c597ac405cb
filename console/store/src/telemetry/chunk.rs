//! How the looks of half a minute lie in a frame: names, times, then all values by column, byte by byte of equal weight.
//!
//! A column is one metric of one node. Each value is combined by exclusive or with the one before it, so that what did not change is zero, and
//! bytes of equal weight lie together, so that the compressor finds the zeros.

use std::collections::BTreeMap;

/// Compression: the next level takes twice the time for a percent.
const LEVEL: i32 = 3;
/// Largest chunk before compression, bytes.
const MOST: usize = 64 << 20;
/// Binary digits of a value that are not kept.
const DROPPED: u32 = 11;

/// What one node told in a chunk.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Looks {
    /// Milliseconds since 1970, ascending or not.
    pub(super) times_ms: Vec<i64>,
    /// By metric, one value for each time; NaN where there was none.
    pub(super) columns: BTreeMap<u32, Vec<f32>>,
}

/// A chunk in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Chunk {
    /// Names that the numbers below stand for.
    pub(super) nodes: Vec<String>,
    pub(super) metrics: Vec<String>,
    /// By node.
    pub(super) looks: BTreeMap<u32, Looks>,
}

/// A value as it is kept.
pub(super) fn rounded(value: f64) -> f32 {
    let short = value as f32;
    if !short.is_finite() {
        return short;
    }
    let half = 1_u32 << (DROPPED - 1);
    let kept = f32::from_bits(short.to_bits().saturating_add(half) & !((1 << DROPPED) - 1));
    if kept.is_finite() { kept } else { short }
}

impl Chunk {
    /// Values in it.
    #[cfg(test)]
    pub(super) fn values(&self) -> usize {
        self.looks.values().map(|looks| looks.times_ms.len() * looks.columns.len()).sum()
    }

    /// Packed.
    ///
    /// # Errors
    /// When it is larger than a chunk may be.
    pub(super) fn pack(&self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        for names in [&self.nodes, &self.metrics] {
            number(names.len() as u64, &mut bytes);
            for name in names {
                number(name.len() as u64, &mut bytes);
                bytes.extend(name.as_bytes());
            }
        }
        number(self.looks.len() as u64, &mut bytes);
        for (node, looks) in &self.looks {
            number(u64::from(*node), &mut bytes);
            number(looks.times_ms.len() as u64, &mut bytes);
            let mut before = 0;
            for &time in &looks.times_ms {
                number(zigzag(time.wrapping_sub(before)), &mut bytes);
                before = time;
            }
            number(looks.columns.len() as u64, &mut bytes);
            looks.columns.keys().for_each(|metric| number(u64::from(*metric), &mut bytes));
        }
        let values: Vec<u32> =
            self.looks.values().flat_map(|looks| looks.columns.values()).flat_map(|column| changes(column)).collect();
        for byte in (0..4).rev() {
            bytes.extend(values.iter().map(|value| (value >> (8 * byte)) as u8));
        }
        if bytes.len() > MOST {
            return Err(format!("a chunk of {} bytes cannot be", bytes.len()));
        }
        zstd::bulk::compress(&bytes, LEVEL).map_err(|error| error.to_string())
    }

    /// What [`Chunk::pack`] packed.
    ///
    /// # Errors
    /// When it is something else.
    pub(super) fn unpack(packed: &[u8]) -> Result<Self, String> {
        let size = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
        let size = size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size <= MOST);
        let size = size.ok_or("its size is not told or too large")?;
        let bytes = zstd::bulk::decompress(packed, size).map_err(|error| error.to_string())?;
        Self::read(&mut Reader { rest: &bytes }).ok_or_else(|| "it is no chunk of telemetry".to_owned())
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let mut chunk = Self { nodes: from.names()?, metrics: from.names()?, ..Self::default() };
        let mut columns: Vec<(u32, u32, usize)> = Vec::new();
        for _ in 0..from.count()? {
            let node = u32::try_from(from.number()?).ok().filter(|node| (*node as usize) < chunk.nodes.len())?;
            let mut looks = Looks::default();
            let mut time = 0_i64;
            for _ in 0..from.count()? {
                time = time.wrapping_add(unzigzag(from.number()?));
                looks.times_ms.push(time);
            }
            for _ in 0..from.count()? {
                let metric = u32::try_from(from.number()?).ok().filter(|at| (*at as usize) < chunk.metrics.len())?;
                columns.push((node, metric, looks.times_ms.len()));
            }
            chunk.looks.insert(node, looks);
        }
        let count = columns.iter().try_fold(0_usize, |sum, (_, _, n)| sum.checked_add(*n))?;
        let planes: Vec<&[u8]> = (from.rest.len() == count.checked_mul(4)?)
            .then(|| (0..4).map(|plane| &from.rest[plane * count..(plane + 1) * count]).collect())?;
        let mut at = 0;
        for (node, metric, n) in columns {
            let mut before = 0;
            let values = (at..at + n).map(|at| {
                let change = planes.iter().fold(0_u32, |value, plane| value << 8 | u32::from(plane[at]));
                before ^= change;
                f32::from_bits(before)
            });
            chunk.looks.get_mut(&node)?.columns.insert(metric, values.collect());
            at += n;
        }
        Some(chunk)
    }
}

/// Each value's bits, without what it shares with the one before.
fn changes(values: &[f32]) -> impl Iterator<Item = u32> {
    values.iter().scan(0, |before, value| Some(std::mem::replace(before, value.to_bits()) ^ value.to_bits()))
}

/// Seven bits a byte, the lowest first.
fn number(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Small numbers of either sign as small numbers.
const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A number of things of which each takes a byte at least.
    fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= self.rest.len())
    }

    fn names(&mut self) -> Option<Vec<String>> {
        let count = self.count()?;
        let mut names = Vec::with_capacity(count.min(1 << 16));
        for _ in 0..count {
            let length = self.count()?;
            let (name, rest) = self.rest.split_at(length);
            names.push(std::str::from_utf8(name).ok()?.to_owned());
            self.rest = rest;
        }
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    fn chunk(nodes: u32, metrics: u32, looks: usize, seed: u64) -> Chunk {
        let mut random = StdRng::seed_from_u64(seed);
        let mut chunk = Chunk {
            nodes: (0..nodes).map(|node| format!("n{node:03}")).collect(),
            metrics: (0..metrics).map(|metric| format!("metric_{metric}")).collect(),
            ..Chunk::default()
        };
        for node in 0..nodes {
            let times = (0..looks as i64).map(|look| 1_700_000_000_000 + look * 1_000 + random.random_range(-9..9));
            let mut of = Looks { times_ms: times.collect(), ..Looks::default() };
            for metric in 0..metrics {
                let noise = if metric % 3 == 0 { 0.0 } else { 0.02 };
                let level = f64::from(metric + 1) * 17.3;
                let value = |_| rounded(level * (1.0 + noise * random.random_range(-1.0..1.0)));
                of.columns.insert(metric, (0..looks).map(value).collect());
            }
            chunk.looks.insert(node, of);
        }
        chunk
    }

    #[test]
    fn a_node_or_a_metric_without_a_name_is_no_chunk() {
        let good = chunk(1, 1, 2, 7);
        assert!(Chunk::unpack(&good.pack().unwrap()).is_ok());
        let mut nameless = chunk(1, 1, 2, 7);
        nameless.metrics.clear();
        assert!(Chunk::unpack(&nameless.pack().unwrap()).is_err());
        let mut nameless = chunk(2, 1, 2, 7);
        nameless.nodes.pop();
        assert!(Chunk::unpack(&nameless.pack().unwrap()).is_err());
    }

    #[test]
    fn what_was_packed_comes_back_bit_by_bit() {
        for (nodes, metrics, looks) in [(0, 0, 0), (1, 1, 1), (8, 25, 30), (3, 0, 5)] {
            let chunk = chunk(nodes, metrics, looks, u64::from(nodes));
            assert_eq!(Chunk::unpack(&chunk.pack().unwrap()).unwrap(), chunk);
        }
        let mut odd = chunk(1, 1, 2, 1);
        odd.looks.get_mut(&0).unwrap().columns.insert(0, vec![f32::NAN, f32::NEG_INFINITY]);
        let back = Chunk::unpack(&odd.pack().unwrap()).unwrap();
        assert!(back.looks[&0].columns[&0][0].is_nan() && back.looks[&0].columns[&0][1] == f32::NEG_INFINITY);
    }

    #[test]
    fn a_value_of_noisy_sensors_takes_less_than_two_bytes() {
        let chunk = chunk(32, 24, 30, 5);
        let bytes = chunk.pack().unwrap().len() as f64 / chunk.values() as f64;
        assert!(bytes < 2.0, "{bytes}");
    }

    #[test]
    fn rounding_keeps_a_part_in_8192_and_what_is_no_number() {
        for value in [1.0, 36.7, 1e-9, 5e9, -3.25] {
            assert!((f64::from(rounded(value)) / value - 1.0).abs() <= 1.0 / 8_192.0, "{value}");
        }
        assert_eq!((rounded(0.0), rounded(f64::INFINITY)), (0.0, f32::INFINITY));
        assert!(rounded(f64::NAN).is_nan() && rounded(f64::from(f32::MAX)).is_finite());
    }

    #[test]
    fn what_is_no_chunk_is_refused_and_never_believed() {
        let packed = chunk(4, 5, 6, 9).pack().unwrap();
        let whole = zstd::bulk::decompress(&packed, MOST).unwrap();
        let mut random = StdRng::seed_from_u64(3);
        for _ in 0..2_000 {
            let mut bytes = whole.clone();
            let at = random.random_range(0..bytes.len());
            bytes[at] ^= 1 << random.random_range(0..8);
            bytes.truncate(random.random_range(0..=bytes.len()));
            let _ = Chunk::unpack(&zstd::bulk::compress(&bytes, LEVEL).unwrap());
        }
        assert!(Chunk::unpack(b"").is_err() && Chunk::unpack(b"not zstd").is_err());
        assert!(Chunk::unpack(&zstd::bulk::compress(&whole[..whole.len() - 1], LEVEL).unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn a_value_is_kept_as_the_nearest_of_twelve_digits(digits in 1.0_f64..2.0, power in -120_i32..120, minus in any::<bool>()) {
            let value = f64::from((if minus { -digits } else { digits } * 2_f64.powi(power)) as f32);
            let kept = f64::from(rounded(value));
            // Neighbours lie 2^-12 of the power apart.
            let apart = 2_f64.powi(power - 12);
            prop_assert!((kept - value).abs() <= apart / 2.0, "{value} {kept}");
            prop_assert!((kept / apart).fract() == 0.0, "{value} {kept}");
        }

        #[test]
        fn every_number_comes_back_from_as_few_bytes_as_hold_it(value in any::<u64>(), shift in 0_u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            number(value, &mut bytes);
            prop_assert_eq!(bytes.len(), (64 - value.leading_zeros()).div_ceil(7).max(1) as usize);
            bytes.push(99);
            let mut reader = Reader { rest: &bytes };
            prop_assert_eq!((reader.number(), reader.rest), (Some(value), &[99_u8][..]));
        }

        #[test]
        fn a_small_number_of_either_sign_is_a_small_number(value in any::<i64>(), shift in 0_u32..64) {
            let value = value >> shift;
            prop_assert_eq!(unzigzag(zigzag(value)), value);
            let expected = if value < 0 { 2 * u128::from(value.unsigned_abs()) - 1 } else { 2 * value as u128 };
            prop_assert_eq!(u128::from(zigzag(value)), expected);
        }

        #[test]
        fn any_looks_come_back(
            times in proptest::collection::vec(any::<i64>(), 0..5),
            bits in proptest::collection::vec(any::<u32>(), 15),
            columns in 0_u32..4,
        ) {
            let mut chunk = Chunk { nodes: vec!["n".into()], metrics: vec![String::new(), "b".into(), "ü".into()], ..Chunk::default() };
            let column = |at: u32| {
                let values = bits[5 * at as usize..].iter().take(times.len()).map(|bits| f32::from_bits(*bits));
                (at, values.collect())
            };
            let all = (0..columns.min(3)).map(column).collect();
            chunk.looks.insert(0, Looks { times_ms: times.clone(), columns: all });
            let back = Chunk::unpack(&chunk.pack().unwrap()).unwrap();
            prop_assert_eq!(format!("{:?}", back), format!("{:?}", chunk));
        }
    }

    #[test]
    fn a_number_that_never_ends_or_counts_more_than_there_is_is_none() {
        assert_eq!(Reader { rest: &[0x80; 20] }.number(), None);
        assert_eq!(Reader { rest: &[0x80] }.number(), None);
        let count = |bytes: &[u8]| Reader { rest: bytes }.count();
        assert_eq!((count(&[2, 0, 0]), count(&[2, 0]), count(&[0])), (Some(2), None, Some(0)));
    }

    #[test]
    fn the_largest_chunk_is_packed_and_a_larger_one_is_not() {
        let of = |bytes: usize| Chunk { nodes: vec!["x".repeat(bytes)], ..Chunk::default() };
        // How many names there are, the length of one of them, no metrics, no looks.
        let around = 1 + 4 + 1 + 1;
        let largest = of((64 << 20) - around);
        assert!(Chunk::unpack(&largest.pack().unwrap()).unwrap() == largest);
        assert_eq!(of((64 << 20) - around + 1).pack(), Err("a chunk of 67108865 bytes cannot be".to_owned()));
    }
}
