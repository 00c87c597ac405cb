//! The header, the hints and the help of a replay.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use muster_tui::judgement::State;
use muster_tui::snapshot::{Counts, Mode, Part, Progress, Replay};
use muster_tui::{Event, Intent, Play, Screen, Snapshot, Theme, update};

use crate::picture::{SIZES, compare, console, digit, frame, glyphs, picture, press};
use crate::synthetic::{Fleet, NOW_MS, snapshot};

const PLAYED: Replay =
    Replay { at_ms: NOW_MS, from_ms: NOW_MS - 42_000, until_ms: NOW_MS + 148_000, speed: 12.4, paused: false };

fn replayed(replay: Replay) -> Snapshot {
    let fleet = Fleet { nodes: 6, slow: 1, lost_each: 0, running: true };
    // The wall clock is half a year on: ages are those of then.
    let mut shown = snapshot(fleet);
    (shown.now_ms, shown.mode) = (NOW_MS + 15_552_000_000, Mode::Replay(replay));
    shown
}

#[test]
fn a_replay_looks_as_stored() {
    let mut text = String::new();
    for (name, replay) in [
        ("going on", PLAYED),
        ("paused", Replay { paused: true, ..PLAYED }),
        ("over", Replay { at_ms: PLAYED.until_ms, ..PLAYED }),
    ] {
        for size in SIZES {
            let shown = replayed(replay);
            let ui = console(&shown, Theme::new(true, false), size);
            text += &format!("=== {name} {}x{}\n{}", size.0, size.1, picture(&frame(&ui, &shown, size)));
        }
    }
    let shown = replayed(PLAYED);
    let mut ui = console(&shown, Theme::new(true, false), SIZES[1]);
    press(&mut ui, KeyCode::Char('?'), &shown);
    text += &format!("=== help\n{}", glyphs(&frame(&ui, &shown, SIZES[1])));
    compare("replay", &text);
}

#[test]
fn no_count_of_nodes_is_cut_off_whatever_the_width() {
    let mut shown = replayed(Replay { at_ms: PLAYED.until_ms, ..PLAYED });
    shown.title = "20261127T141654-demo-6ab1-and-more".to_owned();
    let states = [State::Fail].into_iter().chain([State::Unknown; 4]).chain([State::Pass; 5]);
    shown.counts = Counts::of(states);
    for (size, counts) in [
        ((120, 40), "20261127T141654-demo-6a…  6 nodes  ✗ 1 fail  ? 4 unknown  ✓ 5 pass "),
        ((80, 24), " ✗ 1 fail  ? 4 unknown  ✓ 5 pass "),
        ((60, 16), " ✗ 1  ? 4  ✓ 5 "),
    ] {
        let ui = console(&shown, Theme::new(true, false), size);
        let text = glyphs(&frame(&ui, &shown, size));
        let line = text.lines().next().unwrap();
        assert!(line.contains(counts) && line.ends_with("3:10 of 3:10, 12x, over"), "{size:?}: {line}");
    }
}

#[test]
fn keys_of_a_replay_ask_for_moves_on_every_screen_and_mean_nothing_elsewhere() {
    let (shown, live) = (replayed(PLAYED), snapshot(Fleet { nodes: 6, slow: 1, lost_each: 0, running: true }));
    let keys = [
        ('P', Play::Pause),
        (',', Play::Back),
        ('.', Play::On),
        ('{', Play::Start),
        ('}', Play::End),
        ('(', Play::Slower),
        (')', Play::Faster),
    ];
    for screen in Screen::ALL {
        for (key, play) in keys {
            let pressed = |shown: &Snapshot| {
                let mut ui = console(shown, Theme::new(true, false), SIZES[1]);
                press(&mut ui, digit(screen), shown);
                update(&mut ui, Event::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE)), shown)
            };
            assert_eq!(pressed(&shown), [Intent::Play(play)], "{key} on {screen:?}");
            assert_eq!(pressed(&live), [], "{key} on {screen:?}");
        }
    }
}

#[test]
fn in_a_replay_nothing_is_run_and_leaving_asks_nothing() {
    let shown = replayed(PLAYED);
    let mut ui = console(&shown, Theme::new(true, false), SIZES[1]);
    for key in ['R', 'r', 'W', 'X', 'c'] {
        let intents = update(&mut ui, Event::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE)), &shown);
        assert_eq!(intents, [], "{key}");
        let seen = glyphs(&frame(&ui, &shown, SIZES[1]));
        assert!(seen.contains("this is a replay: nothing is done on nodes"), "{key}: {seen}");
    }
    let intents = update(&mut ui, Event::Key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE)), &shown);
    assert_eq!(intents, [Intent::Quit]);
}

#[test]
fn a_recording_of_one_moment_offers_no_keys_of_time_and_says_why_when_one_is_pressed() {
    let moment = replayed(Replay { from_ms: NOW_MS, until_ms: NOW_MS, ..PLAYED });
    let offered = |shown: &Snapshot| {
        let mut ui = console(shown, Theme::new(true, false), SIZES[1]);
        press(&mut ui, digit(Screen::Triage), shown);
        let hints = glyphs(&frame(&ui, shown, SIZES[1]));
        press(&mut ui, KeyCode::Char('?'), shown);
        [hints.contains("P pause"), glyphs(&frame(&ui, shown, SIZES[1])).contains("In a replay")]
    };
    assert_eq!((offered(&replayed(PLAYED)), offered(&moment)), ([true; 2], [false; 2]));
    for key in ['P', ',', '.', '{', '}', '(', ')'] {
        let mut ui = console(&moment, Theme::new(true, false), SIZES[1]);
        press(&mut ui, digit(Screen::Triage), &moment);
        let pressed = Event::Key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
        assert_eq!(update(&mut ui, pressed, &moment), [], "{key}");
        let seen = glyphs(&frame(&ui, &moment, SIZES[1]));
        assert!(seen.contains("this recording is of one moment: there is no time to go through"), "{key}: {seen}");
        assert!(seen.lines().next().unwrap().ends_with("REPLAY  one moment"), "{seen}");
    }
}

#[test]
fn lines_of_a_node_are_as_old_as_they_were_at_the_moment_that_is_played() {
    let shown = replayed(PLAYED);
    let mut ui = console(&shown, Theme::new(true, false), SIZES[0]);
    press(&mut ui, digit(Screen::Node), &shown);
    let panes = (0..10).map(|_| {
        press(&mut ui, KeyCode::Tab, &shown);
        glyphs(&frame(&ui, &shown, SIZES[0]))
    });
    let log: Vec<String> = panes.filter(|text| text.contains("connected, probe")).collect();
    assert!(log[0].contains("62s info  connected, probe"), "{}", log[0]);
}

#[test]
fn a_scan_whose_rounds_are_not_known_beforehand_counts_what_was_measured() {
    let mut shown = replayed(PLAYED);
    let mut network = shown.network.data.as_deref().unwrap().clone();
    let dropped = Arc::from([]);
    network.progress = Some(Progress { round: 3, rounds: 0, done: 12, total: 0, eta_ms: None, going: true, dropped });
    shown.network = Part::ready(network);
    let mut ui = console(&shown, Theme::new(true, false), SIZES[1]);
    press(&mut ui, digit(Screen::Network), &shown);
    let seen = glyphs(&frame(&ui, &shown, SIZES[1]));
    assert!(seen.contains("round 3 after 12 pairs"), "{seen}");
}
