//! The end of the kernel's log, cleaned, how many of its lines are errors, and the events in all of it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use muster_wire::{Reading, Unit, clean};

use super::events::{self, Event};
use super::root::{number, reading};
use super::{Facts, Root, Then};

const KMSG: &str = "/dev/kmsg";
const LINES: usize = 100;
const LINE: usize = 300;
/// Newest events told one by one; all are counted.
const EVENTS: usize = 128;
/// One record is at most this long; shorter buffers make the kernel refuse it.
const RECORD: usize = 8192;
/// Most of the ring that the system call is asked for, bytes.
const RING: usize = 1 << 20;
/// Records read before giving up on a log that grows as fast as it is read.
const RECORDS: usize = 1 << 19;
const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    level: usize,
    micros: u64,
    text: String,
}

/// What was kept of a log.
#[derive(Debug, Default)]
struct Log {
    tail: VecDeque<Line>,
    events: VecDeque<(Event, Line)>,
    counts: BTreeMap<&'static str, u64>,
}

impl Log {
    fn keep(&mut self, text: &str, parse: fn(&str) -> Option<Line>) {
        for line in text.lines().filter_map(parse) {
            if let Some(event) = events::event(&line.text) {
                *self.counts.entry(event.kind).or_default() += 1;
                push(&mut self.events, (event, line.clone()), EVENTS);
            }
            push(&mut self.tail, line, LINES);
        }
    }
}

fn push<T>(queue: &mut VecDeque<T>, item: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(item);
}

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let log = match reading(records(&root.path(KMSG))) {
        Reading::Absent if root.is_system() => reading(ring()),
        other => other,
    };
    let lines = log.as_ref_reading().map(|log| &log.tail);
    let level = |limit: usize| {
        lines.as_ref_reading().map(|lines| lines.iter().filter(|line| line.level <= limit).count() as f64)
    };
    facts.count("errors", level(3));
    facts.count("warnings", level(4));
    facts.count("lines", level(usize::MAX));
    for (at, line) in lines.value().into_iter().copied().flatten().enumerate() {
        let name = LEVELS.get(line.level).copied().unwrap_or("info");
        let text = format!("[{}.{:06}] {name}: {}", line.micros / 1_000_000, line.micros % 1_000_000, line.text);
        facts.text(&format!("line.{at:03}"), Reading::Value(text));
    }
    for kind in events::kinds() {
        let count = log.as_ref_reading().map(|log| log.counts.get(kind).copied().unwrap_or(0) as f64);
        facts.count(&format!("count.{kind}"), count);
    }
    let uptime = root.text("/proc/uptime").and_then(|text| number(text.split(' ').next().unwrap_or_default()));
    for (at, (event, line)) in log.value().into_iter().flat_map(|log| &log.events).enumerate() {
        let key = |fact: &str| format!("event.{at:03}.{fact}");
        facts.text(&key("kind"), Reading::Value(event.kind));
        facts.text(&key("text"), Reading::Value(line.text.as_str()));
        let age = uptime.as_ref_reading().map(|now| (now - line.micros as f64 * 1e-6).max(0.0));
        facts.number(&key("age"), age, Some(Unit::Seconds));
        if let Some(code) = event.code {
            facts.count(&key("code"), Reading::Value(f64::from(code)));
        }
        if let Some(device) = &event.device {
            facts.text(&key("device"), Reading::Value(device.as_str()));
        }
    }
}

/// The last records of /dev/kmsg, which gives one per read and says EAGAIN at the end.
fn records(path: &Path) -> io::Result<Log> {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let mut log = Log::default();
    let mut record = [0; RECORD];
    for _ in 0..RECORDS {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(count) => log.keep(&String::from_utf8_lossy(&record[..count]), parse_record),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // The record was overwritten before it was read; the next read goes on after it.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(log)
}

/// The same by the system call, where there is no device file (containers).
fn ring() -> io::Result<Log> {
    const READ_ALL: libc::c_int = 3;
    let mut buffer = vec![0_u8; RING];
    let length = libc::c_int::try_from(buffer.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel writes at most `length` bytes into the buffer, which is that long.
    #[expect(unsafe_code, reason = "neither std nor rustix has this call")]
    let read = unsafe { libc::klogctl(READ_ALL, buffer.as_mut_ptr().cast(), length) };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    let mut log = Log::default();
    log.keep(&String::from_utf8_lossy(&buffer[..read]), parse_ring);
    Ok(log)
}

/// `6,339,5140900,-;text`: priority (level and facility), sequence, microseconds. Lines that begin with a space
/// are the record's properties.
fn parse_record(line: &str) -> Option<Line> {
    let (head, text) = line.split_once(';')?;
    let mut fields = head.split(',');
    let priority: usize = fields.next()?.parse().ok()?;
    let micros: u64 = fields.nth(1)?.parse().ok()?;
    Some(Line { level: priority & 7, micros, text: clean(text, LINE) })
}

/// `<6>[    5.140900] text`.
fn parse_ring(line: &str) -> Option<Line> {
    let (priority, rest) = line.strip_prefix('<')?.split_once('>')?;
    let priority: usize = priority.parse().ok()?;
    let stamped = rest.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let (seconds, text) = stamped.unwrap_or(("0.0", rest));
    let (whole, part) = seconds.trim().split_once('.')?;
    let micros = whole.parse::<u64>().ok()?.saturating_mul(1_000_000).saturating_add(part.parse().ok()?);
    Some(Line { level: priority & 7, micros, text: clean(text, LINE) })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Tree, number, reading_of, text};
    use super::*;

    #[test]
    fn the_tail_is_cleaned_and_errors_are_counted() {
        let log = "6,1,5140900,-;Linux version 6.1\n SUBSYSTEM=pci\n3,2,7000001,-;mce: \u{1b}[31mbank 4\nnoise\n";
        let facts = Tree::new(&[("/dev/kmsg", log)]).look(look);
        assert_eq!(number(&facts, "lines"), 2.0);
        assert_eq!(number(&facts, "errors"), 1.0);
        assert_eq!(text(&facts, "line.000"), "[5.140900] info: Linux version 6.1");
        assert_eq!(text(&facts, "line.001"), "[7.000001] err: mce: bank 4");
    }

    #[test]
    fn events_are_counted_in_all_of_the_log_and_told_with_their_age() {
        let mut log = "4,1,5000000,-;NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n".to_owned();
        log += &(2..400).map(|n| format!("6,{n},{n}000000,-;line {n}\n")).collect::<String>();
        let facts = Tree::new(&[("/dev/kmsg", &log), ("/proc/uptime", "605.0 1.0")]).look(look);
        assert_eq!((number(&facts, "count.xid"), number(&facts, "count.oom-kill")), (1.0, 0.0));
        assert_eq!(text(&facts, "event.000.kind"), "xid");
        assert_eq!((number(&facts, "event.000.code"), number(&facts, "event.000.age")), (79.0, 600.0));
        assert_eq!(text(&facts, "event.000.device"), "0000:9b:00");
        assert_eq!(reading_of(&Tree::new(&[]).look(look), "count.xid"), Reading::Absent);
    }

    #[test]
    fn only_the_last_lines_stay() {
        let log: String = (0..400).map(|n| format!("6,{n},{n},-;line {n}\n")).collect();
        let facts = Tree::new(&[("/dev/kmsg", &log)]).look(look);
        assert_eq!(number(&facts, "lines"), 100.0);
        assert!(text(&facts, "line.099").ends_with("line 399"));
    }

    #[test]
    fn no_log_is_absent_and_not_clean() {
        assert_eq!(reading_of(&Tree::new(&[]).look(look), "errors"), Reading::Absent);
    }

    #[test]
    fn lines_of_the_system_call_are_read() {
        let line = parse_ring("<12>[    5.140900] hello").unwrap();
        assert_eq!(line, Line { level: 4, micros: 5_140_900, text: "hello".into() });
        assert_eq!(parse_ring("hello"), None);
    }
}
