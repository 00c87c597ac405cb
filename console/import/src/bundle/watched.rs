//! `watch.json`: what `muster watch --json` said of the job's nodes.

use muster_triage::case::Alerted;
use muster_wire::clean;
use serde_json::Value;

use super::word;
use crate::Bad;

/// Alerts that are kept.
const ALERTS: usize = 1_024;

/// Reads the alerts; those that name no node or no time are left out.
///
/// # Errors
/// When it is no such document.
pub(super) fn alerts(text: &str) -> Result<Vec<Alerted>, Bad> {
    let value: Value = serde_json::from_str(text).map_err(|why| Bad::json(1, &why))?;
    let is_watch = value.get("schema").and_then(Value::as_str) == Some("muster.watch");
    let alerts = value.get("alerts").and_then(Value::as_array).filter(|_| is_watch);
    let alerts = alerts.ok_or_else(|| Bad::format(1, "no alerts: not what muster watch --json writes"))?;
    let one = |alert: &Value| {
        let seconds = |key: &str| alert.get(key).and_then(Value::as_f64).filter(|at| at.is_finite());
        Some(Alerted {
            node: word(alert.get("node")?)?,
            metric: alert.get("metric").and_then(word),
            since_s: seconds("since_s")?,
            until_s: seconds("until_s"),
            group: alert.get("group").is_some_and(|group| !group.is_null()),
            sentence: clean(alert.get("sentence").and_then(Value::as_str).unwrap_or_default(), 400),
        })
    };
    Ok(alerts.iter().take(ALERTS).filter_map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_of_a_watch_are_read_and_other_documents_refused() {
        let text = r#"{"schema": "muster.watch", "version": 1, "alerts": [
            {"node": "n3", "metric": "cpu_pressure_pct", "since_s": 1e9, "until_s": null, "group": null, "sentence": "n3: waits"},
            {"node": "n4", "metric": null, "since_s": 1e9, "until_s": 1.1e9, "group": "leaf3", "sentence": "x"}, {"node": 7}, 8]}"#;
        let alerts = alerts(text).unwrap();
        assert_eq!(alerts.len(), 2);
        assert_eq!((alerts[0].node.as_str(), alerts[0].until_s, alerts[0].group), ("n3", None, false));
        assert_eq!((alerts[1].metric.as_deref(), alerts[1].until_s, alerts[1].group), (None, Some(1.1e9), true));
        for other in ["{}", r#"{"schema": "muster.run", "alerts": []}"#, "["] {
            assert!(super::alerts(other).is_err(), "{other}");
        }
    }
}
