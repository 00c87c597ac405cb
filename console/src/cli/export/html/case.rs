//! The page of a triage case.

use std::path::Path;

use super::super::{Options, chosen};
use super::put;
use crate::cases;
use crate::cli::triage;
use crate::exit::{Code, Ended, IO};
use crate::pages::written;
use crate::redact::Redaction;
use crate::views::page::case_page;

/// Reads the bundle, diagnoses it, writes the page.
pub(in crate::cli::export) fn run(bundle: &Path, options: &Options) -> Ended {
    let case = triage::of_bundle(bundle)?;
    let mut redaction = Redaction::new(&chosen(options), &case.nodes, []);
    let text = written(case_page(&cases::name_of(bundle), &case), &mut redaction).code(IO)?;
    put(&text, options.output.as_deref())
}
