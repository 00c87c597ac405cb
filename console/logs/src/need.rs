//! Which text does every line contain that an expression matches?

use regex_syntax::hir::{Hir, HirKind};

/// Shortest piece of text worth looking for.
const SHORTEST: usize = 3;
/// Most pieces of which one must be there.
const MOST: usize = 32;

/// Texts of which every match contains at least one; `None` where no such text of three bytes or more is known.
pub(crate) fn needed(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    let found = of(hir)?;
    (found.len() <= MOST && found.iter().all(|text| text.len() >= SHORTEST)).then_some(found)
}

fn of(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(vec![literal.0.to_vec()]),
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => of(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().filter_map(of).max_by_key(|texts| worth(texts)),
        HirKind::Alternation(parts) => {
            let each: Option<Vec<_>> = parts.iter().map(of).collect();
            each.map(|texts| texts.concat())
        }
        _ => None,
    }
}

/// Long before short: the shortest of the texts decides; few before many.
fn worth(texts: &[Vec<u8>]) -> (usize, usize) {
    (texts.iter().map(Vec::len).min().unwrap_or(0), usize::MAX - texts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(expression: &str) -> Option<Vec<String>> {
        let hir = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(expression).unwrap();
        needed(&hir).map(|all| all.into_iter().map(|text| String::from_utf8(text).unwrap()).collect())
    }

    #[test]
    fn the_longest_text_of_a_sequence_and_all_of_a_choice_are_needed() {
        assert_eq!(
            texts(r"Xid \((?P<bus>[0-9a-f:]+)\): (\d+), fallen").unwrap(),
            ["), fallen"].map(|t| t[1..].to_owned())
        );
        assert_eq!(texts("(?:reset|refused) by peer").unwrap(), [" by peer"]);
        assert_eq!(texts("(?:timeout|refused) x").unwrap(), ["timeout", "refused"]);
        assert_eq!(texts("(?:abc)?def").unwrap(), ["def"]);
    }

    #[test]
    fn an_expression_without_a_certain_text_is_told() {
        assert_eq!(texts(r"\d+ \w+"), None);
        assert_eq!(texts("(?:abc)*"), None);
        assert_eq!(texts("(?:abcd|e)"), None);
        assert_eq!(texts("(?i)error"), None);
    }

    #[test]
    fn up_to_thirty_two_texts_are_looked_for_and_each_has_three_bytes_at_least() {
        let of = |count: usize| {
            let all: Vec<String> = (0..count).map(|nr| format!("{nr:03}")).collect();
            texts(&format!("(?:{}) *x", all.join("|"))).map(|found| found.len())
        };
        assert_eq!((of(32), of(33)), (Some(32), None));
        assert_eq!((texts("abc[0-9]"), texts("ab[0-9]")), (Some(vec!["abc".to_owned()]), None));
    }

    #[test]
    fn of_two_parts_that_are_needed_the_one_with_the_longer_or_else_the_fewer_texts_is_looked_for() {
        assert_eq!(texts("(?:abcd|efgh) *ijkl").unwrap(), ["ijkl"]);
        assert_eq!(texts("(?:abcd|efghi) *ijk").unwrap(), ["abcd", "efghi"]);
        assert_eq!(texts("(?:abc|defghi) *jklm").unwrap(), ["jklm"], "the shortest of a choice decides");
        assert_eq!(texts("(?:abc)+ *de").unwrap(), ["abc"], "what comes once at least");
    }
}
