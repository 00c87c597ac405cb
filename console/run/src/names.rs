//! What names say: that of a record's work (which work, which visit, done by the node or by the console), and that of a node
//! (whether it can stand in a command).

use muster_wire::IDLE;

/// Work of the record that tells how the connection to a node fared.
pub const LINK: &str = "link";
/// Work between two nodes: what is measured from a node to another lies under `net-pair/<receiver>`, what it was for the whole scan
/// under the name alone.
pub const PAIRS: &str = "net-pair";

/// Begins the names of records that the console makes itself.
pub const CONSOLE: &str = "console/";
/// Work of the record that tells that a node sent what it was not asked for.
pub const OUT_OF_TURN: &str = "console/out-of-turn";

/// Begins why work was not run that only warned: an imported diagnostic has no value to be judged by.
pub const WARNED: &str = "DCGM warned: ";

/// Between the name of a benchmark and the number of a further visit.
const VISIT: char = '#';

/// Name of the work that measures `work` for the time number `visit`: `disk`, then `disk#2`. Every visit is a record of its own.
#[must_use]
pub fn visit_name(work: &str, visit: usize) -> String {
    if visit > 1 { format!("{work}{VISIT}{visit}") } else { work.to_owned() }
}

/// The benchmark and the number of the visit in the name of a work.
#[must_use]
pub fn visit_of(work: &str) -> (&str, usize) {
    let further =
        work.rsplit_once(VISIT).and_then(|(name, visit)| Some((name, visit.parse().ok().filter(|n| *n > 1)?)));
    further.unwrap_or((work, 1))
}

/// Whether a node did this work, rather than the console.
#[must_use]
pub fn is_work(work: &str) -> bool {
    // An idle gate waits and gives no result.
    let gate = work.strip_prefix("collect/").is_some_and(|name| name.starts_with(IDLE));
    work != LINK && !work.starts_with(CONSOLE) && !gate
}

/// Whether a name can stand for a host in a command: letters, digits, `.`, `-` and `_` in the length of a DNS name, and no option. A
/// recording or a log may call a node anything.
#[must_use]
pub fn is_host(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && name.len() <= 253 && name.chars().all(plain) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visit_has_a_name_of_its_own_and_the_first_that_of_its_work() {
        for (work, visit, name) in [("disk", 1, "disk"), ("disk", 2, "disk#2"), ("collect/nic", 12, "collect/nic#12")] {
            assert_eq!(visit_name(work, visit), name);
            assert_eq!(visit_of(name), (work, visit));
        }
        assert_eq!(visit_of("c#"), ("c#", 1));
        assert_eq!((visit_of("c#1"), visit_of("c#x")), (("c#1", 1), ("c#x", 1)));
    }

    #[test]
    fn what_the_console_notes_and_an_idle_gate_are_no_work_of_a_node() {
        assert!(is_work("collect/nic") && is_work("disk#2"));
        assert!(![LINK, OUT_OF_TURN, "console/asked"].iter().any(|work| is_work(work)));
        assert!(!is_work(&format!("collect/{IDLE}")));
    }

    #[test]
    fn what_a_shell_or_a_program_would_take_for_something_else_is_no_host() {
        assert!(["n7", "gpu-0.rack_3", &"n".repeat(253)].iter().all(|name| is_host(name)));
        assert!(!["", "-w", "n7;reboot", "n 7", "$(id)", "nö", &"n".repeat(254)].iter().any(|name| is_host(name)));
    }
}
