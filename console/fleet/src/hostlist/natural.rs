//! In which order does a person expect host names: is node9 before node10?

use std::cmp::Ordering;

/// Compares names with runs of digits taken as numbers: `node9` before `node10`, `a1-b2` before `a1-b10`.
///
/// A total order: names that differ only in zero padding are ordered by their bytes.
pub fn natural_cmp(a: &str, b: &str) -> Ordering {
    let (left, right) = (a.as_bytes(), b.as_bytes());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        if left[i].is_ascii_digit() && right[j].is_ascii_digit() {
            let (x, y) = (digits(&left[i..]), digits(&right[j..]));
            let order = number_cmp(x, y);
            if order.is_ne() {
                return order;
            }
            i += x.len();
            j += y.len();
        } else {
            let order = left[i].cmp(&right[j]);
            if order.is_ne() {
                return order;
            }
            i += 1;
            j += 1;
        }
    }
    (left.len() - i).cmp(&(right.len() - j)).then_with(|| left.cmp(right))
}

fn digits(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Compares numbers of any length without parsing them.
fn number_cmp(x: &[u8], y: &[u8]) -> Ordering {
    let strip = |n: &[u8]| n.iter().position(|byte| *byte != b'0').unwrap_or(n.len());
    let (x, y) = (&x[strip(x)..], &y[strip(y)..]);
    x.len().cmp(&y.len()).then_with(|| x.cmp(y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_inside_names_count_as_numbers() {
        let mut names = vec!["node10", "node9", "a2-b10", "a2-b9", "a10-b1", "node", "node09"];
        names.sort_by(|a, b| natural_cmp(a, b));
        assert_eq!(names, ["a2-b9", "a2-b10", "a10-b1", "node", "node09", "node9", "node10"]);
    }

    proptest! {
        #[test]
        fn the_order_is_total_and_consistent(a in "[a-c0-2]{0,5}", b in "[a-c0-2]{0,5}", c in "[a-c0-2]{0,5}") {
            prop_assert_eq!(natural_cmp(&a, &b), natural_cmp(&b, &a).reverse());
            prop_assert_eq!(natural_cmp(&a, &b).is_eq(), a == b);
            if natural_cmp(&a, &b).is_le() && natural_cmp(&b, &c).is_le() {
                prop_assert!(natural_cmp(&a, &c).is_le());
            }
        }
    }
}
