//! Does a window do as well on steps that had no part in choosing it?
//!
//! The window was chosen because it looked well; what it costs is asked of the steps after it, in blocks of its length
//! (shorter ones where there is no room, which only look worse).

use muster_wire::Direction;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::levels::thousands;
use super::search::{Settings, Window};
use crate::{Sample, one_sided, repeatability};

/// Parts of the fleet that are looked at apart, two nodes at least in each.
const PARTS: usize = 4;
/// Shortest block, as a share of the window.
const SHORTEST: f64 = 0.25;
/// Confidence of the bound.
const CONFIDENCE: f64 = 0.95;
/// Cost of a step over its node's median that is counted as a stall in sentences.
const STALL: f64 = 1.5;

/// What the blocks after a window say.
pub(super) struct HeldOut {
    /// Upper 95 % confidence limit of the loss of repeatability.
    pub(super) bound: f64,
    /// Blocks it is taken from.
    pub(super) blocks: Vec<Window>,
}

/// Loss on the blocks after `window`; `None` where too few steps follow it.
pub(super) fn held_out(
    traces: &[Vec<f64>],
    dir: Direction,
    settings: &Settings,
    (window, fixed): (Window, Window),
) -> Option<HeldOut> {
    let blocks = blocks(window, fixed)?;
    let parts = PARTS.min(traces.len() / 2).max(1);
    let mut losses = Vec::with_capacity(parts);
    for part in 0..parts {
        let nodes: Vec<&Vec<f64>> = traces.iter().skip(part).step_by(parts).collect();
        let over = |at: Window| {
            let samples: Vec<Sample> = nodes.iter().filter_map(|t| Sample::new(at.of(t)?).ok()).collect();
            repeatability(&samples.iter().collect::<Vec<_>>(), dir, settings.tau)
        };
        let whole = over(fixed).filter(|r| *r > 0.0)?;
        losses.push(blocks.iter().map(|b| Some((whole - over(*b)?) / whole)).collect::<Option<Vec<f64>>>()?);
    }
    Some(HeldOut { bound: upper(&losses), blocks })
}

/// Upper limit of the mean of a table of parts by blocks, from how the means of both scatter.
fn upper(losses: &[Vec<f64>]) -> f64 {
    let (parts, blocks) = (losses.len(), losses[0].len());
    let of_parts: Vec<f64> = losses.iter().map(|row| row.iter().sum::<f64>() / blocks as f64).collect();
    let of_blocks: Vec<f64> =
        (0..blocks).map(|k| losses.iter().map(|row| row[k]).sum::<f64>() / parts as f64).collect();
    let mean = of_parts.iter().sum::<f64>() / parts as f64;
    let variance = |means: &[f64]| {
        let n = means.len() as f64;
        means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0) / n
    };
    let freedom = (parts + blocks).saturating_sub(2).max(1) as f64;
    let t = StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(CONFIDENCE));
    mean + t * (variance(&of_parts) + variance(&of_blocks)).sqrt()
}

/// At least two blocks behind the window.
fn blocks(window: Window, fixed: Window) -> Option<Vec<Window>> {
    let first = window.end();
    let rest = fixed.end().checked_sub(first)?;
    let measured = window.measured.min(rest / 2);
    if measured == 0 || (measured as f64) < SHORTEST * window.measured as f64 {
        return None;
    }
    Some((0..rest / measured).map(|k| Window { warmup: first + k * measured, measured }).collect())
}

/// What the window misses that the steps after it have, in a sentence: over all nodes together the later steps are worse
/// than the window's by more than the loss allowed, and by more than blocks miss of their own surroundings.
pub(super) fn missed(
    traces: &[Vec<f64>],
    dir: Direction,
    settings: &Settings,
    (window, found): (Window, &HeldOut),
) -> Option<String> {
    let end = found.blocks.last()?.end();
    let pooled = |take: &dyn Fn(usize) -> bool| {
        let own = |trace: &Vec<f64>| {
            let level = Sample::new(trace.get(window.warmup..end)?).ok()?.median();
            let steps = (window.warmup..end).filter(|&i| take(i)).map(|i| trace[i] / level);
            (level > 0.0).then(|| steps.collect::<Vec<f64>>())
        };
        Sample::new(&traces.iter().filter_map(own).flatten().collect::<Vec<_>>()).ok()
    };
    let apart = |block: Window| {
        let (inside, outside) = (pooled(&|i| block.holds(i))?, pooled(&|i| !block.holds(i))?);
        Some((1.0 - one_sided(&outside, &inside, dir, settings.tau), inside, outside))
    };
    let (distance, inside, outside) = apart(window)?;
    let usual: Vec<f64> = found.blocks.iter().filter_map(|b| Some(apart(*b)?.0)).collect();
    let usual = usual.iter().sum::<f64>() / usual.len().max(1) as f64;
    (distance > settings.max_loss.max(0.0) + usual).then(|| {
        let stalls = |sample: &Sample| {
            let slow = |v: &&f64| if dir == Direction::HigherIsBetter { **v * STALL < 1.0 } else { **v > STALL };
            100.0 * sample.values().iter().filter(slow).count() as f64 / sample.len() as f64
        };
        format!(
            "the window misses slow steps of the {} after it (similarity {:.2}): {:.2} % of those take over {STALL} times the \
             median, {:.2} % of the window's",
            thousands(end - window.end()),
            1.0 - distance,
            stalls(&outside),
            stalls(&inside)
        )
    })
}
