//! What pairs of nodes point at, in sentences and as maps.

use muster_analysis::network::localise::SURE;
use muster_analysis::network::{LOSS, LOSS_FLOOR, judged};
use muster_page::{Heat, Line, Part, State};
use muster_playbook::report::{PairsReport, RunReport, accusation, warning};
use muster_tui::usual;
use muster_wire::Direction;

use crate::judge::Pairs;

/// A pair that delivers less than this share of the usual is counted as slow in words.
const SLOW: f32 = 0.75;
/// Maps on one page.
const MAPS: usize = 4;

/// The findings, then a map of each metric in which faults are looked for.
pub(super) fn parts(report: &RunReport, pairs: Option<&Pairs>) -> Vec<Part> {
    let Some(network) = &report.network else { return Vec::new() };
    let states = states(network);
    let line = |text: String| Line {
        state: states.iter().find(|(said, _)| *said == text).map(|(_, state)| *state).or_else(|| of_words(&text)),
        text: text.trim_start().to_owned(),
        next: String::new(),
    };
    let mut parts = vec![Part::List(network.lines().into_iter().map(line).collect())];
    let all = pairs.into_iter().flat_map(|pairs| pairs.matrices.keys().map(move |name| (pairs, name)));
    let shown = all.filter(|(_, name)| judged(name)).take(MAPS);
    parts.extend(shown.filter_map(|(pairs, name)| map(pairs, name)).map(Part::Heat));
    parts
}

/// What each accusation and each warning makes of its element.
fn states(network: &PairsReport) -> Vec<(String, State)> {
    let sure = |confidence: f64| if confidence >= SURE { State::Fail } else { State::Unknown };
    let suspects = network.suspects.iter().map(|suspect| (accusation(suspect), sure(suspect.found.confidence)));
    suspects.chain(network.warnings.iter().map(|found| (warning(found), State::Warn))).collect()
}

/// The same of the other lines of [`PairsReport::lines`], which say it first.
fn of_words(line: &str) -> Option<State> {
    let words = [("undecided", State::Unknown), ("topology says", State::Warn), ("left out", State::NotRun)];
    words.into_iter().find(|(word, _)| line.starts_with(word)).map(|(_, state)| state)
}

fn map(pairs: &Pairs, metric: &str) -> Option<Heat> {
    let shown = pairs.picture(metric)?;
    let names: Vec<String> = shown.endpoints.iter().map(|endpoint| endpoint.name.clone()).collect();
    let leaf = |at: usize| shown.endpoints.get(at).and_then(|endpoint| endpoint.leaf);
    let edges: Vec<usize> = (1..names.len()).filter(|at| leaf(*at) != leaf(at - 1)).collect();
    let all = (0..names.len()).flat_map(|src| (0..names.len()).map(move |dst| (src, dst)));
    let known: Vec<(f32, usize, usize)> =
        all.filter_map(|(src, dst)| Some((shown.grid.get(src, dst)?, src, dst))).collect();
    let slow = known.iter().filter(|(share, ..)| *share < SLOW).count();
    let direction = shown.direction;
    let worst = known.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let worst = worst.map_or_else(String::new, |(share, src, dst)| {
        format!(" The worst is {} to {}: {}.", names[*src], names[*dst], usual::words(*share, direction))
    });
    let beyond = match direction {
        Direction::HigherIsBetter => format!("below {:.0} %", SLOW * 100.0),
        Direction::LowerIsBetter => format!("above {:.0} %", 100.0 / SLOW),
    };
    let said = format!("{} pairs measured, {slow} {beyond} of what is usual at their distance.{worst}", known.len());
    let mut caption = format!("Senders down, receivers across, in the order of their switches. {said}");
    if metric == LOSS {
        let least = LOSS_FLOOR * 100.0;
        caption += &format!(" What is below {least:.1} % counts as {least:.1} %.");
    }
    Some(Heat {
        title: format!("{metric} between {} endpoints", names.len()),
        caption,
        said,
        direction,
        ..Heat::of(&names, &edges, |src, dst| shown.grid.get(src, dst))
    })
}
