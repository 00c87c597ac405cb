//! How long do packets take to those that this node sends to? The kernel measures it on every TCP connection, and tells it over netlink
//! (`sock_diag`(7)), to everybody.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::OwnedFd;

use muster_wire::Trip;
use muster_wire::limits::PEERS;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

/// Bytes that are read at once; the kernel sends no larger pieces.
const PIECE: usize = 32 << 10;
/// Pieces of an answer that are read: some ten thousand connections.
const PIECES: usize = 128;
/// A connection on which nothing was sent for so long, milliseconds, says nothing of the present.
const SILENT: u32 = 2_000;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const TCP: u8 = 6;
const FAMILIES: [u8; 2] = [2, 10];
const ESTABLISHED: u32 = 1 << 1;
/// `INET_DIAG_INFO`, the attribute that holds `struct tcp_info`.
const INFO: u16 = 2;
/// Bytes of `struct nlmsghdr`, and of `struct inet_diag_msg` behind it.
const HEADER: usize = 16;
const MESSAGE: usize = 72;
/// Where `struct tcp_info` holds the milliseconds since data was sent, and the smoothed round trip in microseconds.
const LAST_SENT: usize = 44;
const ROUND_TRIP: usize = 68;

/// An open socket to the kernel.
pub(super) struct Source {
    socket: OwnedFd,
    piece: Vec<u8>,
}

/// An open connection.
#[derive(Debug)]
struct Connection {
    own: IpAddr,
    peer: IpAddr,
    /// Milliseconds since something was sent on it.
    silent_ms: u32,
    /// Smoothed round trip, microseconds.
    micros: u32,
}

/// What one piece of an answer says.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    More,
    Over,
}

impl Source {
    /// Nothing where the kernel has no `sock_diag`.
    pub(super) fn open() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG)).ok()?;
        Some(Self { socket, piece: vec![0; PIECE] })
    }

    /// The slowest busy connection to each address, of the lowest addresses where they are many.
    pub(super) fn trips(&mut self) -> Vec<Trip> {
        let mut slowest = BTreeMap::new();
        for family in FAMILIES {
            if send(&self.socket, &request(family), SendFlags::empty()).is_err() {
                continue;
            }
            for _ in 0..PIECES {
                // The kernel has the next piece ready when the last one was read; nothing is there where it refuses.
                let Ok((count, _)) = recv(&self.socket, self.piece.as_mut_slice(), RecvFlags::empty()) else { break };
                if read(&self.piece[..count.min(PIECE)], &mut slowest) == Next::Over {
                    break;
                }
            }
        }
        slowest.into_iter().take(PEERS).map(|((own, peer), micros)| Trip { own, peer, micros }).collect()
    }
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`: all open connections of a family, with their `tcp_info`.
fn request(family: u8) -> [u8; HEADER + 56] {
    let mut bytes = [0; HEADER + 56];
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    bytes[HEADER] = family;
    bytes[HEADER + 1] = TCP;
    bytes[HEADER + 2] = 1 << (INFO - 1);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
    bytes
}

/// Every message of a piece; `slowest` keeps the longest round trip between two addresses.
fn read(mut piece: &[u8], slowest: &mut BTreeMap<(IpAddr, IpAddr), u32>) -> Next {
    while let (Some(length), Some(kind)) = (u32_at(piece, 0), u16_at(piece, 4)) {
        let Some(message) = piece.get(..length as usize).filter(|message| message.len() >= HEADER) else { break };
        match kind {
            DONE | ERROR => return Next::Over,
            SOCK_DIAG_BY_FAMILY => {
                if let Some(of) = connection(&message[HEADER..]).filter(Connection::tells) {
                    let kept = slowest.entry((of.own, of.peer)).or_insert(of.micros);
                    *kept = of.micros.max(*kept);
                }
            }
            _ => {}
        }
        piece = piece.get(aligned(message.len())..).unwrap_or_default();
    }
    Next::More
}

impl Connection {
    /// Whether something was sent on it lately, to another node.
    fn tells(&self) -> bool {
        self.silent_ms <= SILENT && self.micros > 0 && self.own != self.peer && !self.peer.is_loopback()
    }
}

/// What `struct inet_diag_msg` and the `struct tcp_info` behind it say.
fn connection(message: &[u8]) -> Option<Connection> {
    let family = *message.first()?;
    let (own, peer) = (address(family, message.get(8..24)?)?, address(family, message.get(24..40)?)?);
    let mut attributes = message.get(MESSAGE..)?;
    loop {
        let (length, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        let attribute = attributes.get(4..length)?;
        if kind == INFO {
            let (silent_ms, micros) = (u32_at(attribute, LAST_SENT)?, u32_at(attribute, ROUND_TRIP)?);
            return Some(Connection { own, peer, silent_ms, micros });
        }
        attributes = attributes.get(aligned(length)..)?;
    }
}

fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    let long: [u8; 16] = bytes.try_into().ok()?;
    match family {
        2 => Some(IpAddr::from([long[0], long[1], long[2], long[3]])),
        10 => Some(IpAddr::V6(Ipv6Addr::from(long)).to_canonical()),
        _ => None,
    }
}

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use proptest::prelude::*;

    use super::*;

    /// A message about one connection, as the kernel builds it.
    fn message(own: [u8; 4], peer: [u8; 4], last: u32, micros: u32) -> Vec<u8> {
        let mut info = vec![0; 104];
        info[LAST_SENT..LAST_SENT + 4].copy_from_slice(&last.to_ne_bytes());
        info[ROUND_TRIP..ROUND_TRIP + 4].copy_from_slice(&micros.to_ne_bytes());
        let mut body = vec![0; MESSAGE];
        body[0] = 2;
        body[8..12].copy_from_slice(&own);
        body[24..28].copy_from_slice(&peer);
        // An attribute that is not asked for, of a length that has to be rounded up.
        body.extend([5, 0, 8, 0, 7, 0, 0, 0]);
        body.extend((info.len() as u16 + 4).to_ne_bytes());
        body.extend(INFO.to_ne_bytes());
        body.extend(info);
        let mut bytes = ((body.len() + HEADER) as u32).to_ne_bytes().to_vec();
        bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn the_slowest_connection_between_two_addresses_stands_for_both_and_silent_ones_for_nothing() {
        let (own, near, far) = ([10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3]);
        let mut piece = message(own, near, 5, 300);
        piece.extend(message(own, near, 5, 900));
        piece.extend(message(own, far, SILENT + 1, 5_000));
        piece.extend(message(own, own, 5, 5_000));
        let mut slowest = BTreeMap::new();
        assert_eq!(read(&piece, &mut slowest), Next::More);
        assert_eq!(slowest, BTreeMap::from([((IpAddr::from(own), IpAddr::from(near)), 900)]));
        let mut done = 16_u32.to_ne_bytes().to_vec();
        done.extend(DONE.to_ne_bytes());
        done.extend([0; 10]);
        assert_eq!(read(&done, &mut slowest), Next::Over);
    }

    #[test]
    fn the_kernel_of_this_machine_tells_what_is_read_and_a_node_is_no_peer_of_itself() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.write_all(b"hello").unwrap();
        other.read_exact(&mut [0; 5]).unwrap();
        let mut source = Source::open().unwrap();
        send(&source.socket, &request(2), SendFlags::empty()).unwrap();
        let (port, mut found) = (one.local_addr().unwrap().port(), None);
        while let Ok((count, _)) = recv(&source.socket, source.piece.as_mut_slice(), RecvFlags::empty()) {
            let mut piece = &source.piece[..count];
            while let Some(length) = u32_at(piece, 0).filter(|length| *length as usize >= HEADER) {
                // The ports stand before the addresses, as the network writes them.
                if piece.get(HEADER + 4..HEADER + 6) == Some(&port.to_be_bytes()) {
                    found = connection(&piece[HEADER..length as usize]);
                }
                piece = piece.get(aligned(length as usize)..).unwrap_or_default();
            }
        }
        let found = found.unwrap();
        assert!(found.own.is_loopback() && found.own == found.peer, "{found:?}");
        assert!((1..1_000_000).contains(&found.micros) && found.silent_ms < 60_000, "{found:?}");
        assert!(!found.tells());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let mut slowest = BTreeMap::new();
            read(&bytes, &mut slowest);
            prop_assert!(slowest.len() <= bytes.len());
        }

        #[test]
        fn a_message_cut_anywhere_is_left_out(cut in 0_usize..196) {
            let whole = message([10, 0, 0, 1], [10, 0, 0, 2], 0, 7);
            let mut slowest = BTreeMap::new();
            read(&whole[..cut.min(whole.len() - 1)], &mut slowest);
            prop_assert!(slowest.is_empty());
        }
    }
}
