//! Nodes in a sentence.

/// Nodes that are named one by one.
const NAMED: usize = 4;

/// `n1, n2`, or `n1, n2, n3 and 5 more`.
pub(super) fn some(names: &[&str]) -> String {
    let shown = if names.len() > NAMED { NAMED - 1 } else { names.len() };
    let list = names[..shown].join(", ");
    if names.len() > shown { format!("{list} and {} more", names.len() - shown) } else { list }
}

/// `1 node`, `5 nodes`.
pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_nodes_are_counted_and_few_are_named() {
        assert_eq!(some(&["a", "b"]), "a, b");
        assert_eq!(some(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
        assert_eq!((count(1, "node"), count(2, "metric")), ("1 node".to_owned(), "2 metrics".to_owned()));
    }
}
