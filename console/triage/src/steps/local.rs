//! Did storage, a host, a loader or a single process stop, by its own word?

use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, Verdict, found, nothing, seen, who};
use crate::confidence::Weight;
use crate::events::Event;
use crate::facts::Facts;
use crate::report::{Done, Kind as What, Source, Suspect};
use muster_logs::Category;
use muster_logs::fault::Fault;
use muster_logs::{Field, Part};

const STEP: &str = "storage-and-hosts";

/// The step.
pub(super) fn step(facts: &Facts<'_>) -> (Done, Option<Verdict>) {
    if let Some(suspect) = storage(facts) {
        let name = suspect.element.as_deref().unwrap_or("storage");
        let result = if suspect.cause.fault == Some(Fault::DiskFull) {
            "a file system is full".to_owned()
        } else {
            format!("{name} does not answer")
        };
        return found(STEP, result, Verdict { category: Category::Storage, suspects: vec![suspect] });
    }
    for category in [Category::HostStall, Category::ProcessExited, Category::DataloaderStall] {
        let suspects = suspects(facts, category);
        if !suspects.is_empty() {
            let names: Vec<String> = suspects.iter().map(|s| who(s.rank, s.node.as_deref())).collect();
            return found(STEP, format!("{}: {}", category.name(), names.join(", ")), Verdict { category, suspects });
        }
    }
    nothing(STEP, "no host, loader, process or storage says that it stopped", "Go on to what ranks say of each other.")
}

/// A server that stopped answering and did not come back, when the job did.
fn storage(facts: &Facts<'_>) -> Option<Suspect> {
    let lines: Vec<&Event<'_>> = facts
        .roots()
        .filter(|event| {
            matches!(event.rule.part, Part::Storage | Part::Disk)
                && event.rule.category.is_none_or(|c| c == Category::Storage)
        })
        .collect();
    let lead = lines.iter().max_by_key(|event| (event.seen.fields.get(Field::Server).is_some(), event.seen.count))?;
    let server = lead.seen.fields.get(Field::Server).map(str::to_owned);
    let same: Vec<&&Event<'_>> = lines
        .iter()
        .filter(|event| server.is_none() || event.seen.fields.get(Field::Server) == server.as_deref())
        .collect();
    let nodes: BTreeSet<&str> = same.iter().filter_map(|event| event.node.as_deref()).collect();
    let repeats: u64 = same.iter().map(|event| event.seen.count).sum();
    let behind = facts.behind();
    let holds = behind.iter().any(|rank| facts.layout.node_of(*rank).is_some_and(|node| nodes.contains(node)));
    // A single line of a single machine that nobody waits for is a hiccup.
    if repeats < 2 && !holds && lead.source == Source::Kernel {
        return None;
    }
    // The disks of several nodes do not break at once: what they have in common does.
    let local = lead.rule.part == Part::Disk && nodes.len() < 2;
    let mut cause = lead.cause();
    cause.fault = cause.fault.filter(|fault| local || !matches!(fault, Fault::DiskStalls | Fault::DiskBroken));
    let mut draft = Draft::new(What::Storage, local.then(|| lead.node.clone()).flatten(), None)
        .element(server.clone().or_else(|| lead.seen.fields.get(Field::Device).map(str::to_owned)))
        .cause(cause);
    draft.add(Weight::Line, same.iter().take(6).map(|event| event.evidence()));
    let source = lead.source;
    if nodes.len() > 1 {
        draft.add(Weight::ManyNodes, [seen(source, &None, None, format!("{} nodes say so", nodes.len()))]);
    }
    if holds {
        let text = "ranks that the others wait for run on these nodes".to_owned();
        draft.add(Weight::HoldsBack, [seen(source, &None, None, text)]);
    }
    if repeats > 2 {
        draft.add(Weight::Repeated, [seen(source, &None, None, format!("said {repeats} times"))]);
    }
    let on = nodes.into_iter().take(4).collect::<Vec<_>>().join(", ");
    if lead.rule.fault == Some(Fault::DiskFull) {
        return Some(draft.say(format!("Storage is full, seen on {on}: {}", lead.rule.meaning)));
    }
    let what = server.map_or("Storage".to_owned(), |server| format!("Storage server {server}"));
    Some(draft.say(format!("{what} does not answer, seen on {on}: {}", lead.rule.meaning)))
}

fn suspects(facts: &Facts<'_>, category: Category) -> Vec<Suspect> {
    let mut lines: Vec<&Event<'_>> = facts.of_category(category).collect();
    if category == Category::ProcessExited && facts.hung() {
        // Long after the job stopped, its processes are killed by whoever noticed.
        lines.retain(|event| event.at_s.zip(facts.end.last_s).is_none_or(|(at, last)| at < last + 120.0));
    }
    leave_out_what_follows(&mut lines);
    let mut places: BTreeSet<(Option<String>, Option<u32>)> =
        lines.iter().map(|event| (event.node.clone(), event.rank)).collect();
    // Named by itself, a rank stands for its node.
    let ranks: BTreeSet<Option<String>> =
        places.iter().filter(|(_, rank)| rank.is_some()).map(|(node, _)| node.clone()).collect();
    places.retain(|(node, rank)| rank.is_some() || !ranks.contains(node));
    // Beside those that are named, what nobody is named in is of one of them.
    let named = places.iter().any(|(node, rank)| node.is_some() || rank.is_some());
    places.retain(|(node, rank)| !named || node.is_some() || rank.is_some());
    if places.len() * 2 > facts.layout.world().max(4) {
        // Everybody says so: it is nobody's own.
        return Vec::new();
    }
    let several = places.len();
    let suspect = |(node, rank): (Option<String>, Option<u32>)| {
        let mut draft = Draft::new(if rank.is_some() { What::Rank } else { What::Node }, node.clone(), rank)
            .gpu(rank.and_then(|rank| facts.layout.gpu_of(rank)));
        let own: Vec<&&Event<'_>> =
            lines.iter().filter(|event| event.node == node && event.rank.is_none_or(|of| Some(of) == rank)).collect();
        draft.add(Weight::Line, own.iter().take(6).map(|event| event.evidence()));
        if own.iter().any(|event| event.source == Source::Kernel) && own.iter().any(|event| event.source == Source::Log)
        {
            draft.add(Weight::BothLogs, []);
        }
        let late = rank.is_some() && facts.slow.sometimes.iter().any(|other| other.rank == rank);
        if late || polled_behind(facts, rank) {
            let (source, text) = match late {
                true => (Source::Inspector, "the others waited for it now and then"),
                false => (Source::Ras, "behind the others in a poll"),
            };
            draft.add(Weight::Sometimes, [seen(source, &node, rank, text.to_owned())]);
        }
        draft.corroborate(facts);
        if let Some(lead) = own.iter().find(|event| event.rule.fault.is_some()).or(own.first()) {
            draft = draft.cause(lead.cause());
        }
        let meaning = own.first().map_or("", |event| event.rule.meaning.as_str());
        draft.one_of(several, format!("{}: {meaning}", who(rank, node.as_deref())))
    };
    let mut suspects: Vec<Suspect> = places.into_iter().map(suspect).collect();
    suspects.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    suspects.truncate(super::SUSPECTS);
    suspects
}

/// A line that follows another of its node tells of that one's rank, whoever wrote it.
fn leave_out_what_follows(lines: &mut Vec<&Event<'_>>) {
    type Told<'e> = BTreeMap<(&'e str, Option<&'e str>), BTreeSet<Option<u32>>>;
    let mut ranks: Told<'_> = BTreeMap::new();
    for event in lines.iter() {
        ranks.entry((&event.rule.id, event.node.as_deref())).or_default().insert(event.rank);
    }
    let follows = |event: &Event<'_>| {
        let mut others = event.rule.follows.iter().filter_map(|id| ranks.get(&(id.as_str(), event.node.as_deref())));
        others.any(|others| others.iter().any(|rank| *rank != event.rank))
    };
    let explained: Vec<bool> = lines.iter().map(|event| follows(event)).collect();
    let mut explained = explained.into_iter();
    lines.retain(|_| !explained.next().unwrap_or_default());
}

/// Whether any poll caught the rank behind: normal once, and it fits.
fn polled_behind(facts: &Facts<'_>, rank: Option<u32>) -> bool {
    let Some(rank) = rank else { return false };
    facts.case.polls.iter().flat_map(|poll| &poll.comms).any(|comm| {
        let Some(mine) = comm.ranks.iter().find(|one| facts.layout.rank_of(&one.process) == Some(rank)) else {
            return false;
        };
        let mut others = comm.ranks.iter().flat_map(|other| &other.counts);
        others.any(|(op, count)| mine.counts.get(op).is_some_and(|mine| mine < count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Case, Comm, Job, Member, Poll, Process, Whose};
    use crate::made;
    use muster_logs::Rules;

    /// Whose log (`n1` of a kernel, `1` of a rank), a line, and how often it stands there.
    type Lines<'l> = &'l [(&'l str, &'l str, usize)];

    const NFS: &str = "nfs: server 10.4.0.19 not responding, still trying\n";
    const OTHER: &str = "nfs: server 10.4.0.20 not responding, still trying\n";
    const DISK: &str = "nvme nvme4: I/O tag 22 (2016) opcode 0x2 (Admin Cmd) QID 0 timeout, reset controller\n";

    /// What is said of four ranks on four nodes with these lines, of which RAS misses one.
    fn told(lines: Lines<'_>, gone: Option<u32>) -> Option<Verdict> {
        let rules = Rules::built_in().unwrap();
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), pid: Some(1000 + rank), gpu: None };
        let process = |rank: u32| Process { host: format!("n{rank}"), pid: Some(1000 + rank), ..Process::default() };
        let comm = Comm { missing: gone.into_iter().map(process).collect(), ..Comm::default() };
        let log = |&(of, line, times): &(&str, &str, usize)| {
            let whose = of.parse::<u32>().map_or_else(|_| Whose::Kernel(of.to_owned()), Whose::Rank);
            made::log(whose, &line.repeat(times), &rules)
        };
        let case = Case {
            job: Job { members: (0..4).map(member).collect(), ..Job::default() },
            logs: lines.iter().map(log).collect(),
            polls: vec![Poll { comms: vec![comm], ..Poll::default() }],
            ..Case::default()
        };
        step(&Facts::of(&case, &rules)).1
    }

    /// The same, where it is storage: its node, its element and the confidence.
    fn storage(lines: Lines<'_>, gone: Option<u32>) -> Option<(Option<String>, Option<String>, f64)> {
        let Verdict { category, mut suspects } = told(lines, gone)?;
        assert_eq!((category, suspects.len(), suspects[0].kind), (Category::Storage, 1, What::Storage));
        let suspect = suspects.remove(0);
        Some((suspect.node, suspect.element, suspect.confidence))
    }

    fn of(node: Option<&str>, element: &str, confidence: f64) -> Option<(Option<String>, Option<String>, f64)> {
        Some((node.map(str::to_owned), Some(element.to_owned()), confidence))
    }

    #[test]
    fn a_disk_is_of_its_node_and_a_server_of_none() {
        assert_eq!(storage(&[("n1", DISK, 2)], None), of(Some("n1"), "nvme4", 0.75));
        assert_eq!(storage(&[("n1", NFS, 2)], None), of(None, "10.4.0.19", 0.75));
        let lines = [("n1", NFS, 1), ("n2", OTHER, 1), ("n3", OTHER, 2), ("n0", DISK, 9)];
        assert_eq!(storage(&lines, None), of(None, "10.4.0.20", 0.97), "of two servers the one that is told of most");
        let fault = |lines: Lines<'_>| told(lines, None).unwrap().suspects[0].cause.fault;
        assert_eq!(fault(&[("n1", DISK, 2)]), Some(Fault::DiskStalls));
        assert_eq!(fault(&[("n1", DISK, 2), ("n2", DISK, 1)]), None, "no disk of its own, if two nodes say so");
        assert_eq!(storage(&[("n1", DISK, 2), ("n2", DISK, 1)], None), of(None, "nvme4", 0.97));
    }

    #[test]
    fn a_single_line_of_a_kernel_counts_where_others_wait_for_its_node_or_many_nodes_have_it() {
        assert_eq!(storage(&[("n1", NFS, 1)], None), None);
        assert_eq!(storage(&[("n1", NFS, 1)], Some(2)), None);
        assert_eq!(storage(&[("n1", NFS, 1)], Some(1)), of(None, "10.4.0.19", 0.9));
        assert_eq!(storage(&[("n1", NFS, 1), ("n2", NFS, 1)], None), of(None, "10.4.0.19", 0.95));
        assert_eq!(storage(&[("n1", NFS, 1), ("n2", OTHER, 1)], None), None, "a hiccup of each");
        assert_eq!(storage(&[("n1", NFS, 3)], None), of(None, "10.4.0.19", 0.85), "said again and again");
    }

    #[test]
    fn a_full_file_system_is_called_that_and_a_loader_that_waits_is_no_storage() {
        let full = told(&[("3", "OSError: [Errno 28] No space left on device\n", 1)], None).unwrap();
        assert!(full.suspects[0].sentence.starts_with("Storage is full, seen on n3: "), "{full:?}");
        assert_eq!((full.category, full.suspects[0].cause.fault), (Category::Storage, Some(Fault::DiskFull)));
        let waits = "WARNING: dataloader: next(batch) took 41.2 s (worker 3), queue empty\n";
        assert_eq!(told(&[("3", waits, 1)], None).unwrap().category, Category::DataloaderStall);
    }

    #[test]
    fn what_half_of_the_nodes_say_is_told_of_each_and_what_more_of_them_say_of_none() {
        let named = |nodes: &[&str]| {
            let locked = "watchdog: BUG: soft lockup - CPU#18 stuck for 27s! [kworker:77]\n";
            let lines: Vec<(&str, &str, usize)> = nodes.iter().map(|node| (*node, locked, 1)).collect();
            let verdict = told(&lines, None)?;
            assert_eq!(verdict.category, Category::HostStall);
            let own = |one: &Suspect| one.evidence.len() == 1 && one.evidence[0].node == one.node;
            assert!(verdict.suspects.iter().all(own), "by what they say themselves: {verdict:?}");
            Some(verdict.suspects.into_iter().map(|one| (one.node.unwrap(), one.confidence)).collect::<Vec<_>>())
        };
        assert_eq!(named(&["n2"]), Some(vec![("n2".to_owned(), 0.75)]));
        assert_eq!(named(&["n1", "n2"]), Some(vec![("n1".to_owned(), 0.38), ("n2".to_owned(), 0.38)]));
        assert_eq!(named(&["n1", "n2", "n3"]), None);
    }
}
