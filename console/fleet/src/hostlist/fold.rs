//! What is the shortest usual way to write these names: `node[001-128,130]`?

use std::collections::HashMap;

use super::expand::MAX_DIGITS;
use super::natural_cmp;

/// Numbers of one name that may be put in brackets, counted from its end; earlier ones stay text.
const MAX_SLOTS: usize = 4;

/// Folds names to a host list, in natural order, duplicates dropped.
///
/// For names that [`expand`](super::expand) accepts, expanding the result gives exactly the given set. Other names are
/// written as they are.
pub fn fold<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut sorted: Vec<&str> = names.into_iter().collect();
    sorted.sort_unstable_by(|a, b| natural_cmp(a, b));
    sorted.dedup();
    let mut items: Vec<Item> = sorted.into_iter().map(Item::new).collect();
    // The last number first: once it is folded its bracket is plain text, and equal texts are equal sets.
    for slot in 0..MAX_SLOTS {
        items = fold_slot(items, slot);
    }
    items.iter().map(Item::text).collect::<Vec<_>>().join(",")
}

/// A name cut at its numbers: `texts[0] slots[0] texts[1] slots[1] ... texts[n]`.
struct Item {
    texts: Vec<String>,
    slots: Vec<String>,
}

impl Item {
    fn new(name: &str) -> Self {
        let mut spans = number_spans(name);
        spans.drain(..spans.len().saturating_sub(MAX_SLOTS));
        let (mut texts, mut slots, mut from) = (Vec::new(), Vec::new(), 0);
        for (start, end) in spans {
            texts.push(name[from..start].to_owned());
            slots.push(name[start..end].to_owned());
            from = end;
        }
        texts.push(name[from..].to_owned());
        Self { texts, slots }
    }

    fn text(&self) -> String {
        self.with_slot(usize::MAX, "")
    }

    /// The name with `with` in place of slot `index`.
    fn with_slot(&self, index: usize, with: &str) -> String {
        let mut text = self.texts[0].clone();
        for (at, slot) in self.slots.iter().enumerate() {
            text.push_str(if at == index { with } else { slot });
            text.push_str(&self.texts[at + 1]);
        }
        text
    }
}

/// Byte ranges of the digit runs that fit a number; longer ones are text.
fn number_spans(name: &str) -> Vec<(usize, usize)> {
    let bytes = name.as_bytes();
    let (mut spans, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if (1..=MAX_DIGITS).contains(&length) {
            spans.push((at, at + length));
        }
        at += length.max(1);
    }
    spans
}

/// Merges the items that differ only in their `from_end`-th last number; the order of first appearance is kept.
fn fold_slot(items: Vec<Item>, from_end: usize) -> Vec<Item> {
    let mut merged: Vec<(Item, Vec<String>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for mut item in items {
        let Some(slot) = item.slots.len().checked_sub(from_end + 1) else {
            merged.push((item, Vec::new()));
            continue;
        };
        // A control character cannot stand in a name, so the key cannot be mistaken for another name.
        let key = item.with_slot(slot, "\0");
        let number = std::mem::take(&mut item.slots[slot]);
        match places.get(&key) {
            Some(place) => merged[*place].1.push(number),
            None => {
                places.insert(key, merged.len());
                merged.push((item, vec![number]));
            }
        }
    }
    let finish = |(mut item, numbers): (Item, Vec<String>)| {
        if let Some(slot) = item.slots.len().checked_sub(from_end + 1) {
            item.slots[slot] = write_numbers(numbers);
        }
        item
    };
    merged.into_iter().map(finish).collect()
}

/// Numbers as brackets with ranges; one number stays bare.
fn write_numbers(mut numbers: Vec<String>) -> String {
    if numbers.len() == 1 {
        return numbers.remove(0);
    }
    let mut valued: Vec<(u64, &str)> = numbers.iter().map(|text| (text.parse().unwrap_or(u64::MAX), &**text)).collect();
    valued.sort_unstable_by_key(|(value, text)| (*value, text.len()));
    let mut written: Vec<String> = Vec::new();
    let mut at = 0;
    while at < valued.len() {
        let first = valued[at].1;
        let width = if first.len() > 1 && first.starts_with('0') { first.len() } else { 0 };
        let mut last = at;
        while let Some((value, text)) = valued.get(last + 1)
            && *value == valued[last].0 + 1
            && *text == format!("{value:0width$}")
        {
            last += 1;
        }
        written.push(if last == at { first.to_owned() } else { format!("{first}-{}", valued[last].1) });
        at = last + 1;
    }
    format!("[{}]", written.join(","))
}

#[cfg(test)]
mod tests {
    use super::super::expand;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn runs_padding_and_order_come_out_as_people_write_them() {
        for (names, folded) in [
            ("node130 node001 node002 node003", "node[001-003,130]"),
            ("n9 n10 n8", "n[8-10]"),
            ("n099 n100 n101", "n[099-101]"),
            ("n9 n09 n10", "n[9,09-10]"),
            ("b a a", "a,b"),
            ("x1", "x1"),
            ("gpu1-ib0 gpu1-ib1 gpu2-ib0 gpu2-ib1 gpu3-ib0", "gpu[1-2]-ib[0-1],gpu3-ib0"),
            ("10.0.0.9 10.0.0.10 10.0.1.9 10.0.1.10", "10.0.[0-1].[9-10]"),
            ("", ""),
        ] {
            assert_eq!(fold(names.split_whitespace()), folded);
        }
    }

    #[test]
    fn numbers_too_long_for_brackets_stay_text() {
        let names = ["n1234567890123456789", "n1234567890123456790"];
        assert_eq!(expand(&fold(names)).unwrap(), names);
    }

    proptest! {
        #[test]
        fn expanding_a_folded_set_gives_the_set(
            names in prop::collection::vec("[ab]{0,1}[0-9]{1,3}|[ab][0-9]{0,2}(-c?[01]{1,3}){0,3}|([ab][0-2]){1,6}", 0..60)
        ) {
            let set: BTreeSet<String> = names.iter().cloned().collect();
            let back = expand(&fold(names.iter().map(String::as_str))).unwrap();
            prop_assert_eq!(back.len(), set.len());
            prop_assert_eq!(back.into_iter().collect::<BTreeSet<_>>(), set);
        }

        #[test]
        fn any_text_is_folded_without_a_panic(names in prop::collection::vec("\\PC{0,12}", 0..20)) {
            fold(names.iter().map(String::as_str));
        }
    }
}
