//! How names, ages and numbers are written so that they fit a cell and line up.

use std::cmp::Ordering;
use std::ops::Range;

use muster_playbook::report::rfc3339;
use ratatui::text::Span;

/// Cells that `text` takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// `text` in at most `room` cells, its middle replaced by an ellipsis: both ends of a host name tell.
pub(crate) fn elide(text: &str, room: usize, ascii: bool) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let (mark, mark_width) = if ascii { ("~", 1) } else { ("…", 1) };
    let keep = room.saturating_sub(mark_width);
    let head = take(text.chars(), keep.div_ceil(2));
    let tail: String = take(text.chars().rev(), keep / 2).chars().rev().collect();
    if room == 0 { String::new() } else { format!("{head}{mark}{tail}") }
}

/// The beginning of `text` in at most `room` cells, with an ellipsis where it was cut.
pub(crate) fn cut(text: &str, room: usize, ascii: bool) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mark = if ascii { "~" } else { "…" };
    if room == 0 { String::new() } else { take(text.chars(), room - 1) + mark }
}

fn take(chars: impl Iterator<Item = char>, room: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for c in chars {
        used += width(c.encode_utf8(&mut [0; 4]));
        if used > room {
            break;
        }
        out.push(c);
    }
    out
}

/// The words of `text`; a number stays with its unit, or with what it counts, where both fit into half a line.
fn pieces(text: &str, room: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match pieces.last_mut() {
            Some(last) if last.ends_with(|c: char| c.is_ascii_digit()) && width(last) + 1 + width(word) <= room / 2 => {
                last.push(' ');
                last.push_str(word);
            }
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

/// `text` in lines of at most `room` cells, broken at spaces where there are any.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    let room = room.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for mut word in pieces(text, room) {
        if used > 0 && used + 1 + width(&word) > room {
            lines.push(String::new());
            used = 0;
        }
        while width(&word) > room {
            let head = take(word.chars(), room);
            word = word.split_off(head.len());
            if let Some(last) = lines.last_mut() {
                last.push_str(&head);
            }
            lines.push(String::new());
        }
        if let Some(last) = lines.last_mut() {
            if used > 0 {
                last.push(' ');
                used += 1;
            }
            last.push_str(&word);
            used += width(&word);
        }
    }
    lines
}

/// A duration in at most two units: `0.4s`, `42s`, `6m`, `2h04`, `3d04h`.
pub(crate) fn age(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..10 => format!("{}.{}s", s, ms % 1000 / 100),
        10..120 => format!("{s}s"),
        120..7200 => format!("{}m", s / 60),
        7200..172_800 => format!("{}h{:02}", s / 3600, s % 3600 / 60),
        _ => format!("{}d{:02}h", s / 86_400, s % 86_400 / 3600),
    }
}

/// An age without tenths, for columns.
pub(crate) fn whole_age(ms: u64) -> String {
    age(ms / 1000 * 1000).replace(".0s", "s")
}

/// A duration as one would say it, no finer than it can be known: `about a minute`, `about 25 minutes`.
pub(crate) fn about(ms: u64) -> String {
    let minutes = (ms + 30_000) / 60_000;
    match ms / 1000 {
        0..10 => "a few seconds".to_owned(),
        10..45 => "half a minute".to_owned(),
        45..90 => "about a minute".to_owned(),
        90..600 => format!("about {minutes} minutes"),
        600..5_400 => format!("about {} minutes", (minutes + 2) / 5 * 5),
        5_400..129_600 => format!("about {} hours", (minutes + 30) / 60),
        _ => format!("about {} days", (minutes + 720) / 1440),
    }
}

/// A deviation with its sign: `-41 %`, `+0.3 %`, and above a factor of two as one: `5.1x`.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        9_900.0.. => format!("{:.0}x", share + 1.0),
        p if p > 100.0 => format!("{:.1}x", share + 1.0),
        p if p.abs() < 0.05 => "0.0 %".to_owned(),
        p if p.abs() < 9.95 => format!("{p:+.1} %"),
        p => format!("{p:+.0} %"),
    }
}

/// The change of a metric from `then` to `now`: `-41 %`, and above a factor of two `5.1x`; empty where it has no ratio.
pub(crate) fn difference(then: f64, now: f64) -> String {
    let ratio = now / then;
    if ratio.is_finite() && ratio >= 0.0 { percent(ratio - 1.0) } else { String::new() }
}

/// The day of a moment in UTC, such as `2026-11-12`.
pub(crate) fn day(ms: u64) -> String {
    rfc3339(ms).chars().take(10).collect()
}

/// Two moments in UTC as days, such as `2026-11-12`; of one day with their times, and the second one as a time only.
pub(crate) fn days(then_ms: u64, now_ms: u64) -> (String, String) {
    let (then, now) = (rfc3339(then_ms).replace('T', " "), rfc3339(now_ms).replace('T', " "));
    let part = |text: &str, range: Range<usize>| text.get(range).unwrap_or_default().to_owned();
    if part(&then, 0..10) == part(&now, 0..10) {
        (part(&then, 0..16), part(&now, 11..16))
    } else {
        (part(&then, 0..10), part(&now, 0..10))
    }
}

/// A similarity: three decimals, and never rounded up to a one it is not.
pub(crate) fn similarity(value: f64) -> String {
    if value < 1.0 && value > 0.9994 { "0.999".to_owned() } else { format!("{value:.3}") }
}

/// A count with its thousands apart: `1,340`.
pub(crate) fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 node`, `2 nodes`.
pub(crate) fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Compares names so that `node9` comes before `node10`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        match (a.first(), b.first()) {
            (None, None) => return Ordering::Equal,
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (m, n) = (digits(a), digits(b));
                let (x, y) = (trim(&a[..m]), trim(&b[..n]));
                let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
                if order != Ordering::Equal {
                    return order;
                }
                (a, b) = (&a[m..], &b[n..]);
            }
            (Some(x), Some(y)) if x == y => (a, b) = (&a[1..], &b[1..]),
            (Some(x), Some(y)) => return x.cmp(y),
        }
    }
}

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|c| c.is_ascii_digit()).count()
}

fn trim(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|c| **c == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Left;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(elide("rack3-gpu-node-0017", 11, false), "rack3…-0017");
        assert_eq!(elide("rack3-gpu-node-0017", 11, true), "rack3~-0017");
        assert_eq!(elide("short", 11, false), "short");
        assert_eq!(elide("anything", 0, false), "");
        assert_eq!(elide("日本語の名前", 5, false), "日…前");
    }

    #[test]
    fn a_difference_is_a_share_of_what_was_and_above_twice_of_it_a_factor() {
        for (then, now, said) in [
            (100.0, 59.0, "-41 %"),
            (100.0, 100.3, "+0.3 %"),
            (100.0, 182.0, "+82 %"),
            (100.0, 510.0, "5.1x"),
            (1.0, 12_345.0, "12345x"),
            (0.0, 5.0, ""),
        ] {
            assert_eq!(difference(then, now), said);
        }
    }

    #[test]
    fn moments_are_days_and_of_one_day_times() {
        let day = 86_400_000;
        let now = 1_795_269_600_000;
        assert_eq!(days(now - 9 * day, now), ("2026-11-12".to_owned(), "2026-11-21".to_owned()));
        assert_eq!(days(now - 3_600_000, now), ("2026-11-21 13:00".to_owned(), "14:00".to_owned()));
    }

    #[test]
    fn durations_have_at_most_two_units() {
        assert_eq!(age(412), "0.4s");
        assert_eq!(age(59_000), "59s");
        assert_eq!(age(360_000), "6m");
        assert_eq!(age(7_440_000), "2h04");
        assert_eq!(age(273_600_000), "3d04h");
        assert_eq!(whole_age(2_900), "2s");
    }

    #[test]
    fn time_left_is_said_no_finer_than_it_is_known_and_a_plan_is_called_one() {
        for (s, said) in [
            (0, "a few seconds"),
            (44, "half a minute"),
            (45, "about a minute"),
            (89, "about a minute"),
            (90, "about 2 minutes"),
            (599, "about 10 minutes"),
            (600, "about 10 minutes"),
            (780, "about 15 minutes"),
            (5_399, "about 90 minutes"),
            (5_400, "about 2 hours"),
            (86_400, "about 24 hours"),
            (172_800, "about 2 days"),
        ] {
            assert_eq!(about(s * 1000), said, "{s} s");
        }
        assert_eq!(Left { ms: 60_000, measured: true }.words(), "about a minute left");
        assert_eq!(Left { ms: 60_000, measured: false }.words(), "planned: about a minute");
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        let said = [0, 999, 1_000, 12_345, 1_234_567].map(thousands);
        assert_eq!(said, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn names_sort_by_their_numbers() {
        let mut names = ["n10", "n9", "n009", "m11", "n"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["m11", "n", "n9", "n009", "n10"]);
    }

    #[test]
    fn a_similarity_below_one_is_not_shown_as_one() {
        assert_eq!(similarity(0.99999), "0.999");
        assert_eq!(similarity(1.0), "1.000");
    }

    #[test]
    fn sentences_wrap_at_spaces_but_not_before_a_unit_and_long_words_break() {
        assert_eq!(wrap("n7 is 41 % slower", 8), ["n7 is", "41 %", "slower"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
    }
}
