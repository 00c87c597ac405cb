//! The clipboard of the terminal in front of the user, also through ssh and tmux: OSC 52.

/// Terminals drop longer sequences.
const LIMIT: usize = 64 * 1024;

/// The sequence that puts `text` on the clipboard; text past 64 KiB is cut at a character.
pub(crate) fn osc52(text: &str) -> String {
    let mut end = text.len().min(LIMIT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("\x1b]52;c;{}\x07", base64(&text.as_bytes()[..end]))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |i: usize| part.get(i).copied().map_or(0, u32::from);
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= part.len() { letter.into() } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values: RFC 4648, section 10.
    #[test]
    fn base64_agrees_with_the_test_vectors_of_rfc_4648() {
        let vectors =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")];
        for (plain, coded) in vectors {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn an_escape_in_the_text_cannot_end_the_sequence() {
        assert_eq!(osc52("a\x07b\x1b").matches(['\x07', '\x1b']).count(), 2);
    }
}
