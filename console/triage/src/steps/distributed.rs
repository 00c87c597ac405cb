//! Whom did the others lose? The host first: most losses that look like the network are not.

use super::{Draft, Verdict, found, nothing, seen};
use crate::confidence::Weight;
use crate::counters::Movement;
use crate::facts::Facts;
use crate::report::{Done, Kind as What, Source, Suspect};
use crate::rootdiag::Blame;
use muster_logs::Category;

const STEP: &str = "distributed-errors";

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    let pairs = facts.lost.pairs.len();
    let one = facts.walks.iter().any(|(_, _, walk)| !walk.roots.is_empty());
    match &facts.lost.blame {
        Blame::Nobody => nothing(STEP, "no rank says that it lost another machine", "Go on to how far each rank got."),
        Blame::Spread => nothing(
            STEP,
            format!("{pairs} pairs of hosts lost each other, and no host stands out"),
            "The matrix names nobody: go on to how far each rank got.",
        ),
        _ if one && facts.hung() => nothing(
            STEP,
            format!("{pairs} pairs of hosts lost each other, after a rank fell behind"),
            "How far each rank got says more: go on.",
        ),
        Blame::One(host, _) => {
            let suspect = host_suspect(facts, host);
            let category = category(facts, &suspect);
            found(
                STEP,
                format!("{pairs} pairs of hosts lost each other, nearly all with {host}"),
                Verdict { category, suspects: vec![suspect] },
            )
        }
        Blame::Pair(a, b, told_apart) => {
            let network = facts.hung() || facts.movement == Movement::Still;
            let category = if network { Category::HangInNetwork } else { Category::DistributedError };
            let suspects = vec![end(facts, (a, b), *told_apart, true), end(facts, (b, a), *told_apart, false)];
            let result = if pairs > 2 {
                format!("{b} lost {a}, and the others lost only {b}")
            } else {
                format!("{a} and {b} lost each other, and nobody else did")
            };
            found(STEP, result, Verdict { category, suspects })
        }
    }
}

/// One host: a process that is gone without a word is told as such.
fn category(facts: &Facts<'_>, suspect: &Suspect) -> Category {
    let on_it = |rank: &&u32| facts.layout.node_of(**rank).map(str::to_owned) == suspect.node;
    let gone = facts.gone.iter().filter(on_it).count();
    let ranks = facts.layout.members.keys().filter(on_it).count();
    match () {
        () if gone > 0 && gone < ranks => Category::ProcessExited,
        () if facts.lost.device.is_some() && facts.hung() => Category::HangInNetwork,
        () => Category::DistributedError,
    }
}

fn host_suspect(facts: &Facts<'_>, host: &str) -> Suspect {
    let mut draft = Draft::new(What::Node, Some(host.to_owned()), None).element(facts.lost.device.clone());
    draft.add(Weight::Line, lines(facts, host));
    draft.corroborate(facts);
    draft.say(format!(
        "{host}: of the pairs of machines that lost each other, it is in {} of {}.",
        touching(facts, host),
        facts.lost.pairs.len()
    ))
}

fn touching(facts: &Facts<'_>, host: &str) -> usize {
    facts.lost.pairs.keys().filter(|(from, of)| from == host || of == host).count()
}

fn lines<'a>(facts: &'a Facts<'_>, host: &'a str) -> impl Iterator<Item = crate::report::Evidence> + 'a {
    let pairs = facts.lost.pairs.iter().filter(move |((from, of), _)| from == host || of == host);
    pairs.map(|((from, of), n)| {
        let lines = if *n == 1 { "1 line".to_owned() } else { format!("{n} lines") };
        seen(Source::Log, &Some(from.clone()), None, format!("{from} lost {of} ({lines} within 5 s of the first)"))
    })
}

/// One end of a pair: the one complained of first or most is likelier. Where neither is `told_apart`, both are named alike.
fn end(facts: &Facts<'_>, (host, other): (&str, &str), told_apart: bool, first: bool) -> Suspect {
    let device = facts.lost.device.clone();
    let stuck = facts
        .walks
        .iter()
        .find(|(_, _, walk)| walk.stuck.len() == 1)
        .map(|(source, groups, walk)| (*source, &groups[walk.stuck[0]]));
    let rank =
        stuck.and_then(|(_, group)| group.sides.keys().copied().find(|rank| facts.layout.node_of(*rank) == Some(host)));
    let mut draft = Draft::new(if device.is_some() { What::Link } else { What::Node }, Some(host.to_owned()), rank)
        .gpu(rank.and_then(|rank| facts.layout.gpu_of(rank)))
        .element(device.clone());
    draft.add(Weight::OneOfPair, lines(facts, host));
    if let Some((source, group)) = stuck {
        let text = format!("{} is the oldest that does not end, with all its ranks in it", group.name);
        draft.add(Weight::OpenGroup, [seen(source, &Some(host.to_owned()), rank, text)]);
    }
    if first && told_apart && device.is_some() {
        let text = format!("{host} was lost before {other}, or more often");
        draft.add(Weight::LostFirst, [seen(Source::Log, &Some(host.to_owned()), None, text)]);
    }
    let part = device.map_or(String::new(), |device| format!(" over {device}"));
    let sentence =
        format!("{host} and {other} do not reach each other{part}: it is either end, or the cable between them.");
    if first && told_apart { draft.say(sentence) } else { draft.one_of(2, sentence) }
}
