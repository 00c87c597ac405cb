//! A watched job, made by the detector from made-up ticks.

use std::sync::Arc;

use muster_tui::snapshot::{Origin, Watched, WatchedMetric, Watching};
use muster_watch::{QUARTER, Settings, Watch};

/// 2026-11-21 13:45 UTC.
const BEGAN_S: f64 = 1_795_268_700.0;

/// A job on the nodes called `names` after so many `seconds`, of which the one in place 2 lost power from 500 s on; labels by
/// leaves of eight.
pub(crate) fn watching(names: &[String], seconds: u32) -> Watching {
    let mut watch = Watch::new(Settings::default());
    watch.keep(QUARTER);
    let nodes: Vec<_> = names.iter().filter_map(|name| watch.node(name)).collect();
    let known = ["gpu_power_w", "tensor_active", "net_tx_gbs", "cpu_util_pct", "gpu_temp_c"];
    let metrics: Vec<_> = known.iter().filter_map(|name| watch.metric(name)).collect();
    let levels = [500.0, 0.45, 18.0, 22.0, 61.0];
    for second in 0..seconds {
        for (at, node) in nodes.iter().enumerate() {
            for (nr, (metric, level)) in metrics.iter().zip(levels).enumerate() {
                // A cheap noise of about a percent either way.
                let mixed = (u64::from(second) * 2_654_435_761 + at as u64 * 40_503 + nr as u64 * 97)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let noise = (mixed >> 40) as f64 / f64::from(1 << 24) - 0.5;
                let hurt = if at == 2 && second > 500 && nr < 2 { 0.62 } else { 1.0 };
                watch.push(BEGAN_S + f64::from(second), *node, *metric, level * hurt * (1.0 + 0.03 * noise));
            }
        }
    }
    let leaf = |at: usize| vec![("leaf".to_owned(), format!("leaf{}", at / 8))];
    let watched = |(at, name): (usize, &String)| Watched { name: name.clone(), labels: leaf(at), lost: None };
    Watching {
        origin: Origin::Live,
        over: false,
        nodes: names.iter().enumerate().map(watched).collect(),
        metrics: watch.metrics().map(|(name, about)| WatchedMetric { name: name.to_owned(), about: *about }).collect(),
        frames: watch.frames().cloned().collect::<Vec<Arc<_>>>().into(),
        calibration: watch.calibration(),
        alerts: watch.alerts().into(),
        notes: watch.notes().into(),
    }
}
