//! What did the kernel count while two nodes talked: segments sent again, errors of the interface?

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::os::fd::AsRawFd;

/// Counters of an interface that grow when something is wrong.
const ERRORS: [&str; 5] = ["rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "rx_crc_errors"];
/// Room for `struct tcp_info` of any kernel so far.
const INFO: usize = 512;
/// Places in `struct tcp_info` (include/uapi/linux/tcp.h; fields are only ever added at its end).
const SND_MSS: usize = 16;
const TOTAL_RETRANS: usize = 100;
const BYTES_ACKED: usize = 120;
const DATA_SEGS_OUT: usize = 156;

/// What TCP counted on one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tcp {
    /// Segments sent again.
    pub(crate) retransmitted: u64,
    /// Segments with data; from bytes and segment size where the kernel (before 4.6) does not count them.
    pub(crate) segments: u64,
}

/// Asks the kernel; zeros where it does not answer.
pub(crate) fn tcp(stream: &TcpStream) -> Tcp {
    let mut info = [0_u8; INFO];
    let mut length = INFO as libc::socklen_t;
    // SAFETY: the descriptor is open, the buffer has `length` bytes, and the kernel writes no more than that.
    #[expect(unsafe_code, reason = "std has no TCP_INFO")]
    let answer = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if answer == 0 { parse(&info[..(length as usize).min(INFO)]) } else { Tcp::default() }
}

fn parse(info: &[u8]) -> Tcp {
    let word = |at: usize| info.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
    let long = |at: usize| info.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes);
    let retransmitted = word(TOTAL_RETRANS).unwrap_or(0).into();
    let estimated = || long(BYTES_ACKED).unwrap_or(0) / u64::from(word(SND_MSS).unwrap_or(0).max(1));
    Tcp { retransmitted, segments: word(DATA_SEGS_OUT).map_or_else(estimated, u64::from) }
}

/// Error counters of one interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors(BTreeMap<&'static str, u64>);

impl Errors {
    pub(crate) fn of(interface: &str) -> Self {
        let read = |counter: &'static str| {
            let text = fs::read_to_string(format!("/sys/class/net/{interface}/statistics/{counter}")).ok()?;
            Some((counter, text.trim().parse().ok()?))
        };
        Self(ERRORS.into_iter().filter_map(read).collect())
    }

    /// Growth of each counter.
    pub(crate) fn since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = (&'static str, f64)> + 'a {
        let grown = |(counter, now): (&&'static str, &u64)| {
            Some((*counter, now.saturating_sub(*before.0.get(counter)?) as f64))
        };
        self.0.iter().filter_map(grown)
    }
}

/// Name of the interface that has `address`.
pub(crate) fn interface(address: IpAddr) -> Option<String> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    let mut found = None;
    // SAFETY: getifaddrs fills a list that stays valid until freeifaddrs; entries are read within that time, names are
    // C strings, and an address is read as the type that its family says.
    #[expect(unsafe_code, reason = "std does not list interfaces")]
    unsafe {
        if libc::getifaddrs(&raw mut first) != 0 {
            return None;
        }
        let mut entry = first;
        while let Some(interface) = entry.as_ref() {
            if address_of(interface.ifa_addr) == Some(address) {
                found = CStr::from_ptr(interface.ifa_name).to_str().ok().map(str::to_owned);
                break;
            }
            entry = interface.ifa_next;
        }
        libc::freeifaddrs(first);
    }
    found
}

/// # Safety
/// `from` is null or points at a socket address of the length that its family has.
#[expect(unsafe_code, reason = "the kernel tells the type of an address in its first field")]
unsafe fn address_of(from: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: by the contract of this function.
    unsafe {
        match i32::from(from.as_ref()?.sa_family) {
            libc::AF_INET => {
                let v4 = from.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()).into())
            }
            libc::AF_INET6 => {
                let v6 = from.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_address_belongs_to_lo_and_a_foreign_one_to_nobody() {
        assert_eq!(interface(Ipv4Addr::LOCALHOST.into()).as_deref(), Some("lo"));
        assert_eq!(interface(Ipv4Addr::new(203, 0, 113, 9).into()), None);
    }

    #[test]
    fn old_kernels_tell_segments_by_bytes() {
        let mut info = [0_u8; 232];
        info[SND_MSS..SND_MSS + 4].copy_from_slice(&1000_u32.to_ne_bytes());
        info[TOTAL_RETRANS..TOTAL_RETRANS + 4].copy_from_slice(&7_u32.to_ne_bytes());
        info[BYTES_ACKED..BYTES_ACKED + 8].copy_from_slice(&50_000_u64.to_ne_bytes());
        info[DATA_SEGS_OUT..DATA_SEGS_OUT + 4].copy_from_slice(&60_u32.to_ne_bytes());
        assert_eq!(parse(&info), Tcp { retransmitted: 7, segments: 60 });
        assert_eq!(parse(&info[..136]), Tcp { retransmitted: 7, segments: 50 });
        assert_eq!(parse(&info[..8]), Tcp::default());
    }
}
