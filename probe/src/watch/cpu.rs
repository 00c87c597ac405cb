//! CPU time by what it went to, and the clock of some CPUs.

use super::look::Look;
use crate::collect::Root;

/// CPUs whose clock is read: reading one interrupts it.
const CLOCKS: usize = 8;

/// Whose clock is read.
pub(super) struct Source {
    clocks: Vec<String>,
}

impl Source {
    pub(super) fn new(root: &Root) -> Self {
        let cpus = root.numbered("/sys/devices/system/cpu", "cpu");
        let apart = cpus.len().div_ceil(CLOCKS).max(1);
        let file = |cpu: &String| format!("/sys/devices/system/cpu/{cpu}/cpufreq/scaling_cur_freq");
        Self { clocks: cpus.iter().step_by(apart).map(file).collect() }
    }

    pub(super) fn look(&self, root: &Root, look: &mut Look) {
        if let Some(text) = root.text("/proc/stat").value() {
            times(text, look);
        }
        let known: Vec<f64> = self.clocks.iter().filter_map(|file| root.number(file).value().copied()).collect();
        if !known.is_empty() {
            look.level("cpu_clock_mhz", known.iter().sum::<f64>() / known.len() as f64 / 1e3);
        }
    }
}

/// From `/proc/stat`: user nice system idle iowait irq softirq steal, in hundredths of a second over all CPUs.
fn times(text: &str, look: &mut Look) {
    let cpus = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    if let ([user, nice, system, _, waiting, irq, softirq, ..], 1..) = (&ticks[..], cpus) {
        let steal = ticks.get(7).copied().unwrap_or(0.0);
        // A hundredth of a second is a percent of one CPU.
        let mut count = |metric, ticks: f64| look.count(metric, "", ticks / cpus as f64);
        count("cpu_util_pct", user + nice + system + irq + softirq + steal);
        count("cpu_system_pct", system + irq + softirq);
        count("cpu_iowait_pct", *waiting);
        count("cpu_steal_pct", steal);
    }
    if let Some(blocked) = text.lines().find_map(|line| line.strip_prefix("procs_blocked ")?.trim().parse().ok()) {
        look.level("blocked_tasks", blocked);
    }
    let switches = text.lines().find_map(|line| line.strip_prefix("ctxt ")?.trim().parse().ok());
    if let Some(switches) = switches {
        look.count("context_switches_per_s", "", switches);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_one_cpu_of_two_is_half_of_the_node() {
        let (mut first, mut second) = (Look::at(0), Look::at(1_000_000_000));
        times("cpu  100 0 50 900 10 0 0 0 0 0\ncpu0 1\ncpu1 1\nintr 7\nctxt 1000\n", &mut first);
        times("cpu  160 0 80 990 20 4 6 0 0 0\ncpu0 1\ncpu1 1\nintr 7\nctxt 4000\nprocs_blocked 3\n", &mut second);
        let found = second.since(&first);
        let of = |name: &str| found.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        assert_eq!((of("cpu_util_pct"), of("cpu_system_pct")), (Some(50.0), Some(20.0)));
        assert_eq!((of("cpu_iowait_pct"), of("cpu_steal_pct")), (Some(5.0), Some(0.0)));
        assert_eq!((of("context_switches_per_s"), of("blocked_tasks")), (Some(3000.0), Some(3.0)));
    }
}
