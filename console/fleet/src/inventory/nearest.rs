//! Which of the known words did somebody probably mean?

/// The candidate that somebody who wrote `word` probably meant: the same but for zeros before numbers, else the one with the fewest
/// edits if it is near enough to be a likely slip, else the shortest that begins with it.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let known: Vec<&str> = candidates.into_iter().collect();
    let bare = without_zeros(word);
    let same = known.iter().find(|candidate| without_zeros(candidate) == bare).map(|&candidate| candidate.to_owned());
    let begun = || {
        let longer = known.iter().filter(|candidate| word.len() > 1 && candidate.starts_with(word));
        longer.min_by_key(|candidate| candidate.len()).map(|&candidate| candidate.to_owned())
    };
    same.or_else(|| by_edits(word, &known)).or_else(begun)
}

/// `n009` and `n9` alike as `n9`.
fn without_zeros(word: &str) -> String {
    let mut bare = String::with_capacity(word.len());
    let mut rest = word.chars().peekable();
    let mut in_number = false;
    while let Some(c) = rest.next() {
        let leads = c == '0' && !in_number && rest.peek().is_some_and(char::is_ascii_digit);
        in_number = c.is_ascii_digit() && !leads;
        if !leads {
            bare.push(c);
        }
    }
    bare
}

/// The candidate with the fewest edits to `word`, when it is near enough to be a likely slip.
fn by_edits(word: &str, known: &[&str]) -> Option<String> {
    let word: Vec<char> = word.chars().collect();
    let bound = (word.len() / 3).max(2);
    let mut best: Option<(usize, &str)> = None;
    for &candidate in known {
        let limit = best.map_or(bound, |(distance, _)| distance.saturating_sub(1));
        if let Some(distance) = edits(&word, candidate, limit) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein distance, `None` when it is above `limit` or the word is matched only by replacing all of it.
fn edits(word: &[char], candidate: &str, limit: usize) -> Option<usize> {
    let other: Vec<char> = candidate.chars().collect();
    if word.len().abs_diff(other.len()) > limit {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in word.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replace = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
        if row.iter().min().is_some_and(|least| *least > limit) {
            return None;
        }
    }
    let distance = row[other.len()];
    (distance <= limit && distance < word.len().max(1)).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_word_and_a_stranger_finds_none() {
        let names = ["node001", "node128", "gpu-a"];
        assert_eq!(nearest("nod001", names).as_deref(), Some("node001"));
        assert_eq!(nearest("node129", names).as_deref(), Some("node128"));
        assert_eq!(nearest("gpua", names).as_deref(), Some("gpu-a"));
        assert_eq!(nearest("storage-server", names), None);
        assert_eq!(nearest("x", names), None);
    }

    #[test]
    fn zeros_left_out_and_a_name_not_written_to_its_end_are_slips_too() {
        let names = ["n001", "n009", "n090", "canary", "canary-b"];
        assert_eq!(nearest("n9", names).as_deref(), Some("n009"));
        assert_eq!(nearest("n1", names).as_deref(), Some("n001"));
        assert_eq!(nearest("can", names).as_deref(), Some("canary"));
        assert_eq!(nearest("c", names), None);
    }
}
