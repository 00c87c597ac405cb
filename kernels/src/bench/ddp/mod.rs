//! How fast all GPUs of a node train one model together, and how much of adding up their gradients is hidden behind computing.
//!
//! | file | settles |
//! |---|---|
//! | `works` | which models |
//! | `measure` | what is timed, and that every loss comes again |

mod measure;
mod works;

use super::links;
use super::node::Node;
use crate::driver::Trouble;
use crate::nccl::Nccl;
use crate::parallel::{MOST, Team, Way};
use measure::Job;
use works::Work;

/// How the GPUs of this node can add up.
struct Ways {
    /// Each reads every other's memory.
    direct: bool,
    nccl: Option<Nccl>,
}

pub(super) fn run(node: &mut Node<'_>) -> Result<(), Trouble> {
    let count = node.gpus.len();
    if count > MOST {
        return Err(Trouble::Absent(format!("{count} GPUs, and sums are of up to {MOST}")));
    }
    let direct = links::open(node)?.iter().all(|open| open.len() + 1 == count);
    let (nccl, broken) = library(node);
    let ways = Ways { direct, nccl };
    let works = works::of(node.profile);
    let (parts, mut measured, mut missing) = (works.len(), 0, Vec::new());
    for (part, work) in works.into_iter().enumerate() {
        let name = work.name();
        match train(node, &work, (&ways, part, parts)).map_err(|trouble| trouble.about(&name))? {
            None => measured += 1,
            Some(why) => {
                node.of(0).fact(&format!("{name}_ddp"), format!("not measured: {why}"));
                missing.push(format!("{name} {why}"));
            }
        }
        if node.is_blamed() {
            break;
        }
    }
    if let Some(why) = broken {
        node.blame(why);
    }
    if measured > 0 || node.is_blamed() { Ok(()) } else { Err(Trouble::Absent(missing.join("; "))) }
}

/// NCCL with all GPUs brought together, where it is on the node; and what is wrong with it.
fn library(node: &mut Node<'_>) -> (Option<Nccl>, Option<String>) {
    let mut nccl = match Nccl::load() {
        Ok(nccl) => nccl,
        Err(Trouble::Failed(why)) => return (None, Some(why)),
        Err(Trouble::Absent(_) | Trouble::NotRun(_)) => return (None, None),
    };
    node.of(0).fact("nccl", format!("version={} path={}", nccl.version, nccl.path()));
    node.all().progress(0.0, "NCCL brings them together");
    match nccl.meet(node.gpus.len()) {
        Ok(()) => (Some(nccl), None),
        Err(trouble) => (None, Some(trouble.to_string())),
    }
}

/// Measures one model in every way that there is; or why there is no room for it.
fn train(
    node: &mut Node<'_>,
    work: &Work,
    (ways, part, parts): (&Ways, usize, usize),
) -> Result<Option<String>, Trouble> {
    let gpus = node.gpus;
    let through_host = !ways.direct && ways.nccl.is_none();
    let plan = work.plan(gpus.len());
    if let Some(why) = Team::lacks(gpus, &plan, through_host)? {
        return Ok(Some(why));
    }
    let team = Team::new(gpus, &plan)?;
    let mut all = Vec::new();
    if ways.direct {
        all.push(Way::direct(team.sides(), team.parts())?);
    }
    all.extend(ways.nccl.as_ref().map(Way::Nccl));
    if through_host {
        all.push(Way::host(team.sides(), team.parts())?);
    }
    let count = all.len();
    for (number, way) in all.iter().enumerate() {
        let job = Job { name: work.name(), items: plan.tape.items, team: &team, way };
        let done = part as f64 + number as f64 / count as f64;
        job.measure(node, number == 0, (done / parts as f64, 1.0 / (parts * count) as f64))?;
    }
    Ok(None)
}
