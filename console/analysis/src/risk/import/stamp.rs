//! Which hour does a written time mean? Hours since 1970-01-01T00:00 in the zone the text is written in.

/// Hours since the Unix epoch of `2024-03-30T07:05:09`, also with a blank for the `T`, without seconds, and with
/// `Z` or an offset such as `+02:00`; without either the text is taken as UTC. None when it is no such time.
#[must_use]
pub fn hours(text: &str) -> Option<f64> {
    let text = text.trim();
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, offset) = zone(time)?;
    let mut parts = time.splitn(3, ':').map(str::parse::<f64>);
    let hour = parts.next()?.ok()?;
    let minute = parts.next().unwrap_or(Ok(0.0)).ok()?;
    let second = parts.next().unwrap_or(Ok(0.0)).ok()?;
    let fits = (0.0..25.0).contains(&hour) && (0.0..60.0).contains(&minute) && (0.0..=60.0).contains(&second);
    fits.then(|| days(year, month, day) as f64 * 24.0 + hour + minute / 60.0 + second / 3600.0 - offset)
}

/// Time of day without its zone, and the zone's hours east of UTC.
fn zone(time: &str) -> Option<(&str, f64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0.0));
    }
    let Some(at) = time.find(['+', '-']) else { return Some((time, 0.0)) };
    let (time, offset) = time.split_at(at);
    let (sign, digits) = offset.split_at(1);
    let digits = digits.replace(':', "");
    let (hours, minutes) = (digits.get(..2)?.parse::<f64>().ok()?, digits.get(2..).unwrap_or("0"));
    let minutes = if minutes.is_empty() { 0.0 } else { minutes.parse::<f64>().ok()? };
    let size = hours + minutes / 60.0;
    Some((time, if sign == "-" { -size } else { size }))
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
}
