//! How much of this machine others use while a test measures: without that, nobody can say whether a node that was not judged
//! could have been.

use std::fs;
use std::time::Instant;

use crate::fleet::Fleet;

/// CPUs in use by others from which on a verdict may honestly be impossible.
pub const BUSY: f64 = 0.1;
/// Clock ticks of the kernel's counters in a second, on every architecture of today.
const TICKS: f64 = 100.0;

/// Counts from its beginning on.
#[derive(Debug)]
pub struct Load {
    begun: Instant,
    everybody: f64,
    ours: f64,
}

impl Load {
    /// Begins now. `fleet` is the one that the test measures, and its nodes' work is its own.
    #[must_use]
    pub fn start(fleet: Option<&Fleet>) -> Self {
        Self { begun: Instant::now(), everybody: everybody(), ours: own() + fleet.map_or(0.0, Fleet::used) }
    }

    /// CPUs that others used on average since then, the hypervisor among them. Only time in programs counts, as the kernel's work
    /// for our own packets is nobody's.
    #[must_use]
    pub fn others(&self, fleet: Option<&Fleet>) -> f64 {
        let now = Self::start(fleet);
        let others = (now.everybody - self.everybody) - (now.ours - self.ours);
        (others / now.begun.duration_since(self.begun).as_secs_f64().max(1e-3)).max(0.0)
    }
}

/// Seconds of all programs, and those taken by the hypervisor.
fn everybody() -> f64 {
    of_machine(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// Seconds of this program and of the children it has seen end.
fn own() -> f64 {
    of_process(&fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

fn of_machine(text: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    [0, 1, 7].iter().filter_map(|at| ticks.get(*at)).sum::<f64>() / TICKS
}

fn of_process(text: &str) -> f64 {
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [11, 13].iter().filter_map(|at| fields.get(*at)?.parse::<f64>().ok()).sum::<f64>() / TICKS
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_in_programs_and_of_the_hypervisor_counts() {
        assert_eq!(of_machine("cpu  100 20 999 999 999 999 999 30 7 7\ncpu0 1 1 1\n"), 1.5);
        assert_eq!(of_process("42 (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 50 22 70 3 20 0 1 0 777"), 1.2);
    }

    #[test]
    fn a_program_that_is_not_ours_yet_is_somebody_elses() {
        let mut other = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let load = Load::start(None);
        let seen = (0..1_200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            load.others(None) > 0.01
        });
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(seen);
    }
}
