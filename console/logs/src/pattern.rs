//! Does a line match, and what is captured?

use std::borrow::Cow;

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::need::needed;
use super::{Field, Fields, RuleId, Stream};

/// Bytes that a compiled expression may take: some are longer than all their lines together.
const LARGEST: usize = 1 << 20;
/// Bytes kept of one field.
const LONGEST_FIELD: usize = 512;

/// One expression and the rule, or table of rules, it leads to.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    unless: Option<Regex>,
    pub(crate) stream: Stream,
    /// Whether it knows a step of the job, and nothing else.
    pub(crate) step: bool,
    /// Group of the expression, and what it is.
    groups: Vec<(usize, Field)>,
    pub(crate) rows: Vec<Row>,
    /// Texts of which every match contains at least one.
    pub(crate) needed: Vec<Vec<u8>>,
}

/// One rule of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) rule: RuleId,
    /// The number that must be captured as `code`; any where there is none.
    pub(crate) code: Option<u64>,
    /// What the line must contain.
    pub(crate) when: Option<String>,
}

impl Pattern {
    pub(crate) fn new(expression: &str, unless: Option<&str>, stream: Stream) -> Result<Self, (&'static str, String)> {
        let bad = |why: String| ("match", why);
        let hir = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(expression);
        let hir = hir.map_err(|why| bad(one_line(&why)))?;
        let needed = needed(&hir).ok_or_else(|| bad("no text of three bytes or more is in every match".to_owned()))?;
        let regex = compiled(expression).map_err(bad)?;
        let unless = unless.map(compiled).transpose().map_err(|why| ("unless", why))?;
        let mut groups = Vec::new();
        for (at, name) in regex.capture_names().enumerate() {
            let Some(name) = name else { continue };
            groups.push((at, Field::of(name).ok_or_else(|| bad(format!("no field is called {name}")))?));
        }
        Ok(Self { regex, unless, stream, step: false, groups, rows: Vec::new(), needed })
    }

    pub(crate) fn captures_field(&self, field: Field) -> bool {
        self.groups.iter().any(|(_, of)| *of == field)
    }

    pub(crate) fn fields_known(&self) -> impl Iterator<Item = Field> {
        self.groups.iter().map(|(_, field)| *field)
    }

    /// The rule that a line is of, and what it says.
    pub(crate) fn read<'a>(&self, line: &'a [u8]) -> Option<(RuleId, Fields<'a>)> {
        let captures = self.regex.captures(line)?;
        if self.unless.as_ref().is_some_and(|unless| unless.is_match(line)) {
            return None;
        }
        let fields = self.fields(&captures);
        let code = fields.number(Field::Code);
        let row = self.rows.iter().find(|row| row.holds(code, line))?;
        Some((row.rule, fields))
    }

    fn fields<'a>(&self, captures: &Captures<'a>) -> Fields<'a> {
        let of = |&(group, field): &(usize, Field)| {
            let bytes = captures.get(group)?.as_bytes();
            Some((field, harmless(&bytes[..bytes.len().min(LONGEST_FIELD)])))
        };
        Fields(self.groups.iter().filter_map(of).collect())
    }
}

impl Row {
    fn holds(&self, code: Option<u64>, line: &[u8]) -> bool {
        let contains = |text: &String| memchr::memmem::find(line, text.as_bytes()).is_some();
        self.code.is_none_or(|wanted| code == Some(wanted)) && self.when.as_ref().is_none_or(contains)
    }
}

/// Bytes of a node as text that no terminal obeys.
pub(crate) fn harmless(bytes: &[u8]) -> Cow<'_, str> {
    // No early end: that would cost more than it saves, since many bytes are compared in one instruction.
    let plain = bytes.iter().fold(true, |plain, b| plain & (b' '..0x7f).contains(b));
    match std::str::from_utf8(bytes) {
        Ok(text) if plain => Cow::Borrowed(text),
        _ => Cow::Owned(muster_wire::clean(&String::from_utf8_lossy(bytes), bytes.len().saturating_mul(3))),
    }
}

fn compiled(expression: &str) -> Result<Regex, String> {
    RegexBuilder::new(expression).unicode(false).size_limit(LARGEST).build().map_err(|why| one_line(&why))
}

fn one_line(why: &impl ToString) -> String {
    why.to_string().lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule of each row, by its number, and the fields that are read of a line.
    fn read(
        expression: &str,
        unless: Option<&str>,
        rows: &[(Option<u64>, Option<&str>)],
        line: &str,
    ) -> Option<(u32, String)> {
        let mut pattern = Pattern::new(expression, unless, Stream::Any).unwrap();
        let row = |(at, (code, when)): (u32, &(Option<u64>, Option<&str>))| Row {
            rule: RuleId(at),
            code: *code,
            when: when.map(str::to_owned),
        };
        pattern.rows = (0..).zip(rows).map(row).collect();
        let (rule, fields) = pattern.read(line.as_bytes())?;
        let told: Vec<String> = fields.iter().map(|(field, text)| format!("{}={text}", field.name())).collect();
        Some((rule.0, told.join(" ")))
    }

    #[test]
    fn a_line_is_of_the_first_row_whose_number_and_text_it_has() {
        let rows = [(Some(1), Some("red")), (Some(1), None), (None, Some("blue")), (Some(3), None)];
        let of = |line: &str| read("lamp (?P<code>[0-9]+)(?: of (?P<host>\\S+))?", Some("off$"), &rows, line);
        let code = |rule: u32, code: u64| Some((rule, format!("code={code}")));
        assert_eq!((of("lamp 1 red"), of("lamp 1 green"), of("lamp 7 blue")), (code(0, 1), code(1, 1), code(2, 7)));
        assert_eq!((of("lamp 3 blue"), of("lamp 3"), of("lamp 7 green")), (code(2, 3), code(3, 3), None));
        assert_eq!(of("lamp 1 of n1"), Some((1, "code=1 host=n1".to_owned())));
        assert_eq!((of("lamp 1 red off"), of("lamb 1 red")), (None, None), "a line that is not meant");
    }

    #[test]
    fn of_a_field_so_many_bytes_are_kept_and_none_that_a_terminal_obeys() {
        let rows = [(None, None)];
        let of = |line: &str| read("says (?P<message>.*)", None, &rows, line).unwrap().1;
        assert_eq!(of(&format!("says {}", "a".repeat(512))).len(), "message=".len() + 512);
        assert_eq!(of(&format!("says {}", "a".repeat(513))).len(), "message=".len() + 512);
        assert!(!of("says \u{1b}[2J and \u{7f}").contains(['\u{1b}', '\u{7f}']));
        assert_eq!(of("says é ~"), "message=é ~", "letters stay");
    }

    #[test]
    fn bytes_are_told_as_they_are_where_all_of_them_can_be_printed() {
        assert!(matches!(harmless(b" ~a"), Cow::Borrowed(" ~a")));
        for odd in [&b"a\x1fb"[..], b"a\x7fb", b"a\xffb", "a\u{9b}b".as_bytes()] {
            let text = harmless(odd);
            assert!(text.starts_with('a') && text.ends_with('b') && !text.chars().any(char::is_control), "{text:?}");
        }
    }
}
