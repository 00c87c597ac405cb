//! The page of a recording that a watch went through: who was unlike its peers, in which metric, from when on.

use muster_analysis::watch::{Alert, AlertKind, Watch};
use muster_import::telemetry::Recording;
use muster_page::{Cell, Course, Entry, Fact, Line, Moment, Names, Page, Part, Section, State, Table};
use muster_playbook::report::rfc3339;
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
        section("alerts", "Alerts", entries(alerts, stretches)),
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

fn entries(alerts: &[Alert], stretches: &[Option<Stretch>]) -> Vec<Part> {
    if alerts.is_empty() {
        return vec![Part::Text("No machine was unlike its peers for long enough to be named.".to_owned())];
    }
    let drawn = stretches.iter().map(Option::as_ref).chain(std::iter::repeat(None));
    let mut parts: Vec<Part> =
        alerts.iter().zip(drawn).take(ALERTS).enumerate().map(|(nr, (alert, drawn))| entry(nr, alert, drawn)).collect();
    if alerts.len() > ALERTS {
        parts
            .push(Part::Text(format!("And {} later alerts; muster watch --json has them all.", alerts.len() - ALERTS)));
    }
    parts
}

fn entry(nr: usize, alert: &Alert, stretch: Option<&Stretch>) -> Part {
    let kind = match alert.kind {
        AlertKind::Odd => "unlike its peers",
        AlertKind::Silent => "fell silent as the job stopped",
        AlertKind::FirstMover => "left its peers before the whole job slowed",
    };
    let until = alert.until_s.map_or("still so at the end".to_owned(), |until| format!("until {}", at(until)));
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
        parts: stretch.map(|stretch| Part::Course(course(alert, stretch))).into_iter().collect(),
    })
}

fn course(alert: &Alert, stretch: &Stretch) -> Course {
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
        until: minutes(alert.until_s.unwrap_or(f64::INFINITY)).min(1e6),
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
