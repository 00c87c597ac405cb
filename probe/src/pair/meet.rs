//! How do two ends find each other, and nobody else?

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use muster_wire::{PairOrder, Secret};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, sockopt};

use crate::steps::Halt;

/// How often a wait looks at its limit.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// A connection that does not say who it is within this is dropped.
const INTRODUCTION: Duration = Duration::from_millis(500);
/// Secret, visit, and who comes with which of his connections.
const CARD: usize = 32 + 8 + 2 + 2;
/// Bytes that lie unsent in a socket at most: a slow path must not still be busy when the other direction begins.
static UNSENT: libc::c_int = 512 << 10;

/// How long one thing may take.
pub(crate) struct Limit<'a> {
    length: Duration,
    until: Instant,
    stop: &'a AtomicBool,
    what: &'static str,
}

impl<'a> Limit<'a> {
    pub(crate) fn new(length: Duration, stop: &'a AtomicBool, what: &'static str) -> Self {
        Self { length, until: Instant::now() + length, stop, what }
    }

    /// Whether somebody asked to stop.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Fails once the time is over or somebody asked to stop.
    pub(crate) fn check(&self) -> Result<(), Halt> {
        if self.stopped() {
            return Err(Halt::Stopped);
        }
        if Instant::now() >= self.until {
            return Err(Halt::Failed(format!("{} within {} ms", self.what, self.length.as_millis())));
        }
        Ok(())
    }
}

/// The connections of one visit.
#[derive(Debug)]
pub(crate) struct Links {
    pub(crate) control: TcpStream,
    pub(crate) data: Vec<TcpStream>,
}

impl Links {
    fn of(mut streams: impl Iterator<Item = TcpStream>) -> Result<Self, Halt> {
        let control = streams.next().ok_or_else(|| Halt::Failed("no control connection".into()))?;
        Ok(Self { control, data: streams.collect() })
    }
}

fn failed(what: &str) -> impl Fn(io::Error) -> Halt {
    move |e| Halt::Failed(format!("cannot {what}: {e}"))
}

/// Listens on a port that the system chooses.
pub(crate) fn listen(local: IpAddr) -> Result<(TcpListener, u16), Halt> {
    let what = format!("listen on {local}");
    let listener = TcpListener::bind(SocketAddr::from((local, 0))).map_err(failed(&what))?;
    listener.set_nonblocking(true).map_err(failed(&what))?;
    let port = listener.local_addr().map_err(failed(&what))?.port();
    Ok((listener, port))
}

/// What everybody who comes must know.
pub(crate) struct Door<'a> {
    pub(crate) secret: &'a Secret,
    pub(crate) visit: u64,
}

/// Somebody who is expected, and the connections he made so far.
pub(crate) struct Guest {
    pub(crate) who: u16,
    from: IpAddr,
    links: Vec<Option<TcpStream>>,
}

impl Guest {
    pub(crate) fn new(who: u16, from: IpAddr, links: u16) -> Self {
        Self { who, from: from.to_canonical(), links: (0..links).map(|_| None).collect() }
    }

    /// Whether connections are missing.
    pub(crate) fn missing(&self) -> bool {
        self.links.iter().any(Option::is_none)
    }

    pub(crate) fn links(self) -> impl Iterator<Item = TcpStream> {
        self.links.into_iter().flatten()
    }
}

/// Waits for all connections of all guests; whoever else comes is turned away.
pub(crate) fn welcome(
    listener: &TcpListener,
    door: &Door<'_>,
    guests: &mut [Guest],
    limit: &Limit<'_>,
) -> Result<(), Halt> {
    while guests.iter().any(Guest::missing) {
        limit.check()?;
        match listener.accept() {
            Ok((stream, from)) => {
                let from = from.ip().to_canonical();
                if guests.iter().any(|guest| guest.from == from)
                    && let Some((who, place, stream)) = introduced(stream, door)
                    && let Some(guest) = guests.iter_mut().find(|guest| (guest.who, guest.from) == (who, from))
                    && let Some(free @ None) = guest.links.get_mut(usize::from(place))
                {
                    *free = Some(stream);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => wait(listener, PollFlags::IN, TICK)?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed("accept")(e)),
        }
    }
    Ok(())
}

/// Who comes with which connection, if he knows the secret.
fn introduced(stream: TcpStream, door: &Door<'_>) -> Option<(u16, u16, TcpStream)> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(INTRODUCTION)).ok()?;
    let mut card = [0; CARD];
    (&stream).read_exact(&mut card).ok()?;
    let (secret, rest) = card.split_first_chunk::<32>()?;
    let (visit, rest) = rest.split_first_chunk::<8>()?;
    let (who, place) = rest.split_first_chunk::<2>()?;
    let known = door.secret.matches(secret) && u64::from_be_bytes(*visit) == door.visit;
    known.then(|| prepare(&stream).ok()).flatten()?;
    Some((u16::from_be_bytes(*who), u16::from_be_bytes(place.try_into().ok()?), stream))
}

/// Goes to a host as guest `who` with `count` connections.
pub(crate) fn call(
    (local, to): (IpAddr, SocketAddr),
    door: &Door<'_>,
    (who, count): (u16, u16),
    limit: &Limit<'_>,
) -> Result<Vec<TcpStream>, Halt> {
    let one = |place: u16| -> Result<TcpStream, Halt> {
        let mut stream = reach(local, to, limit)?;
        let card = [&door.secret.0[..], &door.visit.to_be_bytes(), &who.to_be_bytes(), &place.to_be_bytes()].concat();
        prepare(&stream).map_err(failed("set options"))?;
        give(&mut stream, &card, limit)?;
        Ok(stream)
    };
    (0..count).map(one).collect()
}

/// All connections of the other end of a pair.
pub(crate) fn accept(listener: &TcpListener, order: &PairOrder, limit: &Limit<'_>) -> Result<Links, Halt> {
    let door = Door { secret: &order.secret, visit: order.visit };
    let mut guests = [Guest::new(0, order.remote, order.load.streams.saturating_add(1))];
    welcome(listener, &door, &mut guests, limit)?;
    Links::of(guests.into_iter().flat_map(Guest::links))
}

/// Goes to the other end of a pair with all connections.
pub(crate) fn connect(order: &PairOrder, port: u16, limit: &Limit<'_>) -> Result<Links, Halt> {
    let door = Door { secret: &order.secret, visit: order.visit };
    let way = (order.local, SocketAddr::from((order.remote, port)));
    Links::of(call(way, &door, (0, order.load.streams.saturating_add(1)), limit)?.into_iter())
}

/// A connection from `local` to `to`.
fn reach(local: IpAddr, to: SocketAddr, limit: &Limit<'_>) -> Result<TcpStream, Halt> {
    let what = format!("connect from {local} to {to}");
    let failed = failed(&what);
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket: OwnedFd =
        rustix::net::socket_with(family, SocketType::STREAM, flags, None).map_err(|e| failed(e.into()))?;
    bind(&socket, &SocketAddr::from((local, 0))).map_err(|e| failed(e.into()))?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => loop {
            limit.check()?;
            if ready(&socket, PollFlags::OUT, TICK)? {
                let answer = sockopt::socket_error(&socket).map_err(|e| failed(e.into()))?;
                answer.map_err(|e| failed(e.into()))?;
                break;
            }
        },
        Err(e) => return Err(failed(e.into())),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false).map_err(failed)?;
    Ok(stream)
}

/// No delay, and no wait longer than a tick.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(TICK))?;
    set_unsent(stream);
    Ok(())
}

/// Old kernels (before 3.12) do not know the option and do without.
fn set_unsent(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let size = size_of_val(&UNSENT) as libc::socklen_t;
    // SAFETY: the descriptor is open and the value is an int, as the option wants it.
    #[expect(unsafe_code, reason = "neither std nor rustix has this option")]
    unsafe {
        let value: *const libc::c_int = &raw const UNSENT;
        libc::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, value.cast(), size);
    }
}

fn wait(fd: &impl std::os::fd::AsFd, flags: PollFlags, limit: Duration) -> Result<(), Halt> {
    ready(fd, flags, limit).map(drop)
}

fn ready(fd: &impl std::os::fd::AsFd, flags: PollFlags, limit: Duration) -> Result<bool, Halt> {
    let mut fds = [PollFd::new(fd, flags)];
    let limit = Timespec { tv_sec: 0, tv_nsec: limit.subsec_nanos().into() };
    match poll(&mut fds, Some(&limit)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(failed("wait")(e.into())),
    }
}

/// Whether an error only means that a tick is over.
pub(crate) fn tick(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Sends all of `bytes`.
pub(crate) fn give(stream: &mut TcpStream, mut bytes: &[u8], limit: &Limit<'_>) -> Result<(), Halt> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(e) if tick(&e) => limit.check()?,
            Err(e) => return Err(failed("send")(e)),
        }
    }
    Ok(())
}

/// Receives exactly `bytes`.
pub(crate) fn take(stream: &mut TcpStream, bytes: &mut [u8], limit: &Limit<'_>) -> Result<(), Halt> {
    let mut have = 0;
    while have < bytes.len() {
        match stream.read(&mut bytes[have..]) {
            Ok(0) => return Err(Halt::Failed("the other end closed the connection".into())),
            Ok(more) => have += more,
            Err(e) if tick(&e) => limit.check()?,
            Err(e) => return Err(failed("receive")(e)),
        }
    }
    Ok(())
}

/// Says one word to the other end.
pub(crate) fn say(control: &mut TcpStream, word: u8, limit: &Limit<'_>) -> Result<(), Halt> {
    give(control, &[word], limit)
}

/// Waits for one word of the other end.
pub(crate) fn word(control: &mut TcpStream, expected: u8, limit: &Limit<'_>) -> Result<(), Halt> {
    let mut heard = [0];
    take(control, &mut heard, limit)?;
    if heard[0] == expected { Ok(()) } else { Err(Halt::Failed("the other end is out of step".into())) }
}
