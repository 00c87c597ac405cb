//! Do the network interfaces carry what those of the group do, without errors?

use super::check::{Ask, Found, some};
use super::compare::{Lacking, Same};
use super::{Check, Gap, NodeFacts, Policy, Severity};

const fn same(key: &'static str) -> Same {
    Same { collector: "nic", key, lacking: Lacking::Skipped }
}

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "nic-mtu",
        area: "nic",
        title: "every interface has the MTU that it has on the group's nodes",
        severity: Severity::Critical,
        source: "GCM check_ethlink",
        next: "set the MTU of the interface as on the others, here and on the switch port: a mismatch hangs large messages",
        needs: &["nic"],
        ask: Ask::Equal(&[same("*.mtu")]),
    },
    Check {
        id: "nic-speed",
        area: "nic",
        title: "every link has the speed and duplex that it has on the group's nodes",
        severity: Severity::Critical,
        source: "GCM check_ethlink; AzNHC check_hw_eth",
        next: "reseat or replace the cable or transceiver; look at the switch port's negotiation",
        needs: &["nic"],
        ask: Ask::Equal(&[same("*.speed_mbit"), same("*.duplex")]),
    },
    Check {
        id: "nic-link",
        area: "nic",
        title: "every interface that is up on the group's nodes is up",
        severity: Severity::Critical,
        source: "AzNHC check_hw_eth; gpud",
        next: "look at the cable, the transceiver and the switch port; then `ip link set IFACE up`",
        needs: &["nic"],
        ask: Ask::Equal(&[same("*.state")]),
    },
    Check {
        id: "nic-present",
        area: "nic",
        title: "as many network interfaces with hardware as on the group's nodes",
        severity: Severity::Critical,
        source: "GCM --expected-count; NVSentinel",
        next: "look for a card that fell off the bus (`lspci`, kernel log); power-cycle, then reseat it",
        needs: &["nic"],
        ask: Ask::Equal(&[Same { collector: "nic", key: "interfaces.hardware", lacking: Lacking::Differs }]),
    },
    Check {
        id: "nic-errors",
        area: "nic",
        title: "hardly any errors per packet since boot",
        severity: Severity::Warn,
        source: "muster; OCI scanner (RX discards)",
        next: "clean or replace cable and transceiver; CRC errors come from the link, missed ones from too small rings",
        needs: &["nic"],
        ask: Ask::Node(errors),
    },
    Check {
        id: "nic-flaps",
        area: "nic",
        title: "the links stay up",
        severity: Severity::Warn,
        source: "gpud; soperator#481 (10); AzNHC (lost carrier)",
        next: "reseat or replace cable and transceiver; compare with the switch port's log",
        needs: &["nic"],
        ask: Ask::Node(flaps),
    },
];

/// Counter and the packets it is a share of.
const ERRORS: [(&str, &str); 4] = [
    ("rx_errors", "rx_packets"),
    ("rx_crc_errors", "rx_packets"),
    ("rx_missed_errors", "rx_packets"),
    ("tx_errors", "tx_packets"),
];

fn errors(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    node.looked("nic")?;
    let (mut bad, mut counters) = (Vec::new(), 0);
    for interface in node.instances("nic", "", ".mtu") {
        for (counter, packets) in ERRORS {
            let read = |name: &str| node.number("nic", &format!("{interface}.{name}"));
            let (count, packets) = match (read(counter), read(packets)) {
                (Ok(count), Ok(packets)) => (count, packets),
                (Err(Gap::Absent(_)), _) | (_, Err(Gap::Absent(_))) => continue,
                (Err(gap), _) | (_, Err(gap)) => return Err(gap),
            };
            counters += 1;
            if count >= policy.limit("nic_errors") && count > policy.limit("nic_error_share") * packets {
                bad.push(format!("{interface}.{counter} is {count:.0} in {packets:.0} packets"));
            }
        }
    }
    Ok(match (bad.is_empty(), counters) {
        (true, 0) => Found::not_applicable("no interface counts errors"),
        (true, _) => Found::pass("hardly any errors"),
        _ => Found::warn(some(&bad)),
    })
}

fn flaps(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    node.looked("nic")?;
    let (mut bad, mut most, mut counted) = (Vec::new(), 0.0_f64, 0);
    for interface in node.instances("nic", "", ".carrier_changes") {
        let changes = match node.number("nic", &format!("{interface}.carrier_changes")) {
            Err(Gap::Absent(_)) => continue,
            read => read?,
        };
        (most, counted) = (most.max(changes), counted + 1);
        if changes > policy.limit("carrier_changes") {
            bad.push(format!("{interface} came or went {changes:.0} times since boot"));
        }
    }
    Ok(match (bad.is_empty(), counted) {
        (true, 0) => Found::not_applicable("no interface counts its carrier changes"),
        (true, _) => Found::pass(format!("at most {most:.0} changes since boot")),
        _ => Found::warn(some(&bad)),
    })
}

#[cfg(test)]
mod tests {
    use crate::State;
    use crate::checks::testing::{Fleet, absent, number, text};

    #[test]
    fn one_wrong_mtu_is_named_and_interfaces_of_containers_are_nobodys_oddity() {
        let mut fleet = Fleet::new(6, "nic", &[("eth0.mtu", number(1500.0)), ("lo.mtu", number(65536.0))]);
        fleet.set(3, "nic", "eth0.mtu", number(1400.0));
        fleet.set(4, "nic", "veth7c1.mtu", number(9000.0));
        fleet.set(5, "nic", "lo.mtu", number(16436.0));
        let found = fleet.ask("nic-mtu");
        assert_eq!((found[3].state, found[3].said.as_str()), (State::Fail, "eth0.mtu is 1400, 5 of 6 nodes have 1500"));
        assert!(found.iter().enumerate().all(|(at, found)| at == 3 || found.state == State::Pass), "{found:?}");
    }

    #[test]
    fn a_link_that_is_down_or_slower_than_the_others_is_named() {
        let facts = [("ib0.state", text("up")), ("ib0.speed_mbit", number(400_000.0)), ("ib0.duplex", text("full"))];
        let mut fleet = Fleet::new(4, "nic", &facts);
        fleet.set(0, "nic", "ib0.state", text("down"));
        fleet.set(0, "nic", "ib0.speed_mbit", absent());
        fleet.set(1, "nic", "ib0.speed_mbit", number(200_000.0));
        assert_eq!(fleet.ask("nic-link")[0].said, "ib0.state is down, 3 of 4 nodes have up");
        let speed = fleet.ask("nic-speed");
        assert_eq!(speed[1].said, "ib0.speed_mbit is 200000, 2 of 3 nodes have 400000");
        assert_eq!(speed[0].state, State::Pass, "a link without a speed is the other check's business");
    }

    #[test]
    fn errors_count_by_their_share_and_flaps_by_their_number() {
        let mut fleet = Fleet::new(2, "nic", &[("eth0.mtu", number(1500.0)), ("eth0.rx_packets", number(1e9))]);
        fleet.set(0, "nic", "eth0.rx_errors", number(500.0));
        fleet.set(1, "nic", "eth0.rx_errors", number(5000.0));
        fleet.set(1, "nic", "eth0.carrier_changes", number(23.0));
        let found = fleet.ask("nic-errors");
        assert_eq!((found[0].state, found[1].state), (State::Pass, State::Warn));
        assert_eq!(found[1].said, "eth0.rx_errors is 5000 in 1000000000 packets");
        let found = fleet.ask("nic-flaps");
        assert_eq!((found[0].state, found[1].state), (State::NotApplicable, State::Warn));
    }
}
