//! Which nodes a filter keeps.

use muster_analysis::service::Service;
use regex::{Regex, RegexBuilder};

use crate::judgement::word;
use crate::snapshot::NodeRow;
use crate::stale::{self, Stale};

/// Largest compiled expression, bytes.
const COMPILED: usize = 1 << 18;

/// Terms that must all hold: `state:fail`, `state:stale`, `state:provisional`, `rack:r3`, `leaf:sw2`, `group:gpu`, `link:retry`,
/// `service:repair`, `name:a1[0-7]`, or a text that occurs in any of these; `!` before a term turns it round. Each is a regular expression,
/// or plain text where it is none. Case does not matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    text: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
struct Term {
    not: bool,
    field: Field,
    needle: Regex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Any,
    Name,
    State,
    Rack,
    Leaf,
    Group,
    Link,
    Service,
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Filter {
    /// Reads a filter; every text is one. A text without a term, such as `rack:`, is the empty one.
    pub(crate) fn new(text: &str) -> Self {
        let terms: Vec<Term> = text.split_whitespace().filter_map(term).collect();
        let text = if terms.is_empty() { String::new() } else { text.trim().to_owned() };
        Self { text, terms }
    }

    /// As typed, but for spaces around it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it keeps everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether `node` is kept.
    pub(crate) fn keeps(&self, node: &NodeRow, stale: Stale) -> bool {
        self.terms.iter().all(|term| holds(node, stale, term) != term.not)
    }

    /// Whether a line of text on a node called `name` is kept: by its text or its name. A line has no state, rack, leaf, group or link.
    pub(crate) fn keeps_line(&self, name: &str, text: &str) -> bool {
        let holds = |term: &Term| match term.field {
            Field::Any => term.needle.is_match(name) || term.needle.is_match(text),
            Field::Name => term.needle.is_match(name),
            _ => false,
        };
        self.terms.iter().all(|term| holds(term) != term.not)
    }
}

/// `None` where nothing is typed behind a `!` or a field yet.
fn term(text: &str) -> Option<Term> {
    let (not, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let (field, rest) = match text.split_once(':') {
        Some(("name" | "node", rest)) => (Field::Name, rest),
        Some(("state", rest)) => (Field::State, rest),
        Some(("rack", rest)) => (Field::Rack, rest),
        Some(("leaf", rest)) => (Field::Leaf, rest),
        Some(("group", rest)) => (Field::Group, rest),
        Some(("link", rest)) => (Field::Link, rest),
        Some(("service", rest)) => (Field::Service, rest),
        _ => (Field::Any, text),
    };
    let compile = |text: &str| RegexBuilder::new(text).case_insensitive(true).size_limit(COMPILED).build().ok();
    let needle = compile(rest).or_else(|| compile(&regex::escape(rest)))?;
    (!rest.is_empty()).then_some(Term { not, field, needle })
}

fn holds(node: &NodeRow, stale: Stale, term: &Term) -> bool {
    let has = |text: &str| term.needle.is_match(text);
    // As the table tells it: a stale pass is no pass, a stale failure is both.
    let stale = stale.is(node.result_ms);
    let own = || has(word(node.state)) || has(&word(node.state).replace(' ', "_"));
    let provisional = || node.provisional && has("provisional");
    let state = || provisional() || stale && has(stale::WORD) || !(stale && stale::hides(node.state)) && own();
    let service = || {
        let title = node.hands().title();
        has(title) || has(&title.replace(' ', "_"))
    };
    let group = || node.groups.iter().any(|group| has(group));
    match term.field {
        Field::Name => has(&node.name),
        Field::State => state(),
        Field::Rack => has(&node.rack),
        Field::Leaf => has(&node.leaf),
        Field::Group => group(),
        Field::Link => has(&node.link.text),
        Field::Service => service(),
        Field::Any => {
            // That a node is in service is nothing to look for.
            let other = node.hands() != Service::InService && service();
            has(&node.name) || has(&node.rack) || has(&node.leaf) || state() || has(&node.link.text) || group() || other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_keeps_everything_is_no_filter() {
        for text in ["", "  ", "rack:", "!", "! state:"] {
            let filter = Filter::new(text);
            assert!(filter.is_empty() && filter.text().is_empty(), "{text}: {filter:?}");
        }
        assert_eq!(Filter::new(" state:fail ").text(), "state:fail");
        assert_eq!(Filter::new("rack: r3").text(), "rack: r3");
    }
}
