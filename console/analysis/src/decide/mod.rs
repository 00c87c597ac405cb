//! What is said of a node: from many metrics to a state per component and per node.
//!
//! Every node is compared with the other nodes only, so that being slower never improves what is said of it; a noisy
//! metric says nothing of its own accord and changes nothing of what the others say; and a healthy run is free of
//! false findings with a probability that [`Settings`] fixes.

mod against_frozen;
mod average;
mod budget;
pub mod calibrate;
mod calm;
mod cell;
mod clusters;
mod components;
mod decision;
mod families;
mod few;
mod fleet;
mod frozen;
mod grid;
mod law;
mod measured;
mod parts;
mod peers;
mod quantile;
mod radix;
mod reference;
mod settings;
mod sorted;
mod stopped;
mod stretch;
pub(crate) mod student;
mod stutter;
mod tails;
mod views;
mod witnesses;

pub use decision::{
    Average, Cell, ComponentDecision, Decision, KindDecision, Limiting, NodeDecision, SlowerRun, View, Why,
};
pub use fleet::{Fleet, Metric};
pub use frozen::{Frozen, Refusal, freeze};
pub use settings::Settings;
pub(crate) use stretch::outside;

use against_frozen::Whole;
use measured::Measured;

/// Decides on every node of `fleet`.
#[must_use]
pub fn decide(fleet: &Fleet<'_>, settings: &Settings) -> Decision {
    let (measured, mut cells) = measured::decide(fleet, settings);
    witnesses::raise(fleet, settings, &measured, &mut cells);
    let parts = parts::Parts::of(&fleet.metrics, &measured);
    stopped::warn(fleet, settings, &parts, &measured, &mut cells);
    stutter::warn(fleet, settings, &parts, &measured, &mut cells);
    let averages = families::averages(fleet, settings, &measured, &parts);
    let nodes = components::nodes(fleet, settings, (&measured, &cells), &parts, &averages);
    let metrics_of = parts.components.into_iter().map(|(_, metrics)| metrics).collect();
    Decision { nodes, metrics_of, slower_runs: slower_runs(fleet, settings, &measured), cells }
}

/// Metrics in which the run as a whole is slower than the runs before it.
fn slower_runs(fleet: &Fleet<'_>, settings: &Settings, measured: &[Measured]) -> Vec<SlowerRun> {
    let whole = |metric: usize| {
        let of = &fleet.metrics[metric];
        let column = &measured[metric].column;
        let whole = Whole { column, frozen: of.frozen?, direction: of.direction };
        (column.median.len() > 0 && whole.scale().is_finite()).then_some(whole)
    };
    let all: Vec<_> = (0..measured.len()).filter_map(|metric| Some((metric, whole(metric)?))).collect();
    let mut noise: Vec<u64> = all.iter().zip(0..).map(|((_, run), at)| budget::key(run.scale(), at)).collect();
    let mut found = Vec::new();
    budget::Shares::of(all.len()).deal(&mut noise, |at, share| {
        let (metric, run) = &all[at as usize];
        found.extend(run.finding(*metric, share, settings));
    });
    found.sort_unstable_by_key(|run| run.metric);
    found
}
