//! What is read line by line: the evidence of a suspect, the steps of the procedure, what was not looked at.

use muster_triage::clock::UNKNOWN_S;
use muster_triage::report::Evidence;

use crate::screens::triage::reader::Entry;
use crate::screens::triage::words;
use crate::snapshot::Triaged;
use crate::text::counted;
use crate::theme::Role;
use crate::ui::Ui;

/// What the suspect under the cursor is suspected by.
pub(crate) fn evidence(ui: &Ui, triaged: &Triaged) -> Vec<Entry> {
    let Some((suspect, wrong)) = ui.states.triage.suspect(triaged) else {
        let text = "Nobody is suspected, so there is no evidence against anybody.".to_owned();
        return vec![Entry { head: vec![(text, Role::Dim)], body: Vec::new() }];
    };
    // The leading one's sentence stands in the verdict.
    let said = match wrong {
        true => Some(format!("Marked as wrong: {}", suspect.sentence)),
        false => (ui.states.triage.suspects.at > 0).then(|| suspect.sentence.clone()),
    };
    let first = said.map(|said| Entry { head: vec![(said, Role::Head)], body: Vec::new() });
    let keeps = |one: &&Evidence| ui.filter.keeps_line(one.node.as_deref().unwrap_or_default(), &one.text);
    let error = |node: Option<&String>| {
        let clocks = &triaged.overview.report.clocks;
        clocks.iter().find(|clock| Some(&clock.node) == node).map_or(UNKNOWN_S, |clock| clock.error_s)
    };
    let entry = |one: &Evidence| {
        let error_s = error(one.node.as_ref());
        let at = one.at.map_or(String::new(), |at| {
            format!("{} {} ", words::clock(at, error_s), words::error(error_s, ui.theme.is_ascii()))
        });
        let node = one.node.as_ref().map_or(String::new(), |node| format!(" {node}"));
        let rank = one.rank.map_or(String::new(), |rank| format!(" rank {rank}"));
        let head = vec![(at, Role::Dim), (one.source.title().to_owned(), Role::Head), (node + &rank, Role::Text)];
        Entry { head, body: vec![(one.text.clone(), Role::Text)] }
    };
    let kept: Vec<Entry> = suspect.evidence.iter().filter(keeps).map(entry).collect();
    let none = kept.is_empty() && !suspect.evidence.is_empty();
    let filtered = none.then(|| Entry {
        head: vec![(format!("No line of evidence matches `{}`; esc clears the filter.", ui.filter.text()), Role::Dim)],
        body: Vec::new(),
    });
    first.into_iter().chain(kept).chain(filtered).collect()
}

/// What each step found, and why it ended there or went on.
pub(crate) fn steps(triaged: &Triaged) -> Vec<Entry> {
    let steps = triaged.overview.report.steps.iter().enumerate();
    let entry = |(at, step): (usize, &muster_triage::report::Done)| Entry {
        head: vec![(format!("{}. {}", at + 1, step.step), Role::Head)],
        body: vec![(format!("{}.", step.result.trim_end_matches('.')), Role::Text), (step.why.clone(), Role::Dim)],
    };
    steps.map(entry).collect()
}

/// What was not looked at and why that matters, what is said of the marks, and how the clocks stand.
pub(crate) fn gaps(ui: &Ui, triaged: &Triaged) -> Vec<Entry> {
    let report = &triaged.overview.report;
    let plain = |text: &String, role| Entry { head: vec![(format!("- {text}"), role)], body: Vec::new() };
    let mut entries: Vec<Entry> = triaged.notes.iter().map(|note| plain(note, Role::Attention)).collect();
    entries.extend(report.not_looked_at.iter().map(|missing| plain(missing, Role::Text)));
    let left_out = triaged.overview.left_out;
    if left_out > 0 {
        let text = format!("{} are not in the time line: those that tell least.", counted(left_out, "event", "events"));
        entries.push(plain(&text, Role::Text));
    }
    let ascii = ui.theme.is_ascii();
    for clock in report.clocks.iter().filter(|clock| clock.error_s < UNKNOWN_S) {
        let text = format!(
            "Clock of {}: {:+.2} s against the others ({}), corrected.",
            clock.node,
            clock.offset_s,
            words::error(clock.error_s, ascii)
        );
        entries.push(plain(&text, Role::Dim));
    }
    entries
}
