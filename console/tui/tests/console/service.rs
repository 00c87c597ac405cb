//! Nodes in other hands: who sees it where, and what putting a node into other hands asks for.

use muster_tui::{Hand, Intent, Snapshot};

use crate::keys::{after, press, shown};
use crate::synthetic::service::{in_repair, swapped, with_hands};
use crate::synthetic::{DATA, Fleet, snapshot};

const IDLE: Fleet = Fleet { running: false, ..DATA };

fn hands() -> Snapshot {
    with_hands(snapshot(IDLE))
}

fn swap(hand: Hand, nodes: &[&str], reason: &str) -> Intent {
    Intent::Swap { hand, nodes: nodes.iter().map(|name| (*name).to_owned()).collect(), reason: reason.to_owned() }
}

#[test]
fn the_column_of_hands_stands_only_where_some_node_is_not_simply_in_service() {
    let (plain, other) = (snapshot(IDLE), hands());
    let header = |snapshot: &Snapshot| shown(&after(snapshot, "").0, snapshot).lines().nth(3).unwrap().to_owned();
    assert!(!header(&plain).contains("service"), "{}", header(&plain));
    assert!(header(&other).contains(" service "), "{}", header(&other));
    let title = shown(&after(&other, "").0, &other);
    assert!(title.contains("Nodes 16 ─ 1 defective, 1 in repair, 2 hot buffer ─ by state"), "{title}");
    let sorted = |snapshot: &Snapshot| shown(&after(snapshot, "s").0, snapshot);
    assert!(sorted(&plain).contains("by worst metric"), "a column that is not shown is not sorted by");
    assert!(sorted(&other).contains("by service"));
}

#[test]
fn nodes_are_found_by_the_hands_they_are_in_and_sorted_by_who_needs_somebody() {
    let other = hands();
    for (typed, rows) in [
        ("/service:repair<enter>", "1-1/1"),
        ("/service:hot_buffer<enter>", "1-2/2"),
        ("/buffer<enter>", "1-2/2"),
        ("/!service:in_service<enter>", "1-4/4"),
        ("/service<enter>", "No node matches"),
        (":show in repair<enter>", "1-1/1"),
    ] {
        let (ui, _) = after(&other, typed);
        assert!(shown(&ui, &other).contains(rows), "{typed}: {}", shown(&ui, &other));
    }
    let (ui, _) = after(&other, "s");
    let text = shown(&ui, &other);
    let name = |line: &'_ str| line.split_whitespace().find(|word| word.starts_with("rack1-")).map(str::to_owned);
    let names: Vec<String> = text.lines().skip(4).filter_map(name).take(5).collect();
    assert_eq!(names, ["rack1-04", "rack1-02", "rack1-14", "rack1-15", "rack1-00"]);
}

#[test]
fn a_node_is_put_into_repair_after_a_yes_with_what_was_typed_as_the_reason() {
    let other = hands();
    assert_eq!(after(&other, "Hrepair RMA 4711<enter>").1, [], "asks first");
    assert_eq!(after(&other, "Hrepair RMA 4711<enter>y").1, [swap(Hand::Repair, &["rack1-04"], "RMA 4711")]);
    assert_eq!(after(&other, "Hrepair RMA 4711<enter>n").1, []);
    assert_eq!(after(&other, "Hrepair --reason 'RMA 4711'<enter>y").1, [swap(Hand::Repair, &["rack1-04"], "RMA 4711")]);
    assert_eq!(after(&other, ":swap repair<enter>y").1, [swap(Hand::Repair, &["rack1-04"], "")]);
    assert_eq!(after(&other, "<enter>Hrepair<enter>y").1, [swap(Hand::Repair, &["rack1-04"], "")], "on Node as well");
}

#[test]
fn a_defective_node_is_replaced_after_a_yes_and_no_other_is() {
    let other = hands();
    let (mut ui, intents) = after(&other, "Hreplace RMA 4711<enter>");
    let asked = shown(&ui, &other);
    assert!(intents.is_empty() && asked.contains("Replace 1 node from the hot buffer?"), "{asked}");
    assert!(asked.contains("rack1-14 replaces it (same leaf). It goes into repair"), "{asked}");
    assert_eq!(press(&mut ui, &other, "y"), [swap(Hand::Replace, &["rack1-04"], "RMA 4711")]);
    let (ui, intents) = after(&other, "/service:repair<enter>Hreplace<enter>");
    assert_eq!(intents, []);
    assert!(shown(&ui, &other).contains("only a defective node has a spare listed"), "{}", shown(&ui, &other));
}

#[test]
fn a_node_in_repair_names_who_took_its_place_and_that_one_names_it() {
    let other = swapped(snapshot(IDLE));
    let (mut ui, _) = after(&other, "/service:repair<enter><node>");
    let text = shown(&ui, &other);
    assert!(text.contains("in repair since 2026-11-18 (kim: RMA 4711); replaced by rack1-07 on 2026-11-18"), "{text}");
    let copied = |text: &str| [Intent::Copy(text.to_owned())];
    let spare = copied("rack1-02: spare: replaced by rack1-07 on 2026-11-18");
    assert_eq!(press(&mut ui, &other, "<tab>jjjy"), spare);
    let history = copied("rack1-02: history: 2026-11-18 in repair, replaced by rack1-07 (kim: RMA 4711)");
    assert_eq!(press(&mut ui, &other, "jjjjjy"), history);
    let fleet = shown(&after(&other, "/service:repair<enter>").0, &other);
    assert!(fleet.contains("rack1-02: in repair since 2026-11-18 (kim: RMA 4711); replaced by rack1-07"), "{fleet}");
    let fleet = shown(&after(&other, "/name:rack1-07<enter>").0, &other);
    assert!(fleet.contains("rack1-07: in service, in place of rack1-02 since 2026-11-18"), "{fleet}");
}

#[test]
fn nodes_named_behind_a_command_are_not_taken_for_a_reason() {
    let other = hands();
    let (mut ui, _) = after(&other, "Hrepair -w rack1-07");
    assert!(shown(&ui, &other).contains("no command matches `swap repair -w rack1-07`"), "{}", shown(&ui, &other));
    assert_eq!(press(&mut ui, &other, "<enter>"), []);
    assert!(!shown(&ui, &other).contains("Put 1 node into repair?"), "{}", shown(&ui, &other));
}

#[test]
fn marked_nodes_are_handed_over_together_and_never_all_for_lack_of_marks() {
    let other = hands();
    let (ui, intents) = after(&other, "  Hspare hall 7<enter>y");
    let names: Vec<&str> = ui.marks().collect();
    assert_eq!(names.len(), 2);
    let mut names = names;
    names.sort_unstable();
    assert_eq!(intents, [swap(Hand::Spare, &names, "hall 7")]);
    assert_eq!(after(&other, "/service:repair<enter>Hreturn<enter>y").1, [swap(Hand::Return, &["rack1-02"], "")]);
    let everyone = after(&other, "aHspare<enter>y").1;
    assert_eq!(everyone, [], "more than ten need their number typed");
    assert!(
        matches!(&after(&other, "aHspare<enter>16<enter>").1[..], [Intent::Swap { nodes, .. }] if nodes.len() == 16)
    );
}

#[test]
fn commands_for_slurm_are_copied_of_all_that_are_defective_and_never_run() {
    let other = hands();
    let (ui, intents) = after(&other, "Hslurm<enter>");
    let [Intent::Copy(text)] = &intents[..] else { panic!("{intents:?}") };
    assert!(text.contains("'NodeName=rack1-04' State=DRAIN") && text.lines().count() == 2, "{text}");
    assert!(shown(&ui, &other).contains("copied the commands for Slurm for 1 defective node; look at them"));
    let plain = snapshot(IDLE);
    let (ui, intents) = after(&plain, "Hslurm<enter>");
    assert_eq!(intents, []);
    assert!(
        shown(&ui, &plain).contains("no node here is defective, so there is no command for Slurm"),
        "{}",
        shown(&ui, &plain)
    );
}

#[test]
fn a_node_tells_its_hands_above_its_lists_and_all_else_in_a_list_of_its_own() {
    let other = in_repair(snapshot(IDLE), Some(&["it was not validated since it went into repair: muster run cbd"]));
    let (mut ui, _) = after(&other, "/service:repair<enter><node>");
    let text = shown(&ui, &other);
    assert!(text.contains("in repair since 2026-11-18 (kim: RMA 4711)"), "{text}");
    assert!(text.contains("no return     it was not validated since"), "{text}");
    assert_eq!(
        press(&mut ui, &other, "<tab>jjjy"),
        [Intent::Copy(
            "rack1-02: no return: it was not validated since it went into repair: muster run cbd".to_owned()
        )]
    );
    let copied = press(&mut ui, &other, "jy");
    let again =
        "rack1-02: failed: 2026-11-18 gpu:3, serial 1654922000123, third time this GPU fails here: gpu-stream/triad:3";
    assert!(matches!(&copied[..], [Intent::Copy(text)] if text.starts_with(again)), "{copied:?}");
    let reading = in_repair(snapshot(IDLE), None);
    let text = shown(&after(&reading, "/service:repair<enter><node>").0, &reading);
    assert!(text.contains("reading its runs"), "{text}");
    let plain = snapshot(IDLE);
    assert!(!shown(&after(&plain, "<node>").0, &plain).contains("Service"), "a node in service has no such list");
}
