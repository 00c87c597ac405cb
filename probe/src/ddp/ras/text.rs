//! A report as NCCL writes it for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::report::{Member, RELEASE, Report, Ring};

/// Ranks that differ are listed if they are few: this share of all, and so many.
const SHARE: f64 = 0.25;
const VERBOSE_SHARE: f64 = 0.5;
const FEW: usize = 10;

pub(super) fn write(report: &Report, verbose: bool) -> String {
    let mut text = format!("NCCL version {RELEASE} compiled without CUDA\n\n");
    let _infallible = summary(&mut text, report).and_then(|()| table(&mut text, report));
    let _infallible = problems(&mut text, report, verbose);
    text
}

fn summary(text: &mut String, report: &Report) -> std::fmt::Result {
    let world: &[Member] = report.rings.first().map_or(&[], |ring| &ring.members);
    let nodes = hosts(world);
    let per_node = world.len().div_ceil(nodes.max(1));
    writeln!(text, "Job summary\n===========\n")?;
    writeln!(text, "  Nodes  Processes         GPUs  Processes     GPUs")?;
    writeln!(text, "(total)   per node  per process    (total)  (total)")?;
    writeln!(text, "{nodes:7}  {per_node:9}  {:11}  {:9}  {:7}\n", 1, world.len(), world.len())
}

fn hosts(members: &[Member]) -> usize {
    members.iter().map(|member| member.host).collect::<BTreeSet<_>>().len()
}

/// Communicators of one shape are one group.
fn groups(report: &Report) -> BTreeMap<(std::cmp::Reverse<usize>, usize), Vec<&Ring>> {
    let mut groups: BTreeMap<_, Vec<&Ring>> = BTreeMap::new();
    for ring in &report.rings {
        groups.entry((std::cmp::Reverse(ring.members.len()), hosts(&ring.members))).or_default().push(ring);
    }
    groups
}

fn table(text: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(text, "Communicators... ({:.2}s)\n=============\n", report.took.as_secs_f64())?;
    writeln!(text, "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors")?;
    writeln!(text, "    #  in group  per comm  per node  per comm  in group")?;
    for (number, ((size, nodes), rings)) in groups(report).into_iter().enumerate() {
        let (size, here) = (size.0, rings.iter().map(|ring| ring.here().count()).sum::<usize>());
        let per_node = size.div_ceil(nodes.max(1));
        let errors = errors(&rings);
        let abort = rings.iter().any(|ring| ring.here().any(|(.., failed)| failed));
        let status = if abort { "ABORT" } else { "RUNNING" };
        writeln!(
            text,
            "{number:5}  {:8}  {nodes:8}  {per_node:8}  {size:8}  {here:8}  {status:>8}  {errors}",
            rings.len()
        )?;
    }
    Ok(())
}

fn errors(rings: &[&Ring]) -> String {
    let mut words = Vec::new();
    if rings.iter().any(|ring| ring.missing().next().is_some()) {
        words.push("INCOMPLETE");
    }
    if rings.iter().any(|ring| differs(ring)) {
        words.push("MISMATCH");
    }
    if words.is_empty() { "OK".to_owned() } else { words.join(",") }
}

fn differs(ring: &Ring) -> bool {
    let counts: BTreeSet<(u64, u64)> = ring.here().map(|(_, reduce, gather, _)| (reduce, gather)).collect();
    counts.len() > 1
}

fn problems(text: &mut String, report: &Report, verbose: bool) -> std::fmt::Result {
    writeln!(text, "\nErrors\n======\n")?;
    let world = report.rings.first();
    let dead: Vec<&Member> =
        world.into_iter().flat_map(|ring| ring.missing().filter(|(_, dead)| *dead).map(|(member, _)| member)).collect();
    if !dead.is_empty() {
        let are = if dead.len() == 1 { "job process is" } else { "job processes are" };
        writeln!(text, "DEAD\n  {} {are} considered dead (unreachable via the RAS network)", dead.len())?;
        for member in &dead {
            writeln!(text, "  Process {} on node {} managing GPU {}", member.pid, member.host, member.slot)?;
        }
        writeln!(text)?;
    }
    each(text, report, &mut |text, name, ring| incomplete(text, name, ring))?;
    writeln!(text, "\nWarnings\n========\n")?;
    each(text, report, &mut |text, name, ring| mismatch(text, (name, ring), verbose))
}

fn each(
    text: &mut String,
    report: &Report,
    say: &mut dyn FnMut(&mut String, &str, &Ring) -> std::fmt::Result,
) -> std::fmt::Result {
    for (number, (_, rings)) in groups(report).into_iter().enumerate() {
        for (place, ring) in rings.into_iter().enumerate() {
            say(text, &format!("#{number}-{place} ({:016x})", ring.hash), ring)?;
        }
    }
    Ok(())
}

fn incomplete(text: &mut String, name: &str, ring: &Ring) -> std::fmt::Result {
    let missing: Vec<&Member> = ring.missing().map(|(member, _)| member).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let ranks = if missing.len() == 1 { "rank" } else { "ranks" };
    writeln!(text, "{name} INCOMPLETE\n  Missing communicator data from {} {ranks}", missing.len())?;
    missing.iter().try_for_each(|member| writeln!(text, "  Rank {} -- {}", member.rank, place(member)))?;
    writeln!(text)
}

fn place(member: &Member) -> String {
    format!("GPU {} managed by process {} on node {}", member.slot, member.pid, member.host)
}

/// Per operation: how many ranks came how far, and who the few are.
fn mismatch(text: &mut String, (name, ring): (&str, &Ring), verbose: bool) -> std::fmt::Result {
    let count = |op: &str, member: (&Member, u64, u64, bool)| if op == "AllReduce" { member.1 } else { member.2 };
    for op in ["AllReduce", "AllGather"] {
        let mut by_count: BTreeMap<u64, Vec<&Member>> = BTreeMap::new();
        ring.here().for_each(|member| by_count.entry(count(op, member)).or_default().push(member.0));
        if by_count.len() < 2 {
            continue;
        }
        writeln!(text, "{name} MISMATCH\n  Communicator ranks have different {op} operation counts")?;
        let mut rows: Vec<(u64, Vec<&Member>)> = by_count.into_iter().collect();
        rows.sort_by_key(|(count, members)| (std::cmp::Reverse(members.len()), std::cmp::Reverse(*count)));
        let share = if verbose { VERBOSE_SHARE } else { SHARE };
        for (count, members) in rows {
            let few = (members.len() as f64) <= share * ring.members.len() as f64 && members.len() <= FEW;
            match &members[..] {
                members if few => members.iter().try_for_each(|member| {
                    writeln!(text, "  Rank {} has launched up to operation {count} -- {}", member.rank, place(member))
                })?,
                [_] => writeln!(text, "  1 rank has launched up to operation {count}")?,
                many => writeln!(text, "  {} ranks have launched up to operation {count}", many.len())?,
            }
        }
        writeln!(text)?;
    }
    Ok(())
}
