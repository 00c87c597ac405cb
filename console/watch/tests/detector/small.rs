//! The detector on small made jobs: who is named, who never is, and what bad input does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops where it is")]

use muster_analysis::Chance;
use muster_watch::{Alert, AlertKind, Lack, METRICS as METRICS_MOST, NODES, Settings, Watch};
use proptest::prelude::*;

const METRICS: [(&str, f64); 4] =
    [("tensor_active", 0.6), ("gpu_power_w", 500.0), ("net_tx_gbs", 50.0), ("cpu_util_pct", 40.0)];
const START: f64 = 1_760_000_000.0;

/// A value of second, node and metric, from what a healthy node would show; `None` where nothing is reported.
type Hurt<'a> = &'a dyn Fn(usize, usize, usize, f64) -> Option<f64>;

/// A job of identical nodes: a common wave, noise of 3 % a second, and whatever `hurt` makes of it.
fn job(nodes: usize, seconds: usize, seed: u64, hurt: Hurt<'_>) -> Vec<(f64, usize, usize, f64)> {
    let mut chance = Chance::new(seed);
    let mut ticks = Vec::new();
    for second in 0..seconds {
        let wave = 1.0 + 0.1 * (second as f64 / 7.0).sin();
        for (metric, (_, base)) in METRICS.iter().enumerate() {
            for node in 0..nodes {
                let healthy = base * wave * (1.0 + 0.03 * chance.normal());
                let time = START + second as f64 + 0.05 * node as f64 / nodes as f64;
                ticks.extend(hurt(second, node, metric, healthy).map(|value| (time, node, metric, value)));
            }
        }
    }
    ticks
}

/// The detector after these ticks; node `n` is called by `name`.
fn watched(ticks: &[(f64, usize, usize, f64)], nodes: usize, name: &dyn Fn(usize) -> String) -> Watch {
    let mut watch = Watch::new(Settings::default());
    let nodes: Vec<_> = (0..nodes).map(|node| watch.node(&name(node)).unwrap()).collect();
    let metrics: Vec<_> = METRICS.iter().map(|(name, _)| watch.metric(name).unwrap()).collect();
    ticks.iter().for_each(|&(time, node, metric, value)| watch.push(time, nodes[node], metrics[metric], value));
    watch.finish();
    watch
}

fn alerts(nodes: usize, seconds: usize, seed: u64, hurt: Hurt<'_>) -> Vec<Alert> {
    watched(&job(nodes, seconds, seed, hurt), nodes, &|node| format!("n{node}")).alerts().to_vec()
}

fn named(alerts: &[Alert]) -> Vec<&str> {
    alerts.iter().map(|alert| alert.node.as_str()).collect()
}

/// Node 2 at 60 % in two metrics from second 400 on.
fn one_slow(second: usize, node: usize, metric: usize, healthy: f64) -> Option<f64> {
    Some(if node == 2 && second >= 400 && metric < 2 { 0.6 * healthy } else { healthy })
}

fn healthy(_: usize, _: usize, _: usize, value: f64) -> Option<f64> {
    Some(value)
}

#[test]
fn a_slow_machine_is_named_within_two_minutes_with_what_was_seen() {
    let alerts = alerts(8, 800, 1, &one_slow);
    assert_eq!(named(&alerts), ["n2"]);
    let alert = &alerts[0];
    assert!((alert.alerted_s - START - 400.0) < 120.0 && (alert.since_s - START - 400.0).abs() <= 20.0, "{alert:?}");
    assert_eq!((alert.kind, alert.peers, alert.group.as_deref()), (AlertKind::Odd, 7, None));
    assert!(alert.sentence.contains("% below 7 peers (median"), "{}", alert.sentence);
    assert_eq!(alert.until_s, None, "it goes on");
}

#[test]
fn the_odd_one_of_four_is_named_and_with_three_nobody_is() {
    assert_eq!(named(&alerts(4, 800, 2, &one_slow)), ["n2"]);
    let three = watched(&job(3, 800, 2, &one_slow), 3, &|node| format!("n{node}"));
    assert!(three.alerts().is_empty());
    assert_eq!(three.lack(), Some(Lack::Nodes(3)));
}

/// The metric that leads when node 2 has this many times its usual wait for a CPU, round trip and context switches from second 400 on.
fn leading(wait: f64, trip: f64, switches: f64) -> Option<String> {
    let mut watch = Watch::new(Settings::default());
    let nodes: Vec<_> = (0..8).map(|node| watch.node(&format!("n{node}")).unwrap()).collect();
    let metrics =
        [("job_wait_pct", 10.0, wait), ("tcp_rtt_least_ms", 2.0, trip), ("job_switches_per_s", 900.0, switches)];
    let places: Vec<_> = metrics.iter().map(|(name, ..)| watch.metric(name).unwrap()).collect();
    let mut chance = Chance::new(31);
    for second in 0..800 {
        for (node, place) in nodes.iter().enumerate() {
            for ((_, base, factor), metric) in metrics.iter().zip(&places) {
                let hurt = if node == 2 && second >= 400 { *factor } else { 1.0 };
                let value = base * hurt * (1.0 + 0.05 * chance.normal());
                watch.push(START + f64::from(second), *place, *metric, value);
            }
        }
    }
    watch.finish();
    let [alert] = watch.alerts() else { return None };
    assert_eq!(alert.node, "n2");
    alert.metric.clone()
}

#[test]
fn what_follows_from_other_parts_does_not_lead_and_what_follows_from_other_nodes_names_nobody() {
    assert_eq!(leading(4.0, 9.0, 1.0).as_deref(), Some("job_wait_pct"));
    assert_eq!(leading(1.0, 9.0, 4.0).as_deref(), Some("tcp_rtt_least_ms"));
    assert_eq!(leading(1.0, 1.0, 4.0), None);
    assert_eq!(leading(1.0, 1.0, 1.0), None);
}

#[test]
fn an_alert_ends_when_the_machine_is_like_its_peers_again() {
    let alerts = alerts(8, 1_400, 3, &|second, node, metric, healthy| {
        if second < 700 { one_slow(second, node, metric, healthy) } else { Some(healthy) }
    });
    assert_eq!(named(&alerts), ["n2"]);
    // The evidence takes minutes to drain, which is no part of the fault.
    let until = alerts[0].until_s.unwrap() - START;
    assert!((690.0..=720.0).contains(&until), "{until}");
}

#[test]
fn a_machine_that_is_like_its_peers_at_the_end_of_a_recording_is_known_to_be_though_its_alert_is_open() {
    let seen = |until: usize| {
        let ticks = job(8, 800, 3, &|second, node, metric, healthy| {
            if second < until { one_slow(second, node, metric, healthy) } else { Some(healthy) }
        });
        let watch = watched(&ticks, 8, &|node| format!("n{node}"));
        assert_eq!((named(watch.alerts()), watch.alerts()[0].until_s), (vec!["n2"], None));
        watch.like_peers_since(0).map(|since_s| since_s - START)
    };
    assert!(seen(700).is_some_and(|since| (690.0..=720.0).contains(&since)), "{:?}", seen(700));
    assert_eq!(seen(800), None, "it goes on");
}

#[test]
fn a_standstill_of_everybody_accuses_nobody() {
    let stop = |second: usize, _, metric, healthy: f64| {
        Some(if (500..640).contains(&second) && metric != 3 { 0.02 * healthy } else { healthy })
    };
    assert!(alerts(8, 1_200, 4, &stop).is_empty());
}

/// From second 500 until `until` all stand still, while node 2 sends its checkpoint over the network.
fn uploads(seconds: usize, until: usize) -> Watch {
    let upload = |second: usize, node, metric, healthy: f64| {
        let share = match (node, metric) {
            (2, 2) => 0.8,
            (_, 3) => 1.0,
            _ => 0.02,
        };
        Some(if (500..until).contains(&second) { share * healthy } else { healthy })
    };
    watched(&job(8, seconds, 14, &upload), 8, &|node| format!("n{node}"))
}

#[test]
fn who_uploads_the_checkpoint_while_all_others_wait_is_noted_and_not_accused() {
    let watch = uploads(1_200, 640);
    assert!(watch.alerts().is_empty(), "{}", watch.alerts()[0].sentence);
    let said: Vec<String> = watch.notes().into_iter().filter(|note| note.contains("writing a checkpoint")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("n2: network throughput sent") && said[0].contains("alert if that lasts 10 min"),
        "{said:?}"
    );
}

#[test]
fn who_writes_for_longer_than_a_checkpoint_may_take_is_named() {
    let watch = uploads(1_300, 1_300);
    assert_eq!(named(watch.alerts()), ["n2"]);
    let told = watch.alerts()[0].alerted_s - START;
    assert!((1_100.0..1_130.0).contains(&told), "{told}");
}

/// The notes on writers and who is named, of a job that stands still from second 500 on while node 2 alone shows so much of `metric`.
fn alone_in_a_standstill(metric: &str, much: f64) -> (usize, Vec<String>) {
    let mut watch = Watch::new(Settings::default());
    let nodes: Vec<_> = (0..8).map(|node| watch.node(&format!("n{node}")).unwrap()).collect();
    let places = ["gpu_power_w", "tensor_active", metric].map(|name| watch.metric(name).unwrap());
    let mut chance = Chance::new(41);
    for second in 0..900 {
        let stands = second >= 500;
        for (node, at) in nodes.iter().enumerate() {
            let alone = if !stands {
                0.3 * much
            } else if node == 2 {
                much
            } else {
                0.0
            };
            let values = [if stands { 90.0 } else { 500.0 }, if stands { 0.0 } else { 0.6 }, alone];
            for (value, place) in values.into_iter().zip(places) {
                watch.push(START + f64::from(second), *at, place, value * (1.0 + 0.03 * chance.normal()));
            }
        }
    }
    watch.finish();
    let notes = watch.notes().iter().filter(|note| note.contains("writing a checkpoint")).count();
    (notes, watch.alerts().iter().map(|alert| alert.node.clone()).collect())
}

#[test]
fn who_sends_while_all_others_wait_may_write_and_who_receives_does_not() {
    assert_eq!(alone_in_a_standstill("net_tx_gbs", 12.0), (1, vec![]));
    assert_eq!(alone_in_a_standstill("net_rx_gbs", 12.0), (0, vec!["n2".to_owned()]));
}

/// Node 5 shows 70 % of the others from the start, is like them from second 600 on, and falls again at second `again`.
fn comes_back(again: usize) -> Watch {
    let slow = |second: usize, node, _, healthy: f64| {
        Some(if node == 5 && !(600..again).contains(&second) { 0.7 * healthy } else { healthy })
    };
    watched(&job(8, 1_300, 15, &slow), 8, &|node| format!("n{node}"))
}

#[test]
fn a_machine_that_becomes_like_its_peers_is_noted_and_not_accused_of_being_unlike_its_own_past() {
    let watch = comes_back(1_300);
    assert!(watch.alerts().is_empty(), "{}", watch.alerts()[0].sentence);
    let said = |note: &String| note.starts_with("n5 has been like its peers since 6");
    assert_eq!(watch.notes().iter().filter(|note| said(note)).count(), 1, "{:?}", watch.notes());
}

#[test]
fn a_machine_that_was_like_its_peers_for_five_minutes_is_named_when_it_leaves_them_again() {
    let watch = comes_back(1_000);
    assert_eq!(named(watch.alerts()), ["n5"]);
    let alert = &watch.alerts()[0];
    assert!((alert.since_s - START - 1_000.0).abs() <= 20.0 && alert.alerted_s - START < 1_130.0, "{alert:?}");
}

#[test]
fn a_machine_that_falls_to_the_level_of_another_role_is_named() {
    // Nodes 4 to 7 are of a stage that usually shows 60 % of the others; node 2 falls to that level.
    let stages = |second: usize, node: usize, _, healthy: f64| {
        Some(if node >= 4 || (node == 2 && second >= 400) { 0.6 * healthy } else { healthy })
    };
    assert_eq!(named(&alerts(8, 800, 16, &stages)), ["n2"]);
}

#[test]
fn a_machine_with_another_level_since_the_start_is_noted_and_not_accused() {
    let other = |_, node, _, healthy: f64| Some(if node == 5 { 0.7 * healthy } else { healthy });
    let watch = watched(&job(8, 900, 5, &other), 8, &|node| format!("n{node}"));
    assert!(watch.alerts().is_empty());
    assert!(watch.notes().iter().any(|note| note.starts_with("n5 has differed from its peers since the start")));
}

#[test]
fn in_a_hang_the_busy_one_among_the_idle_is_named_and_a_silent_one_as_silent() {
    let hang = |second: usize, node, metric, healthy: f64| {
        let idle = second >= 500 && metric != 3 && (node != 6 || metric != 1);
        Some(if idle { 0.02 * healthy } else { healthy })
    };
    let found = alerts(12, 700, 6, &hang);
    assert_eq!((named(&found), found[0].metric.as_deref()), (vec!["n6"], Some("gpu_power_w")));
    let gone = |second: usize, node, metric, healthy: f64| match second {
        500.. if node == 6 => None,
        500.. if metric != 3 => Some(0.02 * healthy),
        _ => Some(healthy),
    };
    let found = alerts(12, 700, 7, &gone);
    assert_eq!((named(&found), found[0].kind, &found[0].metric), (vec!["n6"], AlertKind::Silent, &None));
}

/// A job of two leaves of eight nodes each; `odd` nodes of the first lose three fifths of their network.
fn with_leaves(odd: usize) -> Watch {
    let leaf = |second: usize, node: usize, metric, healthy: f64| {
        Some(if node < odd && second >= 400 && metric == 2 { 0.4 * healthy } else { healthy })
    };
    let mut watch = Watch::new(Settings::default());
    let nodes: Vec<_> = (0..16).map(|node| watch.node(&format!("n{node}")).unwrap()).collect();
    nodes.iter().enumerate().for_each(|(at, &node)| watch.label(node, "leaf", if at < 8 { "leaf1" } else { "leaf2" }));
    let metrics: Vec<_> = METRICS.iter().map(|(name, _)| watch.metric(name).unwrap()).collect();
    let ticks = job(16, 900, 8, &leaf);
    ticks.iter().for_each(|&(time, node, metric, value)| watch.push(time, nodes[node], metrics[metric], value));
    watch
}

#[test]
fn a_group_is_called_by_its_label_also_where_it_is_half_of_the_job() {
    for odd in [6, 8] {
        let watch = with_leaves(odd);
        let groups: Vec<_> = watch.alerts().iter().map(|alert| alert.group.as_deref()).collect();
        assert_eq!(groups, [Some("leaf1")], "{odd}");
        let said = &watch.alerts()[0].sentence;
        assert!(
            said.starts_with(&format!("leaf1: {odd} of its 8 nodes")) && said.contains("% below 8 peers"),
            "{said}"
        );
    }
}

#[test]
fn a_group_without_a_label_is_noted_and_nobody_is_accused() {
    let some = |second: usize, node: usize, metric, healthy: f64| {
        Some(if node < 6 && second >= 400 && metric == 2 { 0.4 * healthy } else { healthy })
    };
    let watch = watched(&job(16, 900, 8, &some), 16, &|node| format!("n{node}"));
    assert!(watch.alerts().is_empty(), "{:?}", watch.alerts());
    assert!(
        watch
            .notes()
            .iter()
            .any(|note| note.contains("6 of 16 nodes left the others together in network throughput sent,"))
    );
}

#[test]
fn what_a_group_shows_in_other_metrics_is_its_own_and_a_machine_beside_it_is_still_named() {
    let group = |second: usize, node: usize, metric| match metric {
        2 if node < 6 && second >= 400 => 0.4,
        0 if node < 4 && second >= 410 => 0.85,
        _ => 1.0,
    };
    let found = alerts(16, 1_200, 11, &|second, node, metric, healthy| Some(group(second, node, metric) * healthy));
    assert!(found.is_empty(), "{}", found[0].sentence);
    let found = alerts(16, 1_200, 11, &|second, node, metric, healthy| {
        let own = if node == 10 && metric == 1 && second >= 600 { 0.6 } else { 1.0 };
        Some(own * group(second, node, metric) * healthy)
    });
    assert_eq!(named(&found), ["n10"]);
    let two = |second: usize, node, metric, healthy: f64| {
        Some(if node < 2 && metric == 0 && second >= 400 { 0.7 * healthy } else { healthy })
    };
    assert_eq!(named(&alerts(16, 1_200, 12, &two)), ["n0", "n1"], "two at once are two machines");
}

#[test]
fn what_is_missing_is_said() {
    let of = |ticks: &[_], nodes| watched(ticks, nodes, &|node| format!("n{node}")).lack();
    assert_eq!(of(&job(8, 600, 9, &healthy), 8), None);
    assert_eq!(of(&job(8, 100, 9, &healthy), 8), Some(Lack::Short(10)));
    let apart = job(8, 600, 9, &|second, node, _, value| (second / 75 == node).then_some(value));
    assert_eq!(of(&apart, 8), Some(Lack::Overlap));
}

#[test]
fn hostile_ticks_are_counted_and_change_nothing() {
    let ticks = job(8, 800, 10, &one_slow);
    let mut dirty = Vec::new();
    for &(time, node, metric, value) in &ticks {
        dirty.extend([(time, node, metric, f64::NAN), (time, node, metric, 1e308), (f64::NAN, node, metric, 1.0)]);
        dirty.extend([
            (time, node, metric, value),
            (time - 50.0, node, metric, 7.0 * value),
            (9e10, node, metric, 1.0),
        ]);
    }
    let clean = watched(&ticks, 8, &|node| format!("n{node}"));
    let watch = watched(&dirty, 8, &|node| format!("n{node}"));
    assert_eq!(watch.alerts(), clean.alerts());
    let span = Some((START, START + 799.0 + 0.05 * 7.0 / 8.0));
    assert_eq!((watch.span(), clean.span()), (span, span));
    assert_eq!(Watch::new(Settings::default()).span(), None);
    let (n, dropped) = (ticks.len() as u64, watch.dropped());
    assert_eq!((dropped.values, dropped.times), (2 * n, n));
    assert!(dropped.ahead >= n - 32 && dropped.late >= n * 9 / 10, "{dropped:?}");
}

#[test]
fn gaps_are_counted_and_what_was_learned_before_them_is_forgotten() {
    let mut ticks = job(6, 400, 13, &healthy);
    for hours in [3.0, 6.0] {
        ticks.extend(
            job(6, 400, 13, &healthy)
                .into_iter()
                .map(|(time, node, metric, value)| (time + 3_600.0 * hours, node, metric, value)),
        );
    }
    let watch = watched(&ticks, 6, &|node| format!("n{node}"));
    assert!(watch.alerts().is_empty());
    assert_eq!(watch.notes()[0], "2 gaps of more than an hour: what was learned before was forgotten");
}

#[test]
fn a_million_names_are_bounded_and_counted() {
    let mut watch = Watch::new(Settings::default());
    watch.metric("gpu_power_w").unwrap();
    let taken = (0..1_000_000).filter(|n| watch.node(&format!("n{n}")).is_some()).count();
    assert_eq!((taken, watch.dropped().names), (NODES, 1_000_000 - NODES as u64));
    let mut watch = Watch::new(Settings::default());
    watch.node("n0").unwrap();
    let taken = (0..100_000).filter(|n| watch.metric(&format!("m{n}")).is_some()).count();
    assert_eq!((taken, watch.dropped().names), (METRICS_MOST, 100_000 - METRICS_MOST as u64));
}

#[test]
fn a_healthy_job_of_noisy_nodes_names_nobody_over_many_seeds() {
    for seed in 0..40 {
        let found = alerts(8, 1_500, 100 + seed, &healthy);
        assert!(found.is_empty(), "seed {seed}: {}", found[0].sentence);
    }
}

#[test]
fn a_machine_whose_rows_come_late_is_named_all_the_same_and_the_alert_says_when() {
    let mut ticks = job(8, 900, 1, &one_slow);
    let arrives = |tick: &(f64, usize, usize, f64)| tick.0 + if tick.1 == 2 { 17.0 } else { 0.0 };
    ticks.sort_by(|a, b| arrives(a).total_cmp(&arrives(b)));
    let watch = watched(&ticks, 8, &|node| format!("n{node}"));
    assert_eq!(named(watch.alerts()), ["n2"]);
    assert!(watch.dropped().late < 4 * 60, "{:?}", watch.dropped());
    // A block waits for what may come, so the alert is not told at the usual five seconds after its end.
    let after = watch.alerts()[0].alerted_s % 10.0;
    assert!((after - 5.0).abs() > 0.5, "{after}");
}

#[test]
fn fewer_false_alarms_cost_delay_and_the_answer_says_both() {
    let ticks = job(8, 1_200, 1, &one_slow);
    let with = |false_alarms: f64| {
        let mut watch = Watch::new(Settings { false_alarms: Some(false_alarms), ..Settings::default() });
        let nodes: Vec<_> = (0..8).map(|node| watch.node(&format!("n{node}")).unwrap()).collect();
        let metrics: Vec<_> = METRICS.iter().map(|(name, _)| watch.metric(name).unwrap()).collect();
        ticks.iter().for_each(|&(time, node, metric, value)| watch.push(time, nodes[node], metrics[metric], value));
        watch.finish();
        (watch.alerts()[0].alerted_s, watch.calibration(), watch.notes())
    };
    let ((often, loose, _), (rarely, strict, notes)) = (with(0.5), with(0.001));
    assert!(often < rarely && loose.expected_delay_s < strict.expected_delay_s, "{loose:?} {strict:?}");
    assert!((strict.false_alarms_per_machine_day - 0.001).abs() < 1e-6 && strict.machine_days > 0.05, "{strict:?}");
    let said = |note: &String| {
        note.starts_with("0.0010 false alarms per machine-day: ") && note.contains("machine-days of this job")
    };
    assert!(notes.iter().any(said), "{notes:?}");
}

/// Eight nodes that share their CPUs: all wait for one, and from second 400 on for node 3, which has too little; the network then
/// moves `slowed` of the usual.
fn starved(slowed: f64, hurt: bool) -> Vec<Alert> {
    let mut watch = Watch::new(Settings::default());
    let nodes: Vec<_> = (0..8).map(|node| watch.node(&format!("n{node}")).unwrap()).collect();
    let metrics =
        ["net_tx_gbs", "job_wait_pct", "job_cpu_pct", "io_pressure_pct"].map(|name| watch.metric(name).unwrap());
    let mut chance = Chance::new(7);
    for second in 0..800 {
        for (at, &node) in nodes.iter().enumerate() {
            let late = second >= 400;
            let wait = if !late {
                60.0
            } else if hurt && at == 3 {
                88.0
            } else {
                1.5
            };
            let part = if late { slowed } else { 1.0 };
            // Node 5 writes a checkpoint for a long time; that alone accuses nobody.
            let write = if late && at == 5 { 80.0 } else { 0.0 };
            for (metric, value) in metrics.iter().zip([0.012 * part, wait, 12.0 * part, write]) {
                let noise = 1.0 + 0.03 * chance.normal();
                watch.push(START + f64::from(second), node, *metric, value * noise);
            }
        }
    }
    watch.finish();
    watch.alerts().to_vec()
}

#[test]
fn a_node_that_waits_for_a_cpu_while_the_others_wait_for_it_is_named_though_waiting_is_usual() {
    for slowed in [0.4, 0.05] {
        let found = starved(slowed, true);
        assert_eq!(found.iter().filter(|a| a.metric.as_deref() == Some("job_wait_pct")).count(), 1, "{found:?}");
        assert!(found.iter().any(|a| a.node == "n3"), "{found:?}");
    }
}

#[test]
fn nobody_is_named_in_a_standstill_in_which_one_node_writes_and_nobody_waits_for_a_cpu() {
    assert!(starved(0.05, false).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn permuting_nodes_permutes_alerts(seed in 0_u64..1_000, turn in 1_usize..8) {
        let ticks = job(8, 700, seed, &one_slow);
        let of = |name: &dyn Fn(usize) -> String, ticks: &[_]| {
            let mut found: Vec<_> = watched(ticks, 8, name).alerts().iter().map(|a| (a.node.clone(), a.metric.clone(), a.alerted_s as u64)).collect();
            found.sort();
            found
        };
        let turned: Vec<_> = ticks.iter().map(|&(time, node, metric, value)| (time, (node + turn) % 8, metric, value)).collect();
        let back = |node: usize| format!("n{}", (node + 8 - turn) % 8);
        prop_assert_eq!(of(&|node| format!("n{node}"), &ticks), of(&back, &turned));
    }

    #[test]
    fn another_unit_changes_nothing(seed in 0_u64..1_000, power in -8_i32..20) {
        // Watts have neither quantum nor ceiling, which are in the unit of the recording.
        let scaled = |second, node, metric, value| {
            one_slow(second, node, metric, value).map(|v| if metric == 1 { v * 2_f64.powi(power) } else { v })
        };
        let of = |hurt: Hurt<'_>| -> Vec<_> {
            alerts(8, 700, seed, hurt).into_iter().map(|a| (a.node, a.metric, a.since_s as u64, a.alerted_s as u64)).collect()
        };
        prop_assert_eq!(of(&one_slow), of(&scaled));
    }

    #[test]
    fn the_order_of_rows_within_a_block_does_not_matter(seed in 0_u64..1_000) {
        let ticks = job(6, 700, seed, &one_slow);
        let mut mixed = ticks.clone();
        let mut chance = Chance::new(seed);
        for block in mixed.chunk_by_mut(|a, b| (a.0 / 10.0).floor() as u64 == (b.0 / 10.0).floor() as u64) {
            (1..block.len()).rev().for_each(|at| block.swap(at, chance.below(at + 1)));
        }
        let name = |node: usize| format!("n{node}");
        let (a, b) = (watched(&ticks, 6, &name), watched(&mixed, 6, &name));
        prop_assert_eq!(a.alerts(), b.alerts());
    }
}
