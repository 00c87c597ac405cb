//! Who is where: ranks, nodes, processes, GPUs and the other names they go by.

use std::collections::{BTreeMap, BTreeSet};

use super::case::{Case, Member, Process, Whose};

/// Who is where.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// By rank in the job.
    pub members: BTreeMap<u32, Member>,
    alias: BTreeMap<String, String>,
    by_process: BTreeMap<(String, u32), u32>,
    gpu_of_bus: BTreeMap<(String, String), u32>,
    adapters: BTreeMap<String, Vec<String>>,
    world: usize,
}

impl Layout {
    /// Everything that the files say of who is where.
    #[must_use]
    pub fn of(case: &Case) -> Self {
        let mut layout = Self { alias: case.job.aliases.clone(), ..Self::default() };
        for node in &case.job.nodes {
            layout.alias.entry(node.clone()).or_insert_with(|| node.clone());
        }
        for member in &case.job.members {
            layout.members.insert(member.rank, member.clone());
        }
        layout.take_logs(case);
        layout.take_dumps(case);
        layout.names_by_process(case);
        layout.local_gpus();
        for (rank, member) in &layout.members {
            if let (Some(node), Some(pid)) = (&member.node, member.pid) {
                layout.by_process.insert((node.clone(), pid), *rank);
            }
        }
        layout.take_processes(case);
        layout.take_polls(case);
        layout.take_timed(case);
        layout.world = case.job.world_size.map_or(0, |n| n as usize).max(layout.members.len());
        layout
    }

    fn take_logs(&mut self, case: &Case) {
        for log in &case.logs {
            if let Whose::Kernel(node) = &log.whose {
                self.alias.entry(node.clone()).or_insert_with(|| node.clone());
            }
            let of_seen =
                log.seen.iter().map(|seen| (seen.origin.rank, seen.origin.host.as_ref(), seen.origin.pid, None, None));
            let of_comms = log.comms.iter().map(|c| (None, c.host.as_ref(), c.pid, c.gpu, c.bus.as_ref()));
            for (rank, host, pid, gpu, bus) in of_comms.chain(of_seen) {
                let rank = match log.whose {
                    Whose::Rank(rank) => Some(rank),
                    _ => rank,
                };
                let node = host.map(|host| self.node(host));
                if let (Some(node), Some(bus), Some(gpu)) = (&node, bus, gpu) {
                    self.gpu_of_bus.insert((node.clone(), bus_key(bus)), gpu);
                }
                let Some(rank) = rank else { continue };
                let member = self.members.entry(rank).or_insert_with(|| Member { rank, ..Member::default() });
                member.node = member.node.take().or(node);
                member.pid = member.pid.or(pid);
                member.gpu = gpu.or(member.gpu);
            }
            if let (Whose::Rank(rank), false) = (&log.whose, log.adapters.is_empty())
                && let Some(node) = self.members.get(rank).and_then(|member| member.node.clone())
            {
                self.adapters.insert(node, log.adapters.clone());
            }
            if let Whose::Rank(rank) = log.whose {
                self.members.entry(rank).or_insert_with(|| Member { rank, ..Member::default() });
            }
        }
    }

    /// Names and addresses of nodes, and both numbers of each process: in a container it calls itself by another.
    fn take_processes(&mut self, case: &Case) {
        for (node, told) in &case.processes {
            self.alias.insert(node.clone(), node.clone());
            for name in told.addresses.iter().chain([&told.hostname]).filter(|name| !name.is_empty()) {
                self.alias.entry(name.clone()).or_insert_with(|| node.clone());
            }
            for process in &told.processes {
                let Some(rank) = process.rank else { continue };
                for pid in [process.pid, process.inner_pid] {
                    self.by_process.entry((node.clone(), pid)).or_insert(rank);
                }
            }
        }
    }

    /// Addresses of RAS are names of nodes where the same process is told under both.
    fn names_by_process(&mut self, case: &Case) {
        let mut node_of: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        let of_logs = case
            .logs
            .iter()
            .flat_map(|log| log.comms.iter().filter_map(|comm| Some((comm.pid?, comm.host.as_deref()?))));
        let of_timed = case.timed.iter().map(|one| (one.pid, one.host.as_str()));
        for (pid, host) in of_logs.chain(of_timed) {
            node_of.entry(pid).or_default().insert(self.node(host));
        }
        let mut votes: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        let comms = case.polls.iter().flat_map(|poll| &poll.comms);
        for process in comms.flat_map(|comm| comm.ranks.iter().map(|rank| &rank.process).chain(&comm.missing)) {
            if let Some(nodes) = process.pid.and_then(|pid| node_of.get(&pid)).filter(|nodes| nodes.len() == 1) {
                let votes = votes.entry(process.host.clone()).or_default();
                nodes.iter().for_each(|node| *votes.entry(node.clone()).or_default() += 1);
            }
        }
        for (host, votes) in votes.into_iter().filter(|(_, votes)| votes.len() == 1) {
            let node = votes.into_keys().next().unwrap_or_default();
            self.alias.entry(host).or_insert(node);
        }
    }

    /// Processes by their place in the communicator of all ranks of their node.
    fn take_timed(&mut self, case: &Case) {
        let of_node: BTreeMap<String, Vec<u32>> =
            self.members.values().fold(BTreeMap::new(), |mut of_node: BTreeMap<String, Vec<u32>>, member| {
                if let Some(node) = &member.node {
                    of_node.entry(node.clone()).or_default().push(member.rank);
                }
                of_node
            });
        for one in case.timed.iter().filter(|one| one.nodes == 1) {
            let node = self.node(&one.host);
            let Some(ranks) = of_node.get(&node).filter(|ranks| ranks.len() == one.ranks as usize) else { continue };
            if let Some(rank) = ranks.get(one.rank as usize) {
                self.by_process.entry((node, one.pid)).or_insert(*rank);
            }
        }
    }

    fn take_dumps(&mut self, case: &Case) {
        let ranks = case.dumps.iter().flat_map(|dump| {
            let configured = dump.groups.values().flat_map(|config| config.ranks.iter().copied());
            configured.chain([dump.rank])
        });
        for rank in ranks.collect::<BTreeSet<u32>>() {
            self.members.entry(rank).or_insert_with(|| Member { rank, ..Member::default() });
        }
    }

    /// GPUs by place among the ranks of a node, where nobody said otherwise.
    fn local_gpus(&mut self) {
        let mut ranks_of: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (rank, member) in &self.members {
            if let Some(node) = &member.node {
                ranks_of.entry(node.clone()).or_default().push(*rank);
            }
        }
        for ranks in ranks_of.values().filter(|ranks| ranks.len() > 1) {
            for (place, rank) in ranks.iter().enumerate() {
                if let Some(member) = self.members.get_mut(rank).filter(|member| member.gpu.is_none()) {
                    member.gpu = Some(place as u32);
                }
            }
        }
    }

    /// Processes of the communicator of all ranks, whose ranks are those of the job.
    fn take_polls(&mut self, case: &Case) {
        let largest = case.polls.iter().flat_map(|poll| &poll.comms).max_by_key(|comm| comm.ranks.len());
        let Some(comm) = largest.filter(|comm| comm.ranks.len() >= self.members.len() && comm.ranks.len() > 1) else {
            return;
        };
        let hosts = comm.ranks.iter().map(|rank| &rank.process).chain(&comm.missing);
        let known: Vec<Process> = hosts.cloned().collect();
        for process in known {
            let Some(rank) = process.rank else { continue };
            let node = self.node(&process.host);
            let member = self.members.entry(rank).or_insert_with(|| Member { rank, ..Member::default() });
            if member.node.as_ref().is_some_and(|known| *known != node) {
                // Ranks of the communicator are not those of the job.
                return;
            }
            member.node = Some(node.clone());
            member.pid = member.pid.or(process.pid);
            member.gpu = member.gpu.or(process.gpu);
            if let Some(pid) = process.pid {
                self.by_process.insert((node, pid), rank);
            }
        }
    }

    /// The name of a node that goes by `name` somewhere: its own, an address, or with its domain.
    #[must_use]
    pub fn node(&self, name: &str) -> String {
        let name = name.trim_start_matches("::ffff:");
        let short = || name.split('.').next().filter(|short| short.parse::<u8>().is_err());
        let found = self.alias.get(name).or_else(|| self.alias.get(short()?));
        found.cloned().unwrap_or_else(|| name.to_owned())
    }

    /// Whether `name` is known to be a node of the job.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        let node = self.node(name);
        self.members.values().any(|member| member.node.as_ref() == Some(&node)) || self.alias.contains_key(&node)
    }

    /// The node of a rank.
    #[must_use]
    pub fn node_of(&self, rank: u32) -> Option<&str> {
        self.members.get(&rank)?.node.as_deref()
    }

    /// The GPU of a rank, by index on its node.
    #[must_use]
    pub fn gpu_of(&self, rank: u32) -> Option<u32> {
        self.members.get(&rank)?.gpu
    }

    /// The rank of a process of RAS or Inspector: by host and process, or else by host and GPU.
    #[must_use]
    pub fn rank_of(&self, process: &Process) -> Option<u32> {
        let node = self.node(&process.host);
        let by_pid = process.pid.and_then(|pid| self.by_process.get(&(node.clone(), pid)).copied());
        by_pid.or_else(|| self.rank_at(&node, process.gpu?))
    }

    /// The rank on a GPU of a node.
    #[must_use]
    pub fn rank_at(&self, node: &str, gpu: u32) -> Option<u32> {
        let on = |member: &&Member| member.node.as_deref() == Some(node) && member.gpu == Some(gpu);
        let mut found = self.members.values().filter(on);
        let first = found.next()?;
        found.next().is_none().then_some(first.rank)
    }

    /// The rank of a process.
    #[must_use]
    pub fn rank_of_pid(&self, node: &str, pid: u32) -> Option<u32> {
        self.by_process.get(&(node.to_owned(), pid)).copied()
    }

    /// Whether the processes of a node are known, so that one that is not among them is somebody else's.
    #[must_use]
    pub fn knows_processes_of(&self, node: &str) -> bool {
        let ranks = self.members.values().filter(|member| member.node.as_deref() == Some(node));
        let mut any = false;
        ranks.fold(true, |all, member| {
            any = true;
            all && member.pid.is_some()
        }) && any
    }

    /// The GPU at a PCI address, by index on the node.
    #[must_use]
    pub fn gpu_at(&self, node: &str, bus: &str) -> Option<u32> {
        self.gpu_of_bus.get(&(node.to_owned(), bus_key(bus))).copied()
    }

    /// The adapter that serves a GPU, where a node has as many as GPUs.
    #[must_use]
    pub fn adapter(&self, node: &str, gpu: u32) -> Option<&str> {
        let adapters = self.adapters.get(node)?;
        let gpus = self.members.values().filter(|member| member.node.as_deref() == Some(node)).count();
        (adapters.len() == gpus).then(|| adapters.get(gpu as usize).map(String::as_str))?
    }

    /// How many ranks the job has, as far as known.
    #[must_use]
    pub const fn world(&self) -> usize {
        self.world
    }

    /// Nodes with ranks.
    #[must_use]
    pub fn nodes(&self) -> Vec<&str> {
        let nodes: BTreeSet<&str> = self.members.values().filter_map(|member| member.node.as_deref()).collect();
        nodes.into_iter().collect()
    }
}

/// `0000:52:00.0`, `PCI:0000:52:00` and NCCL's `52000` are the same device.
fn bus_key(bus: &str) -> String {
    let bus = bus.trim_start_matches("PCI:").to_ascii_lowercase();
    let Some((_, rest)) = bus.split_once(':') else {
        // NCCL: domain, bus, device and function in one number.
        let number = u64::from_str_radix(&bus, 16).unwrap_or(0);
        return format!("{:x}:{:02x}:{:02x}", number >> 20, (number >> 12) & 0xff, (number >> 4) & 0xff);
    };
    let mut parts: Vec<&str> = bus.split([':', '.']).collect();
    if rest.matches(':').count() == 0 {
        parts.insert(0, "0");
    }
    let number = |at: usize| parts.get(at).and_then(|part| u64::from_str_radix(part, 16).ok()).unwrap_or(0);
    format!("{:x}:{:02x}:{:02x}", number(0), number(1), number(2))
}

#[cfg(test)]
mod tests {
    use super::super::case::{Comm, CommRank, Joined, Log, Poll, Timed};
    use super::*;
    use crate::made;
    use muster_logs::Rules;
    use muster_wire::{JobProcess, Processes};

    #[test]
    fn one_device_has_one_key_however_it_is_written() {
        for bus in ["0000:52:00.0", "PCI:0000:52:00", "52000", "00000000:52:00.0", "52:00.0"] {
            assert_eq!(bus_key(bus), "0:52:00", "{bus}");
        }
        assert_eq!(bus_key("0f000"), "0:0f:00");
    }

    #[test]
    fn a_process_is_found_under_any_name_of_its_node() {
        let mut case = Case::default();
        case.job.aliases.insert("10.0.0.7".into(), "n7".into());
        case.job.members.push(Member { rank: 3, node: Some("n7".into()), pid: Some(44), gpu: Some(1) });
        let layout = Layout::of(&case);
        let process = |host: &str, pid, gpu| Process { host: host.into(), pid, gpu, ..Process::default() };
        assert_eq!(layout.rank_of(&process("::ffff:10.0.0.7", Some(44), None)), Some(3));
        assert_eq!(layout.rank_of(&process("n7", None, Some(1))), Some(3));
        assert_eq!(layout.rank_of(&process("n8", Some(44), None)), None);
    }
    /// What the address 10.0.0.7 is taken for where RAS tells processes with these numbers of it, and Inspector others of hosts.
    fn taken(timed: &[(&str, u32)], polled: &[u32], missing: &[u32]) -> String {
        let process = |pid: &u32| Process { host: "10.0.0.7".into(), pid: Some(*pid), ..Process::default() };
        let rank = |pid: &u32| CommRank { process: process(pid), ..CommRank::default() };
        let comm = Comm {
            ranks: polled.iter().map(rank).collect(),
            missing: missing.iter().map(process).collect(),
            ..Comm::default()
        };
        let one = |(host, pid): &(&str, u32)| Timed {
            comm: "c".into(),
            rank: 0,
            ranks: 2,
            nodes: 2,
            host: (*host).into(),
            pid: *pid,
            op: "AllReduce".into(),
            peer: None,
            seq: 1,
            bytes: 8,
            took_us: 1.0,
        };
        let polls = vec![Poll { comms: vec![comm], ..Poll::default() }];
        let case = Case { polls, timed: timed.iter().map(one).collect(), ..Case::default() };
        Layout::of(&case).node("10.0.0.7")
    }

    #[test]
    fn an_address_is_of_the_node_whose_process_numbers_it_tells_where_no_other_node_has_them() {
        assert_eq!(taken(&[("n7", 44)], &[44], &[]), "n7");
        assert_eq!(taken(&[("n7", 44)], &[], &[44]), "n7", "one that gives no data has a name all the same");
        assert_eq!(taken(&[("n7", 44)], &[45], &[]), "10.0.0.7");
        assert_eq!(taken(&[("n7", 44), ("n8", 44)], &[44], &[]), "10.0.0.7", "the number is one of both");
        assert_eq!(taken(&[("n7", 44), ("n8", 44), ("n7", 45)], &[44, 45], &[]), "n7", "the other number decides");
        assert_eq!(taken(&[("n7", 44), ("n8", 45)], &[44, 45], &[]), "10.0.0.7", "it cannot be both");
    }

    #[test]
    fn a_communicator_of_one_rank_is_not_that_of_the_job() {
        let node_of_0 = |ranks: u32| {
            let process =
                |rank: u32| Process { host: format!("n{rank}"), pid: Some(7), rank: Some(rank), ..Process::default() };
            let ranks = (0..ranks).map(|rank| CommRank { process: process(rank), ..CommRank::default() }).collect();
            let polls = vec![Poll { comms: vec![Comm { ranks, ..Comm::default() }], ..Poll::default() }];
            Layout::of(&Case { polls, ..Case::default() }).node_of(0).map(str::to_owned)
        };
        assert_eq!((node_of_0(1), node_of_0(2)), (None, Some("n0".to_owned())));
    }

    #[test]
    fn a_node_is_known_without_its_domain_and_an_address_is_not_cut() {
        let mut case = Case::default();
        case.job.nodes = vec!["n7".into(), "10".into()];
        let layout = Layout::of(&case);
        assert_eq!(layout.node("n7.hall.example"), "n7");
        assert_eq!(layout.node("n9.hall.example"), "n9.hall.example");
        assert_eq!(layout.node("10.0.0.9"), "10.0.0.9");
        assert!(layout.knows("n7.hall") && !layout.knows("n9"));
    }

    #[test]
    fn of_two_ranks_on_one_gpu_neither_is_the_one_on_it_and_gpus_are_counted_where_nobody_numbers_them() {
        let member = |rank: u32, node: &str, gpu| Member { rank, node: Some(node.into()), pid: None, gpu };
        let mut case = Case::default();
        case.job.members = vec![
            member(0, "a", Some(3)),
            member(1, "a", Some(3)),
            member(2, "b", None),
            member(3, "b", None),
            member(4, "c", None),
        ];
        let layout = Layout::of(&case);
        assert_eq!((layout.rank_at("a", 3), layout.rank_at("b", 0), layout.rank_at("b", 1)), (None, Some(2), Some(3)));
        assert_eq!((layout.gpu_of(4), layout.world()), (None, 5), "alone on its node it may be on any");
        assert!(!layout.knows_processes_of("a") && !layout.knows_processes_of("d"));
        case.job.members[0].pid = Some(7);
        assert!(!Layout::of(&case).knows_processes_of("a"), "of one of two");
        case.job.members[1].pid = Some(8);
        assert!(Layout::of(&case).knows_processes_of("a"));
    }

    /// A log with lines that tell who wrote them, and these processes that join communicators.
    fn log(whose: Whose, lines: &str, comms: Vec<Joined>) -> Log {
        Log { comms, ..made::log(whose, lines, &Rules::built_in().unwrap()) }
    }

    fn joined(host: &str, pid: u32, gpu: u32, bus: &str) -> Joined {
        Joined {
            host: Some(host.to_owned()),
            pid: Some(pid),
            rank: None,
            ranks: None,
            gpu: Some(gpu),
            bus: Some(bus.to_owned()),
            comm: None,
        }
    }

    #[test]
    fn a_log_tells_where_its_rank_runs_and_what_the_operator_wrote_down_stays() {
        let warns = |host: &str, pid: u32| {
            format!(
                "{host}:{pid}:{pid} [0] misc/socket.cc:503 NCCL WARN socketProgress: Connection closed by remote peer h2<41825>\n"
            )
        };
        let mut case = Case { logs: vec![log(Whose::Rank(1), &warns("n1", 44), Vec::new())], ..Case::default() };
        let of = |case: &Case, rank: u32| Layout::of(case).members.get(&rank).cloned();
        let member = |node: &str, pid, gpu| Some(Member { rank: 1, node: Some(node.to_owned()), pid: Some(pid), gpu });
        assert_eq!(of(&case, 1), member("n1", 44, None));
        case.logs[0].comms = vec![joined("n2", 45, 3, "0000:52:00.0")];
        assert_eq!(of(&case, 1), member("n2", 45, Some(3)), "communicators before lines");
        case.job.members = vec![Member { rank: 1, node: Some("n7".into()), pid: Some(7), gpu: Some(0) }];
        assert_eq!(of(&case, 1), member("n7", 7, Some(3)), "but for the GPU, whose number NCCL knows best");
        assert_eq!(Layout::of(&case).gpu_at("n2", "PCI:0000:52:00"), Some(3));
        let of_all = format!("[rank5]: {}", warns("n5", 55));
        let case = Case { logs: vec![log(Whose::Job("out".into()), &of_all, Vec::new())], ..Case::default() };
        assert_eq!(of(&case, 5).map(|member| (member.node, member.pid)), Some((Some("n5".to_owned()), Some(55))));
        let unnamed = Case { logs: vec![log(Whose::Rank(9), "", Vec::new())], ..Case::default() };
        assert_eq!(
            of(&unnamed, 9),
            Some(Member { rank: 9, ..Member::default() }),
            "a rank with a log is one of the job"
        );
    }

    #[test]
    fn an_adapter_is_that_of_a_gpu_where_a_node_has_as_many_of_them_as_ranks() {
        let of = |ranks: u32, adapters: &[&str], gpu: u32| {
            let member = |rank: u32| Member { rank, node: Some("n1".into()), pid: None, gpu: Some(rank) };
            let mut case = Case { logs: vec![log(Whose::Rank(0), "", Vec::new())], ..Case::default() };
            case.logs[0].adapters = adapters.iter().map(|name| (*name).to_owned()).collect();
            case.job.members = (0..ranks).map(member).collect();
            Layout::of(&case).adapter("n1", gpu).map(str::to_owned)
        };
        assert_eq!(of(2, &["mlx5_0", "mlx5_4"], 1).as_deref(), Some("mlx5_4"));
        assert_eq!(of(2, &["mlx5_0", "mlx5_4"], 2), None);
        assert_eq!(of(3, &["mlx5_0", "mlx5_4"], 1), None, "which of them shares one, nothing says");
        assert_eq!(of(2, &[], 1), None);
    }

    #[test]
    fn a_process_is_known_by_both_of_its_numbers_and_a_node_by_its_addresses_and_its_host_name() {
        let process = JobProcess { pid: 4711, inner_pid: 17, rank: Some(3), ..JobProcess::default() };
        let told = Processes {
            processes: vec![process, JobProcess { pid: 4712, inner_pid: 18, ..JobProcess::default() }],
            addresses: vec!["10.0.0.7".to_owned()],
            hostname: "gpu-7".to_owned(),
            ..Processes::default()
        };
        let nameless = Processes::default();
        let case = Case { processes: [("n7".to_owned(), told), ("n8".to_owned(), nameless)].into(), ..Case::default() };
        let layout = Layout::of(&case);
        let of = |pid| layout.rank_of_pid("n7", pid);
        assert_eq!((of(4711), of(17), of(4712), layout.rank_of_pid("n8", 17)), (Some(3), Some(3), None, None));
        assert_eq!((layout.node("10.0.0.7"), layout.node("gpu-7.hall")), ("n7".to_owned(), "n7".to_owned()));
        assert_eq!(layout.node(""), "", "a node that tells no name is not the one without a name");
    }

    #[test]
    fn a_timed_process_is_of_the_rank_in_its_place_in_the_communicator_of_all_ranks_of_its_node() {
        let one = |rank: u32, ranks: u32, nodes: u32| Timed {
            comm: "c".into(),
            rank,
            ranks,
            nodes,
            host: "b".into(),
            pid: 70 + rank,
            op: "AllReduce".into(),
            peer: None,
            seq: 1,
            bytes: 8,
            took_us: 1.0,
        };
        let of = |timed: &[Timed]| {
            let member = |(rank, node): (u32, &str)| Member { rank, node: Some(node.into()), ..Member::default() };
            let mut case = Case { timed: timed.to_vec(), ..Case::default() };
            case.job.members = [(0, "a"), (1, "a"), (2, "b"), (3, "b")].map(member).into();
            let layout = Layout::of(&case);
            [70, 71].map(|pid| layout.rank_of_pid("b", pid))
        };
        assert_eq!(of(&[one(0, 2, 1), one(1, 2, 1)]), [Some(2), Some(3)]);
        assert_eq!(of(&[one(0, 3, 1), one(1, 3, 1)]), [None, None], "a communicator of other ranks");
        assert_eq!(of(&[one(0, 2, 2), one(1, 2, 2)]), [None, None], "it reaches beyond the node");
    }

    #[test]
    fn processes_of_the_communicator_of_all_ranks_are_those_of_the_job_where_their_nodes_do_not_differ() {
        let process = |rank: u32, host: &str| Process {
            host: host.into(),
            pid: Some(50 + rank),
            gpu: Some(rank),
            rank: Some(rank),
            dead: false,
        };
        let of = |known: &[(u32, &str)], here: &[(u32, &str)], missing: &[(u32, &str)]| {
            let rank = |(rank, host): &(u32, &str)| CommRank { process: process(*rank, host), ..CommRank::default() };
            let comm = Comm {
                ranks: here.iter().map(rank).collect(),
                missing: missing.iter().map(|(rank, host)| process(*rank, host)).collect(),
                ..Comm::default()
            };
            let member =
                |(rank, node): &(u32, &str)| Member { rank: *rank, node: Some((*node).into()), ..Member::default() };
            let mut case = Case { polls: vec![Poll { comms: vec![comm], ..Poll::default() }], ..Case::default() };
            case.job.members = known.iter().map(member).collect();
            let layout = Layout::of(&case);
            let told = layout.members.values().map(|member| (member.rank, member.pid, member.gpu));
            told.collect::<Vec<_>>()
        };
        let full = |rank: u32| (rank, Some(50 + rank), Some(rank));
        assert_eq!(of(&[(0, "a"), (1, "b")], &[(0, "a"), (1, "b")], &[]), [full(0), full(1)]);
        assert_eq!(of(&[(0, "a"), (1, "b")], &[(0, "a"), (1, "b")], &[(2, "c")]), [full(0), full(1), full(2)]);
        assert_eq!(of(&[(0, "a"), (1, "b")], &[(0, "a"), (1, "c")], &[])[1], (1, None, None), "its ranks are others");
        let fewer = of(&[(0, "a"), (1, "b"), (2, "c")], &[(0, "a"), (1, "b")], &[]);
        assert_eq!(fewer, [(0, None, None), (1, None, None), (2, None, None)], "not of all ranks");
    }

    #[test]
    fn the_largest_number_of_ranks_that_anybody_tells_is_that_of_the_job() {
        let world = |told: Option<u32>, ranks: u32| {
            let mut case = Case::default();
            case.job.world_size = told;
            case.job.members = (0..ranks).map(|rank| Member { rank, ..Member::default() }).collect();
            Layout::of(&case).world()
        };
        assert_eq!((world(None, 0), world(None, 3), world(Some(8), 3), world(Some(2), 3)), (0, 3, 8, 3));
    }
}
