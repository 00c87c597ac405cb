//! What a log said, in bounded memory: repeats are counted, not kept.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Field, Fields, Hit, Kind, Origin, RuleId};
use crate::stamp::Stamp;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Different lines of one rule.
    pub per_rule: usize,
    /// Different lines of all rules.
    pub lines: usize,
    /// Bytes of a line.
    pub text: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_rule: 256, lines: 4096, text: 1024 }
    }
}

/// A line that was seen once or often.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which rule knows it.
    pub rule: RuleId,
    /// Its first row in the log.
    pub row: u64,
    /// The line as first seen.
    pub text: String,
    /// What was read out of it the first time.
    pub fields: Fields<'static>,
    /// Who wrote it.
    pub origin: Origin,
    /// When it was first seen, as it says itself.
    pub first: Option<Stamp>,
    /// When it was last seen.
    pub last: Option<Stamp>,
    /// How often.
    pub count: u64,
}

/// What a log said. Benign lines and progress are counted by rule only, but for those that say that something is over.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    limits: Limits,
    seen: Vec<Seen>,
    by_key: HashMap<u64, usize>,
    kept_of: HashMap<RuleId, usize>,
    /// By the rule's place.
    counts: Vec<u64>,
    not_kept: u64,
}

impl Tally {
    /// With other limits than usual.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes one hit.
    pub fn add(&mut self, hit: &Hit<'_>) {
        let rule = hit.rule.place();
        self.add_one(rule);
        if matches!(hit.rule.kind, Kind::Benign | Kind::Progress) && hit.rule.ends.is_empty() {
            return;
        }
        let origin = hit.origin();
        let key = key(hit, &origin);
        if let Some(&at) = self.by_key.get(&key) {
            let seen = &mut self.seen[at];
            seen.count += 1;
            seen.last = hit.stamp.or(seen.last);
            return;
        }
        let kept = self.kept_of.entry(rule).or_default();
        if *kept >= self.limits.per_rule || self.seen.len() >= self.limits.lines {
            self.not_kept += 1;
            return;
        }
        *kept += 1;
        self.by_key.insert(key, self.seen.len());
        self.seen.push(Seen {
            rule,
            row: hit.row,
            text: hit.text[..hit.text.floor_char_boundary(self.limits.text)].to_owned(),
            fields: hit.fields.owned(),
            origin,
            first: hit.stamp,
            last: hit.stamp,
            count: 1,
        });
    }

    fn add_one(&mut self, rule: RuleId) {
        let place = rule.0 as usize;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    /// Different lines, in the order of their first row.
    #[must_use]
    pub fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// Lines of a rule, kept or not.
    #[must_use]
    pub fn count(&self, rule: RuleId) -> u64 {
        self.counts.get(rule.0 as usize).copied().unwrap_or(0)
    }

    /// Lines that were counted and not kept, because too many differ.
    #[must_use]
    pub const fn not_kept(&self) -> u64 {
        self.not_kept
    }
}

/// The same again: same rule, same writer, and the same read out of it but for what counts up.
fn key(hit: &Hit<'_>, origin: &Origin) -> u64 {
    let counts_up =
        |field: Field| matches!(field, Field::Seconds | Field::Millis | Field::Tid | Field::Port | Field::Count);
    let mut hasher = DefaultHasher::new();
    (hit.rule.place(), origin.rank, origin.local_rank, &origin.host, origin.pid).hash(&mut hasher);
    for (field, text) in hit.fields.iter().filter(|(field, _)| !counts_up(*field)) {
        (field, text).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{Limits, Tally};
    use crate::{Rules, Scan, Stream};

    fn tally(log: &str, limits: Limits) -> Tally {
        let rules = Rules::built_in().unwrap();
        let (mut tally, mut scan) = (Tally::new(limits), Scan::new(&rules, Stream::Any));
        scan.feed(log.as_bytes(), &mut |hit| tally.add(hit));
        scan.finish(&mut |hit| tally.add(hit));
        tally
    }

    #[test]
    fn a_line_that_repeats_is_kept_once_and_counted() {
        let line = "nfs: server 10.0.0.1 not responding, still trying\n";
        let log: String = (0..50).map(|nr| format!("[{nr}.000000] {line}")).collect();
        let tally = tally(&log, Limits::default());
        let [seen] = tally.seen() else { panic!("one line") };
        assert_eq!((seen.count, seen.row), (50, 1));
        assert_eq!(seen.last.map(|stamp| stamp.seconds(1970)), Some(49.0));
    }

    #[test]
    fn many_different_lines_fill_no_memory() {
        let log: String = (0..100_000).map(|nr| format!("nfs: server s{nr} not responding, still trying\n")).collect();
        let tally = tally(&log, Limits { per_rule: 10, ..Limits::default() });
        assert_eq!((tally.seen().len(), tally.not_kept()), (10, 99_990));
        assert_eq!(tally.count(tally.seen()[0].rule), 100_000);
    }

    #[test]
    fn the_same_is_said_again_by_whoever_said_it_before_but_for_what_counts_up() {
        let counts = |lines: &[&str]| {
            let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
            tally(&log, Limits::default()).seen().iter().map(|seen| seen.count).collect::<Vec<_>>()
        };
        let waits = |rank: u32, millis: u32, seq: u32| {
            format!(
                "[rank{rank}]:[E1120 10:20:10.000000 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, Timeout(ms)=600000) ran for {millis} milliseconds before timing out."
            )
        };
        let (first, longer, other, next) =
            (waits(1, 600_000, 61), waits(1, 600_041, 61), waits(2, 600_000, 61), waits(1, 600_000, 62));
        assert_eq!(counts(&[&first, &longer]), [2]);
        assert_eq!(counts(&[&first, &other, &next, &longer]), [2, 1, 1], "another rank, and another operation");
        let closed = |host: &str, pid: u32, tid: u32, port: u32| {
            format!(
                "{host}:{pid}:{tid} [0] misc/socket.cc:503 NCCL WARN socketProgress: Connection closed by remote peer h2<{port}>"
            )
        };
        let of = [closed("h1", 12, 34, 1), closed("h1", 12, 35, 2), closed("h3", 12, 34, 1), closed("h1", 13, 34, 1)];
        assert_eq!(counts(&of.each_ref().map(String::as_str)), [2, 1, 1], "another thread and port are the same");
    }

    #[test]
    fn of_all_rules_so_many_lines_are_kept_and_what_is_kept_goes_on_to_be_counted() {
        let log = "nfs: server s1 not responding, still trying\nnfs: server s2 not responding, still trying\n\
                   mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 5: be00000000800400\n\
                   nfs: server s1 not responding, still trying\n";
        let of = |limits| {
            let tally = tally(log, limits);
            (tally.seen().iter().map(|seen| (seen.row, seen.count)).collect::<Vec<_>>(), tally.not_kept())
        };
        assert_eq!(of(Limits { lines: 2, ..Limits::default() }), (vec![(1, 2), (2, 1)], 1));
        assert_eq!(of(Limits { lines: 3, ..Limits::default() }), (vec![(1, 2), (2, 1), (3, 1)], 0));
        assert_eq!(of(Limits { per_rule: 1, ..Limits::default() }), (vec![(1, 2), (3, 1)], 1));
    }

    #[test]
    fn what_is_harmless_is_counted_and_kept_only_where_it_says_that_something_is_over() {
        let log = "nfs: server s1 OK\nmlx5_core 0000:0f:00.0 ib7: Link up\niteration 5/ 100 | elapsed time per iteration (ms): 990.0 |\n";
        let (rules, tally) = (Rules::built_in().unwrap(), tally(log, Limits::default()));
        let kept: Vec<&str> = tally.seen().iter().map(|seen| rules.rule(seen.rule).id.as_str()).collect();
        assert_eq!(kept, ["nfs-ok"]);
        let count = |id: &str| tally.count(rules.by_id(id).unwrap().place());
        assert_eq!(
            ["nfs-ok", "nic-link-up", "step-megatron", "nfs-not-responding", "xid-79"].map(count),
            [1, 1, 1, 0, 0]
        );
    }

    #[test]
    fn a_line_is_kept_up_to_so_many_bytes_and_no_letter_is_cut_and_the_last_time_that_is_told_stays() {
        let line = "nfs: server s1 not responding, é still trying";
        let log = format!("[1000000000.5] {line}\n[1000000009.5] {line}\n{line}\n");
        let text = |bytes: usize| tally(&log, Limits { text: bytes, ..Limits::default() }).seen()[0].text.clone();
        assert_eq!(
            (text(46), text(47)),
            (
                "[1000000000.5] nfs: server s1 not responding, ".to_owned(),
                "[1000000000.5] nfs: server s1 not responding, ".to_owned()
            )
        );
        assert!(text(48).ends_with("responding, é"));
        let tally = tally(&log, Limits::default());
        let [seen] = tally.seen() else { panic!("one line") };
        let at = |stamp: Option<crate::stamp::Stamp>| stamp.map(|stamp| stamp.seconds(1970));
        assert_eq!((seen.count, at(seen.first), at(seen.last)), (3, Some(1_000_000_000.5), Some(1_000_000_009.5)));
    }
}
