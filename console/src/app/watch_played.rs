//! A recording played through the whole application, with made-up rows and a made-up user.

use muster_import::telemetry::Recording;
use muster_tui::snapshot::Watching;
use muster_tui::{Screen, Snapshot};

use super::rehearsed::{Paper, Wanted, rehearsed};
use crate::work::ticks::{Player, Source};

/// One machine is at 60 % of its power from this second on.
const HURT: u32 = 400;
const SECONDS: u32 = 900;
const NODES: [&str; 6] = ["n0", "n1", "n2", "n3", "n4", "n5"];

fn recording() -> Recording {
    let mut recording = Recording::default();
    for second in 0..SECONDS {
        for (at, node) in NODES.iter().enumerate() {
            let hurt = if at == 3 && second >= HURT { 0.6 } else { 1.0 };
            let noise = ((second * 7 + 3 * at as u32) % 11) as f32 / 10.0;
            let at_s = 1_760_000_000.0 + f64::from(second);
            recording.push(node, "gpu_power_w", at_s, (500.0 + noise) * hurt).unwrap();
            recording.push(node, "sm_active", at_s, (0.8 + noise / 100.0) * hurt).unwrap();
        }
    }
    recording.sort();
    recording
}

fn player() -> Player {
    let names: Vec<String> = NODES.iter().map(|name| (*name).to_owned()).collect();
    let metrics = ["gpu_power_w".to_owned(), "sm_active".to_owned()];
    Player::new(("made.csv".to_owned(), recording()), 60.0, (&names, &metrics), &[])
}

fn is(shown: &Snapshot, so: fn(&Watching) -> bool) -> bool {
    shown.watch.data.as_deref().is_some_and(so)
}

#[test]
fn a_played_recording_ends_with_the_alert_on_the_screen_and_keys_work_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let player = player();
    let any: Wanted = |shown| is(shown, |watch| !watch.frames.is_empty());
    let alert: Wanted = |shown| is(shown, |watch| !watch.alerts.is_empty());
    let over: Wanted = |shown| is(shown, |watch| watch.over);
    // On by half a screen until the fault is told, then back to see it, to the node, to the question about the check, and away.
    let mut keys = vec![('>', any); 8];
    keys.extend([('n', alert), ('>', alert), ('>', alert), ('>', alert), ('n', over), ('h', over), ('\r', over)]);
    keys.extend([('\x1b', over), ('f', over), ('L', over), ('n', over), ('q', over)]);
    let paper = Paper::default();
    let begin = |app: &mut super::App| {
        app.watch(Source::Recording(Box::new(player)), muster_watch::Settings::default());
    };
    let last = rehearsed((&NODES, dir.path(), &[]), begin, (Screen::Watch, paper.clone()), keys);
    let watch = last.watch.data.as_deref().unwrap();
    assert!(watch.over && watch.alerts.len() == 1, "{:?}", watch.alerts);
    assert_eq!((watch.alerts[0].node.as_str(), watch.alerts[0].until_s), ("n3", None));
    assert!((f64::from(HURT)..f64::from(SECONDS)).contains(&(watch.alerts[0].alerted_s - 1_760_000_000.0)));
    assert!(watch.frames.len() >= 88, "all of it can be gone back through: {}", watch.frames.len());
    let written = paper.text();
    for word in ["Metrics", "Alerts", "OVER"] {
        assert!(written.contains(word), "{word}");
    }
}

#[test]
fn the_header_of_a_replayed_watch_counts_no_node_as_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let player = player();
    let begin = |app: &mut super::App| {
        app.plays = true;
        app.watch(Source::Recording(Box::new(player)), muster_watch::Settings::default());
    };
    let plays: Wanted = |shown| shown.plays() && is(shown, |watch| !watch.frames.is_empty());
    let last = rehearsed((&NODES, dir.path(), &[]), begin, (Screen::Watch, std::io::sink()), vec![('q', plays)]);
    assert_eq!((last.nodes.len(), last.counts.present().count()), (NODES.len(), 0));
}

#[test]
fn read_only_forbids_a_watch_in_the_words_of_the_help() {
    let dir = tempfile::tempdir().unwrap();
    let begin = |app: &mut super::App| app.watch_nodes(&NODES.map(str::to_owned));
    let refused: Wanted = |shown| shown.messages.iter().any(|message| message.text == "--read-only forbids watches");
    let keys = vec![('q', refused)];
    let last = rehearsed((&NODES, dir.path(), &["--read-only"]), begin, (Screen::Fleet, std::io::sink()), keys);
    assert!(last.watch.data.is_none());
}
