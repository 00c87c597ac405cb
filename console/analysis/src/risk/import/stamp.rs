//! Which hour does a written time mean? Hours since 1970-01-01T00:00 in the zone the text is written in.

/// Hours since the Unix epoch of `2024-03-30T07:05:09`, also with a blank for the `T`, without seconds, and with
/// `Z` or an offset such as `+02:00`; without either the text is taken as UTC. None when it is no such time.
#[must_use]
pub fn hours(text: &str) -> Option<f64> {
    let text = text.trim();
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut date = date.splitn(3, '-').map(|part| number(part, 4));
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=month_length(year, month)).contains(&day) {
        return None;
    }
    let (time, offset) = zone(time)?;
    let mut parts = time.splitn(3, ':');
    let hour = number(parts.next()?, 2)?;
    let minute = parts.next().map_or(Some(0), |part| number(part, 2))?;
    let second = parts.next().map_or(Some(0.0), seconds)?;
    // A minute may have 61 seconds, a day has no 25th hour.
    let fits = hour < 24 && minute < 60 && second < 61.0;
    fits.then(|| (days(year, month, day) * 24 + hour) as f64 + minute as f64 / 60.0 + second / 3600.0 - offset)
}

/// A number of at most so many digits, and of nothing else.
fn number(text: &str, digits: usize) -> Option<i64> {
    let fits = (1..=digits).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.parse().ok())?
}

/// Seconds, perhaps with a fraction.
fn seconds(text: &str) -> Option<f64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    number(whole, 2)?;
    number(part, 9)?;
    text.parse().ok()
}

/// Days of that month in the Gregorian calendar.
const fn month_length(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Hours by which the zone that lies farthest east is ahead of UTC.
const FARTHEST_H: f64 = 14.0;

/// Time of day without its zone, and the zone's hours east of UTC; none where there is no such zone.
fn zone(time: &str) -> Option<(&str, f64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0.0));
    }
    let Some(at) = time.find(['+', '-']) else { return Some((time, 0.0)) };
    let (time, offset) = time.split_at(at);
    let (sign, digits) = offset.split_at(1);
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None => digits.split_at_checked(2)?,
    };
    let minutes = if minutes.is_empty() && !digits.contains(':') { 0 } else { number(minutes, 2)? };
    let size = number(hours, 2)? as f64 + minutes as f64 / 60.0;
    (minutes < 60 && size <= FARTHEST_H).then_some((time, if sign == "-" { -size } else { size }))
}

/// Days since 1970-01-01 in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March put the leap day last.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
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
