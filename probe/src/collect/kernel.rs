//! How the kernel is set up: command line, parameters, drivers, mitigations.

use std::collections::BTreeMap;

use muster_wire::Reading;
use muster_wire::limits::NAME_BYTES;

use super::{Facts, Root, Then};

/// Parameters that change what a node can do; those that follow from its size are not among them.
const PARAMETERS: [&str; 52] = [
    "fs/aio-max-nr",
    "fs/nr_open",
    "kernel/core_pattern",
    "kernel/hung_task_timeout_secs",
    "kernel/kptr_restrict",
    "kernel/msgmax",
    "kernel/nmi_watchdog",
    "kernel/numa_balancing",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/perf_event_paranoid",
    "kernel/pid_max",
    "kernel/randomize_va_space",
    "kernel/sched_rt_runtime_us",
    "kernel/sem",
    "kernel/shmall",
    "kernel/shmmax",
    "kernel/shmmni",
    "kernel/softlockup_panic",
    "kernel/yama/ptrace_scope",
    "net/core/busy_poll",
    "net/core/default_qdisc",
    "net/core/netdev_max_backlog",
    "net/core/optmem_max",
    "net/core/rmem_default",
    "net/core/rmem_max",
    "net/core/somaxconn",
    "net/core/wmem_default",
    "net/core/wmem_max",
    "net/ipv4/conf/all/arp_announce",
    "net/ipv4/conf/all/arp_ignore",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/ip_forward",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_mtu_probing",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_wmem",
    "net/ipv6/conf/all/disable_ipv6",
    "vm/compaction_proactiveness",
    "vm/dirty_background_ratio",
    "vm/dirty_ratio",
    "vm/max_map_count",
    "vm/nr_hugepages",
    "vm/overcommit_memory",
    "vm/overcommit_ratio",
    "vm/panic_on_oom",
    "vm/swappiness",
    "vm/zone_reclaim_mode",
];
/// Drivers whose version decides what works together.
const MODULES: [&str; 12] = [
    "nvidia",
    "nvidia_uvm",
    "nvidia_peermem",
    "gdrdrv",
    "mlx5_core",
    "mlx5_ib",
    "ib_core",
    "efa",
    "bnxt_en",
    "ice",
    "lustre",
    "amdgpu",
];
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";
/// Words of a command line.
const WORDS: usize = 256;

pub(super) fn look(root: &Root, facts: &mut Facts) {
    match root.text("/proc/cmdline") {
        Reading::Value(line) => command_line(&line, facts),
        other => facts.text("cmdline", other),
    }
    for parameter in PARAMETERS {
        let key = format!("sysctl.{}", parameter.replace('/', "."));
        // Tabs between the numbers of one parameter.
        let value = root.text(&format!("/proc/sys/{parameter}"));
        facts.text(&key, value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    for module in MODULES {
        let loaded = root.path(&format!("/sys/module/{module}")).is_dir();
        // A driver that came with the kernel has no version of its own.
        let version = match root.text(&format!("/sys/module/{module}/version")) {
            Reading::Absent if loaded => Reading::Value("loaded".to_owned()),
            other => other,
        };
        facts.text(&format!("module.{module}"), version);
    }
    for flaw in root.names(VULNERABILITIES).value().into_iter().flatten().take(64) {
        facts.text(&format!("mitigation.{flaw}"), root.text(&format!("{VULNERABILITIES}/{flaw}")));
    }
    facts.count("tainted", root.number("/proc/sys/kernel/tainted"));
}

/// One fact per word, so that two lines can be compared word by word; what stands behind `--` is for init.
fn command_line(line: &str, facts: &mut Facts) {
    let mut words: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for word in line.split_whitespace().take_while(|word| *word != "--").take(WORDS) {
        let (name, value) = word.split_once('=').unwrap_or((word, "set"));
        if !name.is_empty() && name.len() + "cmdline.".len() <= NAME_BYTES {
            words.entry(name).or_default().push(value);
        }
    }
    for (name, values) in words {
        facts.text(&format!("cmdline.{name}"), Reading::Value(values.join(",")));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{Tree, reading_of, text};
    use super::*;

    #[test]
    fn words_parameters_and_drivers_are_read_each_for_itself() {
        let tree = Tree::new(&[
            ("/proc/cmdline", "root=UUID=ab console=tty0 console=ttyS0,115200 iommu=pt quiet -- --init=arg\n"),
            ("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            ("/sys/module/nvidia/version", "550.54.15\n"),
            ("/sys/module/mlx5_core/refcnt", "2\n"),
            ("/sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines\n"),
        ]);
        let facts = tree.look(look);
        assert_eq!(text(&facts, "cmdline.root"), "UUID=ab");
        assert_eq!(text(&facts, "cmdline.console"), "tty0,ttyS0,115200");
        assert_eq!(text(&facts, "cmdline.quiet"), "set");
        assert!(!facts.iter().any(|fact| fact.key.contains("init")));
        assert_eq!(text(&facts, "sysctl.net.ipv4.tcp_rmem"), "4096 131072 6291456");
        assert_eq!(reading_of(&facts, "sysctl.vm.swappiness"), Reading::Absent);
        assert_eq!(text(&facts, "module.nvidia"), "550.54.15");
        assert_eq!(text(&facts, "module.mlx5_core"), "loaded");
        assert_eq!(reading_of(&facts, "module.lustre"), Reading::Absent);
        assert_eq!(text(&facts, "mitigation.spectre_v2"), "Mitigation: Retpolines");
    }

    proptest! {
        #[test]
        fn any_command_line_gives_bounded_unique_keys(line in ".{0,400}") {
            let mut facts = Facts::default();
            command_line(&line, &mut facts);
            let facts = facts.done();
            let keys: std::collections::HashSet<&str> = facts.iter().map(|fact| fact.key.as_str()).collect();
            prop_assert!(facts.len() <= WORDS && keys.iter().all(|key| key.len() <= NAME_BYTES));
        }
    }
}
