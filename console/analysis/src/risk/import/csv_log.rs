//! Which incidents does a CSV file tell? One per line; its header says in which unit its times are.

use super::category::guess_category;
use super::line::{Limits, LineError, Parsed};
use super::stamp;
use crate::risk::{Category, Incident};

/// Incidents of a CSV text with a header. Needed: `node` and a start (`start_h` in hours, `start_day` in days, or
/// `start` as `2024-03-30T07:00:00`). Read where present: the end in the same spelling (empty: still open),
/// `category` or `class`, `reason` or `desc`, `source`, `who`, `found_by` (benchmarks by `;`, `none` when they ran and
/// none showed it). Written times become hours since 1970.
///
/// # Errors
/// When the text is too long, ends inside a quote, or its header lacks a needed column. Single unreadable lines are listed in
/// [`Parsed::errors`] instead.
pub fn csv_incidents(text: &str, limits: Limits) -> Result<Parsed, LineError> {
    limits.check(text)?;
    if let Some(line) = open_quote(text) {
        return Err(LineError::new(
            line,
            "the quote that begins here never ends: the file was cut off, or a quote is missing",
        ));
    }
    let mut reader = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| LineError::new(1, e.to_string()))?;
    let columns = Header::of(header)?;
    let mut parsed = Parsed::default();
    for record in reader.records() {
        let (found, word) = match record {
            Ok(record) => (columns.incident(&record), columns.unknown_word(&record)),
            Err(e) => (Err(LineError::new(e.position().map_or(0, |p| p.line() as usize), e.to_string())), None),
        };
        let word = word.filter(|_| found.is_ok());
        if !parsed.take(found, limits) {
            break;
        }
        if let Some((line, word)) = word {
            parsed.unknown_category(line, &word, limits);
        }
    }
    Ok(parsed)
}

/// The line on which a quoted field begins that the end of the text leaves open, which the reader takes as whole.
fn open_quote(text: &str) -> Option<usize> {
    /// Where in a field a byte stands.
    enum At {
        Start,
        Plain,
        Quoted(usize),
        /// After a quote inside a quoted field, which ends it or begins a pair.
        Closed(usize),
    }
    let (mut at, mut line) = (At::Start, 1);
    for byte in text.bytes() {
        at = match (at, byte) {
            (At::Start, b'"') => At::Quoted(line),
            (At::Quoted(from), b'"') => At::Closed(from),
            (At::Closed(from), b'"') => At::Quoted(from),
            (At::Quoted(from), _) => At::Quoted(from),
            (_, b',' | b'\n' | b'\r') => At::Start,
            _ => At::Plain,
        };
        line += usize::from(byte == b'\n');
    }
    match at {
        At::Quoted(from) => Some(from),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Hours,
    Days,
    Written,
}

struct Header {
    node: usize,
    unit: Unit,
    start: usize,
    end: Option<usize>,
    category: Option<usize>,
    reason: Option<usize>,
    source: Option<usize>,
    who: Option<usize>,
    found_by: Option<usize>,
}

impl Header {
    fn of(header: &csv::StringRecord) -> Result<Self, LineError> {
        let at = |names: &[&str]| {
            names.iter().find_map(|name| header.iter().position(|h| h.trim_start_matches('\u{feff}') == *name))
        };
        let node = at(&["node", "node_id", "hostname"]).ok_or_else(|| LineError::new(1, "there is no column node"))?;
        let units =
            [("start_h", "end_h", Unit::Hours), ("start_day", "end_day", Unit::Days), ("start", "end", Unit::Written)];
        let times =
            units.into_iter().find_map(|(start, end, unit)| at(&[start]).map(|start| (start, at(&[end]), unit)));
        let (start, end, unit) =
            times.ok_or_else(|| LineError::new(1, "there is no column start_h, start_day or start"))?;
        Ok(Self {
            node,
            unit,
            start,
            end,
            category: at(&["category", "class"]),
            reason: at(&["reason", "desc"]),
            source: at(&["source"]),
            who: at(&["who", "user"]),
            found_by: at(&["found_by"]),
        })
    }

    fn incident(&self, record: &csv::StringRecord) -> Result<Incident, LineError> {
        let line = record.position().map_or(0, |p| p.line() as usize);
        let fail = |why: String| LineError::new(line, why);
        let field = |at: usize| record.get(at).unwrap_or_default();
        let text = |at: Option<usize>| at.map(field).unwrap_or_default();
        let time = |at: usize| self.time(field(at)).ok_or_else(|| fail(format!("{:?} is not a time", field(at))));
        let end = match text(self.end) {
            "" => None,
            _ => self.end.map(time).transpose()?,
        };
        let category = guess_category(text(self.category));
        let incident = Incident {
            node: field(self.node).to_owned(),
            start_h: time(self.start)?,
            end_h: end,
            category: if self.category.is_none() { guess_category(text(self.reason)) } else { category },
            reason: text(self.reason).to_owned(),
            source: if text(self.source).is_empty() { "csv" } else { text(self.source) }.to_owned(),
            who: text(self.who).to_owned(),
            found_by: finders(text(self.found_by)),
        };
        incident.check().map_err(|why| fail(why.to_string()))?;
        Ok(incident)
    }

    /// The line and the word of a category that is none of ours and points at none.
    fn unknown_word(&self, record: &csv::StringRecord) -> Option<(usize, String)> {
        let word = self.category.and_then(|at| record.get(at)).unwrap_or_default();
        let known = word.is_empty() || guess_category(word) != Category::Unknown;
        let line = record.position().map_or(0, |p| p.line() as usize);
        let named = Category::named(&word.to_lowercase()).is_some();
        (!known && !named).then(|| (line, word.to_owned()))
    }

    fn time(&self, text: &str) -> Option<f64> {
        match self.unit {
            Unit::Hours => text.parse().ok(),
            Unit::Days => text.parse::<f64>().ok().map(|d| d * 24.0),
            Unit::Written => stamp::hours(text),
        }
    }
}

fn finders(text: &str) -> Option<Vec<String>> {
    let names = || text.split(';').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    match text {
        "" => None,
        "none" => Some(Vec::new()),
        _ => Some(names().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_ends_inside_a_quote_is_refused_with_the_line_of_the_quote() {
        let why = |text: &str| csv_incidents(text, Limits::default()).unwrap_err().to_string();
        for (text, line) in [
            ("node,start\nm1,\"2026-11-20T08:00\n", 2),
            ("node,start\nm1,2026-11-20\nm2,\"2026-11-21", 3),
            (
                "node,start,reason\nm1,2026-11-20,\"two\nlines\"\nm2,2026-11-21,\"it said \"\"no\"\"\nm3,2026-11-22,x\n",
                4,
            ),
            ("node,\"start\n", 1),
        ] {
            let why = why(text);
            assert!(why.starts_with(&format!("line {line}: the quote that begins here never ends")), "{why}");
        }
        let whole = "node,start_h,reason\na,1,\"two\nlines\"\nb,2,\"it said \"\"no\"\"\"\nc,3,5\" of rain\nd,4,\"\"";
        let parsed = csv_incidents(whole, Limits::default()).unwrap();
        assert_eq!((parsed.incidents.len(), parsed.refused), (4, 0));
        assert_eq!(parsed.incidents[2].reason, "5\" of rain");
    }

    #[test]
    fn a_category_that_nobody_can_read_is_named_with_its_line_and_the_incident_kept() {
        let text = "node,start_h,category\na,1,gremlins\nb,2,unknown\nc,3,\nd,4,Cable\ne,x,gremlins\nf,6,Unknown\n";
        let parsed = csv_incidents(text, Limits::default()).unwrap();
        assert_eq!((parsed.incidents.len(), parsed.refused, parsed.doubtful), (5, 1, 1));
        let said = parsed.doubts[0].to_string();
        assert!(
            said.starts_with("line 2: the category \"gremlins\" is none of ") && said.ends_with("taken as unknown"),
            "{said}"
        );
        let parsed = csv_incidents(&text.replace("Cable", "imps"), Limits { errors: 1, ..Limits::default() }).unwrap();
        assert_eq!((parsed.doubts.len(), parsed.doubtful), (1, 2));
    }

    #[test]
    fn good_lines_are_read_and_bad_ones_named() {
        let text = "node,start_h,end_h,category,reason\n\
                    n1,10,12.5,gpu,\"Xid 79, fell off\"\n\
                    n2,x,3,gpu,\n\
                    n3,5,4,gpu,\n\
                    n4,7,,Cable,\n\
                    ,7,8,gpu,\n";
        let parsed = csv_incidents(text, Limits::default()).unwrap();
        assert_eq!(parsed.incidents.len(), 2);
        assert_eq!(parsed.incidents[0].reason, "Xid 79, fell off");
        assert_eq!((parsed.incidents[0].end_h, parsed.incidents[1].end_h), (Some(12.5), None));
        assert_eq!(parsed.incidents[1].category, Category::Network);
        assert_eq!(parsed.errors.iter().map(|e| e.line).collect::<Vec<_>>(), [3, 4, 6]);
        assert_eq!(parsed.refused, 3);
    }

    #[test]
    fn who_found_it_is_told_apart_from_nobody_looked() {
        let text = "node,start_h,found_by\na,1,disk; cpu-gemm\nb,2,none\nc,3,\n";
        let found: Vec<_> = csv_incidents(text, Limits::default()).unwrap().incidents;
        let found: Vec<_> = found.into_iter().map(|i| i.found_by).collect();
        assert_eq!(found, [Some(vec!["disk".to_owned(), "cpu-gemm".to_owned()]), Some(vec![]), None]);
    }

    #[test]
    fn days_and_written_times_become_hours() {
        let days = csv_incidents("node,start_day,end_day,class\n0,1.5,2,GPU\n", Limits::default()).unwrap();
        assert_eq!((days.incidents[0].start_h, days.incidents[0].end_h), (36.0, Some(48.0)));
        let written =
            csv_incidents("node,start,end\na,1970-01-02T00:00:00,1970-01-02 06:00\n", Limits::default()).unwrap();
        assert_eq!((written.incidents[0].start_h, written.incidents[0].end_h), (24.0, Some(30.0)));
    }

    #[test]
    fn reading_is_bounded() {
        let text = "node,start_h\n".to_owned() + &"n,1\n".repeat(50) + &"n,?\n".repeat(50);
        let limits = Limits { errors: 3, ..Limits::default() };
        let parsed = csv_incidents(&text, limits).unwrap();
        assert_eq!((parsed.incidents.len(), parsed.errors.len(), parsed.refused), (50, 3, 50));
        let parsed = csv_incidents(&text, Limits { rows: 10, ..limits }).unwrap();
        assert_eq!((parsed.incidents.len(), parsed.refused), (10, 1));
        assert!(csv_incidents(&text, Limits { bytes: 10, ..limits }).is_err());
        assert!(csv_incidents("a,b\n1,2\n", limits).is_err());
        assert!(csv_incidents("", limits).is_err());
    }
}
