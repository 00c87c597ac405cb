//! What is said of a case and of its suspects.

use muster_logs::Category;
use muster_playbook::report::rfc3339;
use muster_triage::SURE;
use muster_triage::report::{Kind, Report, Suspect};

use crate::snapshot::Testing;
use crate::text::wrap;
use crate::theme::Role;

/// Seconds of an offline diagnosis where every test passes: on a few quick nodes, and on many or slow ones; and of one more trial of
/// the reference job that times out.
const LEAST_S: usize = 60;
const TESTS_S: usize = 120;
const TRIAL_S: usize = 40;

/// How a category is drawn.
pub(crate) fn role(report: &Report) -> Role {
    match report.category {
        Category::None => Role::Text,
        Category::Undecided => Role::Attention,
        _ if report.suspects.first().is_some_and(|suspect| suspect.confidence >= SURE) => Role::Act,
        _ => Role::Attention,
    }
}

/// The verdict in lines of `room` cells: category in plain words, sentence, action, and with `hint` the command that drains the node.
pub(crate) fn head(report: &Report, room: usize, hint: bool) -> Vec<(String, Role)> {
    let mut lines = vec![(format!("{}: {}", report.category.name(), report.category.meaning()), role(report))];
    let sentence = match report.suspects.first() {
        Some(first) => first.sentence.as_str(),
        None if report.marked_wrong.is_empty() => "Nothing in what was collected names a cause.",
        None => "All that was found is marked as wrong.",
    };
    lines.extend(wrap(sentence, room).into_iter().map(|line| (line, Role::Text)));
    lines.extend(wrap(&format!("Next: {}", report.action), room).into_iter().map(|line| (line, Role::Head)));
    if let Some(drain) = report.drain.as_ref().filter(|_| hint) {
        lines.extend(wrap(&format!("Drain (D copies it): {drain}"), room).into_iter().map(|line| (line, Role::Dim)));
    }
    lines
}

/// `rank 18 on node084, GPU 2, mlx5_3`.
pub(crate) fn who(suspect: &Suspect) -> String {
    let mut said = match (suspect.rank, &suspect.node) {
        (Some(rank), Some(node)) => format!("rank {rank} on {node}"),
        (Some(rank), None) => format!("rank {rank}"),
        (None, Some(node)) => node.clone(),
        (None, None) => match suspect.kind {
            Kind::UserCode => "the program".to_owned(),
            Kind::Storage => "storage".to_owned(),
            _ => "nobody".to_owned(),
        },
    };
    if let Some(gpu) = suspect.gpu {
        said += &format!(", GPU {gpu}");
    }
    if let Some(element) = &suspect.element {
        said += &format!(", {element}");
    }
    said
}

/// What is suspected, in the words of the field.
pub(crate) const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Node => "node",
        Kind::Rank => "process",
        Kind::Gpu => "GPU",
        Kind::Link => "link",
        Kind::Nic => "adapter",
        Kind::Switch => "switch",
        Kind::Storage => "storage",
        Kind::UserCode => "program",
        Kind::None => "nobody",
    }
}

/// A time of day in UTC, with a tenth where the clock's error is below five seconds: `20:12:44.1`.
pub(crate) fn clock(at_s: f64, error_s: f64) -> String {
    let ms = (at_s.max(0.0) * 1e3).round() as u64;
    let whole = rfc3339(ms).get(11..19).unwrap_or_default().to_owned();
    if error_s < 5.0 { format!("{whole}.{}", ms % 1000 / 100) } else { whole }
}

/// How long an offline diagnosis of so many nodes takes: from one that finds nothing to one that halves them down to the last pair and
/// waits for time-outs each time.
pub(crate) fn testing_takes(nodes: usize) -> String {
    let trials = 2 * usize::BITS.saturating_sub(nodes.max(2).leading_zeros()) as usize;
    let most = (TESTS_S + trials * TRIAL_S).div_ceil(60);
    format!("{} to {most} minutes", LEAST_S.div_ceil(60))
}

/// `Offline diagnosis of n[001-004], 42 s, c cancels: pairs of nodes, chosen by bisection`.
pub(crate) fn testing(testing: &Testing, now_ms: u64) -> String {
    let elapsed = lasting(now_ms.saturating_sub(testing.began_ms) as f64 / 1e3);
    match testing.cancelling {
        true => format!("Offline diagnosis of {}, {elapsed}: cancelling", testing.nodes),
        false => format!("Offline diagnosis of {}, {elapsed}, c cancels: {}", testing.nodes, testing.step),
    }
}

/// `40 s`, `10 min 2 s`, `3 h 5 min`.
pub(crate) fn lasting(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// An error of a clock: `±0.05 s`, `±1.2 s`, `±60 s`.
pub(crate) fn error(error_s: f64, ascii: bool) -> String {
    let sign = if ascii { "+-" } else { "±" };
    match error_s {
        e if e < 0.095 => format!("{sign}{e:.2} s"),
        e if e < 9.95 => format!("{sign}{e:.1} s"),
        e => format!("{sign}{e:.0} s"),
    }
}

/// Ranks as ranges: `0-511,513`, and how many more where that is longer than `room`.
pub(crate) fn ranges(ranks: &[u32], room: usize, ascii: bool) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match parts.last_mut() {
            Some((_, end)) if *end + 1 == *rank => *end = *rank,
            _ => parts.push((*rank, *rank)),
        }
    }
    let part = |(from, to): &(u32, u32)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    let all = parts.iter().map(part).collect::<Vec<_>>().join(",");
    if all.len() <= room {
        return all;
    }
    let mark = if ascii { "~" } else { "…" };
    let mut said = String::new();
    for one in parts.iter().map(part) {
        if said.len() + one.len() + 2 > room {
            break;
        }
        said += &format!("{one},");
    }
    format!("{said}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_ranges_and_cut_between_them() {
        assert_eq!(ranges(&[0, 1, 2, 5], 20, false), "0-2,5");
        assert_eq!(ranges(&[0, 2, 4, 6, 8, 10, 12], 9, false), "0,2,4,6,…");
        assert_eq!(ranges(&[], 9, false), "");
    }

    #[test]
    fn a_clock_tells_tenths_only_where_it_knows_them() {
        assert_eq!(
            (clock(1_760_000_593.25, 0.05), clock(1_760_000_593.25, 60.0)),
            ("09:03:13.2".into(), "09:03:13".into())
        );
        assert_eq!([0.05, 1.23, 60.0].map(|e| error(e, false)), ["±0.05 s", "±1.2 s", "±60 s"]);
    }
}
