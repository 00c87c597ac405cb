//! What to do next, by category and by what is suspected.

use super::confidence::SURE;
use super::report::{Kind, Suspect};
use muster_logs::Category;
use muster_logs::fault::Fault;
use muster_run::is_host;

/// The next action, for the likeliest suspect where there is one.
#[must_use]
pub(super) fn action(category: Category, suspect: Option<&Suspect>) -> String {
    let fault = suspect.and_then(|suspect| suspect.cause.fault);
    let text = fault.map_or_else(|| by_category(category, suspect.map(|suspect| suspect.kind)), by_fault);
    fill(text, suspect)
}

/// What is done about a fault. `{word}` stands for what is known of the suspect (see [`word`]); what stands in brackets is left out where
/// a word in it is not known.
const fn by_fault(fault: Fault) -> &'static str {
    match fault {
        Fault::Stopped => {
            "Ask the owner of the job, and whoever is logged in on {node}, who stopped the process; then let it go on, on {node}: kill -CONT {pid}. Where the others ran into their time-out meanwhile, restart the job as it is; no machine needs to be drained."
        }
        Fault::Traced => {
            "Find the debugger that holds the process, on {node}: grep TracerPid /proc/{pid}/status; ask its user to detach it. No machine needs to be drained."
        }
        Fault::Frozen => {
            "Find out who froze the control group of the process, on {node}: cat /proc/{pid}/cgroup. Slurm does it to suspended jobs (scontrol resume JOB), container runtimes to paused ones. No machine needs to be drained."
        }
        Fault::OutOfMemory => {
            "Have the owner of the job use less memory on {node} (batch size, loader workers, pinned buffers) or ask for more per node, and look for what others left there (ps, /dev/shm); a restart as it is may end in the same way. No machine needs to be drained."
        }
        Fault::DiskFull => {
            "Free space[ below {path}][ on {node}] (df -h, df -i, quota): where checkpoints, logs, /tmp and /dev/shm lie; then restart the job from its last checkpoint. No machine needs to be drained."
        }
        Fault::MountHangs => {
            "Look at what serves {element}[ below {path}] first: if other nodes wait for it, too, bring the server back; if {node} alone does, check its mount and its way there. Processes that wait so cannot be killed before it answers. Then restart the job from its last checkpoint."
        }
        Fault::DiskStalls => {
            "Look at the disk of {node} that its processes wait for (dmesg, iostat -x; fsfreeze -u where somebody froze it); processes that wait so cannot be killed before it answers. If it does not, drain {node} and restart the job without it from its last checkpoint."
        }
        Fault::DiskBroken => {
            "Restart the job without {node} from its last checkpoint. Before the node returns, check its disk[ {element}] (dmesg, smartctl -a) and the file system on it; replace the disk if the errors go on."
        }
        Fault::Unreachable => {
            "See by its management board (BMC, ipmitool) whether {node} runs. If it does, check its link, cable and switch port (ip -s link, ibstat); if it does not, keep its console's last lines and power it on. Restart the job without it."
        }
        Fault::GpuOffBus | Fault::SwitchMissing => {
            "Drain {node}, restart the job without it, then power-cycle it; if the error returns, have the named part replaced."
        }
        Fault::GpuFirmware => {
            "Drain {node}, restart the job without it, then reset {gpu} (nvidia-smi --gpu-reset[ -i {bus}]); where the reset fails, power-cycle the node."
        }
        Fault::AmdGpu => {
            "Drain {node}, restart the job without it, then reset {gpu} (amd-smi reset --gpureset[ --gpu {bus}]); if the error returns, have it replaced."
        }
        Fault::NvLink => {
            "Drain {node}, restart the job without it, then reset all its GPUs (nvidia-smi --gpu-reset); if the link fails again, have the GPU or its tray replaced."
        }
        Fault::AdapterFirmware => {
            "Drain {node}, restart the job without it, then reset {adapter} (mlxfwreset) and update its firmware; if the error returns, have it replaced."
        }
    }
}

/// What is done where no more than the category, and the kind of the suspect, is known.
const fn by_category(category: Category, kind: Option<Kind>) -> &'static str {
    match (category, kind) {
        (Category::HardwareCritical, Some(Kind::Gpu)) => {
            "Drain {node}, restart the job without it, then reset {gpu} (nvidia-smi --gpu-reset[ -i {bus}]); if the error returns, have it replaced."
        }
        (Category::HardwareCritical, Some(Kind::Link | Kind::Nic)) => {
            "Drain {node}, restart the job without it, then replace {cable}, and the adapter if the error returns."
        }
        (Category::HardwareCritical, _) => {
            "Drain {node}, restart the job without it, then have the named part reset or replaced before it returns."
        }
        (Category::DistributedError, _) => {
            "Restart the job without {node}; check its kernel log, its health checks and then its links: most such losses are the host, not the network."
        }
        (Category::HangNotLaunched, _) => {
            "Take the Python stack of the named rank (py-spy dump[ --pid {pid} on {node}]) before you kill the job, then restart it without {node}; if the rank hangs elsewhere too, it is the program."
        }
        (Category::HangNotStarted, _) => {
            "Restart the job without {node}, then reset {gpu} (nvidia-smi --gpu-reset) and run the GPU checks (muster run cbd): it did not run what was enqueued."
        }
        (Category::HangInNetwork, _) => {
            "Restart the job without {node}, then test its links in pairs (muster pairs) and replace {cable} if it is slow there too."
        }
        (Category::UserBug, _) => {
            "Report this to the owner of the program[: {element}][, seen on rank {rank}]. A restart as it is would fail again; no machine needs to be drained."
        }
        (Category::Storage, _) => {
            "Bring {element} back, then restart the job from its last checkpoint; no machine needs to be drained."
        }
        (Category::HostStall, _) => {
            "Look at {node}: memory, processors and blocked processes; restart the job without it if it does not recover."
        }
        (Category::DataloaderStall, _) => {
            "Look at the data loader and the storage path of {node}; the GPUs and the network waited for it. Restart the job as it is once the data come again."
        }
        (Category::SlowGpu, _) => {
            "Drain {node} when the job allows, then check clocks, power and temperature of {gpu}, and reset it."
        }
        (Category::SlowLink, _) => {
            "Check {cable} on {node} (muster pairs), replace it if the link stays slow, and move the job off the node until then."
        }
        (Category::ProcessExited, _) => {
            "Find out why the named process ended on {node} (exit code, out-of-memory killer, core dump); restart the job as it is if the program was not at fault."
        }
        (Category::None, _) => "Restart the job as it is when it is wanted; no machine needs to be drained.",
        (Category::Undecided, _) => {
            "Collect what is missing (see not looked at), or run the checks on all nodes of the job, before you drain anything."
        }
    }
}

/// The text with its words filled in.
fn fill(text: &str, suspect: Option<&Suspect>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['[', '{']) {
        filled.push_str(&rest[..at]);
        let (open, close) = if rest[at..].starts_with('[') { (true, ']') } else { (false, '}') };
        let Some(end) = rest[at..].find(close).map(|end| at + end) else { break };
        let inner = &rest[at + 1..end];
        if open {
            filled.push_str(&optional(inner, suspect).unwrap_or_default());
        } else {
            filled.push_str(
                &suspect.and_then(|suspect| word(inner, suspect)).unwrap_or_else(|| unknown(inner).to_owned()),
            );
        }
        rest = &rest[end + 1..];
    }
    filled.push_str(rest);
    filled
}

/// A part of a text that is left out where one of its words is not known.
fn optional(text: &str, suspect: Option<&Suspect>) -> Option<String> {
    let mut filled = String::new();
    let mut pieces = text.split('{');
    filled.push_str(pieces.next()?);
    for piece in pieces {
        let (name, after) = piece.split_once('}')?;
        filled.push_str(&word(name, suspect?)?);
        filled.push_str(after);
    }
    Some(filled)
}

/// What is known of a suspect, by the word that stands for it.
fn word(name: &str, suspect: &Suspect) -> Option<String> {
    let address = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
    match name {
        "node" => suspect.node.clone(),
        "rank" => Some(suspect.rank?.to_string()),
        "pid" => Some(suspect.cause.pid?.to_string()),
        "path" => suspect.cause.path.clone(),
        "gpu" => Some(format!("GPU {}", suspect.gpu?)),
        "element" | "adapter" => suspect.element.clone(),
        "cable" => Some(format!("the cable of {}", suspect.element.as_ref()?)),
        // The PCI address: the job's index of a GPU need not be the driver's.
        "bus" => {
            let bus = suspect.element.as_ref()?;
            let is_one = bus.contains(':') && bus.len() <= 16 && bus.chars().all(address);
            is_one.then(|| format!("{bus}{}", if bus.contains('.') { "" } else { ".0" }))
        }
        _ => None,
    }
}

/// What stands for a word that is not known.
fn unknown(name: &str) -> &'static str {
    match name {
        "node" => "the named machine",
        "rank" => "the named rank",
        "pid" => "PID",
        "gpu" => "its GPU",
        "cable" => "the cable of its adapter",
        "adapter" => "its adapter",
        "element" => "the named storage",
        _ => "it",
    }
}

/// The command that drains the suspect's node, where that is what should be done and the suspicion is that strong. It is muster's own, as
/// scontrol's would write over what others said of the node.
///
/// Names come from files: one that is not made like a host's name is never put into a command.
#[must_use]
pub(super) fn drain(category: Category, suspect: Option<&Suspect>) -> Option<String> {
    use Category as C;
    let drains = matches!(
        category,
        C::HardwareCritical | C::DistributedError | C::HangNotStarted | C::HangInNetwork | C::SlowGpu | C::SlowLink
    );
    let suspect = suspect.filter(|suspect| drains && suspect.confidence >= SURE)?;
    let node = suspect.node.as_deref().filter(|node| is_host(node))?;
    Some(format!("muster drain -w {node} --reason 'triage: {}'", category.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_logs::fault::Cause;

    fn suspect(kind: Kind, gpu: Option<u32>, element: Option<&str>) -> Suspect {
        Suspect {
            kind,
            node: Some("n7".into()),
            rank: Some(5),
            gpu,
            element: element.map(str::to_owned),
            cause: Cause::default(),
            confidence: 0.9,
            sentence: String::new(),
            evidence: Vec::new(),
        }
    }

    #[test]
    fn broken_hardware_has_its_part_reset_or_replaced() {
        for (kind, gpu, element, said) in [
            (Kind::Gpu, Some(2), Some("0000:07:00"), "reset GPU 2 (nvidia-smi --gpu-reset -i 0000:07:00.0)"),
            (Kind::Gpu, Some(2), None, "reset GPU 2 (nvidia-smi --gpu-reset)"),
            (Kind::Gpu, Some(2), Some("deadbeef"), "reset GPU 2 (nvidia-smi --gpu-reset)"),
            (Kind::Gpu, Some(2), Some("0000:07:00.0; reboot"), "reset GPU 2 (nvidia-smi --gpu-reset)"),
            (Kind::Link, None, Some("mlx5_3"), "replace the cable of mlx5_3"),
            (Kind::Node, None, None, "have the named part reset or replaced"),
        ] {
            let text = action(Category::HardwareCritical, Some(&suspect(kind, gpu, element)));
            assert!(text.starts_with("Drain n7, restart the job without it") && text.contains(said), "{text}");
        }
    }

    #[test]
    fn a_program_error_goes_to_its_owner_with_file_and_line_and_drains_nobody() {
        let text = action(Category::UserBug, Some(&suspect(Kind::UserCode, None, Some("train.py:212"))));
        assert!(text.contains("owner of the program: train.py:212, seen on rank 5"), "{text}");
        assert!(action(Category::UserBug, None).contains("owner of the program."));
        assert_eq!(drain(Category::UserBug, Some(&suspect(Kind::UserCode, None, None))), None);
    }

    #[test]
    fn every_category_says_something_to_do_with_and_without_a_suspect() {
        let suspect = suspect(Kind::Link, Some(1), Some("mlx5_0"));
        for category in Category::ALL {
            for text in [action(category, Some(&suspect)), action(category, None)] {
                assert!(text.ends_with('.') && text.len() > 40, "{category:?}: {text}");
            }
        }
        assert!(action(Category::None, None).starts_with("Restart the job as it is"));
        assert!(action(Category::SlowLink, Some(&suspect)).contains("the cable of mlx5_0 on n7"));
        assert!(action(Category::HangNotStarted, Some(&suspect)).contains("without n7, then reset GPU 1"));
    }

    #[test]
    fn what_exactly_is_wrong_decides_what_is_done_whatever_the_category() {
        let with = |fault, pid, path: Option<&str>| Suspect {
            cause: Cause { fault: Some(fault), pid, path: path.map(str::to_owned) },
            ..suspect(Kind::Rank, Some(1), None)
        };
        let said = |category, suspect: &Suspect| action(category, Some(suspect));
        let stopped = said(Category::HangNotLaunched, &with(Fault::Stopped, Some(4711), None));
        assert!(stopped.contains("on n7: kill -CONT 4711.") && !stopped.contains("py-spy"), "{stopped}");
        let full = said(Category::Storage, &with(Fault::DiskFull, None, Some("/ckpt")));
        assert!(full.starts_with("Free space below /ckpt on n7 (df"), "{full}");
        let anywhere = Suspect { node: None, ..with(Fault::DiskFull, None, None) };
        assert!(said(Category::Storage, &anywhere).starts_with("Free space (df"));
        let gone = said(Category::HardwareCritical, &with(Fault::GpuOffBus, None, None));
        assert!(gone.contains("then power-cycle it") && !gone.contains("reset"), "{gone}");
    }

    #[test]
    fn every_fault_says_something_to_do_and_leaves_no_word_unfilled() {
        let known = Suspect {
            element: Some("mlx5_0".into()),
            cause: Cause { fault: None, pid: Some(7), path: Some("/data".into()) },
            ..suspect(Kind::Rank, Some(1), None)
        };
        for fault in Fault::ALL {
            for suspect in
                [known.clone(), Suspect { node: None, rank: None, gpu: None, element: None, ..known.clone() }]
            {
                let cause = Cause { fault: Some(fault), ..suspect.cause.clone() };
                let text = action(Category::Undecided, Some(&Suspect { cause, ..suspect }));
                assert!(
                    text.ends_with('.') && text.len() > 40 && !text.contains(['{', '}', '[', ']']),
                    "{fault:?}: {text}"
                );
            }
        }
    }

    #[test]
    fn only_a_sure_suspect_with_a_plain_name_is_put_into_a_command() {
        let sure = suspect(Kind::Gpu, Some(2), None);
        assert_eq!(drain(Category::SlowGpu, Some(&sure)).unwrap(), "muster drain -w n7 --reason 'triage: slow-gpu'");
        let unsure = Suspect { confidence: 0.6, ..sure.clone() };
        let hostile = Suspect { node: Some("n7;reboot".into()), ..sure.clone() };
        let option = Suspect { node: Some("-n7".into()), ..sure.clone() };
        for suspect in [unsure, hostile, option] {
            assert_eq!(drain(Category::SlowGpu, Some(&suspect)), None);
        }
        assert_eq!(drain(Category::Storage, Some(&sure)), None);
    }
    #[test]
    fn what_is_not_known_has_a_word_that_stands_for_it() {
        let bare = Suspect { node: None, rank: None, ..suspect(Kind::Node, None, None) };
        let with = |fault| Suspect { cause: Cause { fault: Some(fault), ..Cause::default() }, ..bare.clone() };
        for (text, said) in [
            (
                action(Category::SlowGpu, None),
                "Drain the named machine when the job allows, then check clocks, power and temperature of its GPU,",
            ),
            (action(Category::SlowLink, Some(&bare)), "Check the cable of its adapter on the named machine ("),
            (action(Category::Storage, None), "Bring the named storage back, then restart"),
            (action(Category::Undecided, Some(&with(Fault::Stopped))), "on the named machine: kill -CONT PID."),
            (action(Category::Undecided, Some(&with(Fault::AdapterFirmware))), "then reset its adapter (mlxfwreset)"),
            (
                action(Category::Undecided, Some(&with(Fault::MountHangs))),
                "Look at what serves the named storage first:",
            ),
        ] {
            assert!(text.contains(said), "{text}");
        }
    }
}
