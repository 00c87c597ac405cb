//! What is said of the nodes of a run, by the terms that were written down when it began.

use muster_analysis::assess::{self, Assessment};
use muster_analysis::records::pairs::Found;
use muster_run::{Record, Run};

use super::Judging;

/// Judges a run from its records.
#[must_use]
pub fn assess<'a>(run: &Run, records: impl IntoIterator<Item = &'a Record>, judging: &Judging) -> Assessment {
    assess_with_pairs(run, records, judging).0
}

/// The same, and what its pairs of nodes come to.
pub(super) fn assess_with_pairs<'a>(
    run: &Run,
    records: impl IntoIterator<Item = &'a Record>,
    judging: &Judging,
) -> (Assessment, Option<Found>) {
    let (assessment, pairs) = assess::assess(run, records, &judging.context);
    (Assessment { rejudged: judging.rejudged.clone(), ..assessment }, pairs)
}
