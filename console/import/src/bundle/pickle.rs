//! Pickles as plain data: dicts, lists, tuples, text, numbers, booleans and None, and nothing that runs.
//!
//! An interpreter of the opcodes that such data need, protocols 0 to 5. Whatever would import, call or build an object is refused with
//! the opcode's name. Depth, values and bytes are bounded, also where a memo is fetched again and again.

use serde_json::{Map, Value};

/// Most values, those fetched from the memo counted again.
const VALUES: usize = 4_000_000;
/// Most values on the stack.
const DEPTH: usize = 200_000;
/// Deepest nesting of what comes out.
const NESTED: usize = 64;

/// Why a pickle is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It would run code or build an object.
    #[error("the pickle wants to run code or build an object (opcode {0} at byte {1}): refused")]
    Code(&'static str, usize),
    /// Not a pickle of plain data.
    #[error("not a pickle of plain data (byte {0})")]
    Strange(usize),
    /// More than is held.
    #[error("more than {0} {1} in a pickle")]
    TooMuch(usize, &'static str),
}

#[derive(Clone, Debug)]
enum Item {
    Mark,
    Value(Tree),
}

/// Lists and dicts by place, since a memo may name one before it is filled.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(Value),
    List(usize),
    Dict(usize),
}

#[derive(Default)]
struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Item>,
    memo: std::collections::BTreeMap<u64, Tree>,
    lists: Vec<Vec<Tree>>,
    dicts: Vec<Vec<(Tree, Tree)>>,
    made: usize,
}

/// The value of a pickle. Keys of dicts become text, tuples become lists, and bytes become text.
///
/// # Errors
/// When it is not one of plain data.
pub fn read(bytes: &[u8]) -> Result<Value, Refused> {
    let mut machine = Machine { bytes, ..Machine::default() };
    loop {
        let opcode = machine.byte()?;
        if opcode == b'.' {
            break;
        }
        machine.step(opcode)?;
        if machine.stack.len() > DEPTH {
            return Err(Refused::TooMuch(DEPTH, "values on the stack"));
        }
    }
    let tree = machine.pop()?;
    let mut left = VALUES;
    machine.value(&tree, 0, &mut left)
}

impl<'a> Machine<'a> {
    fn strange<T>(&self) -> Result<T, Refused> {
        Err(Refused::Strange(self.at))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Refused> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else { return self.strange() };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Refused> {
        Ok(self.take(1)?[0])
    }

    fn little(&mut self, length: usize) -> Result<u64, Refused> {
        Ok(self.take(length)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn line(&mut self) -> Result<&'a str, Refused> {
        let rest = &self.bytes[self.at..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return self.strange() };
        let text = std::str::from_utf8(self.take(end)?).ok();
        self.at += 1;
        text.map_or_else(|| self.strange(), |text| Ok(text.trim_end_matches('\r')))
    }

    fn push(&mut self, tree: Tree) -> Result<(), Refused> {
        self.made += 1;
        if self.made > VALUES {
            return Err(Refused::TooMuch(VALUES, "values"));
        }
        self.stack.push(Item::Value(tree));
        Ok(())
    }

    fn leaf(&mut self, value: impl Into<Value>) -> Result<(), Refused> {
        self.push(Tree::Leaf(value.into()))
    }

    fn text(&mut self, length: u64) -> Result<(), Refused> {
        let Ok(length) = usize::try_from(length) else { return self.strange() };
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.leaf(text)
    }

    fn pop(&mut self) -> Result<Tree, Refused> {
        match self.stack.pop() {
            Some(Item::Value(tree)) => Ok(tree),
            _ => self.strange(),
        }
    }

    fn top(&self) -> Result<&Tree, Refused> {
        match self.stack.last() {
            Some(Item::Value(tree)) => Ok(tree),
            _ => self.strange(),
        }
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Tree>, Refused> {
        let Some(mark) = self.stack.iter().rposition(|item| matches!(item, Item::Mark)) else { return self.strange() };
        let items = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(items.into_iter().filter_map(|item| if let Item::Value(tree) = item { Some(tree) } else { None }).collect())
    }

    fn list(&mut self, items: Vec<Tree>) -> Result<(), Refused> {
        self.lists.push(items);
        self.push(Tree::List(self.lists.len() - 1))
    }

    fn dict(&mut self, items: Vec<Tree>) -> Result<(), Refused> {
        self.dicts.push(Vec::new());
        let place = self.dicts.len() - 1;
        self.fill(place, items)?;
        self.push(Tree::Dict(place))
    }

    fn fill(&mut self, place: usize, items: Vec<Tree>) -> Result<(), Refused> {
        if items.len() % 2 == 1 {
            return self.strange();
        }
        let mut items = items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            self.dicts[place].push((key, value));
        }
        Ok(())
    }

    fn append(&mut self, items: Vec<Tree>) -> Result<(), Refused> {
        let Tree::List(place) = *self.top()? else { return self.strange() };
        self.lists[place].extend(items);
        Ok(())
    }

    fn set(&mut self, items: Vec<Tree>) -> Result<(), Refused> {
        let Tree::Dict(place) = *self.top()? else { return self.strange() };
        self.fill(place, items)
    }

    fn keep(&mut self, key: u64) -> Result<(), Refused> {
        let tree = self.top()?.clone();
        self.memo.insert(key, tree);
        Ok(())
    }

    fn fetch(&mut self, key: u64) -> Result<(), Refused> {
        let Some(tree) = self.memo.get(&key).cloned() else { return self.strange() };
        self.push(tree)
    }

    fn step(&mut self, opcode: u8) -> Result<(), Refused> {
        match opcode {
            // What frames, and what marks.
            0x80 => self.take(1).map(|_| ()),
            0x95 => self.take(8).map(|_| ()),
            b'(' => {
                self.stack.push(Item::Mark);
                Ok(())
            }
            b'0' => self.pop().map(|_| ()),
            b'1' => self.pop_to_mark().map(|_| ()),
            b'2' => {
                let top = self.top()?.clone();
                self.push(top)
            }
            b'N' => self.leaf(Value::Null),
            0x88 => self.leaf(true),
            0x89 => self.leaf(false),
            b'I' | b'J' | b'K' | b'M' | b'L' | 0x8a | 0x8b | b'F' | b'G' => self.number(opcode),
            b'S' | b'V' | b'T' | b'U' | b'X' | 0x8c | 0x8d | b'B' | b'C' | 0x8e => self.word(opcode),
            b')' | b']' | b't' | b'l' | 0x85..=0x87 | b'a' | b'e' => self.sequence(opcode),
            b'}' => self.dict(Vec::new()),
            b'd' => {
                let items = self.pop_to_mark()?;
                self.dict(items)
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(vec![key, value])
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set(items)
            }
            b'p' | b'g' | b'q' | b'r' | b'h' | b'j' | 0x94 => self.remembered(opcode),
            other => self.refuse(other),
        }
    }

    fn number(&mut self, opcode: u8) -> Result<(), Refused> {
        match opcode {
            b'I' => match self.line()? {
                "00" => self.leaf(false),
                "01" => self.leaf(true),
                text => match text.trim().parse::<i64>() {
                    Ok(number) => self.leaf(number),
                    Err(_) => self.strange(),
                },
            },
            b'J' => {
                let number = self.little(4)? as u32 as i32;
                self.leaf(number)
            }
            b'K' => {
                let number = self.little(1)?;
                self.leaf(number)
            }
            b'M' => {
                let number = self.little(2)?;
                self.leaf(number)
            }
            b'L' => match self.line()?.trim().trim_end_matches('L').parse::<i64>() {
                Ok(number) => self.leaf(number),
                Err(_) => self.strange(),
            },
            0x8a | 0x8b => {
                let length = self.little(if opcode == 0x8a { 1 } else { 4 })? as usize;
                let bytes = self.take(length)?;
                if length > 8 {
                    return self.strange();
                }
                let sign = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { u64::MAX } else { 0 };
                let number = bytes.iter().rev().fold(sign, |number, byte| number << 8 | u64::from(*byte));
                self.leaf(number as i64)
            }
            b'F' => match self.line()?.trim().parse::<f64>() {
                Ok(number) => self.leaf(number),
                Err(_) => self.strange(),
            },
            _ => {
                let number = self.take(8)?.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
                self.leaf(f64::from_bits(number))
            }
        }
    }

    fn word(&mut self, opcode: u8) -> Result<(), Refused> {
        match opcode {
            b'S' => {
                let text = self.line()?.trim().trim_matches(['\'', '"']).to_owned();
                self.leaf(text)
            }
            b'V' => {
                let text = self.line()?.to_owned();
                self.leaf(text)
            }
            b'U' | 0x8c | b'C' => {
                let length = self.little(1)?;
                self.text(length)
            }
            b'T' | b'X' | b'B' => {
                let length = self.little(4)?;
                self.text(length)
            }
            _ => {
                let length = self.little(8)?;
                self.text(length)
            }
        }
    }

    fn sequence(&mut self, opcode: u8) -> Result<(), Refused> {
        match opcode {
            b')' | b']' => self.list(Vec::new()),
            b't' | b'l' => {
                let items = self.pop_to_mark()?;
                self.list(items)
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.append(items)
            }
            _ => {
                let mut items = (0..opcode - 0x84).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
                items.reverse();
                self.list(items)
            }
        }
    }

    fn remembered(&mut self, opcode: u8) -> Result<(), Refused> {
        let key = match opcode {
            b'p' | b'g' => match self.line()?.trim().parse() {
                Ok(key) => key,
                Err(_) => return self.strange(),
            },
            b'q' | b'h' => self.little(1)?,
            b'r' | b'j' => self.little(4)?,
            _ => self.memo.len() as u64,
        };
        match opcode {
            b'g' | b'h' | b'j' => self.fetch(key),
            _ => self.keep(key),
        }
    }

    fn refuse(&self, opcode: u8) -> Result<(), Refused> {
        let name = match opcode {
            b'c' => "GLOBAL",
            0x93 => "STACK_GLOBAL",
            b'R' => "REDUCE",
            b'b' => "BUILD",
            b'i' => "INST",
            b'o' => "OBJ",
            0x81 => "NEWOBJ",
            0x92 => "NEWOBJ_EX",
            0x82..=0x84 => "EXT",
            b'P' | b'Q' => "PERSID",
            0x97 | 0x98 => "BUFFER",
            _ => return self.strange(),
        };
        Err(Refused::Code(name, self.at - 1))
    }

    fn value(&self, tree: &Tree, depth: usize, left: &mut usize) -> Result<Value, Refused> {
        *left = left.checked_sub(1).ok_or(Refused::TooMuch(VALUES, "values"))?;
        if depth > NESTED {
            return Err(Refused::TooMuch(NESTED, "levels"));
        }
        match tree {
            Tree::Leaf(value) => Ok(value.clone()),
            Tree::List(place) => self.lists[*place]
                .iter()
                .map(|item| self.value(item, depth + 1, left))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            Tree::Dict(place) => {
                let mut map = Map::new();
                for (key, item) in &self.dicts[*place] {
                    let key = match self.value(key, depth + 1, left)? {
                        Value::String(text) => text,
                        other => other.to_string(),
                    };
                    map.insert(key, self.value(item, depth + 1, left)?);
                }
                Ok(Value::Object(map))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_same_data_is_read_in_every_protocol() {
        // pickle.dumps({"a": [1, -2, 2.5, None, True], "b": ("x", 70000)}, protocol=p)
        let by_protocol: [&[u8]; 3] = [
            b"(dp0\nVa\np1\n(lp2\nI1\naI-2\naF2.5\naNaI01\nasVb\np3\n(Vx\np4\nI70000\ntp5\ns.",
            b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffG@\x04\x00\x00\x00\x00\x00\x00N\x88eX\x01\x00\x00\x00bq\x03X\x01\x00\x00\x00xq\x04Jp\x11\x01\x00\x86q\x05u.",
            b"\x80\x04\x95\x2d\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffG@\x04\x00\x00\x00\x00\x00\x00N\x88e\x8c\x01b\x94\x8c\x01x\x94Jp\x11\x01\x00\x86\x94u.",
        ];
        for bytes in by_protocol {
            assert_eq!(read(bytes).unwrap(), json!({"a": [1, -2, 2.5, null, true], "b": ["x", 70000]}));
        }
        assert_eq!(
            read(b"\x80\x02\x8a\x08\x00\x00\x64\xa7\xb3\xb6\xe0\x0d.").unwrap(),
            json!(1_000_000_000_000_000_000_i64)
        );
    }

    #[test]
    fn a_pickle_that_runs_code_is_refused_and_says_so() {
        for bytes in [
            &b"cos\nsystem\n(S'true'\ntR."[..],
            b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
            b"\x80\x02c__builtin__\neval\nq\x00.",
        ] {
            assert!(matches!(read(bytes), Err(Refused::Code(..))), "{bytes:?}");
        }
    }

    #[test]
    fn a_bomb_of_memos_and_a_list_in_itself_are_bounded() {
        // Each list holds the one before ten times.
        let mut bomb = b"]q\x00".to_vec();
        for level in 0..30_u8 {
            bomb.extend([b']', b'(']);
            (0..10).for_each(|_| bomb.extend([b'h', level]));
            bomb.extend([b'e', b'q', level + 1]);
        }
        bomb.push(b'.');
        assert!(matches!(read(&bomb), Err(Refused::TooMuch(..))));
        assert!(matches!(read(b"]q\x00h\x00a."), Err(Refused::TooMuch(..))));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
        #[test]
        fn no_opcodes_are_too_strange(bytes in proptest::collection::vec(proptest::sample::select(b"(])}tlaesduh\x00q\x01NK\x05X\x88.0122".to_vec()), 0..60)) {
            let _ = read(&bytes);
        }
    }
}
