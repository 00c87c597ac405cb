//! What one process of the job does, as the kernel tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use muster_wire::{JobProcess, Reading, clean};

use super::find::Found;
use super::words::shown;
use crate::collect::Root;
use crate::watch::job::{Process, parse, read};

/// Open files of a process that are looked at, and threads.
const FILES: usize = 16_384;
const THREADS: usize = 2_048;
/// Blocked threads that are told one by one, and frames of a stack.
const FEW: usize = 16;
const FRAMES: usize = 32;
/// Hundredths of a second, in which kernels count.
const TICK: f64 = 0.01;

/// What a process has open.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    pub(super) gpus: Reading<Vec<u32>>,
    /// Inodes of its sockets.
    pub(super) sockets: BTreeSet<u64>,
    /// Where standard output and error lead, where that is a path: descriptor and path.
    pub(super) outputs: Vec<(u32, String)>,
}

/// What it has open.
pub(super) fn open(root: &Root, pid: u32) -> Open {
    let folder = root.path(&format!("/proc/{pid}/fd"));
    let entries = match crate::collect::reading(fs::read_dir(&folder)) {
        Reading::Value(entries) => entries,
        Reading::Denied => return Open { gpus: Reading::Denied, ..Open::default() },
        _ => return Open::default(),
    };
    let mut open = Open::default();
    let mut gpus = BTreeSet::new();
    for entry in entries.flatten().take(FILES) {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let target = target.to_string_lossy();
        if let Some(number) = target.strip_prefix("/dev/nvidia").and_then(|rest| rest.parse().ok()) {
            gpus.insert(number);
        } else if let Some(inode) =
            target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')?.parse().ok())
        {
            open.sockets.insert(inode);
        }
        let descriptor: Option<u32> = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(descriptor @ (1 | 2)) =
            descriptor.filter(|_| target.starts_with('/') && !target.starts_with("/dev/"))
        {
            open.outputs.push((descriptor, target.into_owned()));
        }
    }
    open.outputs.sort_unstable();
    open.gpus = Reading::Value(gpus.into_iter().collect());
    open
}

/// The path under which what a process calls `path` is found: it may live in a container.
pub(super) fn inside(root: &Root, pid: u32, path: &str) -> PathBuf {
    root.path(&format!("/proc/{pid}/root/{}", path.trim_start_matches('/')))
}

/// What is told of a process, as far as the first look and `open` tell it.
pub(super) fn begin(root: &Root, found: &Found, open: &Open, booted_s: f64) -> JobProcess {
    let environment = match &found.environment {
        Some(words) => Reading::Value(words.clone()),
        None => Reading::Denied,
    };
    let outputs: BTreeSet<String> = open.outputs.iter().map(|(_, path)| clean(path, 512)).collect();
    JobProcess {
        pid: found.pid,
        inner_pid: inner(root, found.pid).unwrap_or(found.pid),
        rank: found.place.rank,
        rank_from: found.place.from.clone(),
        local_rank: found.place.local,
        world: found.place.world,
        command: shown(&found.arguments),
        environment,
        started_s: booted_s + found.first.started as f64 * TICK,
        states: found.first.state.to_string(),
        gpus: open.gpus.clone(),
        outputs: outputs.into_iter().collect(),
        ..JobProcess::default()
    }
}

/// The state of a process now; `-` when it is gone, also when another has its number.
pub(super) fn state(root: &Root, found: &Found) -> (char, Option<Process>) {
    let now = read(root, found.pid).filter(|now| now.started == found.first.started && now.state != 'Z');
    now.map_or(('-', None), |now| (now.state, Some(now)))
}

/// The last look: what it waits for, with its threads.
pub(super) fn end(root: &Root, found: &Found, told: &mut JobProcess, seconds: f64) {
    let (state, now) = state(root, found);
    told.states.push(state);
    let Some(now) = now else { return };
    let pid = found.pid;
    told.cpu = (seconds > 0.0).then(|| now.ticks.saturating_sub(found.first.ticks) as f64 * TICK / seconds);
    told.resident = now.pages.saturating_mul(rustix::param::page_size() as u64);
    told.wait_channel = wait_channel(root, &format!("/proc/{pid}/wchan"), state);
    let stack = root.text(&format!("/proc/{pid}/stack"));
    told.stack = match stack {
        Reading::Value(text) => Reading::Value(text.lines().take(FRAMES).map(|line| clean(line, 96)).collect()),
        Reading::Absent => Reading::Absent,
        Reading::Denied => Reading::Denied,
        Reading::Failed(why) => Reading::Failed(why),
    };
    threads(root, pid, told);
}

/// `0` is also what the kernel says to those who may not know.
fn wait_channel(root: &Root, path: &str, state: char) -> Reading<String> {
    match root.text(path) {
        Reading::Value(text) if text == "0" => {
            if state == 'R' {
                Reading::Absent
            } else {
                Reading::Denied
            }
        }
        Reading::Value(text) => Reading::Value(clean(&text, 96)),
        other => other,
    }
}

fn threads(root: &Root, pid: u32, told: &mut JobProcess) {
    let tasks = root.names(&format!("/proc/{pid}/task")).value().cloned().unwrap_or_default();
    told.threads = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    let mut states: BTreeMap<String, u32> = BTreeMap::new();
    for task in tasks.iter().take(THREADS) {
        let folder = format!("/proc/{pid}/task/{task}");
        let Some(state) = root.text(&format!("{folder}/stat")).value().and_then(|text| parse(text)).map(|of| of.state)
        else {
            continue;
        };
        *states.entry(state.to_string()).or_default() += 1;
        if state == 'D' && told.blocked.len() < FEW {
            let name = root.text(&format!("{folder}/comm")).value().cloned().unwrap_or_default();
            let channel = match wait_channel(root, &format!("{folder}/wchan"), state) {
                Reading::Value(channel) => channel,
                Reading::Denied => "denied".to_owned(),
                _ => "unknown".to_owned(),
            };
            told.blocked.push(clean(&format!("{name}: {channel}"), 96));
        }
    }
    told.thread_states = states;
}

/// The number by which a process calls itself: the last of `NSpid:`.
fn inner(root: &Root, pid: u32) -> Option<u32> {
    let status = root.text(&format!("/proc/{pid}/status"));
    let line = status.value()?.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

/// Effective user of a process.
pub(super) fn user(root: &Root, pid: u32) -> Option<u32> {
    let status = root.text(&format!("/proc/{pid}/status"));
    status.value()?.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::words::Place;
    use super::*;

    #[test]
    fn a_stopped_process_of_this_machine_is_told_as_such_and_one_that_is_gone_too() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let root = Root::system();
        let pid = child.id();
        let first = read(&root, pid).unwrap();
        let found = Found { pid, first, arguments: vec!["sleep".into()], environment: None, place: Place::default() };
        let open = open(&root, pid);
        let mut told = begin(&root, &found, &open, 0.0);
        assert_eq!((told.inner_pid, &told.environment), (pid, &Reading::Denied));
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::STOP).unwrap();
        // A signal takes its time on a busy machine.
        for _ in 0..3_000 {
            if state(&root, &found).0 == 'T' {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        end(&root, &found, &mut told, 1.0);
        assert!(told.states.ends_with('T'), "{}", told.states);
        assert_eq!((told.threads, told.thread_states.get("T")), (1, Some(&1)));
        assert_eq!(user(&root, pid), Some(rustix::process::getuid().as_raw()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(state(&root, &found), ('-', None));
    }

    #[test]
    fn what_the_kernel_hides_is_denied_and_not_nothing() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("wchan"), "0").unwrap();
        let root = Root::at(tree.path());
        assert_eq!(wait_channel(&root, "/wchan", 'D'), Reading::Denied);
        assert_eq!(wait_channel(&root, "/wchan", 'R'), Reading::Absent);
        std::fs::write(tree.path().join("wchan"), "request_wait_answer").unwrap();
        assert_eq!(wait_channel(&root, "/wchan", 'D'), Reading::Value("request_wait_answer".into()));
    }
}
