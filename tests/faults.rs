//! Every way in which a node can fail, on real OpenSSH nodes: each is named with its cause, and nobody else is blamed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::Duration;

use muster_tests::{Console, Fleet, Lacks, Options, Ran, is_root, run, skip};
use serde_json::Value;

const LOOK_AND_MEASURE: &str = r#"
name = "faults"
title = "A look and one short benchmark"
profile = "smoke"
[[steps]]
id = "all"
collect = ["identity"]
run = ["cpu-stream"]
"#;

/// Long enough to break nodes while they are at it.
const LONGER: &str = r#"
name = "longer"
title = "A longer benchmark"
profile = "quick"
[[steps]]
id = "all"
run = ["cpu-dispatch"]
"#;

/// Short enough for a test, long enough for twenty nodes on two cores. A slow login shell does not take from the time in which
/// the probe must start; of an upload over a slow link only what still lies in buffers does.
const DEADLINES: &str = "[deadlines]\nconnect = 3\nbanner = 8\nlogin = 30\nupload = 8\nstart = 30\nidle = 8\n";

/// The fault, the node that has it, and what must be said of it; nothing where the scan must work all the same.
const NODES: [(&str, &str, &[&str]); 19] = [
    ("none", "n001", &[]),
    ("banner and noisy .bashrc", "n002", &[]),
    ("sshd stopped", "n003", &["connect: no banner within 8 s", "is sshd stopped"]),
    ("missing login shell", "n004", &["login: as root: refused", "missing login shell"]),
    ("nologin", "n005", &["start: commands do not run", "nologin", "not available"]),
    ("wrong key", "n006", &["login: as root: refused; tried ", "publickey"]),
    ("encrypted key", "n007", &["login: as root: no usable key", "locked is encrypted; add it to ssh-agent"]),
    ("unreachable", "n008", &["connect: 10.79.1.8:22"]),
    ("refused", "n009", &["connect: 10.79.1.9:22 refuses TCP"]),
    ("disks full", "n010", &["upload: no directory for the probe", "disk full: /root/.cache", "/dev/shm"]),
    ("noexec, one directory left", "n011", &[]),
    ("noexec everywhere", "n012", &["upload: no directory for the probe", "/tmp/muster-0 is mounted noexec"]),
    ("read-only home", "n013", &[]),
    ("MaxSessions 1", "n014", &[]),
    ("MaxStartups for a while", "n015", &[]),
    ("MaxStartups for ever", "n016", &["connect: closed before the banner", "MaxStartups"]),
    ("changed host key", "n017", &["host key: changed", "known_hosts:17 has ssh-ed25519 SHA256:", "refused"]),
    ("slow login shell", "n021", &[]),
    ("slow link", "n022", &[]),
];

/// Nodes that fail at work, and the ones beside them that do not, or do it when they are asked again.
const AT_WORK: [(&str, &str, &[&str]); 4] = [
    ("none", "n001", &[]),
    ("hung in mid-benchmark", "n018", &["run: no frame for 8 s during cpu-dispatch; a new connection: no banner"]),
    ("link lost in mid-benchmark", "n019", &["run: no frame for 8 s during cpu-dispatch; a new connection: 10.79"]),
    ("probe killed in mid-benchmark", "n020", &[]),
];

fn break_nodes(fleet: &mut Fleet) {
    fleet.node("n002").talkative().unwrap();
    fleet.node("n004").login_shell("/bin/nosuch").unwrap();
    fleet.node("n005").login_shell("/usr/sbin/nologin").unwrap();
    fleet.node("n006").deny().unwrap();
    fleet.encrypt_key("n007", "locked").unwrap();
    fleet.unplug("n008").unwrap();
    fleet.node("n009").kill();
    fleet.node("n010").fill_disks().unwrap();
    fleet.node("n011").forbid_execution(3).unwrap();
    fleet.node("n012").forbid_execution(4).unwrap();
    fleet.node("n013").read_only_home().unwrap();
    fleet.node("n014").sshd("MaxSessions 1").unwrap();
    for node in ["n015", "n016"] {
        fleet.node(node).sshd("MaxStartups 1:100:1").unwrap();
    }
    fleet.change_recorded_key("n017").unwrap();
    fleet.node("n021").slow_login(5).unwrap();
    fleet.slow_link("n022", "1mbit").unwrap();
    fleet.node("n003").mute().unwrap();
    fleet.hold_login("n015", 4).unwrap();
    fleet.hold_login("n016", 90).unwrap();
}

fn prepare(fleet: &Fleet) -> Console {
    std::fs::write(fleet.path("faults.toml"), LOOK_AND_MEASURE).unwrap();
    std::fs::write(fleet.path("longer.toml"), LONGER).unwrap();
    std::fs::write(fleet.path("config.toml"), DEADLINES).unwrap();
    fleet.console()
}

/// A run whose verdicts do not matter: no figure is different enough to accuse a node.
fn start(fleet: &Fleet, console: &Console, playbook: &str, more: &[&str]) -> Child {
    let (config, playbook) = (fleet.path("config.toml"), fleet.path(playbook));
    let words = ["run", &playbook, "--config", &config, "--alpha", "0.001", "--json"];
    console.start(&[&words[..], more].concat()).unwrap()
}

fn ended(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

#[test]
fn every_fault_is_named_with_its_node_and_cause_and_nobody_else_is_blamed() {
    if !is_root() {
        return skip(
            "every_fault_is_named_with_its_node_and_cause_and_nobody_else_is_blamed",
            Lacks::Root,
            "for namespaces and cgroups",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: 22 }).unwrap();
    break_nodes(&mut fleet);
    let console = prepare(&fleet);
    let beside = ["-x", "n018,n019,n020"];
    told(ended(start(&fleet, &console, "faults.toml", &beside)), &NODES);

    let running = start(&fleet, &console, "longer.toml", &["-w", "n001,n018,n019,n020"]);
    fleet.wait_until_measuring("n018").unwrap();
    fleet.node("n018").freeze(true).unwrap();
    fleet.wait_until_measuring("n019").unwrap();
    fleet.unplug("n019").unwrap();
    fleet.wait_until_measuring("n020").unwrap();
    fleet.node("n020").kill_probe().unwrap();
    told(ended(running), &AT_WORK);
}

/// Holds a report against what must be told, and the exit code against that.
fn told(ran: Ran, expected: &[(&str, &str, &[&str])]) {
    let report = ran.json().unwrap();
    assert_eq!(report["nodes"].as_array().unwrap().len(), expected.len());
    let wrong: Vec<String> = expected.iter().filter_map(|node| complaint(&report, node)).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.err);
    // Undecided, because some nodes could not be measured and no measured one is bad.
    assert_eq!(ran.code, Some(3), "{}", ran.err);
}

/// What is wrong in the report about one node.
fn complaint(report: &Value, (fault, node, words): &(&str, &str, &[&str])) -> Option<String> {
    let found = report["nodes"].as_array().unwrap().iter().find(|n| n["node"] == *node);
    let Some(found) = found else { return Some(format!("{node} ({fault}) is not in the report")) };
    let (state, reasons) = (found["state"].as_str().unwrap(), &found["reasons"]);
    let measured = found["verdicts"].as_array().is_some_and(|v| v.iter().any(|v| v["value"].is_number()));
    let right = if words.is_empty() {
        state != "fail" && measured && !reasons.to_string().contains("connect")
    } else {
        let first = reasons[0].as_str().unwrap_or_default();
        state == "unknown" && first.starts_with(&format!("{node}: ")) && words.iter().all(|word| first.contains(word))
    };
    (!right).then(|| format!("{node} ({fault}) is {state}, measured {measured}: {reasons}; expected {words:?}"))
}

#[test]
fn the_second_console_and_the_full_disk_say_what_to_do() {
    if !is_root() {
        return skip("the_second_console_and_the_full_disk_say_what_to_do", Lacks::Root, "for namespaces and mounts");
    }
    let mut fleet = Fleet::up(Options { nodes: 4 }).unwrap();
    let console = prepare(&fleet);
    let first = start(&fleet, &console, "longer.toml", &["-w", "n001"]);
    fleet.wait_until_measuring("n001").unwrap();
    let second = ended(start(&fleet, &console, "faults.toml", &["-w", "n002"]));
    assert_eq!(second.code, Some(74), "{}", second.err);
    let said = format!("is in use by process {}: only one muster may write to it at a time", first.id());
    assert!(second.err.contains(&said), "{}", second.err);
    assert!(ended(first).json().is_ok());

    a_full_disk_keeps_what_was_acknowledged(&fleet, &console);
}

fn a_full_disk_keeps_what_was_acknowledged(fleet: &Fleet, console: &Console) {
    let disk = Tmpfs::new(fleet.path("small"), "2m");
    let db = format!("{}/db", disk.0);
    let first = ended(start(fleet, console, "faults.toml", &["-w", "n001", "--db", &db]));
    assert!(first.json().is_ok(), "{}", first.err);
    let kept = console.run(&["results", "--json", "--db", &db]).unwrap().json().unwrap();
    disk.fill();
    let full = ended(start(fleet, console, "faults.toml", &["-w", "n002", "--db", &db]));
    assert_eq!(full.code, Some(74), "{}{}", full.out, full.err);
    assert!(full.err.contains("no space left") && full.err.contains(&disk.0), "{}", full.err);
    let id = kept["run"]["id"].as_str().unwrap();
    let after = console.run(&["results", id, "--json", "--db", &db]).unwrap();
    assert_eq!(after.json().unwrap()["nodes"], kept["nodes"], "{}", after.err);
}

/// A small file system; gone when dropped.
struct Tmpfs(String);

impl Tmpfs {
    fn new(dir: String, size: &str) -> Self {
        std::fs::create_dir(&dir).unwrap();
        run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "small", &dir]).unwrap();
        Self(dir)
    }

    fn fill(&self) {
        let full = run(&["dd", "if=/dev/zero", &format!("of={}/filler", self.0), "bs=4k"]);
        assert!(full.unwrap_err().to_string().contains("No space left"));
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = run(&["umount", &self.0]);
    }
}

#[test]
fn nodes_with_one_home_neither_race_for_the_probe_nor_remove_it_for_each_other() {
    if !is_root() {
        return skip(
            "nodes_with_one_home_neither_race_for_the_probe_nor_remove_it_for_each_other",
            Lacks::Root,
            "for namespaces and mounts",
        );
    }
    let mut fleet = Fleet::up(Options { nodes: 6 }).unwrap();
    let home = fleet.path("home");
    std::fs::create_dir_all(format!("{home}/.ssh")).unwrap();
    std::fs::create_dir_all(format!("{home}/.cache")).unwrap();
    std::fs::copy(fleet.path("id.pub"), format!("{home}/.ssh/authorized_keys")).unwrap();
    run(&["chmod", "-R", "go-rwx", &home]).unwrap();
    for node in 1..=6 {
        fleet.node(&format!("n00{node}")).share_home(&home).unwrap();
    }
    let console = prepare(&fleet);
    let probes = || {
        let files = std::fs::read_dir(format!("{home}/.cache/muster-0")).into_iter().flatten().flatten();
        files.map(|file| file.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let all: [(&str, &str, &[&str]); 6] =
        ["n001", "n002", "n003", "n004", "n005", "n006"].map(|n| ("none", n, &[][..]));
    let ran = ended(start(&fleet, &console, "faults.toml", &[]));
    let report = ran.json().unwrap();
    let wrong: Vec<String> = all.iter().filter_map(|node| complaint(&report, node)).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), ran.err);
    assert_eq!(probes().len(), 6, "{:?}", probes());

    // Others are cleaned while one measures.
    let running = start(&fleet, &console, "longer.toml", &["-w", "n001"]);
    fleet.wait_until_measuring("n001").unwrap();
    assert_eq!(console.run(&["clean", "-w", "n[002-006]", "--yes"]).unwrap().code, Some(0));
    assert_eq!(probes().len(), 1, "{:?}", probes());
    let report = ended(running).json().unwrap();
    assert!(complaint(&report, &("the home of the cleaned", "n001", &[])).is_none(), "{report}");
    assert_eq!(console.run(&["clean", "--yes"]).unwrap().code, Some(0));
    assert!(!std::path::Path::new(&format!("{home}/.cache/muster-0")).exists());
}

#[test]
fn one_interrupt_cancels_and_keeps_the_records_and_two_quit_at_once() {
    if !is_root() {
        return skip("one_interrupt_cancels_and_keeps_the_records_and_two_quit_at_once", Lacks::Root, "for namespaces");
    }
    let mut fleet = Fleet::up(Options { nodes: 2 }).unwrap();
    let console = prepare(&fleet);
    // One after the other, so that the first node's records are there when the second is at work.
    let running = start(&fleet, &console, "faults.toml", &["--one-at-a-time"]);
    fleet.wait_until_measuring("n002").unwrap();
    interrupt(&running);
    let ran = ended(running);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert!(ran.err.contains("cancelling: stopping probes; results so far are kept"), "{}", ran.err);
    assert!(ran.json().is_ok(), "{}", ran.err);
    let kept = console.run(&["results", "--json"]).unwrap().json().unwrap();
    assert!(complaint(&kept, &("measured before the interrupt", "n001", &[])).is_none(), "{kept}");
    assert_eq!(fleet.node("n002").probes(), 0, "the cancelled probe is still there");
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        if name == "HUP" && hangups_are_ignored() {
            continue;
        }
        let running = start(&fleet, &console, "faults.toml", &["-w", "n002", "--new"]);
        fleet.wait_until_measuring("n002").unwrap();
        signal(&running, name);
        let ran = ended(running);
        assert_eq!(ran.code, Some(code), "{}", ran.err);
        assert!(ran.json().is_ok(), "{}", ran.err);
        assert_eq!(fleet.node("n002").probes(), 0, "the probe is still there after {name}");
    }

    let mut running = start(&fleet, &console, "longer.toml", &["--new"]);
    fleet.wait_until_measuring("n001").unwrap();
    // A node that hangs keeps the polite end waiting.
    fleet.node("n001").freeze(true).unwrap();
    interrupt(&running);
    until_interrupted(&mut running);
    while running.try_wait().unwrap().is_none() {
        interrupt(&running);
        std::thread::sleep(Duration::from_millis(50));
    }
    let ran = ended(running);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    // The polite end would have said what there is.
    assert_eq!(ran.out, "");
}

/// Waits until the console says that it heard the interrupt: a second one before that would be the same.
fn until_interrupted(running: &mut Child) {
    let mut said = String::new();
    let mut errors = BufReader::new(running.stderr.as_mut().unwrap());
    while !said.contains("cancelling") {
        assert!(errors.read_line(&mut said).unwrap() > 0, "{said}");
    }
}

fn interrupt(console: &Child) {
    signal(console, "INT");
}

/// Whether this test was started under nohup(1), as then the console is.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}

fn signal(console: &Child, name: &str) {
    run(&["kill", &format!("-{name}"), &console.id().to_string()]).unwrap();
}

#[test]
fn a_wrong_inventory_is_told_with_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hall.toml");
    for (text, place, word) in [
        ("[[nodes]]\nname = \"a\"\nprot = 22\n", ":3", "prot"),
        ("[[nodes]]\nname = \"a\"\n\n[[nodes]]\nname = \"a\"\n", ":5", "node a is already defined on line 2"),
        ("[[nodes]]\nname = \"a[1-\"\n", ":2", "a[1-"),
    ] {
        std::fs::write(&file, text).unwrap();
        let inventory = file.display().to_string();
        let output = std::process::Command::new(muster_tests::binary())
            .args(["--inventory", &inventory, "nodes"])
            .env("HOME", dir.path())
            .output()
            .unwrap();
        let ran: Ran = output.into();
        assert_eq!(ran.code, Some(78), "{text}: {}", ran.err);
        assert!(ran.err.contains(&format!("{inventory}{place}")) && ran.err.contains(word), "{text}: {}", ran.err);
    }
}
