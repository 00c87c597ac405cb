//! The verdict as a file for a ticket, names replaced.

use std::path::Path;

use anyhow::anyhow;
use muster_triage::overview::Overview;
use muster_triage::report::Report;

use crate::exit::{Code, IO, Problem, USAGE};
use crate::out;
use crate::pages;
use crate::redact::{Redact, Redaction, Remarked, noted};
use crate::views::page::case_page;
use crate::views::{triage_csv, triage_markdown};

/// Whether a ticket can be written as this file, which its ending says.
///
/// # Errors
/// Where the ending is none of the known ones.
pub(super) fn check(file: &Path) -> Result<(), Problem> {
    match ending(file) {
        Some("json" | "md" | "csv" | "html") => Ok(()),
        _ => Err(Problem {
            code: USAGE,
            error: anyhow!("{}: a ticket ends in .md, .html, .json or .csv", file.display()),
        }),
    }
}

fn ending(file: &Path) -> Option<&str> {
    file.extension().and_then(|ending| ending.to_str())
}

/// The report without the commands that would be pasted with a stand-in for a node, where a `remark` says that names are replaced; a
/// command within a sentence has the remark behind it.
fn without_commands(report: &Report, remark: Option<&str>) -> Report {
    let mut report = report.clone();
    let Some(remark) = remark else { return report };
    (report.drain, report.offline) = (None, None);
    if report.action.contains("muster drain -w") || report.action.contains("muster triage offline -w") {
        report.action = format!("{} ({})", report.action, remark.trim_end_matches('.'));
    }
    report
}

/// Writes it; the file is replaced as a whole or not at all.
pub(super) fn write(file: &Path, (name, case): (&str, &Overview), redact: &[Redact]) -> Result<(), Problem> {
    let (report, nodes) = (&case.report, &case.nodes);
    let all = [Redact::Names, Redact::Addresses, Redact::Serials];
    let mut redaction = Redaction::new(if redact.is_empty() { &all } else { redact }, nodes, []);
    let remark = redaction.remark();
    let report = &without_commands(report, remark.as_deref());
    let text = match ending(file) {
        Some("json") => {
            let document = &redaction.document(report).code(IO)?;
            serde_json::to_string_pretty(&Remarked { document, names_replaced: remark }).code(IO)?
        }
        Some("html") => pages::written(case_page(name, case), &mut redaction).code(IO)?,
        Some("csv") => triage_csv(report, &mut |text| redaction.text(text)).code(IO)?,
        _ => noted(remark, &triage_markdown(report, &mut |text| redaction.text(text))),
    };
    out::replace(file, text.as_bytes(), out::PRIVATE).code(IO)
}

#[cfg(test)]
mod tests {
    use muster_logs::Category;
    use muster_triage::report::Ranks;

    use super::*;

    fn report() -> Report {
        Report {
            schema: "muster.triage",
            version: 1,
            category: Category::SlowGpu,
            action: "Restart the job without n7; drain it and look at it: muster drain -w 'n7'".to_owned(),
            drain: Some("muster drain -w n7".to_owned()),
            offline: Some("muster triage offline -w n7,n8".to_owned()),
            suspects: Vec::new(),
            marked_wrong: Vec::new(),
            timeline: Vec::new(),
            ranks: Ranks::default(),
            clocks: Vec::new(),
            steps: Vec::new(),
            not_looked_at: Vec::new(),
        }
    }

    #[test]
    fn no_command_is_written_with_a_stand_in_for_a_node() {
        let bare = without_commands(&report(), Some("Names are replaced: node-001 is no host name."));
        assert_eq!((bare.drain, bare.offline), (None, None));
        assert!(bare.action.ends_with("'n7' (Names are replaced: node-001 is no host name)"), "{}", bare.action);
        assert_eq!(without_commands(&report(), None), report());
    }
}
