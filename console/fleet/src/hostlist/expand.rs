//! Which names does a host list such as `node[001-128,130],gpu[1-3]-ib[0-1]` stand for?

use super::HostListError;

/// Most names one list may stand for: a slip such as `node[1-999999999]` must not eat the memory of the jump host.
pub const MAX_NAMES: usize = 100_000;

/// Longest number inside brackets, in digits; it then fits 64 bits.
pub(super) const MAX_DIGITS: usize = 18;

/// Expands a host list to names, in the order written, duplicates kept.
///
/// Names are separated by commas or white space. Brackets hold numbers and ranges, and the zero padding of a range's
/// first number holds for the whole range: `n[08-11]` is n08, n09, n10, n11. Several brackets in one name multiply,
/// the last one running fastest.
pub fn expand(list: &str) -> Result<Vec<String>, HostListError> {
    let mut names = Vec::new();
    for (at, term) in terms(list)? {
        expand_term(list, at, term, &mut names)?;
    }
    Ok(names)
}

/// Splits a list at the commas and spaces outside brackets; each term comes with its byte offset.
///
/// An empty term between commas (`a,,b`) is an error, since it is most often a name that got lost.
pub fn terms(list: &str) -> Result<Vec<(usize, &str)>, HostListError> {
    let mut found = Vec::new();
    let (mut start, mut open, mut after_comma) = (0, None, true);
    for (at, c) in list.char_indices().chain([(list.len(), '\n')]) {
        match c {
            '[' => open = open.or(Some(at)),
            ']' => open = None,
            _ => {}
        }
        if open.is_some() && at < list.len() || !(c == ',' || c.is_whitespace()) {
            continue;
        }
        let term = &list[start..at];
        start = at + c.len_utf8();
        if !term.is_empty() {
            found.push((at - term.len(), term));
            after_comma = false;
        }
        if c == ',' {
            if after_comma {
                return Err(HostListError::at(list, at, "expected a host name before ','"));
            }
            after_comma = true;
        }
    }
    if after_comma && !found.is_empty() {
        return Err(HostListError::at(list, list.len(), "expected a host name after ','"));
    }
    Ok(found)
}

/// A piece of a name: fixed text, or the numbers of one pair of brackets.
enum Part<'a> {
    Text(&'a str),
    Numbers(Vec<Run>),
}

/// Numbers `low..=high`, written with at least `width` digits.
struct Run {
    low: u64,
    high: u64,
    width: usize,
}

fn expand_term(list: &str, at: usize, term: &str, names: &mut Vec<String>) -> Result<(), HostListError> {
    let parts = parse_term(list, at, term)?;
    let count = parts.iter().fold(1_u64, |count, part| match part {
        Part::Text(_) => count,
        Part::Numbers(runs) => {
            let own = runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.high - run.low).saturating_add(1));
            count.saturating_mul(own)
        }
    });
    if count.saturating_add(names.len() as u64) > MAX_NAMES as u64 {
        let message = format!("the list stands for more than {MAX_NAMES} names; is a range too long?");
        return Err(HostListError::at(list, at, message));
    }
    product(&parts, &mut String::new(), names);
    Ok(())
}

fn product(parts: &[Part<'_>], name: &mut String, names: &mut Vec<String>) {
    let Some((part, rest)) = parts.split_first() else {
        names.push(name.clone());
        return;
    };
    let keep = name.len();
    match part {
        Part::Text(text) => {
            name.push_str(text);
            product(rest, name, names);
        }
        Part::Numbers(runs) => {
            for run in runs {
                for number in run.low..=run.high {
                    name.truncate(keep);
                    name.push_str(&format!("{number:0width$}", width = run.width));
                    product(rest, name, names);
                }
            }
        }
    }
    name.truncate(keep);
}

fn parse_term<'a>(list: &str, at: usize, term: &'a str) -> Result<Vec<Part<'a>>, HostListError> {
    if let Some(c) = term.chars().next().filter(|c| !(c.is_ascii_alphanumeric() || "_:[".contains(*c))) {
        return Err(HostListError::at(list, at, format!("a host name cannot begin with {c:?}")));
    }
    let mut parts = Vec::new();
    let mut rest = term;
    while !rest.is_empty() {
        let here = at + term.len() - rest.len();
        if let Some(inside) = rest.strip_prefix('[') {
            let Some(end) = inside.find(']') else {
                return Err(HostListError::at(list, here, "this '[' is never closed"));
            };
            parts.push(Part::Numbers(parse_numbers(list, here + 1, &inside[..end])?));
            rest = &inside[end + 1..];
        } else {
            let end = rest.find('[').unwrap_or(rest.len());
            check_text(list, here, &rest[..end])?;
            parts.push(Part::Text(&rest[..end]));
            rest = &rest[end..];
        }
    }
    // One bracket is one recursion step; no real name has more than a handful.
    if parts.len() > 32 {
        return Err(HostListError::at(list, at, "more than 16 brackets in one name"));
    }
    Ok(parts)
}

fn check_text(list: &str, at: usize, text: &str) -> Result<(), HostListError> {
    let fault = text.char_indices().find(|(_, c)| !(c.is_ascii_alphanumeric() || "._-:%".contains(*c)));
    match fault {
        None => Ok(()),
        Some((offset, ']')) => Err(HostListError::at(list, at + offset, "']' without '['")),
        Some((offset, c)) => {
            let message = format!("{c:?} cannot be part of a host name (letters, digits and . _ - : % can)");
            Err(HostListError::at(list, at + offset, message))
        }
    }
}

fn parse_numbers(list: &str, at: usize, inside: &str) -> Result<Vec<Run>, HostListError> {
    let mut runs = Vec::new();
    let mut offset = at;
    for item in inside.split(',') {
        let trimmed = item.trim();
        let start = offset + (item.len() - item.trim_start().len());
        runs.push(parse_run(list, start, trimmed)?);
        offset += item.len() + 1;
    }
    Ok(runs)
}

fn parse_run(list: &str, at: usize, item: &str) -> Result<Run, HostListError> {
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    let last_at = at + item.len() - last.len();
    let low = parse_number(list, at, first)?;
    let high = parse_number(list, last_at, last)?;
    if high < low {
        return Err(HostListError::at(list, at, format!("the range {item} runs backwards")));
    }
    let padded = |text: &str| text.len() > 1 && text.starts_with('0');
    if padded(last) && last.len() != first.len() {
        let message = format!("{first} and {last} are padded differently; write both with {} digits", last.len());
        return Err(HostListError::at(list, at, message));
    }
    Ok(Run { low, high, width: if padded(first) { first.len() } else { 0 } })
}

fn parse_number(list: &str, at: usize, text: &str) -> Result<u64, HostListError> {
    if let Some((offset, c)) = text.char_indices().find(|(_, c)| !c.is_ascii_digit()) {
        let message = format!("expected a number or a range such as 001-128, found {c:?}");
        return Err(HostListError::at(list, at + offset, message));
    }
    if text.is_empty() {
        return Err(HostListError::at(list, at, "expected a number"));
    }
    if text.len() > MAX_DIGITS {
        return Err(HostListError::at(list, at, format!("a number has at most {MAX_DIGITS} digits")));
    }
    text.parse().map_err(|_| HostListError::at(list, at, "expected a number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(list: &str) -> Vec<String> {
        expand(list).unwrap()
    }

    fn fault(list: &str) -> (usize, String) {
        let error = expand(list).unwrap_err();
        (error.column, error.to_string())
    }

    #[test]
    fn a_list_with_padding_products_and_plain_names_expands_in_order() {
        assert_eq!(
            names("node[008-010,130],gpu[1-2]-ib[0-1],x"),
            ["node008", "node009", "node010", "node130", "gpu1-ib0", "gpu1-ib1", "gpu2-ib0", "gpu2-ib1", "x"]
        );
        assert_eq!(names("n[1-3]"), ["n1", "n2", "n3"]);
        assert_eq!(names("n[99-101]"), ["n99", "n100", "n101"]);
        assert_eq!(names("n[098-100]"), ["n098", "n099", "n100"]);
        assert_eq!(names("n[00]"), ["n00"]);
        assert_eq!(names(" a b\n c "), ["a", "b", "c"]);
        assert_eq!(names("fd00::[1-2], [1-2]x"), ["fd00::1", "fd00::2", "1x", "2x"]);
        assert_eq!(names("n[1, 3-4]"), ["n1", "n3", "n4"]);
        assert!(names("").is_empty());
    }

    #[test]
    fn mistakes_point_at_their_column() {
        for (list, column, word) in [
            ("node[001-]", 10, "expected a number"),
            ("node[1-3", 5, "never closed"),
            ("node1]", 6, "without '['"),
            ("a,,b", 3, "before ','"),
            ("a,", 3, "after ','"),
            (",a", 1, "before ','"),
            ("n[9-3]", 3, "backwards"),
            ("n[1-010]", 3, "padded differently"),
            ("n[1-3x]", 6, "expected a number or a range"),
            ("n[]", 3, "expected a number"),
            ("a[1[2]]", 4, "expected a number or a range"),
            ("-oProxyCommand=x", 1, "cannot begin"),
            ("a;b", 2, "cannot be part"),
            ("ä[1-", 1, "cannot begin"),
            ("xä", 2, "cannot be part"),
            ("n[1234567890123456789]", 3, "18 digits"),
        ] {
            let (at, text) = fault(list);
            assert_eq!(at, column, "{list}: {text}");
            assert!(text.contains(word), "{list}: {text}");
        }
    }

    #[test]
    fn the_caret_stands_under_the_fault() {
        let text = fault("node[001-]").1;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "  node[001-]");
        assert_eq!(lines[2].find('^'), Some(2 + 9));
        let long = format!("{}!{}", "n1,".repeat(200), ",n1".repeat(200));
        let text = fault(&long).1;
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].len() < 90);
        assert_eq!(lines[1].find('!'), lines[2].find('^'));
    }

    #[test]
    fn a_list_of_too_many_names_is_refused_before_it_is_built() {
        assert_eq!(names("n[1-100000]").len(), MAX_NAMES);
        for list in ["n[1-100001]", "a,n[1-100000]", "n[0-999999999999999999]", "a[1-999]b[1-999]c[1-999999999]"] {
            assert!(fault(list).1.contains("more than 100000"), "{list}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered_without_a_panic(list in "\\PC{0,40}|[a-c0-9,\\[\\]\\- ]{0,40}") {
            match expand(&list) {
                Ok(names) => prop_assert!(names.len() <= MAX_NAMES),
                Err(error) => {
                    prop_assert!(error.column >= 1 && error.column <= list.chars().count() + 1);
                    prop_assert!(error.to_string().contains('^'));
                }
            }
        }
    }
}
