//! What keys do: a state, keys, and then the state and what is asked of the engine.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use muster_tui::judgement::State;
use muster_tui::snapshot::{Flip, Metrics, Mode, NodeRow, VerdictRow, WhatIf};
use muster_tui::{Event, Export, Format, Intent, Mouse, Screen, Snapshot, Theme, Ui, update};
use muster_wire::Direction;

use crate::picture::{SIZES, console, digit, frame, glyphs};
use crate::synthetic::{DATA, Fleet, NOW_MS, empty, snapshot, with_old_results};

const IDLE: Fleet = Fleet { running: false, ..DATA };
const SIZE: (u16, u16) = (120, 40);

/// Keys as text: letters are themselves, words in `<>` are named keys.
fn keys(text: &str) -> Vec<KeyEvent> {
    let mut events = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        // `<` before anything but a name is itself.
        let named = (c == '<' && rest[1..].starts_with(char::is_alphabetic)).then(|| rest.split_once('>')).flatten();
        let (code, modifiers, after) = match named {
            Some((name, after)) => (named_key(&name[1..]), after).into_parts(),
            None => (KeyCode::Char(c), KeyModifiers::NONE, &rest[c.len_utf8()..]),
        };
        events.push(KeyEvent::new(code, modifiers));
        rest = after;
    }
    events
}

trait IntoParts<'a> {
    fn into_parts(self) -> (KeyCode, KeyModifiers, &'a str);
}

impl<'a> IntoParts<'a> for ((KeyCode, KeyModifiers), &'a str) {
    fn into_parts(self) -> (KeyCode, KeyModifiers, &'a str) {
        (self.0.0, self.0.1, self.1)
    }
}

fn named_key(name: &str) -> (KeyCode, KeyModifiers) {
    let none = KeyModifiers::NONE;
    match name {
        "enter" => (KeyCode::Enter, none),
        "esc" => (KeyCode::Esc, none),
        "tab" => (KeyCode::Tab, none),
        "down" => (KeyCode::Down, none),
        "home" => (KeyCode::Home, none),
        "end" => (KeyCode::End, none),
        "pgdn" => (KeyCode::PageDown, none),
        "bs" => (KeyCode::Backspace, none),
        "c-c" => (KeyCode::Char('c'), KeyModifiers::CONTROL),
        "c-l" => (KeyCode::Char('l'), KeyModifiers::CONTROL),
        "c-z" => (KeyCode::Char('z'), KeyModifiers::CONTROL),
        other => {
            let screen = Screen::ALL.into_iter().find(|s| s.title().eq_ignore_ascii_case(other));
            (digit(screen.unwrap_or_else(|| panic!("no key {other}"))), none)
        }
    }
}

/// The console after `text` was typed, and what it asked for on the way, but for what it looks at.
pub(crate) fn after(snapshot: &Snapshot, text: &str) -> (Ui, Vec<Intent>) {
    let mut ui = console(snapshot, Theme::new(true, false), SIZE);
    let intents = press(&mut ui, snapshot, text);
    (ui, intents)
}

pub(crate) fn press(ui: &mut Ui, snapshot: &Snapshot, text: &str) -> Vec<Intent> {
    let all = keys(text).into_iter().flat_map(|key| update(ui, Event::Key(key), snapshot));
    all.filter(|i| !matches!(i, Intent::Focus { .. } | Intent::Pair { .. } | Intent::Criteria)).collect()
}

pub(crate) fn shown(ui: &Ui, snapshot: &Snapshot) -> String {
    glyphs(&frame(ui, snapshot, SIZE))
}

#[test]
fn digits_and_enter_lead_to_screens_and_escape_leads_back() {
    let snapshot = snapshot(IDLE);
    for (typed, screen) in [
        ("", Screen::Fleet),
        ("3", Screen::Benchmarks),
        ("<enter>", Screen::Node),
        ("<enter><enter>", Screen::Benchmarks),
        ("<enter><enter><enter><enter>", Screen::Node),
        ("<enter><enter><esc>", Screen::Node),
        ("<enter><enter><esc><esc>", Screen::Fleet),
        ("<log><playbooks><esc>", Screen::Log),
        ("<esc>", Screen::Fleet),
    ] {
        assert_eq!(after(&snapshot, typed).0.screen(), screen, "{typed}");
    }
}

#[test]
fn the_worst_node_is_selected_first_and_asked_for() {
    let snapshot = snapshot(IDLE);
    let mut ui = Ui::new(Theme::new(true, false), 120, 40);
    let intents = update(&mut ui, Event::Snapshot, &snapshot);
    assert_eq!(intents, [Intent::Focus { node: "rack1-04".to_owned() }]);
    assert_eq!(update(&mut ui, Event::Snapshot, &snapshot), [], "asked for once");
}

#[test]
fn the_selection_follows_the_node_when_rows_are_sorted_anew() {
    let snapshot = snapshot(IDLE);
    let (mut ui, _) = after(&snapshot, "jjj");
    let name = ui.selected().unwrap().to_owned();
    press(&mut ui, &snapshot, "ssS");
    assert_eq!(ui.selected(), Some(name.as_str()));
    assert!(shown(&ui, &snapshot).lines().any(|l| l.contains('▸') && l.contains(&name)));
}

#[test]
fn rows_hold_still_for_two_seconds_after_a_key_and_then_follow() {
    let old = snapshot(IDLE);
    let mut new = snapshot(Fleet { slow: 4, ..IDLE });
    new.generation += 1;
    let (mut ui, _) = after(&old, "j");
    let before = ui.selected().unwrap().to_owned();
    update(&mut ui, Event::Snapshot, &new);
    assert!(shown(&ui, &new).contains("held"));
    assert_eq!(ui.selected(), Some(before.as_str()));
    update(&mut ui, Event::Tick { age_ms: 2_500 }, &new);
    assert!(!shown(&ui, &new).contains("held"));
    assert_eq!(ui.selected(), Some(before.as_str()), "the row moved, the selection went with it");
}

#[test]
fn a_filter_keeps_what_matches_and_escape_undoes_it() {
    let snapshot = snapshot(IDLE);
    for (typed, rows) in [
        ("/state:fail<enter>", "1-1/1"),
        ("/rack1-0<enter>", "1-10/10"),
        ("/rack1-0 group:even<enter>", "1-5/5"),
        ("/!rack1-0<enter>", "1-6/6"),
        ("/!state:pass<enter>", "1-3/3"),
        ("/name:rack1-0[1-4]$<enter>", "1-4/4"),
        ("/rack1-0[<bs><enter>", "1-10/10"),
        ("/link:answer<enter>", "1-2/2"),
        ("/state:fail<enter><esc>", "1-16/16"),
        ("/state:fail<esc>", "1-16/16"),
        ("/state:failx<bs><enter>", "1-1/1"),
    ] {
        let (ui, _) = after(&snapshot, typed);
        assert!(shown(&ui, &snapshot).contains(rows), "{typed}: {}", shown(&ui, &snapshot));
    }
    let (ui, _) = after(&snapshot, "/gpu:h100<enter>");
    assert!(shown(&ui, &snapshot).contains("No node matches `gpu:h100`."));
}

/// What a console of this size shows after `text` was typed.
fn seen(snapshot: &Snapshot, size: (u16, u16), text: &str) -> String {
    let mut ui = console(snapshot, Theme::new(true, false), size);
    press(&mut ui, snapshot, text);
    glyphs(&frame(&ui, snapshot, size))
}

#[test]
fn a_kept_filter_is_shown_at_every_size_on_every_screen() {
    let snapshot = snapshot(IDLE);
    for size in SIZES {
        let text = seen(&snapshot, size, "/state:fail<enter>");
        assert!(text.contains("Nodes 1 of 16 /state:fail ─"), "{text}");
        let text = seen(&snapshot, size, "m/state:fail<enter>");
        assert!(text.contains("Racks /state:fail ─") && text.contains(" 1 of 16 nodes "), "{text}");
        for screen in Screen::ALL {
            let text = seen(&snapshot, size, &format!("/state:fail<enter><{}>", screen.title()));
            assert!(text.contains("state:fail"), "{screen:?} {size:?}: {text}");
        }
        let text = seen(&snapshot, size, "/nothing<enter><node>");
        assert!(text.contains(" hidden by /nothing "), "{text}");
    }
}

#[test]
fn the_cursor_stays_on_its_node_while_a_filter_is_typed_and_undone() {
    let snapshot = snapshot(IDLE);
    let (ui, _) = after(&snapshot, "<end>");
    let last = ui.selected().unwrap().to_owned();
    for (typed, selected) in [
        ("<home>/state:fail<enter>", "rack1-04"),
        ("<home>/state:fail<enter><esc>", "rack1-04"),
        ("<home>/!state:fail<esc>", "rack1-04"),
        ("<home>/zzz<esc>", "rack1-04"),
        ("<home>/zzz<bs><bs><bs>state:fail<enter>", "rack1-04"),
        ("<end>/zzz<esc>", last.as_str()),
        ("<end>/state:fail<esc>", last.as_str()),
        ("<end>/state:fail<enter>", "rack1-04"),
    ] {
        let (ui, _) = after(&snapshot, typed);
        assert_eq!(ui.selected(), Some(selected), "{typed}");
        let row = |line: &str| line.contains('▸') && line.contains(selected);
        assert!(shown(&ui, &snapshot).lines().any(row), "{typed}: {}", shown(&ui, &snapshot));
    }
    let (ui, _) = after(&snapshot, "/rack:<enter><esc>/");
    assert!(shown(&ui, &snapshot).contains(" /▏ "), "{}", shown(&ui, &snapshot));
}

#[test]
fn nodes_with_a_domain_are_told_apart_wherever_they_are_listed() {
    let mut full = snapshot(IDLE);
    let long = |node: &Arc<NodeRow>| {
        let name = format!("gpu-node-00{}.eu-north1.example.internal", &node.name[6..]);
        Arc::new(NodeRow { name, ..(**node).clone() })
    };
    full.nodes = full.nodes.iter().map(long).collect();
    for size in SIZES {
        assert!(seen(&full, size, "").contains(" gpu-node-0009 "), "{size:?}");
        for typed in ["", "<benchmarks>"] {
            let text = seen(&full, size, typed);
            assert!(text.contains(" gpu-node-0004 "), "{typed} {size:?}: {text}");
            assert!(!text.contains("…ternal"), "{typed} {size:?}: {text}");
        }
    }
    assert!(seen(&full, SIZES[0], "<node>").contains("gpu-node-0004.eu-north1.example.internal"));
}

#[test]
fn a_long_name_leaves_room_for_the_finding() {
    let mut full = snapshot(IDLE);
    let long = "rack-00-chassis-0-slot-04.very-long-datacenter-name.europe-north1.example.internal";
    let say = |node: &Arc<NodeRow>| {
        let reason = |of: &VerdictRow| format!("{long}: {} 256, 49 % below 23 peers (median 505)", of.metric.path());
        let said = |of: &VerdictRow| VerdictRow { reason: reason(of), ..of.clone() };
        let verdicts: Arc<[VerdictRow]> = node.verdicts.iter().map(said).collect();
        let reasons = verdicts.iter().map(|verdict| verdict.reason.clone()).collect();
        let name = if node.state == State::Fail { long.to_owned() } else { node.name.clone() };
        Arc::new(NodeRow { name, reasons, verdicts, ..(**node).clone() })
    };
    full.nodes = full.nodes.iter().map(say).collect();
    let text = seen(&full, SIZES[0], "<home><node>");
    let mut below = text.lines().skip_while(|line| !line.contains("Verdicts"));
    assert!(below.any(|line| line.contains("256, 49 % below 23 peers (median 505)")), "{text}");
}

#[test]
fn the_heading_of_the_sorted_column_is_whole() {
    let snapshot = snapshot(IDLE);
    for (typed, heading) in
        [("ss", " ▾similar vs peers "), ("sss", " similar▾vs peers "), ("ssS", " ▴similar vs peers ")]
    {
        let text = seen(&snapshot, SIZES[0], typed);
        assert!(text.contains(heading), "{typed}: {text}");
    }
}

#[test]
fn help_says_of_each_key_what_that_key_does_and_all_of_it() {
    let text = seen(&snapshot(IDLE), (80, 60), "?");
    assert!(text.contains(" ]        next node that is not a pass"), "{text}");
    assert!(text.contains(" [        the node before that is not a pass"), "{text}");
    assert!(!text.lines().any(|line| line.contains("││") && line.contains('…')), "{text}");
}

#[test]
fn a_case_without_an_inventory_counts_its_own_nodes() {
    let case = Snapshot { triage: snapshot(IDLE).triage, ..empty() };
    let nodes = case.triage.data.as_ref().unwrap().overview.nodes.len();
    let text = seen(&case, SIZES[0], "<triage>");
    assert!(nodes > 1 && text.lines().next().unwrap().contains(&format!(" {nodes} nodes")), "{text}");
}

#[test]
fn benchmarks_tell_stale_results_node_by_node_and_as_a_whole() {
    let old = with_old_results(snapshot(IDLE));
    let (ui, _) = after(&old, "3");
    let text = shown(&ui, &old);
    assert!(text.contains(" at alpha 0.95, 4 stale"), "{text}");
    assert!(text.lines().any(|line| line.contains("✗ rack1-04") && line.contains("stale (41 d)")), "{text}");
    let (ui, _) = after(&old, "3<tab><end>");
    let text = shown(&ui, &old);
    assert!(text.lines().any(|line| line.contains("◷ rack1-") && line.contains("stale (41 d)")), "{text}");
    let all = Snapshot { stale_result_ms: 60_000, ..snapshot(IDLE) };
    let (ui, _) = after(&all, "3");
    let text = shown(&ui, &all);
    assert!(text.contains(" stale│") && !text.contains(" ok│"), "{text}");
}

#[test]
fn a_stale_pass_is_no_pass_and_a_stale_failure_still_is_one() {
    let snapshot = with_old_results(snapshot(IDLE));
    for (typed, rows) in [
        ("/state:stale<enter>", "1-4/4"),
        ("/state:fail<enter>", "1-1/1"),
        ("/state:pass<enter>", "1-10/10"),
        ("/state:stale state:fail<enter>", "1-1/1"),
        ("/!state:pass<enter>", "1-6/6"),
    ] {
        let (ui, _) = after(&snapshot, typed);
        assert!(shown(&ui, &snapshot).contains(rows), "{typed}: {}", shown(&ui, &snapshot));
    }
    let (ui, _) = after(&snapshot, "/rack1-09<enter>");
    let said = "rack1-09: stale (41 d), no result is newer than 30 d; measure it again (space, then R)";
    assert!(shown(&ui, &snapshot).contains(said), "{}", shown(&ui, &snapshot));
    let (mut ui, _) = after(&snapshot, "/rack1-04<enter>");
    assert!(shown(&ui, &snapshot).contains("stale (41 d); rack1-04 is"), "{}", shown(&ui, &snapshot));
    let intents = press(&mut ui, &snapshot, "y");
    assert!(matches!(&intents[..], [Intent::Copy(text)] if text.starts_with("fail, stale (41 d): rack1-04 is")));
}

#[test]
fn only_what_changed_is_listed_worst_first_until_all_is_wanted_again() {
    let snapshot = snapshot(IDLE);
    let (mut ui, _) = after(&snapshot, "<node>");
    assert!(shown(&ui, &snapshot).contains("Verdicts, 9 changed"), "{}", shown(&ui, &snapshot));
    assert!(shown(&ui, &snapshot).contains("→ 2026-11-21 833 GFLOP/s, -41 %, worse"), "{}", shown(&ui, &snapshot));
    press(&mut ui, &snapshot, "d<end>");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("Verdicts, changed only") && text.contains(" 9/9 "), "{text}");
    assert!(text.contains("2.5x, better") && !text.contains("net-loopback/throughput"), "{text}");
    // What the cursor is on is what is opened and copied, and the next node is shown the same way.
    let copied = press(&mut ui, &snapshot, "y");
    assert!(matches!(&copied[..], [Intent::Copy(text)] if text.contains("disk/sequential-read")), "{copied:?}");
    press(&mut ui, &snapshot, "nnn");
    assert!(shown(&ui, &snapshot).contains("1/1 ┐"), "{}", shown(&ui, &snapshot));
    press(&mut ui, &snapshot, "d");
    assert!(shown(&ui, &snapshot).contains("1/11 ┐"), "{}", shown(&ui, &snapshot));
}

#[test]
fn a_node_without_a_run_before_says_so_once_earlier_runs_are_read() {
    let (mut ui, snapshot) = (after(&snapshot(IDLE), "<node>").0, with_old_results(snapshot(IDLE)));
    assert!(shown(&ui, &snapshot).contains("no earlier run has it"), "{}", shown(&ui, &snapshot));
    press(&mut ui, &snapshot, "d");
    assert!(shown(&ui, &snapshot).contains("No earlier run has these metrics; d shows all."));
    let reading = Snapshot { looking_back: true, ..snapshot };
    assert!(shown(&ui, &reading).contains("Reading earlier runs; d shows all."));
    press(&mut ui, &reading, "d");
    assert!(shown(&ui, &reading).contains("reading earlier runs"), "{}", shown(&ui, &reading));
}

#[test]
fn a_playbook_runs_on_the_marked_nodes_after_a_yes() {
    let snapshot = snapshot(IDLE);
    let (ui, intents) = after(&snapshot, "  <playbooks><down><enter>y");
    let nodes: Vec<String> = ui.marks().map(str::to_owned).collect();
    assert_eq!(nodes.len(), 2);
    assert_eq!(intents, [Intent::RunPlaybook { playbook: "burn-in".to_owned(), nodes }]);
}

#[test]
fn no_is_the_answer_unless_yes_is_given() {
    let snapshot = snapshot(IDLE);
    for typed in
        ["  <playbooks><enter><enter>", "  <playbooks><enter><esc>", "  <playbooks><enter>n", "r<enter>", " X<enter>"]
    {
        assert_eq!(after(&snapshot, typed).1, [], "{typed}");
    }
    let (ui, asked) = after(&snapshot, "r<tab><enter>");
    let Some(Intent::RunPlaybook { nodes, .. }) = asked.first() else { panic!("{asked:?}") };
    let bad = |name: &&String| {
        let node = snapshot.nodes.iter().find(|node| node.name == **name).unwrap();
        matches!(node.state, State::Fail | State::Unknown)
    };
    // Those that are in doubt, and beside them as many others as a comparison takes.
    let doubtful = snapshot.nodes.iter().filter(|node| matches!(node.state, State::Fail | State::Unknown)).count();
    assert_eq!((nodes.iter().filter(bad).count(), nodes.len()), (doubtful, 16));
    assert!(ui.marks().next().is_none(), "{nodes:?}");
}

#[test]
fn more_than_ten_nodes_need_their_count_typed() {
    let snapshot = snapshot(IDLE);
    for typed in [
        "<playbooks><enter>y<enter>",
        "<playbooks><enter><enter>",
        "<playbooks><enter>15<enter>",
        "<playbooks><enter>15<enter><esc>",
    ] {
        assert_eq!(after(&snapshot, typed).1, [], "{typed}");
    }
    let (_, intents) = after(&snapshot, "<playbooks><enter>16<enter>");
    assert!(
        matches!(&intents[..], [Intent::RunPlaybook { playbook, nodes }] if playbook == "build-out" && nodes.len() == 16)
    );
}

#[test]
fn a_box_shows_the_first_five_names_and_how_many_more() {
    let snapshot = snapshot(IDLE);
    let (ui, _) = after(&snapshot, "X");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("Remove probes from all 16 nodes?"), "{text}");
    assert!(text.contains("rack1-00, rack1-01, rack1-02, rack1-03, rack1-04, +11"), "{text}");
}

#[test]
fn quitting_asks_while_a_run_goes_on_and_only_then() {
    let (idle, live) = (snapshot(IDLE), snapshot(DATA));
    assert_eq!(after(&idle, "q").1, [Intent::Quit]);
    assert_eq!(after(&live, "q").1, []);
    assert_eq!(after(&live, "qn").1, []);
    assert_eq!(after(&live, "qy").1, [Intent::Cancel, Intent::Quit]);
}

#[test]
fn the_first_interrupt_cancels_and_the_second_quits() {
    let (idle, live) = (snapshot(IDLE), snapshot(DATA));
    assert_eq!(after(&live, "<c-c>").1, [Intent::Cancel]);
    assert_eq!(after(&live, "<c-c><c-c>").1, [Intent::Cancel, Intent::Quit]);
    assert_eq!(after(&live, ":run<c-c><c-c>").1, [Intent::Cancel, Intent::Quit], "a box does not lock anybody in");
    assert_eq!(after(&idle, "<c-c><c-c>").1, [Intent::Quit]);
}

#[test]
fn two_interrupts_far_apart_do_not_quit() {
    let live = snapshot(DATA);
    let (mut ui, _) = after(&live, "<c-c>");
    update(&mut ui, Event::Tick { age_ms: 10_000 }, &live);
    assert_eq!(press(&mut ui, &live, "<c-c>"), [Intent::Cancel]);
}

#[test]
fn cancelling_and_running_wait_for_one_another() {
    let (idle, live) = (snapshot(IDLE), snapshot(DATA));
    assert_eq!(after(&live, "cy").1, [Intent::Cancel]);
    let (ui, intents) = after(&idle, "c");
    assert_eq!(intents, []);
    assert!(shown(&ui, &idle).contains("nothing is running"));
    let (ui, intents) = after(&live, "<playbooks><enter>16<enter>");
    assert_eq!(intents, []);
    assert!(shown(&ui, &live).contains("build-out is still running; c cancels it"));
}

#[test]
fn copy_and_export_take_what_is_under_the_cursor() {
    let snapshot = snapshot(IDLE);
    let copied = |typed: &str| match after(&snapshot, typed).1.pop() {
        Some(Intent::Copy(text)) => text,
        other => panic!("{typed}: {other:?}"),
    };
    assert!(copied("y").starts_with("fail: rack1-04 is"));
    assert!(copied("3y").starts_with("cpu-gemm/fp32@own: ok, 13 of 14 nodes healthy"));
    assert_eq!(copied("<playbooks>y"), "muster run build-out");
    assert_eq!(copied("/rack1-00<enter> <esc>/rack1-03<enter> y"), "rack1-00,rack1-03");
    assert_eq!(
        after(&snapshot, "2em").1,
        [Intent::Export(Export::Node { node: "rack1-04".to_owned() }, Format::Markdown)]
    );
    assert_eq!(
        after(&snapshot, "/state:fail<enter>e<enter>").1,
        [Intent::Export(Export::Fleet { nodes: vec!["rack1-04".to_owned()] }, Format::Json)]
    );
    assert_eq!(after(&snapshot, "e<esc>").1, []);
    assert_eq!(after(&snapshot, "<log>e").1, [Intent::Export(Export::Log, Format::Markdown)]);
}

#[test]
fn sliders_ask_the_selector_anew_and_its_answer_can_be_run() {
    let snapshot = snapshot(IDLE);
    let asked = |typed: &str| match after(&snapshot, typed).1.pop() {
        Some(Intent::Ask(ask)) => (ask.job_hours, ask.budget_minutes, ask.p0),
        other => panic!("{typed}: {other:?}"),
    };
    assert_eq!(asked("<selector>]"), (48.0, Some(30.0), Some(0.2)));
    assert_eq!(asked("<selector>]]--"), (72.0, Some(15.0), Some(0.2)));
    assert_eq!(asked("<selector>>>>>"), (24.0, Some(30.0), None));
    let (_, intents) = after(&snapshot, "<selector>Ry");
    assert!(
        matches!(&intents[..], [Intent::RunSelection { benchmarks, nodes }] if benchmarks.len() == 3 && !nodes.is_empty())
    );
    assert_eq!(after(&snapshot, "<selector>R<enter>").1, []);
}

#[test]
fn other_terms_are_tried_and_escape_restores_those_in_force() {
    let snapshot = snapshot(IDLE);
    let terms = |typed: &str| match after(&snapshot, typed).1.pop() {
        Some(Intent::WhatIf(terms)) => terms.map(|t| ((t.alpha * 1e3).round(), (t.tau * 1e3).round(), t.group)),
        other => panic!("{typed}: {other:?}"),
    };
    assert_eq!(terms("<benchmarks>+"), Some((955.0, 10.0, None)));
    assert_eq!(terms("<benchmarks>++-"), Some((955.0, 10.0, None)));
    assert_eq!(terms("<benchmarks>>>"), Some((950.0, 20.0, None)));
    assert_eq!(terms("<benchmarks>oo"), Some((950.0, 10.0, Some("gpu".to_owned()))));
    assert_eq!(terms("<benchmarks>+<esc>"), None);
    // Both stored versions of the first metric, one after the other, and then what is in force.
    let version = |typed: &str| match after(&snapshot, typed).1.pop() {
        Some(Intent::WhatIf(Some(terms))) => terms.version,
        other => panic!("{typed}: {other:?}"),
    };
    let stored = &snapshot.criteria.data.as_deref().unwrap().versions;
    for (typed, at) in [("<benchmarks>v", 0), ("<benchmarks>vv", 1), ("<benchmarks>vv++", 1)] {
        assert_eq!(version(typed).as_ref(), Some(&stored[at].criterion.id));
    }
    assert_eq!(version("<benchmarks>vvv"), None);
    let (ui, _) = after(&snapshot, "<benchmarks>vv");
    assert!(shown(&ui, &snapshot).contains("cpu-gemm/fp32 by #"), "{}", shown(&ui, &snapshot));
    let (ui, _) = after(&snapshot, "<benchmarks>+");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("WHAT IF alpha 0.955 (0.95)"), "{text}");
    assert_eq!(after(&snapshot, "<benchmarks>+<esc>").0.screen(), Screen::Benchmarks);
}

#[test]
fn nodes_that_other_terms_flip_are_named() {
    let mut snapshot = snapshot(IDLE);
    let flip = |node, from, to| Flip { node, from, to, because: "similarity 0.986".to_owned() };
    let flips = Arc::from([flip(3, State::Pass, State::Fail), flip(4, State::Fail, State::Pass)]);
    let (ui, _) = after(&snapshot, "<benchmarks>++++++++");
    assert!(shown(&ui, &snapshot).contains("what if: asking"));
    let Some(Intent::WhatIf(Some(terms))) = after(&snapshot, "<benchmarks>++++++++").1.pop() else {
        panic!("no terms")
    };
    snapshot.what_if = Some(Arc::new(WhatIf { terms, nodes: 14, flips, took_ms: 7 }));
    let (ui, _) = after(&snapshot, "<benchmarks>++++++++");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("what if: 2 of 14 nodes flip"), "{text}");
    assert!(text.lines().any(|l| l.contains("rack1-03") && l.contains("✓ pass → ✗ fail")), "{text}");
    let (ui, _) = after(&snapshot, "<benchmarks>++++++++<esc>");
    assert!(!shown(&ui, &snapshot).to_lowercase().contains("what if"));
}

#[test]
fn the_selector_is_asked_once_when_nothing_is_known() {
    let nothing = crate::synthetic::empty();
    let (_, intents) = after(&nothing, "<selector>jj");
    assert!(matches!(&intents[..], [Intent::Ask(_)]), "{intents:?}");
}

#[test]
fn the_pair_under_the_cursor_is_asked_for_once() {
    let snapshot = snapshot(IDLE);
    let mut ui = console(&snapshot, Theme::new(true, false), SIZE);
    let all: Vec<Intent> =
        keys("<network>lhh").into_iter().flat_map(|key| update(&mut ui, Event::Key(key), &snapshot)).collect();
    let pairs: Vec<&Intent> = all.iter().filter(|i| matches!(i, Intent::Pair { .. })).collect();
    assert_eq!(pairs.len(), 4, "where it stands, one right, back, one left: {pairs:?}");
}

#[test]
fn pairs_are_to_be_measured_only_where_something_is_in_doubt() {
    let mut snapshot = snapshot(IDLE);
    let look = |snapshot: &Snapshot| shown(&after(snapshot, "<network>").0, snapshot);
    Arc::make_mut(snapshot.network.data.as_mut().unwrap()).suspects = Arc::from([]);
    assert!(look(&snapshot).contains("to decide, measure"), "{}", look(&snapshot));
    Arc::make_mut(snapshot.network.data.as_mut().unwrap()).undecided = Arc::from([]);
    let said = look(&snapshot);
    assert!(said.contains("Nothing stands out") && !said.contains("to decide"), "{said}");
}

#[test]
fn the_pair_with_the_highest_latency_is_above_the_usual() {
    let mut snapshot = snapshot(IDLE);
    let look = |snapshot: &Snapshot| shown(&after(snapshot, "<network>").0, snapshot);
    assert!(!look(&snapshot).contains("x the usual"), "{}", look(&snapshot));
    Arc::make_mut(snapshot.network.data.as_mut().unwrap()).direction = Direction::LowerIsBetter;
    let said = look(&snapshot);
    assert!(said.contains("x the usual") && said.contains(">400"), "{said}");
}

#[test]
fn enter_goes_into_a_block_and_minus_leads_out() {
    let many = snapshot(Fleet { nodes: 500, slow: 3, lost_each: 50, running: false });
    let (ui, _) = after(&many, "<network>");
    assert!(shown(&ui, &many).contains("worst of"));
    let (ui, _) = after(&many, "<network>b");
    assert!(shown(&ui, &many).contains("median of"));
    let (ui, _) = after(&many, "<network><enter><enter>");
    assert!(shown(&ui, &many).contains("500 x 500, part"), "{}", shown(&ui, &many));
    let (ui, _) = after(&many, "<network><enter><enter>--------");
    assert!(shown(&ui, &many).contains("worst of"));
}

#[test]
fn the_palette_finds_commands_by_any_word() {
    let snapshot = snapshot(IDLE);
    assert_eq!(after(&snapshot, ":go log<enter>").0.screen(), Screen::Log);
    assert_eq!(after(&snapshot, ":redraw<enter>").1, [Intent::Redraw]);
    assert!(matches!(&after(&snapshot, " R".to_owned().as_str()).1[..], []));
    let (_, intents) = after(&snapshot, " :delivery, short<enter>y");
    assert!(matches!(&intents[..], [Intent::RunPlaybook { playbook, .. }] if playbook == "cbd-light"), "{intents:?}");
    assert_eq!(after(&snapshot, ":no such command<enter>").1, []);
}

#[test]
fn a_metric_is_followed_while_metrics_arrive() {
    let full = snapshot(IDLE);
    let mut few = full.clone();
    few.metrics = Metrics::new(few.metrics[4..].to_vec()).into();
    let (mut ui, _) = after(&few, "3j");
    let title = "cpu-latency/dram@own";
    assert!(shown(&ui, &few).contains(title));
    let mut full = full;
    full.generation += 1;
    update(&mut ui, Event::Snapshot, &full);
    assert!(shown(&ui, &full).contains(title), "{}", shown(&ui, &full));
}

#[test]
fn marks_are_for_nodes_that_are_shown_and_escape_clears_them() {
    let snapshot = snapshot(IDLE);
    assert_eq!(after(&snapshot, "/group:odd<enter>a").0.marks().count(), 8);
    assert_eq!(after(&snapshot, "aa").0.marks().count(), 0);
    assert_eq!(after(&snapshot, "   <esc>").0.marks().count(), 0);
}

#[test]
fn help_lists_every_key_that_the_screen_takes() {
    let snapshot = snapshot(IDLE);
    for screen in Screen::ALL {
        let (ui, _) = after(&snapshot, &format!("<{}>?", screen.title()));
        let text = glyphs(&frame(&ui, &snapshot, (120, 60)));
        for sentence in ["draw the screen anew", "quit; asks when a run goes on", "On "] {
            assert!(text.contains(sentence), "{screen:?}: {text}");
        }
    }
}

#[test]
fn below_the_least_size_only_quitting_works() {
    let live = snapshot(DATA);
    let mut ui = console(&live, Theme::new(true, false), (50, 10));
    assert_eq!(press(&mut ui, &live, "cy<playbooks><enter>"), []);
    assert_eq!(press(&mut ui, &live, "q"), [Intent::Quit]);
}

#[test]
fn ages_grow_with_the_clock_and_stale_ones_dim() {
    let live = snapshot(DATA);
    let (mut ui, _) = after(&live, "");
    assert!(shown(&ui, &live).contains("frame 0.4s ago"));
    update(&mut ui, Event::Tick { age_ms: 70_000 }, &live);
    assert!(shown(&ui, &live).contains("frame 70s ago"), "{}", shown(&ui, &live));
    assert_eq!(live.now_ms, NOW_MS);
}

#[test]
fn the_cursor_stays_on_the_first_row_until_a_key_is_pressed() {
    let (old, mut new) = (snapshot(IDLE), snapshot(Fleet { slow: 4, ..IDLE }));
    new.generation = old.generation + 1;
    let first = |ui: &Ui, snapshot: &Snapshot| {
        let shown = shown(ui, snapshot);
        let row = shown.lines().nth(4).unwrap().to_owned();
        assert!(row.contains('▸') && row.contains(ui.selected().unwrap()), "{row}");
    };
    let mut ui = console(&old, Theme::new(true, false), SIZE);
    first(&ui, &old);
    update(&mut ui, Event::Snapshot, &new);
    first(&ui, &new);
}

#[test]
fn brackets_lead_from_finding_to_finding() {
    let snapshot = snapshot(IDLE);
    let state = |ui: &Ui| snapshot.nodes.iter().find(|node| Some(node.name.as_str()) == ui.selected()).unwrap().state;
    let findings = snapshot.nodes.iter().filter(|node| node.state != State::Pass).count();
    assert!(findings >= 2, "{findings}");
    let (mut ui, _) = after(&snapshot, "<end>[");
    assert_ne!(state(&ui), State::Pass);
    press(&mut ui, &snapshot, "g");
    for _ in 1..findings {
        press(&mut ui, &snapshot, "]");
        assert_ne!(state(&ui), State::Pass);
    }
    let last = ui.selected().map(str::to_owned);
    press(&mut ui, &snapshot, "]");
    assert_eq!(ui.selected().map(str::to_owned), last);
    assert!(shown(&ui, &snapshot).contains("no further finding below"));
}

#[test]
fn the_mouse_selects_opens_sorts_scrolls_and_changes_the_screen() {
    let snapshot = snapshot(IDLE);
    let mut ui = console(&snapshot, Theme::new(true, false), SIZE);
    let mouse = |ui: &mut Ui, mouse| update(ui, Event::Mouse(mouse), &snapshot);
    let row_of = |ui: &Ui, name: &str| {
        let place = shown(ui, &snapshot).lines().position(|line| line.contains(name)).unwrap();
        u16::try_from(place).unwrap()
    };
    let y = row_of(&ui, "rack1-07");
    mouse(&mut ui, Mouse::Click { x: 10, y });
    assert_eq!((ui.selected(), ui.screen()), (Some("rack1-07"), Screen::Fleet));
    mouse(&mut ui, Mouse::Click { x: 10, y });
    assert_eq!(ui.screen(), Screen::Node);
    let tabs = shown(&ui, &snapshot).lines().nth(1).unwrap().to_owned();
    let before = tabs.find("Log").unwrap();
    let x = u16::try_from(tabs[..before].chars().count()).unwrap();
    mouse(&mut ui, Mouse::Click { x, y: 1 });
    assert_eq!(ui.screen(), Screen::Log);
    mouse(&mut ui, Mouse::Click { x: 2, y: 1 });
    assert_eq!(ui.screen(), Screen::Fleet);
    press(&mut ui, &snapshot, "g");
    mouse(&mut ui, Mouse::Wheel { down: true });
    let shown = shown(&ui, &snapshot);
    assert!(shown.lines().nth(7).unwrap().contains('▸'), "{shown}");
    mouse(&mut ui, Mouse::Click { x: 5, y: 3 });
    let sorted = glyphs(&frame(&ui, &snapshot, SIZE));
    assert!(sorted.lines().nth(2).unwrap().contains("by node"), "{sorted}");
}

#[test]
fn control_z_stops_the_console_unless_a_run_would_end_with_it() {
    assert_eq!(after(&snapshot(IDLE), "<c-z>").1, [Intent::Suspend]);
    let running = snapshot(DATA);
    let (ui, intents) = after(&running, "<c-z>");
    assert_eq!(intents, []);
    assert!(shown(&ui, &running).contains("would end if this console stopped"));
}

#[test]
fn the_palette_opens_nodes_and_metrics_and_offers_the_last_command_first() {
    let snapshot = snapshot(IDLE);
    let (ui, _) = after(&snapshot, ":rack1-07<enter>");
    assert_eq!((ui.screen(), ui.selected()), (Screen::Node, Some("rack1-07")));
    let (ui, _) = after(&snapshot, ":cpu-latency/dram<enter>");
    assert_eq!(ui.screen(), Screen::Benchmarks);
    assert!(shown(&ui, &snapshot).contains(" cpu-latency/dram@own "));
    let (ui, _) = after(&snapshot, ":show failed<enter>:");
    let shown = shown(&ui, &snapshot);
    let list: Vec<&str> = shown.lines().skip_while(|line| !line.contains("Commands")).collect();
    assert!(list[2].contains("show failed"), "{shown}");
}

#[test]
fn a_stored_run_is_opened_alone_and_escape_shows_all_runs_again() {
    let snapshot = snapshot(IDLE);
    let (ui, intents) = after(&snapshot, "<runs>j<enter>");
    let second = snapshot.runs.data.as_ref().unwrap().rows[1].run.id.clone();
    assert_eq!((ui.screen(), intents), (Screen::Fleet, vec![Intent::Runs, Intent::Open { run: Some(second.clone()) }]));
    let alone = Snapshot { alone: Some(second.clone()), mode: Mode::Idle, ..snapshot };
    assert!(shown(&ui, &alone).contains(&format!("RUN {}", &second[..20])));
    assert_eq!(after(&alone, "<esc>").1, [Intent::Open { run: None }]);
}

#[test]
fn measuring_again_says_on_which_nodes() {
    let snapshot = snapshot(IDLE);
    let count = |state: State| snapshot.nodes.iter().filter(|node| node.state == state).count();
    let (ui, _) = after(&snapshot, "r");
    let shown = shown(&ui, &snapshot);
    assert_eq!(count(State::Fail), 1);
    assert!(shown.contains("Measure again 1 failed node (rack1-04)"), "{shown}");
    assert!(shown.contains("and on 13 nodes that passed"), "{shown}");
}

/// The same fleet some results later, with a slow node more.
fn later(snapshot: &Snapshot) -> Snapshot {
    let newer = crate::synthetic::snapshot(Fleet { slow: 3, ..DATA });
    Snapshot { generation: snapshot.generation + 1, now_ms: snapshot.now_ms + 40_000, ..newer }
}

#[test]
fn a_frozen_picture_holds_still_while_results_arrive_and_goes_on_with_the_same_key() {
    let old = snapshot(DATA);
    let new = later(&old);
    let rows = |ui: &Ui, snapshot: &Snapshot| {
        let shown = shown(ui, snapshot);
        shown.lines().skip(2).take(20).map(|line| line.chars().take(60).collect::<String>()).collect::<Vec<_>>()
    };
    for screen in [Screen::Fleet, Screen::Node, Screen::Benchmarks, Screen::Network, Screen::Playbooks] {
        let (mut ui, _) = after(&old, &format!("<{}>", screen.title()));
        let before = rows(&ui, &old);
        press(&mut ui, &old, "F");
        assert!(shown(&ui, &old).contains("FROZEN for 0s"), "{}", shown(&ui, &old));
        update(&mut ui, Event::Snapshot, &new);
        update(&mut ui, Event::Tick { age_ms: 3_000 }, &new);
        let text = shown(&ui, &new);
        assert!(text.contains("FROZEN for 43s"), "{text}");
        if screen != Screen::Playbooks {
            assert_eq!(rows(&ui, &new), before, "{screen:?}");
        }
        assert!(text.contains("1 fail") && !text.contains("3 fail"), "{text}");
        press(&mut ui, &new, "F");
        let text = shown(&ui, &new);
        assert!(text.contains("3 fail") && !text.contains("FROZEN"), "{text}");
    }
}

#[test]
fn a_frozen_console_still_knows_whether_a_run_goes_on() {
    let (idle, live) = (snapshot(IDLE), snapshot(DATA));
    let live = Snapshot { generation: idle.generation + 1, ..live };
    let (mut ui, _) = after(&idle, "F");
    update(&mut ui, Event::Snapshot, &live);
    assert_eq!(press(&mut ui, &live, "q"), [], "it asks first");
    assert_eq!(press(&mut ui, &live, "y"), [Intent::Cancel, Intent::Quit]);
}

#[test]
fn a_frozen_picture_ends_where_other_nodes_are_listed() {
    let old = snapshot(IDLE);
    let (mut ui, _) = after(&old, "F");
    let alone = Snapshot { alone: Some("r-1".to_owned()), mode: Mode::Idle, ..old.clone() };
    update(&mut ui, Event::Snapshot, &alone);
    assert!(!ui.is_frozen());
    assert!(shown(&ui, &alone).contains("RUN r-1"));
}

#[test]
fn wide_gives_the_list_all_of_the_width_and_back() {
    let snapshot = snapshot(IDLE);
    let size = (200, 60);
    let look = |typed: &str| {
        let mut ui = console(&snapshot, Theme::new(true, false), size);
        press(&mut ui, &snapshot, typed);
        glyphs(&frame(&ui, &snapshot, size))
    };
    // What stands beside the list of each screen.
    for (screen, beside) in [
        ("fleet", "dmi.product"),
        ("node", "Passport"),
        ("benchmarks", "enough nodes agree"),
        ("criteria", "No version before it"),
        ("selector", "Without an incident"),
        ("network", "Suspects"),
    ] {
        let (narrow, wide) = (look(&format!("<{screen}>")), look(&format!("<{screen}>w")));
        assert!(narrow.contains(beside) && !wide.contains(beside), "{screen}: {narrow}{wide}");
        assert_eq!(look(&format!("<{screen}>ww")), narrow);
    }
    assert!(look("<benchmarks>w").contains("13/14 healthy"), "{}", look("<benchmarks>w"));
    assert!(look("<benchmarks><tab>w").contains("similarity: 1 of 14 nodes"), "what has the keys is wide");
    assert!(look("<node><tab>w").contains("Passport"));
}

#[test]
fn the_rack_map_moves_by_what_is_seen_and_opens_nodes() {
    let many = snapshot(Fleet { nodes: 160, slow: 3, lost_each: 50, running: false });
    let (mut ui, _) = after(&many, "m<end>");
    assert_eq!(ui.selected(), Some("rack4-39"));
    press(&mut ui, &many, "hh");
    assert_eq!(ui.selected(), Some("rack4-37"));
    assert!(shown(&ui, &many).contains("rack4-37  ✓ pass  rack r4, leaf2"), "{}", shown(&ui, &many));
    press(&mut ui, &many, "<enter>");
    assert_eq!((ui.screen(), ui.selected()), (Screen::Node, Some("rack4-37")));
    press(&mut ui, &many, "<esc>m");
    assert_eq!(ui.selected(), Some("rack4-37"), "the table is where the map was");
    assert!(shown(&ui, &many).lines().any(|line| line.contains('▸') && line.contains("rack4-37")));
}

#[test]
fn the_rack_map_passes_over_what_the_filter_hides() {
    let many = snapshot(Fleet { nodes: 160, slow: 3, lost_each: 0, running: false });
    let (mut ui, _) = after(&many, "m/state:fail<enter>g");
    let state = |ui: &Ui| many.nodes.iter().find(|node| Some(node.name.as_str()) == ui.selected()).unwrap().state;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..6 {
        assert_eq!(state(&ui), State::Fail);
        seen.insert(ui.selected().unwrap().to_owned());
        press(&mut ui, &many, "j");
    }
    assert!(seen.len() > 1, "{seen:?}");
}

#[test]
fn a_folded_cell_says_how_many_are_in_the_worst_state_and_opens_the_first_of_them() {
    let many = snapshot(Fleet { nodes: 10_000, slow: 12, lost_each: 50, running: false });
    let worst = many.nodes.iter().find(|node| node.state == State::Fail).unwrap().name.clone();
    let (ui, _) = after(&many, &format!("m/{worst}$<enter><esc><enter>"));
    assert_eq!((ui.screen(), ui.selected()), (Screen::Node, Some(worst.as_str())));
    let (ui, _) = after(&many, "m");
    let text = shown(&ui, &many);
    assert!(text.contains("a cell is up to") && text.contains("one of "), "{text}");
    assert!(text.contains("✗ 1 fail"), "{text}");
}

#[test]
fn the_mouse_selects_and_opens_cells_of_the_map() {
    let snapshot = snapshot(IDLE);
    let (mut ui, _) = after(&snapshot, "m<end>hhh");
    let name = ui.selected().unwrap().to_owned();
    let text = shown(&ui, &snapshot);
    let y = text.lines().position(|line| line.contains("r1 ")).unwrap() as u16;
    let x = text.lines().nth(usize::from(y)).unwrap().chars().position(|c| "✓✗?".contains(c)).unwrap() as u16;
    press(&mut ui, &snapshot, "g");
    let first = ui.selected().unwrap().to_owned();
    press(&mut ui, &snapshot, "<end>");
    update(&mut ui, Event::Mouse(Mouse::Click { x, y }), &snapshot);
    assert_eq!((ui.selected(), ui.screen()), (Some(first.as_str()), Screen::Fleet));
    update(&mut ui, Event::Mouse(Mouse::Click { x, y }), &snapshot);
    assert_eq!(ui.screen(), Screen::Node);
    assert_ne!(name, first);
}

#[test]
fn the_palette_shows_stored_runs_and_does_what_other_screens_can() {
    let full = snapshot(IDLE);
    let id = full.runs.data.as_ref().unwrap().rows[1].run.id.clone();
    let (ui, intents) = after(&full, &format!(":{id}<enter>"));
    assert_eq!((ui.screen(), intents), (Screen::Fleet, vec![Intent::Open { run: Some(id.clone()) }]));
    assert!(shown(&after(&full, &format!(":{}", &id[..10])).0, &full).contains(&id), "no name of a run is cut");
    let (ui, _) = after(&full, "<log>:rack map<enter>");
    assert_eq!(ui.screen(), Screen::Fleet);
    assert!(shown(&ui, &full).contains("a cell is a node"));
    let (_, intents) = after(&full, ":longer job<enter>");
    assert!(matches!(&intents[..], [Intent::Ask(_)]), "{intents:?}");
    let unread = Snapshot { runs: muster_tui::snapshot::Part::default(), ..full.clone() };
    assert_eq!(after(&unread, ":").1, [Intent::Runs], "the list of runs is asked for where it was not read yet");
    let (ui, _) = after(&full, ":rack1-07<enter>:");
    let shown = shown(&ui, &full);
    let list: Vec<&str> = shown.lines().skip_while(|line| !line.contains("Commands")).collect();
    assert!(list[2].contains("rack1-07"), "a node that was opened is offered first: {shown}");
}

#[test]
fn provisional_states_have_a_mark_in_the_table_and_a_word_elsewhere() {
    let live = snapshot(DATA);
    let provisional = live.nodes.iter().filter(|node| node.provisional).count();
    assert!(provisional > 0);
    let (ui, _) = after(&live, "");
    let marked = shown(&ui, &live).lines().filter(|line| line.contains("pass~") || line.contains("fail~")).count();
    assert_eq!(marked, provisional);
    let (ui, _) = after(&live, "/state:provisional<enter>");
    let text = shown(&ui, &live);
    assert!(text.contains(&format!("1-{provisional}/{provisional}")), "{text}");
    let (ui, _) = after(&live, "/state:provisional<enter><enter>");
    assert!(shown(&ui, &live).contains(", provisional"), "{}", shown(&ui, &live));
}
