//! Which words stand on a line of an SSH configuration: quotes, `=` and comments?

/// The keyword in lower case and the rest of the line; `None` for empty lines and comments.
pub(super) fn keyword(line: &str) -> Option<(String, &str)> {
    let line = line.trim_matches([' ', '\t', '\r', '\x0c']);
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find([' ', '\t', '=']).unwrap_or(line.len());
    let rest = line[end..].trim_start_matches([' ', '\t']);
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start_matches([' ', '\t']);
    Some((line[..end].to_ascii_lowercase(), rest))
}

/// Splits at white space outside quotes; a word that begins with `#` ends the line.
///
/// A backslash keeps quotes, backslashes and, outside quotes, spaces; elsewhere it is itself.
pub(super) fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut rest = text.chars().peekable();
    loop {
        while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        if matches!(rest.peek(), None | Some('#')) {
            return Ok(words);
        }
        let mut word = String::new();
        let mut quote = None;
        while let Some(c) = rest.next_if(|c| quote.is_some() || !matches!(c, ' ' | '\t')) {
            let kept = |next: &char| matches!(next, '\'' | '"' | '\\') || quote.is_none() && *next == ' ';
            match c {
                '\\' => word.push(rest.next_if(kept).unwrap_or('\\')),
                '\'' | '"' if quote.is_none() => quote = Some(c),
                c if quote == Some(c) => quote = None,
                c => word.push(c),
            }
        }
        if quote.is_some() {
            return Err("a quote is not closed");
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_split_as_openssh_splits_them() {
        for (text, expected) in [
            ("a b\tc", vec!["a", "b", "c"]),
            ("\"a b\" 'c \"d'", vec!["a b", "c \"d"]),
            ("a\\ b \"c\\\"d\" e\\f", vec!["a b", "c\"d", "e\\f"]),
            ("a # b", vec!["a"]),
            ("a#b", vec!["a#b"]),
            ("x\"y z\"w", vec!["xy zw"]),
            ("", vec![]),
        ] {
            assert_eq!(split(text).unwrap(), expected, "{text}");
        }
        assert!(split("\"a").is_err());
        assert_eq!(keyword(" Port = 22"), Some(("port".into(), "22")));
        assert_eq!(keyword("Port=22"), Some(("port".into(), "22")));
        assert_eq!(keyword("\tPort"), Some(("port".into(), "")));
        assert_eq!(keyword(" # x"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_split_without_a_panic(line in "\\PC{0,40}") {
            if let Some((_, rest)) = keyword(&line) {
                let _ = split(rest);
            }
        }
    }
}
