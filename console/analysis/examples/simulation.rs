//! A month under each policy: with the settings fitted to SuperBench's Table 4, or with recorded incidents and jobs.
//!
//! `cargo run --release -p muster-analysis --example simulation -- [INCIDENTS.csv [NODES HOURS [JOBS.csv.gz]]]`

#![expect(clippy::disallowed_methods, reason = "reads files and measures time, which the library never does")]

use std::error::Error;
use std::io::Read;

use muster_analysis::risk::import::{Limits, csv_incidents};
use muster_analysis::risk::{History, Window};
use muster_analysis::selector::EXPECTATION_P0;
use muster_analysis::simulate::{
    Interval, JobLaw, Jobs, Law, Policy, Replay, Settings, TooLarge, ValidationPlan, World, compare, philly_jobs, run,
};

/// CPU seconds of this process: what one idle core would have taken, also on a busy machine.
fn now() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn table(title: &str, settings: &Settings, world: (&Law, &Jobs, &ValidationPlan)) -> Result<(), TooLarge> {
    println!("{title}");
    for s in compare(settings, 3, world, &mut |_| {})? {
        let show = |i: Interval, k: f64| format!("{:7.2} [{:6.2}, {:6.2}]", i.mean * k, i.low * k, i.high * k);
        println!(
            "  {:11} utilisation % {}  validation h {}  MTBI h {}  incidents/node {}",
            s.policy.name(),
            show(s.utilisation, 100.0),
            show(s.validation_h, 1.0),
            s.mtbi_h.map_or("      –                  ".into(), |i| show(i, 1.0)),
            show(s.incidents_per_node, 1.0)
        );
    }
    for policy in Policy::ALL {
        let start = now();
        run(policy, settings, world, &mut |_| {})?;
        println!("  {:11} {} nodes x {} h in {:.3} s", policy.name(), settings.nodes, settings.hours, now() - start);
    }
    Ok(())
}

fn fitted() -> Result<(), TooLarge> {
    let replaced = World::replaced();
    table("fitted, nodes replaced", &replaced.settings, replaced.parts())?;
    let by_rule = Settings { p0: EXPECTATION_P0, ..replaced.settings.clone() };
    table("the same with p0 = 1 - 1/e", &by_rule, replaced.parts())?;
    let repaired = World::repaired();
    table("fitted, nodes repaired", &repaired.settings, repaired.parts())
}

fn unpacked(path: &str) -> Result<String, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let mut text = String::new();
    if path.ends_with(".gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
    } else {
        text = String::from_utf8(bytes)?;
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        return Ok(fitted()?);
    };
    let nodes: usize = args.next().map_or(Ok(400), |n| n.parse())?;
    let hours: f64 = args.next().map_or(Ok(348.0 * 24.0), |n| n.parse())?;
    let log = csv_incidents(&unpacked(&path)?, Limits::default())?;
    let window = Window { start_h: 0.0, end_h: hours };
    let history = History::new(&log.incidents, &[], window).with_silent(nodes);
    let law = Law::Replay(Replay::new(&history).ok_or("the log has no incident")?);
    let settings = Settings { nodes, ..Settings::default() };
    let plan = ValidationPlan::like_published(1.34);
    table("incidents replayed, generated jobs", &settings, (&law, &Jobs::Law(JobLaw::default()), &plan))?;
    if let Some(path) = args.next() {
        let settings = Settings { nodes: 40, ..settings };
        let jobs = Jobs::Trace(philly_jobs(&unpacked(&path)?, Limits::default())?);
        table("replayed incidents, traced jobs", &settings, (&law, &jobs, &plan))?;
    }
    Ok(())
}
