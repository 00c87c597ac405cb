//! Shows the console on a made-up snapshot, to look at:
//! `gallery [data|many|one|half|gpus|old|hands|repair|swapped|loading|empty|error] [--ascii]`.
//! Nothing it shows was measured.

#[path = "../tests/console/synthetic.rs"]
mod synthetic;

use std::sync::Arc;

use muster_tui::{Options, Screen, run};
use synthetic::{DATA, Fleet};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ascii = arguments.iter().any(|a| a == "--ascii");
    let snapshot = match arguments.first().map(String::as_str) {
        Some("loading") => synthetic::loading(),
        Some("empty") => synthetic::empty(),
        Some("error") => synthetic::error(),
        Some("one") => synthetic::snapshot(Fleet { nodes: 1, slow: 0, lost_each: 0, running: false }),
        Some("many") => synthetic::snapshot(Fleet { nodes: 10_000, slow: 12, lost_each: 50, running: false }),
        Some("gpus") => synthetic::with_gpus(synthetic::snapshot(synthetic::DATA)),
        Some("old") => synthetic::with_old_results(synthetic::snapshot(DATA)),
        Some("hands") => synthetic::service::with_hands(synthetic::snapshot(DATA)),
        Some("repair") => synthetic::service::in_repair(synthetic::snapshot(DATA), Some(&[])),
        Some("swapped") => synthetic::service::swapped(synthetic::snapshot(DATA)),
        Some("half") => synthetic::snapshot(Fleet { nodes: 40, slow: 1, lost_each: 2, running: true }),
        _ => synthetic::snapshot(DATA),
    };
    let snapshot = Arc::new(snapshot);
    let color = std::env::var_os("NO_COLOR").is_none();
    tui_logger::init_logger(log::LevelFilter::Debug).map_err(std::io::Error::other)?;
    log::info!(target: "gallery", "a made-up fleet of {} nodes", snapshot.nodes.len());
    run(
        Options { ascii, color, first: Screen::Fleet },
        &|| Some(snapshot.clone()),
        &|intent| log::info!(target: "intent", "{intent:?}"),
    )
}
