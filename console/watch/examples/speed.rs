//! What watching costs: CPU time per second of a job and memory, for 1,500 machines with 20 metrics unless told otherwise.
//!
//! `cargo run --release -p muster-watch --example speed [MACHINES] [METRICS] [SECONDS]`

#![expect(clippy::disallowed_methods, reason = "reads time and memory from /proc, which the library never does")]

use std::time::Duration;

use muster_analysis::Chance;
use muster_watch::{Settings, Watch};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().unwrap_or_default());
    let mut next = |usual: usize| numbers.next().filter(|n| *n > 0).unwrap_or(usual);
    let (machines, count, seconds) = (next(1_500), next(20), next(900));
    let mut watch = Watch::new(Settings::default());
    let nodes: Vec<_> = (0..machines).filter_map(|n| watch.node(&format!("n{n}"))).collect();
    let mut names = vec!["tensor_active".to_owned(), "net_tx_gbs".to_owned()];
    names.extend((2..count).map(|metric| format!("metric{metric}")));
    let metrics: Vec<_> = names.iter().filter_map(|name| watch.metric(name)).collect();
    let (mut chance, mut spent, mut worst) = (Chance::new(1), Duration::ZERO, Duration::ZERO);
    let mut values = vec![0.0; nodes.len() * metrics.len()];
    for second in 0..seconds {
        values.iter_mut().for_each(|value| *value = 0.5 * (1.0 + 0.03 * chance.normal()));
        let began = now();
        for (at, value) in values.iter().enumerate() {
            let (metric, node) = (at / nodes.len(), at % nodes.len());
            watch.push(second as f64, nodes[node], metrics[metric], *value);
        }
        let took = now() - began;
        (spent, worst) = (spent + took, worst.max(took));
    }
    watch.finish();
    let mean = 1e3 * spent.as_secs_f64() / seconds as f64;
    let memory = resident().map_or("unknown memory".to_owned(), |bytes| format!("{} MB", bytes >> 20));
    println!(
        "{machines} machines x {count} metrics, {seconds} s: {mean:.1} ms a second, at most {:.0} ms in one (a block is closed), \
         {memory}, {} alerts",
        1e3 * worst.as_secs_f64(),
        watch.alerts().len()
    );
}

/// CPU time of this process: what one idle core would have taken, also on a busy machine.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

/// Resident memory of this process, as Linux tells it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}
