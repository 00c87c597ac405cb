//! What do the other ranks say of themselves, and who does not answer?
//!
//! Every rank answers on the port where it was met. A question is a secret and a word; an answer is one JSON document.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::board::{Board, End, Standing};

/// Longest answer, bytes.
const ANSWER: u64 = 64 << 10;
/// Longest reason that one rank tells another, bytes.
const REASON: u64 = 2 << 10;
/// Ranks asked at the same time.
const AT_ONCE: usize = 64;
/// Somebody who asks must say it within this.
const QUESTION: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(20);

/// Ask how a rank stands, and tell it to end.
const HOW: u8 = b'H';
const END: u8 = b'E';

/// What a rank answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Said(Standing),
    /// Nobody is there any more.
    Gone(String),
    /// It takes connections and says nothing, or nothing comes back at all.
    Silent,
}

/// Answers whoever knows the secret, until the process ends.
pub(super) fn answer(board: &Board, listener: &TcpListener) {
    // Where this fails, every look is a pause later.
    let _ = listener.set_nonblocking(false);
    loop {
        match listener.accept() {
            // Whoever breaks off has only himself to blame.
            Ok((stream, _)) => drop(serve(board, stream)),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

fn serve(board: &Board, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(QUESTION))?;
    stream.set_write_timeout(Some(QUESTION))?;
    let mut head = [0; 33];
    stream.read_exact(&mut head)?;
    let secret = muster_wire::Secret(board.secret);
    if !head.first_chunk::<32>().is_some_and(|said| secret.matches(said)) {
        return Ok(());
    }
    match head[32] {
        HOW => stream.write_all(&serde_json::to_vec(&board.standing())?),
        END => {
            let mut reason = String::new();
            stream.take(REASON).read_to_string(&mut reason)?;
            board.end(End::Told(muster_wire::clean(&reason, REASON as usize)));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Asks one rank.
fn ask(board: &Board, rank: usize, patience: Duration) -> Answer {
    let until = Instant::now() + patience;
    match said(&board.secret, board.peers[rank], until) {
        Ok(standing) if standing.rank == rank && standing.counts.len() <= board.kept.len() + 1 => {
            Answer::Said(standing)
        }
        Ok(_) => Answer::Gone("another process answers on its port".to_owned()),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => Answer::Gone("nothing listens on its port any more".to_owned()),
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                Answer::Gone("it closed the connection".to_owned())
            }
            _ => Answer::Silent,
        },
    }
}

/// Whether a rank says something of itself within `patience`.
pub(super) fn answers(secret: &[u8; 32], peer: SocketAddr, patience: Duration) -> bool {
    said(secret, peer, Instant::now() + patience).is_ok()
}

fn said(secret: &[u8; 32], peer: SocketAddr, until: Instant) -> io::Result<Standing> {
    let left = || until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut stream = TcpStream::connect_timeout(&peer, left())?;
    stream.set_write_timeout(Some(left()))?;
    stream.write_all(&[&secret[..], &[HOW]].concat())?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        stream.set_read_timeout(Some(left()))?;
        match stream.read(&mut piece)? {
            0 => break,
            _ if answer.len() as u64 > ANSWER || Instant::now() >= until => return Err(io::ErrorKind::TimedOut.into()),
            count => answer.extend(&piece[..count]),
        }
    }
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&answer).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Asks `ranks`, many at once; this one's own answer needs no asking.
pub(super) fn all(board: &Board, ranks: &[usize], patience: Duration) -> BTreeMap<usize, Answer> {
    let answers = Mutex::new(BTreeMap::new());
    for some in ranks.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for &rank in some {
                let answers = &answers;
                let one = move || {
                    let own = rank == board.rank;
                    let answer = if own { Answer::Said(board.standing()) } else { ask(board, rank, patience) };
                    if let Ok(mut answers) = answers.lock() {
                        answers.insert(rank, answer);
                    }
                };
                scope.spawn(one);
            }
        });
    }
    answers.into_inner().unwrap_or_default()
}

/// Tells `ranks` that the job is over, and why. Who is gone needs no telling.
pub(super) fn end(board: &Board, ranks: &[usize], why: &str) {
    let tell = |rank: usize| -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&board.peers[rank], QUESTION)?;
        stream.set_write_timeout(Some(QUESTION))?;
        stream.write_all(&[&board.secret[..], &[END], why.as_bytes()].concat())
    };
    for some in ranks.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for &rank in some {
                scope.spawn(move || drop(tell(rank)));
            }
        });
    }
}
