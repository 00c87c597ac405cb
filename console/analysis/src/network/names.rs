//! How are many nodes named in few words?

/// Runs shown before the rest is counted.
const RUNS: usize = 6;

/// `n001-n008, n013` of nodes in any order; what does not end in a number stands by itself.
pub(super) fn folded<S: AsRef<str>>(names: &[S]) -> String {
    let mut sorted: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut runs: Vec<(&str, &str)> = Vec::new();
    for name in sorted {
        match runs.last_mut() {
            Some((_, last)) if follows(last, name) => *last = name,
            _ => runs.push((name, name)),
        }
    }
    let shown =
        |(first, last): &(&str, &str)| if first == last { (*first).to_owned() } else { format!("{first}-{last}") };
    let mut words: Vec<String> = runs.iter().take(RUNS).map(shown).collect();
    if runs.len() > RUNS {
        words.push(format!("{} more", runs.len() - RUNS));
    }
    words.join(", ")
}

/// Whether two names differ by one in the number at their end only.
fn follows(before: &str, after: &str) -> bool {
    let split = |name: &'_ str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (a, b) = (split(before), split(after));
    let number = |name: &str, at: usize| name[at..].parse::<u64>().ok();
    a == b
        && before[..a] == after[..b]
        && before.len() == after.len()
        && number(before, a).zip(number(after, b)).is_some_and(|(x, y)| x.checked_add(1) == Some(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_written_by_their_ends() {
        assert_eq!(folded(&["n003", "n001", "n002", "n013"]), "n001-n003, n013");
        assert_eq!(folded(&["a", "b"]), "a, b");
        assert_eq!(folded::<&str>(&[]), "");
        let far: Vec<String> = (0..10).map(|i| format!("n{:02}", 2 * i)).collect();
        assert!(folded(&far).ends_with("n10, 4 more"), "{}", folded(&far));
    }
}
