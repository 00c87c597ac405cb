//! How lists, facts and results look as aligned columns.

use muster_wire::{BENCHMARKS, COLLECTORS, Datum, Fact, Outcome, Reading, clean};

use crate::report::{Report, Summary};

const TEXT: usize = 200;

/// Names and what they mean.
pub(crate) fn catalogue() -> String {
    let benchmarks = BENCHMARKS.iter().map(|entry| ["benchmark".into(), entry.name.into(), entry.about.into()]);
    let collectors = COLLECTORS.iter().map(|entry| ["collector".into(), entry.name.into(), entry.about.into()]);
    columns(&benchmarks.chain(collectors).collect::<Vec<_>>(), &[])
}

/// A report for a person.
pub(crate) fn show(report: &Report) -> String {
    let mut out = String::new();
    for look in &report.looks {
        out += &format!("{}{}\n", look.collector, ended(&look.outcome));
        let rows: Vec<_> = look.facts.iter().map(|fact| [format!("  {}", fact.key), value(fact)]).collect();
        out += &columns(&rows, &[]);
    }
    if !report.measured.is_empty() {
        out += &results(report);
    }
    out
}

fn results(report: &Report) -> String {
    let mut rows = vec![["metric", "median", "min", "max", "cv", "n", "engine"].map(str::to_owned)];
    let mut troubles = String::new();
    for one in &report.measured {
        for series in &one.series {
            let show = |value: f64| series.unit.show(value);
            let name = series.metric.path();
            let engine = series.metric.engine.clone();
            rows.push(match Summary::of(&series.values) {
                Some(s) => {
                    let cv = format!("{:.1} %", s.cv * 100.0);
                    [name, show(s.median), show(s.min), show(s.max), cv, s.n.to_string(), engine]
                }
                None => [name, "-".into(), "-".into(), "-".into(), "-".into(), "0".into(), engine],
            });
        }
        if one.finished.outcome != Outcome::Done {
            troubles += &format!("{}{}\n", one.finished.name, ended(&one.finished.outcome));
        }
    }
    if rows.len() == 1 { troubles } else { columns(&rows, &[1, 2, 3, 4, 5]) + &troubles }
}

fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => String::new(),
        Outcome::NotApplicable(why) => format!(": not applicable: {why}"),
        Outcome::Denied(why) => format!(": denied: {why}"),
        Outcome::NotRun(why) => format!(": not run: {why}"),
        Outcome::Failed(why) => format!(": FAILED: {why}"),
    }
}

fn value(fact: &Fact) -> String {
    match &fact.reading {
        Reading::Value(Datum::Number(number)) => match fact.unit {
            Some(unit) if unit != muster_wire::Unit::Count => unit.show(*number),
            _ => number.to_string(),
        },
        Reading::Value(Datum::Text(text)) => clean(text, TEXT),
        Reading::Value(Datum::Flag(flag)) => if *flag { "yes" } else { "no" }.to_owned(),
        Reading::Absent => "- absent".to_owned(),
        Reading::Denied => "- denied".to_owned(),
        Reading::Failed(why) => format!("- failed: {}", clean(why, TEXT)),
    }
}

/// Columns two spaces apart; those listed in `right` are aligned to the right.
fn columns<const N: usize>(rows: &[[String; N]], right: &[usize]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            line += &if right.contains(&column) { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use muster_wire::{Direction, Finished, MetricId, Profile, Series, Unit};

    use super::*;
    use crate::report::Measured;

    #[test]
    fn a_result_shows_its_unit_and_a_failure_its_reason() {
        let finished = |name: &str, outcome| Finished { name: name.into(), outcome, elapsed_ns: 1 };
        let series = Series {
            metric: MetricId::new("cpu-stream", "triad", "own"),
            unit: Unit::BytesPerSec,
            direction: Direction::HigherIsBetter,
            values: vec![10e9, 20e9, 30e9],
            warmup: 0,
            started_ns: 1,
        };
        let report = Report {
            profile: Some(Profile::Smoke),
            looks: Vec::new(),
            measured: vec![
                Measured { finished: finished("cpu-stream", Outcome::Done), series: vec![series], facts: Vec::new() },
                Measured {
                    finished: finished("disk", Outcome::Failed("no room".into())),
                    series: Vec::new(),
                    facts: Vec::new(),
                },
            ],
        };
        let text = show(&report);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "metric               median        min        max      cv  n  engine");
        assert_eq!(lines[1], "cpu-stream/triad  20.0 GB/s  10.0 GB/s  30.0 GB/s  50.0 %  3  own");
        assert_eq!(lines[2], "disk: FAILED: no room");
    }
}
