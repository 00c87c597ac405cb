//! What the screen of a failed job shows, and what keys do on it.

use muster_logs::Category;
use muster_tui::snapshot::{Load, Part, Testing, Triaged};
use muster_tui::{Event, Export, Format, Intent, Mouse, Screen, Snapshot, Theme, update};

use crate::keys::{after, press, shown};
use crate::picture::{SIZES, compare, console, frame, glyphs};
use crate::synthetic::triage::{case, judged, triaged};
use crate::synthetic::watch::watching;
use crate::synthetic::{DATA, Fleet, snapshot};

fn names(n: usize) -> Vec<String> {
    (0..n).map(|at| format!("rack1-{at:02}")).collect()
}

/// A console that is idle, with the case of 16 nodes.
fn opened() -> Snapshot {
    snapshot(Fleet { running: false, ..DATA })
}

fn with(triaged: Triaged) -> Snapshot {
    Snapshot { triage: Part::ready(triaged), ..opened() }
}

/// The same after the leading suspect was marked as wrong.
fn without_the_first() -> Triaged {
    let case = case(&names(16));
    let first = judged(&case, &[]).overview.report.suspects[0].subject();
    judged(&case, &[first])
}

#[test]
fn the_verdict_its_category_in_plain_words_and_the_action_lead() {
    let snapshot = opened();
    let text = shown(&after(&snapshot, "<triage>").0, &snapshot);
    for words in [
        "hardware-critical: a part of a machine is broken",
        "rank 67 on rack1-08, GPU 3",
        "Next: Drain rack1-08",
        "nvidia-smi --gpu-reset -i 0000:07:00.0",
        "muster drain -w rack1-08",
        "128 of 128 ranks seen, 16 nodes",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn every_list_is_reached_by_tab_and_escape_leads_back_to_the_suspects() {
    let snapshot = opened();
    for size in SIZES {
        let mut ui = console(&snapshot, Theme::new(true, false), size);
        press(&mut ui, &snapshot, "<triage>");
        for title in ["Evidence", "Time line", "Ranks by communicators", "Steps", "Not looked at"] {
            press(&mut ui, &snapshot, "<tab>");
            let text = glyphs(&frame(&ui, &snapshot, size));
            assert!(text.contains(&format!("▸ {title}")), "{size:?} {title}: {text}");
        }
        press(&mut ui, &snapshot, "<esc>");
        assert!(glyphs(&frame(&ui, &snapshot, size)).contains("▸ job-4711"), "{size:?}");
        press(&mut ui, &snapshot, "<esc>");
        assert_eq!(ui.screen(), Screen::Fleet);
    }
}

#[test]
fn a_thousand_ranks_fold_with_the_failure_first_and_o_gives_each_its_line() {
    let snapshot = with(triaged(&names(128)));
    let (mut ui, _) = after(&snapshot, "<triage><tab><tab><tab>");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("1024 ranks, 2 lines, 449 level communicators not shown"), "{text}");
    assert!(text.contains("✗ 515") && text.contains("-2") && text.contains("0-514,516-10"), "{text}");
    assert!(text.contains("Rank 515 on rack1-64 (GPU 3)"), "{text}");
    press(&mut ui, &snapshot, "o");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("  0 ") && text.contains("  1 ") && !text.contains("2 lines"), "{text}");
    press(&mut ui, &snapshot, "/rack1-64<enter>");
    assert!(shown(&ui, &snapshot).contains("1024 ranks, 8 lines"), "{}", shown(&ui, &snapshot));
}

#[test]
fn events_within_the_error_of_two_clocks_are_joined_by_a_bracket() {
    let snapshot = opened();
    let (mut ui, _) = after(&snapshot, "<triage><tab><tab>");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("13:55:12.2") && text.contains("last step"), "{text}");
    // Sixteen nodes tell their time-outs within half a second of each other.
    press(&mut ui, &snapshot, "w<end>");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("│ │ 14:05:3"), "{text}");
    press(&mut ui, &snapshot, "/xid<enter><home>");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("2 of "), "{text}");
    assert!(
        text.contains("An uncorrectable double bit error (DBE)"),
        "the event under the cursor has its whole line: {text}"
    );
    press(&mut ui, &snapshot, "<esc>/nothing like it<enter>");
    assert!(shown(&ui, &snapshot).contains("No event matches `nothing like it`"));
}

#[test]
fn marking_the_suspect_asks_for_it_and_the_next_one_leads() {
    let snapshot = opened();
    let (mut ui, asked) = after(&snapshot, "<triage>x");
    let [Intent::TriageWrong { subject, wrong: true }] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((subject.node.as_deref(), subject.rank), (Some("rack1-08"), Some(67)));
    let next = with(without_the_first());
    update(&mut ui, Event::Snapshot, &next);
    let text = shown(&ui, &next);
    assert!(text.contains("marked wrong") && !text.contains("hardware-critical"), "{text}");
    // The last of the list is the marked one: x takes the mark away.
    press(&mut ui, &next, "G");
    let asked = press(&mut ui, &next, "x");
    assert!(matches!(&asked[..], [Intent::TriageWrong { wrong: false, .. }]), "{asked:?}");
}

#[test]
fn nodes_are_tested_without_the_job_after_a_question_that_names_them_and_what_must_hold() {
    let few = with(triaged(&names(4)));
    let (mut ui, asked) = after(&few, "<triage>O");
    assert_eq!(asked, []);
    let text = shown(&ui, &few);
    for words in ["Test the case's 4 nodes?", "rack1-00, rack1-01, rack1-02, rack1-03", "free of work", "minutes"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let asked = press(&mut ui, &few, "y");
    assert_eq!(asked, [Intent::TriageOffline { nodes: names(4) }]);
    let mut alone = triaged(&names(4));
    alone.testable = Err("nobody here can reach two of this case's nodes".to_owned());
    let alone = with(alone);
    let (ui, asked) = after(&alone, "<triage>Oy");
    assert!(!asked.iter().any(|intent| matches!(intent, Intent::TriageOffline { .. })), "{asked:?}");
    let (refused, _) = after(&alone, "<triage>O");
    assert!(shown(&refused, &alone).contains("nobody here can reach two"), "{}", shown(&ui, &alone));
}

/// The case of four nodes while these are tested for 75 s.
fn under_test(cancelling: bool) -> Snapshot {
    let open = with(triaged(&names(4)));
    let testing = Testing {
        nodes: "rack1-[00-03]".to_owned(),
        step: "reference job on rack1-[00-01] and on rack1-[02-03]".to_owned(),
        began_ms: open.now_ms - 75_000,
        cancelling,
    };
    Snapshot { testing: Some(testing.into()), ..open }
}

#[test]
fn a_test_that_goes_on_has_a_line_above_the_verdict_in_every_size_and_c_cancels_it() {
    let snapshot = under_test(false);
    for size in SIZES {
        let mut ui = console(&snapshot, Theme::new(true, false), size);
        press(&mut ui, &snapshot, "<triage>");
        let text = glyphs(&frame(&ui, &snapshot, size));
        assert!(
            text.contains("Offline diagnosis of rack1-[00-03], 1 min 15 s, c cancels: reference"),
            "{size:?}: {text}"
        );
        assert!(text.contains("hardware-critical: a part of a machine is broken"), "{size:?}: {text}");
        press(&mut ui, &snapshot, "O");
        assert!(glyphs(&frame(&ui, &snapshot, size)).contains("still running; c cancels it"), "{size:?}");
    }
    let (mut ui, _) = after(&snapshot, "<triage>c");
    assert!(shown(&ui, &snapshot).contains("Cancel the offline diagnosis?"));
    assert_eq!(press(&mut ui, &snapshot, "y"), [Intent::Cancel]);
    let (mut ui, _) = after(&snapshot, "<triage>q");
    assert!(shown(&ui, &snapshot).contains("Cancel the offline diagnosis and quit?"));
    assert_eq!(press(&mut ui, &snapshot, "y"), [Intent::Cancel, Intent::Quit]);
    let cancelled = under_test(true);
    let (ui, _) = after(&cancelled, "<triage>");
    assert!(shown(&ui, &cancelled).contains("1 min 15 s: cancelling"));
}

#[test]
fn a_cause_is_confirmed_after_a_question_and_a_program_error_never() {
    let snapshot = opened();
    let (mut ui, asked) = after(&snapshot, "<triage>C");
    assert_eq!(asked, []);
    assert!(shown(&ui, &snapshot).contains("Confirm rank 67 on rack1-08, GPU 3"), "{}", shown(&ui, &snapshot));
    let asked = press(&mut ui, &snapshot, "y");
    assert!(matches!(&asked[..], [Intent::TriageConfirm { .. }]), "{asked:?}");
    let mut program = triaged(&names(16));
    let mut overview = (*program.overview).clone();
    overview.report.category = Category::UserBug;
    program.overview = overview.into();
    let (ui, _) = after(&with(program.clone()), "<triage>C");
    assert!(shown(&ui, &with(program)).contains("no machine gets an incident"));
    let mut confirmed = triaged(&names(16));
    confirmed.confirmed.push(confirmed.overview.report.suspects[0].subject());
    let snapshot = with(confirmed);
    let (ui, asked) = after(&snapshot, "<triage>Cy");
    let said = !asked.iter().any(|intent| matches!(intent, Intent::TriageConfirm { .. }));
    assert!(said && shown(&ui, &snapshot).contains("confirmed"));
}

#[test]
fn keys_lead_to_the_node_to_the_watch_to_the_file_and_to_the_clipboard() {
    let snapshot = opened();
    let (ui, _) = after(&snapshot, "<triage><enter>");
    assert_eq!((ui.screen(), ui.selected()), (Screen::Node, Some("rack1-08")));
    // The fleet's watch has these machines.
    let watched = Snapshot { watch: Part::ready(watching(&names(16), 300)), ..opened() };
    assert_eq!(after(&watched, "<triage>W").0.screen(), Screen::Watch);
    let unwatched = Snapshot { watch: Part::default(), ..opened() };
    let (mut ui, _) = after(&unwatched, "<triage>W");
    assert!(shown(&ui, &unwatched).contains("Watch the case's 16 nodes?"), "{}", shown(&ui, &unwatched));
    press(&mut ui, &unwatched, "<esc>");
    assert_eq!(press(&mut ui, &unwatched, "em"), [Intent::Export(Export::Triage, Format::Markdown)]);
    let asked = press(&mut ui, &unwatched, "yD");
    assert!(
        matches!(&asked[..], [Intent::Copy(said), Intent::Copy(drain)]
            if said.starts_with("hardware-critical: rank 67") && drain.starts_with("muster drain -w rack1-08")),
        "{asked:?}"
    );
}

#[test]
fn the_palette_opens_a_bundle_by_its_path() {
    let snapshot = opened();
    let (ui, asked) = after(&snapshot, ":triage /data/Job-4711.tar.gz<enter>");
    assert_eq!(asked, [Intent::Triage { path: "/data/Job-4711.tar.gz".to_owned() }]);
    assert_eq!(ui.screen(), Screen::Triage);
    assert_eq!(after(&snapshot, ":go triage<enter>").0.screen(), Screen::Triage);
}

#[test]
fn from_an_alert_the_screen_says_what_would_be_collected_or_shows_the_suspect() {
    let alert = Snapshot { watch: Part::ready(watching(&names(8), 900)), triage: Part::default(), ..opened() };
    let (ui, _) = after(&alert, "<watch>t");
    let text = shown(&ui, &alert);
    assert_eq!(ui.screen(), Screen::Triage);
    for words in ["Alert on rack1-02: GPU power", "Triage would read", "7 machines watched beside it", "`:triage PATH`"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let both = Snapshot { watch: Part::ready(watching(&names(8), 900)), ..opened() };
    let (ui, _) = after(&both, "<watch>t");
    assert!(shown(&ui, &both).contains("hardware-critical"));
}

#[test]
fn a_bundle_that_cannot_be_read_says_why_and_one_that_is_read_how_far_it_is() {
    let load = |load| Snapshot { triage: Part { load, data: None }, ..opened() };
    let (what, why, next) = ("reading job-4711", "no part of a bundle in it", "`:triage PATH` opens another bundle.");
    let failed = load(Load::Failed { what: what.into(), why: why.into(), since_ms: 0, next: next.into() });
    let text = shown(&after(&failed, "<triage>jx<tab>C").0, &failed);
    assert!(text.contains("reading job-4711 failed") && text.contains(why) && text.contains(next), "{text}");
    let loading = load(Load::Loading { what: "reading job-4711: 120 of 1030 files".into(), since_ms: 0 });
    assert!(shown(&after(&loading, "<triage>").0, &loading).contains("120 of 1030 files"));
}

#[test]
fn a_click_gives_a_list_the_keys() {
    let snapshot = opened();
    let mut ui = console(&snapshot, Theme::new(true, false), (120, 40));
    press(&mut ui, &snapshot, "<triage>");
    for title in ["Time line", "Ranks by communicators", "Evidence"] {
        let text = glyphs(&frame(&ui, &snapshot, (120, 40)));
        let (y, line) = text.lines().enumerate().find(|(_, line)| line.contains(title)).unwrap();
        let x = line.chars().count() - line[line.find(title).unwrap()..].chars().count();
        let click = Mouse::Click { x: x as u16, y: y as u16 + 2 };
        update(&mut ui, Event::Mouse(click), &snapshot);
        assert!(glyphs(&frame(&ui, &snapshot, (120, 40))).contains(&format!("▸ {title}")), "{title}: {text}");
    }
}

/// The rows between the borders of the part of the screen that begins with the line that holds `title`.
fn inside(text: &str, title: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.contains(title)).skip(1);
    let inner = lines.take_while(|line| line.starts_with('│'));
    inner.map(|line| line.trim_matches(|c| c == '│' || c == ' ').to_owned()).collect()
}

/// Adds the lines of a view that was scrolled on by some.
fn append(seen: &mut Vec<String>, view: Vec<String>) {
    let most = seen.len().min(view.len());
    let known = (0..=most).rev().find(|n| seen[seen.len() - n..] == view[..*n]).unwrap_or(0);
    seen.extend(view.into_iter().skip(known));
}

fn flat(lines: &[String]) -> String {
    lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn no_sentence_is_clipped_at_any_size() {
    let snapshot = opened();
    let report = snapshot.triage.data.as_ref().unwrap().overview.report.clone();
    for size in SIZES {
        let mut ui = console(&snapshot, Theme::new(true, false), size);
        press(&mut ui, &snapshot, "<triage>");
        let text = glyphs(&frame(&ui, &snapshot, size));
        let head = flat(&inside(&text, "job-4711"));
        for sentence in [&report.suspects[0].sentence, &report.action] {
            assert!(head.contains(&flat(std::slice::from_ref(sentence))), "{size:?}: {sentence}: {text}");
        }
        press(&mut ui, &snapshot, "w");
        let evidence: Vec<String> = report.suspects[0].evidence.iter().map(|line| line.text.clone()).collect();
        let steps = report.steps.iter().flat_map(|step| [step.result.clone(), step.why.clone()]).collect();
        for (tabs, title, sentences) in
            [(1, "▸ Evidence", evidence), (3, "▸ Steps", steps), (1, "▸ Not looked at", report.not_looked_at.clone())]
        {
            (0..tabs).for_each(|_| drop(press(&mut ui, &snapshot, "<tab>")));
            let mut seen = Vec::new();
            for _ in 0..120 {
                append(&mut seen, inside(&glyphs(&frame(&ui, &snapshot, size)), title));
                press(&mut ui, &snapshot, "j");
            }
            let seen = flat(&seen);
            for sentence in sentences {
                assert!(seen.contains(&flat(std::slice::from_ref(&sentence))), "{size:?} {title}: {sentence}\n{seen}");
            }
        }
    }
}

#[test]
fn the_screen_looks_as_stored_in_every_list_and_state() {
    let long: Vec<String> = (0..16).map(|at| format!("hall7-row{at:02}-a-node-whose-name-is-long-{at:02}")).collect();
    let (opened, marked) = (opened(), with(without_the_first()));
    let (thousand, long) = (with(triaged(&names(128))), with(triaged(&long)));
    let none = Snapshot { triage: Part::default(), ..opened.clone() };
    let mut text = String::new();
    let (color, ascii) = (Theme::new(true, false), Theme::new(false, true));
    for (name, snapshot, theme, size, keys) in [
        ("nothing", &none, color, SIZES[0], ""),
        ("evidence", &opened, color, SIZES[0], "\t"),
        ("time line", &opened, color, SIZES[0], "\t\t"),
        ("time line", &opened, ascii, SIZES[1], "\t\t"),
        ("ranks", &opened, color, SIZES[0], "\t\t\t"),
        ("ranks", &thousand, color, SIZES[1], "\t\t\t"),
        ("a line each", &thousand, color, SIZES[1], "\t\t\to"),
        ("steps", &opened, color, SIZES[0], "\t\t\t\t"),
        ("gaps", &opened, color, SIZES[1], "\t\t\t\t\t"),
        ("wide", &opened, color, SIZES[2], "w\t\t"),
        ("filtered", &opened, color, SIZES[2], "/xid\n"),
        ("marked", &marked, color, SIZES[1], ""),
        ("long names", &long, color, SIZES[0], ""),
        ("long names", &long, color, SIZES[1], "\t\t"),
    ] {
        let mut ui = console(snapshot, theme, size);
        press(&mut ui, snapshot, "<triage>");
        crate::picture::typed(&mut ui, keys, snapshot);
        text += &format!("=== {name} {}x{}\n{}", size.0, size.1, glyphs(&frame(&ui, snapshot, size)));
    }
    compare("triage-cases", &text);
}
