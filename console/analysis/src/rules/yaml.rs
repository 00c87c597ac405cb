//! The little YAML a rule file needs: mappings, lists and words, each with its line.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

/// Nesting accepted; rule files need four levels.
const DEEPEST: usize = 16;
/// Largest file accepted, bytes.
pub(super) const LARGEST: usize = 4 << 20;

/// A value and the line it starts on, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

/// What a rule file is made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// Plain or quoted text; only plain text can be a truth value.
    Word { text: String, plain: bool },
    /// `- a`
    List(Vec<Node>),
    /// `a: b`, in the file's order.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// The text of a word.
    pub(super) fn text(&self) -> Option<&str> {
        if let Value::Word { text, .. } = &self.value { Some(text) } else { None }
    }

    /// The value under `key`, where this is a mapping.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(k, _)| k.text() == Some(key)).map(|(_, v)| v)
    }

    /// A truth value as YAML 1.1 spells it, which SuperBench's reader follows.
    pub(super) fn truth(&self) -> Option<bool> {
        match &self.value {
            Value::Word { text, plain: true } => match text.as_str() {
                "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
                "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Line and reason of what cannot be read.
pub(super) type Bad = (usize, String);

/// Reads one document.
pub(super) fn parse(text: &str) -> Result<Node, Bad> {
    if text.len() > LARGEST {
        return Err((1, format!("{} bytes are more than the {LARGEST} a rule file may have", text.len())));
    }
    let mut events = Parser::new_from_str(text);
    loop {
        match next(&mut events)? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (event, line) => return node(event, line, &mut events, 0),
        }
    }
}

type Events<'a> = Parser<'a, saphyr_parser::StrInput<'a>>;

fn next<'a>(events: &mut Events<'a>) -> Result<(Event<'a>, usize), Bad> {
    let bad = |e: ScanError| (e.marker().line(), e.info().to_owned());
    let (event, span) = events.next_event().ok_or_else(|| (0, "ends too soon".to_owned()))?.map_err(bad)?;
    Ok((event, span.start.line()))
}

fn node<'a>(event: Event<'a>, line: usize, events: &mut Events<'a>, depth: usize) -> Result<Node, Bad> {
    if depth > DEEPEST {
        return Err((line, format!("nested more than {DEEPEST} deep")));
    }
    let value = match event {
        Event::Scalar(text, style, _, _) => Value::Word { text: text.into_owned(), plain: style == ScalarStyle::Plain },
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match next(events)? {
                    (Event::SequenceEnd, _) => break Value::List(items),
                    (event, line) => items.push(node(event, line, events, depth + 1)?),
                }
            }
        }
        Event::MappingStart(..) => mapping(events, depth)?,
        Event::Alias(_) => return Err((line, "aliases are not read in rule files".to_owned())),
        _ => return Err((line, "nothing to read".to_owned())),
    };
    Ok(Node { line, value })
}

fn mapping<'a>(events: &mut Events<'a>, depth: usize) -> Result<Value, Bad> {
    let mut entries: Vec<(Node, Node)> = Vec::new();
    loop {
        let (event, line) = next(events)?;
        if matches!(event, Event::MappingEnd) {
            return Ok(Value::Map(entries));
        }
        let key = node(event, line, events, depth + 1)?;
        if key.text().is_none() {
            return Err((key.line, "a key must be a word".to_owned()));
        }
        if entries.iter().any(|(k, _)| k.text() == key.text()) {
            return Err((key.line, format!("'{}' is there twice", key.text().unwrap_or_default())));
        }
        let (event, line) = next(events)?;
        entries.push((key, node(event, line, events, depth + 1)?));
    }
}
