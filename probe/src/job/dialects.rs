//! A server that speaks as NCCL's RAS does from 2.24 to 2.30, or badly: what a look at a job makes of it, over a socket.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use muster_wire::{Frame, JobOrder, Outcome, Processes};

use super::run;
use crate::collect::Root;
use crate::stop::Stop;

/// How a server answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Speaks {
    /// Text only: it leaves after a command that it does not know.
    Text(&'static str),
    /// Text only: it says that it does not know the command.
    TextPolitely(&'static str),
    /// JSON, in one piece.
    Json(&'static str),
    /// JSON, in many small pieces.
    JsonSlowly(&'static str),
    /// An answer that never ends.
    Endless,
    /// A line before the answer that never ends.
    EndlessLine,
    /// Nothing at all, for ever.
    Nothing,
    /// Half of an answer, and then nothing for ever.
    HalfAndNothing(&'static str),
    /// Half of an answer, and then it leaves.
    HalfAndLeaves(&'static str),
    /// It leaves at once.
    Leaves,
}

const TEXT_2_24: &str = include_str!("../../../console/import/tests/ras/2.24.txt");
const TEXT_2_27: &str = include_str!("../../../console/import/tests/ras/2.27.txt");
const JSON_2_28_7: &str = include_str!("../../../console/import/tests/ras/2.28.7.json");
const JSON_2_28_9: &str = include_str!("../../../console/import/tests/ras/2.28.9.json");
const JSON_2_30: &str = include_str!("../../../console/import/tests/ras/2.30.json");

fn serve(speaks: Speaks) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                // The client may be gone: then there is nobody to speak to.
                let _ = talk(speaks, stream);
            });
        }
    });
    address
}

fn talk(speaks: Speaks, mut stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let silent = || thread::sleep(Duration::from_secs(60));
    match speaks {
        Speaks::Nothing => {
            silent();
            return Ok(());
        }
        Speaks::Leaves => return Ok(()),
        Speaks::EndlessLine => loop {
            stream.write_all(&[b'x'; 4096])?;
        },
        _ => {}
    }
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let knows_json = !matches!(speaks, Speaks::Text(_) | Speaks::TextPolitely(_));
        match line.trim() {
            "CLIENT PROTOCOL 2" => stream.write_all(b"SERVER PROTOCOL 2\n")?,
            "SET FORMAT json" if knows_json => stream.write_all(b"OK\n")?,
            "SET FORMAT json" if matches!(speaks, Speaks::Text(_)) => return Ok(()),
            "SET FORMAT json" => stream.write_all(b"ERROR: Unknown command\n")?,
            "VERBOSE STATUS" => break,
            _ => stream.write_all(b"OK\n")?,
        }
    }
    match speaks {
        Speaks::Text(text) | Speaks::TextPolitely(text) | Speaks::Json(text) => stream.write_all(text.as_bytes()),
        Speaks::JsonSlowly(text) => text.as_bytes().chunks(700).try_for_each(|piece| {
            thread::sleep(Duration::from_millis(1));
            stream.write_all(piece)
        }),
        Speaks::Endless => loop {
            stream.write_all(&[b'{'; 16 << 10])?;
        },
        Speaks::HalfAndNothing(text) => {
            stream.write_all(&text.as_bytes()[..text.len() / 2])?;
            silent();
            Ok(())
        }
        Speaks::HalfAndLeaves(text) => stream.write_all(&text.as_bytes()[..text.len() / 2]),
        Speaks::EndlessLine | Speaks::Nothing | Speaks::Leaves => Ok(()),
    }
}

/// A look at a job whose one rank has its RAS at `address`: the files that came of it, and what was told.
fn look(address: SocketAddr) -> (Vec<(String, Vec<u8>)>, Processes, Outcome) {
    let tree = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = tree.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("proc/uptime", "9000.0 1.0");
    write("proc/201/stat", "201 (python) S 1 1 201 0 -1 0 1 0 0 0 5 0 0 0 20 0 1 0 77 9 5");
    write("proc/201/cmdline", "python\0train.py\0");
    write("proc/201/environ", &format!("RANK=3\0WORLD_SIZE=4\0NCCL_RAS_ADDR={address}\0"));
    let order = JobOrder {
        ras: true,
        pause_ms: 100,
        since_s: 60,
        file_bytes: 1 << 20,
        all_bytes: 16 << 20,
        ..JobOrder::default()
    };
    let (mut files, mut outcome) = (Vec::<(String, Vec<u8>)>::new(), None);
    let mut say = |frame| match frame {
        Frame::Chunk(chunk) => match files.last_mut().filter(|(name, _)| *name == chunk.name) {
            Some((_, bytes)) => bytes.extend(chunk.bytes),
            None => files.push((chunk.name, chunk.bytes)),
        },
        Frame::Collected(collected) => outcome = Some(collected.outcome),
        _ => {}
    };
    run(&order, &Root::at(tree.path()), &Stop::default(), &mut say);
    let (_, document) = files.iter().find(|(name, _)| name == "processes.json").unwrap();
    let told = serde_json::from_slice(document).unwrap();
    (files, told, outcome.unwrap())
}

#[test]
fn every_dialect_is_asked_twice_and_sent_as_it_came() {
    for (speaks, text) in [
        (Speaks::Text(TEXT_2_24), TEXT_2_24),
        (Speaks::TextPolitely(TEXT_2_27), TEXT_2_27),
        (Speaks::Json(JSON_2_28_7), JSON_2_28_7),
        (Speaks::Json(JSON_2_28_9), JSON_2_28_9),
        (Speaks::JsonSlowly(JSON_2_30), JSON_2_30),
    ] {
        let (files, told, outcome) = look(serve(speaks));
        for poll in ["ras/1", "ras/2"] {
            let answer = files.iter().find(|(name, _)| name == poll).map(|(_, bytes)| bytes.as_slice());
            assert_eq!(answer, Some(text.as_bytes()), "{speaks:?} {:?}", told.ras);
        }
        assert_eq!((told.processes.len(), outcome), (1, Outcome::Done));
    }
}

#[test]
fn a_server_that_never_ends_hangs_or_leaves_is_said_and_the_rest_is_told() {
    for (speaks, why) in [
        (Speaks::Endless, "more than 8 MiB"),
        (Speaks::EndlessLine, "says more than a line"),
        (Speaks::Nothing, "does not answer as RAS does"),
        (Speaks::HalfAndNothing(JSON_2_28_7), "no end within"),
        (Speaks::Leaves, "does not answer as RAS does"),
    ] {
        let (files, told, outcome) = look(serve(speaks));
        assert!(!files.iter().any(|(name, _)| name.starts_with("ras/")), "{speaks:?}");
        assert!(told.ras.len() == 1 && told.ras[0].contains(why), "{speaks:?}: {:?}", told.ras);
        let process = &told.processes[0];
        assert_eq!((process.rank, process.states.starts_with("SSS"), outcome), (Some(3), true, Outcome::Done));
    }
    // What came before it left is sent: whoever reads it finds that it is torn.
    let (files, ..) = look(serve(Speaks::HalfAndLeaves(JSON_2_28_7)));
    assert_eq!(files.iter().find(|(name, _)| name == "ras/1").unwrap().1.len(), JSON_2_28_7.len() / 2);
}
