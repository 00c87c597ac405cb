//! What is known of a job: what its files said, before anything is concluded from it.

use std::collections::BTreeMap;

use muster_wire::{Looked, Processes};

use super::offline::Offline;
use muster_logs::stamp::Stamp;
use muster_logs::{Scanned, Seen, Tally};

/// Most measured operations that are kept: 64 bytes each.
pub const OPERATIONS: usize = 2_000_000;

/// Everything that is known of a job. Each part may be missing.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Who runs where.
    pub job: Job,
    /// What was written, one entry a file.
    pub logs: Vec<Log>,
    /// What NCCL's RAS answered, in the order of asking.
    pub polls: Vec<Poll>,
    /// Flight-recorder dumps, one a rank.
    pub dumps: Vec<Dump>,
    /// What nodes said of the job's processes, by the node's name.
    pub processes: BTreeMap<String, Processes>,
    /// What collectors saw of the nodes' health, by the node's name.
    pub looked: BTreeMap<String, Vec<Looked>>,
    /// Which nodes were asked, live; empty for a bundle that was put together by hand.
    pub reached: Vec<Reached>,
    /// Operations that NCCL Inspector timed.
    pub timed: Vec<Timed>,
    /// Operations past [`OPERATIONS`] that were counted and not kept.
    pub timed_left_out: u64,
    /// What a watch of the job's nodes alerted of.
    pub alerts: Vec<Alerted>,
    /// What the nodes showed by themselves, once the job had left them.
    pub tested: Option<Offline>,
    /// What could not be read, in sentences.
    pub damage: Vec<String>,
    /// Only lines from this many seconds before the newest on count.
    pub since_s: Option<f64>,
}

impl Case {
    /// Whether nothing was read at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
            && self.polls.is_empty()
            && self.dumps.is_empty()
            && self.timed.is_empty()
            && self.processes.is_empty()
            && self.looked.is_empty()
            && self.reached.is_empty()
            && self.damage.is_empty()
    }

    /// Names of all nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        let layout = super::layout::Layout::of(self);
        let kernels = self
            .logs
            .iter()
            .filter_map(|log| if let Whose::Kernel(node) = &log.whose { Some(layout.node(node)) } else { None });
        let nodes: std::collections::BTreeSet<String> =
            layout.nodes().into_iter().map(str::to_owned).chain(kernels).collect();
        nodes.into_iter().collect()
    }

    /// Leaves out the logs of other nodes than these. What ranks say of each other in counts stays: without it, who is missing would look guilty.
    pub fn only_logs_of(&mut self, nodes: &[String]) {
        let layout = super::layout::Layout::of(self);
        self.logs.retain(|log| match &log.whose {
            Whose::Rank(rank) => layout.node_of(*rank).is_none_or(|node| nodes.iter().any(|chosen| chosen == node)),
            Whose::Kernel(node) => nodes.contains(&layout.node(node)),
            Whose::Job(_) => true,
        });
        // Who runs where stays known.
        self.job.members = layout.members.into_values().collect();
    }
}

/// A node that was asked what it knows of the job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reached {
    /// Its name.
    pub node: String,
    /// Why it could not be reached, or did not end; nothing where it told all.
    pub why: Option<String>,
    /// It could not be reached at all.
    pub unreached: bool,
    /// Seconds by which its wall clock is ahead of the console's, and how wrong that may be.
    pub clock: Option<(f64, f64)>,
}

/// A machine that a watch of the job's nodes found unlike its peers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alerted {
    /// The machine.
    pub node: String,
    /// The metric that leads; nothing for a machine that fell silent.
    pub metric: Option<String>,
    /// When it began, epoch seconds.
    pub since_s: f64,
    /// When the machine was like its peers again; nothing while it is not.
    pub until_s: Option<f64>,
    /// It is one of a whole group that differs.
    pub group: bool,
    /// The alert for people.
    pub sentence: String,
}

/// Who runs where, as the operator wrote it down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Job {
    /// Name of the job.
    pub id: Option<String>,
    /// When it began, epoch seconds.
    pub start_s: Option<f64>,
    /// How many ranks it has.
    pub world_size: Option<u32>,
    /// Its ranks.
    pub members: Vec<Member>,
    /// Other names of nodes, such as addresses, with the node's name.
    pub aliases: BTreeMap<String, String>,
    /// Nodes without known ranks, too.
    pub nodes: Vec<String>,
}

/// One rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Rank in the job.
    pub rank: u32,
    /// Its node.
    pub node: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// Its GPU by index on the node.
    pub gpu: Option<u32>,
}

/// Whose log it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// Of one rank.
    Rank(u32),
    /// Of a node's kernel.
    Kernel(String),
    /// Of the whole job, or nobody said.
    Job(String),
}

/// One log, read once and kept in little memory.
#[derive(Clone, Debug)]
pub struct Log {
    /// Whose.
    pub whose: Whose,
    /// Lines in it.
    pub lines: u64,
    /// Bytes in it.
    pub bytes: u64,
    /// Lines that some rule knows, repeats counted.
    pub seen: Vec<Seen>,
    /// Known lines that were counted and not kept.
    pub not_kept: u64,
    /// Lines that were cut because of their length.
    pub cut_lines: u64,
    /// Steps of the job that it tells, the latest of them.
    pub steps: Vec<Step>,
    /// When the job took its first step; `None` where the beginning of the log may be missing.
    pub begun: Option<Stamp>,
    /// Communicators that it tells.
    pub comms: Vec<Joined>,
    /// Adapters in the order in which NCCL lists them.
    pub adapters: Vec<String>,
    /// The last time that any line known to a rule tells.
    pub last: Option<Stamp>,
    /// It could not be read where it was made: the text of the refusal.
    pub refused: Option<String>,
}

impl Log {
    /// What a pass over a log found, without what its lines tell beyond the rules: steps, times, communicators and adapters.
    #[must_use]
    pub fn of(whose: Whose, scanned: &Scanned, tally: &Tally) -> Self {
        Self {
            whose,
            lines: scanned.lines,
            bytes: scanned.bytes,
            seen: tally.seen().to_vec(),
            not_kept: tally.not_kept(),
            cut_lines: scanned.cut_lines,
            steps: Vec::new(),
            begun: None,
            comms: Vec::new(),
            adapters: Vec::new(),
            last: None,
            refused: None,
        }
    }
}

/// One step of the job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Its number.
    pub step: u64,
    /// Line of the log in which it is told, from 1.
    pub row: u64,
    /// When it was told.
    pub at: Option<Stamp>,
    /// How long it took, seconds.
    pub seconds: Option<f64>,
}

/// A process that joined a communicator, or counts its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Host as the line names it.
    pub host: Option<String>,
    /// Process.
    pub pid: Option<u32>,
    /// Rank in the communicator.
    pub rank: Option<u32>,
    /// Ranks of the communicator.
    pub ranks: Option<u32>,
    /// GPU by index on the node.
    pub gpu: Option<u32>,
    /// PCI address of the GPU, as the line writes it.
    pub bus: Option<String>,
    /// Identity of the communicator.
    pub comm: Option<String>,
}

/// One answer of RAS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Poll {
    /// Name of the file.
    pub name: String,
    /// Its number, from the name.
    pub number: u32,
    /// Node whose process was asked, where that is known: it sees the ranks that its own mesh reaches.
    pub asked: Option<String>,
    /// When, as the answer says.
    pub at: Option<Stamp>,
    /// Whether it is the text, which tells counts of outliers only.
    pub text: bool,
    /// Communicators, with what is told of their ranks.
    pub comms: Vec<Comm>,
    /// Processes without an answer.
    pub gone: Vec<Process>,
    /// Version of NCCL.
    pub version: Option<String>,
}

/// One communicator in an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comm {
    /// Its hash, which is its identity.
    pub hash: String,
    /// Its ranks in all, where told.
    pub size: Option<u32>,
    /// What was told of ranks.
    pub ranks: Vec<CommRank>,
    /// Ranks that gave no data.
    pub missing: Vec<Process>,
    /// The count that most others have, by operation: the text does not list them one by one.
    pub others: BTreeMap<String, (u32, u64)>,
}

/// One rank of a communicator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommRank {
    /// Who.
    pub process: Process,
    /// Operations launched, by their name.
    pub counts: BTreeMap<String, u64>,
    /// It aborts, or has an asynchronous error.
    pub failed: bool,
}

/// A process as RAS names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Host or address.
    pub host: String,
    /// Process.
    pub pid: Option<u32>,
    /// GPU by index on the node.
    pub gpu: Option<u32>,
    /// Rank in the communicator.
    pub rank: Option<u32>,
    /// RAS holds it for dead.
    pub dead: bool,
}

/// One flight-recorder dump.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    /// Rank in the job, from the file's name.
    pub rank: u32,
    /// Name of each group, with the ranks in it, where told.
    pub groups: BTreeMap<String, Config>,
    /// Counts by the rank's own slot.
    pub status: BTreeMap<String, Status>,
    /// Operations, oldest first.
    pub entries: Vec<Entry>,
    /// Entries that were counted and not kept.
    pub left_out: u64,
}

/// A process group as a rank knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// What it is for.
    pub desc: String,
    /// Its ranks in the job; empty where not told.
    pub ranks: Vec<u32>,
}

/// Counts of one group in one rank; `None` where it was never or is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Last operation enqueued.
    pub enqueued: Option<u64>,
    /// Last operation that the GPU began.
    pub started: Option<u64>,
    /// Last operation completed.
    pub completed: Option<u64>,
}

/// One recorded operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The rank's own slot of the group.
    pub slot: String,
    /// Name of the group.
    pub group: String,
    /// What the group is for.
    pub desc: String,
    /// Its number in the group.
    pub seq: u64,
    /// What it is, such as `nccl:all_reduce`.
    pub op: String,
    /// Between two ranks.
    pub p2p: bool,
    /// Epoch seconds when it was enqueued, on the rank's clock.
    pub created_s: Option<f64>,
    /// Epoch seconds when its end was seen, on the rank's clock.
    pub completed_s: Option<f64>,
    /// Sizes of what goes in.
    pub inputs: String,
    /// Sizes of what comes out.
    pub outputs: String,
    /// Types of the elements.
    pub dtypes: String,
    /// State as written.
    pub state: State,
    /// Done and forgotten.
    pub retired: bool,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Enqueued.
    #[default]
    Scheduled,
    /// Running on the GPU.
    Started,
    /// Done.
    Completed,
}

/// One operation that Inspector timed.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// Identity of the communicator.
    pub comm: String,
    /// Rank in it.
    pub rank: u32,
    /// Its ranks.
    pub ranks: u32,
    /// Nodes it spans.
    pub nodes: u32,
    /// Host as the file names it.
    pub host: String,
    /// Process.
    pub pid: u32,
    /// Operation.
    pub op: String,
    /// The other rank, for an operation between two.
    pub peer: Option<u32>,
    /// Number of the operation.
    pub seq: u64,
    /// Bytes.
    pub bytes: u64,
    /// Microseconds that it took.
    pub took_us: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;
    use muster_logs::Rules;

    #[test]
    fn a_case_is_empty_where_no_file_told_anything_whatever_is_known_of_the_job() {
        let rules = Rules::built_in().unwrap();
        let filled = |fill: fn(&mut Case, &Rules)| {
            let mut case = Case { job: Job { world_size: Some(8), ..Job::default() }, ..Case::default() };
            assert!(case.is_empty());
            fill(&mut case, &rules);
            !case.is_empty()
        };
        assert!(filled(|case, rules| case.logs.push(made::log(Whose::Rank(0), "", rules))));
        assert!(filled(|case, _| case.polls.push(Poll::default())));
        assert!(filled(|case, _| case.dumps.push(Dump::default())));
        assert!(filled(|case, _| _ = case.processes.insert("n1".to_owned(), Processes::default())));
        assert!(filled(|case, _| _ = case.looked.insert("n1".to_owned(), Vec::new())));
        assert!(filled(|case, _| case.reached.push(Reached::default())));
        assert!(
            filled(|case, _| case.damage.push("logs/rank_3.log: torn".to_owned())),
            "a file that could not be read"
        );
        assert!(filled(|case, _| case.timed.push(timed())));
        assert!(!filled(|case, _| case.since_s = Some(60.0)));
    }

    fn timed() -> Timed {
        Timed {
            comm: "c".to_owned(),
            rank: 0,
            ranks: 2,
            nodes: 2,
            host: "n0".to_owned(),
            pid: 7,
            op: "AllReduce".to_owned(),
            peer: None,
            seq: 1,
            bytes: 8,
            took_us: 1.0,
        }
    }

    /// Ranks 0 and 1 on two nodes, with a log each, one of a rank of which nobody knows where it is, one of all, and two of kernels, of
    /// which one goes by an address.
    fn case() -> Case {
        let rules = Rules::built_in().unwrap();
        let member = |rank: u32| Member { rank, node: Some(format!("n{rank}")), ..Member::default() };
        let kernel = |node: &str| Whose::Kernel(node.to_owned());
        let whose = [
            Whose::Rank(0),
            Whose::Rank(1),
            Whose::Rank(2),
            Whose::Job("out".to_owned()),
            kernel("10.0.0.1"),
            kernel("n9"),
        ];
        Case {
            job: Job {
                members: (0..2).map(member).collect(),
                aliases: [("10.0.0.1".to_owned(), "n1".to_owned())].into(),
                ..Job::default()
            },
            logs: whose.map(|whose| made::log(whose, "", &rules)).into(),
            ..Case::default()
        }
    }

    #[test]
    fn nodes_are_those_of_the_ranks_and_those_whose_kernel_wrote_each_by_its_own_name() {
        assert_eq!(case().nodes(), ["n0", "n1", "n9"]);
    }

    #[test]
    fn of_chosen_nodes_their_logs_are_kept_and_those_that_are_of_no_node() {
        let mut case = case();
        case.only_logs_of(&["n1".to_owned()]);
        let kept: Vec<&Whose> = case.logs.iter().map(|log| &log.whose).collect();
        let all = Whose::Job("out".to_owned());
        assert_eq!(kept, [&Whose::Rank(1), &Whose::Rank(2), &all, &Whose::Kernel("10.0.0.1".to_owned())]);
        let known: Vec<(u32, Option<&str>)> =
            case.job.members.iter().map(|member| (member.rank, member.node.as_deref())).collect();
        assert_eq!(known, [(0, Some("n0")), (1, Some("n1")), (2, None)], "who runs where stays known");
    }
}
