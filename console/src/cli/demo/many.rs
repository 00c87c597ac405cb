//! `muster demo --virtual N`: thousands of nodes on one machine, of which the machines alone are not real, and what they cost the console.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use muster_fleet::demo::{VirtualFleet, VirtualOptions};
use muster_playbook::report::{Cost, Demo};
use muster_tui::Intent;
use rustix::time::{ClockId, clock_gettime};

use super::{MINUTES, Options, kept, told};
use crate::app::App;
use crate::cli::virtual_nodes;
use crate::config::Config;
use crate::exit::{Code, Ended, IO};
use crate::options::Common;
use crate::{database, out, session};

/// A node that answers slowly because thousands of others answer on the same cores has not hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// Raises `count` virtual nodes, then scans them with or without a screen.
pub(super) async fn run(count: u16, options: &Options, config: &Config, common: &Common) -> Ended {
    let dir = tempfile::Builder::new().prefix("muster-demo-").tempdir().code(IO)?;
    let of = VirtualOptions {
        nodes: usize::from(count),
        slow: usize::from(options.slow.min(count)),
        seed: options.seed.unwrap_or_else(rand::random),
        severity: options.severity,
        pace: options.pace,
    };
    let without_screen = options.headless || options.say.json;
    if !options.say.quiet {
        out::note(format_args!("recording what a probe says on this machine, for {count} virtual nodes to say again"));
    }
    let fleet = VirtualFleet::start(virtual_nodes::Options::command(&of)?, dir.path()).code(IO)?;
    let mut config = config.clone();
    if common.db.is_none() {
        config.db.value = kept(&config.db.value, dir.path());
    }
    let mut settings = fleet.settings();
    settings.fan_out = config.fan_out.value;
    settings.at_once = config.at_once.value.unwrap_or(settings.at_once);
    (settings.connect, settings.banner, settings.start, settings.idle) = (PATIENCE, PATIENCE, PATIENCE, PATIENCE);
    let most = settings.connections();
    if most < of.nodes && !options.say.quiet {
        let files = "the limit on open files (ulimit -Hn) is too small for all nodes at once";
        out::note(format_args!("{files}: {most} of {count} are connected at the same time, the others after them"));
    }
    let mut store = database::write(&config)?;
    let nodes = fleet.inventory().nodes().to_vec();
    let patience = Some(Duration::from_secs(60 * options.minutes.unwrap_or(MINUTES)));
    let job = session::Job::new(session::playbook("demo")?, nodes, Arc::new(settings));
    let job = session::Job { fresh: true, patience, ..job };
    if !without_screen {
        let nodes = job.nodes.iter().map(|node| node.name.clone()).collect();
        let first = Intent::RunPlaybook { playbook: job.playbook.name.clone(), nodes };
        let ended = App::new(job, Ok(store), (config.clone(), common), "demo").sit(Some(first)).await;
        told(&config, dir.path());
        return ended;
    }
    let begun = Instant::now();
    let mut done = session::headless(job, &mut store, &config, &options.say).await?;
    let (cpu_s, rss_mb) = used().code(IO)?;
    let wall_s = begun.elapsed().as_secs_f64();
    done.report.demo = Some(Demo { slowed: fleet.slowed().to_vec() });
    let bytes = fleet.end().code(IO)?;
    let cost = Cost { cpu_s, rss_mb, wall_s, verdict_s: done.verdict.as_secs_f64(), bytes };
    done.report.cost = Some(cost);
    let ended = session::finish(&done, &options.say);
    if !options.say.quiet {
        out::note(spoken(&cost, of.nodes));
        told(&config, dir.path());
    }
    ended
}

/// What it cost, for people.
fn spoken(cost: &Cost, nodes: usize) -> String {
    let Cost { cpu_s, rss_mb, wall_s, verdict_s, bytes } = cost;
    format!(
        "console's side for {nodes} virtual nodes: {cpu_s:.1} s CPU, {rss_mb:.0} MB of memory, {wall_s:.1} s, verdicts {verdict_s:.1} s \
         after the last frame, {:.1} MB over SSH",
        *bytes as f64 / 1e6
    )
}

/// CPU seconds of this process and the most memory it has had resident, MB.
fn used() -> anyhow::Result<(f64, f64)> {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    let kilobytes = peak.context("/proc/self/status has no VmHWM")?;
    Ok((cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9, kilobytes as f64 * 1024.0 / 1e6))
}
