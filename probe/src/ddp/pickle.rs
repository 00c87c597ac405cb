//! A tree of values as Python's pickle (protocol 2) and as JSON.

use serde_json::Map;

/// What a flight recorder's file is made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Whole(i64),
    Float(f64),
    Text(String),
    List(Vec<Self>),
    Tuple(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(super) fn whole(number: u64) -> Self {
        Self::Whole(i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub(super) fn of<const N: usize>(fields: [(&str, Self); N]) -> Self {
        Self::Map(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Protocol 2.
    pub(super) fn pickle(&self) -> Vec<u8> {
        let mut bytes = vec![0x80, 2];
        self.put(&mut bytes);
        bytes.push(b'.');
        bytes
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::None => bytes.push(b'N'),
            Self::Bool(truth) => bytes.push(if *truth { 0x88 } else { 0x89 }),
            Self::Whole(number) => match i32::try_from(*number) {
                Ok(small) => {
                    bytes.push(b'J');
                    bytes.extend(small.to_le_bytes());
                }
                Err(_) => {
                    bytes.extend([0x8a, 8]);
                    bytes.extend(number.to_le_bytes());
                }
            },
            Self::Float(number) => {
                bytes.push(b'G');
                bytes.extend(number.to_be_bytes());
            }
            Self::Text(text) => put_text(text, bytes),
            Self::List(values) => {
                bytes.extend(b"](");
                values.iter().for_each(|value| value.put(bytes));
                bytes.push(b'e');
            }
            Self::Tuple(values) => {
                bytes.push(b'(');
                values.iter().for_each(|value| value.put(bytes));
                bytes.push(b't');
            }
            Self::Map(fields) => {
                bytes.extend(b"}(");
                for (key, value) in fields {
                    put_text(key, bytes);
                    value.put(bytes);
                }
                bytes.push(b'u');
            }
        }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        match self {
            Self::None => serde_json::Value::Null,
            Self::Bool(truth) => (*truth).into(),
            Self::Whole(number) => (*number).into(),
            Self::Float(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(values) | Self::Tuple(values) => values.iter().map(Self::json).collect(),
            Self::Map(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), value.json())).collect::<Map<_, _>>().into()
            }
        }
    }
}

fn put_text(text: &str, bytes: &mut Vec<u8>) {
    bytes.push(b'X');
    bytes.extend(u32::try_from(text.len()).unwrap_or(0).to_le_bytes());
    bytes.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_has_the_bytes_that_python_reads() {
        let value = Value::of([
            ("a", Value::List(vec![Value::None, Value::Bool(true), Value::Whole(-1), Value::Whole(1 << 40)])),
            ("b", Value::Tuple(vec![Value::text("x"), Value::Float(1.5)])),
        ]);
        // python3: pickle.loads(bytes) == {'a': [None, True, -1, 1 << 40], 'b': ('x', 1.5)}
        let mut right = b"\x80\x02}(X\x01\0\0\0a](N\x88J\xff\xff\xff\xff\x8a\x08\0\0\0\0\0\x01\0\0e".to_vec();
        right.extend(b"X\x01\0\0\0b(X\x01\0\0\0xG\x3f\xf8\0\0\0\0\0\0tu.");
        assert_eq!(value.pickle(), right);
        assert_eq!(value.json().to_string(), r#"{"a":[null,true,-1,1099511627776],"b":["x",1.5]}"#);
    }
}
