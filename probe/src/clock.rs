//! What time it is here, on the two clocks the contract speaks of.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use tz::UtcDateTime;

/// Wall clock, nanoseconds since 1970 UTC; 0 before that year.
pub(crate) fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// `CLOCK_MONOTONIC`, nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
    seconds * 1_000_000_000 + nanos
}

/// Seconds since 1970 as `YYYY-MM-DD hh:mm:ss`, UTC; the first second of 1970 for what no calendar reaches.
pub(crate) fn written(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok().and_then(|seconds| UtcDateTime::from_timespec(seconds, 0).ok());
    let written = |at: UtcDateTime| {
        let (hour, minute, second) = (at.hour(), at.minute(), at.second());
        format!("{:04}-{:02}-{:02} {hour:02}:{minute:02}:{second:02}", at.year(), at.month(), at.month_day())
    };
    at.map_or_else(|| "1970-01-01 00:00:00".to_owned(), written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(written(0), "1970-01-01 00:00:00");
        assert_eq!(written(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(written(1_767_795_699), "2026-01-07 14:21:39");
        assert_eq!(written(4_107_542_399), "2100-02-28 23:59:59");
    }
}
