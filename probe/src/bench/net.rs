//! What the node's own network stack delivers over loopback, without any wire or peer.
//!
//! In smoke one thread holds both ends: whatever it sends, the kernel delivers before the call returns, so nothing
//! depends on where the scheduler puts a second thread (which changes the round trip from 4 to 80 us). Longer
//! profiles use two threads on two cores. Only numeric addresses: a statically linked program must not ask the C
//! library to resolve a name.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use muster_wire::Profile;

use super::context::{Context, Metric, share};
use crate::pin::{Place, Worker, filled, with_team};
use crate::steps::Halt;

pub(crate) const NAME: &str = "net-loopback";
const SMOKE: Duration = Duration::from_millis(320);
/// Bytes sent before the receiver confirms that it has them: sent bytes alone would measure socket buffers.
const TRANSFER: usize = 512 << 10;
const PIECE: usize = 128 << 10;
/// Unconfirmed transfers, so that the sender need not wait for the receiver after each. What is under way when a step
/// ends is not counted.
const AHEAD: usize = 2;
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
const ROUNDS: usize = 16;
/// What one thread sends itself at once: it must fit the smallest default socket buffers.
pub(super) const GULP: usize = 32 << 10;

/// Both ends of a new connection over loopback.
pub(super) fn connect() -> Result<(TcpStream, TcpStream), Halt> {
    let failed = |what: &'static str| move |e: io::Error| Halt::Failed(format!("cannot {what} on 127.0.0.1: {e}"));
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = TcpListener::bind(any).map_err(failed("listen"))?;
    let at = listener.local_addr().map_err(failed("listen"))?;
    let ours = TcpStream::connect_timeout(&at, PATIENCE).map_err(failed("connect"))?;
    let us = ours.local_addr().map_err(failed("connect"))?;
    let theirs = loop {
        let (peer, from) = listener.accept().map_err(failed("accept"))?;
        // Anybody on this machine may have connected first.
        if from == us {
            break peer;
        }
    };
    for end in [&ours, &theirs] {
        end.set_nodelay(true).and_then(|()| end.set_write_timeout(Some(PATIENCE))).map_err(failed("set options"))?;
    }
    ours.set_read_timeout(Some(PATIENCE)).map_err(failed("set options"))?;
    Ok((ours, theirs))
}

/// What an error of our own connection over loopback means. That nothing came in time is no fault of the node's network: the
/// other end is a thread of ours, which may have had no core.
pub(super) fn lost(what: &str, error: &io::Error) -> Halt {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Halt::NotRun(format!("{what}: nothing came in {} s: the node is too busy", PATIENCE.as_secs()))
        }
        _ => Halt::Failed(format!("{what}: {error}")),
    }
}

/// A connection to a thread of our own that confirms every `size` bytes with one.
struct Pair {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Pair {
    fn connect(size: usize, place: &Place) -> Result<Self, Halt> {
        let mut piece = filled(size.min(PIECE), 0u8)?;
        let (stream, mut peer) = connect()?;
        let place = place.clone();
        // Ends when the other side is closed.
        let body = move || {
            let bound = place.bind();
            while bound.is_ok() && confirm(&mut peer, &mut piece, size).is_ok() {}
        };
        let thread = Builder::new().name("receiver".into()).spawn(body);
        let thread = thread.map_err(|e| Halt::Failed(format!("cannot start a receiving thread: {e}")))?;
        Ok(Self { stream, thread: Some(thread) })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Halt> {
        let sent = self.stream.write_all(bytes);
        sent.map_err(|e| lost("cannot send over loopback", &e))
    }

    fn confirmed(&mut self) -> Result<(), Halt> {
        let heard = self.stream.read_exact(&mut [0]);
        heard.map_err(|e| lost("no confirmation over loopback", &e))
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let closed = self.stream.shutdown(std::net::Shutdown::Both);
        if let (Ok(()), Some(thread)) = (closed, self.thread.take()) {
            drop(thread.join());
        }
    }
}

fn confirm(peer: &mut TcpStream, piece: &mut [u8], size: usize) -> io::Result<()> {
    let mut left = size;
    while left > 0 {
        let want = left.min(piece.len());
        match peer.read(&mut piece[..want])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => left -= n,
        }
    }
    peer.write_all(&[1])
}

/// The sending thread of two.
struct Client {
    bulk: Pair,
    echo: Pair,
    piece: Vec<u8>,
    /// Transfers sent and not yet confirmed.
    ahead: usize,
}

impl Client {
    fn transfer(&mut self) -> Result<(), Halt> {
        for _ in 0..TRANSFER / PIECE {
            self.bulk.send(&self.piece)?;
        }
        self.ahead += 1;
        Ok(())
    }

    fn confirmed(&mut self) -> Result<(), Halt> {
        self.ahead -= 1;
        self.bulk.confirmed()
    }
}

impl Worker for Client {
    fn end(&mut self, _job: usize) -> Result<(), Halt> {
        while self.ahead > 0 {
            self.confirmed()?;
        }
        Ok(())
    }

    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        if job == 0 {
            self.transfer()?;
            if self.ahead <= AHEAD {
                return Ok(0.0);
            }
            self.confirmed()?;
            return Ok(TRANSFER as f64);
        }
        for _ in 0..ROUNDS {
            self.echo.send(&[0])?;
            self.echo.confirmed()?;
        }
        Ok(ROUNDS as f64)
    }
}

/// One thread with both ends.
pub(super) struct Alone {
    ours: TcpStream,
    theirs: TcpStream,
    piece: Vec<u8>,
}

impl Alone {
    pub(super) fn new() -> Result<Self, Halt> {
        let (ours, theirs) = connect()?;
        theirs
            .set_read_timeout(Some(PATIENCE))
            .map_err(|e| Halt::Failed(format!("cannot set options on 127.0.0.1: {e}")))?;
        Ok(Self { ours, theirs, piece: filled(GULP, 0x5au8)? })
    }

    fn carry(&mut self, job: usize) -> io::Result<f64> {
        if job == 0 {
            self.ours.write_all(&self.piece)?;
            self.theirs.read_exact(&mut self.piece)?;
            return Ok(self.piece.len() as f64);
        }
        for _ in 0..ROUNDS {
            self.ours.write_all(&[0])?;
            self.theirs.read_exact(&mut [0])?;
            self.theirs.write_all(&[1])?;
            self.ours.read_exact(&mut [0])?;
        }
        Ok(ROUNDS as f64)
    }
}

impl Worker for Alone {
    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        self.carry(job).map_err(|e| lost("cannot carry bytes over loopback", &e))
    }
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    if context.profile == Profile::Smoke {
        return teamed(context, Place::this_node(), &|_| Alone::new(), ["throughput-1t", "rtt-1t"]);
    }
    let (here, there) = Place::two_cores().unwrap_or((Place::this_node(), Place::this_node()));
    let make = |_: &Place| {
        let (bulk, echo) = (Pair::connect(TRANSFER, &there)?, Pair::connect(1, &there)?);
        Ok(Client { bulk, echo, piece: filled(PIECE, 0x5au8)?, ahead: 0 })
    };
    teamed(context, here, &make, ["throughput", "rtt"])
}

fn teamed<W: Worker>(
    context: &mut Context<'_>,
    place: Place,
    make: &(dyn Fn(&Place) -> Result<W, Halt> + Sync),
    [throughput, rtt]: [&'static str; 2],
) -> Result<(), Halt> {
    let plan = context.plan(SMOKE, 2);
    with_team(&[place], make, |team| {
        let throughput = Metric::of(NAME, throughput);
        context.measure(throughput, &plan, share(0, 2), &mut || team.step(0, plan.step))?;
        let rtt = Metric::of(NAME, rtt);
        context.measure(rtt, &plan, share(1, 2), &mut || team.step(1, plan.step).map(|rate| 1e9 / rate))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_comes_after_the_last_byte_and_not_before() {
        let mut pair = Pair::connect(1000, &Place::this_node()).unwrap();
        pair.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        pair.send(&[0; 999]).unwrap();
        // Nothing in time is no evidence against the node; a connection that broke is.
        assert!(matches!(pair.confirmed(), Err(Halt::NotRun(why)) if why.ends_with("the node is too busy")));
        pair.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        pair.send(&[0; 1]).unwrap();
        pair.confirmed().unwrap();
        pair.stream.shutdown(std::net::Shutdown::Both).unwrap();
        assert!(matches!(pair.confirmed(), Err(Halt::Failed(_))));
    }

    #[test]
    fn one_thread_with_both_ends_gets_back_what_it_sent() {
        let mut alone = Alone::new().unwrap();
        for byte in [1, 2, 3] {
            alone.piece.fill(byte);
            assert_eq!(alone.carry(0).unwrap(), GULP as f64);
            assert!(alone.piece.iter().all(|b| *b == byte));
        }
        assert_eq!(alone.carry(1).unwrap(), ROUNDS as f64);
    }
}
