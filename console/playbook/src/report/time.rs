//! How an instant is written: RFC 3339, UTC, whole seconds.

use jiff::Timestamp;

/// `2026-11-21T14:30:08Z` for milliseconds since 1970 UTC; fractions of a second are cut off. What lies past the year 9999 is its last second.
#[must_use]
pub fn rfc3339(unix_ms: u64) -> String {
    let seconds = i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_are_written_as_date_does() {
        // Expected values: GNU date -u -d @SECONDS +%FT%TZ.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (1_795_271_408, "2026-11-21T14:30:08Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1000 + 999), expected);
        }
    }

    #[test]
    fn a_time_past_the_calendar_is_its_end() {
        assert!(rfc3339(u64::MAX).starts_with("9999-12-30T"), "{}", rfc3339(u64::MAX));
    }
}
