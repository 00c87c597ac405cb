//! What is said of slow pairs that more than one explanation fits?

use super::explain::{Pick, Search};
use super::{Candidate, Case, Kind, Localisation, Suspect, Undecided};
use crate::network::change::{against, between};

pub(super) fn is_node(kind: Kind) -> bool {
    matches!(kind, Kind::Node | Kind::NodeRx | Kind::NodeTx)
}

pub(super) fn or_its_pair(suspect: &Suspect, pair: String) -> Undecided {
    let candidate = Candidate { kind: suspect.kind, element: suspect.element.clone() };
    Undecided {
        reason: format!("{} was measured with {pair} only: other pairs that cross it decide", suspect.element),
        candidates: vec![candidate, Candidate { kind: Kind::Pair, element: pair }],
        pairs: suspect.pairs,
        slow: suspect.slow,
    }
}

pub(super) fn too_few(case: &Case<'_>, suspect: &Suspect) -> Undecided {
    let reason = format!(
        "{} is at {} its peers, but {} nodes are too few to tell a fault from how nodes and visits differ anyway: measure again, or \
         with more nodes",
        suspect.element,
        against(suspect.effect),
        case.places.nodes.len()
    );
    let candidate = Candidate { kind: suspect.kind, element: suspect.element.clone() };
    Undecided { candidates: vec![candidate], reason, pairs: suspect.pairs, slow: suspect.slow }
}

/// An element whose interval allows that it is as good as its peers.
pub(super) fn no_effect(suspect: &Suspect) -> Undecided {
    let reason = format!(
        "{} is at {} its peers, but the 95 % interval ({}) allows that nothing is wrong: measure again",
        suspect.element,
        against(suspect.effect),
        between(suspect.interval),
    );
    let candidate = Candidate { kind: suspect.kind, element: suspect.element.clone() };
    Undecided { candidates: vec![candidate], reason, pairs: suspect.pairs, slow: suspect.slow }
}

/// An element whose slow visits may be chance, as often as other visits are slow for no reason.
pub(super) fn as_others(suspect: &Suspect) -> Undecided {
    let reason = format!(
        "{} is at {} its peers in {} of {} visits, but other visits are about as slow for no known reason: this may be chance, measure again",
        suspect.element,
        against(suspect.effect),
        suspect.slow,
        suspect.pairs,
    );
    let candidate = Candidate { kind: suspect.kind, element: suspect.element.clone() };
    Undecided { candidates: vec![candidate], reason, pairs: suspect.pairs, slow: suspect.slow }
}

pub(super) fn undecided(search: &Search<'_>, pick: &Pick, suspect: &Suspect) -> Undecided {
    let mut candidates = vec![Candidate { kind: suspect.kind, element: suspect.element.clone() }];
    for &rival in &pick.rivals {
        let element = &search.elements[rival];
        let candidate = Candidate { kind: element.kind, element: element.name.clone() };
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    let reason = if pick.rivals.is_empty() {
        match suspect.pairs {
            1 => "one slow pair is too little to tell a fault from chance".to_owned(),
            pairs => format!("{} slow of {pairs} pairs are too few to tell a fault from chance", suspect.slow),
        }
    } else {
        "their pairs are nearly the same; pairs that cross only one of them decide".to_owned()
    };
    Undecided { candidates, reason, pairs: suspect.pairs, slow: suspect.slow }
}

pub(super) fn direction_open(suspect: &Suspect) -> Undecided {
    let candidate = |kind| Candidate { kind, element: suspect.element.clone() };
    Undecided {
        candidates: [Kind::Node, Kind::NodeTx, Kind::NodeRx].map(candidate).to_vec(),
        reason: format!("{} was measured mostly in one direction; the other one decides", suspect.element),
        pairs: suspect.pairs,
        slow: suspect.slow,
    }
}

/// So many bad nodes are two kinds of nodes: nobody is accused, and the screen says why.
pub(super) fn withdraw(out: &mut Localisation, nodes: usize, fleet: usize) {
    let (accused, others): (Vec<_>, Vec<_>) = out.suspects.drain(..).partition(|s| is_node(s.kind));
    out.suspects = others;
    out.undecided.push(Undecided {
        pairs: accused.iter().map(|s| s.pairs).sum(),
        slow: accused.iter().map(|s| s.slow).sum(),
        candidates: accused.into_iter().map(|s| Candidate { kind: s.kind, element: s.element }).collect(),
        reason: format!("{nodes} of {fleet} nodes differ from the others: two models or link speeds in one scan?"),
    });
}
