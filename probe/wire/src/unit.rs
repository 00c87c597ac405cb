//! What a number means: its unit, which way is good, and the identity under which it may be compared.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// Unit of a value. Stored and shown with every series; values are never rescaled silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes per second, counted as STREAM counts them.
    BytesPerSec,
    /// Floating-point operations per second.
    FlopPerSec,
    /// Operations per second (I/O requests, hand-offs).
    OpsPerSec,
    /// Nanoseconds.
    Nanos,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Hertz.
    Hertz,
    /// Degrees Celsius.
    Celsius,
    /// A share between 0 and 1.
    Ratio,
    /// A plain number.
    Count,
    /// Watts.
    Watts,
}

impl Unit {
    /// Short symbol without prefix, such as `B/s`.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::BytesPerSec => "B/s",
            Self::FlopPerSec => "FLOP/s",
            Self::OpsPerSec => "op/s",
            Self::Nanos => "ns",
            Self::Seconds => "s",
            Self::Bytes => "B",
            Self::Hertz => "Hz",
            Self::Celsius => "°C",
            Self::Ratio => "",
            Self::Count => "",
            Self::Watts => "W",
        }
    }

    /// `value` with an SI prefix and three to four significant digits, such as `41.2 GB/s`.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        if let Some(odd) = self.scientific(value) {
            return odd;
        }
        if self == Self::Ratio {
            return format!("{:.1} %", value * 100.0);
        }
        if self == Self::Count && value.fract() == 0.0 && value.abs() < 1e6 {
            return format!("{value:.0}");
        }
        let (scaled, symbol) = self.scaled(value);
        format!("{} {symbol}", significant(scaled)).trim_end().to_owned()
    }

    /// `value` with an SI prefix and at most `decimals` digits behind the point, but three significant ones where those would all be
    /// zeros; a share has exactly as many.
    #[must_use]
    pub fn show_with(self, value: f64, decimals: u8) -> String {
        let most = usize::from(decimals);
        if let Some(odd) = self.scientific(value) {
            return odd;
        }
        if self == Self::Ratio {
            return format!("{:.most$} %", value * 100.0);
        }
        let (scaled, symbol) = self.scaled(value);
        let digits = digits(scaled).min(most);
        let shown = format!("{scaled:.digits$}");
        let vanishes = scaled != 0.0 && !shown.contains(|c: char| matches!(c, '1'..='9'));
        let shown = if vanishes { significant(scaled) } else { shown };
        format!("{shown} {symbol}").trim_end().to_owned()
    }

    /// `1.00e308 B/s`: what no prefix makes readable.
    fn scientific(self, value: f64) -> Option<String> {
        let plain = value == 0.0 || !value.is_finite() || (PLAIN.contains(&value.abs()));
        (!plain).then(|| format!("{value:.2e} {}", self.symbol()).trim_end().to_owned())
    }

    /// The number in front of a symbol with its prefix.
    fn scaled(self, value: f64) -> (f64, String) {
        let (scaled, prefix) = match self {
            Self::Nanos => return seconds(value * 1e-9),
            Self::Seconds => return seconds(value),
            Self::Celsius => (value, ""),
            _ => si(value),
        };
        (scaled, format!("{prefix}{}", self.symbol()))
    }
}

/// Magnitudes that are read as they stand, whatever the unit.
const PLAIN: std::ops::Range<f64> = 1e-15..1e21;

fn si(value: f64) -> (f64, &'static str) {
    for (factor, prefix) in [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value.abs() >= factor {
            return (value / factor, prefix);
        }
    }
    (value, "")
}

fn seconds(seconds: f64) -> (f64, String) {
    let magnitude = seconds.abs();
    let (scaled, unit) = if magnitude >= 1.0 {
        (seconds, "s")
    } else if magnitude >= 1e-3 {
        (seconds * 1e3, "ms")
    } else if magnitude >= 1e-6 {
        (seconds * 1e6, "us")
    } else {
        (seconds * 1e9, "ns")
    };
    (scaled, unit.to_owned())
}

fn significant(value: f64) -> String {
    format!("{value:.0$}", digits(value))
}

/// Digits behind the point that leave three to four significant ones; there is no prefix for what is below one.
fn digits(value: f64) -> usize {
    match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        // At most 18 by the range of `PLAIN`, and more than 2, so that the cast keeps it.
        v if v > 0.0 && v < 1.0 => (2.0 - v.log10().floor()) as usize,
        _ => 2,
    }
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Throughput and the like.
    HigherIsBetter,
    /// Latency and the like.
    LowerIsBetter,
}

/// How much work a probe does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// A node in under 5 s; for CI and the demo.
    Smoke,
    /// Under a minute.
    Quick,
    /// Under ten minutes.
    Standard,
    /// As long as it takes.
    Full,
}

impl Profile {
    /// All profiles, shortest first.
    pub const ALL: [Self; 4] = [Self::Smoke, Self::Quick, Self::Standard, Self::Full];

    /// The word used in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Profile {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == text)
            .ok_or_else(|| format!("no profile '{text}': smoke, quick, standard or full"))
    }
}

/// Identity of a metric. Two series are compared only when their identities are equal, so results of
/// two engines never meet. Shown as `cpu-stream/triad@own`. Cheap to clone: a fleet has millions of series of a few metrics.
#[derive(Clone, PartialOrd, Ord, Deserialize)]
#[serde(from = "MetricParts")]
pub struct MetricId(Arc<MetricParts>);

/// What a [`MetricId`] is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename = "MetricId")]
pub struct MetricParts {
    /// Benchmark name, such as `cpu-stream`.
    pub benchmark: String,
    /// What was measured, such as `triad`.
    pub name: String,
    /// What measured it: `own`, `io_uring`, `pread`, `fio`, …
    pub engine: String,
}

impl MetricId {
    /// Builds an identity from its three parts.
    pub fn new(benchmark: impl Into<String>, name: impl Into<String>, engine: impl Into<String>) -> Self {
        MetricParts { benchmark: benchmark.into(), name: name.into(), engine: engine.into() }.into()
    }

    /// `benchmark/name`, the identity without its engine.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.benchmark, self.name)
    }

    /// Its parts, to change them; copied first where others hold the same.
    pub fn parts_mut(&mut self) -> &mut MetricParts {
        Arc::make_mut(&mut self.0)
    }
}

impl Deref for MetricId {
    type Target = MetricParts;

    fn deref(&self) -> &MetricParts {
        &self.0
    }
}

/// As its parts hash, so that a map of identities can be asked by parts.
impl Borrow<MetricParts> for MetricId {
    fn borrow(&self) -> &MetricParts {
        &self.0
    }
}

impl PartialEq for MetricId {
    fn eq(&self, other: &Self) -> bool {
        // Series of one file share their identities, which makes this the common case.
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for MetricId {}

impl Hash for MetricId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl From<MetricParts> for MetricId {
    fn from(parts: MetricParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Serialize for MetricId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl fmt::Debug for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MetricId({self})")
    }
}

impl fmt::Display for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.benchmark, self.name, self.engine)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_shown_with_a_prefix_and_few_digits() {
        assert_eq!(Unit::BytesPerSec.show(41.23e9), "41.2 GB/s");
        assert_eq!(Unit::Nanos.show(152.4), "152 ns");
        assert_eq!(Unit::Nanos.show(2_500_000.0), "2.50 ms");
        assert_eq!(Unit::Ratio.show(0.391), "39.1 %");
        assert_eq!(Unit::Celsius.show_with(66.04, 0), "66 °C");
        assert_eq!(Unit::FlopPerSec.show_with(812.35e12, 2), "812 TFLOP/s");
        assert_eq!(Unit::Ratio.show_with(0.999_998, 4), "99.9998 %");
        assert_eq!(Unit::BytesPerSec.show(1e308), "1.00e308 B/s");
        assert_eq!(Unit::Count.show_with(-2.5e30, 1), "-2.50e30");
        assert_eq!(
            (Unit::BytesPerSec.show(0.0), Unit::Seconds.show(4e-300)),
            ("0.00 B/s".into(), "4.00e-300 s".into())
        );
        assert_eq!((Unit::Count.show(7.0), Unit::Count.show(7.5)), ("7".to_owned(), "7.50".to_owned()));
    }

    #[test]
    fn times_have_the_unit_that_keeps_them_short() {
        for (seconds, said) in
            [(-90.0, "-90.0 s"), (1.0, "1.00 s"), (0.5, "500 ms"), (2e-5, "20.0 us"), (5e-8, "50.0 ns")]
        {
            assert_eq!(Unit::Seconds.show(seconds), said);
        }
    }

    #[test]
    fn a_profile_is_read_back_from_what_it_is_called() {
        for profile in [Profile::Smoke, Profile::Quick, Profile::Standard, Profile::Full] {
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
    }

    #[test]
    fn what_is_small_and_has_no_prefix_keeps_three_digits() {
        for (unit, value, said) in [
            (Unit::Count, 0.0057, "0.00570"),
            (Unit::Count, -0.0123, "-0.0123"),
            (Unit::Count, 0.31, "0.310"),
            (Unit::Watts, 0.004, "0.00400 W"),
            (Unit::Count, 1.0 / 3e9, "0.000000000333"),
            (Unit::Count, 9e-16, "9.00e-16"),
            (Unit::Count, 1.004, "1.00"),
            (Unit::Count, 0.0, "0"),
            (Unit::Watts, 0.0, "0.00 W"),
        ] {
            assert_eq!(unit.show(value), said, "{value}");
        }
    }

    #[test]
    fn wanted_decimals_are_kept_unless_they_are_all_zeros() {
        assert_eq!(Unit::Count.show_with(0.057, 2), "0.06");
        assert_eq!(Unit::Count.show_with(0.0012, 2), "0.00120");
        assert_eq!(Unit::Watts.show_with(0.3, 0), "0.300 W");
        assert_eq!(Unit::Count.show_with(0.0, 2), "0.00");
        assert_eq!(Unit::Ratio.show_with(0.0001, 1), "0.0 %");
    }

    #[test]
    fn every_unit_has_its_symbol_behind_the_number() {
        for (unit, said) in [
            (Unit::BytesPerSec, "1.50 B/s"),
            (Unit::FlopPerSec, "1.50 FLOP/s"),
            (Unit::OpsPerSec, "1.50 op/s"),
            (Unit::Nanos, "1.50 ns"),
            (Unit::Seconds, "1.50 s"),
            (Unit::Bytes, "1.50 B"),
            (Unit::Hertz, "1.50 Hz"),
            (Unit::Celsius, "1.50 °C"),
            (Unit::Ratio, "150.0 %"),
            (Unit::Count, "1.50"),
            (Unit::Watts, "1.50 W"),
        ] {
            assert_eq!(unit.show(1.5), said);
        }
        assert_eq!(Unit::Celsius.show(1_200.0), "1200 °C", "nobody says kilodegrees");
    }

    #[test]
    fn a_prefix_begins_at_its_own_power_and_a_decimal_goes_with_each_digit_in_front() {
        for (value, said) in [
            (99.0, "99.0 B"),
            (100.0, "100 B"),
            (999.0, "999 B"),
            (1e3, "1.00 kB"),
            (1e4, "10.0 kB"),
            (1e5, "100 kB"),
            (1e6, "1.00 MB"),
            (1e9, "1.00 GB"),
            (1e12, "1.00 TB"),
            (1e15, "1.00 PB"),
            (-1e6, "-1.00 MB"),
        ] {
            assert_eq!(Unit::Bytes.show(value), said);
        }
        for (seconds, said) in [(1e-3, "1.00 ms"), (1e-6, "1.00 us"), (1e-9, "1.00 ns"), (-2e-3, "-2.00 ms")] {
            assert_eq!(Unit::Seconds.show(seconds), said);
        }
    }

    #[test]
    fn a_whole_count_is_written_out_below_a_million() {
        for (value, said) in [(-7.0, "-7"), (999_999.0, "999999"), (1e6, "1.00 M"), (-1e6, "-1.00 M"), (2e9, "2.00 G")]
        {
            assert_eq!(Unit::Count.show(value), said);
        }
    }

    #[test]
    fn what_is_no_number_is_shown_as_such() {
        assert_eq!((Unit::Watts.show(f64::NAN), Unit::Ratio.show(f64::NAN)), ("NaN W".to_owned(), "NaN %".to_owned()));
        assert_eq!(Unit::Seconds.show_with(f64::INFINITY, 2), "inf s");
    }

    proptest! {
        #[test]
        fn the_number_shown_is_the_value_within_half_a_per_cent(digits in 1.0_f64..10.0, power in -14_i32..20, minus in any::<bool>()) {
            let value = if minus { -1.0 } else { 1.0 } * digits * 10_f64.powi(power);
            for unit in [Unit::Bytes, Unit::Seconds, Unit::Celsius] {
                let shown = unit.show(value);
                let (number, symbol) = shown.split_once(' ').unwrap();
                let factor = match symbol {
                    "kB" => 1e3,
                    "MB" => 1e6,
                    "GB" => 1e9,
                    "TB" => 1e12,
                    "PB" => 1e15,
                    "ms" => 1e-3,
                    "us" => 1e-6,
                    "ns" => 1e-9,
                    _ => 1.0,
                };
                let again = number.parse::<f64>().unwrap() * factor;
                prop_assert!((again / value - 1.0).abs() <= 0.005, "{value} as {shown}");
            }
        }
    }

    #[test]
    fn an_identity_is_all_of_its_three_parts() {
        let of = |benchmark: &str, name: &str, engine: &str| MetricId::new(benchmark, name, engine);
        let id = of("disk", "rand-read", "own");
        assert_eq!((&id, &id), (&id.clone(), &of("disk", "rand-read", "own")), "also where nothing is shared");
        for other in [of("disks", "rand-read", "own"), of("disk", "rand", "own"), of("disk", "rand-read", "fio")] {
            assert_ne!(id, other);
        }
        assert_eq!((id.to_string(), id.path()), ("disk/rand-read@own".to_owned(), "disk/rand-read".to_owned()));
        assert_eq!(format!("{id:?}"), "MetricId(disk/rand-read@own)");
    }

    #[test]
    fn who_changes_an_identity_changes_nobody_elses() {
        let id = MetricId::new("disk", "read", "own");
        let mut other = id.clone();
        other.parts_mut().engine = "fio".to_owned();
        assert_eq!((id.to_string(), other.to_string()), ("disk/read@own".to_owned(), "disk/read@fio".to_owned()));
    }

    #[test]
    fn a_map_of_identities_is_asked_by_parts() {
        let known: HashMap<MetricId, u32> =
            (0..100).map(|nr| (MetricId::new("disk", format!("read-{nr}"), "own"), nr)).collect();
        for nr in 0..100 {
            let parts =
                MetricParts { benchmark: "disk".to_owned(), name: format!("read-{nr}"), engine: "own".to_owned() };
            assert_eq!(known.get(&parts), Some(&nr));
        }
    }

    #[test]
    fn a_word_that_is_no_profile_is_answered_with_those_that_are() {
        assert_eq!("fast".parse::<Profile>().unwrap_err(), "no profile 'fast': smoke, quick, standard or full");
    }
}
