//! Memory in use, and paging.

use super::look::Look;
use crate::collect::Root;

pub(super) fn look(root: &Root, look: &mut Look) {
    if let Some(used) = root.text("/proc/meminfo").value().and_then(|text| used(text)) {
        look.level("mem_used_pct", used);
    }
    let text = root.text("/proc/vmstat");
    let Some(text) = text.value() else { return };
    let count = |name: &str| field(text, name, ' ');
    if let Some(faults) = count("pgmajfault") {
        look.count("major_faults_per_s", "", faults);
    }
    if let Some(reclaimed) = count("pgscan_direct") {
        look.count("reclaimed_pages_per_s", "", reclaimed);
    }
    if let (Some(read), Some(written)) = (count("pswpin"), count("pswpout")) {
        look.count("swap_pages_per_s", "", read + written);
    }
}

/// Share of all memory that is not available to programs, percent.
fn used(text: &str) -> Option<f64> {
    let (all, free) = (field(text, "MemTotal", ':')?, field(text, "MemAvailable", ':')?);
    (all > 0.0).then(|| (100.0 * (1.0 - free / all)).max(0.0))
}

/// The first number behind `name` and `mark` at the start of a line.
fn field(text: &str, name: &str, mark: char) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(mark))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_programs_can_have_is_not_used() {
        let text = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    250 kB\n";
        assert_eq!(used(text), Some(75.0));
        assert_eq!(used("MemTotal: 0 kB\nMemAvailable: 0 kB"), None);
        assert_eq!(field("pgmajfault 17\npgmajfault_x 3", "pgmajfault", ' '), Some(17.0));
    }
}
