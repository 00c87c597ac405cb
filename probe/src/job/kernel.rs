//! The kernel's log of the job's window, with times of the wall clock.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;

use muster_wire::{Reading, clean};

use crate::clock;
use crate::collect::Root;

/// One record is at most this long; shorter buffers make the kernel refuse it.
const RECORD: usize = 8_192;
/// Records read before giving up on a log that grows as fast as it is read.
const RECORDS: usize = 1 << 19;
/// Bytes of a line.
const LINE: usize = 1_000;

/// Lines of the last `since_s` seconds, the newest `most` bytes of them, with how many.
pub(super) fn log(root: &Root, since_s: u32, most: usize) -> (String, Reading<u64>) {
    let now_us = clock::monotonic_ns() / 1_000;
    let from_us = now_us.saturating_sub(u64::from(since_s) * 1_000_000);
    let booted_us = (clock::wall_ns() / 1_000).saturating_sub(now_us);
    let path = root.path("/dev/kmsg");
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let mut file = match crate::collect::reading(opened) {
        Reading::Value(file) => file,
        Reading::Denied => {
            return ("dmesg: read kernel buffer failed: Permission denied\n".to_owned(), Reading::Denied);
        }
        Reading::Absent => return (String::new(), Reading::Absent),
        Reading::Failed(why) => return (String::new(), Reading::Failed(why)),
    };
    let (mut lines, mut bytes) = (VecDeque::new(), 0);
    let mut record = [0; RECORD];
    for _ in 0..RECORDS {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(count) => {
                let text = String::from_utf8_lossy(&record[..count]);
                // A record is one line; those that begin with a space are its properties.
                for line in text.lines().filter_map(|line| told(line, from_us, booted_us)) {
                    bytes += line.len();
                    lines.push_back(line);
                    while bytes > most {
                        bytes -= lines.pop_front().map_or(bytes, |line: String| line.len());
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // The record was overwritten before it was read; the next read goes on after it.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return ("dmesg: read kernel buffer failed: Operation not permitted\n".to_owned(), Reading::Denied);
            }
            Err(error) => return (String::new(), Reading::Failed(error.to_string())),
        }
    }
    let count = lines.len() as u64;
    (lines.into_iter().collect(), Reading::Value(count))
}

/// `6,339,5140900,-;text` as `2026-01-06T20:12:28.123Z text`.
fn told(record: &str, from_us: u64, booted_us: u64) -> Option<String> {
    let (head, text) = record.split_once(';')?;
    let micros: u64 = head.split(',').nth(2)?.parse().ok()?;
    if micros < from_us {
        return None;
    }
    let at = booted_us.saturating_add(micros);
    let date = clock::written(at / 1_000_000).replace(' ', "T");
    Some(format!("{date}.{:03}Z {}\n", at / 1_000 % 1_000, clean(text, LINE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_get_the_time_of_the_wall_clock_and_older_ones_are_left_out() {
        let line = told("6,339,5140900,-;mlx5_core: Link down\u{1b}[2J", 5_000_000, 951_782_400_000_000);
        assert_eq!(line.as_deref(), Some("2000-02-29T00:00:05.140Z mlx5_core: Link down\n"));
        assert_eq!(told("6,339,4999999,-;old", 5_000_000, 0), None);
        assert_eq!(told(" SUBSYSTEM=pci", 0, 0), None);
    }

    #[test]
    fn a_node_without_the_log_says_so() {
        let tree = tempfile::tempdir().unwrap();
        assert_eq!(log(&Root::at(tree.path()), 60, 100), (String::new(), Reading::Absent));
        std::fs::create_dir(tree.path().join("dev")).unwrap();
        std::fs::write(tree.path().join("dev/kmsg"), format!("6,1,{},-;here\n", clock::monotonic_ns() / 1_000))
            .unwrap();
        let (text, lines) = log(&Root::at(tree.path()), 60, 100);
        assert!(text.ends_with("Z here\n") && lines == Reading::Value(1), "{text}");
    }
}
