//! What the benchmarks must know of the machine: allowed CPUs, cores, NUMA nodes, cache sizes, free memory.
//!
//! Everything has an answer: where the kernel does not say, a cautious guess stands in, because the answers only
//! choose sizes and places and are not themselves reported.

use std::fs;
use std::path::Path;

/// Where the kernel describes CPUs and nodes.
const SYSTEM: &str = "/sys/devices/system";

/// CPUs this process may use, ascending. Follows the affinity mask, and so cgroup cpusets.
pub(crate) fn allowed() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return vec![rustix::thread::sched_getcpu()] };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// One CPU of every physical core among `cpus`.
pub(crate) fn cores(cpus: &[usize]) -> Vec<usize> {
    cores_in(Path::new(SYSTEM), cpus)
}

fn cores_in(system: &Path, cpus: &[usize]) -> Vec<usize> {
    let first = |cpu: usize| {
        let path = system.join(format!("cpu/cpu{cpu}/topology/thread_siblings_list"));
        let siblings = cpu_list(&read(&path));
        siblings.into_iter().find(|s| cpus.contains(s)).unwrap_or(cpu)
    };
    cpus.iter().copied().filter(|cpu| first(*cpu) == *cpu).collect()
}

/// Those of `cpus` on the same NUMA node as `cpu`; all of them where nodes are unknown.
pub(crate) fn neighbours(cpu: usize, cpus: &[usize]) -> Vec<usize> {
    neighbours_in(Path::new(SYSTEM), cpu, cpus)
}

fn neighbours_in(system: &Path, cpu: usize, cpus: &[usize]) -> Vec<usize> {
    let nodes = fs::read_dir(system.join("node")).into_iter().flatten().flatten();
    let mine = nodes.map(|node| cpu_list(&read(&node.path().join("cpulist")))).find(|list| list.contains(&cpu));
    let shared: Vec<usize> = cpus.iter().copied().filter(|c| mine.as_ref().is_none_or(|m| m.contains(c))).collect();
    if shared.is_empty() { cpus.to_vec() } else { shared }
}

/// A NUMA node with memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumaNode {
    /// The kernel's number of it; `None` where the kernel knows no nodes.
    pub(crate) id: Option<usize>,
    /// One allowed CPU of each of its cores; empty for memory without cores.
    pub(crate) cores: Vec<usize>,
}

/// All NUMA nodes with memory that we may use, ascending.
pub(crate) fn numa_nodes() -> Vec<NumaNode> {
    let mut nodes = numa_nodes_in(Path::new(SYSTEM), &cores(&allowed()));
    let status = read(Path::new("/proc/self/status"));
    if let Some(mems) = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:")).map(cpu_list) {
        nodes.retain(|node| node.id.is_none_or(|id| mems.contains(&id)));
    }
    nodes
}

fn numa_nodes_in(system: &Path, cores: &[usize]) -> Vec<NumaNode> {
    let node = |id: usize| {
        let cpus = cpu_list(&read(&system.join(format!("node/node{id}/cpulist"))));
        NumaNode { id: Some(id), cores: cores.iter().copied().filter(|core| cpus.contains(core)).collect() }
    };
    let nodes: Vec<NumaNode> = cpu_list(&read(&system.join("node/has_memory"))).into_iter().map(node).collect();
    if nodes.iter().any(|node| !node.cores.is_empty()) {
        nodes
    } else {
        vec![NumaNode { id: None, cores: cores.to_vec() }]
    }
}

/// How often a core, and its package, were slowed down by heat since boot; `None` where the kernel does not count.
pub(crate) fn throttled(cpu: usize) -> Option<[u64; 2]> {
    let count = |what: &str| {
        let path = format!("{SYSTEM}/cpu/cpu{cpu}/thermal_throttle/{what}_throttle_count");
        read(Path::new(&path)).trim().parse().ok()
    };
    Some([count("core")?, count("package")?])
}

/// Free huge pages of 2 MiB that the administrator has set aside on a node.
pub(crate) fn reserved_huge_pages(node: usize) -> usize {
    let path = format!("{SYSTEM}/node/node{node}/hugepages/hugepages-2048kB/free_hugepages");
    read(Path::new(&path)).trim().parse().unwrap_or(0)
}

/// Data cache sizes as one CPU sees them, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caches {
    /// First level.
    pub(crate) l1: usize,
    /// Second level.
    pub(crate) l2: usize,
    /// Last level; equals `l2` where there is none beyond it.
    pub(crate) llc: usize,
}

/// Caches of `cpu`.
pub(crate) fn caches(cpu: usize) -> Caches {
    caches_in(Path::new(SYSTEM), cpu)
}

/// Last-level caches of all allowed CPUs together, each counted once.
pub(crate) fn last_level_total() -> usize {
    last_level_total_in(Path::new(SYSTEM), &allowed())
}

fn last_level_total_in(system: &Path, cpus: &[usize]) -> usize {
    let mut counted = Vec::new();
    let mut total = 0;
    for &cpu in cpus {
        if counted.contains(&cpu) {
            continue;
        }
        let cache = system.join(format!("cpu/cpu{cpu}/cache"));
        let level = |index: &Path| read(&index.join("level")).trim().parse::<u8>().unwrap_or(0);
        let indexes = fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.path());
        let last = indexes.max_by_key(|index| level(index));
        counted.extend(last.map(|index| cpu_list(&read(&index.join("shared_cpu_list")))).unwrap_or_default());
        total += caches_in(system, cpu).llc;
    }
    total
}

fn caches_in(system: &Path, cpu: usize) -> Caches {
    let mut caches = Caches { l1: 32 << 10, l2: 1 << 20, llc: 0 };
    for index in fs::read_dir(system.join(format!("cpu/cpu{cpu}/cache"))).into_iter().flatten().flatten() {
        let field = |name: &str| read(&index.path().join(name));
        let (kind, level, size) = (field("type"), field("level"), bytes(&field("size")));
        match (kind.trim(), level.trim(), size) {
            ("Instruction", ..) | (.., None) => {}
            (_, "1", Some(size)) => caches.l1 = size,
            (_, "2", Some(size)) => caches.l2 = size,
            (_, _, Some(size)) => caches.llc = caches.llc.max(size),
        }
    }
    caches.llc = caches.llc.max(caches.l2);
    caches
}

/// Memory that may be taken without pushing anything else out, bytes: the kernel's estimate, and no more than the
/// cgroups leave.
pub(crate) fn available_memory() -> usize {
    let free = read(Path::new("/proc/meminfo"))
        .lines()
        .find_map(|line| bytes(&line.strip_prefix("MemAvailable:")?.trim().replace(" kB", "K")))
        .unwrap_or(256 << 20);
    free.min(cgroup_memory(&read(Path::new("/proc/self/cgroup")), Path::new("/sys/fs/cgroup")))
}

/// What the memory limits of the cgroups named in `membership` leave, up to the root.
fn cgroup_memory(membership: &str, mount: &Path) -> usize {
    let mut left = usize::MAX;
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, limit, usage) = match controllers {
            "" => (mount.to_path_buf(), "memory.max", "memory.current"),
            c if c.split(',').any(|c| c == "memory") => {
                (mount.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        let mut at = root.join(path.trim_start_matches('/'));
        while at.starts_with(&root) {
            if let (Some(limit), Some(used)) = (bytes(&read(&at.join(limit))), bytes(&read(&at.join(usage)))) {
                left = left.min(limit.saturating_sub(used));
            }
            at.pop();
        }
    }
    left
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// `0-3,8` as numbers.
fn cpu_list(text: &str) -> Vec<usize> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let range = |part: &str| match part.split_once('-') {
        Some((from, to)) => Some(number(from)?..=number(to)?),
        None => number(part).map(|n| n..=n),
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// `48K`, `2M` or a plain number of bytes.
fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, factor) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn one_cpu_of_every_core_is_taken_even_where_its_first_sibling_is_not_allowed() {
        let dir = tempfile::tempdir().unwrap();
        for (cpu, siblings) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")] {
            put(dir.path(), &format!("cpu/cpu{cpu}/topology/thread_siblings_list"), siblings);
        }
        assert_eq!(cores_in(dir.path(), &[0, 1, 2, 3]), [0, 1]);
        assert_eq!(cores_in(dir.path(), &[1, 2, 3]), [1, 2]);
        assert_eq!(cores_in(Path::new("/nowhere"), &[4, 5]), [4, 5]);
    }

    #[test]
    fn neighbours_share_a_numa_node() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "node/node0/cpulist", "0-1,4\n");
        put(dir.path(), "node/node1/cpulist", "2-3\n");
        assert_eq!(neighbours_in(dir.path(), 4, &[1, 2, 3, 4]), [1, 4]);
        assert_eq!(neighbours_in(Path::new("/nowhere"), 0, &[0, 1]), [0, 1]);
    }

    #[test]
    fn nodes_without_memory_are_left_out_and_memory_without_cores_stays() {
        let dir = tempfile::tempdir().unwrap();
        let node = |id, cores: &[usize]| NumaNode { id, cores: cores.to_vec() };
        assert_eq!(numa_nodes_in(dir.path(), &[0, 1]), [node(None, &[0, 1])]);
        put(dir.path(), "node/has_memory", "0-1,3\n");
        for (id, cpus) in [(0, "0-1,8-9"), (1, "2-3"), (2, "4-5"), (3, "")] {
            put(dir.path(), &format!("node/node{id}/cpulist"), cpus);
        }
        let nodes = numa_nodes_in(dir.path(), &[0, 1, 2, 4]);
        assert_eq!(nodes, [node(Some(0), &[0, 1]), node(Some(1), &[2]), node(Some(3), &[])]);
    }

    #[test]
    fn caches_are_read_by_level_and_guessed_where_the_kernel_is_silent() {
        let dir = tempfile::tempdir().unwrap();
        for (index, kind, level, size) in [
            (0, "Data", 1, "48K"),
            (1, "Instruction", 1, "64K"),
            (2, "Unified", 2, "2048K"),
            (3, "Unified", 3, "491520K"),
        ] {
            put(dir.path(), &format!("cpu/cpu7/cache/index{index}/type"), kind);
            put(dir.path(), &format!("cpu/cpu7/cache/index{index}/level"), &level.to_string());
            put(dir.path(), &format!("cpu/cpu7/cache/index{index}/size"), size);
        }
        assert_eq!(caches_in(dir.path(), 7), Caches { l1: 48 << 10, l2: 2 << 20, llc: 480 << 20 });
        put(dir.path(), "cpu/cpu7/cache/index3/shared_cpu_list", "6-7\n");
        assert_eq!(last_level_total_in(dir.path(), &[7]), 480 << 20);
        assert_eq!(last_level_total_in(dir.path(), &[7, 6]), 480 << 20);
        assert_eq!(last_level_total_in(dir.path(), &[7, 8]), 481 << 20);
        assert_eq!(caches_in(dir.path(), 8), Caches { l1: 32 << 10, l2: 1 << 20, llc: 1 << 20 });
    }

    #[test]
    fn the_tightest_cgroup_on_the_way_up_bounds_memory() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "a/memory.max", "1000\n");
        put(dir.path(), "a/memory.current", "400\n");
        put(dir.path(), "a/b/memory.max", "max\n");
        put(dir.path(), "a/b/memory.current", "100\n");
        assert_eq!(cgroup_memory("0::/a/b\n", dir.path()), 600);
        put(dir.path(), "memory/x/memory.limit_in_bytes", "500");
        put(dir.path(), "memory/x/memory.usage_in_bytes", "450");
        assert_eq!(cgroup_memory("4:memory:/x\n1:cpu:/x\n0::/a/b\n", dir.path()), 50);
        assert_eq!(cgroup_memory("", dir.path()), usize::MAX);
    }

    #[test]
    fn cpu_lists_have_ranges_and_gaps() {
        assert_eq!(cpu_list("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert!(cpu_list("\n").is_empty());
    }

    #[test]
    fn this_machine_has_an_allowed_cpu_and_free_memory() {
        assert!(!allowed().is_empty());
        assert!(available_memory() > 1 << 20);
    }
}
