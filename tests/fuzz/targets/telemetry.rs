//! Recorded telemetry, and the detector that goes through it: as a file, or as ticks of a few nodes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_watch::{Settings, Watch};
use muster_import::telemetry::{Recording, unpacked};

/// Values that sensors show, and some that they do not.
const VALUES: [f64; 8] = [0.0, 1.0, 50.0, 99.9, 5e9, 1e308, -3.0, f64::NAN];
const METRICS: [&str; 4] = ["gpu_util_pct", "pfc_tx_pps", "net_tx_gbs", "something"];

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = bytes.split_first() else { return };
    let mut watch = Watch::new(Settings::default());
    if which % 2 == 0 {
        let mut recording = Recording::default();
        let Ok(input) = unpacked(rest) else { return };
        let _ = recording.add_csv(input);
        recording.sort();
        let nodes: Vec<_> = recording.nodes.iter().map(|name| watch.node(name)).collect();
        let metrics: Vec<_> = recording.metrics.iter().map(|name| watch.metric(name)).collect();
        for row in recording.rows() {
            let (node, metric) = recording.of(row);
            if let (Some(node), Some(metric)) = (nodes[node], metrics[metric]) {
                watch.push(row.time_s, node, metric, f64::from(row.value));
            }
        }
    } else {
        let nodes: Vec<_> = (0..6).filter_map(|nr| watch.node(&format!("n{nr}"))).collect();
        let metrics: Vec<_> = METRICS.iter().filter_map(|name| watch.metric(name)).collect();
        let mut time = 1.6e9;
        // Each tick is told for everybody, and for one node otherwise: else nobody ever has enough.
        for tick in rest.chunks_exact(3) {
            time += f64::from(tick[0] as i8);
            let (odd, metric) = (usize::from(tick[1] & 7), usize::from(tick[1] >> 3) % metrics.len());
            for (at, node) in nodes.iter().enumerate() {
                let value = VALUES[usize::from(if at == odd { tick[2] >> 3 } else { tick[2] }) & 7];
                for second in 0..10 {
                    watch.push(time + f64::from(second), *node, metrics[metric], value + f64::from(second % 3));
                }
            }
        }
    }
    watch.finish();
    let _ = (watch.notes(), watch.lack(), watch.dropped(), watch.span());
    assert!(watch.alerts().iter().all(|alert| alert.score.is_finite() && !alert.sentence.is_empty()));
});
