//! All pairs of a run or a file, as a screen or a report may ask for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_analysis::Params;
use muster_analysis::network::{Matrix, Topology, judged};
use muster_run::{Record, Run};
use muster_wire::Unit;

use super::{is_pair, network};

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
    /// What is a fault.
    pub params: Params,
}

impl Pairs {
    /// The pairs of a run, with the run's own topology; nothing where it has none.
    #[must_use]
    pub fn of_run(run: &Run, records: &[Arc<Record>], params: &Params) -> Option<Self> {
        let found = network(run, records.iter().map(Arc::as_ref), None, params)?;
        let series = records.iter().filter(|r| is_pair(r)).flat_map(|r| &r.series);
        let units = series.map(|s| (s.metric.name.clone(), s.unit)).collect();
        let (matrices, topology) = (found.matrices, found.topology);
        Some(Self { origin: format!("run {}", run.id), matrices, units, topology, params: params.clone() })
    }

    /// The metric that is shown first: one that faults are looked for in.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        let mut names = self.matrices.keys().map(String::as_str);
        names.clone().find(|name| judged(name)).or_else(|| names.next())
    }
}
