//! A run with the raw values behind every accusation, so that whoever gets the ticket can check it.

use std::collections::BTreeSet;

use anyhow::Result;
use muster_analysis::{Criterion, State};
use muster_playbook::report::RunReport;
use muster_run::Record;
use muster_store::{Store, Table};
use muster_wire::Unit;
use serde::Serialize;

use crate::judge::Version;

/// The published document.
#[derive(Serialize)]
pub struct Ticket {
    schema: &'static str,
    version: u32,
    /// The `muster.run` document.
    report: RunReport,
    /// Of every node and metric with a doubt.
    evidence: Vec<Evidence>,
    /// Frozen criteria by which it was judged, with their samples; the others were learned from the run itself.
    criteria: Vec<Criterion>,
}

/// Raw values.
#[derive(Serialize)]
struct Evidence {
    node: String,
    metric: String,
    engine: String,
    unit: Unit,
    /// Steps left out as warm-up before the first value.
    warmup: u32,
    /// In the order measured. JSON has no NaN: what is no number is null there.
    values: Vec<f64>,
}

impl Ticket {
    /// Gathers what is behind `report`.
    ///
    /// # Errors
    /// When a frozen criterion cannot be read.
    pub fn of(report: RunReport, store: &dyn Store, records: &[Record]) -> Result<Self> {
        let accused = report.nodes.iter().flat_map(|node| {
            let bad = node.verdicts.iter().filter(|v| v.state >= State::Warn);
            bad.map(|v| (node.node.as_str(), v.of.metric.as_str(), v.of.engine.as_str()))
        });
        let accused: BTreeSet<(&str, &str, &str)> = accused.collect();
        let mut evidence = Vec::new();
        for record in records {
            for series in &record.series {
                let (metric, engine) = (series.metric.path(), series.metric.engine.clone());
                if accused.contains(&(&record.node, &metric, &engine)) {
                    let (node, values) = (record.node.clone(), series.values.clone());
                    evidence.push(Evidence { node, metric, engine, unit: series.unit, warmup: series.warmup, values });
                }
            }
        }
        let mut criteria = Vec::new();
        for id in report.criteria.iter().filter(|c| c.frozen).map(|c| &c.id) {
            if let Some(bytes) = store.get(Table::Criteria, id)? {
                criteria.push(serde_json::from_slice::<Version>(&bytes)?.criterion);
            }
        }
        Ok(Self { schema: "muster.ticket", version: 1, report, evidence, criteria })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_value_that_is_no_number_is_null_and_keeps_its_place() {
        let evidence = Evidence {
            node: "n1".into(),
            metric: "net/copy".into(),
            engine: "own".into(),
            unit: Unit::BytesPerSec,
            warmup: 0,
            values: vec![1.5, f64::NAN, 2.5],
        };
        let written = serde_json::to_value(&evidence).unwrap();
        assert_eq!(written["values"], serde_json::json!([1.5, null, 2.5]));
        let schema: Value =
            serde_json::from_str(include_str!("../../../../assets/schemas/muster.ticket.json")).unwrap();
        let values = &schema["properties"]["evidence"]["items"]["properties"]["values"];
        assert_eq!(values["items"]["type"], serde_json::json!(["number", "null"]));
    }
}
