//! Which lines of a log do the rules know? In one pass, in bounded memory, whatever the bytes are.

use std::borrow::Cow;

use memchr::{memchr3, memrchr3};

use super::clean::without_escapes;
use super::pattern::harmless;
use super::{Hit, Rules, Stream};
use crate::stamp::Stamp;

/// Bytes of a line that are looked at; the rest is counted.
pub const LONGEST_LINE: usize = 64 * 1024;
/// What ends a line. Progress bars end theirs with a carriage return, and holes of torn files are zeros.
const ENDS: (u8, u8, u8) = (b'\n', b'\r', 0);

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Bytes taken.
    pub bytes: u64,
    /// Line feeds seen.
    pub lines: u64,
    /// Lines that were longer than [`LONGEST_LINE`].
    pub cut_lines: u64,
    /// Bytes of them that were not looked at.
    pub cut_bytes: u64,
}

/// A pass over one log, which comes in pieces of any size.
#[derive(Debug)]
pub struct Scan<'r> {
    rules: &'r Rules,
    stream: Stream,
    scanned: Scanned,
    /// The line that has begun.
    open: Vec<u8>,
    /// Whether the line that has begun is too long already.
    over: bool,
    /// A block without escape sequences.
    plain: Vec<u8>,
    /// Patterns to ask of a line.
    asked: Vec<usize>,
    /// Whether a step that one rule knows is asked of the others.
    step_once: bool,
}

impl<'r> Scan<'r> {
    /// A pass over a log of kind `stream`.
    #[must_use]
    pub const fn new(rules: &'r Rules, stream: Stream) -> Self {
        let scanned = Scanned { bytes: 0, lines: 0, cut_lines: 0, cut_bytes: 0 };
        Self {
            rules,
            stream,
            scanned,
            open: Vec::new(),
            over: false,
            plain: Vec::new(),
            asked: Vec::new(),
            step_once: false,
        }
    }

    /// The same, but a step that a rule knows with its duration is asked of no later rule for steps.
    ///
    /// Where two of them know a line, it is one step, and the rule of the framework stands before those for any program. Where the
    /// first tells no duration, the others are asked: one of them may.
    #[must_use]
    pub const fn step_once(mut self) -> Self {
        self.step_once = true;
        self
    }

    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8], hit: &mut impl FnMut(&Hit<'_>)) {
        self.scanned.bytes += piece.len() as u64;
        let mut rest = piece;
        if self.over || !self.open.is_empty() {
            let end = memchr3(ENDS.0, ENDS.1, ENDS.2, rest);
            self.keep(&rest[..end.unwrap_or(rest.len())]);
            let Some(end) = end else { return };
            self.close(rest[end] == b'\n', hit);
            rest = &rest[end + 1..];
        }
        let whole = memrchr3(ENDS.0, ENDS.1, ENDS.2, rest).map_or(0, |end| end + 1);
        self.blocks(&rest[..whole], hit);
        self.keep(&rest[whole..]);
    }

    /// Takes the last line, which may lack its end.
    pub fn finish(mut self, hit: &mut impl FnMut(&Hit<'_>)) -> Scanned {
        if self.over || !self.open.is_empty() {
            self.close(false, hit);
        }
        self.scanned
    }

    /// What was looked at so far.
    #[must_use]
    pub const fn scanned(&self) -> Scanned {
        self.scanned
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE - self.open.len();
        self.open.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            self.scanned.cut_lines += u64::from(!self.over);
            self.scanned.cut_bytes += (bytes.len() - room) as u64;
            self.over = true;
        }
    }

    fn close(&mut self, feed: bool, hit: &mut impl FnMut(&Hit<'_>)) {
        let mut line = std::mem::take(&mut self.open);
        self.block(&line, hit);
        self.scanned.lines += u64::from(feed);
        line.clear();
        (self.open, self.over) = (line, false);
    }

    /// Whole lines, cut into blocks of whole lines that are not too long.
    fn blocks(&mut self, lines: &[u8], hit: &mut impl FnMut(&Hit<'_>)) {
        let mut rest = lines;
        while !rest.is_empty() {
            let within = &rest[..rest.len().min(LONGEST_LINE + 1)];
            if let Some(end) = memrchr3(ENDS.0, ENDS.1, ENDS.2, within) {
                self.block(&rest[..=end], hit);
                rest = &rest[end + 1..];
            } else {
                let Some(end) = memchr3(ENDS.0, ENDS.1, ENDS.2, rest) else { return };
                self.scanned.cut_lines += 1;
                self.scanned.cut_bytes += (end - LONGEST_LINE) as u64;
                self.block(&rest[..LONGEST_LINE], hit);
                self.scanned.lines += u64::from(rest[end] == b'\n');
                rest = &rest[end + 1..];
            }
        }
    }

    fn block(&mut self, block: &[u8], hit: &mut impl FnMut(&Hit<'_>)) {
        let first = self.scanned.lines + 1;
        self.scanned.lines += feeds(block);
        if memchr::memchr(0x1b, block).is_none() {
            return self.search(block, first, hit);
        }
        let mut plain = std::mem::take(&mut self.plain);
        without_escapes(block, &mut plain);
        self.search(&plain, first, hit);
        self.plain = plain;
    }

    /// Looks for lines with any text that an expression needs, and asks those.
    fn search(&mut self, block: &[u8], first: u64, hit: &mut impl FnMut(&Hit<'_>)) {
        let (mut from, mut row, mut counted) = (0, first, 0);
        while let Some(found) = self.rules.any.find(&block[from..]) {
            let at = from + found.start();
            let start = memrchr3(ENDS.0, ENDS.1, ENDS.2, &block[from..at]).map_or(from, |end| from + end + 1);
            let end = memchr3(ENDS.0, ENDS.1, ENDS.2, &block[at..]).map_or(block.len(), |end| at + end);
            row += feeds(&block[counted..start]);
            counted = start;
            self.line(&block[start..end], row, hit);
            from = end;
        }
    }

    fn line(&mut self, line: &[u8], row: u64, hit: &mut impl FnMut(&Hit<'_>)) {
        let rules = self.rules;
        self.asked.clear();
        for found in rules.each.find_overlapping_iter(line) {
            self.asked.extend_from_slice(&rules.of_text[found.pattern().as_usize()]);
        }
        self.asked.sort_unstable();
        self.asked.dedup();
        let (mut head, mut told) = (None, false);
        for &at in &self.asked {
            let pattern = &rules.patterns[at];
            if !pattern.stream.holds_in(self.stream) || (told && pattern.step) {
                continue;
            }
            let Some((rule, fields)) = pattern.read(line) else { continue };
            told |= self.step_once && pattern.step && fields.seconds().is_some();
            let (text, stamp) = head.get_or_insert_with(|| {
                let text = harmless(line);
                let stamp = Stamp::of(&text);
                (text, stamp)
            });
            let (text, stamp) = (Cow::Borrowed(&**text), *stamp);
            hit(&Hit { rule: rules.rule(rule), row, text, fields, stamp });
        }
    }
}

fn feeds(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::clean::without_escapes;

    static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::built_in().unwrap());
    static EXAMPLES: LazyLock<Vec<String>> =
        LazyLock::new(|| RULES.iter().flat_map(|rule| rule.examples.iter().chain(&rule.not)).cloned().collect());

    type Found = Vec<(u64, String, String)>;

    fn scanned(log: &[u8], pieces: &[usize]) -> (Found, Scanned) {
        let mut found = Vec::new();
        let mut scan = Scan::new(&RULES, Stream::Any);
        let mut keep = |hit: &Hit<'_>| found.push((hit.row, hit.rule.id.clone(), format!("{:?}", hit.fields)));
        let mut rest = log;
        for piece in pieces {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            scan.feed(now, &mut keep);
            rest = later;
        }
        scan.feed(rest, &mut keep);
        let scanned = scan.finish(&mut keep);
        (found, scanned)
    }

    /// Line by line and rule by rule.
    fn naive(log: &[u8]) -> Found {
        let (mut found, mut row, mut plain) = (Vec::new(), 1, Vec::new());
        for line in log.split_inclusive(|b| [ENDS.0, ENDS.1, ENDS.2].contains(b)) {
            let feed = line.last() == Some(&b'\n');
            let text = line.strip_suffix(&[ENDS.0]).or(line.strip_suffix(&[ENDS.1])).or(line.strip_suffix(&[ENDS.2]));
            let text = text.unwrap_or(line);
            without_escapes(&text[..text.len().min(LONGEST_LINE)], &mut plain);
            for pattern in &RULES.patterns {
                if let Some((rule, fields)) = pattern.read(&plain) {
                    found.push((row, RULES.rule(rule).id.clone(), format!("{fields:?}")));
                }
            }
            row += u64::from(feed);
        }
        found
    }

    fn line() -> impl Strategy<Value = Vec<u8>> {
        let example = || any::<prop::sample::Index>().prop_map(|at| at.get(&EXAMPLES).clone().into_bytes());
        let noise = prop::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            4 => example(),
            2 => (example(), example()).prop_map(|(a, b)| [a, b" ".to_vec(), b].concat()),
            2 => (example(), 0..200_usize, noise.clone()).prop_map(|(mut a, at, noise)| {
                let at = at.min(a.len());
                a.splice(at..at, noise);
                a
            }),
            1 => (example(), 0..200_usize).prop_map(|(mut a, at)| {
                let at = at.min(a.len());
                a.splice(at..at, *b"\x1b[31;1m");
                a
            }),
            1 => (example(), LONGEST_LINE - 300..LONGEST_LINE + 100).prop_map(|(a, long)| [vec![b'x'; long], a].concat()),
            1 => noise,
        ]
    }

    fn log() -> impl Strategy<Value = Vec<u8>> {
        let end = prop::sample::select(vec![&b"\n"[..], b"\r\n", b"\r", b"\0", b"\n\n"]);
        let lines = prop::collection::vec((line(), end), 0..24);
        (lines, any::<bool>()).prop_map(|(lines, torn)| {
            let mut log: Vec<u8> = lines.into_iter().flat_map(|(line, end)| [line, end.to_vec()].concat()).collect();
            if torn {
                log.pop();
            }
            log
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_scan_finds_what_every_rule_on_every_line_finds(log in log(), pieces in prop::collection::vec(0..9000_usize, 0..12)) {
            let (found, scanned) = scanned(&log, &pieces);
            prop_assert_eq!(found, naive(&log));
            prop_assert_eq!(scanned.bytes, log.len() as u64);
            prop_assert_eq!(scanned.lines, feeds(&log));
        }

        #[test]
        fn any_bytes_are_borne(log in prop::collection::vec(any::<u8>(), 0..4000), pieces in prop::collection::vec(0..900_usize, 0..6)) {
            prop_assert_eq!(scanned(&log, &pieces).1.bytes, log.len() as u64);
        }
    }

    #[test]
    fn a_step_that_two_rules_know_is_one_step_but_where_the_first_tells_no_duration() {
        let known = |line: &str| {
            let (mut all, mut once) = (Vec::new(), Vec::new());
            Scan::new(&RULES, Stream::Job).feed(line.as_bytes(), &mut |hit| all.push(hit.rule.id.clone()));
            let mut scan = Scan::new(&RULES, Stream::Job).step_once();
            scan.feed(line.as_bytes(), &mut |hit| once.push(hit.rule.id.clone()));
            (all, once)
        };
        let (all, once) = known("iteration 5/ 100 | elapsed time per iteration (ms): 990.0 | data time: 12 ms\n");
        assert_eq!((all, once), (vec!["step-megatron".into(), "step-generic-ms".into()], vec!["step-megatron".into()]));
        let (all, once) = known("step: 3  loss: 8.1  memory: 40.12GiB(50.71%)  tps: 7,321 time: 1.5 sec\n");
        assert_eq!((&all, once.len()), (&once, 2));
        let (all, once) =
            known("iteration 5/ 100 | elapsed time per iteration (ms): 990.0 | ValueError: x\nValueError: x\n");
        assert_eq!(all, once, "what is no step is asked of every line");
    }

    #[test]
    fn only_a_rule_for_steps_keeps_others_from_being_asked_and_only_rules_for_steps_are_not_asked() {
        let rule = |id: &str, kind: &str, expression: &str| {
            format!(
                "[[rule]]\nid = '{id}'\nkind = '{kind}'\nmatch = '{expression}'\npart = 'program'\nmeaning = 'A line.'\n\
                 action = 'None.'\nsource = 'a test'\nexamples = ['a', 'b']\n"
            )
        };
        let rules = [
            rule("no-step", "progress", r"took (?P<millis>\d+) ms"),
            rule("no-progress", "notice", r"iteration (?P<step>\d+) took (?P<millis>\d+) ms"),
            rule("without-duration", "progress", r"iteration (?P<step>\d+)"),
            rule("first", "progress", r"iteration (?P<step>\d+) took (?P<millis>\d+) ms"),
            rule("second", "progress", r"iteration (?P<step>\d+)"),
            rule("no-step-again", "progress", r"took (?P<millis>\d+) ms"),
            rule("no-progress-again", "notice", r"iteration (?P<step>\d+)"),
        ];
        let text = format!("family = 'some'\n{}", rules.concat());
        let rules = Rules::read([("some.toml", text.as_str())]).unwrap();
        let mut asked = Vec::new();
        Scan::new(&rules, Stream::Job)
            .step_once()
            .feed(b"iteration 5 took 12 ms\n", &mut |hit| asked.push(hit.rule.id.clone()));
        assert_eq!(
            asked,
            ["no-step", "no-progress", "without-duration", "first", "no-step-again", "no-progress-again"]
        );
    }

    #[test]
    fn of_a_line_that_is_too_long_the_rest_is_counted() {
        let mut log = vec![b'x'; LONGEST_LINE + 5];
        log.extend_from_slice(b"NCCL WARN Cuda failure 'out of memory'\nnext\n");
        for pieces in [vec![], vec![10, 70_000], vec![LONGEST_LINE; 3]] {
            let (found, scanned) = scanned(&log, &pieces);
            assert_eq!((found.len(), scanned.lines, scanned.cut_lines), (0, 2, 1));
            assert_eq!(scanned.cut_bytes, 43);
        }
    }

    #[test]
    fn a_line_of_64_kibibytes_is_looked_at_whole_however_it_comes() {
        let example = "nfs: server 10.4.0.19 not responding";
        for (longer, known) in [(0, 1), (1, 0)] {
            let log = format!("{} {example}\n", "x".repeat(65_535 - example.len() + longer)).into_bytes();
            for pieces in [vec![], vec![10], vec![65_536], vec![65_537], vec![60_000, 5_000]] {
                let (found, scanned) = scanned(&log, &pieces);
                let told = (scanned.lines, scanned.cut_lines, scanned.cut_bytes);
                assert_eq!((found.len(), told), (known, (1, longer as u64, longer as u64)), "{pieces:?}");
            }
        }
    }

    #[test]
    fn what_was_looked_at_is_told_at_any_time() {
        let mut scan = Scan::new(&RULES, Stream::Any);
        scan.feed(b"one\ntwo\nthr", &mut |_| ());
        assert_eq!(scan.scanned(), Scanned { bytes: 11, lines: 2, ..Scanned::default() });
        scan.feed(b"ee\n", &mut |_| ());
        assert_eq!(scan.scanned(), Scanned { bytes: 14, lines: 3, ..Scanned::default() });
    }
}
