//! Whose results differ from everybody else's where there is one right result, and from which step on.

use std::collections::BTreeMap;

/// What comparing step digests of several nodes says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// All that gave digests gave the same.
    Same {
        /// How many nodes that are.
        n: usize,
    },
    /// More than half of the nodes agree to the last step; these do not.
    Odd(Vec<Odd>),
    /// Nodes differ, and no majority says which of them are wrong.
    Undecided {
        /// How many nodes there are.
        n: usize,
        /// The first step at which they differ without a majority, from 1.
        step: usize,
    },
}

/// A node that computes something else than the majority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd {
    /// Which node.
    pub node: String,
    /// Its first step that differs, from 1.
    pub step: usize,
    /// Nodes that agree at that step.
    pub majority: usize,
    /// Nodes that gave a digest of that step.
    pub n: usize,
}

/// The longest of what one node gave for the same work when it was asked several times, or nothing when two of them differ in
/// a step that both have. A shorter one was cut off: steps that are missing contradict nothing.
#[must_use]
pub fn repeated(times: &[Vec<String>]) -> Option<&[String]> {
    let longest = times.iter().max_by_key(|steps| steps.len())?;
    times.iter().all(|steps| longest.starts_with(steps)).then_some(longest.as_slice())
}

/// Compares nodes step by step. `digests` holds, for each node, one digest a step; a node may have fewer steps than
/// others, and takes no part in the later ones.
///
/// A majority is more than half of all nodes that have the step, so it takes three of them to accuse one. Once a node differs it cannot
/// agree again: later steps build on earlier ones.
#[must_use]
pub fn agreement(digests: &[(String, Vec<String>)]) -> Agreement {
    let steps = digests.iter().map(|(_, steps)| steps.len()).max().unwrap_or(0);
    let mut odd: Vec<Odd> = Vec::new();
    for at in 0..steps {
        let here: Vec<(&str, &str)> =
            digests.iter().filter_map(|(node, steps)| Some((node.as_str(), steps.get(at)?.as_str()))).collect();
        let in_step = here.iter().filter(|(node, _)| odd.iter().all(|o| o.node != *node));
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        in_step.clone().for_each(|(_, digest)| *counts.entry(digest).or_default() += 1);
        if counts.len() <= 1 {
            continue;
        }
        let Some((right, majority)) = counts.into_iter().find(|(_, count)| 2 * count > here.len()) else {
            return Agreement::Undecided { n: here.len(), step: at + 1 };
        };
        let differing = in_step.filter(|(_, digest)| *digest != right);
        let new: Vec<Odd> = differing
            .map(|(node, _)| Odd { node: (*node).to_owned(), step: at + 1, majority, n: here.len() })
            .collect();
        odd.extend(new);
    }
    if odd.is_empty() {
        return Agreement::Same { n: digests.iter().filter(|(_, steps)| !steps.is_empty()).count() };
    }
    Agreement::Odd(odd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One letter a step.
    fn of(nodes: &[&str]) -> Agreement {
        let steps = |text: &str| text.chars().map(String::from).collect();
        let nodes: Vec<_> = nodes.iter().enumerate().map(|(i, text)| (format!("n{i}"), steps(text))).collect();
        agreement(&nodes)
    }

    fn odd(node: &str, step: usize, majority: usize, n: usize) -> Odd {
        Odd { node: node.into(), step, majority, n }
    }

    #[test]
    fn one_node_that_differs_is_named_with_its_first_step() {
        assert_eq!(of(&["abcd", "abcd", "abxd", "abcd"]), Agreement::Odd(vec![odd("n2", 3, 3, 4)]));
        let two = Agreement::Odd(vec![odd("n4", 1, 4, 5), odd("n0", 2, 3, 5)]);
        assert_eq!(of(&["ax", "ab", "ab", "ab", "yb"]), two);
    }

    #[test]
    fn nothing_is_said_where_all_agree_or_nobody_can_differ() {
        assert_eq!(of(&["abc", "abc"]), Agreement::Same { n: 2 });
        assert_eq!(of(&["abc"]), Agreement::Same { n: 1 });
        assert_eq!(of(&["", "abc", "ab"]), Agreement::Same { n: 2 });
        assert_eq!(of(&[]), Agreement::Same { n: 0 });
    }

    #[test]
    fn what_was_cut_off_repeats_and_another_step_does_not() {
        let steps = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let repeated = |texts: &[&str]| {
            let times: Vec<Vec<String>> = texts.iter().map(|text| steps(text)).collect();
            repeated(&times).map(<[String]>::concat)
        };
        assert_eq!(repeated(&["abcd", "ab", "abcd"]), Some("abcd".to_owned()));
        assert_eq!(repeated(&["ab", "abx", "aby"]), None);
        assert_eq!(repeated(&["abcd", "ax"]), None);
        assert_eq!(repeated(&["abcd"]), Some("abcd".to_owned()));
        assert_eq!(repeated(&[]), None);
    }

    #[test]
    fn two_nodes_or_two_halves_accuse_nobody() {
        assert_eq!(of(&["abc", "abx"]), Agreement::Undecided { n: 2, step: 3 });
        assert_eq!(of(&["aa", "aa", "ab", "ab"]), Agreement::Undecided { n: 4, step: 2 });
        assert_eq!(of(&["a", "b", "c"]), Agreement::Undecided { n: 3, step: 1 });
        // Two of five agree after two others have gone their own way: no majority of all.
        assert_eq!(of(&["aa", "aa", "ab", "xx", "yy"]), Agreement::Undecided { n: 5, step: 2 });
    }

    #[test]
    fn a_node_with_fewer_steps_hides_nobody_and_is_not_accused() {
        assert_eq!(of(&["a", "abc", "abc", "abx", "abc"]), Agreement::Odd(vec![odd("n3", 3, 3, 4)]));
    }

    proptest! {
        #[test]
        fn a_minority_of_any_size_and_place_is_named_and_nobody_else(
            good in 2usize..20, steps in 1usize..12, bad in prop::collection::vec((0usize..12, any::<u8>()), 0..9)
        ) {
            prop_assume!(bad.len() < good);
            let right: Vec<String> = (0..steps).map(|s| s.to_string()).collect();
            let mut nodes: Vec<(String, Vec<String>)> = (0..good).map(|i| (format!("g{i}"), right.clone())).collect();
            for (i, (from, mark)) in bad.iter().enumerate() {
                let from = from % steps;
                let wrong = |s: usize| if s < from { s.to_string() } else { format!("{s}-{mark}") };
                nodes.insert(i % nodes.len(), (format!("b{i}"), (0..steps).map(wrong).collect()));
            }
            match agreement(&nodes) {
                Agreement::Odd(odd) => {
                    prop_assert_eq!(odd.len(), bad.len());
                    for o in odd {
                        let number: usize = o.node.strip_prefix('b').unwrap().parse().unwrap();
                        prop_assert_eq!(o.step, bad[number].0 % steps + 1);
                        prop_assert!(2 * o.majority > o.n);
                    }
                }
                other => prop_assert!(bad.is_empty(), "{:?}", other),
            }
        }
    }
}
