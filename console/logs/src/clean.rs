//! A block of log without the escape sequences of a terminal, which would hide text from the search.

/// Copies `block` to `out` without escape sequences; ends of lines stay.
pub(crate) fn without_escapes(block: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut rest = block;
    while let Some(at) = memchr::memchr(0x1b, rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        rest = &rest[sequence(rest)..];
    }
    out.extend_from_slice(rest);
}

/// Bytes of the sequence that an escape begins. None reaches over the end of a line: a torn one must not eat the next.
fn sequence(rest: &[u8]) -> usize {
    let line = memchr::memchr3(b'\n', b'\r', 0, rest).unwrap_or(rest.len());
    let rest = &rest[..line];
    match rest.first() {
        Some(b'[') => rest.iter().skip(1).position(|b| (0x40..=0x7e).contains(b)).map_or(rest.len(), |at| at + 2),
        Some(b']' | b'P' | b'^' | b'_' | b'X') => match memchr::memchr2(0x07, 0x1b, rest) {
            Some(at) if rest[at] == 0x07 => at + 1,
            // Another escape ends it: what follows is a sequence of its own, if only a backslash.
            Some(at) => at,
            None => rest.len(),
        },
        Some(_) => 1,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::without_escapes;

    fn of(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        without_escapes(text, &mut out);
        out
    }

    #[test]
    fn colours_and_titles_vanish_and_lines_stay() {
        assert_eq!(of(b"NCCL \x1b[31;1mWARN\x1b[0m x\n\x1b]0;title\x07y"), b"NCCL WARN x\ny");
        assert_eq!(of(b"torn \x1b[31\nnext"), b"torn \nnext");
        assert_eq!(of(b"a\x1b]0;title\x1b\\b\x1bPq\0c"), b"ab\0c");
        assert_eq!(of(b"end \x1b"), b"end ");
    }

    #[test]
    fn a_sequence_ends_at_its_last_letter_and_eats_nothing_behind_it() {
        for (text, left) in [
            (&b"a\x1b[0mb"[..], &b"ab"[..]),
            (b"a\x1b[1;31@b", b"ab"),
            (b"a\x1b[2~b", b"ab"),
            (b"a\x1b[?25hb", b"ab"),
            (b"a\x1bMb", b"ab"),
            (b"a\x1b]0;t\x1b[0mb", b"ab"),
            (b"a\x1b]0;t\\\x1b[0mb", b"ab"),
            (b"a\x1b]0;t\x1b\\b", b"ab"),
            (b"a\x1b]0;t", b"a"),
            (b"a\x1b^t\x07b", b"ab"),
            (b"a\x1b_t\x07b", b"ab"),
            (b"a\x1bXt\x07b", b"ab"),
            (b"a\x1b\rb", b"a\rb"),
            (b"plain", b"plain"),
        ] {
            assert_eq!(of(text), left, "{}", String::from_utf8_lossy(text).escape_debug());
        }
    }
}
