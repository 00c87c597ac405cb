//! What the node's own network stack delivers over loopback, without any wire or peer.
//!
//! Only numeric addresses: a statically linked program must not ask the C library to resolve a name.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use muster_wire::Unit;

use super::context::{Context, Metric, share};
use crate::pin::{Place, Worker, filled, with_team};
use crate::steps::{Halt, Plan};

pub(crate) const NAME: &str = "net-loopback";
const SMOKE: Duration = Duration::from_millis(420);
/// Bytes sent before the receiver confirms that it has them: sent bytes alone would measure socket buffers.
const TRANSFER: usize = 1 << 20;
const PIECE: usize = 128 << 10;
const PATIENCE: Duration = Duration::from_secs(10);
const ROUNDS: usize = 16;

/// A connection to a thread of our own that confirms every `size` bytes with one.
struct Pair {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Pair {
    fn connect(size: usize) -> Result<Self, Halt> {
        let mut piece = filled(size.min(PIECE), 0u8)?;
        let failed = |what: &str| {
            let what = what.to_owned();
            move |e: io::Error| Halt::Failed(format!("cannot {what} on 127.0.0.1: {e}"))
        };
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(any).map_err(failed("listen"))?;
        let at = listener.local_addr().map_err(failed("listen"))?;
        let stream = TcpStream::connect_timeout(&at, PATIENCE).map_err(failed("connect"))?;
        let us = stream.local_addr().map_err(failed("connect"))?;
        let mut peer = loop {
            let (peer, from) = listener.accept().map_err(failed("accept"))?;
            // Anybody on this machine may have connected first.
            if from == us {
                break peer;
            }
        };
        for end in [&stream, &peer] {
            end.set_nodelay(true)
                .and_then(|()| end.set_write_timeout(Some(PATIENCE)))
                .map_err(failed("set options"))?;
        }
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed("set options"))?;
        // Ends when the other side is closed.
        let body = move || while confirm(&mut peer, &mut piece, size).is_ok() {};
        let thread = Builder::new().name("receiver".into()).spawn(body).map_err(failed("start a receiver"))?;
        Ok(Self { stream, thread: Some(thread) })
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Halt> {
        let sent = self.stream.write_all(bytes);
        sent.map_err(|e| Halt::Failed(format!("cannot send over loopback: {e}")))
    }

    fn confirmed(&mut self) -> Result<(), Halt> {
        let heard = self.stream.read_exact(&mut [0]);
        heard.map_err(|e| Halt::Failed(format!("no confirmation over loopback: {e}")))
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

struct Client {
    bulk: Pair,
    echo: Pair,
    piece: Vec<u8>,
}

impl Worker for Client {
    fn chunk(&mut self, job: usize) -> Result<f64, Halt> {
        if job == 0 {
            for _ in 0..TRANSFER / PIECE {
                self.bulk.send(&self.piece)?;
            }
            self.bulk.confirmed()?;
            return Ok(TRANSFER as f64);
        }
        for _ in 0..ROUNDS {
            self.echo.send(&[0])?;
            self.echo.confirmed()?;
        }
        Ok(ROUNDS as f64)
    }
}

pub(super) fn run(context: &mut Context<'_>) -> Result<(), Halt> {
    let plan = Plan::new(context.profile, SMOKE, 2);
    let make = |_: &Place| {
        Ok(Client { bulk: Pair::connect(TRANSFER)?, echo: Pair::connect(1)?, piece: filled(PIECE, 0x5au8)? })
    };
    with_team(&[Place::this_node()], &make, |team| {
        let throughput = Metric::rate(NAME, "throughput", Unit::BytesPerSec);
        context.measure(throughput, &plan, share(0, 2), &mut || team.step(0, plan.step))?;
        let rtt = Metric::latency(NAME, "rtt");
        context.measure(rtt, &plan, share(1, 2), &mut || team.step(1, plan.step).map(|rate| 1e9 / rate))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmation_comes_after_the_last_byte_and_not_before() {
        let mut pair = Pair::connect(1000).unwrap();
        pair.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        pair.send(&[0; 999]).unwrap();
        assert!(pair.confirmed().is_err());
        pair.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        pair.send(&[0; 1]).unwrap();
        pair.confirmed().unwrap();
    }
}
