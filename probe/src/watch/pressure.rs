//! Pressure stall information: how much of the time some task waited for a CPU, memory or I/O.

use super::look::Look;
use crate::collect::Root;

pub(super) fn look(root: &Root, look: &mut Look) {
    let files = [
        ("/proc/pressure/cpu", "cpu_pressure_pct"),
        ("/proc/pressure/memory", "memory_pressure_pct"),
        ("/proc/pressure/io", "io_pressure_pct"),
    ];
    for (file, metric) in files {
        if let Some(stalled_us) = root.text(file).value().and_then(|text| total(text)) {
            // A microsecond of a second is a ten-thousandth of a percent.
            look.count(metric, "", stalled_us * 1e-4);
        }
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, microseconds.
fn total(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_some_counts_and_not_that_of_all() {
        let text =
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99";
        assert_eq!(total(text), Some(12_345.0));
        assert_eq!(total("full avg10=0.00 total=99"), None);
    }
}
