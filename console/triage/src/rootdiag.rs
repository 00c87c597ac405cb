//! Which machine do the others lose? Aegis' RootDiag over the matrix of who complains of whom.
//!
//! Each pair of hosts counts once however many lines there are, and only what was written within [`WINDOW_S`] of the first line on the
//! common clock (of a clock that is not known: of its own host's first). A host is blamed when nearly all pairs touch it and the next touches at most half of them; of one single pair both
//! ends are named.

use std::collections::{BTreeMap, BTreeSet};

/// Seconds after the first complaint that count: later ones only follow.
pub const WINDOW_S: f64 = 5.0;
/// Share of the pairs that the blamed host touches.
const COVERS: f64 = 0.8;
/// Share of the pairs that the next host touches at most.
const NEXT: f64 = 0.5;

/// One complaint.
#[derive(Clone, Debug, PartialEq)]
pub struct Complaint {
    /// Who complains.
    pub from: String,
    /// Of whom.
    pub of: String,
    /// When, on the common clock.
    pub at_s: Option<f64>,
    /// By how much that may be wrong.
    pub error_s: f64,
    /// Adapter of the complaining side, where the line names it.
    pub device: Option<String>,
}

/// What the matrix shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Blame {
    /// No complaint names another machine.
    Nobody,
    /// One machine: how much of the matrix touches it.
    One(String, f64),
    /// One pair: either end, or what lies between. The first is complained of first or more often; whether it clearly is.
    Pair(String, String, bool),
    /// Many touch it, and no machine stands out.
    Spread,
}

/// The matrix and what it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct RootDiag {
    /// Who is blamed.
    pub blame: Blame,
    /// Pairs that count, with how many complaints.
    pub pairs: BTreeMap<(String, String), usize>,
    /// The adapter that all complaints of the blamed machines name, if it is one.
    pub device: Option<String>,
}

/// Judges complaints.
#[must_use]
pub fn diagnose(complaints: &[Complaint]) -> RootDiag {
    let first = |of: &dyn Fn(&&Complaint) -> bool| {
        complaints.iter().filter(of).filter_map(|complaint| complaint.at_s).min_by(f64::total_cmp)
    };
    let first_of_all = first(&|_| true);
    let early = |complaint: &&Complaint| {
        // A clock of which nothing is known tells only what came first on its own host.
        let first =
            if complaint.error_s > WINDOW_S { first(&|other| other.from == complaint.from) } else { first_of_all };
        let late = complaint
            .at_s
            .zip(first)
            .is_some_and(|(at, first)| at > first + WINDOW_S + complaint.error_s.min(WINDOW_S));
        // Beside lines with a time, one without may be an echo of any age.
        let undated = complaint.at_s.is_none() && first_of_all.is_some();
        complaint.from != complaint.of && !late && !undated
    };
    let counted: Vec<&Complaint> = complaints.iter().filter(early).collect();
    let mut pairs: BTreeMap<(String, String), usize> = BTreeMap::new();
    for complaint in &counted {
        *pairs.entry((complaint.from.clone(), complaint.of.clone())).or_default() += 1;
    }
    let blame = blame(&pairs, &counted);
    let touches = |name: &str| {
        counted
            .iter()
            .filter(|c| c.from == name || c.of == name)
            .filter_map(|c| c.device.clone())
            .collect::<BTreeSet<_>>()
    };
    let devices = match &blame {
        Blame::One(name, _) => touches(name),
        Blame::Pair(a, b, _) => touches(a).union(&touches(b)).cloned().collect(),
        _ => BTreeSet::new(),
    };
    let device = devices.first().filter(|_| devices.len() == 1).cloned();
    RootDiag { blame, pairs, device }
}

fn blame(pairs: &BTreeMap<(String, String), usize>, counted: &[&Complaint]) -> Blame {
    let undirected: BTreeSet<(&String, &String)> =
        pairs.keys().map(|(a, b)| if a < b { (a, b) } else { (b, a) }).collect();
    if undirected.is_empty() {
        return Blame::Nobody;
    }
    if undirected.len() == 1 {
        return pair(pairs, counted);
    }
    let hosts: BTreeSet<&String> = undirected.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let share = |host: &String| {
        undirected.iter().filter(|(a, b)| *a == host || *b == host).count() as f64 / undirected.len() as f64
    };
    let mut scores: Vec<(f64, &String)> = hosts.into_iter().map(|host| (share(host), host)).collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    let next = scores.get(1).map_or(0.0, |(score, _)| *score);
    if scores[0].0 >= COVERS && next <= NEXT {
        let centre = scores[0].1;
        return lost_another_first(centre, counted).unwrap_or_else(|| Blame::One(centre.clone(), scores[0].0));
    }
    Blame::Spread
}

/// Whom the others lost may itself have lost another first, and gone for that: then it is these two. The other one complains of nobody.
fn lost_another_first(centre: &str, counted: &[&Complaint]) -> Option<Blame> {
    let lost: BTreeSet<&str> = counted.iter().filter(|c| c.from == centre).map(|c| c.of.as_str()).collect();
    let one = *lost.first().filter(|_| lost.len() == 1)?;
    if counted.iter().any(|c| c.from == one) {
        return None;
    }
    let earliest = |at: fn(&Complaint) -> Option<f64>, of: &dyn Fn(&Complaint) -> bool| {
        counted.iter().filter(|c| of(c)).filter_map(|c| at(c)).min_by(f64::total_cmp)
    };
    let by_centre = |c: &Complaint| c.from == centre;
    let of_centre = |c: &Complaint| c.of == centre;
    let own = earliest(|c| Some(c.at_s? + c.error_s), &by_centre);
    let others = earliest(|c| Some(c.at_s? - c.error_s), &of_centre);
    let clearly = own.zip(others).is_some_and(|(own, others)| own < others);
    // Where clocks could tell, and do not say that it lost the other before, it is the one that all lost.
    let told = |c: &&&Complaint| c.at_s.is_some() && c.error_s <= WINDOW_S;
    let tell = counted.iter().any(|c| by_centre(c) && told(&c)) && counted.iter().any(|c| of_centre(c) && told(&c));
    (clearly || !tell).then(|| Blame::Pair(one.to_owned(), centre.to_owned(), clearly))
}

/// Of two that lost each other, the one complained of clearly first or clearly more often stands first.
fn pair(pairs: &BTreeMap<(String, String), usize>, counted: &[&Complaint]) -> Blame {
    let Some(((from, of), count)) = pairs.iter().max_by_key(|(_, count)| **count) else { return Blame::Nobody };
    let first = counted
        .iter()
        .filter(|c| c.at_s.is_some())
        .min_by(|a, b| a.at_s.unwrap_or(0.0).total_cmp(&b.at_s.unwrap_or(0.0)));
    let told_apart = |c: &&&Complaint| {
        let other =
            counted.iter().filter(|o| o.from == c.of).filter_map(|o| Some(o.at_s? - o.error_s)).min_by(f64::total_cmp);
        other.zip(c.at_s).is_some_and(|(other, at)| at + c.error_s < other)
    };
    if let Some(first) = first.filter(told_apart) {
        return Blame::Pair(first.of.clone(), first.from.clone(), true);
    }
    let back = pairs.get(&(of.clone(), from.clone())).copied().unwrap_or(0);
    Blame::Pair(of.clone(), from.clone(), *count > back)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(from: &str, of: &str, at: f64) -> Complaint {
        Complaint { from: from.into(), of: of.into(), at_s: Some(at), error_s: 0.1, device: None }
    }

    #[test]
    fn the_machine_that_all_pairs_touch_is_blamed_and_late_echoes_do_not_count() {
        let all = [
            complaint("a", "d", 0.0),
            complaint("b", "d", 0.5),
            complaint("d", "c", 0.2),
            complaint("a", "b", 30.0),
            complaint("c", "b", 31.0),
        ];
        assert_eq!(diagnose(&all).blame, Blame::One("d".into(), 1.0));
    }

    #[test]
    fn whom_the_others_lost_because_it_had_lost_another_is_not_blamed_alone() {
        let echoes = [complaint("b", "a", 2.0), complaint("c", "a", 2.1), complaint("d", "a", 2.0)];
        let with = |own: Complaint| diagnose(&[&echoes[..], &[own]].concat()).blame;
        assert_eq!(with(complaint("a", "z", 0.0)), Blame::Pair("z".into(), "a".into(), true));
        let unknown = Complaint { error_s: 60.0, ..complaint("a", "z", 2.0) };
        assert_eq!(with(unknown), Blame::Pair("z".into(), "a".into(), false), "its clock does not tell");
        for at in [1.9, 2.0, 4.0] {
            assert_eq!(with(complaint("a", "z", at)), Blame::One("a".into(), 1.0), "it did not lose the other first");
        }
        let off = |error_s: f64, complaint: Complaint| Complaint { error_s, ..complaint };
        let others = |error_s: f64| echoes.clone().map(|one| off(error_s, one));
        let with_others = |error_s: f64, own: Complaint| diagnose(&[&others(error_s)[..], &[own]].concat()).blame;
        let unknown = with_others(60.0, complaint("a", "z", 2.0));
        assert_eq!(unknown, Blame::Pair("z".into(), "a".into(), false), "the clocks of the others do not tell");
        let at_once = with_others(0.5, off(0.5, complaint("a", "z", 1.0)));
        assert_eq!(at_once, Blame::One("a".into(), 1.0), "within the errors of both clocks, to the last bit");
        let both = [&echoes[..], &[complaint("a", "z", 0.0), complaint("z", "a", 0.1)]].concat();
        assert_eq!(diagnose(&both).blame, Blame::One("a".into(), 1.0), "the other lost it, too");
    }

    #[test]
    fn only_what_was_written_within_five_seconds_of_the_first_line_counts() {
        let blame = |second: Complaint| diagnose(&[complaint("a", "d", 0.0), second]).blame;
        let (both, first_only) = (Blame::One("d".into(), 1.0), Blame::Pair("d".into(), "a".into(), true));
        assert_eq!(blame(complaint("b", "d", 5.05)), both, "its clock may be off by a tenth");
        assert_eq!(blame(complaint("b", "d", 5.15)), first_only);
        let off_by = |error_s: f64, at: f64| Complaint { error_s, ..complaint("b", "d", at) };
        assert_eq!((blame(off_by(5.0, 10.0)), blame(off_by(5.0, 10.1))), (both.clone(), first_only.clone()));
        assert_eq!(blame(off_by(60.0, 900.0)), both, "of a clock that is not known, the first of its own host");
        let undated = |from: &str| Complaint { at_s: None, ..complaint(from, "d", 0.0) };
        assert_eq!(blame(undated("b")), first_only, "it may be of any age");
        assert_eq!(diagnose(&[undated("a"), undated("b")]).blame, both);
    }

    #[test]
    fn a_host_is_blamed_for_four_of_five_pairs_and_not_for_three_of_four() {
        let all = |pairs: &[(&str, &str)]| {
            diagnose(&pairs.iter().map(|(from, of)| complaint(from, of, 0.0)).collect::<Vec<_>>()).blame
        };
        let four = [("a", "x"), ("b", "x"), ("c", "x"), ("d", "x"), ("a", "b")];
        assert_eq!(all(&four), Blame::One("x".into(), 0.8));
        assert_eq!(all(&four[1..]), Blame::Spread);
        // Who lost whom twice, and back, is one pair.
        let again = [&four[..], &[("b", "a"), ("a", "b")]].concat();
        assert_eq!(all(&again), Blame::One("x".into(), 0.8));
    }

    #[test]
    fn an_adapter_is_told_where_all_complaints_of_the_blamed_name_it() {
        let over = |from: &str, of: &str, device: &str| Complaint {
            device: Some(device.to_owned()).filter(|device| !device.is_empty()),
            ..complaint(from, of, 0.0)
        };
        let device = |last: Complaint| diagnose(&[over("a", "d", "mlx5_2"), over("b", "d", "mlx5_2"), last]).device;
        assert_eq!(device(over("c", "d", "mlx5_2")).as_deref(), Some("mlx5_2"));
        assert_eq!(device(over("c", "d", "")).as_deref(), Some("mlx5_2"), "a line that names none denies nothing");
        assert_eq!(device(over("c", "d", "mlx5_3")), None);
        let pair = [over("a", "b", "mlx5_2"), over("b", "a", "mlx5_2")];
        assert_eq!(diagnose(&pair).device.as_deref(), Some("mlx5_2"));
    }

    #[test]
    fn many_lines_of_one_pair_weigh_as_one() {
        let mut all: Vec<_> = (0..50).map(|_| complaint("a", "b", 0.0)).collect();
        all.extend([complaint("c", "d", 0.0), complaint("a", "d", 0.0), complaint("b", "d", 0.0)]);
        assert_ne!(diagnose(&all).blame, Blame::One("a".into(), 1.0));
    }

    #[test]
    fn one_pair_names_both_and_a_spread_names_nobody() {
        assert!(matches!(diagnose(&[complaint("a", "b", 0.0)]).blame, Blame::Pair(first, _, true) if first == "b"));
        let mutual = [complaint("a", "b", 0.0), complaint("b", "a", 0.05)];
        assert!(matches!(diagnose(&mutual).blame, Blame::Pair(_, _, false)), "within the error of the clocks");
        let off = |complaint: Complaint| Complaint { error_s: 0.5, ..complaint };
        let mutual = [off(complaint("a", "b", 0.0)), off(complaint("b", "a", 1.0))];
        assert!(matches!(diagnose(&mutual).blame, Blame::Pair(_, _, false)), "by as much as both may be off");
        let later = [complaint("a", "b", 0.0), complaint("b", "a", 1.0)];
        assert!(matches!(diagnose(&later).blame, Blame::Pair(first, _, true) if first == "b"));
        let ring =
            [complaint("a", "b", 0.0), complaint("b", "c", 0.0), complaint("c", "d", 0.0), complaint("d", "a", 0.0)];
        assert_eq!(diagnose(&ring).blame, Blame::Spread);
        assert_eq!(diagnose(&[complaint("a", "a", 0.0)]).blame, Blame::Nobody);
    }
}
