//! The page of a recording that a watch went through: who was unlike its peers, in which metric, from when on.

use muster_import::telemetry::Recording;
use muster_page::{Cell, Course, Entry, Fact, Line, Moment, Names, Page, Part, Section, State, Table};
use muster_playbook::report::rfc3339;
use muster_watch::{Alert, AlertKind, Watch};
use muster_wire::telemetry;

use super::head::program;
use crate::out::counted;

/// Alerts with a chart.
const CHARTS: usize = 20;
/// Alerts on the page.
const ALERTS: usize = 200;
/// Seconds shown before a machine became unlike its peers, and after it was like them again.
const BEFORE_S: f64 = 600.0;
const AFTER_S: f64 = 300.0;
/// The longest stretch that is drawn.
const LONGEST_S: f64 = 4.0 * 3_600.0;
/// Moments of a chart.
const MOMENTS: usize = 240;

/// What a watch found.
pub struct Told<'t> {
    /// What the recording is called.
    pub name: &'t str,
    /// Nodes and metrics that were compared.
    pub of: (usize, &'t [String]),
    /// The detector after the last row.
    pub watch: &'t Watch,
    /// What is worth knowing and accuses nobody.
    pub notes: &'t [String],
}

/// The time around an alert, as its metric showed it.
#[derive(Clone, Debug)]
pub struct Stretch {
    from_s: f64,
    until_s: f64,
    /// By moment, the values of every node: sum and number.
    cells: Vec<Vec<(f64, u32)>>,
    node: usize,
    metric: usize,
}

/// The stretches of the first alerts, filled from the rows of the recording; `None` for an alert without a metric.
#[must_use]
pub fn stretches(alerts: &[Alert], recording: &Recording) -> Vec<Option<Stretch>> {
    let mut all: Vec<Option<Stretch>> = alerts.iter().take(CHARTS).map(|alert| stretch(alert, recording)).collect();
    for row in recording.rows() {
        let (node, metric) = recording.of(row);
        let value = f64::from(row.value);
        for stretch in all.iter_mut().flatten().filter(|stretch| stretch.metric == metric && value.is_finite()) {
            stretch.add(node, row.time_s, value);
        }
    }
    all
}

fn stretch(alert: &Alert, recording: &Recording) -> Option<Stretch> {
    let metric = alert.metric.as_ref()?;
    let from_s = alert.since_s - BEFORE_S;
    let until_s =
        (alert.until_s.unwrap_or(f64::INFINITY) + AFTER_S).max(alert.alerted_s + AFTER_S).min(from_s + LONGEST_S);
    Some(Stretch {
        from_s,
        until_s,
        cells: vec![Vec::new(); MOMENTS],
        node: recording.nodes.iter().position(|name| *name == alert.node)?,
        metric: recording.metrics.iter().position(|name| name == metric)?,
    })
}

impl Stretch {
    fn add(&mut self, node: usize, time_s: f64, value: f64) {
        let share = (time_s - self.from_s) / (self.until_s - self.from_s);
        if !(0.0..1.0).contains(&share) {
            return;
        }
        let cell = &mut self.cells[(share * MOMENTS as f64) as usize];
        if cell.len() <= node {
            cell.resize(node + 1, (0.0, 0));
        }
        cell[node].0 += value;
        cell[node].1 += 1;
    }

    fn moments(&self) -> Vec<Moment> {
        let minutes = (self.until_s - self.from_s) / 60.0 / MOMENTS as f64;
        let mean = |(sum, count): &(f64, u32)| (*count > 0).then(|| sum / f64::from(*count));
        let moment = |(at, cell): (usize, &Vec<(f64, u32)>)| {
            let others = cell.iter().enumerate().filter(|(node, _)| *node != self.node);
            let peers: Vec<f64> = others.filter_map(|(_, value)| mean(value)).collect();
            Moment { at: at as f64 * minutes, own: cell.get(self.node).and_then(mean), peers: quartiles(peers) }
        };
        let all: Vec<Moment> = self.cells.iter().enumerate().map(moment).collect();
        let last = all.iter().rposition(|moment| moment.own.is_some() || moment.peers.is_some()).map_or(0, |at| at + 1);
        all.into_iter().take(last).collect()
    }
}

fn quartiles(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let median = f64::midpoint(values[last / 2], values[last.div_ceil(2)]);
    Some([values[last / 4], median, values[(3 * last).div_ceil(4)]])
}

/// Alerts with their courses, notes, metrics.
#[must_use]
pub fn watch_page(told: &Told<'_>, stretches: &[Option<Stretch>]) -> Page {
    let alerts = told.watch.alerts();
    let span = told.watch.span();
    let lack = told.watch.lack().filter(|_| alerts.is_empty());
    let fact = |label, value: String| Fact { label, value };
    let section = |id, title: &str, parts| Section { id, title: title.to_owned(), parts };
    let state = match (alerts.len(), &lack) {
        (0, Some(_)) => State::Unknown,
        (0, None) => State::Pass,
        _ => State::Fail,
    };
    let title = match alerts.len() {
        0 => format!("Nothing odd in {}", told.name),
        n => format!("{} in {}", counted(n, "alert", "alerts"), told.name),
    };
    let sections = vec![
        section("alerts", "Alerts", entries(told.watch, stretches)),
        section("undecided", "Not decided", lack.map(|lack| Part::Text(lack.to_string())).into_iter().collect()),
        section("notes", "Worth knowing", notes(told.notes)),
        section("metrics", "What was compared", vec![metrics(told.of.1)]),
    ];
    Page {
        kind: "Report of a watch",
        title,
        state: Some(state),
        counts: Vec::new(),
        undecided: String::new(),
        facts: vec![
            fact("Recording", told.name.to_owned()),
            fact("From (UTC)", span.map_or_else(|| "–".to_owned(), |span| at(span.0))),
            fact("To (UTC)", span.map_or_else(|| "–".to_owned(), |span| at(span.1))),
            fact("Nodes", told.of.0.to_string()),
            fact("Metrics", told.of.1.len().to_string()),
        ],
        notes: Vec::new(),
        sections: sections.into_iter().filter(|section| !section.parts.is_empty()).collect(),
        program: program(),
    }
}

fn entries(watch: &Watch, stretches: &[Option<Stretch>]) -> Vec<Part> {
    let alerts = watch.alerts();
    if alerts.is_empty() {
        return vec![Part::Text("No machine was unlike its peers for long enough to be named.".to_owned())];
    }
    let drawn = stretches.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    let shown = (0..alerts.len()).zip(drawn).take(ALERTS);
    let mut parts: Vec<Part> = shown.map(|(nr, drawn)| entry(watch, nr, drawn)).collect();
    if alerts.len() > ALERTS {
        parts
            .push(Part::Text(format!("And {} later alerts; muster watch --json has them all.", alerts.len() - ALERTS)));
    }
    parts
}

/// When the machine of an alert was like its peers again, where it was by the end of the recording, and that in words.
fn over(watch: &Watch, nr: usize) -> (Option<f64>, String) {
    let alert = &watch.alerts()[nr];
    if let Some(until_s) = alert.until_s {
        return (Some(until_s), format!("until {}", at(until_s)));
    }
    let end_s = watch.span().map_or(0.0, |span| span.1);
    let since_s = watch.like_peers_since(nr).map(|since_s| since_s.max(alert.alerted_s)).filter(|since| *since < end_s);
    match since_s {
        Some(since_s) => {
            let last = end_s - since_s;
            (Some(since_s), format!("like its peers again from {} on, for the last {last:.0} s", at(since_s)))
        }
        None => (None, "still so at the end".to_owned()),
    }
}

fn entry(watch: &Watch, nr: usize, stretch: Option<&Stretch>) -> Part {
    let (alert, (until_s, until)) = (&watch.alerts()[nr], over(watch, nr));
    let kind = match alert.kind {
        AlertKind::Odd => "unlike its peers",
        AlertKind::Silent => "fell silent as the job stopped",
        AlertKind::FirstMover => "left its peers before the whole job slowed",
    };
    let mut lines = vec![
        Line { state: None, text: alert.sentence.clone(), next: String::new() },
        Line::of(format!(
            "Since {}, told {}, {until} (UTC). Deviation {:.1} standard deviations.",
            at(alert.since_s),
            at(alert.alerted_s),
            alert.score
        )),
    ];
    if !alert.also.is_empty() {
        let also: Vec<String> = alert.also.iter().map(|also| format!("{} ({:.1})", also.metric, also.score)).collect();
        lines.push(Line::of(format!("Also odd: {}.", also.join(", "))));
    }
    let who = alert.group.as_ref().unwrap_or(&alert.node);
    Part::Entry(Entry {
        id: format!("alert-{}", nr + 1),
        state: State::Fail,
        title: format!("{who}: {kind}"),
        names: Names::default(),
        lines,
        parts: stretch.map(|stretch| Part::Course(course(alert, until_s, stretch))).into_iter().collect(),
    })
}

fn course(alert: &Alert, until_s: Option<f64>, stretch: &Stretch) -> Course {
    let metric = alert.metric.as_deref().unwrap_or_default();
    let (title, symbol) = about(metric);
    let minutes = |at_s: f64| (at_s - stretch.from_s) / 60.0;
    let show =
        |value: Option<f64>| value.map_or_else(|| "no value".to_owned(), |value| format!("{value:.4} {}", alert.unit));
    Course {
        title: format!("{title} of {}", alert.node),
        said: format!(
            "{}: {}, the median of {} peers: {}.",
            alert.node,
            show(alert.value),
            alert.peers,
            show(alert.peer_median)
        ),
        caption: format!("{metric}. The time line begins at {} UTC.", at(stretch.from_s)),
        name: alert.node.clone(),
        moments: stretch.moments(),
        unit: symbol,
        from: minutes(alert.since_s),
        until: minutes(until_s.unwrap_or(f64::INFINITY)).min(1e6),
    }
}

fn notes(notes: &[String]) -> Vec<Part> {
    let lines: Vec<Line> = notes.iter().map(|note| Line::of(note.as_str())).collect();
    if lines.is_empty() { Vec::new() } else { vec![Part::List(lines)] }
}

fn metrics(names: &[String]) -> Part {
    let mut table = Table::new("Metrics", &["name", "what it is", "unit"]);
    for name in names.iter().take(ALERTS) {
        let (title, symbol) = about(name);
        table.rows.push(vec![Cell::Code(name.clone()), Cell::text(title), Cell::text(symbol)]);
    }
    Part::Table(table)
}

/// What the field calls a metric, and its unit.
fn about(metric: &str) -> (&str, &'static str) {
    let known = telemetry(metric);
    let title = known.map(|known| known.title).filter(|title| !title.is_empty());
    (title.unwrap_or(metric), known.map_or("", |known| known.symbol))
}

/// Epoch seconds as people write them.
fn at(seconds: f64) -> String {
    rfc3339((seconds.max(0.0) * 1e3) as u64)
}

#[cfg(test)]
mod tests {
    use muster_analysis::Chance;
    use muster_watch::Settings;

    use super::*;

    const START: f64 = 1_760_000_000.0;

    /// Eight nodes for 800 s, of which `n2` has 60 % of what the others show in two metrics from second 400 to second `until`.
    fn watched(until: usize) -> Watch {
        let mut watch = Watch::new(Settings::default());
        let names = [("tensor_active", 0.6), ("gpu_power_w", 500.0), ("net_tx_gbs", 50.0), ("cpu_util_pct", 40.0)];
        let nodes: Vec<_> = (0..8).map(|node| watch.node(&format!("n{node}")).unwrap()).collect();
        let metrics: Vec<_> = names.iter().map(|(name, _)| watch.metric(name).unwrap()).collect();
        let mut chance = Chance::new(3);
        for second in 0..800 {
            for (metric, (_, base)) in names.iter().enumerate() {
                for (node, place) in nodes.iter().enumerate() {
                    let slow = node == 2 && metric < 2 && (400..until).contains(&second);
                    let share = if slow { 0.6 } else { 1.0 };
                    let value = base * share * (1.0 + 0.03 * chance.normal());
                    watch.push(START + second as f64, *place, metrics[metric], value);
                }
            }
        }
        watch.finish();
        assert_eq!((watch.alerts().len(), watch.alerts()[0].until_s), (1, None));
        watch
    }

    #[test]
    fn still_so_at_the_end_is_said_of_a_machine_that_is_unlike_its_peers_then_and_of_no_other() {
        assert_eq!(over(&watched(800), 0), (None, "still so at the end".to_owned()));
        let (until_s, said) = over(&watched(700), 0);
        // The first minute after a fault still has blocks of it, beside which noise counts.
        assert!(until_s.is_some_and(|until_s| (690.0..=780.0).contains(&(until_s - START))), "{until_s:?}");
        assert!(said.starts_with("like its peers again from ") && said.contains(" on, for the last "), "{said}");
    }
}
