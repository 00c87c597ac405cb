//! Counters of network adapters at two moments, and what the job's connections have to send at several.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use muster_wire::{Counter, Queue, Reading};

use crate::collect::Root;
use crate::watch::net::retransmits;

/// Interfaces, RDMA devices and ports of one.
const DEVICES: usize = 64;
const PORTS: usize = 4;
/// Rows of a table of connections: a busy node's has many thousands, and those of the job may be the last.
const ROWS: usize = 1 << 18;
/// Other ends that are told.
const PEERS: usize = 256;
/// Bytes that wait from which a connection is full.
const FULL: u64 = 64 << 10;
/// Counters of an interface, by their place in /proc/net/dev.
const INTERFACE: [(&str, usize); 6] =
    [("rx_bytes", 0), ("rx_errors", 2), ("rx_dropped", 3), ("tx_bytes", 8), ("tx_errors", 10), ("tx_dropped", 11)];
const RDMA: [&str; 8] = [
    "counters/port_xmit_data",
    "counters/port_rcv_data",
    "counters/port_xmit_wait",
    "counters/port_rcv_errors",
    "counters/symbol_error",
    "counters/link_downed",
    "hw_counters/out_of_sequence",
    "hw_counters/local_ack_timeout_err",
];

/// One look at all counters.
pub(super) type Counts = BTreeMap<(String, String), f64>;

/// All counters now.
pub(super) fn counts(root: &Root) -> Counts {
    let mut counts = Counts::new();
    for line in root.text("/proc/net/dev").value().map(String::as_str).unwrap_or_default().lines().take(DEVICES) {
        let Some((device, rest)) = line.split_once(':') else { continue };
        let numbers: Vec<f64> = rest.split_whitespace().map_while(|word| word.parse().ok()).collect();
        for (name, place) in INTERFACE {
            if let Some(count) = numbers.get(place).filter(|_| device.trim() != "lo") {
                counts.insert((device.trim().to_owned(), name.to_owned()), *count);
            }
        }
    }
    if let Some(count) = root.text("/proc/net/snmp").value().and_then(|text| retransmits(text)) {
        counts.insert(("tcp".to_owned(), "RetransSegs".to_owned()), count);
    }
    let class = "/sys/class/infiniband";
    for device in root.names(class).value().into_iter().flatten().take(DEVICES) {
        for port in root.names(&format!("{class}/{device}/ports")).value().into_iter().flatten().take(PORTS) {
            for file in RDMA {
                if let Some(count) = root.number(&format!("{class}/{device}/ports/{port}/{file}")).value() {
                    let name = file.rsplit('/').next().unwrap_or(file);
                    counts.insert((format!("{device}/{port}"), name.to_owned()), *count);
                }
            }
        }
    }
    counts
}

/// Both looks as they are told.
pub(super) fn told(first: &Counts, last: &Counts) -> Vec<Counter> {
    let both = last.iter().filter_map(|(key, last)| Some((key, first.get(key)?, last)));
    both.map(|((device, name), first, last)| Counter {
        device: device.clone(),
        name: name.clone(),
        first: *first,
        last: *last,
        seconds: None,
    })
    .collect()
}

/// What connections had to send, look by look.
#[derive(Debug, Default)]
pub(super) struct Queues {
    peers: BTreeMap<IpAddr, (u32, u32, u64)>,
    /// A table was longer than what is read of it.
    pub(super) cut: bool,
}

impl Queues {
    /// One more look, at the connections with these inodes, in the tables of the folder `net`.
    pub(super) fn look(&mut self, root: &Root, net: &str, sockets: &BTreeSet<u64>) {
        if sockets.is_empty() {
            return;
        }
        let mut waits: BTreeMap<IpAddr, u64> = BTreeMap::new();
        for table in ["tcp", "tcp6"] {
            let told = root.rows(&format!("{net}/{table}"), ROWS, |line| {
                if let Some((peer, bytes)) = connection(line, sockets) {
                    *waits.entry(peer).or_default() += bytes;
                }
                true
            });
            self.cut |= told == Reading::Value(ROWS);
        }
        for (peer, bytes) in waits {
            if self.peers.len() >= PEERS && !self.peers.contains_key(&peer) {
                continue;
            }
            let (full, looks, most) = self.peers.entry(peer).or_default();
            *looks += 1;
            *full += u32::from(bytes > FULL);
            *most = bytes.max(*most);
        }
    }

    /// As it is told.
    pub(super) fn told(&self) -> Vec<Queue> {
        let of = |(peer, (full, looks, most)): (&IpAddr, &(u32, u32, u64))| Queue {
            peer: peer.to_string(),
            full: *full,
            looks: *looks,
            most: *most,
        };
        self.peers.iter().map(of).collect()
    }
}

/// `0: 0100007F:1F90 0200007F:A1B2 01 00000000:00000000 00:00000000 00000000 0 0 4711 …`: an established connection of the job to elsewhere.
fn connection(line: &str, sockets: &BTreeSet<u64>) -> Option<(IpAddr, u64)> {
    let fields: Vec<&str> = line.split_whitespace().take(10).collect();
    let inode: u64 = fields.get(9)?.parse().ok()?;
    if !sockets.contains(&inode) || *fields.get(3)? != "01" {
        return None;
    }
    let peer = address(fields.get(2)?.split(':').next()?)?;
    let sending = u64::from_str_radix(fields.get(4)?.split(':').next()?, 16).ok()?;
    (!peer.is_loopback()).then_some((peer, sending))
}

/// Words of four bytes, each in the order of this machine.
fn address(hex: &str) -> Option<IpAddr> {
    let words: Vec<[u8; 4]> = hex
        .as_bytes()
        .chunks(8)
        .map(|word| Some(u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?.to_ne_bytes()))
        .collect::<Option<_>>()?;
    match words.as_slice() {
        [four] => Some(Ipv4Addr::from(*four).into()),
        [_, _, _, _] => {
            let six: [u8; 16] = words.concat().try_into().ok()?;
            let six = Ipv6Addr::from(six);
            Some(six.to_ipv4_mapped().map_or(six.into(), IpAddr::from))
        }
        _ => None,
    }
}

/// Addresses of this node, without those of the loopback.
pub(super) fn own_addresses(root: &Root) -> Vec<IpAddr> {
    let mut own = BTreeSet::new();
    // A leaf `|-- 10.0.0.1`, and below it what it is.
    let trie = root.text("/proc/net/fib_trie");
    let mut leaf: Option<Ipv4Addr> = None;
    for line in trie.value().map(String::as_str).unwrap_or_default().lines() {
        if let Some(address) = line.trim_start().strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if line.contains("/32 host LOCAL") {
            own.extend(leaf.map(IpAddr::from));
        }
    }
    // `fe80…, number, prefix, scope, flags, name`.
    let six = root.text("/proc/net/if_inet6");
    for line in six.value().map(String::as_str).unwrap_or_default().lines() {
        let digits = line.split(' ').next().and_then(|hex| u128::from_str_radix(hex, 16).ok());
        own.extend(digits.map(|digits| IpAddr::from(Ipv6Addr::from(digits))));
    }
    own.into_iter().filter(|address| !address.is_loopback()).take(DEVICES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_the_job_that_cannot_send_are_counted_by_the_other_end() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/net")).unwrap();
        let row = |peer: &str, queue: &str, inode: u32| {
            format!("  0: 0100000A:1F90 {peer}:A1B2 01 {queue}:00000000 00:00000000 00000000 0 0 {inode} 1\n")
        };
        let rows =
            [row("0200000A", "00020000", 7), row("0300000A", "00000010", 8), row("0200000A", "00020000", 99)].concat();
        std::fs::write(tree.path().join("proc/net/tcp"), format!("head\n{rows}")).unwrap();
        let mut queues = Queues::default();
        let root = Root::at(tree.path());
        queues.look(&root, "/proc/net", &[7, 8].into());
        queues.look(&root, "/proc/net", &[7, 8].into());
        let told: Vec<(String, u32, u32, u64)> =
            queues.told().into_iter().map(|q| (q.peer, q.full, q.looks, q.most)).collect();
        assert_eq!(told, [("10.0.0.2".into(), 2, 2, 0x20000), ("10.0.0.3".into(), 0, 2, 16)]);
        assert_eq!(address("0000000000000000FFFF00000200000A"), Some("10.0.0.2".parse().unwrap()));
    }

    #[test]
    fn addresses_of_a_node_are_read_from_its_routes() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/net")).unwrap();
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /24 link UNICAST\n     |-- 10.0.0.7\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n";
        std::fs::write(tree.path().join("proc/net/fib_trie"), trie).unwrap();
        std::fs::write(tree.path().join("proc/net/if_inet6"), "fd000000000000000000000000000002 02 40 00 80 eth0\n")
            .unwrap();
        let own: Vec<String> = own_addresses(&Root::at(tree.path())).iter().map(IpAddr::to_string).collect();
        assert_eq!(own, ["10.0.0.7", "fd00::2"]);
    }

    #[test]
    fn counters_are_told_at_both_moments() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/net")).unwrap();
        let set = |bytes: u32| {
            let text = format!(
                "head\nhead\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: {bytes} 1 0 3 0 0 0 0 9 1 0 0 0 0 0 0\n"
            );
            std::fs::write(tree.path().join("proc/net/dev"), text).unwrap();
            counts(&Root::at(tree.path()))
        };
        let (first, last) = (set(5), set(8));
        let told = told(&first, &last);
        assert!(told.iter().all(|counter| counter.device == "eth0"));
        let rx = told.iter().find(|counter| counter.name == "rx_bytes").unwrap();
        assert_eq!((rx.first, rx.last), (5.0, 8.0));
    }
}
