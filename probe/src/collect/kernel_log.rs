//! The end of the kernel's log, cleaned, and how many of its lines are errors.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use muster_wire::{Reading, clean};

use super::root::reading;
use super::{Facts, Root, Then};

const KMSG: &str = "/dev/kmsg";
const LINES: usize = 100;
const LINE: usize = 300;
/// One record is at most this long; shorter buffers make the kernel refuse it.
const RECORD: usize = 8192;
/// Records read before giving up on a log that grows as fast as it is read.
const RECORDS: usize = 1 << 19;
const LEVELS: [&str; 8] = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"];

#[derive(Debug, PartialEq, Eq)]
struct Line {
    level: usize,
    micros: u64,
    text: String,
}

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let lines = match reading(records(&root.path(KMSG))) {
        Reading::Absent if root.is_system() => reading(ring()),
        other => other,
    };
    let level = |limit: usize| {
        lines.as_ref_reading().map(|lines| lines.iter().filter(|line| line.level <= limit).count() as f64)
    };
    facts.count("errors", level(3));
    facts.count("warnings", level(4));
    facts.count("lines", level(usize::MAX));
    for (at, line) in lines.value().into_iter().flatten().enumerate() {
        let name = LEVELS.get(line.level).copied().unwrap_or("info");
        let text = format!("[{}.{:06}] {name}: {}", line.micros / 1_000_000, line.micros % 1_000_000, line.text);
        facts.text(&format!("line.{at:03}"), Reading::Value(text));
    }
}

/// The last records of /dev/kmsg, which gives one per read and says EAGAIN at the end.
fn records(path: &Path) -> io::Result<VecDeque<Line>> {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let mut tail = VecDeque::new();
    let mut record = [0; RECORD];
    for _ in 0..RECORDS {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(count) => keep(&mut tail, &String::from_utf8_lossy(&record[..count]), parse_record),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // The record was overwritten before it was read; the next read goes on after it.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(tail)
}

/// The same by the system call, where there is no device file (containers).
fn ring() -> io::Result<VecDeque<Line>> {
    const READ_ALL: libc::c_int = 3;
    let mut buffer = vec![0_u8; LINES * LINE];
    let length = libc::c_int::try_from(buffer.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel writes at most `length` bytes into the buffer, which is that long.
    #[expect(unsafe_code, reason = "neither std nor rustix has this call")]
    let read = unsafe { libc::klogctl(READ_ALL, buffer.as_mut_ptr().cast(), length) };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    let mut tail = VecDeque::new();
    keep(&mut tail, &String::from_utf8_lossy(&buffer[..read]), parse_ring);
    Ok(tail)
}

fn keep(tail: &mut VecDeque<Line>, text: &str, parse: fn(&str) -> Option<Line>) {
    for line in text.lines().filter_map(parse) {
        if tail.len() == LINES {
            tail.pop_front();
        }
        tail.push_back(line);
    }
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
