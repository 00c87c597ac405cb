//! What is said of a watch: each alert in a line, and all of it as the published document.

use muster_playbook::report::rfc3339;
use muster_watch::{Alert, Lack, Watch};

use crate::exit::{Ended, FAIL, PASS, Problem, UNDECIDED};
use crate::out;
use crate::views::{DemoJob, WatchReport as Report};

/// How many nodes are watched, how many of them told something, and in which metrics.
type Of<'a> = (usize, usize, &'a [String]);

/// Everything that `watch` found, after `notes` of whoever fed it.
pub(super) fn document(watch: &Watch, of: Of<'_>, notes: Vec<String>, (json, demo): (bool, Option<DemoJob>)) -> Ended {
    let (mut report, lack) = report(watch, of, notes);
    report.demo = demo;
    if json {
        out::json(&report)?;
    } else {
        report.notes.iter().for_each(out::note);
        report.alerts.iter().try_for_each(alert)?;
        sum(&report)?;
    }
    Ok(code(&report, lack))
}

/// The same where the alerts were told when they came up.
pub(super) fn end(watch: &Watch, of: Of<'_>, notes: Vec<String>) -> Ended {
    let (report, lack) = report(watch, of, notes);
    report.notes.iter().for_each(out::note);
    sum(&report)?;
    Ok(code(&report, lack))
}

fn report<'a>(watch: &'a Watch, (nodes, reporting, metrics): Of<'a>, mut notes: Vec<String>) -> (Report<'a>, bool) {
    let lack = watch.lack().filter(|_| watch.alerts().is_empty()).map(|lack| of_reporting(lack, reporting));
    notes.extend(watch.notes());
    notes.extend(lack.map(|lack| format!("undecided: {lack}")));
    let metrics = metrics.iter().map(String::as_str).collect();
    (Report::new((nodes, metrics), (watch.span(), watch.calibration()), watch.alerts(), notes), lack.is_some())
}

/// What is missing where only so many nodes told something: the detector knows of all that are watched.
const fn of_reporting(lack: Lack, reporting: usize) -> Lack {
    match lack {
        _ if reporting == 0 => Lack::Nodes(0),
        Lack::Nodes(nodes) if reporting < nodes => Lack::Nodes(reporting),
        other => other,
    }
}

fn code(report: &Report<'_>, lack: bool) -> u8 {
    match () {
        () if !report.alerts.is_empty() => FAIL,
        () if lack => UNDECIDED,
        () => PASS,
    }
}

/// One line: when, who, in what, and what to do.
pub(super) fn alert(alert: &Alert) -> Result<(), Problem> {
    let over = alert.until_s.map_or(String::new(), |until| format!(" Over at {}.", at(until)));
    out::line(&format!("{}  {}{over}", at(alert.alerted_s), alert.sentence))
}

/// That an alert told before is over.
pub(super) fn over(alert: &Alert, until_s: f64) -> Result<(), Problem> {
    let who = alert.group.as_deref().unwrap_or(&alert.node);
    out::line(&format!("{}  {who} is like its peers again.", at(until_s)))
}

fn sum(report: &Report<'_>) -> Result<(), Problem> {
    let what = match report.alerts.len() {
        0 => "nothing odd".to_owned(),
        n => out::counted(n, "alert", "alerts"),
    };
    let (nodes, metrics) = report.counts();
    let (nodes, metrics) = (out::counted(nodes, "node", "nodes"), out::counted(metrics, "metric", "metrics"));
    let span = report.from_s.zip(report.to_s).map(|(from, to)| format!(" from {} to {}", at(from), at(to)));
    let undecided = report.notes.last().filter(|note| note.starts_with("undecided"));
    let what = undecided.map_or(what, |_| "undecided".to_owned());
    out::line(&format!("{nodes}, {metrics}{}: {what}", span.unwrap_or_default()))
}

/// Epoch seconds as people write them.
fn at(seconds: f64) -> String {
    rfc3339((seconds.max(0.0) * 1e3) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_never_told_anything_do_not_report() {
        let said = |lack, reporting| of_reporting(lack, reporting).to_string();
        assert!(said(Lack::Nodes(1), 0).starts_with("no node reports;"), "{}", said(Lack::Nodes(1), 0));
        assert!(said(Lack::Metrics(0), 0).starts_with("no node reports;"), "six nodes, of which none was reached");
        assert!(said(Lack::Nodes(3), 1).starts_with("only 1 node reports;"));
        assert_eq!(of_reporting(Lack::Nodes(3), 3), Lack::Nodes(3));
        assert_eq!(of_reporting(Lack::Short(10), 8), Lack::Short(10));
    }
}
