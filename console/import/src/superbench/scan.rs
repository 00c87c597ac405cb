//! One flat JSON object of numbers, read in one pass: what makes a fleet's file load in seconds.
//!
//! Lines of one file hold the same keys in the same order, so every key is first compared with the one that came
//! next the last time; only a surprise is looked up.

/// What a member of the object is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A number, or a truth value as 1 or 0.
    Number(f64),
    /// `null`: not there.
    Missing,
    /// `NaN`: the result of a benchmark that went wrong.
    Nan,
    /// Text, as written between the quotes.
    Text(&'a [u8]),
}

/// Members of one object, one after the other.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    started: bool,
}

type Read<T> = Result<T, String>;

impl<'a> Scanner<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, started: false }
    }

    /// The next member's key, as written between the quotes; `None` at the end of the object.
    pub(super) fn key(&mut self, guess: &str) -> Read<Option<Key<'a>>> {
        self.space();
        match (self.started, self.peek()) {
            (false, Some(b'{')) => {
                self.at += 1;
                self.started = true;
                self.space();
                if self.peek() == Some(b'}') {
                    return self.end();
                }
            }
            (true, Some(b',')) => {
                self.at += 1;
                self.space();
            }
            (true, Some(b'}')) => return self.end(),
            _ => return Err(self.unexpected()),
        }
        let guessed = self.guessed(guess);
        let key = if guessed { Key::Guessed } else { Key::Other(self.text()?) };
        self.space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(Some(key))
    }

    pub(super) fn value(&mut self) -> Read<Value<'a>> {
        self.space();
        let start = self.at;
        match self.peek() {
            Some(b'"') => return self.text().map(Value::Text),
            Some(b'{' | b'[') => return Err("values must be plain numbers, not lists or objects".to_owned()),
            _ => {}
        }
        while self.peek().is_some_and(|b| !matches!(b, b',' | b'}' | b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        match word {
            b"null" => return Ok(Value::Missing),
            b"NaN" => return Ok(Value::Nan),
            b"true" => return Ok(Value::Number(1.0)),
            b"false" => return Ok(Value::Number(0.0)),
            b"Infinity" => return Ok(Value::Number(f64::INFINITY)),
            b"-Infinity" => return Ok(Value::Number(f64::NEG_INFINITY)),
            _ => {}
        }
        number(word)
            .map(Value::Number)
            .ok_or_else(|| format!("'{}' is not a number", muster_wire::clean(&String::from_utf8_lossy(word), 40)))
    }

    /// Takes the key if it is the guessed one.
    fn guessed(&mut self, guess: &str) -> bool {
        let end = self.at + 1 + guess.len();
        let fits = !guess.is_empty()
            && self.bytes.get(end) == Some(&b'"')
            && self.peek() == Some(b'"')
            && &self.bytes[self.at + 1..end] == guess.as_bytes();
        if fits {
            self.at = end + 1;
        }
        fits
    }

    fn text(&mut self) -> Read<&'a [u8]> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        self.at += 1;
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(&self.bytes[start..self.at - 1]);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        Err("text without an end".to_owned())
    }

    fn end(&mut self) -> Read<Option<Key<'a>>> {
        self.at += 1;
        self.space();
        if self.at < self.bytes.len() { Err("more than one object".to_owned()) } else { Ok(None) }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn unexpected(&self) -> String {
        match self.peek() {
            Some(byte) => format!("unexpected '{}' at byte {}", char::from(byte).escape_default(), self.at + 1),
            None => "ends too soon".to_owned(),
        }
    }
}

/// A member's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key<'a> {
    /// The guessed one.
    Guessed,
    /// Another, as written between the quotes.
    Other(&'a [u8]),
}

/// Text between quotes with its escapes resolved.
pub(super) fn unescape(text: &[u8]) -> Read<String> {
    if !text.contains(&b'\\') {
        return std::str::from_utf8(text).map(str::to_owned).map_err(|e| e.to_string());
    }
    let quoted = [b"\"", text, b"\""].concat();
    serde_json::from_slice(&quoted).map_err(|e| e.to_string())
}

/// A JSON number; words such as `inf`, which Rust would read, are none.
fn number(word: &[u8]) -> Option<f64> {
    let plain = word.iter().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    let first = matches!(word.first(), Some(b'-' | b'0'..=b'9'));
    std::str::from_utf8(word).ok()?.parse().ok().filter(|v: &f64| plain && first && v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Read<Vec<(String, String)>> {
        let mut scanner = Scanner::new(text.as_bytes());
        let mut out = Vec::new();
        while let Some(key) = scanner.key("a")? {
            let key = match key {
                Key::Guessed => "a".to_owned(),
                Key::Other(text) => unescape(text)?,
            };
            let value = match scanner.value()? {
                Value::Text(text) => unescape(text)?,
                other => format!("{other:?}"),
            };
            out.push((key, value));
        }
        Ok(out)
    }

    #[test]
    fn members_are_read_and_what_is_none_is_refused() {
        let read = all(r#" { "a" : 1e-3,"b\"\u00e9":"x", "c":null,"d":true , "e":NaN} "#).unwrap();
        let of = |i: usize| (read[i].0.as_str(), read[i].1.as_str());
        assert_eq!(of(0), ("a", "Number(0.001)"));
        assert_eq!(of(1), ("b\"é", "x"));
        assert_eq!([of(2).1, of(3).1, of(4).1], ["Missing", "Number(1.0)", "Nan"]);
        assert_eq!(all("{}").unwrap(), []);
        for bad in [
            "",
            "{",
            "[]",
            "{1:2}",
            "{\"a\":inf}",
            "{\"a\":+1}",
            "{\"a\":}",
            "{\"a\" 1}",
            "{\"a\":[1]}",
            "{\"a",
            "{\"a\\",
            "{} {}",
            "{\"a\":1e999}",
            "{,}",
            "{\"a\":1,}",
        ] {
            assert!(all(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[a{}\"\\\\:,0-9eEnul. \\[-]{0,40}") {
            let _ = all(&text);
        }

        #[test]
        fn what_json_reads_is_read_alike(entries in proptest::collection::btree_map("\\PC{0,8}", proptest::num::f64::NORMAL, 0..8)) {
            let text = serde_json::to_string(&entries).unwrap();
            let read = all(&text).unwrap();
            prop_assert_eq!(read.len(), entries.len());
            for ((key, value), (wanted, number)) in read.iter().zip(&entries) {
                prop_assert_eq!(key, wanted);
                prop_assert_eq!(value, &format!("{:?}", Value::Number(*number)));
            }
        }
    }
}
