//! What do groups of nodes that are slow together say, with and without a topology?

use std::collections::BTreeMap;

use super::found::{Candidate, Group, Localisation, Suspect, Undecided};
use super::group::Found;
use super::open::is_node;
use super::peers::{Peers, Standing};
use super::places::NONE;
use super::report::effect;
use super::{Case, Kind};
use crate::network::change::change;
use crate::network::names::folded;
use crate::network::topology::alike;

/// Nodes that a group says hang elsewhere than the topology has them: under the leaf of most of the group, or not there.
/// Nodes and leaves are those of `case`; no leaf where none fits.
pub(super) fn cuts(case: &Case<'_>, groups: &[Found]) -> Vec<(u32, Option<u32>)> {
    let places = case.places;
    let leaf = |node: u32| places.leaf_of[places.endpoints[node as usize][0] as usize];
    let mut size: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    (0..places.nodes.len() as u32).for_each(|node| size.entry(leaf(node)).or_default().push(node));
    let mut moves = Vec::new();
    if case.residuals.counts {
        return moves;
    }
    for group in groups {
        let mut inside: BTreeMap<u32, usize> = BTreeMap::new();
        group.nodes.iter().for_each(|&node| *inside.entry(leaf(node)).or_default() += 1);
        let Some((&home, &own)) = inside.iter().max_by_key(|(_, count)| **count) else { continue };
        // Leaves of which half is inside are parts of a larger thing.
        let part = |l: u32| 2 * inside.get(&l).copied().unwrap_or(0) >= size[&l].len();
        let strangers: Vec<u32> = group.nodes.iter().copied().filter(|&node| !part(leaf(node))).collect();
        let missing: Vec<u32> = size[&home].iter().copied().filter(|node| !group.nodes.contains(node)).collect();
        // Without strangers, known routes explain who of a leaf is slow.
        let alone = strangers.is_empty() && (own < 5 || !places.routes.is_empty());
        let enough = own >= 3 && 2 * strangers.len() <= own && 3 * missing.len() <= own && !alone;
        if home == NONE || !enough || !part(home) || strangers.is_empty() && missing.is_empty() {
            continue;
        }
        moves.extend(strangers.iter().map(|&node| (node, Some(home))));
        let pairs = strangers.len() == missing.len();
        moves.extend(missing.iter().enumerate().map(|(at, &node)| (node, pairs.then(|| leaf(strangers[at])))));
    }
    moves
}

/// The groups to which no leaf of the topology gives a name: what they share is not known.
pub(super) fn unnamed(case: &Case<'_>, groups: &[Found]) -> Vec<Found> {
    let leaf = |node: u32| case.places.leaf_of[case.places.endpoints[node as usize][0] as usize];
    let missing = |group: &Found, node: u32| {
        group.nodes.iter().any(|&member| leaf(member) == leaf(node)) && !group.nodes.contains(&node)
    };
    let all = 0..case.places.nodes.len() as u32;
    let whole = |group: &Found| !all.clone().any(|node| missing(group, node));
    let nowhere = |group: &Found| group.nodes.iter().any(|&node| leaf(node) == NONE);
    // Where routes are known, nodes that share a link are a matter of that link.
    let known = |group: &Found| !case.places.routes.is_empty() || inside(case, group).is_some() || whole(group);
    groups.iter().filter(|group| nowhere(group) || !known(group)).cloned().collect()
}

/// The leaf that all nodes of a group are attached to.
fn inside(case: &Case<'_>, group: &Found) -> Option<u32> {
    let leaf = |node: u32| case.places.leaf_of[case.places.endpoints[node as usize][0] as usize];
    let first = leaf(*group.nodes.first()?);
    (first != NONE && group.nodes.iter().all(|&node| leaf(node) == first)).then_some(first)
}

/// Takes back accusations of several nodes of a group under one leaf: what they share is one of its uplinks.
pub(super) fn instead_of_members(case: &Case<'_>, groups: &[Found], out: &mut Localisation) {
    let name = |node: &u32| case.places.nodes[*node as usize].as_str();
    for (group, leaf) in groups.iter().filter_map(|group| Some((group, inside(case, group)?))) {
        let own = |suspect: &Suspect| is_node(suspect.kind) && group.nodes.iter().any(|n| name(n) == suspect.element);
        if out.suspects.iter().filter(|suspect| own(suspect)).count() < 2 {
            continue;
        }
        let (taken, kept): (Vec<Suspect>, Vec<Suspect>) = out.suspects.drain(..).partition(own);
        out.suspects = kept;
        let mut candidates =
            vec![Candidate { kind: Kind::Uplink, element: format!("{}-?", case.places.leaves[leaf as usize]) }];
        candidates.extend(taken.iter().map(|s| Candidate { kind: s.kind, element: s.element.clone() }));
        out.undecided.push(Undecided {
            candidates,
            reason: format!(
                "{} are slow towards the others and fine among themselves: an uplink that they share; name the uplinks in column `up`",
                folded(&taken.iter().map(|s| s.element.as_str()).collect::<Vec<_>>())
            ),
            pairs: taken.iter().map(|s| s.pairs).sum(),
            slow: taken.iter().map(|s| s.slow).sum(),
        });
    }
}

/// Visits between a group and the others.
pub(super) fn crossing(case: &Case<'_>, groups: &[Found]) -> Vec<usize> {
    if groups.is_empty() {
        return Vec::new();
    }
    let mut of = vec![0_usize; case.places.nodes.len()];
    for (at, group) in groups.iter().enumerate() {
        group.nodes.iter().for_each(|&node| of[node as usize] = at + 1);
    }
    let end = |end: u32| of[case.places.node_of[end as usize] as usize];
    let cells = case.matrix.cells().iter().enumerate();
    cells.filter(|(_, cell)| end(cell.src) != end(cell.dst)).map(|(at, _)| at).collect()
}

/// Leaf of each endpoint, where groups of equal standing make up most of the nodes: then the pairs within them are near, not
/// those between them slow.
pub(super) fn levels(case: &Case<'_>, groups: &[Found]) -> Option<Vec<u32>> {
    let places = case.places;
    let covered: usize = groups.iter().map(|group| group.nodes.len()).sum();
    if groups.len() < 2 || 2 * covered <= places.nodes.len() || !places.leaves.is_empty() {
        return None;
    }
    let rest = places.nodes.len() - covered;
    if !alike(groups.iter().map(|group| group.nodes.len()).chain((rest > 0).then_some(rest))) {
        return None;
    }
    let of = |node: u32| (1_u32..).zip(groups).find(|(_, group)| group.nodes.contains(&node)).map_or(0, |(at, _)| at);
    Some(places.node_of.iter().map(|&node| of(node)).collect())
}

/// Adds what is said of groups that stand out among their peers.
pub(super) fn say(case: &Case<'_>, groups: &[Found], out: &mut Localisation) {
    let all = case.places.nodes.len();
    if groups.is_empty() {
        return;
    }
    let peers = Peers::of(case, &vec![false; case.matrix.len()]);
    let visits = |group: &Found| 2 * group.nodes.len() * (all - group.nodes.len());
    let said =
        |group: &&Found| peers.standing(group.effect, (visits(group), group.nodes.len()), all * all) > Standing::Usual;
    for group in groups.iter().filter(said) {
        let nodes: Vec<String> = group.nodes.iter().map(|&node| case.places.nodes[node as usize].clone()).collect();
        let share = effect(case.matrix.direction(), group.effect, [group.effect, group.effect]).0;
        let crossing = visits(group);
        add((nodes, all, share), (crossing, crossing), out);
    }
}

fn add((nodes, all, effect): (Vec<String>, usize, f64), (pairs, slow): (usize, usize), out: &mut Localisation) {
    let (name, others) = (folded(&nodes), all - nodes.len());
    out.undecided.insert(
        0,
        Undecided {
            reason: format!(
                "{name} are slow towards the other {others} ({}) and fine among themselves: a shared leaf or uplink? Give \
                 --topology to name it",
                change(effect)
            ),
            candidates: vec![Candidate { kind: Kind::Leaf, element: name }],
            pairs,
            slow,
        },
    );
    out.groups.push(Group { nodes, others, effect });
}

/// Leaves and their uplinks that were only guessed have no name that anyone knows: their nodes are named instead.
pub(super) fn instead_of_leaves(case: &Case<'_>, out: &mut Localisation) {
    let places = case.places;
    let all = places.nodes.len();
    let members = |element: &str| -> Vec<String> {
        let number = |leaf: u32| leaf != NONE && places.leaves[leaf as usize] == element;
        let of = places.nodes.iter().zip(&places.endpoints);
        of.filter(|(_, ends)| number(places.leaf_of[ends[0] as usize])).map(|(name, _)| name.clone()).collect()
    };
    let guessed = |suspect: &Suspect| suspect.kind == Kind::Leaf;
    let (leaves, others): (Vec<Suspect>, Vec<Suspect>) = out.suspects.drain(..).partition(guessed);
    out.suspects = others;
    for leaf in leaves {
        add((members(&leaf.element), all, leaf.effect), (leaf.pairs, leaf.slow), out);
    }
}
