//! Which nodes a filter keeps.

use crate::judgement::word;
use crate::snapshot::NodeRow;

/// Terms that must all hold: `state:fail`, `rack:r3`, `group:gpu`, `link:retry`, `name:a17`, or plain text that
/// occurs in any of these. Case does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    text: String,
    terms: Vec<(Field, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Any,
    Name,
    State,
    Rack,
    Group,
    Link,
}

impl Filter {
    /// Reads a filter; every text is one.
    pub(crate) fn new(text: &str) -> Self {
        let terms = text.split_whitespace().map(|t| term(&t.to_lowercase())).collect();
        Self { text: text.to_owned(), terms }
    }

    /// As typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it keeps everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether `node` is kept.
    pub(crate) fn keeps(&self, node: &NodeRow) -> bool {
        self.terms.iter().all(|(field, needle)| holds(node, *field, needle))
    }
}

fn term(text: &str) -> (Field, String) {
    let (field, rest) = match text.split_once(':') {
        Some(("name" | "node", rest)) => (Field::Name, rest),
        Some(("state", rest)) => (Field::State, rest),
        Some(("rack", rest)) => (Field::Rack, rest),
        Some(("group", rest)) => (Field::Group, rest),
        Some(("link", rest)) => (Field::Link, rest),
        _ => (Field::Any, text),
    };
    (field, rest.to_owned())
}

fn holds(node: &NodeRow, field: Field, needle: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(needle);
    match field {
        Field::Name => has(&node.name),
        Field::State => word(node.state).replace(' ', "_").starts_with(needle) || has(word(node.state)),
        Field::Rack => has(&node.rack),
        Field::Group => node.groups.iter().any(|g| has(g)),
        Field::Link => has(&node.link.text),
        Field::Any => {
            has(&node.name)
                || has(&node.rack)
                || has(word(node.state))
                || has(&node.link.text)
                || node.groups.iter().any(|g| has(g))
        }
    }
}
