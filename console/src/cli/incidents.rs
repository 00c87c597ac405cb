//! `muster incidents`: when nodes could not be used, and why.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand, ValueEnum};
use muster_analysis::checks::check;
use muster_analysis::risk::Category;
use muster_analysis::risk::import::{self, Limits, Parsed};
use muster_playbook::PAIRS;
use muster_playbook::report::rfc3339;
use muster_store::{Incident, Store};
use muster_wire::{BETWEEN_NODES, benchmark, clean};
use serde::Serialize;

use crate::config::Config;
use crate::exit::{CONFIG, Code, Ended, IO, PASS, Problem, USAGE, WARN};
use crate::options::Pick;
use crate::risk::incidents;
use crate::service::AHEAD_MS;
use crate::{clock, database, input, out, session, who};

/// Unreadable lines that are printed; all are counted.
const SHOWN: usize = 20;

/// What to do.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  muster incidents list -w 'n[001-016]' --open
  muster incidents add -w n007 --category network --reason 'cable replaced' --start 2026-11-20T08:00 --end 2026-11-20T09:30
  muster incidents close -w n007
  sacctmgr show event -P start=2026-01-01 > events.txt && muster incidents import events.txt --format sacctmgr
  muster incidents export --format csv > incidents.csv")]
pub enum Action {
    /// List incidents.
    List(List),
    /// Record an incident on each named node.
    Add(Add),
    /// Close the open incidents of the named nodes.
    Close(Close),
    /// Import a file; incidents already in the log are not added again.
    Import(Import),
    /// Print the whole log in the form that import reads.
    #[command(after_help = "Example:\n  muster incidents export --format csv > incidents.csv")]
    Export {
        /// Form of the output.
        #[arg(long, value_enum, default_value_t = Form::Csv)]
        format: Form,
    },
}

/// Options of `list`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  muster incidents list\n  muster incidents list -w 'n[001-016]' --open --since 2026-11-01 --json"
)]
pub struct List {
    /// Which nodes; all when left out.
    #[command(flatten)]
    pub pick: Pick,
    /// Only open incidents.
    #[arg(long)]
    pub open: bool,
    /// Only those that lasted or began after this time (UTC), such as 2026-11-01.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<u64>,
    /// JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Options of `add`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  muster incidents add -w n007 --category network --reason 'cable replaced' --start 2026-11-20T08:00"
)]
pub struct Add {
    /// On which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// When it began (UTC unless it says otherwise); now when left out.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub start: Option<u64>,
    /// When the node was usable again; open if left out.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub end: Option<u64>,
    /// What broke: gpu, nvlink, pcie, network, cpu_memory, disk, power_thermal, software; read from the reason when
    /// left out.
    #[arg(long, value_parser = category)]
    pub category: Option<Category>,
    /// In words.
    #[arg(long, default_value = "")]
    pub reason: String,
    /// Benchmarks that show the defect; commas combine.
    #[arg(long, value_name = "BENCHMARK", value_delimiter = ',')]
    pub found_by: Option<Vec<String>>,
}

/// Options of `close`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  muster incidents close -w n007 --at 2026-11-20T09:30")]
pub struct Close {
    /// Of which nodes.
    #[command(flatten)]
    pub pick: Pick,
    /// When they ended; now when left out.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub at: Option<u64>,
}

/// Options of `import`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  muster incidents import log.csv --origin 2026-01-01\n  sacctmgr show event -P start=2026-01-01 | muster incidents import - --format sacctmgr --zone 1\n\n\
                  Exit codes: 0 the file was read, 1 some of its lines were left out, 78 no line can be read, 74 there is no such file"
)]
pub struct Import {
    /// File, or - for standard input.
    pub file: PathBuf,
    /// What the file is; by its name when left out (.csv, .json), else sacctmgr.
    #[arg(long, value_enum)]
    pub format: Option<Source>,
    /// What hour 0 means in a file that counts hours or days.
    #[arg(long, value_name = "TIME", value_parser = moment, default_value = "1970-01-01")]
    pub origin: u64,
    /// Hours by which the Slurm controller's clock lies east of UTC.
    #[arg(long, value_name = "HOURS", default_value_t = 0.0, allow_negative_numbers = true)]
    pub zone: f64,
}

/// What a file of incidents is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// Columns node, start and perhaps end, category, reason, source, who, found_by.
    Csv,
    /// An array, an object with `incidents`, or one object per line.
    Json,
    /// `sacctmgr show event -P`.
    Sacctmgr,
}

/// Form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// One row per incident.
    Csv,
    /// The `muster.incidents` document.
    Json,
}

/// The published document.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    version: u32,
    incidents: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    node: String,
    /// Hours since 1970, as import reads them.
    start_h: f64,
    end_h: Option<f64>,
    start: String,
    end: Option<String>,
    category: String,
    reason: String,
    source: String,
    who: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    found_by: Option<Vec<String>>,
}

/// Does it.
pub fn run(action: &Action, config: &Config) -> Ended {
    match action {
        Action::List(options) => list(options, config),
        Action::Add(options) => add(options, config),
        Action::Close(options) => close(options, config),
        Action::Import(options) => import(options, config),
        Action::Export { format } => {
            let all = database::read(config)?.incidents().code(IO)?;
            match format {
                Form::Csv => out::line(csv(&all)?.trim_end())?,
                Form::Json => out::json(&report(&all))?,
            }
            Ok(PASS)
        }
    }
}

pub(super) fn moment(text: &str) -> Result<u64, String> {
    let hours = import::hours(text).filter(|h| *h >= 0.0);
    hours.map(|h| (h * 3.6e6).round() as u64).ok_or_else(|| format!("'{text}' is not a time; 2026-11-20T08:00 is one"))
}

fn category(text: &str) -> Result<Category, String> {
    let known = Category::ALL.into_iter().find(|c| c.name() == text);
    known.ok_or_else(|| format!("one of {}", Category::ALL.map(Category::name).join(", ")))
}

fn named(pick: &Pick, config: &Config) -> Result<Vec<String>, Problem> {
    if !pick.names() {
        return Err(Problem { code: USAGE, error: anyhow!("say which nodes: -w LIST or --job ID") });
    }
    Ok(session::nodes(config, pick)?.into_iter().map(|n| n.name).collect())
}

fn list(options: &List, config: &Config) -> Ended {
    let names = if options.pick.names() { Some(named(&options.pick, config)?) } else { None };
    let mut all = database::read(config)?.incidents().code(IO)?;
    all.retain(|i| names.as_ref().is_none_or(|names| names.contains(&i.node)));
    all.retain(|i| !options.open || i.end_ms.is_none());
    all.retain(|i| options.since.is_none_or(|since| i.end_ms.is_none_or(|end| end >= since)));
    if options.json {
        out::json(&report(&all))?;
        return Ok(PASS);
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|i| {
            let end = i.end_ms.map_or("open".to_owned(), rfc3339);
            let found = i.found_by.as_ref().map_or(String::new(), |f| f.join(","));
            vec![
                i.node.clone(),
                rfc3339(i.start_ms),
                end,
                i.category.clone(),
                i.source.clone(),
                found,
                i.reason.clone(),
            ]
        })
        .collect();
    out::line(&out::table(&["node", "start", "end", "category", "source", "found by", "reason"], &rows))?;
    Ok(PASS)
}

fn report(all: &[Incident]) -> Report {
    let row = |i: &Incident| Row {
        node: i.node.clone(),
        start_h: incidents::hours(i.start_ms),
        end_h: i.end_ms.map(incidents::hours),
        start: rfc3339(i.start_ms),
        end: i.end_ms.map(rfc3339),
        category: i.category.clone(),
        reason: i.reason.clone(),
        source: i.source.clone(),
        who: i.who.clone(),
        found_by: i.found_by.clone(),
    };
    Report { schema: "muster.incidents", version: 1, incidents: all.iter().map(row).collect() }
}

fn csv(all: &[Incident]) -> Result<String, Problem> {
    // Whole seconds would make another incident of one that began within a second.
    let time = |ms: u64| rfc3339(ms).replace('Z', &format!(".{:03}Z", ms % 1000));
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(["node", "start", "end", "category", "reason", "source", "who", "found_by"]).code(IO)?;
    for i in all {
        let found = match i.found_by.as_deref() {
            None => String::new(),
            Some([]) => "none".to_owned(),
            Some(names) => names.join(";"),
        };
        let end = i.end_ms.map_or(String::new(), time);
        let start = time(i.start_ms);
        csv.write_record([&i.node, &start, &end, &i.category, &i.reason, &i.source, &i.who, &found]).code(IO)?;
    }
    let bytes = csv.into_inner().map_err(|why| anyhow!("{why}")).code(IO)?;
    String::from_utf8(bytes).code(IO)
}

fn add(options: &Add, config: &Config) -> Ended {
    let now_ms = clock::now_ms();
    let start_ms = options.start.unwrap_or(now_ms);
    no_future("--start", Some(start_ms), now_ms, "record an incident once it has begun")?;
    no_future("--end", options.end, now_ms, STILL_OPEN)?;
    let nobody: Vec<&String> = options.found_by.iter().flatten().filter(|name| !finds(name)).collect();
    if !nobody.is_empty() {
        let names = nobody.iter().map(|name| format!("'{}'", clean(name, 100))).collect::<Vec<_>>().join(", ");
        out::note(format_args!(
            "no benchmark and no check is called {names}; recorded as it is, but nothing will look again"
        ));
    }
    let reason = clean(&options.reason, 4096);
    let category = options.category.unwrap_or_else(|| import::guess_category(&reason));
    let lines: Vec<Incident> = named(&options.pick, config)?
        .into_iter()
        .map(|node| Incident {
            node,
            start_ms,
            end_ms: options.end,
            category: category.name().to_owned(),
            reason: reason.clone(),
            source: "operator".to_owned(),
            who: who::user(),
            found_by: options.found_by.clone(),
        })
        .collect();
    let added = database::write(config)?.record_incidents(&lines).code(USAGE)?;
    out::line(&format!("{added} recorded"))?;
    Ok(PASS)
}

/// Whether no clock that is only a little off tells this time.
const fn is_future(at_ms: u64, now_ms: u64) -> bool {
    at_ms > now_ms.saturating_add(AHEAD_MS)
}

/// What to do about an end that has not come.
const STILL_OPEN: &str = "an incident stays open until the node can be used again";

/// Refuses a time more than a day in the future.
fn no_future(flag: &str, at_ms: Option<u64>, now_ms: u64, advice: &str) -> Result<(), Problem> {
    let Some(at) = at_ms.filter(|at| is_future(*at, now_ms)) else { return Ok(()) };
    let error = anyhow!("{flag} {} is more than a day in the future; {advice}", rfc3339(at));
    Err(Problem { code: USAGE, error })
}

/// Whether a benchmark of the catalogue or a check is called so, as what found an incident is.
fn finds(name: &str) -> bool {
    let between = name == PAIRS || BETWEEN_NODES.iter().any(|one| one.name == name);
    between || benchmark(name).is_some() || check(name.strip_prefix("check/").unwrap_or(name)).is_some()
}

/// Why an incident cannot be closed when it would be.
fn backwards(ended: &Incident) -> Option<String> {
    let (node, start) = (&ended.node, rfc3339(ended.start_ms));
    ended.end_ms.is_some_and(|end| end < ended.start_ms).then(|| {
        format!(
            "the incident of {node} is not closed: it would end before it starts ({start}); --at says when it ended"
        )
    })
}

fn close(options: &Close, config: &Config) -> Ended {
    let names = named(&options.pick, config)?;
    no_future("--at", options.at, clock::now_ms(), STILL_OPEN)?;
    let at = options.at.unwrap_or_else(clock::now_ms);
    let mut store = database::write(config)?;
    let open = store.incidents().code(IO)?.into_iter().filter(|i| i.end_ms.is_none() && names.contains(&i.node));
    let ended: Vec<Incident> = open.map(|i| Incident { end_ms: Some(at), ..i }).collect();
    if let Some(why) = ended.iter().find_map(backwards) {
        return Err(Problem { code: USAGE, error: anyhow!(why) });
    }
    let closed = store.record_incidents(&ended).code(USAGE)?;
    out::line(&format!("{closed} ended"))?;
    Ok(PASS)
}

fn import(options: &Import, config: &Config) -> Ended {
    let name = options.file.display().to_string();
    let source = source(options);
    let parsed = parse(options, &name, source)?;
    if parsed.incidents.is_empty()
        && let Some(first) = parsed.errors.first()
    {
        let (lines, first) = (out::counted(parsed.refused, "line", "lines"), clean(&first.to_string(), 300));
        let error = anyhow!("{name}: no line can be read ({lines}): {first}; {}", form(source));
        return Err(Problem { code: CONFIG, error });
    }
    note_lines(&name, &parsed);
    let readable = parsed.incidents.len();
    let lines: Option<Vec<Incident>> = parsed.incidents.into_iter().map(|i| tidy(i, options)).collect();
    let lines = lines.ok_or_else(|| anyhow!("{name}: a time lies before 1970; --origin says what hour 0 means"));
    let mut lines = lines.code(CONFIG)?;
    if let Some(first) = without_future(&mut lines, clock::now_ms()) {
        out::note(format_args!(
            "{name}: {} more than a day in the future, left out: the first is of {}, {} to {}",
            if readable - lines.len() == 1 {
                "1 incident begins or ends".to_owned()
            } else {
                format!("{} incidents begin or end", readable - lines.len())
            },
            first.node,
            rfc3339(first.start_ms),
            first.end_ms.map_or_else(|| "open".to_owned(), rfc3339)
        ));
    }
    let (taken, left_out) = (lines.len(), parsed.refused + readable - lines.len());
    let added = database::write(config)?.record_incidents(&last_told(lines)).code(CONFIG)?;
    out::line(&counts(taken, added, left_out))?;
    Ok(if left_out > 0 { WARN } else { PASS })
}

/// Says which lines could not be read, and which were taken with a warning.
fn note_lines(name: &str, parsed: &Parsed) {
    // Line 0 is the whole text, of which not all was read.
    for (_, error) in parsed.errors.iter().enumerate().filter(|(at, error)| *at < SHOWN || error.line == 0) {
        out::note(format_args!("{name}: {}", clean(&error.to_string(), 300)));
    }
    for doubt in parsed.doubts.iter().take(SHOWN) {
        out::note(format_args!("{name}: {}", clean(&doubt.to_string(), 300)));
    }
    for (all, what) in [(parsed.refused, "that cannot be read"), (parsed.doubtful, "with a category that is not known")]
    {
        if all > SHOWN {
            out::note(format_args!("{name}: and {} {what}", out::counted(all - SHOWN, "more line", "more lines")));
        }
    }
}

/// The summary of an import: `taken` lines, of which `added` changed the log, and those left out.
fn counts(taken: usize, added: usize, left_out: usize) -> String {
    let read = out::counted(taken + left_out, "line", "lines");
    format!("{read} read, of which {added} new or changed, {} already known, {left_out} left out", taken - added)
}

/// One line for each incident: the last, as in the log.
fn last_told(mut lines: Vec<Incident>) -> Vec<Incident> {
    let mut seen = HashSet::new();
    lines.reverse();
    lines.retain(|line| seen.insert((line.node.clone(), line.start_ms, line.source.clone())));
    lines.reverse();
    lines
}

/// Takes out of `lines` what begins or ends in the future; the first of it.
fn without_future(lines: &mut Vec<Incident>, now_ms: u64) -> Option<Incident> {
    let ahead = |line: &Incident| is_future(line.end_ms.unwrap_or(0).max(line.start_ms), now_ms);
    let first = lines.iter().find(|line| ahead(line)).cloned();
    lines.retain(|line| !ahead(line));
    first
}

fn tidy(incident: muster_analysis::risk::Incident, options: &Import) -> Option<Incident> {
    let mut line = incidents::kept(incident, incidents::hours(options.origin))?;
    for text in [&mut line.node, &mut line.reason, &mut line.source, &mut line.who] {
        *text = clean(text, 4096).trim().to_owned();
    }
    Some(line)
}

/// What the file is: as said, else by its name.
fn source(options: &Import) -> Source {
    let extension = options.file.extension().and_then(|e| e.to_str());
    options.format.unwrap_or(match extension {
        Some("csv") => Source::Csv,
        Some("json" | "jsonl" | "ndjson") => Source::Json,
        _ => Source::Sacctmgr,
    })
}

/// What such a file looks like.
const fn form(source: Source) -> &'static str {
    match source {
        Source::Csv => {
            "expected a header with node and start (2026-11-20T08:00), start_h or start_day, and perhaps end, category, reason, source, \
             who and found_by, then one incident a line"
        }
        Source::Json => {
            "expected an array, an object with `incidents`, or one object a line, each like \
             {\"node\": \"n001\", \"start_h\": 490000.5, \"end_h\": null, \"category\": \"gpu\"}"
        }
        // What is wrong with it says already how events are printed.
        Source::Sacctmgr => "for other files use --format csv or json",
    }
}

fn parse(options: &Import, name: &str, source: Source) -> Result<Parsed, Problem> {
    let limits = Limits::default();
    let text = if name == "-" {
        let mut text = String::new();
        // One byte more than is read tells that there is more.
        std::io::stdin().lock().take(limits.bytes as u64 + 1).read_to_string(&mut text).code(IO)?;
        text
    } else {
        input::text(&options.file).code(CONFIG)?
    };
    let parsed = match source {
        Source::Csv => import::csv_incidents(&text, limits),
        Source::Json => import::json_incidents(&text, limits),
        Source::Sacctmgr => import::sacctmgr_events(&text, options.zone, limits),
    };
    parsed.map_err(|why| {
        // Line 0 is the whole text, which is too long whatever it looks like.
        let form = if why.line == 0 { String::new() } else { format!("; {}", form(source)) };
        Problem { code: CONFIG, error: anyhow!("{name}: {}{form}", clean(&why.to_string(), 300)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incident(node: &str, start_ms: u64) -> Incident {
        Incident {
            node: node.to_owned(),
            start_ms,
            end_ms: None,
            category: Category::Gpu.name().to_owned(),
            reason: String::new(),
            source: "operator".to_owned(),
            who: "ann".to_owned(),
            found_by: None,
        }
    }

    #[test]
    fn what_begins_beyond_a_days_error_of_a_clock_is_left_out() {
        let now = 1_000 * AHEAD_MS;
        assert!(!is_future(now + AHEAD_MS, now) && is_future(now + AHEAD_MS + 1, now));
        let mut lines = vec![incident("n1", now), incident("n2", 2 * now), incident("n3", 3 * now)];
        let first = without_future(&mut lines, now).map(|line| line.node);
        assert_eq!((lines.len(), first.as_deref()), (1, Some("n2")));
        assert_eq!(without_future(&mut lines, now), None);
        lines.push(Incident { end_ms: Some(2 * now), ..incident("n4", 5) });
        assert_eq!(without_future(&mut lines, now).map(|line| line.node).as_deref(), Some("n4"));
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn a_time_that_has_not_come_is_refused_with_its_flag() {
        let now = 1_000 * AHEAD_MS;
        assert!(no_future("--at", None, now, STILL_OPEN).is_ok());
        assert!(no_future("--at", Some(now + AHEAD_MS), now, STILL_OPEN).is_ok());
        let problem = no_future("--end", Some(now + AHEAD_MS + 1), now, STILL_OPEN).unwrap_err();
        let why = problem.error.to_string();
        assert!(problem.code == USAGE && why.starts_with("--end 1972-") && why.contains("stays open until"), "{why}");
        assert!(moment("2026-02-30").is_err() && moment("2026-11-20T24:30").is_err() && moment("2026-11-20").is_ok());
    }

    #[test]
    fn a_row_that_comes_twice_counts_once_and_the_counts_add_up() {
        let closed = Incident { end_ms: Some(9), ..incident("n1", 5) };
        let lines = last_told(vec![incident("n1", 5), incident("n2", 5), closed.clone(), incident("n2", 5)]);
        assert_eq!(lines, [closed, incident("n2", 5)]);
        assert_eq!(counts(4, 2, 0), "4 lines read, of which 2 new or changed, 2 already known, 0 left out");
        assert_eq!(counts(0, 0, 1), "1 line read, of which 0 new or changed, 0 already known, 1 left out");
    }

    #[test]
    fn what_found_an_incident_is_a_benchmark_or_a_check() {
        assert!(finds("cpu-gemm") && finds("disk") && finds(PAIRS));
        assert!(!finds("nosuch") && !finds("check/nosuch"));
    }

    #[test]
    fn an_incident_that_would_end_before_it_starts_is_named_with_its_start() {
        let ended = |end_ms| Incident { end_ms, ..incident("n008", 4_070_908_800_000) };
        let why = backwards(&ended(Some(5))).unwrap();
        assert!(why.contains("n008") && why.contains("it would end before it starts (2099-01-01"), "{why}");
        assert_eq!((backwards(&ended(None)), backwards(&ended(Some(4_070_908_800_000)))), (None, None));
    }

    fn options(file: &std::path::Path) -> Import {
        Import { file: file.to_owned(), format: None, origin: 0, zone: 0.0 }
    }

    #[test]
    fn a_file_of_another_form_is_answered_with_the_form() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text, said) in [
            ("a.json", "{}", "neither `incidents` nor `node`; expected an array"),
            ("a.csv", "a,b\n1,2\n", "line 1: there is no column node; expected a header with node"),
            ("a.txt", "hello\n", "print the events with sacctmgr show event -P; for other files use --format csv"),
        ] {
            let file = dir.path().join(name);
            std::fs::write(&file, text).unwrap();
            let options = options(&file);
            let problem = parse(&options, name, source(&options)).unwrap_err();
            let why = problem.error.to_string();
            assert!(problem.code == CONFIG && why.starts_with(name) && why.contains(said), "{why}");
        }
    }
}
