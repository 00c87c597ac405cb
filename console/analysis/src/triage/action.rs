//! What to do next, by category and by what is suspected.

use super::Category;
use super::confidence::SURE;
use super::report::{Kind, Suspect};

/// The next action, for the likeliest suspect where there is one.
#[must_use]
pub(super) fn action(category: Category, suspect: Option<&Suspect>) -> String {
    let it = suspect.and_then(|suspect| suspect.node.as_deref()).unwrap_or("the named machine");
    match category {
        Category::HardwareCritical => hardware(suspect, it),
        Category::DistributedError => format!("Restart the job without {it}; check its kernel log, its health checks and then its links: most such losses are the host, not the network."),
        Category::HangNotLaunched => format!("Take the Python stack of the named rank (py-spy dump) before you kill the job, then restart it without {it}; if the rank hangs elsewhere too, it is the program."),
        Category::HangNotStarted => format!("Restart the job without {it}, then reset {} (nvidia-smi --gpu-reset) and run the GPU checks (muster run cbd): it did not run what was enqueued.", gpu(suspect)),
        Category::HangInNetwork => format!("Restart the job without {it}, then test its links in pairs (muster pairs) and replace {} if it is slow there too.", cable(suspect)),
        Category::UserBug => program(suspect),
        Category::Storage => format!("Bring {} back, then restart the job from its last checkpoint; no machine needs to be drained.", element(suspect).unwrap_or("the named storage")),
        Category::HostStall => format!("Look at {it}: memory, processors and blocked processes; restart the job without it if it does not recover."),
        Category::DataloaderStall => format!("Look at the data loader and the storage path of {it}; the GPUs and the network waited for it. Restart the job as it is once the data come again."),
        Category::SlowGpu => format!("Drain {it} when the job allows, then check clocks, power and temperature of {}, and reset it.", gpu(suspect)),
        Category::SlowLink => format!("Check {} on {it} (muster pairs), replace it if the link stays slow, and move the job off the node until then.", cable(suspect)),
        Category::ProcessExited => format!("Find out why the named process ended on {it} (exit code, out-of-memory killer, core dump); restart the job as it is if the program was not at fault."),
        Category::None => "Restart the job as it is when it is wanted; no machine needs to be drained.".to_owned(),
        Category::Undecided => "Collect what is missing (see not looked at), or run the checks on all nodes of the job, before you drain anything.".to_owned(),
    }
}

fn hardware(suspect: Option<&Suspect>, it: &str) -> String {
    // A GPU that the machine cannot reach cannot be reset; the rule that knows the line says so.
    let unreachable = suspect.is_some_and(|suspect| suspect.sentence.contains("power-cycle"));
    let part = match suspect.map(|suspect| suspect.kind) {
        _ if unreachable => "power-cycle it; if the error returns, have the named part replaced".to_owned(),
        Some(Kind::Gpu) if element(suspect).is_some_and(|element| element.starts_with("nvlink")) => {
            "reset all its GPUs (nvidia-smi --gpu-reset); if the link fails again, have the GPU or its tray replaced"
                .to_owned()
        }
        Some(Kind::Gpu) => {
            format!(
                "reset {} (nvidia-smi --gpu-reset{}); if the error returns, have it replaced",
                gpu(suspect),
                by_bus(suspect)
            )
        }
        Some(Kind::Link | Kind::Nic) => format!("replace {}, and the adapter if the error returns", cable(suspect)),
        _ => "have the named part reset or replaced before it returns".to_owned(),
    };
    format!("Drain {it}, restart the job without it, then {part}.")
}

/// ` -i` with the PCI address, where that is known: the job's index of a GPU need not be the driver's.
fn by_bus(suspect: Option<&Suspect>) -> String {
    let address = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
    let bus = element(suspect).filter(|bus| bus.contains(':') && bus.len() <= 16 && bus.chars().all(address));
    bus.map_or(String::new(), |bus| format!(" -i {bus}{}", if bus.contains('.') { "" } else { ".0" }))
}

fn program(suspect: Option<&Suspect>) -> String {
    let place = match (element(suspect), suspect.and_then(|suspect| suspect.rank)) {
        (Some(line), Some(rank)) => format!(": {line}, seen on rank {rank}"),
        (Some(line), None) => format!(": {line}"),
        (None, Some(rank)) => format!(", with what rank {rank} asked for"),
        (None, None) => String::new(),
    };
    format!(
        "Report this to the owner of the program{place}. A restart as it is would fail again; no machine needs to be drained."
    )
}

fn element(suspect: Option<&Suspect>) -> Option<&str> {
    suspect?.element.as_deref()
}

fn gpu(suspect: Option<&Suspect>) -> String {
    suspect.and_then(|suspect| suspect.gpu).map_or_else(|| "its GPU".to_owned(), |gpu| format!("GPU {gpu}"))
}

fn cable(suspect: Option<&Suspect>) -> String {
    element(suspect).map_or_else(|| "the cable of its adapter".to_owned(), |adapter| format!("the cable of {adapter}"))
}

/// The command that drains the suspect's node in Slurm, where that is what should be done and the suspicion is that strong.
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
    Some(format!("scontrol update NodeName={node} State=DRAIN Reason=\"muster triage: {}\"", category.name()))
}

fn is_host(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && name.len() <= 253 && name.chars().all(plain) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspect(kind: Kind, gpu: Option<u32>, element: Option<&str>) -> Suspect {
        Suspect {
            kind,
            node: Some("n7".into()),
            rank: Some(5),
            gpu,
            element: element.map(str::to_owned),
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
            (Kind::Gpu, Some(2), Some("nvlink 3"), "reset all its GPUs"),
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
        let off_bus = Suspect { sentence: "The GPU is gone: power-cycle the node.".into(), ..suspect.clone() };
        assert!(action(Category::HardwareCritical, Some(&off_bus)).contains("then power-cycle it"));
        assert!(action(Category::None, None).starts_with("Restart the job as it is"));
        assert!(action(Category::SlowLink, Some(&suspect)).contains("the cable of mlx5_0 on n7"));
        assert!(action(Category::HangNotStarted, Some(&suspect)).contains("without n7, then reset GPU 1"));
    }

    #[test]
    fn only_a_sure_suspect_with_a_plain_name_is_put_into_a_command() {
        let sure = suspect(Kind::Gpu, Some(2), None);
        assert_eq!(
            drain(Category::SlowGpu, Some(&sure)).unwrap(),
            "scontrol update NodeName=n7 State=DRAIN Reason=\"muster triage: slow-gpu\""
        );
        let unsure = Suspect { confidence: 0.6, ..sure.clone() };
        let hostile = Suspect { node: Some("n7;reboot".into()), ..sure.clone() };
        let option = Suspect { node: Some("-n7".into()), ..sure.clone() };
        for suspect in [unsure, hostile, option] {
            assert_eq!(drain(Category::SlowGpu, Some(&suspect)), None);
        }
        assert_eq!(drain(Category::Storage, Some(&sure)), None);
    }
}
