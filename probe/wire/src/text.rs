//! Makes text from a node harmless: no terminal escapes, no control characters, bounded length.

/// `text` with escape sequences and control characters removed, and at most `limit` bytes kept.
#[must_use]
pub fn clean(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            skip_escape(&mut chars);
            continue;
        }
        let kept = match c {
            '\t' | '\n' | '\r' => ' ',
            c if c.is_control() || is_format(c) => continue,
            c => c,
        };
        if out.len() + kept.len_utf8() > limit {
            break;
        }
        out.push(kept);
    }
    out
}

/// Characters that reorder or hide text: bidirectional controls, zero-width marks, line separators.
const fn is_format(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        // CSI: parameters, then one final byte.
        Some('[') => {
            for c in chars.by_ref() {
                if ('\u{40}'..='\u{7e}').contains(&c) {
                    break;
                }
            }
        }
        // OSC, DCS, PM, APC, SOS: up to BEL or ST.
        Some(']' | 'P' | '^' | '_' | 'X') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_vanish_with_their_parameters() {
        assert_eq!(clean("a\u{1b}[31mred\u{1b}[0m b\u{1b}]0;title\u{7}c", 100), "ared bc");
        assert_eq!(clean("a\u{1b}]0;title\u{1b}\\b", 100), "ab", "the other way to end it");
        assert_eq!(clean("a\u{1b}]0;x\\y\u{1b}z\u{7}b", 100), "ab", "neither alone ends it");
        assert_eq!(clean("line\none\u{202e}x", 100), "line onex");
    }

    proptest! {
        #[test]
        fn what_is_left_is_printable_and_bounded(text in "\\PC*|.*", limit in 0usize..64) {
            let out = clean(&text, limit);
            prop_assert!(out.len() <= limit);
            prop_assert!(!out.chars().any(char::is_control));
        }
    }

    #[test]
    fn as_many_whole_characters_are_kept_as_fit() {
        let text = "aé€😀b";
        for limit in 0..=text.len() + 1 {
            let fits = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= limit).last();
            assert_eq!(clean(text, limit), text[..fits.unwrap_or(0)], "{limit} bytes");
        }
    }

    #[test]
    fn sequences_of_every_kind_vanish_with_what_they_hold_and_unfinished_ones_with_all_that_follows() {
        for begin in [']', 'P', '^', '_', 'X'] {
            for end in ["\u{7}", "\u{1b}\\"] {
                assert_eq!(clean(&format!("a\u{1b}{begin}held{end}b"), 100), "ab", "{begin}");
            }
            assert_eq!(clean(&format!("a\u{1b}{begin}held"), 100), "a", "{begin}");
        }
        for last in ['@', 'm', '~'] {
            assert_eq!(clean(&format!("a\u{1b}[1;2{last}b"), 100), "ab");
        }
        assert_eq!((clean("a\u{1b}cb", 100), clean("a\u{1b}", 100)), ("ab".to_owned(), "a".to_owned()));
        assert_eq!(clean("a\tb\rc\nd\u{8}e\u{200b}f\u{feff}g", 100), "a b c defg");
    }
}
