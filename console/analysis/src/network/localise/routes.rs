//! Which links does the name in a matrix' `up` column stand for?
//!
//! `leaf3-spine2`, the whole path `leaf3-spine2-leaf1`, or only `spine2` all mean that a pair went up from its
//! sender's leaf to a spine and down from there to the receiver's leaf: two links. A name that fits no leaf and is used
//! around one leaf only is a link by itself.

use std::collections::{BTreeMap, HashMap};

use super::places::NONE;
use crate::network::{Matrix, matrix::NO_UP};

/// Characters between the parts of an uplink's name.
const SEPARATORS: [char; 6] = ['-', '/', ':', '_', '.', '>'];
/// Names that say that no uplink was crossed.
const LOCAL: [&str; 4] = ["", "-", "local", "none"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Unknown,
    /// Through this spine.
    Spine(u32),
    /// Over this link, whatever it is.
    Opaque(u32),
}

/// Meaning of every uplink name of a matrix.
pub(super) struct Routes {
    by_up: Vec<Route>,
    spines: Vec<String>,
    opaque: Vec<String>,
    /// How the matrix itself calls the link of a spine and a leaf.
    given: HashMap<(u32, u32), String>,
}

/// Leaves at the ends of the cells that carry one name.
#[derive(Clone, Default)]
struct Use {
    first: Option<(u32, u32)>,
    /// Leaves that all cells touch; at most two.
    common: Vec<u32>,
}

impl Routes {
    pub(super) fn of(matrix: &Matrix, leaf_of: &[u32], leaves: &[String]) -> Self {
        let uses = uses(matrix, leaf_of, leaves);
        let suffixes = shared_suffixes(matrix.ups(), &uses);
        let mut out = Self { by_up: Vec::new(), spines: Vec::new(), opaque: Vec::new(), given: HashMap::new() };
        let mut known: BTreeMap<String, u32> = BTreeMap::new();
        for (name, used) in matrix.ups().iter().zip(&uses) {
            let route = match meaning(name, used, leaves, &suffixes) {
                Meaning::Local => Route::Unknown,
                Meaning::Link => {
                    out.opaque.push(name.clone());
                    Route::Opaque(out.opaque.len() as u32 - 1)
                }
                Meaning::Spine(spine, leaf) => {
                    let number = *known.entry(spine.clone()).or_insert_with(|| {
                        out.spines.push(spine);
                        out.spines.len() as u32 - 1
                    });
                    if let Some(leaf) = leaf {
                        out.given.insert((number, leaf), name.clone());
                    }
                    Route::Spine(number)
                }
            };
            out.by_up.push(route);
        }
        out
    }

    pub(super) fn route(&self, up: u32) -> Route {
        self.by_up.get(up as usize).copied().unwrap_or(Route::Unknown)
    }

    pub(super) fn spines(&self) -> &[String] {
        &self.spines
    }

    pub(super) fn opaque(&self) -> &[String] {
        &self.opaque
    }

    pub(super) fn is_empty(&self) -> bool {
        self.spines.is_empty() && self.opaque.is_empty()
    }

    /// Name of the link between a leaf and a spine.
    pub(super) fn link(&self, leaf: u32, spine: u32, leaves: &[String]) -> String {
        let built = || format!("{}-{}", leaves[leaf as usize], self.spines[spine as usize]);
        self.given.get(&(spine, leaf)).cloned().unwrap_or_else(built)
    }
}

fn uses(matrix: &Matrix, leaf_of: &[u32], leaves: &[String]) -> Vec<Use> {
    let mut uses = vec![Use::default(); matrix.ups().len()];
    // Names that contain a leaf's name are understood from any one cell; only others need them all.
    let mut clear = vec![false; uses.len()];
    let mut open = uses.len();
    for cell in matrix.cells().iter().filter(|cell| cell.up != NO_UP) {
        if open == 0 {
            break;
        }
        if clear[cell.up as usize] {
            continue;
        }
        let ends = (leaf_of[cell.src as usize], leaf_of[cell.dst as usize]);
        if ends.0 == ends.1 {
            continue;
        }
        let used = &mut uses[cell.up as usize];
        if used.first.is_none() {
            used.first = Some(ends);
            used.common = vec![ends.0, ends.1];
            clear[cell.up as usize] = spine_between(&matrix.ups()[cell.up as usize], ends, leaves).is_some();
            open -= usize::from(clear[cell.up as usize]);
        } else if !used.common.is_empty() {
            used.common.retain(|leaf| *leaf == ends.0 || *leaf == ends.1);
        }
    }
    uses
}

enum Meaning {
    Local,
    Link,
    /// The spine, and the leaf if this is the name of their link.
    Spine(String, Option<u32>),
}

fn meaning(name: &str, used: &Use, leaves: &[String], suffixes: &HashMap<&str, u32>) -> Meaning {
    let Some((a, b)) = used.first else { return Meaning::Local };
    if LOCAL.contains(&name) {
        return Meaning::Local;
    }
    if a == NONE || b == NONE {
        return Meaning::Link;
    }
    if let Some((spine, leaf)) = spine_between(name, (a, b), leaves) {
        return Meaning::Spine(spine.to_owned(), leaf);
    }
    match used.common.as_slice() {
        [] => Meaning::Spine(name.to_owned(), None),
        [leaf] => match suffix(name) {
            Some(spine) if suffixes.get(spine).is_some_and(|&n| n > 1) => Meaning::Spine(spine.to_owned(), Some(*leaf)),
            _ => Meaning::Link,
        },
        _ => Meaning::Link,
    }
}

/// The spine in a name that contains one of two leaves, and that leaf if the name is that of its link alone.
fn spine_between<'a>(name: &'a str, (a, b): (u32, u32), leaves: &[String]) -> Option<(&'a str, Option<u32>)> {
    if a == NONE || b == NONE {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(near, far)| {
        let (spine, alone) = between(name, &leaves[near as usize], &leaves[far as usize])?;
        Some((spine, alone.then_some(near)))
    })
}

/// The spine of `near-spine` or `near-spine-far`, and whether only the near leaf was named.
fn between<'a>(name: &'a str, near: &str, far: &str) -> Option<(&'a str, bool)> {
    let inner = name.strip_prefix(near)?.strip_prefix(SEPARATORS)?;
    let whole = inner.strip_suffix(far).and_then(|i| i.strip_suffix(SEPARATORS));
    let spine = whole.unwrap_or(inner);
    (!spine.is_empty()).then_some((spine, whole.is_none()))
}

fn suffix(name: &str) -> Option<&str> {
    name.rsplit_once(SEPARATORS).map(|(_, last)| last).filter(|last| !last.is_empty())
}

/// How many leaves use names with each last part: `s2` of `r1-s2`, `r2-s2` is a spine, `17` of `cable-17` is not.
fn shared_suffixes<'a>(names: &'a [String], uses: &[Use]) -> HashMap<&'a str, u32> {
    let mut leaves: HashMap<&str, Vec<u32>> = HashMap::new();
    for (name, used) in names.iter().zip(uses) {
        if let (Some(last), [leaf]) = (suffix(name), used.common.as_slice()) {
            let seen = leaves.entry(last).or_default();
            if !seen.contains(leaf) {
                seen.push(*leaf);
            }
        }
    }
    leaves.into_iter().map(|(last, seen)| (last, seen.len() as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_wire::Direction;

    /// Four endpoints, two leaves of two; every name on the pairs given.
    fn routes(cells: &[(u32, u32, &str)]) -> Routes {
        let mut matrix = Matrix::new("bw", Direction::HigherIsBetter);
        ["a", "b", "c", "d", "e", "f"].iter().for_each(|name| {
            matrix.endpoint(name);
        });
        cells.iter().for_each(|(src, dst, up)| matrix.push(*src, *dst, &[1.0], Some(up)));
        Routes::of(&matrix, &[0, 0, 1, 1, 2, 2], &["rack-1".into(), "rack-2".into(), "rack-3".into()])
    }

    #[test]
    fn links_paths_and_bare_spines_name_the_same_spine() {
        for names in [["rack-1-s1", "rack-2-s1"], ["rack-1-s1-rack-2", "rack-2-s1-rack-3"]] {
            let found = routes(&[(0, 2, names[0]), (2, 4, names[1])]);
            assert_eq!(found.spines(), ["s1"], "{names:?}");
        }
        let bare = routes(&[(0, 2, "s1"), (2, 4, "s1"), (4, 0, "s1"), (0, 1, "local")]);
        assert_eq!((bare.spines(), bare.route(1)), (&["s1".to_owned()][..], Route::Unknown));
        assert_eq!(bare.link(1, 0, &["x".into(), "y".into()]), "y-s1");
    }

    #[test]
    fn foreign_leaf_names_are_taken_by_what_they_have_in_common() {
        let found = routes(&[(0, 2, "L1-s2"), (0, 4, "L1-s2"), (2, 0, "L2-s2"), (3, 4, "L2-s2")]);
        assert_eq!(found.spines(), ["s2"]);
        assert_eq!(found.link(1, 0, &[]), "L2-s2");
        let cable = routes(&[(0, 2, "cable17"), (0, 4, "cable17")]);
        assert_eq!(cable.opaque(), ["cable17"]);
    }
}
