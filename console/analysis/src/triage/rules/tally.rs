//! What a log said, in bounded memory: repeats are counted, not kept.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Field, Fields, Hit, Kind, Origin, RuleId};
use crate::triage::stamp::Stamp;

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

/// What a log said. Benign lines and progress are counted by rule only.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    limits: Limits,
    seen: Vec<Seen>,
    by_key: HashMap<u64, usize>,
    kept_of: HashMap<RuleId, usize>,
    counts: HashMap<RuleId, u64>,
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
        *self.counts.entry(rule).or_default() += 1;
        if matches!(hit.rule.kind, Kind::Benign | Kind::Progress) {
            return;
        }
        let key = key(hit);
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
            origin: hit.origin.clone(),
            first: hit.stamp,
            last: hit.stamp,
            count: 1,
        });
    }

    /// Different lines, in the order of their first row.
    #[must_use]
    pub fn seen(&self) -> &[Seen] {
        &self.seen
    }

    /// Lines of a rule, kept or not.
    #[must_use]
    pub fn count(&self, rule: RuleId) -> u64 {
        self.counts.get(&rule).copied().unwrap_or(0)
    }

    /// Lines that were counted and not kept, because too many differ.
    #[must_use]
    pub const fn not_kept(&self) -> u64 {
        self.not_kept
    }
}

/// The same again: same rule, same writer, and the same read out of it but for what counts up.
fn key(hit: &Hit<'_>) -> u64 {
    let counts_up =
        |field: Field| matches!(field, Field::Seconds | Field::Millis | Field::Tid | Field::Port | Field::Count);
    let mut hasher = DefaultHasher::new();
    (hit.rule.place(), hit.origin.rank, hit.origin.local_rank, &hit.origin.host, hit.origin.pid).hash(&mut hasher);
    for (field, text) in hit.fields.iter().filter(|(field, _)| !counts_up(*field)) {
        (field, text).hash(&mut hasher);
    }
    hasher.finish()
}
