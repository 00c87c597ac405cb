//! What keys do on the screen of a watched job.

use muster_tui::snapshot::{Origin, Part, Watching};
use muster_tui::{Event, Export, Intent, Screen, Snapshot, Theme, Ui};

use crate::keys::{after, press, shown};
use crate::picture::{SIZES, console, frame, glyphs};
use crate::synthetic::watch::watching;
use crate::synthetic::{DATA, Fleet, snapshot};

fn names(n: usize) -> Vec<String> {
    (0..n).map(|at| format!("rack1-{at:02}")).collect()
}

/// A console that is idle but for the watch of `n` of its nodes after so many seconds.
fn watched(n: usize, seconds: u32) -> Snapshot {
    let idle = snapshot(Fleet { running: false, nodes: n.max(16), ..DATA });
    Snapshot { watch: Part::ready(watching(&names(n), seconds)), ..idle }
}

fn recorded(over: bool) -> Snapshot {
    let (name, end_s) = ("made.csv".to_owned(), 1_795_269_900.0);
    let origin = Origin::Recording { name, speed: 60.0, at_s: 1_795_269_600.0, end_s };
    Snapshot { watch: Part::ready(Watching { origin, over, ..watching(&names(8), 900) }), ..watched(8, 60) }
}

#[test]
fn the_newest_alert_leads_and_its_sentence_has_its_age_and_what_to_do() {
    let snapshot = watched(8, 900);
    let text = shown(&after(&snapshot, "<watch>").0, &snapshot);
    assert!(text.contains("rack1-02, odd for 6 min "), "{text}");
    for word in ["odd for ", "Drain ", "1 open of 1"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn before_an_alert_the_evidence_counts_up_to_what_names_a_machine() {
    let snapshot = watched(4, 560);
    let (mut ui, _) = after(&snapshot, "<watch>");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("Evidence for ") && text.contains("of 130 s"), "{text}");
    assert!(text.contains("none so far"), "{text}");
    press(&mut ui, &snapshot, "G");
    assert!(!shown(&ui, &snapshot).contains("Evidence for "), "another machine has none");
}

#[test]
fn a_young_watch_says_how_long_it_still_learns() {
    let snapshot = watched(8, 25);
    let text = shown(&after(&snapshot, "<watch>").0, &snapshot);
    assert!(text.contains("learning what is usual (2 min 20 s left)"), "{text}");
    let few = watched(3, 200);
    let text = shown(&after(&few, "<watch>").0, &few);
    assert!(text.contains("undecided: only 3 nodes report"), "{text}");
}

#[test]
fn time_goes_back_and_on_and_follows_again() {
    let snapshot = watched(8, 900);
    let (mut ui, _) = after(&snapshot, "<watch>hhh");
    assert!(shown(&ui, &snapshot).contains("30 s back"), "{}", shown(&ui, &snapshot));
    press(&mut ui, &snapshot, "l");
    assert!(shown(&ui, &snapshot).contains("20 s back"));
    press(&mut ui, &snapshot, "-h");
    assert!(shown(&ui, &snapshot).contains("40 s back"), "a column is twice the time now");
    press(&mut ui, &snapshot, "f");
    assert!(shown(&ui, &snapshot).contains("LIVE "));
    press(&mut ui, &snapshot, "<<>");
    assert!(shown(&ui, &snapshot).contains(" back"));
    press(&mut ui, &snapshot, "<esc>");
    assert!(shown(&ui, &snapshot).contains("LIVE "), "escape goes one step back");
    press(&mut ui, &snapshot, "<esc>");
    assert_eq!(ui.screen(), Screen::Fleet);
}

#[test]
fn a_picture_that_is_held_stays_while_blocks_come_and_can_be_gone_back_in() {
    let (old, mut new) = (watched(8, 700), watched(8, 900));
    new.generation = old.generation + 1;
    let (mut ui, _) = after(&old, "<watch>");
    let time = "LIVE 13:56:30";
    assert!(shown(&ui, &old).contains(time), "{}", shown(&ui, &old));
    press(&mut ui, &old, "F");
    muster_tui::update(&mut ui, Event::Snapshot, &new);
    assert!(ui.is_frozen() && shown(&ui, &new).contains(time), "{}", shown(&ui, &new));
    press(&mut ui, &new, "h");
    assert!(shown(&ui, &new).contains("10 s back"));
    press(&mut ui, &new, "f");
    assert!(!ui.is_frozen() && shown(&ui, &new).contains("LIVE 13:59:50"), "{}", shown(&ui, &new));
}

#[test]
fn an_alert_leads_to_its_machine_to_the_check_and_to_the_file() {
    let snapshot = watched(8, 900);
    let (mut ui, _) = after(&snapshot, "<watch>Gn");
    press(&mut ui, &snapshot, "<enter>");
    assert_eq!((ui.screen(), ui.selected()), (Screen::Node, Some("rack1-02")));
    press(&mut ui, &snapshot, "<esc>L");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("Run cbd-light on 1 node?") && text.contains("rack1-02"), "{text}");
    let nodes = vec!["rack1-02".to_owned()];
    let run = Intent::RunPlaybook { playbook: "cbd-light".to_owned(), nodes };
    assert_eq!(press(&mut ui, &snapshot, "y"), [run]);
    let asked = press(&mut ui, &snapshot, "ej");
    assert!(matches!(asked[..], [Intent::Export(Export::Watch, _)]), "{asked:?}");
    assert!(
        matches!(&press(&mut ui, &snapshot, "y")[..], [Intent::Copy(text)] if text.starts_with("rack1-02, odd for "))
    );
}

#[test]
fn the_marked_nodes_are_watched_after_a_question_and_the_watch_is_stopped_after_another() {
    let snapshot = watched(8, 60);
    let (mut ui, _) = after(&snapshot, "  W");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("Watch the marked 2 nodes?") && text.contains("takes the place"), "{text}");
    let asked = press(&mut ui, &snapshot, "y");
    assert!(matches!(&asked[..], [Intent::Watch { nodes }] if nodes.len() == 2), "{asked:?}");
    assert_eq!(press(&mut ui, &snapshot, ":stop watching<enter>"), []);
    assert!(shown(&ui, &snapshot).contains("Stop watching 8 machines?"), "{}", shown(&ui, &snapshot));
    assert_eq!(press(&mut ui, &snapshot, "y"), [Intent::StopWatch]);
    assert!(shown(&after(&snapshot, ":watch<enter>").0, &snapshot).contains("Watch all 16 nodes?"));
}

#[test]
fn a_recording_jumps_on_past_its_newest_block_and_nothing_else_does() {
    let playing = recorded(false);
    let (mut ui, asked) = after(&playing, "<watch>l");
    assert_eq!(asked, [Intent::WatchFrom { at_s: 1_795_269_610.0 }]);
    assert!(shown(&ui, &playing).contains("60x"), "{}", shown(&ui, &playing));
    assert_eq!(press(&mut ui, &playing, "hl"), [], "that is only back to the newest");
    assert_eq!(after(&recorded(true), "<watch>l").1, []);
    assert_eq!(after(&watched(8, 300), "<watch>l").1, []);
}

#[test]
fn many_machines_fold_by_what_they_share_and_a_group_opens() {
    let snapshot = watched(160, 640);
    let (mut ui, _) = after(&snapshot, "<watch>");
    let folded = shown(&ui, &snapshot);
    assert!(folded.contains("leaf0 (8)") && !folded.contains("rack1-07 "), "{folded}");
    press(&mut ui, &snapshot, "<enter>");
    assert!(shown(&ui, &snapshot).contains("8 of 160 machines (leaf0)"), "{}", shown(&ui, &snapshot));
    press(&mut ui, &snapshot, "<esc>");
    assert!(shown(&ui, &snapshot).contains("leaf0 (8)"));
    press(&mut ui, &snapshot, "o");
    assert!(!shown(&ui, &snapshot).contains("leaf0 (8)"), "a row each");
    press(&mut ui, &snapshot, "/rack1-15<enter>");
    assert_eq!(ui.screen(), Screen::Watch, "the filter is of this screen");
    assert!(shown(&ui, &snapshot).contains("of 160 machines"), "{}", shown(&ui, &snapshot));
}

#[test]
fn lists_have_the_keys_one_after_the_other() {
    let snapshot = watched(8, 900);
    let (mut ui, _) = after(&snapshot, "<watch><tab>");
    let title = |ui: &Ui| shown(ui, &snapshot).lines().nth(2).unwrap_or_default().to_owned();
    let before = title(&ui);
    press(&mut ui, &snapshot, "j");
    assert_ne!(title(&ui), before, "another metric is shown");
    press(&mut ui, &snapshot, "<tab>j");
    let text = shown(&ui, &snapshot);
    assert!(text.contains("▸ Alerts"), "{text}");
}

#[test]
fn long_names_lose_their_middle_and_no_sentence_ends_within_a_word() {
    let long: Vec<String> =
        (0..8).map(|at| format!("hall7-row{at:02}-a-node-whose-name-is-as-long-as-names-may-get-{at:02}")).collect();
    let snapshot = Snapshot { watch: Part::ready(watching(&long, 900)), ..watched(8, 60) };
    for size in [(60, 16), (80, 24), (100, 30), (120, 40), (200, 60)] {
        for theme in [Theme::new(true, false), Theme::new(false, true)] {
            let mut ui = console(&snapshot, theme, size);
            press(&mut ui, &snapshot, "<watch>");
            let text = glyphs(&frame(&ui, &snapshot, size));
            assert!(text.contains("-07") || text.contains("-02"), "both ends of a name tell: {text}");
            let rows = text.lines().filter(|line| line.contains("machine"));
            assert!(rows.count() > 0, "{size:?}: {text}");
        }
    }
    assert!(SIZES.contains(&(120, 40)));
}
