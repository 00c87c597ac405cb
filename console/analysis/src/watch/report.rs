//! Alerts and notes from what the detector knows at the moment.

use super::alert::{Alert, AlertKind, Also};
use super::column::Column;
use super::detector::starts;
use super::excursions::Calibration;
use super::first::First;
use super::group::Group;
use super::intake::Dropped;
use super::node::{Named, Node};
use super::order::median;
use super::sentence::{self, Order, Seen};
use super::settings::{BLOCK, METRICS, NODES};
use super::stop::Writer;

/// Seconds of evidence from which a further metric is told.
const COUNTS: f64 = 30.0;
/// Names of unknown metrics that are listed.
const LISTED: usize = 12;

/// The alert for a machine.
pub(super) fn alert(named: &Named, nodes: &[Node], columns: &[Column], alerted_s: f64) -> Alert {
    let since_s = starts(named.since);
    let node = &nodes[named.node].name;
    let Some(metric) = named.metric else {
        let peers = nodes.iter().filter(|other| other.quiet == 0).count();
        let sentence = sentence::silent(node, peers, alerted_s - since_s);
        return Alert { sentence, kind: AlertKind::Silent, peers, ..empty(node, since_s, alerted_s, named.score) };
    };
    let (column, now) = (&columns[metric], columns[metric].cells[named.node].now);
    let (peers, peer_median) = column.peers_of(named.node);
    let usual = now.ready.then_some((now.gain * now.peers - column.about.quantum, now.deviation));
    let (about, lasts_s) = (&column.about, alerted_s - since_s);
    let seen = Seen { metric: &column.name, about, value: now.value, peers, peer_median, usual, lasts_s };
    let also = also(named.node, metric, columns);
    let titles: Vec<&str> = also.iter().map(|(at, _)| title(&columns[*at])).collect();
    Alert {
        sentence: sentence::odd(node, &seen, &titles),
        also: also.iter().map(|(at, score)| Also { metric: columns[*at].name.clone(), score: *score }).collect(),
        ..measured(&seen, empty(node, since_s, alerted_s, named.score))
    }
}

/// The alert for a machine that moved before the job slowed.
pub(super) fn first(first: &First, nodes: &[Node], columns: &[Column], alerted_s: f64) -> Alert {
    let (column, job) = (&columns[first.metric], &columns[first.job]);
    let named = Named { node: first.node, metric: Some(first.metric), since: 0, score: peak(first, columns) };
    let said = Order {
        metric: title(column),
        ratio: first.ratio,
        lead: first.lead,
        job: title(job),
        job_ratio: first.job_ratio,
        of: column.about.of,
    };
    Alert {
        sentence: sentence::first(&nodes[first.node].name, &said),
        kind: AlertKind::FirstMover,
        since_s: first.since_s,
        ..alert(&named, nodes, columns, alerted_s)
    }
}

/// Standard deviations that a machine must have been off, by the change of its metric: the evidence itself may be over.
fn peak(first: &First, columns: &[Column]) -> f64 {
    let now = columns[first.metric].cells[first.node].now;
    let then = (first.ratio - 1.0).abs() / now.sigma;
    if then.is_finite() { then } else { now.z.abs() }
}

/// The alert for a group that has a label.
pub(super) fn group(group: &Group, metric: usize, nodes: &[Node], columns: &[Column], alerted_s: f64) -> Alert {
    let column = &columns[metric];
    let (label, members) = group.label.clone().unwrap_or_default();
    let value = |at: &usize| column.cells[*at].now.value;
    let mut own: Vec<f64> = group.nodes.iter().map(value).collect();
    let outside = (0..nodes.len()).filter(|at| !members.contains(at) && !group.nodes.contains(at));
    let mut others: Vec<f64> = outside.map(|at| value(&at)).filter(|value| value.is_finite()).collect();
    let first = group.nodes.first().copied().unwrap_or_default();
    let since_s = starts(group.since);
    let (peers, peer_median) = (others.len(), median(&mut others));
    let (about, value, lasts_s) = (&column.about, median(&mut own), alerted_s - since_s);
    let seen = Seen { metric: &column.name, about, value, peers, peer_median, usual: None, lasts_s };
    let names: Vec<&str> = group.nodes.iter().map(|at| nodes[*at].name.as_str()).collect();
    let score = column.cells[first].now.z.abs();
    Alert {
        sentence: sentence::group(&label, &names, members.len(), &seen),
        group: Some(label),
        ..measured(&seen, empty(&nodes[first].name, since_s, alerted_s, score))
    }
}

/// The note for a node that writes while the job stands still; `at_s` says how long after the start that began.
pub(super) fn writes(writer: &Writer, nodes: &[Node], columns: &[Column], at_s: f64) -> String {
    let column = &columns[writer.metric];
    let (about, value) = (&column.about, column.cells[writer.node].now.value);
    let (peers, peer_median) = column.peers_of(writer.node);
    let lasts_s = f64::from(writer.most) * BLOCK as f64;
    let seen = Seen { metric: &column.name, about, value, peers, peer_median, usual: None, lasts_s };
    sentence::writes(&nodes[writer.node].name, &seen, at_s)
}

/// The note for a group that no label names.
pub(super) fn together(group: &Group, metric: usize, nodes: &[Node], columns: &[Column], at_s: f64) -> String {
    sentence::together(group.nodes.len(), nodes.len(), &columns[metric].name, at_s)
}

fn measured(seen: &Seen<'_>, alert: Alert) -> Alert {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    Alert {
        metric: Some(seen.metric.to_owned()),
        value: finite(seen.value),
        peer_median: finite(seen.peer_median),
        unit: seen.about.symbol.to_owned(),
        peers: seen.peers,
        ..alert
    }
}

fn empty(node: &str, since_s: f64, alerted_s: f64, score: f64) -> Alert {
    Alert {
        node: node.to_owned(),
        metric: None,
        since_s,
        alerted_s,
        until_s: None,
        score,
        also: Vec::new(),
        peers: 0,
        value: None,
        peer_median: None,
        unit: String::new(),
        kind: AlertKind::Odd,
        group: None,
        sentence: String::new(),
    }
}

/// Other metrics with evidence against a node, the strongest first, each with its deviation.
fn also(node: usize, lead: usize, columns: &[Column]) -> Vec<(usize, f64)> {
    let evidence = |at: usize| columns[at].cells[node].evidence().0;
    let mut found: Vec<usize> = (0..columns.len()).filter(|&at| at != lead && evidence(at) >= COUNTS).collect();
    found.sort_by(|&a, &b| evidence(b).total_cmp(&evidence(a)));
    found.into_iter().map(|at| (at, columns[at].cells[node].now.z.abs())).collect()
}

fn title(column: &Column) -> &str {
    if column.about.title.is_empty() { &column.name } else { column.about.title }
}

/// What was left out, by reason.
pub(super) fn left_out(dropped: &Dropped, not_kept: u64) -> Vec<String> {
    let rows = |n: u64| if n == 1 { "1 row".to_owned() } else { format!("{n} rows") };
    let reasons = [
        (dropped.values, "left out: the value is no number, or larger than any sensor shows".to_owned()),
        (dropped.times, "left out: the time is no epoch second".to_owned()),
        (
            dropped.late,
            "left out: older than the block that was open, by a late exporter or a clock that ran backwards".to_owned(),
        ),
        (dropped.ahead, "left out: more than an hour ahead of all others".to_owned()),
        (dropped.names, format!("left out: past {NODES} nodes or {METRICS} metrics")),
    ];
    let mut notes: Vec<String> =
        reasons.into_iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{} {why}", rows(n))).collect();
    if not_kept > 0 {
        notes.push(format!("{not_kept} further alerts were counted only"));
    }
    notes
}

/// A rate with two digits, however small.
fn rate(rate: f64) -> String {
    // The exponent of the rounded rate: 0.00099999 has two digits as 0.0010.
    let rounded = format!("{:.1e}", rate.max(1e-9));
    let exponent: i32 = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let digits = usize::try_from(1 - exponent).unwrap_or(0);
    format!("{rate:.digits$}")
}

/// What a budget of false alarms comes to, and what it costs.
pub(super) fn budget(budget: f64, found: &Calibration) -> String {
    let wanted = if found.is_limited {
        format!(" ({budget} were asked for, which no figures exist for)")
    } else {
        String::new()
    };
    format!(
        "{} false alarms per machine-day{wanted}: {:.0} s of evidence name a machine, by {} short excursions in {:.2} machine-days \
         of this job and what is known of others. A clear fault is told after about {:.0} s, one that a single metric shows after \
         {:.0} s",
        rate(found.false_alarms_per_machine_day),
        found.evidence_s,
        found.excursions,
        found.machine_days,
        found.expected_delay_s,
        found.slowest_delay_s
    )
}

/// Gaps after which everything was learned again.
pub(super) fn gaps(count: u64) -> Option<String> {
    let gaps = if count == 1 { "1 gap".to_owned() } else { format!("{count} gaps") };
    (count > 0).then(|| format!("{gaps} of more than an hour: what was learned before was forgotten"))
}

/// Metrics that the catalogue does not know.
pub(super) fn unknown(names: &[&str]) -> Option<String> {
    let listed = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    let more = if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
    (!names.is_empty()).then(|| format!("not in the catalogue, compared without unit or limits: {listed}{more}"))
}
