//! Which hour does a written time mean? Hours since 1970-01-01T00:00 in the zone the text is written in.

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;

/// Seconds by which the zone that lies farthest east is ahead of UTC.
const FARTHEST_S: i32 = 14 * 3600;

/// Forms with figures that need not be filled up with zeros, as spreadsheets write them.
const LOOSE: [&str; 3] = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"];

/// Hours since the Unix epoch of `2024-03-30T07:05:09`, also with a blank for the `T`, without seconds, and with
/// `Z` or an offset such as `+02:00`; without either the text is taken as UTC. None when it is no such time, or one before 1970.
#[must_use]
pub fn hours(text: &str) -> Option<f64> {
    let text = text.trim();
    let at = strict(text).or_else(|| loose(&text.replacen('T', " ", 1)))?;
    let seconds = at.as_duration().as_secs_f64();
    (seconds >= 0.0).then_some(seconds / 3600.0)
}

/// ISO 8601 without a zone's name.
fn strict(text: &str) -> Option<Timestamp> {
    let pieces = Pieces::parse(text).ok().filter(|pieces| pieces.time_zone_annotation().is_none())?;
    let offset = pieces.to_numeric_offset().unwrap_or(Offset::UTC);
    let time = pieces.time().unwrap_or(Time::midnight());
    (offset.seconds().abs() <= FARTHEST_S).then(|| offset.to_timestamp(pieces.date().to_datetime(time)).ok())?
}

fn loose(text: &str) -> Option<Timestamp> {
    LOOSE.iter().find_map(|form| DateTime::strptime(form, text).ok()).and_then(|at| Offset::UTC.to_timestamp(at).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_hours_since_the_epoch() {
        assert_eq!(hours("1970-01-01T00:00:00"), Some(0.0));
        assert_eq!(hours("2024-02-29T12:00:00"), Some(1_709_208_000.0 / 3600.0));
        assert_eq!(hours("2024-03-30 07:30"), Some(1_711_783_800.0 / 3600.0));
        assert_eq!(hours("2024-03-30T07:30:00+02:00"), hours("2024-03-30T05:30:00Z"));
        assert_eq!(hours("2024-03-30T05:30:00-0130"), hours("2024-03-30T07:00:00"));
        assert_eq!(hours("2000-03-01"), Some(951_868_800.0 / 3600.0));
        // As spreadsheets write them.
        assert_eq!(hours("2024-3-5 7:05"), hours("2024-03-05T07:05:00Z"));
        assert_eq!(hours("2024-3-5"), hours("2024-03-05"));
        for bad in ["", "Unknown", "2024-13-01T00:00", "2024-01-01T25:00", "12", "2024-1-1T0:0:99", "2024-01-01T1:0+x"]
        {
            assert_eq!(hours(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_day_hour_or_zone_that_there_is_not_is_no_time() {
        for bad in [
            "2026-02-30",
            "2026-02-29T08:00",
            "2100-02-29",
            "2026-11-31",
            "2026-04-31T00:00:00Z",
            "2026-11-00",
            "2026-11-20T24:30",
            "2026-11-20T24:00",
            "2026-11-20T08:60",
            "2026-11-20T08:00:61",
            "2026-11-20T08:00+99:00",
            "2026-11-20T08:00-15:00",
            "2026-11-20T08:00+01:99",
            "2026-11-20T08:00+1",
            "2026-11-20T08:00+",
            "2026-11-20T1e1:00",
            "2026-11-20T08:00:0x1",
            "2026-+1-20",
            "2026-11-20Tinf",
        ] {
            assert_eq!(hours(bad), None, "{bad}");
        }
        for good in
            ["2028-02-29", "2000-02-29", "2026-11-20T23:59:60Z", "2026-11-20T08:00:00.250+14:00", "2026-11-20T08+02"]
        {
            assert!(hours(good).is_some(), "{good}");
        }
    }
}
