//! What the GPUs of a node are together: means and sums, and beside them the worst of several, which a mean of eight would hide.

use muster_wire::watched;

use super::gpu::{Look, What};

/// How several GPUs become one number.
#[derive(Clone, Copy, Debug)]
enum How {
    Mean,
    Sum,
    Least,
    Most,
}
use How::{Least, Mean, Most, Sum};

const METRICS: [(&str, What, How); 25] = [
    ("gpu_util_pct", What::Utilisation, Mean),
    ("gpu_util_least_pct", What::Utilisation, Least),
    ("gpu_power_w", What::Power, Mean),
    ("gpu_power_least_w", What::Power, Least),
    ("gpu_clock_mhz", What::Clock, Mean),
    ("gpu_clock_least_mhz", What::Clock, Least),
    ("gpu_temp_c", What::Temperature, Mean),
    ("gpu_temp_most_c", What::Temperature, Most),
    ("gpu_mem_temp_c", What::MemoryTemperature, Most),
    ("gpu_mem_used_pct", What::MemoryUsed, Mean),
    ("gpu_mem_used_most_pct", What::MemoryUsed, Most),
    ("gpu_throttled_pct", What::Slowed, Mean),
    ("gpu_power_capped_pct", What::Capped, Mean),
    ("gpu_ecc_per_s", What::Corrected, Sum),
    ("gpu_ecc_lost", What::Lost, Sum),
    ("gr_active", What::Graphics, Mean),
    ("sm_active", What::Sm, Mean),
    ("sm_least_active", What::Sm, Least),
    ("tensor_active", What::Tensor, Mean),
    ("tensor_least_active", What::Tensor, Least),
    ("dram_active", What::Dram, Mean),
    ("pcie_tx_gbs", What::PcieSent, Sum),
    ("pcie_rx_gbs", What::PcieReceived, Sum),
    ("nvlink_gbs", What::NvLink, Sum),
    ("nvlink_least_gbs", What::NvLink, Least),
];

/// Every metric that any GPU tells: first what may be looked at finely, each part by name. A lost GPU is seen by the number of those
/// that answer.
pub(super) fn together(looks: &[Look], whole: bool) -> Vec<(&'static str, f64)> {
    let several = looks.len() > 1;
    let mut found: Vec<(&'static str, f64)> = METRICS
        .iter()
        // Of one GPU the worst is the mean.
        .filter(|(name, ..)| several || watched(name).is_some_and(|known| known.worst_of.is_none()))
        .filter_map(|(name, what, how)| Some((*name, join(looks, *what, *how)?)))
        .collect();
    if whole {
        found.push(("gpu_count", looks.iter().filter(|look| look.answers).count() as f64));
    }
    found.sort_by_key(|(name, _)| (!watched(name).is_some_and(|known| known.fine), *name));
    found
}

fn join(looks: &[Look], what: What, how: How) -> Option<f64> {
    let values: Vec<f64> = looks.iter().filter_map(|look| look.of(what)).collect();
    let sum = values.iter().sum::<f64>();
    let joined = match how {
        Mean => sum / values.len() as f64,
        Sum => sum,
        Least => values.iter().copied().fold(f64::INFINITY, f64::min),
        Most => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    };
    (!values.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(power: f64, clock: f64) -> Look {
        Look { values: vec![(What::Power, power), (What::Clock, clock)], answers: true }
    }

    #[test]
    fn one_bad_gpu_of_eight_stands_beside_the_mean_and_a_lost_one_is_counted() {
        let mut looks = vec![look(600.0, 1980.0); 8];
        looks[3] = look(200.0, 990.0);
        looks[5] = Look::default();
        let found = together(&looks, true);
        let of = |name: &str| found.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        assert_eq!(
            (of("gpu_power_least_w"), of("gpu_clock_least_mhz"), of("gpu_count")),
            (Some(200.0), Some(990.0), Some(7.0))
        );
        assert!((of("gpu_power_w").unwrap() - (6.0 * 600.0 + 200.0) / 7.0).abs() < 1e-9);
        assert_eq!(of("nvlink_gbs"), None, "what no GPU tells is no metric");
        assert_eq!(found[0].0, "gpu_clock_least_mhz", "fine ones stand first: {found:?}");
    }

    #[test]
    fn one_gpu_is_not_told_twice() {
        let names: Vec<&str> = together(&[look(600.0, 1980.0)], true).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["gpu_clock_mhz", "gpu_count", "gpu_power_w"]);
    }

    #[test]
    fn every_metric_stands_in_the_catalogue() {
        for (name, _, how) in METRICS {
            let known = watched(name).unwrap();
            assert!(known.worst_of.is_none() || matches!(how, Least | Most), "{name}");
        }
    }
}
