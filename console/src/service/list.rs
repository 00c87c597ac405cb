//! Which spare replaces which defective machine, with what a person has to tell Slurm, and which parts failed how often.

use std::collections::BTreeMap;

use muster_analysis::service::{Failure, Part, Service, Spare, Swap, repeated, swaps, told};

use super::fleet::Standing;
use super::shell::{argument, quoted};

/// The hot buffer.
#[must_use]
pub fn spares(all: &[Standing]) -> Vec<Spare> {
    let kept = all.iter().filter(|one| one.service == Service::HotBuffer);
    kept.map(|one| Spare { machine: one.machine.clone(), refused: one.known.refused().map(str::to_owned) }).collect()
}

/// What becomes of each defective machine that is wanted. Spares are looked for among all.
pub fn replaced(all: &[Standing], wanted: impl Fn(&str) -> bool) -> Vec<(&Standing, Swap)> {
    let out: Vec<&Standing> =
        all.iter().filter(|one| one.service == Service::Defective && wanted(&one.machine.name)).collect();
    let machines: Vec<_> = out.iter().map(|one| one.machine.clone()).collect();
    let found = swaps(&machines, &spares(all));
    out.into_iter().zip(found).collect()
}

/// The spare that the list has for each of `names`, or why it has none.
pub fn listed<'a>(all: &'a [Standing], names: &[String]) -> Vec<(String, Result<&'a Standing, String>)> {
    let found: BTreeMap<&str, Swap> =
        replaced(all, |_| true).into_iter().map(|(out, swap)| (out.machine.name.as_str(), swap)).collect();
    let known = |name: &str| all.iter().find(|one| one.machine.name == name);
    let spare = |name: &String| match found.get(name.as_str()) {
        Some(Swap::By { spare, .. }) => known(spare).ok_or_else(|| format!("nothing is known of {spare}")),
        Some(Swap::Nobody { why }) => Err(format!("nobody replaces it: {why}")),
        None => {
            let state = known(name).map_or("not known", |one| one.service.title());
            Err(format!(
                "it is {state}, and only a defective node has a spare listed; name one: muster swap replace -w {} --by SPARE",
                argument(name)
            ))
        }
    };
    names.iter().map(|name| (name.clone(), spare(name))).collect()
}

/// Commands that one looks at and runs; every word is one argument of a shell.
#[must_use]
pub fn commands(out: &Standing, swap: &Swap) -> Vec<String> {
    let node = &out.machine.name;
    let by = if let Swap::By { spare, .. } = swap { format!(" (replaced by {spare})") } else { String::new() };
    let reason = quoted(&format!("Reason=muster: {}{by}", out.why));
    let drain = format!("scontrol update {} State=DRAIN {reason}", quoted(&format!("NodeName={node}")));
    let then = match swap {
        Swap::By { spare, near } => {
            format!("scontrol update {} State=RESUME  # {}", quoted(&format!("NodeName={spare}")), near.title())
        }
        Swap::Nobody { why } => format!("# {node}: nobody replaces it: {why}"),
    };
    vec![drain, then]
}

/// What is said of parts that failed more than once, by the node on which they failed last.
#[must_use]
pub fn again(failed: &[Failure]) -> BTreeMap<String, Vec<String>> {
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in repeated(failed) {
        if let (Some(last), Some(told)) = (part.failures.last(), told(&part)) {
            let text = format!("{told} ({}, {})", last.component, part.part.serial);
            said.entry(last.node.clone()).or_default().push(text);
        }
    }
    said
}

/// A failure among all of its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted<'f> {
    /// The failure.
    pub failure: &'f Failure,
    /// How often this part failed up to now, here or elsewhere; `None` where it cannot be told from others.
    pub times: Option<usize>,
    /// `third time this GPU fails here`; `None` of a part's first failure, and of all but its last.
    pub said: Option<String>,
}

/// The failures on the nodes that are wanted, in their order.
pub fn history(all: &[Failure], wanted: impl Fn(&str) -> bool) -> Vec<Counted<'_>> {
    let again = repeated(all);
    let of_part: BTreeMap<&Part, _> = again.iter().map(|one| (&one.part, one)).collect();
    let mut counted = Vec::new();
    for failure in all.iter().filter(|failure| wanted(&failure.node)) {
        let known = failure.part.as_ref().and_then(|part| of_part.get(part));
        let last = known.filter(|one| one.failures.last() == Some(failure));
        counted.push(Counted {
            failure,
            times: failure.part.as_ref().map(|_| known.map_or(1, |one| one.failures.len())),
            said: last.and_then(|one| told(one)),
        });
    }
    counted
}
