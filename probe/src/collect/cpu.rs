//! Which processors there are, how they are set up, and how much of them this process may use.

use std::collections::BTreeSet;

use muster_wire::{Reading, Unit};

use super::root::{number, reading};
use super::{Facts, Root, Then};

const CPUS: &str = "/sys/devices/system/cpu";
const CGROUP: &str = "/sys/fs/cgroup";
const KHZ: f64 = 1e3;
/// Abilities that decide which code paths and isolation there are: of x86-64, and after them of Arm.
const FLAGS: [&str; 26] = [
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_bf16",
    "aes",
    "sha_ni",
    "constant_tsc",
    "nonstop_tsc",
    "pdpe1gb",
    "hypervisor",
    "asimd",
    "asimdhp",
    "asimddp",
    "atomics",
    "sha2",
    "sve",
    "sve2",
    "i8mm",
    "bf16",
];
/// Implementers of Arm cores, by the number in /proc/cpuinfo, which has no names there.
const MAKERS: [(&str, &str); 4] = [("0x41", "Arm"), ("0x46", "Fujitsu"), ("0x4e", "NVIDIA"), ("0xc0", "Ampere")];
/// Arm's own cores for servers, by their part number.
const CORES: [(&str, &str); 6] = [
    ("0xd0c", "Neoverse N1"),
    ("0xd40", "Neoverse V1"),
    ("0xd49", "Neoverse N2"),
    ("0xd4f", "Neoverse V2"),
    ("0xd84", "Neoverse V3"),
    ("0xd8e", "Neoverse N3"),
];

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let info = root.text("/proc/cpuinfo");
    let named = |name: &str| info.as_ref_reading().and_then(|text| line(text, name));
    let [maker, part] = ["CPU implementer", "CPU part"].map(&named);
    facts.text("model", either(named("model name"), arm_core(&maker, part)));
    facts.text("vendor", either(named("vendor_id"), maker.map(|maker| known(&MAKERS, &maker).to_owned())));
    facts.text("microcode", named("microcode"));
    let flags = either(named("flags"), named("Features")).map(|all| {
        let all: BTreeSet<&str> = all.split_whitespace().collect();
        FLAGS.into_iter().filter(|flag| all.contains(flag)).collect::<Vec<_>>().join(" ")
    });
    facts.text("flags", flags);
    cores(root, facts);
    frequencies(root, &info, facts);
    throttling(root, facts);
    for node in root.numbered("/sys/devices/system/node", "node") {
        facts.text(&format!("{node}.cpus"), root.text(&format!("/sys/devices/system/node/{node}/cpulist")));
    }
    allowance(root, facts);
}

/// The first reading, or where there is none, the second.
fn either(first: Reading<String>, second: Reading<String>) -> Reading<String> {
    if matches!(first, Reading::Absent) && second.value().is_some() { second } else { first }
}

/// The name behind a number; the number itself where nobody here knows it.
fn known<'n>(names: &[(&str, &'n str)], number: &'n str) -> &'n str {
    names.iter().find(|(of, _)| *of == number).map_or(number, |(_, name)| name)
}

/// The model of an Arm core, from its implementer and part.
fn arm_core(maker: &Reading<String>, part: Reading<String>) -> Reading<String> {
    let Some(maker) = maker.value() else { return Reading::Absent };
    part.map(|part| match known(&MAKERS, maker) {
        "Arm" => format!("Arm {}", known(&CORES, &part)),
        maker => format!("{maker} {part}"),
    })
}

fn cores(root: &Root, facts: &mut Facts) {
    let online = root.text(&format!("{CPUS}/online")).and_then(|list| expand(&list));
    facts.count("cpus.online", online.as_ref_reading().map(|cpus| cpus.len() as f64));
    let present = root.text(&format!("{CPUS}/present")).and_then(|list| expand(&list));
    facts.count("cpus.present", present.map(|cpus| cpus.len() as f64));
    let mut packages = BTreeSet::new();
    let mut cores = BTreeSet::new();
    for cpu in online.value().into_iter().flatten() {
        let place = |file: &str| root.text(&format!("{CPUS}/cpu{cpu}/topology/{file}"));
        if let (Reading::Value(package), Reading::Value(core)) = (place("physical_package_id"), place("core_id")) {
            packages.insert(package.clone());
            cores.insert((package, core));
        }
    }
    let counted = |count: usize| if count == 0 { Reading::Absent } else { Reading::Value(count as f64) };
    facts.count("sockets", counted(packages.len()));
    facts.count("cores", counted(cores.len()));
    facts.flag("smt", root.flag(&format!("{CPUS}/smt/active")));
    facts.count("numa.nodes", counted(root.numbered("/sys/devices/system/node", "node").len()));
}

fn frequencies(root: &Root, info: &Reading<String>, facts: &mut Facts) {
    let cpus = root.numbered(CPUS, "cpu");
    let all =
        |file: &str| cpus.iter().map(|cpu| root.text(&format!("{CPUS}/{cpu}/cpufreq/{file}"))).collect::<Vec<_>>();
    let governors: BTreeSet<String> = all("scaling_governor").iter().filter_map(|g| g.value().cloned()).collect();
    let governors: Vec<String> = governors.into_iter().collect();
    facts.text("governor", if governors.is_empty() { Reading::Absent } else { Reading::Value(governors.join(" ")) });
    let khz = |file: &str| {
        let values = all(file).into_iter().filter_map(|text| text.and_then(|text| number(&text)).value().copied());
        values.map(|value| value * KHZ).collect::<Vec<f64>>()
    };
    let max = khz("cpuinfo_max_freq").into_iter().reduce(f64::max);
    facts.number("freq.max", max.map_or(Reading::Absent, Reading::Value), Some(Unit::Hertz));
    let limit = khz("scaling_max_freq").into_iter().reduce(f64::min);
    facts.number("freq.limit", limit.map_or(Reading::Absent, Reading::Value), Some(Unit::Hertz));
    let mut current = khz("scaling_cur_freq");
    if current.is_empty() {
        current = info.value().map(|text| megahertz(text)).unwrap_or_default();
    }
    let (least, most) = (current.iter().copied().reduce(f64::min), current.iter().copied().reduce(f64::max));
    facts.number("freq.current.min", least.map_or(Reading::Absent, Reading::Value), Some(Unit::Hertz));
    facts.number("freq.current.max", most.map_or(Reading::Absent, Reading::Value), Some(Unit::Hertz));
}

/// Times the hardware slowed itself down since boot: the most of any core or package.
fn throttling(root: &Root, facts: &mut Facts) {
    for (key, file) in [("throttled.core", "core_throttle_count"), ("throttled.package", "package_throttle_count")] {
        let counts = root
            .numbered(CPUS, "cpu")
            .into_iter()
            .filter_map(|cpu| root.counted(&format!("{CPUS}/{cpu}/thermal_throttle/{file}")).value().copied());
        facts.count(key, counts.reduce(f64::max).map_or(Reading::Absent, Reading::Value));
    }
}

/// CPUs and CPU time this process may use. What it may not use it cannot measure.
fn allowance(root: &Root, facts: &mut Facts) {
    let affinity = if root.is_system() {
        reading(rustix::thread::sched_getaffinity(None).map_err(Into::into)).map(|set| f64::from(set.count()))
    } else {
        Reading::Absent
    };
    facts.count("affinity.cpus", affinity);
    let groups = root.text("/proc/self/cgroup");
    let groups = groups.value().map_or("", String::as_str);
    let old = legacy(groups);
    let (tree, path) = match (old, unified(groups)) {
        (None, Some(path)) => (CGROUP.to_owned(), path),
        (old, _) => (format!("{CGROUP}/cpu"), old.unwrap_or_default()),
    };
    let unified = tree == CGROUP;
    facts.count("cgroup.quota_cpus", least_quota(root, &tree, path, if unified { quota_v2 } else { quota_v1 }));
    let throttled = |path: &str| counter(root, &format!("{tree}{path}/cpu.stat"), "nr_throttled");
    let own = throttled(path);
    facts.count("cgroup.throttled", if matches!(own, Reading::Absent) { throttled("") } else { own });
}

/// The path in the one tree of cgroup v2, `0::/path`; empty at its root.
fn unified(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::")).map(|path| path.trim_end_matches('/'))
}

/// The path in the tree of cgroup v1 that limits CPU time, `4:cpu,cpuacct:/path`; empty at its root.
fn legacy(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "cpu").then(|| path.trim_end_matches('/'))
    })
}

/// The smallest quota on the way up, in CPUs; absent where there is none. A group that is named and not to be seen may have one.
fn least_quota(root: &Root, tree: &str, own: &str, quota: fn(&Root, &str) -> Reading<Option<f64>>) -> Reading<f64> {
    let (mut least, mut path) = (Reading::Absent, own);
    let mut seen = own.is_empty() || root.path(&format!("{tree}{own}")).is_dir();
    loop {
        let found = match quota(root, &format!("{tree}{path}")) {
            Reading::Value(quota) => {
                seen = true;
                quota.map_or(Reading::Absent, Reading::Value)
            }
            Reading::Absent => Reading::Absent,
            Reading::Denied => Reading::Denied,
            Reading::Failed(why) => Reading::Failed(why),
        };
        least = match (least, found) {
            (Reading::Value(a), Reading::Value(b)) => Reading::Value(f64::min(a, b)),
            (Reading::Absent, found) => found,
            (found, _) => found,
        };
        match path.rfind('/') {
            Some(at) => path = &path[..at],
            None if seen || !matches!(least, Reading::Absent) => return least,
            None => return Reading::Failed(format!("no file system shows the limit of its cgroup {own}")),
        }
    }
}

/// The quota of one group of cgroup v2, in CPUs; none where its file says so.
fn quota_v2(root: &Root, group: &str) -> Reading<Option<f64>> {
    root.text(&format!("{group}/cpu.max")).and_then(|text| match text.split_once(' ') {
        Some(("max", _)) => Reading::Value(None),
        Some((quota, period)) => number(quota).and_then(|quota| number(period).map(|period| Some(quota / period))),
        None => Reading::Failed(format!("not a quota: {text}")),
    })
}

/// The quota of one group of cgroup v1, in CPUs; none where its file says -1.
fn quota_v1(root: &Root, group: &str) -> Reading<Option<f64>> {
    root.number(&format!("{group}/cpu.cfs_quota_us")).and_then(|quota| {
        if quota < 0.0 {
            return Reading::Value(None);
        }
        root.number(&format!("{group}/cpu.cfs_period_us")).map(|period| Some(quota / period))
    })
}

fn counter(root: &Root, path: &str, name: &str) -> Reading<f64> {
    root.text(path).and_then(|text| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(Reading::Absent, number)
    })
}

/// The value of the first `name : value`.
fn line(text: &str, name: &str) -> Reading<String> {
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.map_or(Reading::Absent, Reading::Value)
}

fn megahertz(info: &str) -> Vec<f64> {
    let lines = info.lines().filter_map(|line| line.split_once(':'));
    let values = lines.filter(|(key, _)| key.trim() == "cpu MHz").filter_map(|(_, value)| value.trim().parse().ok());
    values.map(|mhz: f64| mhz * 1e6).filter(|hz| hz.is_finite()).collect()
}

/// `0-3,8` as numbers; more than 65,536 is not a list of CPUs.
fn expand(list: &str) -> Reading<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        match (from.trim().parse::<u32>(), to.trim().parse::<u32>()) {
            (Ok(from), Ok(to)) if from <= to && to < 65_536 => cpus.extend(from..=to),
            _ => return Reading::Failed(format!("not a list of CPUs: {part}")),
        }
    }
    Reading::Value(cpus)
}

#[cfg(test)]
mod tests {
    use muster_wire::Datum;

    use super::super::testing::{Tree, number, reading_of, text};
    use super::*;

    #[test]
    fn processors_are_counted_from_the_topology() {
        let tree = Tree::new(&[
            (
                "/proc/cpuinfo",
                "processor\t: 0\nmodel name\t: EPYC 9654\nmicrocode\t: 0xa101148\ncpu MHz\t\t: 2400.000\n\
                 flags\t\t: fpu avx2 sse4_2\nprocessor : 1\ncpu MHz : 3600.5\n",
            ),
            ("/sys/devices/system/cpu/online", "0-1\n"),
            ("/sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
            ("/sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
            ("/sys/devices/system/cpu/cpu1/topology/physical_package_id", "0\n"),
            ("/sys/devices/system/cpu/cpu1/topology/core_id", "0\n"),
            ("/sys/devices/system/cpu/smt/active", "1\n"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "2100000\n"),
            ("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "9\n"),
            ("/sys/devices/system/node/node0/cpulist", "0-1\n"),
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nnr_throttled 12\n"),
            ("/sys/fs/cgroup/a/cpu.max", "60000 100000\n"),
        ]);
        let facts = tree.look(look);
        assert_eq!(text(&facts, "model"), "EPYC 9654");
        assert_eq!(text(&facts, "flags"), "sse4_2 avx2");
        assert_eq!(number(&facts, "cpus.online"), 2.0);
        assert_eq!((number(&facts, "sockets"), number(&facts, "cores")), (1.0, 1.0));
        assert_eq!(reading_of(&facts, "smt"), Reading::Value(Datum::Flag(true)));
        assert_eq!(text(&facts, "governor"), "powersave");
        assert_eq!(number(&facts, "freq.limit"), 2.1e9);
        assert_eq!(number(&facts, "freq.current.max"), 3_600_500_000.0);
        assert_eq!(number(&facts, "throttled.core"), 9.0);
        assert_eq!(text(&facts, "node0.cpus"), "0-1");
        assert_eq!(number(&facts, "cgroup.quota_cpus"), 0.6);
        assert_eq!(number(&facts, "cgroup.throttled"), 12.0);
    }

    #[test]
    fn an_arm_core_has_a_name_where_it_is_known_and_its_numbers_elsewhere() {
        for (maker, part, model, vendor) in [
            ("0x41", "0xd4f", "Arm Neoverse V2", "Arm"),
            ("0x41", "0xfff", "Arm 0xfff", "Arm"),
            ("0xc0", "0xac3", "Ampere 0xac3", "Ampere"),
            ("0x77", "0x001", "0x77 0x001", "0x77"),
        ] {
            let info = format!(
                "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd atomics sve crc32\nCPU implementer\t: {maker}\n\
                 CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: {part}\n"
            );
            let facts = Tree::new(&[("/proc/cpuinfo", &info)]).look(look);
            assert_eq!((text(&facts, "model"), text(&facts, "vendor")), (model.into(), vendor.into()));
            assert_eq!(text(&facts, "flags"), "asimd atomics sve");
            assert_eq!(reading_of(&facts, "microcode"), Reading::Absent);
        }
    }

    #[test]
    fn garbage_has_failed_and_is_never_zero() {
        let tree = Tree::new(&[
            ("/sys/devices/system/cpu/online", "0-4000000000\n"),
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/cpu.max", "plenty\n"),
        ]);
        let facts = tree.look(look);
        assert!(matches!(reading_of(&facts, "cpus.online"), Reading::Failed(_)));
        assert!(matches!(reading_of(&facts, "cgroup.quota_cpus"), Reading::Failed(_)));
        assert_eq!(reading_of(&facts, "sockets"), Reading::Absent);
        assert_eq!(reading_of(&facts, "model"), Reading::Absent);
    }

    #[test]
    fn an_old_cgroup_has_its_own_files() {
        let tree = Tree::new(&[
            ("/proc/self/cgroup", "4:cpu,cpuacct:/\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(number(&tree.look(look), "cgroup.quota_cpus"), 1.5);
    }

    #[test]
    fn a_group_that_is_named_and_not_to_be_seen_has_no_answer() {
        for groups in ["1:cpu:/sf-fleet/n003\n", "1:cpu:/sf-fleet/n003\n0::/\n", "0::/sf-fleet/n003\n"] {
            let facts = Tree::new(&[("/proc/self/cgroup", groups)]).look(look);
            let quota = reading_of(&facts, "cgroup.quota_cpus");
            assert!(matches!(&quota, Reading::Failed(why) if why.ends_with("/sf-fleet/n003")), "{groups}: {quota:?}");
        }
        for groups in ["1:cpu:/\n", "0::/\n"] {
            let facts = Tree::new(&[("/proc/self/cgroup", groups)]).look(look);
            assert_eq!(reading_of(&facts, "cgroup.quota_cpus"), Reading::Absent, "{groups}");
        }
    }

    #[test]
    fn a_group_without_a_quota_or_without_the_controller_is_not_limited() {
        for (groups, file, text) in [
            ("4:cpu,cpuacct:/a\n", "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"),
            ("4:cpu,cpuacct:/a\n0::/b\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("0::/a/b\n", "/sys/fs/cgroup/a/b/cgroup.procs", "1\n"),
            ("0::/a/b\n", "/sys/fs/cgroup/cpu.max", "max 100000\n"),
        ] {
            let facts = Tree::new(&[("/proc/self/cgroup", groups), (file, text)]).look(look);
            assert_eq!(reading_of(&facts, "cgroup.quota_cpus"), Reading::Absent, "{groups} {file}");
        }
    }

    #[test]
    fn the_own_group_of_an_old_tree_is_read() {
        let tree = Tree::new(&[
            ("/proc/self/cgroup", "1:cpu:/sf-fleet/n003\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/sf-fleet/n003/cpu.cfs_quota_us", "20000\n"),
            ("/sys/fs/cgroup/cpu/sf-fleet/n003/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(number(&tree.look(look), "cgroup.quota_cpus"), 0.2);
    }
}
