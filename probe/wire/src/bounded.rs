//! Lists that a frame may hold: read up to a limit, so that a small frame cannot become a large memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::limits::{CAPABILITIES, COLUMNS, FACTS, PAIR_SERIES, PEERS, SERIES_VALUES};
use crate::{Fact, Series, Trip};

/// Room made for a list before its items have arrived.
const EARLY: usize = 1_024;

/// Reads one item more than `limit` and leaves out the rest, so that whoever checks the limit sees it broken.
struct Most<T> {
    limit: usize,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Most<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {}", self.limit)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::with_capacity(items.size_hint().unwrap_or(0).min(EARLY));
        while read.len() <= self.limit {
            let Some(item) = items.next_element()? else { return Ok(read) };
            read.push(item);
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(read)
    }
}

fn most<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D, limit: usize) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(Most { limit, of: PhantomData })
}

pub(crate) fn values<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    most(from, SERIES_VALUES)
}

pub(crate) fn facts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Fact>, D::Error> {
    most(from, FACTS)
}

pub(crate) fn series<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Series>, D::Error> {
    most(from, PAIR_SERIES)
}

pub(crate) fn columns<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    most(from, COLUMNS)
}

pub(crate) fn ticks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    most(from, COLUMNS)
}

pub(crate) fn peers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Trip>, D::Error> {
    most(from, PEERS)
}

pub(crate) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    most(from, CAPABILITIES)
}

/// The one key of a map; `None` for anything else. What the key stands for is read over.
pub(crate) struct Key(pub(crate) Option<String>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Key, A::Error> {
                let Some((key, _)) = entries.next_entry::<String, IgnoredAny>()? else { return Ok(Key(None)) };
                let more = entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some();
                Ok(Key((!more).then_some(key)))
            }
        }
        from.deserialize_map(One)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{BoolDeserializer, Error, MapDeserializer, SeqDeserializer};

    use super::*;

    #[test]
    fn a_list_is_read_whole_up_to_its_limit_and_one_more_shows_that_it_is_broken() {
        type Of<T> = fn(SeqDeserializer<std::vec::IntoIter<T>, Error>) -> Result<Vec<T>, Error>;
        let numbers: [(Of<f64>, usize); 2] = [(values, SERIES_VALUES), (ticks, COLUMNS)];
        for (read, limit) in numbers {
            let all: Vec<f64> = (0..limit + 9).map(|at| at as f64).collect();
            let of = |count: usize| {
                let some = all[..count].to_vec();
                read(SeqDeserializer::new(some.into_iter())).unwrap()
            };
            assert_eq!(of(limit), all[..limit]);
            assert_eq!(of(limit + 9), all[..=limit]);
        }
        let texts: [(Of<String>, usize); 2] = [(columns, COLUMNS), (words, CAPABILITIES)];
        for (read, limit) in texts {
            let all: Vec<String> = (0..limit + 9).map(|at| at.to_string()).collect();
            let of = |count: usize| {
                let some = all[..count].to_vec();
                read(SeqDeserializer::new(some.into_iter())).unwrap()
            };
            assert_eq!(of(limit), all[..limit]);
            assert_eq!(of(limit + 9), all[..=limit]);
        }
    }

    #[test]
    fn facts_are_read_up_to_their_limit() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Told {
            #[serde(deserialize_with = "facts")]
            facts: Vec<Fact>,
        }
        let fact = |at: usize| Fact { key: format!("k{at}"), reading: crate::Reading::Absent, unit: None };
        let read = |count: usize| {
            let mut bytes = Vec::new();
            ciborium::into_writer(&Told { facts: (0..count).map(fact).collect() }, &mut bytes).unwrap();
            ciborium::from_reader::<Told, _>(&bytes[..]).unwrap().facts
        };
        assert_eq!(read(3), [fact(0), fact(1), fact(2)]);
        assert_eq!((read(FACTS).len(), read(FACTS + 9).len()), (FACTS, FACTS + 1));
    }

    #[test]
    fn what_is_no_list_and_no_map_is_refused_with_what_was_expected() {
        let wrong = || -> BoolDeserializer<Error> { true.into_deserializer() };
        let list = values(wrong()).unwrap_err().to_string();
        assert!(list.ends_with(&format!("expected a list of at most {SERIES_VALUES}")), "{list}");
        let map = Key::deserialize(wrong()).err().unwrap().to_string();
        assert!(map.ends_with("expected a map"), "{map}");
    }

    #[test]
    fn a_map_of_one_key_has_it_and_any_other_has_none() {
        let key = |keys: &[&str]| {
            let entries: Vec<(String, u8)> = keys.iter().map(|key| ((*key).to_owned(), 1)).collect();
            Key::deserialize(MapDeserializer::<_, Error>::new(entries.into_iter())).unwrap().0
        };
        assert_eq!((key(&["a"]), key(&["a", "b"]), key(&[])), (Some("a".to_owned()), None, None));
    }

    #[test]
    fn round_trips_and_series_are_read_up_to_their_limits() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Told {
            #[serde(deserialize_with = "peers")]
            trips: Vec<Trip>,
            #[serde(deserialize_with = "series")]
            series: Vec<Series>,
        }
        let trip = |micros: u32| Trip { own: [10, 0, 0, 1].into(), peer: [10, 0, 0, 2].into(), micros };
        let one = |at: u64| Series {
            metric: crate::MetricId::new("b", "m", "e"),
            unit: crate::Unit::Count,
            direction: crate::Direction::HigherIsBetter,
            values: vec![1.0],
            warmup: 0,
            started_ns: at,
        };
        let read = |count: u32| {
            let told = Told { trips: (0..count).map(trip).collect(), series: (0..u64::from(count)).map(one).collect() };
            let mut bytes = Vec::new();
            ciborium::into_writer(&told, &mut bytes).unwrap();
            ciborium::from_reader::<Told, _>(&bytes[..]).unwrap()
        };
        let few = read(2);
        assert_eq!((few.trips, few.series), (vec![trip(0), trip(1)], vec![one(0), one(1)]));
        let many = read(100);
        assert_eq!((many.trips.len(), many.series.len()), (PEERS + 1, PAIR_SERIES + 1));
    }
}
