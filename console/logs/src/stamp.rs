//! When was a line written, as it says itself?
//!
//! Forms at the beginning of a line, some of them behind a label: ISO 8601 and Python's logging (`2026-01-06 20:12:28,123`, also in
//! brackets), the kernel's (`[171167.620236]`, `[Tue Jan  6 20:05:49 2026]`), syslog (`Dec  2 11:38:47 host …`), glog as PyTorch
//! writes it (`E0817 17:40:34.227531918`, `[E817 17:40:34…`), and seconds since 1970.

use std::sync::LazyLock;

use jiff::civil::Date;
use jiff::tz::Offset;
use regex::{Captures, Regex};

/// A time as a line says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stamp {
    /// Seconds since 1970; the line names its zone, or counts from there.
    Utc(f64),
    /// Seconds since 1970 if the wall clock it shows were in Greenwich; the line does not say where it hangs.
    Local(f64),
    /// A wall clock without a year.
    Yearless {
        /// Month, from 1.
        month: u32,
        /// Day, from 1.
        day: u32,
        /// Seconds since midnight.
        seconds: f64,
    },
    /// Seconds since the node booted.
    Boot(f64),
}

/// Bytes of a line in which a time is looked for.
const HEAD: usize = 160;
const DAY_S: f64 = 86_400.0;

/// The one expression for all forms: the leftmost of them counts.
static FORMS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?P<y>(?:19|20)\d\d)[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T _](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:[.,]\d{1,9})?)",
        r" ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?",
        r"|(?:^|[^\w.])(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?P<md>\d{1,2}) ",
        r"(?:(?P<yb>(?:19|20)\d\d) )?(?P<mh>\d\d):(?P<mm>\d\d):(?P<ms>\d\d(?:\.\d{1,9})?)(?: (?P<my>(?:19|20)\d\d)\b)?",
        r"|(?:^|[^\w.])[IWEFD](?P<gm>\d{1,2})(?P<gd>\d\d) (?P<gh>\d\d):(?P<gi>\d\d):(?P<gs>\d\d(?:\.\d{1,9})?)",
        r"|^(?:<\d+>)?\[ *(?P<boot>\d{1,9}\.\d{6})\]",
        r"|^\[?(?P<epoch>1[0-9]{9}(?:\.\d{1,9})?)\b",
    ))
    .ok()
});

impl Stamp {
    /// The time at the beginning of a line.
    #[must_use]
    pub fn of(line: &str) -> Option<Self> {
        let head = &line[..line.floor_char_boundary(HEAD)];
        plain(head.as_bytes()).or_else(|| Self::in_any_form(head))
    }

    fn in_any_form(head: &str) -> Option<Self> {
        let found = FORMS.as_ref()?.captures(head)?;
        let real = |name: &str| -> Option<f64> { found.name(name)?.as_str().replace(',', ".").parse().ok() };
        if let Some(boot) = real("boot") {
            return Some(Self::Boot(boot));
        }
        if let Some(epoch) = real("epoch") {
            return Some(Self::Utc(epoch));
        }
        iso(&found).or_else(|| by_month(&found)).or_else(|| glog(&found))
    }

    /// Seconds since 1970, or since boot, as the line says it; `year` for one that lacks it.
    #[must_use]
    pub fn seconds(self, year: i64) -> f64 {
        match self {
            Self::Utc(at) | Self::Local(at) | Self::Boot(at) => at,
            // The 29th of February of a year without one is the day after the 28th.
            Self::Yearless { month, day, seconds } => {
                midnight(year, month, 1).unwrap_or_default() + f64::from(day.saturating_sub(1)) * DAY_S + seconds
            }
        }
    }

    /// As [`Self::seconds`], with the year that brings it nearest to `near_s`.
    #[must_use]
    pub fn seconds_near(self, near_s: f64) -> f64 {
        let guess = 1970 + (near_s / (365.2425 * DAY_S)).floor().clamp(-8000.0, 8000.0) as i64;
        let off = |year: &i64| (self.seconds(*year) - near_s).abs();
        let year = (guess - 1..=guess + 1).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(guess);
        self.seconds(year)
    }
}

/// The commonest form, `2026-01-06T20:12:28.123Z` or `2026-01-06 20:12:28,123` at the very beginning or after one bracket or blank, read
/// without the expression. What it does not know for certain is left to that.
fn plain(head: &[u8]) -> Option<Stamp> {
    let text = head.strip_prefix(b"[").or_else(|| head.strip_prefix(b" ")).unwrap_or(head);
    let number = |from: usize, to: usize| -> Option<u32> {
        let digits = text.get(from..to)?;
        digits.iter().try_fold(0, |sum: u32, digit| digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit - b'0')))
    };
    let is = |at: usize, of: &[u8]| text.get(at).is_some_and(|byte| of.contains(byte));
    let shaped = is(4, b"-") && is(7, b"-") && is(10, b"T ") && is(13, b":") && is(16, b":");
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, whole) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !shaped || !(1900..2100).contains(&year) || hour > 23 || minute > 59 || whole > 60 {
        return None;
    }
    let fraction =
        if is(19, b".,") { text.get(20..)?.iter().take_while(|byte| byte.is_ascii_digit()).count() } else { 0 };
    if fraction > 9 || (fraction == 0 && is(19, b".,")) {
        return None;
    }
    let end = if fraction == 0 { 19 } else { 20 + fraction };
    let second = decimal(text.get(17..end)?)?;
    let of_day = f64::from(hour) * 3600.0 + f64::from(minute) * 60.0 + second;
    let at = midnight(i64::from(year), month, day)? + of_day;
    let zone = if is(end, b" ") { end + 1 } else { end };
    match text.get(zone) {
        Some(b'Z') => Some(Stamp::Utc(at)),
        Some(b'+' | b'-' | b'U') => None,
        _ => Some(Stamp::Local(at)),
    }
}

/// Seconds with a point or a comma, at most a dozen bytes.
fn decimal(digits: &[u8]) -> Option<f64> {
    let mut text = [0; 12];
    let text = text.get_mut(..digits.len())?;
    text.copy_from_slice(digits);
    text.iter_mut().filter(|byte| **byte == b',').for_each(|byte| *byte = b'.');
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn clock(found: &Captures<'_>, [h, m, s]: [&str; 3]) -> Option<f64> {
    let real = |name: &str| -> Option<f64> { found.name(name)?.as_str().replace(',', ".").parse().ok() };
    let (h, m, s) = (real(h)?, real(m)?, real(s)?);
    (h < 24.0 && m < 60.0 && s < 61.0).then_some(h * 3600.0 + m * 60.0 + s)
}

fn date(month: u32, day: u32) -> Option<(u32, u32)> {
    ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some((month, day))
}

fn iso(found: &Captures<'_>) -> Option<Stamp> {
    let whole = |name: &str| -> Option<u32> { found.name(name)?.as_str().parse().ok() };
    let seconds = clock(found, ["h", "mi", "s"])?;
    let at = midnight(i64::from(whole("y")?), whole("mo")?, whole("d")?)? + seconds;
    let Some(zone) = found.name("zone") else { return Some(Stamp::Local(at)) };
    let digits: String = zone.as_str().chars().filter(char::is_ascii_digit).collect();
    let minutes = digits.parse().map_or(0.0, |hhmm: u32| f64::from(hhmm / 100 * 60 + hhmm % 100));
    let east = if zone.as_str().starts_with('-') { -minutes } else { minutes };
    Some(Stamp::Utc(at - east * 60.0))
}

fn by_month(found: &Captures<'_>) -> Option<Stamp> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let name = found.name("mon")?.as_str();
    let month = MONTHS.iter().zip(1..).find(|(month, _)| **month == name)?.1;
    let seconds = clock(found, ["mh", "mm", "ms"])?;
    let (month, day) = date(month, found.name("md")?.as_str().parse().ok()?)?;
    match found.name("my").or_else(|| found.name("yb")) {
        None => Some(Stamp::Yearless { month, day, seconds }),
        Some(year) => Some(Stamp::Local(midnight(year.as_str().parse().ok()?, month, day)? + seconds)),
    }
}

fn glog(found: &Captures<'_>) -> Option<Stamp> {
    let whole = |name: &str| -> Option<u32> { found.name(name)?.as_str().parse().ok() };
    let (month, day) = date(whole("gm")?, whole("gd")?)?;
    Some(Stamp::Yearless { month, day, seconds: clock(found, ["gh", "gi", "gs"])? })
}

/// Midnight of a day, seconds since 1970, if the calendar has that day.
fn midnight(year: i64, month: u32, day: u32) -> Option<f64> {
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    Some(Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?.as_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::Stamp;
    use proptest::prelude::*;

    /// 2026-01-06 20:12:28 in Greenwich.
    const AT: f64 = 1_767_730_348.0;

    #[test]
    fn the_usual_forms_are_read() {
        let of = |line| Stamp::of(line).unwrap();
        assert_eq!(of("[2026-01-06 20:12:28] iteration 1"), Stamp::Local(AT));
        assert_eq!(of("2026-01-06 20:12:28,500 INFO train"), Stamp::Local(AT + 0.5));
        assert_eq!(of("2026-01-06T20:12:28Z x"), Stamp::Utc(AT));
        assert_eq!(of("2026-01-06T21:12:28.25+01:00 x"), Stamp::Utc(AT + 0.25));
        assert_eq!(of("[Tue Jan  6 20:12:28 2026] NVRM: x"), Stamp::Local(AT));
        assert_eq!(of("[171167.620236] NVRM: x"), Stamp::Boot(171_167.620_236));
        assert_eq!(of("1767730348.5 x"), Stamp::Utc(AT + 0.5));
        assert_eq!(of("Jan  6 20:12:28 gpu-7 kernel: [  219.470994] NVRM: x").seconds_near(AT + 1e6), AT);
        assert_eq!(of("[rank0]:[E106 20:12:28.5 ProcessGroupNCCL.cpp:632] x").seconds_near(AT - 1e6), AT + 0.5);
        assert_eq!(of("W0106 20:12:28.000000 140 torch/x.py:1] x").seconds(2026), AT);
        assert_eq!(of("[Jul 23 2024 07:53:55] [ERROR] [tid 841] x"), Stamp::Local(1_721_721_235.0));
        assert_eq!(Stamp::of("no time at all"), None);
        assert_eq!(Stamp::of("2026-13-41 99:99:99 x"), None);
        assert_eq!(Stamp::of("2026-02-29 20:12:28 x"), None);
    }

    #[test]
    fn a_line_of_december_read_in_january_is_of_last_year() {
        let line = Stamp::of("Dec 31 23:59:59 n1 kernel: x").unwrap();
        assert_eq!(line.seconds_near(1_767_225_600.0), 1_767_225_599.0);
    }

    proptest! {
        #[test]
        fn the_commonest_form_is_read_as_the_expression_reads_it(
            before in "[\\[ ]?",
            day in "(19|20|21)[0-9]{2}-[01][0-9]-[0-3][0-9]",
            time in "[T _][0-2][0-9]:[0-6][0-9]:[0-6][0-9]([.,][0-9]{0,11})?",
            zone in " ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}|\\]|x|)",
            rest in "( INFO)?",
        ) {
            let line = format!("{before}{day}{time}{zone}{rest}");
            if let Some(stamp) = super::plain(line.as_bytes()) {
                prop_assert_eq!(Some(stamp), Stamp::in_any_form(&line), "{}", line);
            }
        }

        #[test]
        fn any_line_is_borne(line in "\\PC{0,80}|[0-9: .\\[-]{0,60}") {
            if let Some(stamp) = Stamp::of(&line) {
                prop_assert!(stamp.seconds_near(1.7e9).is_finite());
            }
        }
    }

    #[test]
    fn zones_are_hours_and_minutes_east_or_west_of_greenwich() {
        for (zone, east_s) in
            [("Z", 0.0), ("UTC", 0.0), (" UTC", 0.0), ("+05:30", 19_800.0), ("-0330", -12_600.0), ("+0100", 3600.0)]
        {
            let line = format!("2026-01-06 20:12:28{zone} x");
            assert_eq!(Stamp::of(&line), Some(Stamp::Utc(AT - east_s)), "{line}");
        }
    }

    #[test]
    fn a_day_or_a_time_that_no_clock_shows_is_none() {
        for (line, is_time) in [
            ("Dec 31 23:59:59 n1 kernel: x", true),
            ("Dec 32 23:59:59 n1 kernel: x", false),
            ("Dec  0 23:59:59 n1 kernel: x", false),
            ("Dec 31 24:00:00 n1 kernel: x", false),
            ("Dec 31 23:60:00 n1 kernel: x", false),
            ("Dec 31 23:59:60 n1 kernel: x", true),
            ("Dec 31 23:59:61 n1 kernel: x", false),
            ("E1231 23:59:59.0 1 x.cpp:1] x", true),
            ("E1331 23:59:59.0 1 x.cpp:1] x", false),
            ("E0031 23:59:59.0 1 x.cpp:1] x", false),
            ("E1200 23:59:59.0 1 x.cpp:1] x", false),
            ("2026-12-31 23:59:59 x", true),
            ("2026-12-31 24:00:00 x", false),
            ("2026-11-31 23:59:59 x", false),
            ("[Thu Dec 31 23:59:59 2026] x", true),
            ("[Thu Nov 31 23:59:59 2026] x", false),
        ] {
            assert_eq!(Stamp::of(line).is_some(), is_time, "{line}");
        }
    }

    #[test]
    fn the_commonest_form_is_read_without_the_expression_and_what_is_not_certain_is_left_to_it() {
        let plain = |line: &str| super::plain(line.as_bytes());
        for (line, stamp) in [
            ("2026-01-06 20:12:28 x", Stamp::Local(AT)),
            ("[2026-01-06T20:12:28] x", Stamp::Local(AT)),
            (" 2026-01-06 20:12:28,5 x", Stamp::Local(AT + 0.5)),
            ("2026-01-06 20:12:28.123456789 x", Stamp::Local(AT + 0.123_456_789)),
            ("2026-01-06T20:12:28.5Z", Stamp::Utc(AT + 0.5)),
            ("2026-01-06 20:12:28 Z", Stamp::Utc(AT)),
            ("2026-01-06 00:00:00", Stamp::Local(AT - 72_748.0)),
            ("2026-01-06 23:59:60", Stamp::Local(AT + 13_652.0)),
            ("1900-01-01 00:00:00", Stamp::Local(-2_208_988_800.0)),
            ("2099-12-31 00:00:00", Stamp::Local(4_102_358_400.0)),
        ] {
            assert_eq!(plain(line), Some(stamp), "{line}");
        }
        for at in [4, 7, 10, 13, 16] {
            let mut line = "2026-01-06 20:12:28".to_owned();
            line.replace_range(at..=at, "x");
            assert_eq!((plain(&line), Stamp::of(&line)), (None, None), "{line}");
        }
        for line in
            ["2026-01-06 20:12:28+01:00", "2026-01-06 20:12:28 UTC", "2100-01-06 20:12:28", "2026-01-06 20:12:2", "x"]
        {
            assert_eq!(plain(line), None, "{line}");
        }
    }

    #[test]
    fn a_day_of_no_year_is_of_the_year_that_brings_it_nearest() {
        let of = |month, day| Stamp::Yearless { month, day, seconds: 3600.0 };
        let leap_day = 1_709_164_800.0; // 2024-02-29
        assert_eq!(of(2, 29).seconds(2024), leap_day + 3600.0);
        assert_eq!(of(2, 29).seconds(2023), leap_day - 365.0 * 86_400.0 + 3600.0, "the 1st of March");
        for year in [2000_i64, 2023, 2024, 2037] {
            for (month, day) in [(1, 1), (2, 29), (6, 30), (12, 31)] {
                let at = of(month, day).seconds(year);
                for off_days in [-170, -1, 0, 1, 170] {
                    let near = at + f64::from(off_days) * 86_400.0;
                    assert_eq!(of(month, day).seconds_near(near), at, "{year}-{month}-{day}, {off_days} days off");
                }
            }
        }
    }
}
