//! How is one link of a job made slow for real, where all nodes share a loopback? Its bytes go through here.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes passed on at once.
const PIECE: usize = 16 << 10;

/// Passes every connection on to a port; ends with the connections and this process.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    /// Bytes a second of each connection and direction; 0 for as many as come.
    rate: Arc<AtomicU64>,
}

impl Relay {
    /// In front of `target`.
    pub(super) fn before(target: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, rate) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
        let own = Arc::clone(&rate);
        spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Ok(onward) = TcpStream::connect(target) {
                    both(stream, onward, &own);
                }
            }
        })?;
        Ok(Self { address, rate })
    }

    pub(super) fn slow_to(&self, bytes_per_s: u64) {
        self.rate.store(bytes_per_s, Ordering::Relaxed);
    }
}

fn spawn(body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name("demo-relay".to_owned()).spawn(body).map(drop)
}

/// Whoever breaks off ends both ways.
fn both(one: TcpStream, other: TcpStream, rate: &Arc<AtomicU64>) {
    let (Ok(one_too), Ok(other_too)) = (one.try_clone(), other.try_clone()) else { return };
    for (from, to) in [(one, other), (other_too, one_too)] {
        let _ = (from.set_nodelay(true), to.set_nodelay(true));
        let rate = Arc::clone(rate);
        if let Err(e) = spawn(move || pass(from, to, &rate)) {
            log::warn!("demo fleet: relay: {e}");
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, rate: &AtomicU64) {
    let mut piece = vec![0; PIECE];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let rate = rate.load(Ordering::Relaxed);
        if rate > 0 {
            std::thread::sleep(Duration::from_secs_f64(count as f64 / rate as f64));
        }
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_passes_everything_on_both_ways_slow_or_not() {
        let target = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let relay = Relay::before(target.local_addr().unwrap()).unwrap();
        for rate in [0, 1 << 20] {
            relay.slow_to(rate);
            let mut near = TcpStream::connect(relay.address).unwrap();
            let (mut far, _) = target.accept().unwrap();
            let sent: Vec<u8> = (0..100_000_u32).map(|at| at as u8).collect();
            near.write_all(&sent).unwrap();
            near.shutdown(std::net::Shutdown::Write).unwrap();
            let mut seen = Vec::new();
            far.read_to_end(&mut seen).unwrap();
            assert_eq!(seen, sent);
            far.write_all(b"back").unwrap();
            drop(far);
            let mut back = String::new();
            near.read_to_string(&mut back).unwrap();
            assert_eq!(back, "back");
        }
    }
}
