//! The network interfaces: link, speed, and errors since boot.

use muster_wire::{Reading, Unit};

use super::{Facts, Root, Then};

const NET: &str = "/sys/class/net";
/// Interfaces without hardware that are listed; a container host can have thousands.
const VIRTUAL: usize = 64;
const COUNTERS: [&str; 11] = [
    "rx_packets",
    "tx_packets",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "rx_crc_errors",
    "rx_missed_errors",
    "tx_carrier_errors",
    "rx_bytes",
    "tx_bytes",
];

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let names = match root.names(NET) {
        Reading::Value(names) => names,
        other => return facts.count("interfaces", other.map(|_| 0.0)),
    };
    let (real, made): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| root.path(&format!("{NET}/{name}/device")).exists());
    facts.count("interfaces", Reading::Value((real.len() + made.len()) as f64));
    facts.count("interfaces.hardware", Reading::Value(real.len() as f64));
    for name in real.iter().chain(made.iter().take(VIRTUAL)) {
        // bonding_masters and the like lie among the interfaces.
        if root.path(&format!("{NET}/{name}")).is_dir() {
            interface(root, name, facts);
        }
    }
}

fn interface(root: &Root, name: &str, facts: &mut Facts) {
    let at = |file: &str| format!("{NET}/{name}/{file}");
    let key = |fact: &str| format!("{name}.{fact}");
    facts.text(&key("state"), root.text(&at("operstate")));
    facts.flag(&key("carrier"), while_up(root.text(&at("carrier"))).and_then(|_| root.flag(&at("carrier"))));
    facts.count(&key("speed_mbit"), while_up(root.text(&at("speed"))).and_then(|_| root.counted(&at("speed"))));
    facts.text(&key("duplex"), while_up(root.text(&at("duplex"))));
    facts.count(&key("mtu"), root.counted(&at("mtu")));
    facts.count(&key("carrier_changes"), root.counted(&at("carrier_changes")));
    facts.text(&key("address"), root.text(&at("address")));
    facts.text(&key("driver"), root.link_name(&at("device/driver")));
    facts.text(&key("device"), root.link_name(&at("device")));
    facts.count(&key("numa_node"), root.counted(&at("device/numa_node")));
    for counter in COUNTERS {
        let unit = if counter.ends_with("bytes") { Unit::Bytes } else { Unit::Count };
        facts.number(&key(counter), root.counted(&at(&format!("statistics/{counter}"))), Some(unit));
    }
}

/// The kernel refuses these files with EINVAL while the interface is down: then there is nothing to tell.
fn while_up(text: Reading<String>) -> Reading<String> {
    match text {
        Reading::Failed(why) if why.contains("os error 22") => Reading::Absent,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use muster_wire::Datum;

    use super::super::testing::{Tree, number, reading_of, text};
    use super::*;

    #[test]
    fn an_interface_is_read_and_an_unknown_speed_is_absent() {
        let tree = Tree::new(&[
            ("/sys/class/net/eth0/operstate", "up\n"),
            ("/sys/class/net/eth0/carrier", "1\n"),
            ("/sys/class/net/eth0/speed", "100000\n"),
            ("/sys/class/net/eth0/statistics/rx_errors", "17\n"),
            ("/sys/class/net/eth0/statistics/tx_errors", "many\n"),
            ("/sys/class/net/lo/speed", "-1\n"),
            ("/sys/class/net/bonding_masters", "\n"),
        ]);
        let device = tree.path().join("sys/devices/0000:17:00.0");
        fs::create_dir_all(&device).unwrap();
        symlink(&device, tree.path().join("sys/class/net/eth0/device")).unwrap();
        symlink("../../drivers/mlx5_core", device.join("driver")).unwrap();
        let facts = tree.look(look);
        assert_eq!(text(&facts, "eth0.state"), "up");
        assert_eq!(reading_of(&facts, "eth0.carrier"), Reading::Value(Datum::Flag(true)));
        assert_eq!(number(&facts, "eth0.speed_mbit"), 100_000.0);
        assert_eq!(text(&facts, "eth0.driver"), "mlx5_core");
        assert_eq!(text(&facts, "eth0.device"), "0000:17:00.0");
        assert_eq!(number(&facts, "eth0.rx_errors"), 17.0);
        assert!(matches!(reading_of(&facts, "eth0.tx_errors"), Reading::Failed(_)));
        assert_eq!(reading_of(&facts, "lo.speed_mbit"), Reading::Absent);
        assert_eq!(number(&facts, "interfaces.hardware"), 1.0);
        assert!(!facts.iter().any(|fact| fact.key.starts_with("bonding_masters")));
    }

    #[test]
    fn no_network_class_is_absent() {
        let facts = Tree::new(&[]).look(look);
        assert_eq!(reading_of(&facts, "interfaces"), Reading::Absent);
    }
}
