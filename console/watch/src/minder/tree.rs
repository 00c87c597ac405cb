//! Which feature tells two kinds of rows apart first? A decision tree by Gini impurity (CART, Breiman et al. 1984).

/// Deepest split, and fewest rows on either side of one.
const DEPTH: usize = 8;
const LEAST: usize = 20;
/// Share of all impurity that a split must take away: less is what noise does.
const GAIN: f64 = 1e-3;

/// Rows of as many numbers each, and which of them are abnormal.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pub(super) width: usize,
    pub(super) values: Vec<f64>,
    pub(super) abnormal: Vec<bool>,
}

/// A split: how deep it is, by which feature, and the impurity it takes away, in rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Split {
    pub(super) depth: usize,
    pub(super) feature: usize,
    pub(super) gain: f64,
}

/// All splits of the tree over `rows`, the shallow ones first.
pub(super) fn splits(rows: &Rows) -> Vec<Split> {
    let all: Vec<usize> = (0..rows.abnormal.len()).collect();
    let least = GAIN * impurity(all.len(), all.iter().filter(|row| rows.abnormal[**row]).count());
    let mut found = Vec::new();
    let mut level = vec![all];
    for depth in 0..DEPTH {
        let mut next = Vec::new();
        for part in level {
            let Some((split, at)) = best(rows, &part).filter(|(split, _)| split.gain > least) else { continue };
            found.push(Split { depth, ..split });
            let (below, above) = part.into_iter().partition(|row| rows.values[row * rows.width + split.feature] <= at);
            next.extend([below, above]);
        }
        level = next;
    }
    found.sort_by(|a, b| a.depth.cmp(&b.depth).then(b.gain.total_cmp(&a.gain)));
    found
}

/// Gini impurity times rows.
fn impurity(rows: usize, abnormal: usize) -> f64 {
    let (n, a) = (rows as f64, abnormal as f64);
    if rows == 0 { 0.0 } else { 2.0 * a * (n - a) / n }
}

/// The best split of some rows, and the value up to which a row is below it.
fn best(rows: &Rows, part: &[usize]) -> Option<(Split, f64)> {
    let all = part.iter().filter(|row| rows.abnormal[**row]).count();
    let whole = impurity(part.len(), all);
    let mut best: Option<(Split, f64)> = None;
    let mut sorted: Vec<(f64, bool)> = Vec::with_capacity(part.len());
    for feature in 0..rows.width {
        sorted.clear();
        sorted.extend(part.iter().map(|row| (rows.values[row * rows.width + feature], rows.abnormal[*row])));
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut abnormal = 0;
        for at in 1..sorted.len() {
            abnormal += usize::from(sorted[at - 1].1);
            let (below, above) = (sorted[at - 1].0, sorted[at].0);
            if below >= above || at < LEAST || sorted.len() - at < LEAST {
                continue;
            }
            let gain = whole - impurity(at, abnormal) - impurity(sorted.len() - at, all - abnormal);
            if best.is_none_or(|(split, _)| gain > split.gain) {
                best = Some((Split { depth: 0, feature, gain }, f64::midpoint(below, above)));
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_analysis::Chance;

    #[test]
    fn the_feature_that_tells_most_is_the_root_and_noise_makes_no_split() {
        let mut chance = Chance::new(9);
        let mut rows = Rows { width: 3, ..Rows::default() };
        for row in 0..600 {
            let abnormal = row % 3 == 0;
            let strong = if abnormal { 2.5 } else { 0.0 };
            let weak = if abnormal && row % 2 == 0 { 2.5 } else { 0.0 };
            rows.values.extend([chance.normal(), weak + chance.normal(), strong + chance.normal()]);
            rows.abnormal.push(abnormal);
        }
        let found = splits(&rows);
        assert_eq!((found[0].depth, found[0].feature), (0, 2));
        assert!(found.iter().any(|split| split.feature == 1));
        rows.abnormal.fill(false);
        assert_eq!(splits(&rows), []);
    }

    /// The best split of all rows, by trying every feature and every value between two.
    fn tried(rows: &Rows) -> Option<(f64, usize)> {
        let n = rows.abnormal.len();
        let gini = |part: &[usize]| {
            let bad = part.iter().filter(|row| rows.abnormal[**row]).count() as f64;
            let all = part.len() as f64;
            if all == 0.0 { 0.0 } else { all * (1.0 - (bad / all).powi(2) - (1.0 - bad / all).powi(2)) }
        };
        let all: Vec<usize> = (0..n).collect();
        let mut best: Option<(f64, usize)> = None;
        for feature in 0..rows.width {
            let value = |row: usize| rows.values[row * rows.width + feature];
            for at in 0..n {
                let (below, above): (Vec<usize>, Vec<usize>) = all.iter().partition(|row| value(**row) <= value(at));
                if below.len() < 20 || above.len() < 20 {
                    continue;
                }
                let gain = gini(&all) - gini(&below) - gini(&above);
                if best.is_none_or(|best| gain > best.0 + 1e-9) {
                    best = Some((gain, feature));
                }
            }
        }
        best
    }

    #[test]
    fn the_first_split_is_the_best_of_all_that_leave_twenty_rows_on_either_side() {
        let mut chance = Chance::new(4);
        for round in 0..60 {
            let n = 38 + round % 30;
            let mut rows = Rows { width: 3, ..Rows::default() };
            for _ in 0..n {
                let bad = chance.unit() < 0.3;
                rows.values.extend([0.0, 1.0, 2.0].map(|pull| (chance.below(6) as f64) + if bad { pull } else { 0.0 }));
                rows.abnormal.push(bad);
            }
            let all: Vec<usize> = (0..n).collect();
            match (best(&rows, &all), tried(&rows)) {
                (Some((split, _)), Some((gain, _))) => {
                    assert!((split.gain - gain).abs() < 1e-9, "{round}: {split:?} {gain}")
                }
                (found, expected) => assert!(
                    found.is_none_or(|found| found.0.gain <= 1e-9) && expected.is_none_or(|one| one.0 <= 1e-9),
                    "{round}"
                ),
            }
        }
    }

    #[test]
    fn rows_up_to_the_middle_of_two_values_are_below_and_shallow_splits_come_first() {
        // By the first feature a half is told apart, and of that half a half by the second.
        let mut rows = Rows { width: 2, ..Rows::default() };
        for row in 0..160 {
            let (a, b) = (f64::from(row / 80), f64::from(row / 40 % 2));
            rows.values.extend([a, b]);
            rows.abnormal.push(a > 0.5 && b > 0.5);
        }
        let found: Vec<(usize, usize, f64)> =
            splits(&rows).into_iter().map(|split| (split.depth, split.feature, split.gain)).collect();
        // 2 a (n - a) / n of 40 in 160 rows is 60, of 40 in 80 is 40.
        assert_eq!(found, [(0, 0, 20.0), (1, 1, 40.0)]);
        let all: Vec<usize> = (0..160).collect();
        assert_eq!(best(&rows, &all).map(|(_, at)| at), Some(0.5));
        assert_eq!(best(&rows, &all[..39]).map(|(split, _)| split.gain), None, "nothing to split");
        assert_eq!([impurity(0, 0), impurity(4, 2), impurity(10, 3), impurity(5, 5)], [0.0, 2.0, 4.2, 0.0]);
    }
}
