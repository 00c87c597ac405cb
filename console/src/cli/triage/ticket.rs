//! The verdict as a file for a ticket, names replaced.

use std::path::Path;

use anyhow::anyhow;
use muster_analysis::triage::overview::Overview;

use crate::exit::{Code, IO, Problem, USAGE};
use crate::out;
use crate::pages;
use crate::redact::{Redact, Redaction};
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

/// Writes it; the file is replaced as a whole or not at all.
pub(super) fn write(file: &Path, (name, case): (&str, &Overview), redact: &[Redact]) -> Result<(), Problem> {
    let (report, nodes) = (&case.report, &case.nodes);
    let all = [Redact::Names, Redact::Addresses, Redact::Serials];
    let mut redaction = Redaction::new(if redact.is_empty() { &all } else { redact }, nodes, []);
    let text = match ending(file) {
        Some("json") => serde_json::to_string_pretty(&redaction.document(report).code(IO)?).code(IO)?,
        Some("html") => pages::written(case_page(name, case), &mut redaction).code(IO)?,
        Some("csv") => triage_csv(report, &mut |text| redaction.text(text)).code(IO)?,
        _ => triage_markdown(report, &mut |text| redaction.text(text)),
    };
    out::replace(file, text.as_bytes(), out::PRIVATE).code(IO)
}
