//! What does this job say to a client of NCCL's RAS? The truth, in that protocol's words.
//!
//! NCCL 2.24 and later answer text commands on a socket of the node (`docs/userguide/source/troubleshooting/ras.rst` there). A rank that is
//! asked asks all others; who does not answer is missing, and after a while considered dead.

mod json;
mod missed;
mod report;
mod text;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::ask;
use super::board::Board;
use super::options::Ras;
use missed::Missed;
use report::Report;

/// The version of the protocol that is spoken.
const PROTOCOL: u32 = 2;
/// How often a rank that did not get the port tries again, and looks whether its neighbour is there.
const AGAIN: Duration = Duration::from_secs(1);
/// Clients at the same time, the longest line of one, and its longest pause.
const CLIENTS: u32 = 4;
const LINE: u64 = 256;
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers on the port of the node if it is free, and as soon as it is.
pub(super) fn serve(board: &Arc<Board>, options: Ras) {
    if options.port == 0 {
        return;
    }
    let board = Arc::clone(board);
    thread::spawn(move || {
        let missed = Arc::new(Missed::default());
        watch_next(&board, &missed, options.patience);
        loop {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)) {
                Ok(listener) => accept(&board, &listener, options, &missed),
                Err(_) => thread::sleep(AGAIN),
            }
        }
    });
}

/// Misses the next rank of the ring from when it stops answering, not from when somebody first asks.
fn watch_next(board: &Arc<Board>, missed: &Arc<Missed>, patience: Duration) {
    let (board, missed) = (Arc::clone(board), Arc::clone(missed));
    thread::spawn(move || {
        let next = (board.rank + 1) % board.peers.len();
        loop {
            for (rank, answer) in ask::all(&board, &[next], patience) {
                missed.note(rank, &answer);
            }
            thread::sleep(AGAIN);
        }
    });
}

fn accept(board: &Arc<Board>, listener: &TcpListener, options: Ras, missed: &Arc<Missed>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        if !board.enter(CLIENTS) {
            continue;
        }
        let (board, missed) = (Arc::clone(board), Arc::clone(missed));
        thread::spawn(move || {
            // A client that goes away is answered enough.
            drop(talk(&board, &stream, options, &missed));
            board.leave();
        });
    }
}

/// What a client may have asked for by the time it wants a report.
struct Wishes {
    json: bool,
    patience: Duration,
}

fn talk(board: &Board, stream: &TcpStream, options: Ras, missed: &Missed) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    let mut wishes = Wishes { json: false, patience: options.patience };
    loop {
        let mut line = String::new();
        if reader.by_ref().take(LINE).read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Ok(());
        }
        let words: Vec<String> = line.split_whitespace().map(str::to_ascii_uppercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut out = stream;
        let verbose = match words[..] {
            ["STATUS"] => false,
            ["VERBOSE", "STATUS"] => true,
            _ => {
                writeln!(out, "{}", command(&words, &mut wishes))?;
                continue;
            }
        };
        let report = Report::gather(board, wishes.patience, options.dead, missed);
        let text = if wishes.json { json::write(&report) } else { text::write(&report, verbose) };
        return out.write_all(text.as_bytes());
    }
}

fn command(words: &[&str], wishes: &mut Wishes) -> String {
    match words {
        ["CLIENT", "PROTOCOL", number] if number.parse::<u32>().is_ok() => format!("SERVER PROTOCOL {PROTOCOL}"),
        ["TIMEOUT", seconds] => match seconds.parse::<u32>() {
            // 0 asks to wait as long as it takes.
            Ok(0) => {
                wishes.patience = Duration::from_secs(60);
                "OK".to_owned()
            }
            Ok(seconds) => {
                wishes.patience = Duration::from_secs(seconds.min(60).into());
                "OK".to_owned()
            }
            Err(_) => "ERROR: Invalid timeout value".to_owned(),
        },
        ["SET", "FORMAT", format @ ("TEXT" | "JSON")] => {
            wishes.json = *format == "JSON";
            "OK".to_owned()
        }
        ["SET", "FORMAT", _] => "ERROR: Invalid format".to_owned(),
        ["MONITOR", ..] => "ERROR: MONITOR is not supported".to_owned(),
        _ => "ERROR: Unknown command".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answered(line: &str) -> (String, bool, u64) {
        let words: Vec<String> = line.split_whitespace().map(str::to_ascii_uppercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut wishes = Wishes { json: false, patience: Duration::from_secs(5) };
        let said = command(&words, &mut wishes);
        (said, wishes.json, wishes.patience.as_secs())
    }

    #[test]
    fn commands_are_those_of_the_protocol_in_any_case() {
        assert_eq!(answered("client protocol 2").0, "SERVER PROTOCOL 2");
        assert_eq!(answered("Set Format Json"), ("OK".into(), true, 5));
        assert_eq!(answered("TIMEOUT 9"), ("OK".into(), false, 9));
        for wrong in ["TIMEOUT x", "SET FORMAT xml", "MONITOR all", "CLIENT PROTOCOL", "HELLO", ""] {
            assert!(answered(wrong).0.starts_with("ERROR: "), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_line_gets_one_line_and_no_patience_is_endless(line in ".{0,80}") {
            let (said, _, patience) = answered(&line);
            prop_assert!(!said.contains('\n') && patience <= 60);
        }
    }
}
