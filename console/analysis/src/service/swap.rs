//! Which spare replaces which defective machine: of the same hardware always, on the same leaf and in the same rack where possible.

use serde::{Deserialize, Serialize};

/// A machine as far as it matters to who replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// What it is built of, in words; `None` where nobody knows. Machines replace each other only where both say the same.
    pub hardware: Option<String>,
    /// The switch it hangs on.
    pub leaf: Option<String>,
    /// The rack it stands in.
    pub rack: Option<String>,
}

/// A spare, and why it must not be used, if so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spare {
    /// The machine.
    pub machine: Machine,
    /// Why it must not replace another.
    pub refused: Option<String>,
}

/// How near a spare is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Near {
    /// On the same leaf, in the same rack.
    LeafAndRack,
    /// On the same leaf.
    Leaf,
    /// In the same rack, on another leaf or on one that is not known.
    Rack,
    /// Elsewhere, or nobody knows where.
    Elsewhere,
}

impl Near {
    const ALL: [Self; 4] = [Self::LeafAndRack, Self::Leaf, Self::Rack, Self::Elsewhere];

    fn of(out: &Machine, spare: &Machine) -> Self {
        let same = |of: fn(&Machine) -> &Option<String>| of(out).is_some() && of(out) == of(spare);
        match (same(|machine| &machine.leaf), same(|machine| &machine.rack)) {
            (true, true) => Self::LeafAndRack,
            (true, false) => Self::Leaf,
            (false, true) => Self::Rack,
            (false, false) => Self::Elsewhere,
        }
    }

    /// In words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::LeafAndRack => "same leaf and rack",
            Self::Leaf => "same leaf",
            Self::Rack => "same rack",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// What becomes of a defective machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Swap {
    /// This spare replaces it.
    By {
        /// The spare.
        spare: String,
        /// How near it is.
        near: Near,
    },
    /// No spare does.
    Nobody {
        /// Why.
        why: String,
    },
}

/// What replaces each of `out`, in their order. No spare is used twice. As many are replaced as can be; of all ways to do that, one
/// with the most pairs on one leaf and in one rack, then on one leaf, then in one rack. Who comes first in `out` has the choice
/// among equals, and the first of equal spares is taken.
#[must_use]
pub fn swaps(out: &[Machine], spares: &[Spare]) -> Vec<Swap> {
    let fits = |at: usize, spare: &Spare| {
        spare.refused.is_none() && spare.machine.hardware.is_some() && out[at].hardware == spare.machine.hardware
    };
    // Any spare of a kind replaces any machine of it, so that taking the nearest pairs first costs no replacement.
    let (mut chosen, mut used) = (vec![None; out.len()], vec![false; spares.len()]);
    for near in Near::ALL {
        for (at, machine) in out.iter().enumerate() {
            if chosen[at].is_some() {
                continue;
            }
            let found = (0..spares.len()).find(|&place| {
                !used[place] && fits(at, &spares[place]) && Near::of(machine, &spares[place].machine) == near
            });
            if let Some(place) = found {
                used[place] = true;
                chosen[at] = Some(Swap::By { spare: spares[place].machine.name.clone(), near });
            }
        }
    }
    let nobody =
        |(at, chosen): (usize, Option<Swap>)| chosen.unwrap_or_else(|| Swap::Nobody { why: why(&out[at], spares) });
    chosen.into_iter().enumerate().map(nobody).collect()
}

/// Why nobody is left for a machine.
fn why(machine: &Machine, spares: &[Spare]) -> String {
    let Some(hardware) = &machine.hardware else {
        return "nobody knows what it is built of: measure it once, or give it the label hardware".to_owned();
    };
    let alike: Vec<&Spare> = spares.iter().filter(|spare| spare.machine.hardware.as_ref() == Some(hardware)).collect();
    let unknown = spares.iter().filter(|spare| spare.machine.hardware.is_none()).count();
    let refused = alike.iter().filter(|spare| spare.refused.is_some()).count();
    match (spares.len(), alike.len()) {
        (0, _) => "the hot buffer is empty".to_owned(),
        (_, 0) if unknown > 0 => {
            format!("no spare is known to be of its hardware ({unknown} of the hot buffer were never measured)")
        }
        (_, 0) => "no spare is of its hardware".to_owned(),
        (_, alike) if refused == alike => format!("no spare of its hardware was found sound ({refused} are not)"),
        (_, alike) if refused > 0 => {
            format!("all {} sound spares of its hardware are taken ({refused} more are not sound)", alike - refused)
        }
        (_, alike) => format!("all {alike} spares of its hardware are taken"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn machine(name: &str, hardware: &str, leaf: &str, rack: &str) -> Machine {
        let known = |word: &str| (!word.is_empty()).then(|| word.to_owned());
        Machine { name: name.to_owned(), hardware: known(hardware), leaf: known(leaf), rack: known(rack) }
    }

    fn spare(name: &str, hardware: &str, leaf: &str, rack: &str) -> Spare {
        Spare { machine: machine(name, hardware, leaf, rack), refused: None }
    }

    fn by(swap: &Swap) -> (&str, Option<Near>) {
        match swap {
            Swap::By { spare, near } => (spare, Some(*near)),
            Swap::Nobody { why } => (why, None),
        }
    }

    #[test]
    fn the_nearest_spare_of_the_same_hardware_is_taken() {
        let spares = [
            spare("s1", "h100", "leaf1", "r1"),
            spare("s2", "h100", "leaf2", "r3"),
            spare("s3", "a100", "leaf2", "r2"),
            spare("s4", "h100", "leaf9", "r2"),
        ];
        let out = [machine("n1", "h100", "leaf2", "r2"), machine("n2", "a100", "leaf1", "r1")];
        let found = swaps(&out, &spares);
        assert_eq!(by(&found[0]), ("s2", Some(Near::Leaf)));
        assert_eq!(by(&found[1]), ("s3", Some(Near::Elsewhere)));
    }

    #[test]
    fn a_spare_is_used_once_and_goes_to_whom_it_is_nearest() {
        // The first would take the only spare of the second's rack.
        let out = [machine("n1", "h100", "leaf1", "r1"), machine("n2", "h100", "leaf2", "r2")];
        let spares = [spare("s1", "h100", "leaf2", "r2"), spare("s2", "h100", "leaf3", "r3")];
        let found = swaps(&out, &spares);
        assert_eq!((by(&found[0]).0, by(&found[1]).0), ("s2", "s1"));
    }

    #[test]
    fn nobody_says_why() {
        let out = [machine("n1", "h100", "", "")];
        let why = |spares: &[Spare]| by(&swaps(&out, spares)[0]).0.to_owned();
        assert_eq!(why(&[]), "the hot buffer is empty");
        assert_eq!(why(&[spare("s", "a100", "", "")]), "no spare is of its hardware");
        assert!(why(&[spare("s", "", "", "")]).starts_with("no spare is known to be of its hardware (1 of"));
        let refused = Spare { refused: Some("it was never validated".to_owned()), ..spare("s", "h100", "", "") };
        assert_eq!(why(std::slice::from_ref(&refused)), "no spare of its hardware was found sound (1 are not)");
        let two = [out[0].clone(), machine("n2", "h100", "", "")];
        let found = swaps(&two, &[spare("s", "h100", "", ""), refused]);
        assert_eq!(by(&found[0]), ("s", Some(Near::Elsewhere)));
        assert_eq!(by(&found[1]).0, "all 1 sound spares of its hardware are taken (1 more are not sound)");
        assert!(by(&swaps(&[machine("n1", "", "", "")], &[])[0]).0.contains("what it is built of"));
    }

    /// How many pairs are as near as each step, by trying everything.
    fn best(out: &[Machine], spares: &[Spare]) -> [usize; 4] {
        fn walk(at: usize, out: &[Machine], spares: &[Spare], used: &mut Vec<bool>) -> [usize; 4] {
            let Some(machine) = out.get(at) else { return [0; 4] };
            let mut best = walk(at + 1, out, spares, used);
            for place in 0..spares.len() {
                if !used[place] && spares[place].machine.hardware == machine.hardware {
                    used[place] = true;
                    let mut found = walk(at + 1, out, spares, used);
                    found[Near::of(machine, &spares[place].machine) as usize] += 1;
                    used[place] = false;
                    let total = |counts: &[usize; 4]| counts.iter().sum::<usize>();
                    if (total(&found), found) > (total(&best), best) {
                        best = found;
                    }
                }
            }
            best
        }
        walk(0, out, spares, &mut vec![false; spares.len()])
    }

    fn machines(prefix: &'static str) -> impl Strategy<Value = Vec<Machine>> {
        // Racks hang on one leaf each, as they do.
        let one = (0..2u8, 0..4u8);
        prop::collection::vec(one, 0..5).prop_map(move |all| {
            let of = |(at, (kind, rack)): (usize, (u8, u8))| {
                machine(&format!("{prefix}{at}"), &format!("k{kind}"), &format!("l{}", rack / 2), &format!("r{rack}"))
            };
            all.into_iter().enumerate().map(of).collect()
        })
    }

    proptest! {
        #[test]
        fn no_other_way_replaces_more_or_nearer(out in machines("n"), spares in machines("s")) {
            let spares: Vec<Spare> = spares.into_iter().map(|machine| Spare { machine, refused: None }).collect();
            let found = swaps(&out, &spares);
            let mut counts = [0; 4];
            let mut used: Vec<&str> = Vec::new();
            for swap in &found {
                if let Swap::By { spare, near } = swap {
                    counts[*near as usize] += 1;
                    used.push(spare);
                }
            }
            let all = used.len();
            used.sort_unstable();
            used.dedup();
            prop_assert_eq!(used.len(), all, "a spare is used twice");
            prop_assert_eq!(counts, best(&out, &spares));
        }
    }
}
