//! NCCL 2.28.9 forgets the comma after a member whose value is an object or list, inside `missing_ranks`.

/// The text with a comma wherever a value ends and the next begins without one. Text in quotes stays as it is.
#[must_use]
pub(super) fn repaired(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let (mut quoted, mut escaped) = (false, false);
    // The last character that is no blank, outside quotes.
    let mut before = ' ';
    for character in text.chars() {
        if quoted {
            quoted = character != '"' || escaped;
            escaped = character == '\\' && !escaped;
            if !quoted {
                before = '"';
            }
            out.push(character);
            continue;
        }
        let begins = matches!(character, '"' | '{' | '[');
        let ended = matches!(before, '}' | ']' | '"') || before.is_ascii_alphanumeric();
        if begins && ended {
            out.push(',');
        }
        quoted = character == '"';
        if !character.is_whitespace() {
            before = character;
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn a_missing_comma_is_put_in_between_objects_and_members() {
        for broken in [
            r#"{"a": [{"r": 1} {"r": 2}]}"#,
            "{\"a\": {\"x\": 1}\n \"b\": \"c]\\\" {\"}",
            r#"{"a": 1 "b": true "c": [1]}"#,
        ] {
            assert!(serde_json::from_str::<Value>(broken).is_err());
            assert!(serde_json::from_str::<Value>(&repaired(broken)).is_ok(), "{}", repaired(broken));
        }
    }

    proptest! {
        #[test]
        fn what_needs_no_repair_stays(text in r#"\PC{0,20}"#, numbers in proptest::collection::vec(any::<i32>(), 0..5)) {
            let value = serde_json::json!({"a": [{"b": text}, numbers, true, null], "c": 1.5});
            let written = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(repaired(&written), written);
        }
    }
}
