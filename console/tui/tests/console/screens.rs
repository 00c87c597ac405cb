//! How every screen looks in every state at three sizes, glyphs and styles.

use crate::picture::{SIZES, compare, console, digit, frame, glyphs, picture, press, typed};
use crate::synthetic::service::{in_repair, with_hands};
use crate::synthetic::watch::watching;
use crate::synthetic::{DATA, Fleet, empty, error, loading, snapshot, with_gpus, with_old_results};
use std::sync::Arc;

use crossterm::event::KeyCode;
use muster_tui::judgement::State;
use muster_tui::snapshot::{Counts, Load, Mode, NodeRow, Origin, Part, Reading, Watching};
use muster_tui::{Screen, Snapshot, Theme};

const COLOR: Theme = Theme::new(true, false);
const ASCII: Theme = Theme::new(false, true);

fn states() -> Vec<(&'static str, Snapshot)> {
    let one = Fleet { nodes: 1, slow: 0, lost_each: 0, running: false };
    let many = Fleet { nodes: 500, slow: 3, lost_each: 50, running: true };
    let half = Fleet { nodes: 40, slow: 1, lost_each: 2, running: true };
    vec![
        ("loading", loading()),
        ("empty", empty()),
        ("error", error()),
        ("one", snapshot(one)),
        ("many", snapshot(many)),
        ("half", snapshot(half)),
        ("data", snapshot(DATA)),
    ]
}

fn look(name: &str, screen: Screen, keys: &[KeyCode]) {
    for (state, snapshot) in states() {
        let mut text = String::new();
        for size in SIZES {
            let mut ui = console(&snapshot, COLOR, size);
            std::iter::once(&digit(screen)).chain(keys).for_each(|code| press(&mut ui, *code, &snapshot));
            text += &format!("=== {}x{}\n{}", size.0, size.1, picture(&frame(&ui, &snapshot, size)));
        }
        compare(&format!("{name}-{state}"), &text);
    }
}

#[test]
fn fleet_looks_as_stored() {
    look("fleet", Screen::Fleet, &[]);
}

#[test]
fn the_rack_map_looks_as_stored() {
    look("map", Screen::Fleet, &[KeyCode::Char('m')]);
    // What does not fit as a cell a node, the lack of racks, a filter, and glyphs alone.
    let many = snapshot(Fleet { nodes: 10_000, slow: 12, lost_each: 50, running: false });
    let nowhere =
        |node: &Arc<NodeRow>| Arc::new(NodeRow { rack: String::new(), leaf: String::new(), ..(**node).clone() });
    let mut without = snapshot(DATA);
    without.nodes = without.nodes.iter().map(nowhere).collect();
    let mut text = String::new();
    for (name, snapshot, theme, keys) in [
        ("ten thousand", &many, COLOR, "m"),
        ("no racks", &without, COLOR, "m"),
        ("filtered", &snapshot(DATA), COLOR, "m/!state:pass\n"),
        ("plain", &snapshot(DATA), ASCII, "m"),
    ] {
        let mut ui = console(snapshot, theme, (80, 24));
        for c in keys.chars() {
            press(&mut ui, if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) }, snapshot);
        }
        text += &format!("=== {name}\n{}", glyphs(&frame(&ui, snapshot, (80, 24))));
    }
    compare("map-cases", &text);
}

#[test]
fn wide_screens_look_as_stored() {
    let snapshot = snapshot(DATA);
    let mut text = String::new();
    for screen in [Screen::Fleet, Screen::Node, Screen::Benchmarks, Screen::Criteria, Screen::Selector, Screen::Network]
    {
        for size in SIZES {
            let mut ui = console(&snapshot, COLOR, size);
            press(&mut ui, digit(screen), &snapshot);
            press(&mut ui, KeyCode::Char('w'), &snapshot);
            text += &format!("=== {} {}x{}\n{}", screen.title(), size.0, size.1, glyphs(&frame(&ui, &snapshot, size)));
        }
    }
    compare("wide", &text);
}

#[test]
fn node_looks_as_stored() {
    look("node", Screen::Node, &[]);
}

#[test]
fn gpus_of_a_node_look_as_stored() {
    let snapshot = with_gpus(snapshot(Fleet { running: false, ..DATA }));
    let mut text = String::new();
    for (theme, size) in [(COLOR, SIZES[0]), (COLOR, SIZES[1]), (COLOR, SIZES[2]), (ASCII, SIZES[1])] {
        let mut ui = console(&snapshot, theme, size);
        press(&mut ui, digit(Screen::Node), &snapshot);
        let keys = [KeyCode::Tab, KeyCode::Tab, KeyCode::Tab, KeyCode::Down, KeyCode::Down, KeyCode::Down];
        keys.into_iter().for_each(|code| press(&mut ui, code, &snapshot));
        text += &format!("=== {}x{}\n{}", size.0, size.1, picture(&frame(&ui, &snapshot, size)));
    }
    compare("node-gpus", &text);
}

#[test]
fn old_results_look_as_stored() {
    let snapshot = with_old_results(snapshot(Fleet { running: false, ..DATA }));
    let mut text = String::new();
    for (theme, size) in [(COLOR, SIZES[0]), (COLOR, SIZES[1]), (COLOR, SIZES[2]), (ASCII, SIZES[0])] {
        let mut ui = console(&snapshot, theme, size);
        for screen in [Screen::Fleet, Screen::Node] {
            press(&mut ui, digit(screen), &snapshot);
            text += &format!("=== {} {}x{}\n{}", screen.title(), size.0, size.1, picture(&frame(&ui, &snapshot, size)));
        }
    }
    compare("old-results", &text);
}

#[test]
fn a_run_that_is_read_and_judged_looks_as_stored() {
    let mut snapshot = snapshot(Fleet { running: false, ..DATA });
    let unknown = |node: &Arc<NodeRow>| {
        let (worst, reasons) = (None, Arc::default());
        Arc::new(NodeRow { state: State::NotRun, worst, reasons, verdicts: Arc::default(), ..(**node).clone() })
    };
    snapshot.nodes = snapshot.nodes.iter().map(unknown).collect();
    snapshot.counts = Counts::of(snapshot.nodes.iter().map(|node| node.state));
    (snapshot.metrics, snapshot.mode) = (Arc::default(), Mode::Idle);
    let mut text = String::new();
    for (judged, size, screens) in [
        (None, SIZES[0], &[Screen::Fleet][..]),
        (Some((1_340, 2_323)), SIZES[0], &[Screen::Fleet, Screen::Node, Screen::Benchmarks]),
        (Some((1_340, 2_323)), SIZES[1], &[Screen::Fleet]),
        (Some((2_323, 2_323)), SIZES[1], &[Screen::Fleet]),
    ] {
        let since_ms = snapshot.now_ms - 4_000;
        snapshot.reading = Some(Reading { run: "cbd-light-20260118-0012".to_owned(), since_ms, judged });
        for screen in screens {
            let mut ui = console(&snapshot, COLOR, size);
            press(&mut ui, digit(*screen), &snapshot);
            let picture = picture(&frame(&ui, &snapshot, size));
            text += &format!("=== {} {judged:?} {}x{}\n{picture}", screen.title(), size.0, size.1);
        }
    }
    compare("reading", &text);
}

#[test]
fn nodes_in_other_hands_look_as_stored() {
    let still = || snapshot(Fleet { running: false, ..DATA });
    let all = with_hands(still());
    let repaired = in_repair(
        still(),
        Some(&["it was not validated since it went into repair: muster run build-out --profile quick -w rack1-02"]),
    );
    let sound = in_repair(still(), Some(&[]));
    let mut text = String::new();
    for (name, snapshot, theme, size, keys) in [
        ("fleet", &all, COLOR, SIZES[0], ""),
        ("fleet", &all, COLOR, SIZES[1], ""),
        ("fleet", &all, ASCII, SIZES[2], "sss"),
        ("a spare", &all, COLOR, SIZES[0], "/service:buffer\n"),
        ("narrow", &all, COLOR, (60, 16), ""),
        ("defective", &all, COLOR, SIZES[0], "2\t"),
        ("in repair", &repaired, COLOR, SIZES[0], "/service:repair\n2\tjj"),
        ("in repair", &repaired, COLOR, SIZES[1], "/service:repair\n2\tjjj"),
        ("sound again", &sound, ASCII, SIZES[1], "/service:repair\n2\t"),
        ("commands", &all, COLOR, SIZES[0], "H"),
        ("question", &all, COLOR, SIZES[0], "Hrepair RMA 4711\n"),
    ] {
        let mut ui = console(snapshot, theme, size);
        typed(&mut ui, keys, snapshot);
        text += &format!("=== {name} {}x{}\n{}", size.0, size.1, picture(&frame(&ui, snapshot, size)));
    }
    compare("service", &text);
}

#[test]
fn what_changed_on_a_node_looks_as_stored() {
    let snapshot = snapshot(Fleet { running: false, ..DATA });
    let mut text = String::new();
    for (theme, size) in [(COLOR, SIZES[0]), (COLOR, SIZES[1]), (COLOR, SIZES[2]), (ASCII, SIZES[2])] {
        let mut ui = console(&snapshot, theme, size);
        for code in [digit(Screen::Node), KeyCode::Char('d'), KeyCode::Down] {
            press(&mut ui, code, &snapshot);
        }
        text += &format!("=== {}x{}\n{}", size.0, size.1, picture(&frame(&ui, &snapshot, size)));
    }
    compare("node-changed", &text);
}

#[test]
fn benchmarks_look_as_stored() {
    look("benchmarks", Screen::Benchmarks, &[]);
}

#[test]
fn playbooks_look_as_stored() {
    look("playbooks", Screen::Playbooks, &[]);
}

#[test]
fn criteria_look_as_stored() {
    look("criteria", Screen::Criteria, &[KeyCode::Down]);
}

#[test]
fn selector_looks_as_stored() {
    look("selector", Screen::Selector, &[]);
}

#[test]
fn every_pane_of_a_narrow_terminal_looks_as_stored() {
    let snapshot = snapshot(DATA);
    let mut text = String::new();
    for (screen, panes) in [(Screen::Node, 7), (Screen::Selector, 3), (Screen::Network, 3)] {
        let mut ui = console(&snapshot, COLOR, (80, 24));
        press(&mut ui, digit(screen), &snapshot);
        for pane in 1..panes {
            press(&mut ui, KeyCode::Tab, &snapshot);
            text += &format!("=== {} {pane}\n{}", screen.title(), glyphs(&frame(&ui, &snapshot, (80, 24))));
        }
    }
    compare("panes", &text);
}

#[test]
fn network_looks_as_stored() {
    look("network", Screen::Network, &[]);
}

#[test]
fn watch_looks_as_stored() {
    look("watch", Screen::Watch, &[]);
}

#[test]
fn triage_looks_as_stored() {
    look("triage", Screen::Triage, &[]);
}

#[test]
fn a_watch_looks_as_stored_at_every_stage_and_in_every_list() {
    let names = |n: usize| (0..n).map(|at| format!("n{at:02}")).collect::<Vec<_>>();
    let with = |watch| Snapshot { watch: Part::ready(watch), ..snapshot(DATA) };
    let young = with(watching(&names(6), 25));
    let nobody = with(Watching { frames: Arc::from([]), ..watching(&names(6), 0) });
    let few = with(watching(&names(3), 300));
    let four = with(watching(&names(4), 560));
    let eight = with(watching(&names(8), 900));
    let many = with(watching(&names(160), 640));
    let recorded = |over| {
        let (name, end_s) = ("telemetry-of-a-long-name.csv.gz".to_owned(), 1_795_270_000.0);
        let origin = Origin::Recording { name, speed: 60.0, at_s: 1_795_269_590.0, end_s };
        with(Watching { origin, over, ..watching(&names(8), 900) })
    };
    let (plays, over) = (recorded(false), recorded(true));
    let mut text = String::new();
    for (name, snapshot, theme, size, keys) in [
        ("nothing told", &nobody, COLOR, SIZES[0], ""),
        ("learning", &young, COLOR, SIZES[0], ""),
        ("undecided", &few, COLOR, SIZES[0], ""),
        ("evidence", &four, COLOR, SIZES[0], ""),
        ("alert", &eight, COLOR, SIZES[0], ""),
        ("alert", &eight, ASCII, SIZES[0], ""),
        ("metrics", &eight, COLOR, SIZES[0], "\t"),
        ("alerts", &eight, COLOR, SIZES[0], "\t\t"),
        ("another metric", &eight, COLOR, SIZES[1], "mm"),
        ("back in time", &eight, COLOR, SIZES[1], "hhhhhhhhhh"),
        ("zoomed out", &eight, ASCII, SIZES[1], "-"),
        ("folded", &many, COLOR, SIZES[1], ""),
        ("a group", &many, COLOR, SIZES[1], "\n"),
        ("a row each", &many, COLOR, SIZES[1], "o"),
        ("filtered", &many, COLOR, SIZES[1], "/nothing\n"),
        ("plays", &plays, COLOR, SIZES[0], ""),
        ("over", &over, COLOR, SIZES[1], ""),
        ("wide", &eight, COLOR, SIZES[2], "w"),
    ] {
        let mut ui = console(snapshot, theme, size);
        press(&mut ui, digit(Screen::Watch), snapshot);
        typed(&mut ui, keys, snapshot);
        text += &format!("=== {name} {}x{}\n{}", size.0, size.1, glyphs(&frame(&ui, snapshot, size)));
    }
    compare("watch-cases", &text);
}

#[test]
fn runs_look_as_stored() {
    look("runs", Screen::Runs, &[]);
}

// One test, because the log is one for the whole process.
#[test]
fn log_looks_as_stored() {
    tui_logger::init_logger(log::LevelFilter::Debug).unwrap();
    let snapshot = snapshot(DATA);
    for state in ["empty", "data"] {
        if state == "data" {
            log::info!(target: "fleet", "rack1-00: connected, probe 0.1.0");
            log::warn!(target: "fleet", "rack1-06: no answer on 10.3.1.17:22 within 5 s, again in 4 s");
            log::error!(target: "store", "run r-1 cannot be written: no space left on /var/lib/muster");
            log::debug!(target: "engine", "not shown at this level");
            tui_logger::move_events();
        }
        let mut text = String::new();
        for size in SIZES {
            let mut ui = console(&snapshot, COLOR, size);
            press(&mut ui, digit(Screen::Log), &snapshot);
            text += &format!("=== {}x{}\n{}", size.0, size.1, picture(&frame(&ui, &snapshot, size)));
        }
        compare(&format!("log-{state}"), &without_clock(&text));
    }
}

/// Times of day as `hh:mm:ss`.
fn without_clock(text: &str) -> String {
    let is_time =
        |w: &[char]| w.iter().enumerate().all(|(i, c)| if i == 2 || i == 5 { *c == ':' } else { c.is_ascii_digit() });
    let mut chars: Vec<char> = text.chars().collect();
    for at in 0..chars.len().saturating_sub(7) {
        if is_time(&chars[at..at + 8]) {
            chars.splice(at..at + 8, "hh:mm:ss".chars());
        }
    }
    chars.into_iter().collect()
}

#[test]
fn boxes_look_as_stored() {
    let snapshot = snapshot(Fleet { running: false, ..DATA });
    let mut text = String::new();
    for keys in ["?", ":", ":run", "Rcbd\n", "Rcbd\n1", " cX", " X", "e", "/state:fail", "/nothing", "/nothing\n"] {
        let mut ui = console(&snapshot, COLOR, (80, 24));
        for c in keys.chars() {
            let code = if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
            press(&mut ui, code, &snapshot);
        }
        text += &format!("=== {keys:?}\n{}", picture(&frame(&ui, &snapshot, (80, 24))));
    }
    compare("boxes", &text);
}

#[test]
fn a_failed_refresh_keeps_the_rows_and_says_so() {
    let load = match error().load {
        Load::Failed { what, why, since_ms, next } => Load::Failed { what, why, since_ms, next },
        other => panic!("{other:?}"),
    };
    let snapshot = Snapshot { load, ..snapshot(DATA) };
    let ui = console(&snapshot, COLOR, (120, 40));
    compare("fleet-stale", &picture(&frame(&ui, &snapshot, (120, 40))));
}

#[test]
fn ascii_without_colour_has_neither_and_still_a_word_for_every_state() {
    let snapshot = snapshot(DATA);
    let mut text = String::new();
    for screen in Screen::ALL.into_iter().filter(|s| *s != Screen::Log) {
        let mut ui = console(&snapshot, Theme::new(false, true), (120, 40));
        press(&mut ui, digit(screen), &snapshot);
        let buffer = frame(&ui, &snapshot, (120, 40));
        // The value `–` of an absent fact comes with the snapshot.
        let foreign: String = glyphs(&buffer).chars().filter(|c| !c.is_ascii() && *c != '–').collect();
        assert_eq!(foreign, "", "{screen:?}");
        assert!(buffer.content.iter().all(|c| c.fg == ratatui::style::Color::Reset), "{screen:?}");
        text += &picture(&buffer);
    }
    compare("ascii", &text);
    for state in [State::Fail, State::Unknown, State::Pass] {
        assert!(text.contains(muster_tui::judgement::word(state)), "{state:?}");
    }
}

#[test]
fn a_terminal_below_60_by_16_says_what_it_needs() {
    let snapshot = snapshot(DATA);
    for size in [(59, 40), (200, 15), (1, 1), (12, 3)] {
        let ui = console(&snapshot, COLOR, size);
        let text = glyphs(&frame(&ui, &snapshot, size));
        assert!("need 60x16".starts_with(text.trim().get(..text.trim().len().min(10)).unwrap()), "{size:?}: {text}");
    }
}

#[test]
fn no_size_and_no_screen_makes_drawing_fail() {
    let snapshots: Vec<Snapshot> = states().into_iter().map(|(_, s)| s).collect();
    for snapshot in &snapshots {
        for size in [(60, 16), (61, 17), (79, 23), (119, 39), (159, 16), (160, 50), (300, 16), (60, 100)] {
            let others = ['?', ':', 'R', 'X', 'm', 'w', 'F'].map(KeyCode::Char);
            for key in Screen::ALL.map(digit).into_iter().chain(others) {
                let mut ui = console(snapshot, COLOR, size);
                for code in [key, KeyCode::End, KeyCode::Tab, KeyCode::PageDown] {
                    press(&mut ui, code, snapshot);
                }
                frame(&ui, snapshot, size);
            }
        }
    }
}
