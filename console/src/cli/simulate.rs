//! `muster simulate`: a month of a cluster under each validation policy.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use muster_analysis::risk::import::Limits;
use muster_analysis::simulate::{Gain, Interval, Jobs, Law, PolicySummary, Replay, World, compare, gains, philly_jobs};
use serde::Serialize;

use super::select::log_of;
use crate::exit::{CONFIG, Code, Ended, PASS, Problem, USAGE};
use crate::options::{positive, share};
use crate::{input, out};

/// Options.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  muster simulate
  muster simulate --nodes 3000 --hours 720 --seeds 10 --json
  muster simulate --incidents log.csv --log-nodes 400 --log-hours 8352 --jobs philly_jobs.csv.gz

Policies: absence (no validation; an incident takes all nodes of its job away for 36 hours), full (all benchmarks before \
every job), selector, ideal (no incidents), repair_only (no validation; an incident takes only its node away, as full \
and selector do). What full and selector gain over repair_only is the gain of validating; the rest is that of the repair \
rule. Without files incidents and jobs follow laws fitted to SuperBench's Table 4: fits, not evidence. A job of a trace \
that needs more nodes than --nodes is an error; generated jobs have only sizes that fit.")]
pub struct Options {
    /// Nodes of the cluster.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub nodes: u32,
    /// Length of the simulation in hours, above 0 and below 1,000,000.
    #[arg(long, default_value_t = 720.0, value_parser = positive)]
    pub hours: f64,
    /// Seeds; the 95 % intervals are over them. Three are few: ten or more make them narrower.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Acceptable probability that any node fails during a job [default: the fitted one].
    #[arg(long, value_name = "PROB", value_parser = share)]
    pub p0: Option<f64>,
    /// What a swap after a failed validation brings.
    #[arg(long, value_enum, default_value_t = Repair::Replaced)]
    pub repair: Repair,
    /// Job trace in the Philly format (submit_s, duration_s, num_gpus or nodes8) instead of generated jobs.
    #[arg(long, value_name = "FILE")]
    pub jobs: Option<PathBuf>,
    /// Incidents of this CSV (node,start_h,end_h,category), replayed instead of sampled.
    #[arg(long, value_name = "FILE")]
    pub incidents: Option<PathBuf>,
    /// Nodes of that log, those without incidents included.
    #[arg(long, value_name = "N", requires = "incidents")]
    pub log_nodes: Option<usize>,
    /// Length of that log in hours, above 0 and below 1,000,000.
    #[arg(long, value_name = "H", requires = "incidents", value_parser = positive)]
    pub log_hours: Option<f64>,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// What a swap brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Repair {
    /// Another node of the fleet; jobs of a day.
    Replaced,
    /// The same node, repaired; jobs of four hours.
    Repaired,
}

/// The published document; an interval is the 95 % one over the seeds.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    nodes: usize,
    hours: f64,
    p0: f64,
    incidents: &'static str,
    jobs: &'static str,
    policies: Vec<Row>,
    gains: Vec<GainRow>,
}

/// Where the utilisation gained over no validation comes from, in shares of all node-hours.
#[derive(Serialize)]
struct GainRow {
    policy: &'static str,
    utilisation: f64,
    from_validation: f64,
    from_repair_rule: f64,
    interval: GainIntervals,
}

#[derive(Serialize)]
struct GainIntervals {
    utilisation: [f64; 2],
    from_validation: [f64; 2],
    from_repair_rule: [f64; 2],
}

#[derive(Serialize)]
struct Row {
    policy: &'static str,
    utilisation: f64,
    validation_h: f64,
    mtbi_h: Option<f64>,
    incidents_per_node: f64,
    seeds: usize,
    interval: Intervals,
}

#[derive(Serialize)]
struct Intervals {
    utilisation: [f64; 2],
    validation_h: [f64; 2],
    mtbi_h: Option<[f64; 2]>,
    incidents_per_node: [f64; 2],
}

/// Simulates.
pub fn run(options: &Options) -> Ended {
    let world = world(options)?;
    let mut bar = Bar::new();
    let found = compare(&world.settings, options.seeds, world.parts(), &mut |share| bar.show(share));
    bar.done();
    let found = found.code(USAGE)?;
    let gains = gains(&found);
    if options.json {
        let word = |given: bool, yes, no| if given { yes } else { no };
        out::json(&Report {
            schema: "muster.simulate",
            version: 1,
            nodes: world.settings.nodes,
            hours: world.settings.hours,
            p0: world.settings.p0,
            incidents: word(options.incidents.is_some(), "replayed", "fitted law"),
            jobs: word(options.jobs.is_some(), "trace", "fitted law"),
            policies: found.iter().map(row).collect(),
            gains: gains.iter().map(gain_row).collect(),
        })?;
    } else {
        let sources: Vec<String> = gains.iter().map(source).collect();
        out::line(&format!("{}\n\n{}\n\n{}", table(&found), chart(&found), sources.join("\n")))?;
        if let Some(said) = few(options.seeds) {
            out::line(&format!("\n{said}"))?;
        }
    }
    Ok(PASS)
}

fn world(options: &Options) -> Result<World, Problem> {
    let mut world = match options.repair {
        Repair::Replaced => World::replaced(),
        Repair::Repaired => World::repaired(),
    };
    world.settings.nodes = options.nodes as usize;
    world.settings.hours = options.hours;
    world.settings.p0 = options.p0.unwrap_or(world.settings.p0);
    if let Some(file) = &options.incidents {
        let history = log_of(file, options.log_nodes, options.log_hours)?.history(&[]);
        let replay = Replay::new(&history).ok_or_else(|| anyhow!("{}: no incident in it", file.display()));
        world.law = Law::Replay(replay.code(CONFIG)?);
    }
    if let Some(file) = &options.jobs {
        let text = input::text(file).code(CONFIG)?;
        let jobs = philly_jobs(&text, Limits::default()).with_context(|| file.display().to_string()).code(CONFIG)?;
        if jobs.is_empty() {
            return Err(Problem { code: CONFIG, error: anyhow!("{}: no job in it", file.display()) });
        }
        world.jobs = Jobs::Trace(jobs);
    }
    if let Jobs::Law(law) = &world.jobs
        && law.largest() > world.settings.nodes
    {
        let (largest, nodes) = (law.largest(), world.settings.nodes);
        out::note(format_args!(
            "generated jobs need up to {largest} nodes; only sizes that fit {nodes} nodes are used"
        ));
    }
    Ok(world)
}

fn row(s: &PolicySummary) -> Row {
    let ends = |i: Interval| [i.low, i.high];
    Row {
        policy: s.policy.name(),
        utilisation: s.utilisation.mean,
        validation_h: s.validation_h.mean,
        mtbi_h: s.mtbi_h.map(|i| i.mean),
        incidents_per_node: s.incidents_per_node.mean,
        seeds: s.seeds,
        interval: Intervals {
            utilisation: ends(s.utilisation),
            validation_h: ends(s.validation_h),
            mtbi_h: s.mtbi_h.map(ends),
            incidents_per_node: ends(s.incidents_per_node),
        },
    }
}

fn gain_row(gain: &Gain) -> GainRow {
    let ends = |i: Interval| [i.low, i.high];
    GainRow {
        policy: gain.policy.name(),
        utilisation: gain.total.mean,
        from_validation: gain.validation.mean,
        from_repair_rule: gain.repair_rule.mean,
        interval: GainIntervals {
            utilisation: ends(gain.total),
            from_validation: ends(gain.validation),
            from_repair_rule: ends(gain.repair_rule),
        },
    }
}

/// `selector: of the +12.0 points of utilisation, 9.0 [8.1, 9.9] come from validating, 3.0 [2.2, 3.8] from the repair rule`.
fn source(gain: &Gain) -> String {
    let show = |i: Interval| format!("{:.1} [{:.1}, {:.1}]", i.mean * 100.0, i.low * 100.0, i.high * 100.0);
    format!(
        "{}: of the {:+.1} points of utilisation over absence, {} come from validating, {} from the repair rule",
        gain.policy.name(),
        gain.total.mean * 100.0,
        show(gain.validation),
        show(gain.repair_rule)
    )
}

/// Seeds below which an interval says little.
const ENOUGH: u64 = 10;

/// What to make of the intervals where the seeds are few.
fn few(seeds: u64) -> Option<String> {
    match seeds {
        1 => Some("One seed gives no interval: --seeds 10 shows how far the results vary.".to_owned()),
        2..ENOUGH => Some(format!(
            "In brackets 95 % intervals over {seeds} seeds, cut off at what is possible. So few seeds make them wide: try --seeds {ENOUGH}."
        )),
        _ => None,
    }
}

fn table(found: &[PolicySummary]) -> String {
    let show = |i: Interval, scale: f64| format!("{:.2} [{:.2}, {:.2}]", i.mean * scale, i.low * scale, i.high * scale);
    let row = |s: &PolicySummary| {
        vec![
            s.policy.name().to_owned(),
            show(s.utilisation, 100.0),
            show(s.validation_h, 1.0),
            s.mtbi_h.map_or("-".to_owned(), |i| show(i, 1.0)),
            show(s.incidents_per_node, 1.0),
        ]
    };
    let head = ["policy", "utilisation %", "validation h/node", "MTBI h", "incidents/node"];
    out::table(&head, &found.iter().map(row).collect::<Vec<_>>())
}

/// Utilisation as bars of at most fifty characters.
fn chart(found: &[PolicySummary]) -> String {
    let bar = |s: &PolicySummary| {
        let share = s.utilisation.mean.clamp(0.0, 1.0);
        let (full, name) = ((share * 50.0).round() as usize, s.policy.name());
        format!("{name:<11}|{}{}| {:.1} %", "#".repeat(full), " ".repeat(50 - full), 100.0 * share)
    };
    found.iter().map(bar).collect::<Vec<_>>().join("\n")
}

/// One line on standard error, in a terminal only.
struct Bar {
    started: Instant,
    terminal: bool,
}

impl Bar {
    fn new() -> Self {
        Self { started: Instant::now(), terminal: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, share: f64) {
        if !self.terminal {
            return;
        }
        let (full, elapsed) = ((share * 30.0) as usize, self.started.elapsed().as_secs_f64());
        let left = elapsed / share.max(1e-3) - elapsed;
        let (done, rest) = ("#".repeat(full), " ".repeat(30_usize.saturating_sub(full)));
        let _ = write!(std::io::stderr(), "\r\x1b[K[{done}{rest}] {:3.0} %, {left:.0} s left", share * 100.0);
    }

    fn done(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_seeds_are_said_to_be_few() {
        assert!(few(1).unwrap().starts_with("One seed gives no interval"));
        assert!(few(3).unwrap().contains("over 3 seeds"));
        assert_eq!(few(ENOUGH), None);
    }
}
