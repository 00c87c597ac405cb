//! Network interfaces: bytes and what was lost; what TCP sent again.

use super::look::Look;
use crate::collect::Root;

/// Interfaces that lie on others: their bytes would count twice.
const VIRTUAL: [&str; 10] = ["lo", "docker", "br", "virbr", "bond", "team", "vlan", "cali", "cilium", "flannel"];

/// Cards that are looked at.
const CARDS: usize = 64;

pub(super) fn look(root: &Root, look: &mut Look) {
    if let Some(text) = root.text("/proc/net/dev").value() {
        interfaces(text, look);
    }
    if let Some(sent) = root.text("/proc/net/snmp").value().and_then(|text| retransmits(text)) {
        look.count("tcp_retrans_pps", "", sent);
    }
}

/// Interfaces that are cards, by their names.
pub(super) fn cards(root: &Root) -> Vec<String> {
    let names = root.names("/sys/class/net").value().cloned().unwrap_or_default();
    names.into_iter().filter(|name| root.path(&format!("/sys/class/net/{name}/device")).exists()).take(CARDS).collect()
}

/// Speed of all `cards` that are up, in GB/s: a link that came up slower, or not at all, makes it less.
pub(super) fn speed(root: &Root, cards: &[String]) -> Option<f64> {
    // Of a card that is down the kernel says nothing, or that its speed is -1.
    let megabits = |card: &String| root.counted(&format!("/sys/class/net/{card}/speed")).value().copied();
    let known: Vec<f64> = cards.iter().filter_map(megabits).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() * 1e-3 / 8.0)
}

/// `name: rx_bytes packets errs drop fifo frame compressed multicast tx_bytes packets errs drop …`.
fn interfaces(text: &str, look: &mut Look) {
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let name = name.trim();
        if VIRTUAL.iter().any(|kind| name.starts_with(kind)) || name.contains('.') {
            continue;
        }
        let numbers: Vec<f64> = rest.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [received, _, bad, dropped, _, _, _, _, sent, _, unsent, undone, ..] = numbers[..] else { continue };
        look.count("net_rx_gbs", name, received * 1e-9);
        look.count("net_tx_gbs", name, sent * 1e-9);
        look.count("net_drops_pps", name, bad + dropped + unsent + undone);
    }
}

/// `RetransSegs` of the two `Tcp:` lines, names above numbers.
pub(crate) fn retransmits(text: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|name| name == "RetransSegs")?;
    numbers.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_other_interfaces_is_not_counted_twice() {
        let at = |bytes: u64| {
            format!(
                "Inter-| Receive | Transmit\n face |bytes packets\n    lo: {bytes} 1 0 0 0 0 0 0 {bytes} 1 0 0 0 0 0 0\n  \
                 eth0: {bytes} 1 0 0 0 0 0 0 0 1 0 7 0 0 0 0\nbond0: {bytes} 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0\n"
            )
        };
        let (mut first, mut second) = (Look::at(0), Look::at(1_000_000_000));
        interfaces(&at(0), &mut first);
        interfaces(&at(3_000_000_000), &mut second);
        let found = second.since(&first);
        assert_eq!(found, [("net_drops_pps", 0.0), ("net_rx_gbs", 3.0), ("net_tx_gbs", 0.0)]);
    }

    #[test]
    fn a_link_that_is_down_or_slow_makes_the_node_slower() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join("sys/class/net").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (name, speed) in [("eth0", "100000"), ("eth1", "10000"), ("eth2", "-1")] {
            write(&format!("{name}/speed"), speed);
            write(&format!("{name}/device/vendor"), "");
        }
        write("bond0/speed", "110000");
        let root = Root::at(tree.path());
        assert_eq!(cards(&root), ["eth0", "eth1", "eth2"]);
        assert_eq!(speed(&root, &cards(&root)), Some(13.75));
    }

    #[test]
    fn retransmits_are_found_by_their_name() {
        let text = "Ip: A B\nIp: 1 2\nTcp: RtoMin InSegs RetransSegs\nTcp: 200 5 17\nUdp: X\nUdp: 3\n";
        assert_eq!(retransmits(text), Some(17.0));
        assert_eq!(retransmits("Tcp: A\nTcp: 1\n"), None);
    }
}
