//! Which incidents does Slurm remember? Its node events, as `sacctmgr show event -P` prints them.

use super::category::guess_category;
use super::line::{Limits, LineError, Parsed};
use super::stamp;
use crate::risk::Incident;

/// Incidents of the output of `sacctmgr show event --parsable2` (or `--parsable`), fields by `|`, with its header:
/// `NodeName` and `TimeStart` needed; `TimeEnd` (`Unknown`: still open), `State`, `Reason` and `User` read. Events
/// of the whole cluster and planned ones (`MAINT`, `PLANNED`, `REBOOT`) are not incidents and are left out.
/// `zone_h` is how far the controller's clock lies east of UTC, since sacctmgr prints local time. Times become
/// hours since 1970.
///
/// # Errors
/// When the text is too long, or has no such header (the aligned output cuts node names off and is refused).
pub fn sacctmgr_events(text: &str, zone_h: f64, limits: Limits) -> Result<Parsed, LineError> {
    limits.check(text)?;
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let header = lines.next().map(|(_, line)| line).unwrap_or_default();
    let at = |name: &str| header.split('|').position(|h| h.trim().eq_ignore_ascii_case(name));
    let (Some(node), Some(start)) = (at("NodeName"), at("TimeStart")) else {
        return Err(LineError::new(
            1,
            "no columns NodeName and TimeStart; print the events with sacctmgr show event -P",
        ));
    };
    let columns =
        Columns { node, start, end: at("TimeEnd"), state: at("State"), reason: at("Reason"), user: at("User") };
    let mut parsed = Parsed::default();
    for (k, line) in lines {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        match columns.incident(&fields, zone_h) {
            Ok(None) => {}
            Ok(Some(incident)) => {
                if !parsed.take(Ok(incident), limits) {
                    break;
                }
            }
            Err(why) => {
                parsed.take(Err(LineError::new(k + 1, why)), limits);
            }
        }
    }
    Ok(parsed)
}

struct Columns {
    node: usize,
    start: usize,
    end: Option<usize>,
    state: Option<usize>,
    reason: Option<usize>,
    user: Option<usize>,
}

impl Columns {
    fn incident(&self, fields: &[&str], zone_h: f64) -> Result<Option<Incident>, String> {
        let text = |at: Option<usize>| at.and_then(|at| fields.get(at).copied()).unwrap_or_default();
        let state = text(self.state).to_uppercase();
        let planned = ["MAINT", "PLANNED", "REBOOT"].iter().any(|word| state.contains(word));
        if text(Some(self.node)).is_empty() || planned {
            return Ok(None);
        }
        let time = |text: &str| stamp::hours(text).map(|h| h - zone_h).ok_or_else(|| format!("{text:?} is not a time"));
        let end = match text(self.end) {
            "" | "Unknown" | "None" | "N/A" => None,
            written => Some(time(written)?),
        };
        let incident = Incident {
            node: text(Some(self.node)).to_owned(),
            start_h: time(text(Some(self.start)))?,
            end_h: end,
            category: guess_category(text(self.reason)),
            reason: text(self.reason).to_owned(),
            source: "sacctmgr".to_owned(),
            who: text(self.user).to_owned(),
            found_by: None,
        };
        incident.check().map_err(|why| why.to_string())?;
        Ok(Some(incident))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::risk::Category;

    const TEXT: &str = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User\n\
        prod||2024-01-01T00:00:00|Unknown||Cluster Registered TRES|slurm(64030)\n\
        prod|g01|2024-03-30T07:00:00|2024-03-30T19:30:00|DOWN*|Not responding|slurm(64030)\n\
        prod|g02|2024-04-01T00:00:00|Unknown|DRAIN|Xid 79: GPU has fallen off the bus|root(0)\n\
        prod|g03|2024-04-02T00:00:00|2024-04-02T01:00:00|MAINT|firmware|root(0)\n\
        prod|g04|yesterday|Unknown|DOWN|?|root(0)\n";

    #[test]
    fn node_events_become_incidents() {
        let parsed = sacctmgr_events(TEXT, 0.0, Limits::default()).unwrap();
        let nodes: Vec<&str> = parsed.incidents.iter().map(|i| i.node.as_str()).collect();
        assert_eq!(nodes, ["g01", "g02"]);
        let first = &parsed.incidents[0];
        assert_eq!(first.end_h.unwrap() - first.start_h, 12.5);
        assert_eq!((first.category, first.who.as_str()), (Category::Network, "slurm(64030)"));
        assert_eq!((parsed.incidents[1].category, parsed.incidents[1].end_h), (Category::Pcie, None));
        assert_eq!((parsed.errors[0].line, parsed.refused), (6, 1));
    }

    #[test]
    fn the_controllers_zone_is_taken_off_and_aligned_output_refused() {
        let east = sacctmgr_events(TEXT, 2.0, Limits::default()).unwrap();
        let utc = sacctmgr_events(TEXT, 0.0, Limits::default()).unwrap();
        assert_eq!(utc.incidents[0].start_h - east.incidents[0].start_h, 2.0);
        let aligned =
            "   Cluster        NodeName           TimeStart\n---------- --------------- -------------------\n";
        assert!(sacctmgr_events(aligned, 0.0, Limits::default()).is_err());
        assert!(sacctmgr_events("", 0.0, Limits::default()).is_err());
    }
}
