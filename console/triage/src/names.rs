//! How are many names said in a few words?

/// Names that are said in full.
const SAID: usize = 4;

/// The first few and how many more there are: `n1, n2, n3, n4 and 2 more`.
pub(crate) fn few<S: AsRef<str>>(names: &[S], between: &str) -> String {
    let said: Vec<&str> = names.iter().take(SAID).map(AsRef::as_ref).collect();
    let more = names.len() - said.len();
    let said = said.join(between);
    if more > 0 { format!("{said} and {more} more") } else { said }
}

#[cfg(test)]
mod tests {
    use super::few;

    #[test]
    fn four_are_told_by_name_and_the_rest_by_number() {
        assert_eq!(few(&["a", "b", "c", "d"], ", "), "a, b, c, d");
        assert_eq!(few(&["a", "b", "c", "d", "e", "f"], "; "), "a; b; c; d and 2 more");
        assert_eq!(few::<&str>(&[], ", "), "");
    }
}
