//! How names, ages and numbers are written so that they fit a cell and line up.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use muster_playbook::report::rfc3339;
use ratatui::text::Span;

/// Cells that `text` takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// `text` in at most `room` cells, its middle replaced by an ellipsis: both ends of a host name tell. Of a name with a domain it is the
/// domain that goes first. Names of a list that have more in common are shortened by [`Common`].
pub(crate) fn elide(text: &str, room: usize, ascii: bool) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    match host(text) {
        Some(host) if width(host) < room => format!("{host}{}", mark(ascii)),
        Some(host) => middle(host, room, ascii),
        None => middle(text, room, ascii),
    }
}

/// What stands for what was left out.
const fn mark(ascii: bool) -> &'static str {
    if ascii { "~" } else { "…" }
}

/// `text` in at most `room` cells, its middle replaced by an ellipsis.
fn middle(text: &str, room: usize, ascii: bool) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let keep = room.saturating_sub(1);
    let head = take(text.chars(), keep.div_ceil(2));
    let tail: String = take(text.chars().rev(), keep / 2).chars().rev().collect();
    if room == 0 { String::new() } else { format!("{head}{}{tail}", mark(ascii)) }
}

/// The numbered host of a name with a domain of two parts or more: `gpu-01` of `gpu-01.eu.example`.
fn host(name: &str) -> Option<&str> {
    let (host, domain) = name.split_once('.')?;
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let named = host.starts_with(char::is_alphabetic) && !host.contains([' ', '/', ':']);
    let numbered = host.contains(|c: char| c.is_ascii_digit());
    (named && numbered && domain.contains('.') && domain.split('.').all(is_part)).then_some(host)
}

/// What all names of a list have in common and goes first where they do not fit: their domain, then the words they begin with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Common {
    prefix: String,
    suffix: String,
    /// Cells of the longest name, and of the longest without the domain.
    longest: [usize; 2],
}

impl Common {
    /// Of all `names`; a single one has nothing in common with another. Linear in their length.
    pub(crate) fn of<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Self {
        if names.clone().nth(1).is_none() {
            return Self::default();
        }
        let suffix = names.clone().reduce(common_end).unwrap_or_default();
        // What addresses share at their ends is no domain.
        let mut ends = suffix.match_indices('.').map(|(dot, _)| &suffix[dot..]);
        let suffix = ends.find(|end| end[1..].starts_with(char::is_alphabetic)).unwrap_or_default();
        let stems = names.clone().map(|name| name.strip_suffix(suffix).unwrap_or(name));
        let prefix = stems.clone().reduce(common_start).unwrap_or_default();
        // Whole words only: of `gpu-0010` and `gpu-0017` it is `gpu-`.
        let prefix = prefix.trim_end_matches(char::is_alphanumeric);
        let cells = |name: &str| if name.is_ascii() { name.len() } else { width(name) };
        let longest = [names.map(cells).max(), stems.map(cells).max()].map(Option::unwrap_or_default);
        Self { prefix: prefix.to_owned(), suffix: suffix.to_owned(), longest }
    }

    /// `name` without the domain of all.
    pub(crate) fn stem<'n>(&self, name: &'n str) -> &'n str {
        name.strip_suffix(self.suffix.as_str()).unwrap_or(name)
    }

    /// `name` in at most `room` cells. What one of the names has to leave out all of them do, so that a list reads alike.
    pub(crate) fn short(&self, name: &str, room: usize, ascii: bool) -> String {
        let [whole, stem] = self.longest;
        if whole <= room {
            return elide(name, room, ascii);
        }
        let own = self.stem(name);
        match own.strip_prefix(self.prefix.as_str()).filter(|rest| stem > room && rest.len() < own.len()) {
            Some(rest) => middle(&format!("{}{rest}", mark(ascii)), room, ascii),
            None => middle(own, room, ascii),
        }
    }

    /// A `text` in which some of the names occur in at most `room` cells: without their domain where it does not fit.
    pub(crate) fn within(&self, text: &str, room: usize, ascii: bool) -> String {
        let fits = self.suffix.is_empty() || width(text) <= room;
        if fits { elide(text, room, ascii) } else { middle(&text.replace(&self.suffix, ""), room, ascii) }
    }
}

/// What both begin with.
fn common_start<'t>(a: &'t str, b: &str) -> &'t str {
    let differs = a.char_indices().zip(b.chars()).find(|((_, x), y)| x != y);
    &a[..differs.map_or(a.len().min(b.len()), |((at, _), _)| at)]
}

/// What both end with.
fn common_end<'t>(a: &'t str, b: &str) -> &'t str {
    let same = a.char_indices().rev().zip(b.chars().rev()).take_while(|((_, x), y)| x == y);
    &a[same.last().map_or(a.len(), |((at, _), _)| at)..]
}

/// `names` such as `bert_models/bert-base/steptime_float16` in at most `room` cells each. Where names would read alike without their
/// middles, all of that form have their first word and those in which they differ: `bert…base…step…16`.
pub(crate) fn distinct(names: &[String], room: usize, ascii: bool) -> Vec<String> {
    let mut shown: Vec<String> = names.iter().map(|name| elide(name, room, ascii)).collect();
    let mut forms: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (at, name) in names.iter().enumerate() {
        let first = name.split('/').next().unwrap_or_default();
        let between = name.chars().filter(|c| !c.is_alphanumeric()).collect();
        forms.entry((first, between)).or_default().push(at);
    }
    for places in forms.into_values() {
        let own: Vec<&str> = places.iter().map(|at| names[*at].as_str()).collect();
        let before = different(places.iter().map(|at| shown[*at].as_str()));
        if before == different(own.iter().copied()) {
            continue;
        }
        let told = differing(&own, room, ascii);
        if different(told.iter().map(String::as_str)) > before {
            places.into_iter().zip(told).for_each(|(at, text)| shown[at] = text);
        }
    }
    shown
}

/// How many different ones there are.
fn different<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names.collect::<BTreeSet<_>>().len()
}

/// The first word of each name and those that are not the same in all; the names have equally many.
fn differing(names: &[&str], room: usize, ascii: bool) -> Vec<String> {
    let words = |name: &&str| name.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect::<Vec<_>>();
    let words: Vec<Vec<String>> = names.iter().map(words).collect();
    let Some(first) = words.first() else { return Vec::new() };
    let differs = |column: &usize| words.iter().any(|own| own[*column] != first[*column]);
    let columns: Vec<(usize, usize)> = (1..first.len())
        .filter(differs)
        .map(|column| (column, letters(words.iter().map(|own| own[column].as_str()))))
        .collect();
    let parts = |own: &Vec<String>| {
        let rest = columns.iter().map(|(column, letters)| own[*column][*letters..].to_owned());
        std::iter::once(own[0].clone()).chain(rest).collect::<Vec<String>>()
    };
    words.iter().map(|own| joined(&parts(own), room, mark(ascii))).collect()
}

/// Bytes of the letters that all `words` begin with, where nothing but numbers follows: those of `float` in `float16` and `float32`.
fn letters<'w>(mut words: impl Iterator<Item = &'w str> + Clone) -> usize {
    let start = words.clone().reduce(common_start).unwrap_or_default();
    let start = start.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if words.all(|word| word[start..].starts_with(|c: char| c.is_ascii_digit())) { start } else { 0 }
}

/// `parts` with a mark between any two in at most `room` cells, where the longest are cut.
fn joined(parts: &[String], room: usize, mark: &str) -> String {
    let mut left = room.saturating_sub(parts.len().saturating_sub(1));
    let mut widths = vec![0; parts.len()];
    // A cell each in turn, the last ones first, as they differ.
    while left > 0 && parts.iter().zip(&widths).any(|(part, own)| *own < width(part)) {
        for (part, own) in parts.iter().zip(&mut widths).rev() {
            if *own < width(part) && left > 0 {
                *own += 1;
                left -= 1;
            }
        }
    }
    let parts: Vec<String> = parts.iter().zip(widths).map(|(part, own)| take(part.chars(), own)).collect();
    take(parts.join(mark).chars(), room)
}

/// The beginning of `text` in at most `room` cells, with an ellipsis where it was cut.
pub(crate) fn cut(text: &str, room: usize, ascii: bool) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    if room == 0 { String::new() } else { take(text.chars(), room - 1) + mark(ascii) }
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

/// `text` in at most `most` lines of `room` cells; the last one ends with an ellipsis where that is not all.
pub(crate) fn wrap_cut(text: &str, (room, most): (usize, usize), ascii: bool) -> Vec<String> {
    let mut lines = wrap(text, room);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = cut(&format!("{last} {}", mark(ascii)), room, ascii);
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
        p if !(9.95..99.5).contains(&p.abs()) => format!("{p:+.1} %"),
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
    fn of_a_name_with_a_domain_the_domain_goes_first() {
        assert_eq!(elide("gpu-node-0001.eu-north1.example.internal", 14, false), "gpu-node-0001…");
        assert_eq!(elide("gpu-node-[0001-0024].eu-north1.example", 24, true), "gpu-node-[0001-0024]~");
        assert_eq!(elide("rack-00-chassis-0-slot-04.very-long.example.org", 14, false), "rack-00…lot-04");
        for other in
            ["sysctl.net.core.somaxconn", "10.3.1.17.18.19.20", "n1.eu.x,n2.eu.x,n3.eu.x", "disk/a1.b.c.d.e.f.g"]
        {
            assert_eq!(elide(other, 12, false), middle(other, 12, false));
        }
    }

    #[test]
    fn names_of_a_list_lose_what_all_share_and_all_alike() {
        let names = |of: &[&str]| Common::of(of.iter().copied());
        let full =
            names(&["gpu-node-0001.eu.example.org", "gpu-node-0012.eu.example.org", "gpu-node-12345.eu.example.org"]);
        let short = |room| full.short("gpu-node-0012.eu.example.org", room, false);
        assert_eq!(short(29), "gpu-node-0012.eu.example.org");
        assert_eq!([short(28), short(14)], ["gpu-node-0012"; 2], "another one is longer than 28");
        assert_eq!([short(13), short(5)], ["…0012"; 2]);
        assert_eq!(full.stem("gpu-node-0001.eu.example.org"), "gpu-node-0001");
        let pair = full.within("pair gpu-node-0001.eu.example.org-gpu-node-0012.eu.example.org", 40, false);
        assert_eq!(pair, "pair gpu-node-0001-gpu-node-0012");
        let racks = names(&["n1.rack1.example.org", "n1.rack2.example.org"]);
        assert_eq!(racks.short("n1.rack2.example.org", 12, false), "n1.rack2");
        assert_eq!(names(&["rack1-04", "rack1-05"]).short("rack1-05", 14, false), "rack1-05");
        assert_eq!(names(&["same", "same"]).short("same", 3, false), "s…e");
        assert_eq!(names(&[]).short("gpu-01.eu.example", 8, false), "gpu-01…");
    }

    #[test]
    fn metrics_of_one_benchmark_say_the_words_in_which_they_differ() {
        let metric =
            |[model, what, bits]: [&str; 3]| format!("bert_models/pytorch-bert-{model}/{what}_train_float{bits}");
        let mut names = Vec::new();
        for model in ["base", "large"] {
            for what in ["steptime", "throughput"] {
                names.extend(["16", "32"].map(|bits| metric([model, what, bits])));
            }
        }
        names.push("disk/read".to_owned());
        let shown = distinct(&names, 16, false);
        assert_eq!(different(shown.iter().map(String::as_str)), 9, "{shown:?}");
        assert_eq!((shown[0].as_str(), shown[8].as_str()), ("ber…base…step…16", "disk/read"));
        assert!(shown.iter().all(|name| width(name) <= 16), "{shown:?}");
        assert_eq!(distinct(&names, 60, false), names);
        for room in 0..20 {
            assert!(distinct(&names, room, true).iter().all(|name| width(name) <= room), "{room}");
        }
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

    #[test]
    fn lines_that_are_left_out_leave_a_mark() {
        assert_eq!(wrap_cut("one two three", (5, 3), false), ["one", "two", "three"]);
        assert_eq!(wrap_cut("one two three", (5, 2), false), ["one", "two …"]);
        assert_eq!(wrap_cut("abcde four", (5, 1), true), ["abcd~"]);
        assert_eq!(wrap_cut("three four", (5, 0), true), Vec::<String>::new());
    }
}
