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
    sentence::together(group.nodes.len(), nodes.len(), title(&columns[metric]), at_s)
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

#[cfg(test)]
mod tests {
    use muster_wire::telemetry;

    use super::super::cell::Side;
    use super::*;

    /// Nodes n0 to n5 and metrics in which n2 shows 300 and the others 500, each with so many blocks of full evidence against it.
    fn watched(metrics: &[(&str, u32)]) -> (Vec<Node>, Vec<Column>) {
        let nodes: Vec<Node> = (0..6).map(|node| Node { name: format!("n{node}"), ..Node::default() }).collect();
        let column = |&(name, blocks): &(&str, u32)| {
            let mut column = Column::new(name.to_owned(), *telemetry(name).unwrap(), 6, 0);
            column.cells.iter_mut().for_each(|cell| cell.now.value = 500.0);
            let odd = &mut column.cells[2];
            (odd.now.value, odd.now.z) = (300.0, -f64::from(blocks));
            (0..i64::from(blocks)).for_each(|block| odd.fast[Side::Below as usize].add(9.0, block, 130.0));
            column
        };
        (nodes, metrics.iter().map(column).collect())
    }

    #[test]
    fn an_alert_tells_the_leading_metric_and_others_with_half_a_minute_of_evidence_the_strongest_first() {
        let metrics = [("cpu_util_pct", 2), ("gpu_power_w", 9), ("tensor_active", 3), ("net_tx_gbs", 5)];
        let (nodes, columns) = watched(&metrics);
        let named = Named { node: 2, metric: Some(1), since: 100, score: 9.0 };
        let alert = alert(&named, &nodes, &columns, 1_200.0);
        let also: Vec<(&str, f64)> = alert.also.iter().map(|also| (also.metric.as_str(), also.score)).collect();
        assert_eq!(also, [("net_tx_gbs", 5.0), ("tensor_active", 3.0)]);
        let titles = ["net_tx_gbs", "tensor_active"].map(|name| telemetry(name).unwrap().title);
        assert!(
            alert.sentence.contains(&format!("3 min 20 s; also {}. Drain", titles.join(", "))),
            "{}",
            alert.sentence
        );
        assert_eq!((alert.node.as_str(), alert.metric.as_deref()), ("n2", Some("gpu_power_w")));
        assert_eq!((alert.value, alert.peer_median, alert.peers), (Some(300.0), Some(500.0), 5));
        assert_eq!((alert.unit.as_str(), alert.since_s, alert.score), ("W", 1_000.0, 9.0));
    }

    #[test]
    fn an_alert_for_silence_counts_who_still_reports() {
        let (mut nodes, columns) = watched(&[("gpu_power_w", 9)]);
        (nodes[2].quiet, nodes[4].quiet) = (7, 1);
        let named = Named { node: 2, metric: None, since: 100, score: 9.0 };
        let alert = alert(&named, &nodes, &columns, 1_200.0);
        assert_eq!((alert.kind, alert.peers, alert.metric.as_deref()), (AlertKind::Silent, 4, None));
        assert!(alert.sentence.starts_with("n2: no telemetry for 3 min 20 s while the job stands still and 4 peers"));
    }

    #[test]
    fn a_group_is_compared_with_those_that_do_not_share_its_label() {
        let (nodes, mut columns) = watched(&[("gpu_power_w", 9)]);
        // n3 has the label and is not odd; n5 reports nothing.
        (columns[0].cells[3].now.value, columns[0].cells[5].now.value) = (900.0, f64::NAN);
        let odd = Group { nodes: vec![2, 1], since: 100, label: Some(("leaf3".to_owned(), vec![1, 2, 3])) };
        let alert = group(&odd, 0, &nodes, &columns, 1_200.0);
        assert_eq!((alert.node.as_str(), alert.group.as_deref(), alert.score), ("n2", Some("leaf3"), 9.0));
        assert_eq!((alert.value, alert.peer_median, alert.peers), (Some(400.0), Some(500.0), 2));
        assert!(alert.sentence.starts_with("leaf3: 2 of its 3 nodes (n2, n1) differ together: "), "{}", alert.sentence);
    }

    #[test]
    fn what_was_left_out_is_counted_by_reason() {
        let dropped = Dropped { values: 1, late: 2, names: 3, ..Dropped::default() };
        let starts: Vec<String> = left_out(&dropped, 4).iter().map(|note| note.chars().take(21).collect()).collect();
        assert_eq!(
            starts,
            ["1 row left out: the v", "2 rows left out: olde", "3 rows left out: past", "4 further alerts were"]
        );
        assert_eq!(left_out(&Dropped::default(), 0), Vec::<String>::new());
        assert_eq!((gaps(0), gaps(1).is_some_and(|said| said.starts_with("1 gap of "))), (None, true));
        let names: Vec<String> = (0..=LISTED).map(|nr| format!("m{nr}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(unknown(&names).is_some_and(|said| said.ends_with(", m11 and 1 more")));
        assert!(unknown(&names[..LISTED]).is_some_and(|said| said.ends_with(", m11")));
        assert_eq!(unknown(&[]), None);
        assert_eq!([0.000_999_99, 0.05, 1.0, 12.3].map(rate), ["0.0010", "0.050", "1.0", "12"]);
    }

    #[test]
    fn a_budget_is_told_with_what_it_costs_and_where_it_cannot_be_kept() {
        let found = Calibration {
            evidence_s: 152.4,
            false_alarms_per_machine_day: 0.05,
            expected_delay_s: 125.25,
            slowest_delay_s: 182.4,
            machine_days: 0.106,
            excursions: 3,
            is_limited: false,
        };
        assert_eq!(
            budget(0.05, &found),
            "0.050 false alarms per machine-day: 152 s of evidence name a machine, by 3 short excursions in 0.11 machine-days of \
             this job and what is known of others. A clear fault is told after about 125 s, one that a single metric shows after \
             182 s"
        );
        let limited = Calibration { is_limited: true, ..found };
        assert!(budget(1e-9, &limited).starts_with(
            "0.050 false alarms per machine-day (0.000000001 were asked for, which no figures exist for): "
        ));
    }

    #[test]
    fn who_moved_first_is_told_since_his_metric_changed_and_by_how_much_it_must_have_been_off() {
        let (nodes, mut columns) = watched(&[("gpu_power_w", 9), ("tensor_active", 0)]);
        let of = First { node: 2, metric: 0, since_s: 940.0, ratio: 0.6, job: 1, job_ratio: 0.7, lead: (20.0, 60.0) };
        columns[0].cells[2].now.sigma = 0.05;
        let alert = first(&of, &nodes, &columns, 1_200.0);
        assert_eq!((alert.kind, alert.since_s, alert.alerted_s), (AlertKind::FirstMover, 940.0, 1_200.0));
        assert!((alert.score - 8.0).abs() < 1e-9, "{}", alert.score);
        assert!(alert.sentence.starts_with("n2: it moved first. Its GPU power fell by 40 % beside its peers, and 20 to 60 s later tensor core activity of the whole job fell by 30 %."), "{}", alert.sentence);
        columns[0].cells[2].now.sigma = f64::NAN;
        assert_eq!(first(&of, &nodes, &columns, 1_200.0).score, 9.0);
    }

    #[test]
    fn a_machine_that_was_compared_is_told_against_its_usual_level_without_the_quantum() {
        let (nodes, mut columns) = watched(&[("cpu_util_pct", 9)]);
        let named = Named { node: 2, metric: Some(0), since: 100, score: 9.0 };
        let now = &mut columns[0].cells[2].now;
        // It usually shows 0.5 of 802, which 2 % of no utilisation are part of.
        (now.gain, now.peers, now.deviation, now.ready) = (0.5, 802.0, -0.25, true);
        let told = alert(&named, &nodes, &columns, 1_200.0).sentence;
        assert!(told.contains("25 % below its usual level beside 5 peers (399.0 %)"), "{told}");
    }
}
