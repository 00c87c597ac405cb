//! Does a name match a pattern as OpenSSH writes them: `*`, `?`, `!` and lists with commas?

/// Matches one pattern of `*` (any run) and `?` (one character); letters are compared as they are.
///
/// Never backtracks further than the last `*`, so no pattern takes more than quadratic time.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after, from)) = star else { return false };
                star = Some((after, from + 1));
                p = after;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Matches a list: some pattern must match, and none that begins with `!` may.
pub(crate) fn matches_any<'a>(patterns: impl IntoIterator<Item = &'a str>, text: &str) -> bool {
    let mut found = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches(pattern, text) => return false,
            Some(_) => {}
            None => found |= matches(pattern, text),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_question_marks_and_negation_mean_what_openssh_says() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("node?", "node1", true),
            ("node?", "node10", false),
            ("[127.0.0.*]:22", "[127.0.0.9]:22", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(matches_any(["*", "!b*"], "a"));
        assert!(!matches_any(["*", "!b*"], "b1"));
        assert!(!matches_any(["!b*"], "a"));
    }

    proptest! {
        #[test]
        fn matching_agrees_with_a_plain_recursive_matcher(pattern in "[ab*?]{0,8}", text in "[ab]{0,8}") {
            fn plain(p: &[u8], t: &[u8]) -> bool {
                match (p.first(), t.first()) {
                    (None, None) => true,
                    (Some(b'*'), _) => plain(&p[1..], t) || !t.is_empty() && plain(p, &t[1..]),
                    (Some(b'?'), Some(_)) => plain(&p[1..], &t[1..]),
                    (Some(a), Some(b)) if a == b => plain(&p[1..], &t[1..]),
                    _ => false,
                }
            }
            prop_assert_eq!(matches(&pattern, &text), plain(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
