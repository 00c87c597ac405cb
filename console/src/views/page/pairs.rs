//! What pairs of nodes point at, in sentences and as maps.

use muster_analysis::network::judged;
use muster_page::{Heat, Line, Part, State};
use muster_playbook::report::RunReport;

use crate::judge::Pairs;

/// A pair that delivers less than this share of the usual is counted as slow in words.
const SLOW: f32 = 0.75;
/// Maps on one page.
const MAPS: usize = 4;

/// The findings, then a map of each metric in which faults are looked for.
pub(super) fn parts(report: &RunReport, pairs: Option<&Pairs>) -> Vec<Part> {
    let Some(network) = &report.network else { return Vec::new() };
    let line = |text: String| Line { state: state(&text), text: text.trim_start().to_owned(), next: String::new() };
    let mut parts = vec![Part::List(network.lines().into_iter().map(line).collect())];
    let shown = pairs
        .into_iter()
        .flat_map(|pairs| pairs.matrices.keys().filter(|name| judged(name)).map(move |name| (pairs, name)));
    parts.extend(shown.take(MAPS).filter_map(|(pairs, name)| map(pairs, name)).map(Part::Heat));
    parts
}

fn state(line: &str) -> Option<State> {
    match line {
        _ if line.starts_with("undecided") => Some(State::Unknown),
        _ if line.starts_with("warning") || line.starts_with("topology says") => Some(State::Warn),
        _ if line.starts_with("left out") => Some(State::NotRun),
        _ if line.contains("against its peers") => Some(State::Fail),
        _ => None,
    }
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
    let worst = known.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let worst = worst.map_or_else(String::new, |(share, src, dst)| {
        format!(" The worst is {} to {}: {:.0} % of the usual.", names[*src], names[*dst], share * 100.0)
    });
    let said = format!(
        "{} pairs measured, {slow} below {:.0} % of what is usual at their distance.{worst}",
        known.len(),
        SLOW * 100.0
    );
    Some(Heat {
        title: format!("{metric} between {} endpoints", names.len()),
        caption: format!("Senders down, receivers across, in the order of their switches. {said}"),
        said,
        ..Heat::of(&names, &edges, |src, dst| shown.grid.get(src, dst))
    })
}
