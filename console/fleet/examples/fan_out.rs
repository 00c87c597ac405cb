//! What does a fan-out cost? Runs `true`, or pushes a file and runs it, on every node of an inventory.
//!
//! `fan_out INVENTORY IDENTITY KNOWN_HOSTS WINDOW [FILE]`; with `demo` and a number as the first two it raises a
//! fleet of its own (whose servers then count too). Prints wall time, CPU time and peak memory of this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_fleet::{Failure, Inventory, Node, Output, Probe, Settings, command, demo, push};

type Results = Vec<(String, Result<Output, Failure>)>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize| args.get(at).map(String::as_str).unwrap_or_default();
    let fleet;
    let (nodes, mut settings) = if arg(0) == "demo" {
        fleet = demo::LocalFleet::start(&demo::Options { nodes: arg(1).parse()?, slow: 0, ..Default::default() })?;
        (fleet.inventory().nodes().to_vec(), fleet.settings())
    } else {
        let settings = Settings {
            identities: vec![arg(1).into()],
            known_hosts: vec![arg(2).into()],
            agent: false,
            ssh_config: None,
            ..Settings::default()
        };
        (Inventory::load(arg(0))?.nodes().to_vec(), settings)
    };
    settings.fan_out = arg(3).parse().unwrap_or(64);
    let file = args.get(4).map(std::fs::read).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let begin = Instant::now();
    let results = runtime.block_on(work(&nodes, settings, file));
    let wall = begin.elapsed();
    report(&results, wall)
}

async fn work(nodes: &[Node], settings: Settings, file: Option<Vec<u8>>) -> Results {
    match file {
        None => command(nodes, "true", Duration::from_secs(30), Arc::new(settings)).await,
        Some(bytes) => push(nodes, Arc::new(Probe::new(bytes.into())), "info", Arc::new(settings)).await,
    }
}

fn report(results: &Results, wall: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let ok = results.iter().filter(|(_, result)| result.as_ref().is_ok_and(|out| out.status == Some(0))).count();
    for (node, result) in
        results.iter().filter(|(_, r)| r.as_ref().is_ok_and(|o| o.status != Some(0)) || r.is_err()).take(5)
    {
        println!("{node}: {result:?}");
    }
    // Fields 14 and 15 of proc(5) stat, in ticks of 10 ms; the name in field 2 has no spaces here.
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let ticks: Vec<f64> = stat.split(' ').skip(13).take(2).filter_map(|field| field.parse().ok()).collect();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let (user, system) = (ticks.first().unwrap_or(&0.0) / 100.0, ticks.get(1).unwrap_or(&0.0) / 100.0);
    println!(
        "{ok} of {} ok; wall {:.2} s; CPU {user:.2} s user, {system:.2} s system; {peak}",
        results.len(),
        wall.as_secs_f64()
    );
    Ok(())
}
