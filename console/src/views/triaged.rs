//! What triage found, as a ticket.

use muster_playbook::report::{escape, guarded, rfc3339};
use muster_triage::report::{Evidence, Report, Suspect};

use crate::out::counted;

/// Events that a ticket shows: the first, as a cause comes before what follows it; the JSON has more.
const EVENTS: usize = 40;

/// Replaces names in a text.
type Say<'a> = &'a mut dyn FnMut(&str) -> String;

/// Sentences for a ticket; every text passes through `say` first.
#[must_use]
pub fn markdown(report: &Report, say: Say<'_>) -> String {
    let mut plain = |text: &str| escape(&say(text)).replace("\\`", "`");
    let mut text = format!("# Triage: {} ({})\n\n", report.category.name(), report.category.meaning());
    if let Some(first) = report.suspects.first() {
        text += &format!("{}\n\n", plain(&first.sentence));
    }
    text += &format!("**Next:** {}\n\n", plain(&report.action));
    if let Some(drain) = &report.drain {
        text += &format!("**Drain:** {}\n\n", plain(&format!("`{drain}`")));
    }
    for (title, suspects) in [("Suspects", &report.suspects), ("Marked as wrong", &report.marked_wrong)] {
        if !suspects.is_empty() {
            text += &format!("## {title}\n\n");
            suspects.iter().for_each(|suspect| text += &of_suspect(suspect, &mut plain));
            text += "\n";
        }
    }
    text += "## Steps\n\n";
    for (at, step) in report.steps.iter().enumerate() {
        text += &format!("{}. {}: {}. {}\n", at + 1, step.step, plain(&step.result), plain(&step.why));
    }
    if !report.timeline.is_empty() {
        let shown = &report.timeline[..report.timeline.len().min(EVENTS)];
        text += &format!("\n## Time line (the first {} of {})\n\n", shown.len(), report.timeline.len());
        for event in shown {
            let at = event.at.map_or("no time".to_owned(), moment);
            let node = event.node.as_ref().map_or(String::new(), |node| format!(" {node}"));
            let rank = event.rank.map_or(String::new(), |rank| format!(" rank {rank}"));
            text += &format!("- {at}{}: {}\n", plain(&format!("{node}{rank} {}", event.event)), plain(&event.text));
        }
    }
    let (ranks, nodes) = (&report.ranks, counted(report.clocks.len(), "node", "nodes"));
    text += &format!("\n{} of {} ranks seen, {nodes}.\n\n## Not looked at\n\n", ranks.seen, ranks.n);
    report.not_looked_at.iter().for_each(|missing| text += &format!("- {}\n", plain(missing)));
    text
}

fn of_suspect(suspect: &Suspect, plain: &mut dyn FnMut(&str) -> String) -> String {
    let mut text = format!("- {} (confidence {:.2})\n", plain(&suspect.sentence), suspect.confidence);
    for line in &suspect.evidence {
        let at = line.at.map_or(String::new(), |at| format!("{} ", moment(at)));
        text += &format!("  - {at}{}: {}\n", plain(&place(line)), plain(&line.text));
    }
    text
}

fn place(line: &Evidence) -> String {
    let node = line.node.as_ref().map_or(String::new(), |node| format!(" {node}"));
    let rank = line.rank.map_or(String::new(), |rank| format!(" rank {rank}"));
    format!("{}{node}{rank}", line.source.title())
}

fn moment(at_s: f64) -> String {
    rfc3339((at_s.max(0.0) * 1e3) as u64)
}

/// One row a suspect. What a spreadsheet would take for a formula is preceded by an apostrophe.
///
/// # Errors
/// Never in memory.
pub fn csv(report: &Report, say: Say<'_>) -> Result<String, csv::Error> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record(["category", "confidence", "node", "rank", "gpu", "element", "sentence"])?;
    for suspect in &report.suspects {
        let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
        let mut cell = |text: &str| guarded(&say(text)).into_owned();
        rows.write_record([
            report.category.name(),
            &suspect.confidence.to_string(),
            &cell(suspect.node.as_deref().unwrap_or_default()),
            &number(suspect.rank),
            &number(suspect.gpu),
            &cell(suspect.element.as_deref().unwrap_or_default()),
            &cell(&suspect.sentence),
        ])?;
    }
    let bytes = rows.into_inner().map_err(csv::IntoInnerError::into_error).map_err(csv::Error::from)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use muster_logs::Category;
    use muster_triage::report::{Done, Kind, Ranks, Source};

    use super::*;

    fn report() -> Report {
        Report {
            schema: "muster.triage",
            version: 1,
            category: Category::SlowGpu,
            action: "Drain n_7.".into(),
            drain: Some("muster drain -w n_7".into()),
            offline: Some("muster triage offline -w n_7,n_8".into()),
            suspects: vec![Suspect {
                kind: Kind::Gpu,
                node: Some("n_7".into()),
                rank: Some(3),
                gpu: Some(1),
                element: Some("=cmd".into()),
                cause: muster_logs::fault::Cause::default(),
                confidence: 0.9,
                sentence: "rank 3 on n_7 is <late>".into(),
                evidence: vec![Evidence {
                    source: Source::Kernel,
                    node: Some("n_7".into()),
                    rank: None,
                    at: Some(0.0),
                    text: "line | of n_7".into(),
                }],
            }],
            marked_wrong: Vec::new(),
            timeline: Vec::new(),
            ranks: Ranks::default(),
            clocks: Vec::new(),
            steps: vec![Done { step: "slow-ranks", result: "late".into(), why: "Go on.".into() }],
            not_looked_at: vec!["Kernel logs".into()],
        }
    }

    #[test]
    fn names_are_replaced_before_anything_is_escaped() {
        let mut say = |text: &str| text.replace("n_7", "node-001");
        let text = markdown(&report(), &mut say);
        assert!(
            !text.contains("n\\_7") && !text.contains("n_7") && text.contains("rank 3 on node-001 is &lt;late&gt;"),
            "{text}"
        );
        assert!(text.contains("line \\| of node-001") && text.contains("`muster drain -w node-001`"), "{text}");
    }

    #[test]
    fn a_cell_is_no_formula() {
        let text = csv(&report(), &mut str::to_owned).unwrap();
        assert!(text.contains(",'=cmd,"), "{text}");
    }
}
