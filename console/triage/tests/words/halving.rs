//! Which parts of a job's nodes are tried one after another, and what is found, for every fault of some small fleets.

use std::fmt::Write;

use muster_triage::halving::{Culprit, Found, Next, Nodes, Trial, next};

/// Leaves of a fleet, each with its nodes by one letter; the switch above each two leaves is known too where `deep`.
struct Fleet {
    leaves: &'static [&'static str],
    deep: bool,
}

const FLEETS: [Fleet; 6] = [
    Fleet { leaves: &["ab"], deep: false },
    Fleet { leaves: &["a", "b", "c"], deep: false },
    Fleet { leaves: &["ab", "cd"], deep: false },
    Fleet { leaves: &["abcde"], deep: false },
    Fleet { leaves: &["abc", "de", "f"], deep: false },
    Fleet { leaves: &["ab", "cd", "ef", "gh"], deep: true },
];

impl Fleet {
    fn places(&self) -> Vec<Vec<String>> {
        let of = |(nr, leaf): (usize, &&str)| {
            let above = self.deep.then(|| format!("s{}", nr / 2));
            let place: Vec<String> = above.into_iter().chain([format!("l{nr}")]).collect();
            vec![place; leaf.len()]
        };
        self.leaves.iter().enumerate().flat_map(of).collect()
    }

    fn all(&self) -> String {
        self.leaves.concat()
    }
}

fn letters(nodes: &Nodes) -> String {
    nodes.iter().map(|node| char::from(b'a' + *node as u8)).collect()
}

fn named(found: &Found) -> String {
    let culprit = |culprit: &Culprit| match culprit {
        Culprit::One(nodes) => letters(nodes),
        Culprit::Between(a, b) => format!("the way {}-{}", letters(a), letters(b)),
        Culprit::Either(a, b) => format!("{} or {}", letters(a), letters(b)),
    };
    let open = found.open.map(|open| format!("open: {open:?}"));
    let all: Vec<String> = found.culprits.iter().map(culprit).chain(open).collect();
    if all.is_empty() { "nobody".to_owned() } else { all.join(", ") }
}

/// The trials of a job that fails on some nodes, round by round: those that failed with an exclamation mark.
fn course(text: &mut String, name: &str, fleet: &Fleet, mut fails: impl FnMut(&str) -> bool) {
    let (places, mut trials, mut rounds) = (fleet.places(), Vec::new(), Vec::new());
    let found = loop {
        match next(&places, &trials) {
            Next::End(found) => break found,
            Next::Try(sets) => {
                let mut round = Vec::new();
                for nodes in sets {
                    let fails = fails(&letters(&nodes));
                    round.push(letters(&nodes) + if fails { "!" } else { "" });
                    trials.push(Trial { nodes, fails });
                }
                rounds.push(round.join(" "));
            }
        }
        assert!(rounds.len() < 100, "a search without an end");
    };
    writeln!(text, "{name}: {}: {}", rounds.join(", "), named(&found)).unwrap();
}

/// From each node to each leaf of several but its own, and between two of these.
fn ways(fleet: &Fleet) -> Vec<(String, String)> {
    let leaves = || fleet.leaves.iter().filter(|leaf| leaf.len() > 1).map(|leaf| (*leaf).to_owned());
    let nodes = fleet.all();
    let of_node = nodes.chars().flat_map(|node| leaves().map(move |leaf| (node.to_string(), leaf)));
    let of_leaf = leaves().flat_map(|one| leaves().map(move |other| (one.clone(), other)).filter(|(a, b)| a < b));
    of_node.filter(|(node, leaf)| !leaf.contains(node.as_str())).chain(of_leaf).collect()
}

#[test]
fn the_course_of_every_search_for_one_or_two_faults_is_as_it_was() {
    let mut text = String::new();
    for fleet in &FLEETS {
        writeln!(text, "## {}", fleet.leaves.join(" ")).unwrap();
        course(&mut text, "none", fleet, |_| false);
        let all = fleet.all();
        for a in all.chars() {
            course(&mut text, &format!("{a}"), fleet, |nodes| nodes.contains(a));
        }
        for (a, b) in all.chars().flat_map(|b| all.chars().take_while(move |a| *a < b).map(move |a| (a, b))) {
            course(&mut text, &format!("the way {a}-{b}"), fleet, |nodes| nodes.contains(a) && nodes.contains(b));
            course(&mut text, &format!("{a} and {b}"), fleet, |nodes| nodes.contains(a) || nodes.contains(b));
        }
        for leaf in fleet.leaves.iter().filter(|leaf| leaf.len() > 1 && fleet.leaves.len() > 1) {
            let crosses =
                |nodes: &str| nodes.contains(|of| leaf.contains(of)) && nodes.contains(|of| !leaf.contains(of));
            course(&mut text, &format!("the uplink of {leaf}"), fleet, crosses);
        }
        for (one, other) in ways(fleet) {
            let both = |nodes: &str| nodes.contains(|of| one.contains(of)) && nodes.contains(|of| other.contains(of));
            course(&mut text, &format!("the way {one}-{other}"), fleet, both);
        }
        for times in [1, 2, 3] {
            let mut left = times;
            let fails = |_: &str| {
                left -= 1;
                left >= 0
            };
            course(&mut text, &format!("{times} failures at first"), fleet, fails);
        }
        course(&mut text, "any three", fleet, |nodes| nodes.len() > 2);
        course(&mut text, "any two", fleet, |_| true);
        writeln!(text).unwrap();
    }
    super::hold("halving.txt", &text);
}
