//! All rules together, and what finds the lines worth a look.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::pattern::Pattern;
use super::{BadRule, Rule, RuleId, built_in, read};

/// Rules, ready to scan with.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) patterns: Vec<Pattern>,
    /// Finds the first text that any expression needs.
    pub(crate) any: AhoCorasick,
    /// Finds all of them, also where they overlap.
    pub(crate) each: AhoCorasick,
    /// Patterns that need a text, by its number in both.
    pub(crate) of_text: Vec<Vec<usize>>,
}

impl Rules {
    /// The rules that muster brings.
    ///
    /// # Errors
    /// When a rule is wrong: never in a program whose tests passed.
    pub fn built_in() -> Result<Self, BadRule> {
        Self::read(built_in::FILES.iter().copied())
    }

    /// Rules from files, each a name (for errors) and its text.
    ///
    /// # Errors
    /// Which rule of which file is wrong in which field; also when two have the same id, or one follows a rule that is not there.
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, BadRule> {
        let (mut rules, mut patterns, mut file_of) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (file, text) in files {
            let read = read::read(file, text, rules.len())?;
            for rule in &read.rules {
                if let Some(other) = file_of.insert(rule.id.clone(), file) {
                    return Err(bad(file, rule, "id", format!("is there already, in {other}")));
                }
            }
            rules.extend(read.rules);
            patterns.extend(read.patterns);
        }
        for rule in &rules {
            for (field, named) in [("follows", &rule.follows), ("ends", &rule.ends)] {
                if let Some(unknown) = named.iter().find(|id| !file_of.contains_key(*id)) {
                    return Err(bad(file_of[&rule.id], rule, field, format!("there is no rule {unknown}")));
                }
            }
        }
        if let Some(rule) = circle(&rules) {
            return Err(bad(file_of[&rule.id], rule, "follows", "leads back to itself".to_owned()));
        }
        Self::found_by_text(rules, patterns)
    }

    fn found_by_text(rules: Vec<Rule>, patterns: Vec<Pattern>) -> Result<Self, BadRule> {
        let mut of_text: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (at, pattern) in patterns.iter().enumerate() {
            for text in &pattern.needed {
                of_text.entry(text).or_default().push(at);
            }
        }
        let texts = || of_text.keys();
        let automaton = |kind, texts: &mut dyn Iterator<Item = &&[u8]>| {
            // A table of 4 MB: twice as fast on lines as what takes a tenth of the room.
            let built = AhoCorasick::builder().match_kind(kind).kind(Some(AhoCorasickKind::DFA)).build(texts);
            let why = |why: aho_corasick::BuildError| why.to_string();
            built.map_err(|e| BadRule { file: String::new(), rule: String::new(), field: String::new(), why: why(e) })
        };
        let any = automaton(MatchKind::LeftmostFirst, &mut texts())?;
        let each = automaton(MatchKind::Standard, &mut texts())?;
        let of_text = of_text.into_values().collect();
        Ok(Self { rules, patterns, any, each, of_text })
    }

    /// A rule by its place.
    #[must_use]
    pub fn rule(&self, place: RuleId) -> &Rule {
        &self.rules[place.0 as usize]
    }

    /// A rule by its id.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }

    /// The expressions by which lines are recognised, as other tools read them too.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().map(|pattern| pattern.regex.as_str())
    }

    /// All of them, in the order of their files.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }
}

fn bad(file: &str, rule: &Rule, field: &str, why: String) -> BadRule {
    BadRule { file: file.to_owned(), rule: rule.id.clone(), field: field.to_owned(), why }
}

/// A rule that, over others, follows itself.
fn circle(rules: &[Rule]) -> Option<&Rule> {
    let follows: BTreeMap<&str, &Rule> = rules.iter().map(|rule| (rule.id.as_str(), rule)).collect();
    rules.iter().find(|start| {
        let (mut open, mut seen) = (vec![*start], Vec::new());
        while let Some(rule) = open.pop() {
            for next in rule.follows.iter().filter_map(|id| follows.get(id.as_str())) {
                if next.id == start.id {
                    return true;
                }
                if !seen.contains(&next.id.as_str()) {
                    seen.push(&next.id);
                    open.push(next);
                }
            }
        }
        false
    })
}
