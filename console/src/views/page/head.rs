//! What stands above every page, and how states and times are said.

use muster_analysis::State;
use muster_analysis::findings::change;
use muster_page::{Cell, Count, Fact, Page, Section, State as Shown};
use muster_playbook::report::{PairsReport, RunReport, Summary, between};

/// The state as a page shows it.
pub(super) const fn shown(state: State) -> Shown {
    match state {
        State::Pass => Shown::Pass,
        State::Warn => Shown::Warn,
        State::Fail => Shown::Fail,
        State::Unknown => Shown::Unknown,
        State::NotRun => Shown::NotRun,
        State::NotApplicable => Shown::NotApplicable,
    }
}

/// How many nodes ended how, the gravest first.
pub(super) fn counts(summary: &Summary) -> Vec<Count> {
    let all = [
        (Shown::Fail, summary.fail),
        (Shown::Warn, summary.warn),
        (Shown::Unknown, summary.unknown),
        (Shown::Pass, summary.pass),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).map(|(state, count)| Count { state, count }).collect()
}

/// A page of something in `report`.
pub(super) fn page(report: &RunReport, (kind, title): (&'static str, String), sections: Vec<Section>) -> Page {
    let run = &report.run;
    let fact = |label, value: &str| Fact { label, value: value.to_owned() };
    let mut notes: Vec<String> = report.alarms.clone();
    if let Some(how) = &report.rejudged {
        notes.push(format!("Judged again, with {how}: these are not the verdicts of its time."));
    }
    if run.ended.is_none() {
        notes.push("The run has not ended: what is missing may still come.".to_owned());
    }
    if let Some(demo) = report.demo.as_ref().filter(|demo| !demo.slowed.is_empty()) {
        notes.push(format!("A demo: it slowed {} on purpose.", demo.slowed.join(", ")));
    }
    let counts = counts(&report.summary);
    Page {
        kind,
        title,
        state: counts.first().map(|count| count.state),
        counts,
        undecided: match report.summary.undecided {
            0 => String::new(),
            partly => format!("{partly} of those in part undecided"),
        },
        facts: vec![
            fact("Run", &run.id),
            fact("Playbook", &run.playbook),
            fact("Profile", run.profile.name()),
            fact("Started (UTC)", &run.started),
            fact("Ended (UTC)", run.ended.as_deref().unwrap_or("not ended")),
        ],
        notes,
        sections: sections.into_iter().filter(|section| !section.parts.is_empty()).collect(),
        program: program(),
    }
}

/// The same with what pairs of nodes point at: of that no node is to blame, and still not all is well.
pub(super) fn with_network(page: Page, network: &PairsReport) -> Page {
    let Some(words) = between(network) else { return page };
    let state = match network.exit_code() {
        1 => Shown::Warn,
        2 => Shown::Fail,
        _ => Shown::Unknown,
    };
    let mut notes = vec![format!("The nodes alone are counted above; {words}: see Pairs of nodes.")];
    notes.extend(page.notes);
    Page { state: page.state.max(Some(state)), notes, ..page }
}

/// The change of a metric for a table: `50 % below`, `2.2x`.
pub(super) fn changed(value: Option<f64>, usual: Option<f64>) -> Cell {
    let words = value.zip(usual).map(|(value, usual)| change(value, usual));
    Cell::number(words.map(|words| words.trim_end_matches(" that of").to_owned()))
}

/// Who wrote it.
pub(super) fn program() -> String {
    format!("muster {}", env!("CARGO_PKG_VERSION"))
}
