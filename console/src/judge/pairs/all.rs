//! All pairs of a run or a file, as a screen or a report may ask for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_analysis::Params;
use muster_analysis::network::localise::Localisation;
use muster_analysis::network::{Matrix, Topology, judged};
use muster_run::{Record, Run};
use muster_wire::Unit;

use super::{Found, is_pair};

/// The pairs of a run or a file.
#[derive(Debug)]
pub struct Pairs {
    /// Where they come from.
    pub origin: String,
    /// One per metric.
    pub matrices: BTreeMap<String, Matrix>,
    /// Units of the metrics, where they are known.
    pub units: BTreeMap<String, Unit>,
    /// Where the nodes hang.
    pub topology: Topology,
    /// What each judged metric points at, as far as that is known already.
    pub localised: BTreeMap<String, Localisation>,
    /// What is a fault.
    pub params: Params,
}

impl Pairs {
    /// What was `found` of the pairs of a run.
    #[must_use]
    pub fn of_run(run: &Run, records: &[Arc<Record>], found: Found, params: &Params) -> Self {
        let series = records.iter().filter(|r| is_pair(r)).flat_map(|r| &r.series);
        let units = series.map(|s| (s.metric.name.clone(), s.unit)).collect();
        let Found { matrices, topology, localised, .. } = found;
        Self { origin: format!("run {}", run.id), matrices, units, topology, localised, params: params.clone() }
    }

    /// The metric that is shown first: one that faults are looked for in.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        let mut names = self.matrices.keys().map(String::as_str);
        names.clone().find(|name| judged(name)).or_else(|| names.next())
    }
}
