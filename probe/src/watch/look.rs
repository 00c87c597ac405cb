//! One look at a node: levels as they are, counters to become rates with the look before.

use std::collections::BTreeMap;

use muster_wire::watched;

/// A counter since boot, of one device.
#[derive(Clone, Copy, Debug)]
struct Count {
    total: f64,
    /// Of several devices the most counts, and not the sum.
    most: bool,
}

/// What was read at one time.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Monotonic clock, nanoseconds.
    pub(super) at_ns: u64,
    levels: BTreeMap<&'static str, f64>,
    counts: BTreeMap<&'static str, BTreeMap<String, Count>>,
}

impl Look {
    /// At this monotonic time, with nothing read yet.
    pub(super) const fn at(at_ns: u64) -> Self {
        Self { at_ns, levels: BTreeMap::new(), counts: BTreeMap::new() }
    }

    /// What stands as it is, such as a temperature.
    pub(super) fn level(&mut self, metric: &'static str, value: f64) {
        self.levels.insert(metric, value);
    }

    /// What was counted since boot on `device`, in units that make the metric when divided by seconds. Devices add up.
    pub(super) fn count(&mut self, metric: &'static str, device: &str, total: f64) {
        self.add(metric, device, Count { total, most: false });
    }

    /// The same where the device that counted most stands for all.
    pub(super) fn count_most(&mut self, metric: &'static str, device: &str, total: f64) {
        self.add(metric, device, Count { total, most: true });
    }

    fn add(&mut self, metric: &'static str, device: &str, count: Count) {
        self.counts.entry(metric).or_default().insert(device.to_owned(), count);
    }

    /// Every metric with its value since the look `before`, those that may be looked at finely first, then by name: rates per second. A device that is new or whose counter
    /// ran backwards (a driver was loaded again) is left out this time; NaN where nothing is left.
    pub(super) fn since(&self, before: &Self) -> Vec<(&'static str, f64)> {
        let seconds = self.at_ns.saturating_sub(before.at_ns) as f64 / 1e9;
        let rate = |metric: &'static str, devices: &BTreeMap<String, Count>| {
            let old = before.counts.get(metric);
            let grown = devices.iter().filter_map(|(device, now)| {
                let grown = now.total - old?.get(device)?.total;
                (grown >= 0.0).then_some((grown / seconds, now.most))
            });
            let joined =
                grown.reduce(|(all, most), (one, _)| (if most { f64::max(all, one) } else { all + one }, most));
            joined.map_or(f64::NAN, |(rate, _)| bounded(metric, rate))
        };
        let mut values: Vec<(&'static str, f64)> = self.levels.iter().map(|(name, value)| (*name, *value)).collect();
        values.extend(self.counts.iter().map(|(name, devices)| (*name, rate(name, devices))));
        values.sort_by_key(|(name, _)| (!is_fine(name), *name));
        values
    }
}

/// Whether a metric may be looked at many times a second.
pub(super) fn is_fine(name: &str) -> bool {
    watched(name).is_some_and(|known| known.fine)
}

/// Two looks are never exactly as far apart as the kernel's counting.
fn bounded(metric: &str, rate: f64) -> f64 {
    if metric.ends_with("_pct") { rate.min(100.0) } else { rate }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_rates_and_devices_add_up_or_the_busiest_counts() {
        let (mut first, mut second) = (Look::at(0), Look::at(2_000_000_000));
        for (look, eth0, eth1, busy) in [(&mut first, 10.0, 0.0, 0.0), (&mut second, 14.0, 6.0, 300.0)] {
            look.count("net_tx_gbs", "eth0", eth0);
            look.count("net_tx_gbs", "eth1", eth1);
            look.count_most("disk_busy_pct", "sda", busy / 10.0);
            look.count_most("disk_busy_pct", "sdb", busy);
            look.level("cpu_temp_c", 61.0);
        }
        // What may be looked at more often comes first.
        assert_eq!(second.since(&first), [("net_tx_gbs", 5.0), ("cpu_temp_c", 61.0), ("disk_busy_pct", 100.0)]);
    }

    #[test]
    fn a_new_device_or_one_that_began_anew_makes_no_spike() {
        let (mut first, mut second) = (Look::at(0), Look::at(1_000_000_000));
        first.count("net_tx_gbs", "eth0", 1e6);
        second.count("net_tx_gbs", "eth0", 1e6 + 2.0);
        second.count("net_tx_gbs", "eth1", 5e6);
        assert_eq!(second.since(&first), [("net_tx_gbs", 2.0)]);
        let mut third = Look::at(2_000_000_000);
        third.count("net_tx_gbs", "eth0", 7.0);
        assert!(third.since(&second)[0].1.is_nan());
    }
}
