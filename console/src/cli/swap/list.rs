//! Which defective nodes are replaced by which spares: as a table, JSON, Markdown, or commands for Slurm.

use std::collections::BTreeMap;

use muster_analysis::service::{Failure, Service, Spare, Swap};
use muster_playbook::report::rfc3339;
use muster_store::Store;

use super::document::{Document, RepairRow, Row, SpareRow};
use super::{Form, Options, known, picked};
use crate::config::Config;
use crate::exit::{Code, Ended, IO, PASS, Problem, UNDECIDED, WARN};
use crate::options::Pick;
use crate::service::{Standing, again, commands, failures, replaced, spares};
use crate::{database, out};

/// Makes the list.
pub(super) fn run(options: &Options, config: &Config) -> Ended {
    let document = of(&*database::read(config)?, options, config)?;
    if options.json {
        out::json(&document)?;
    } else {
        let text = match options.format {
            Form::Text => text(&document),
            Form::Markdown => markdown(&document),
            Form::Slurm => slurm(&document),
        };
        out::line(text.trim_end())?;
    }
    Ok(match document.swaps.iter().filter(|row| row.replacement.is_none()).count() {
        _ if document.swaps.is_empty() => PASS,
        0 => WARN,
        _ => UNDECIDED,
    })
}

/// The list.
pub(super) fn of(store: &dyn Store, options: &Options, config: &Config) -> Result<Document, Problem> {
    // Spares are looked for in all of the inventory but what is left out, whoever is to be replaced.
    let all = known(store, config, &Pick { exclude: options.pick.exclude.clone(), ..Pick::default() })?;
    Ok(document(&all, &failures(store).code(IO)?, picked(config, &options.pick)?))
}

fn document(all: &[Standing], failed: &[Failure], wanted: impl Fn(&str) -> bool) -> Document {
    let again = again(failed);
    let rows: Vec<Row> = replaced(all, &wanted).iter().map(|(one, swap)| row(one, swap, &again)).collect();
    let spare = |spare: Spare| SpareRow {
        replaces: rows
            .iter()
            .find(|row| row.replacement.as_ref() == Some(&spare.machine.name))
            .map(|row| row.node.clone()),
        node: spare.machine.name,
        hardware: spare.machine.hardware,
        leaf: spare.machine.leaf,
        rack: spare.machine.rack,
        refused: spare.refused,
    };
    let spares = spares(all).into_iter().map(spare).collect();
    let in_repair = all.iter().filter(|one| one.service == Service::InRepair && wanted(&one.machine.name));
    let in_repair = in_repair.map(RepairRow::of).collect();
    Document { schema: "muster.swap", version: 1, swaps: rows, spares, in_repair }
}

fn row(one: &Standing, swap: &Swap, again: &BTreeMap<String, Vec<String>>) -> Row {
    let (replacement, near, why) = match swap {
        Swap::By { spare, near } => (Some(spare.clone()), Some(*near), None),
        Swap::Nobody { why } => (None, None, Some(why.clone())),
    };
    Row {
        node: one.machine.name.clone(),
        since: one.since_ms.map(rfc3339),
        reason: one.why.clone(),
        hardware: one.machine.hardware.clone(),
        leaf: one.machine.leaf.clone(),
        rack: one.machine.rack.clone(),
        replacement,
        near,
        why,
        repeated: again.get(&one.machine.name).cloned().unwrap_or_default(),
        commands: commands(one, swap),
    }
}

fn cells(row: &Row) -> [String; 5] {
    let by = row.replacement.clone().unwrap_or_else(|| "nobody".to_owned());
    let near = row.near.map_or_else(|| row.why.clone().unwrap_or_default(), |near| near.title().to_owned());
    let mut reason = row.reason.clone();
    for told in &row.repeated {
        reason.push_str(if reason.is_empty() { "" } else { "; " });
        reason.push_str(told);
    }
    [row.node.clone(), row.since.clone().unwrap_or_default(), by, near, reason]
}

const HEADER: [&str; 5] = ["defective", "since", "replaced by", "where", "why"];

fn text(document: &Document) -> String {
    let mut text = defective(document);
    for row in &document.in_repair {
        text.push_str(&format!("\n{}", row.said));
    }
    text
}

/// Who is defective, and what is left of the hot buffer.
fn defective(document: &Document) -> String {
    if document.swaps.is_empty() {
        return format!("nobody is defective; {}", buffer(document));
    }
    let rows: Vec<Vec<String>> = document.swaps.iter().map(|row| cells(row).to_vec()).collect();
    let mut text = out::table(&HEADER, &rows);
    text.push('\n');
    text.push_str(&buffer(document));
    for spare in &document.spares {
        if let Some(why) = &spare.refused {
            text.push_str(&format!("\n{} cannot replace anyone: {why}", spare.node));
        }
    }
    text
}

fn buffer(document: &Document) -> String {
    let free = document.spares.iter().filter(|spare| spare.refused.is_none() && spare.replaces.is_none()).count();
    format!("hot buffer: {}, {free} left over", out::counted(document.spares.len(), "node", "nodes"))
}

fn markdown(document: &Document) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('\\', "\\\\").replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(&HEADER.map(str::to_owned));
    text.push_str(&line(&HEADER.map(|_| "---".to_owned())));
    document.swaps.iter().for_each(|row| text.push_str(&line(&cells(row))));
    text
}

/// Commands that one looks at and runs.
fn slurm(document: &Document) -> String {
    let mut text = String::from("# Printed by muster swap, not run. Look at them first.\n");
    for command in document.swaps.iter().flat_map(|row| &row.commands) {
        text.push_str(command);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use muster_analysis::State;
    use muster_analysis::service::{Known, Machine, Marked, Part};

    use super::*;
    use crate::service::Counterpart;

    fn standing(name: &str, known: Known, why: &str) -> Standing {
        let machine = Machine {
            name: name.to_owned(),
            hardware: Some("H100".to_owned()),
            leaf: Some("l1".to_owned()),
            rack: None,
        };
        let service = known.service();
        Standing {
            machine,
            known,
            service,
            since_ms: Some(0),
            who: String::new(),
            why: why.to_owned(),
            run: None,
            counterpart: None,
        }
    }

    fn fleet() -> Vec<Standing> {
        let spare = Known { marked: Some(Marked::HotBuffer), newest: Some(State::Pass), ..Known::default() };
        vec![
            standing("n1", Known { incident: true, ..Known::default() }, "GPU 3: it's | slow"),
            standing("n2", Known { incident: true, ..Known::default() }, "disk 40 % below its peers"),
            standing("n3", Known { newest: Some(State::Pass), ..Known::default() }, ""),
            standing("s1", spare, "hall 7"),
            standing("s2", Known { newest: None, ..spare }, "hall 7"),
        ]
    }

    fn twice() -> Vec<Failure> {
        let part = || Some(Part { kind: "gpu".to_owned(), serial: "165".to_owned() });
        let of = |at_ms| Failure {
            at_ms,
            node: "n1".into(),
            component: "gpu:3".into(),
            part: part(),
            reason: String::new(),
        };
        vec![of(5), of(9)]
    }

    #[test]
    fn who_is_defective_is_listed_with_its_spare_and_with_what_failed_before() {
        let told = text(&document(&fleet(), &twice(), |_| true));
        assert!(told.contains("n1") && told.contains("s1") && told.contains("same leaf"), "{told}");
        assert!(told.contains("second time this GPU fails here (gpu:3, 165)"), "{told}");
        assert!(told.contains("n2") && told.contains("all 1 sound spares of its hardware are taken"), "{told}");
        assert!(
            told.contains("hot buffer: 2 nodes, 0 left over\ns2 cannot replace anyone: it was never validated"),
            "{told}"
        );
        assert_eq!(text(&document(&[], &[], |_| true)), "nobody is defective; hot buffer: 0 nodes, 0 left over");
        let picked = document(&fleet(), &[], |node| node == "n2");
        assert_eq!(picked.swaps.iter().map(|row| row.replacement.as_deref()).collect::<Vec<_>>(), [Some("s1")]);
    }

    #[test]
    fn who_is_in_repair_is_listed_with_who_took_its_place() {
        let in_repair = Known { marked: Some(Marked::InRepair), ..Known::default() };
        let by = Counterpart::ReplacedBy { node: "s1".into(), since_ms: 86_400_000, until_ms: None };
        let all = [
            Standing { counterpart: Some(by), ..standing("n1", in_repair, "RMA 4711") },
            standing("n2", in_repair, ""),
            standing("n3", Known::default(), ""),
        ];
        let listed = document(&all, &[], |_| true);
        let expected = "nobody is defective; hot buffer: 0 nodes, 0 left over
n1 is in repair since 1970-01-01, replaced by s1 on 1970-01-02: RMA 4711
n2 is in repair since 1970-01-01";
        assert_eq!(text(&listed), expected);
        let json = serde_json::to_value(&listed).unwrap();
        let other = serde_json::json!({ "node": "s1", "since": "1970-01-02T00:00:00Z" });
        assert_eq!(json["in_repair"][0]["replaced_by"], other);
        assert_eq!(json["in_repair"][1].get("replaced_by"), None);
        let none = serde_json::to_value(document(&all, &[], |node| node == "n3")).unwrap();
        assert_eq!(none.get("in_repair"), None, "left out where nobody is");
    }

    #[test]
    fn what_a_reason_holds_breaks_neither_a_table_nor_a_command() {
        let document = document(&fleet(), &[], |node| node == "n1");
        assert!(markdown(&document).contains("GPU 3: it's \\| slow"), "{}", markdown(&document));
        let commands = slurm(&document);
        let drain =
            "scontrol update 'NodeName=n1' State=DRAIN 'Reason=muster: GPU 3: it'\\''s | slow (replaced by s1)'\n";
        assert!(commands.contains(drain), "{commands}");
        assert!(commands.contains("scontrol update 'NodeName=s1' State=RESUME  # same leaf\n"), "{commands}");
    }
}
