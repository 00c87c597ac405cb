//! The InfiniBand and RoCE adapters: ports, links, error counters, firmware.

use muster_wire::Reading;

use super::root::number;
use super::{Facts, Root, Then};

/// Where the kernel shows RDMA adapters.
pub(crate) const CLASS: &str = "/sys/class/infiniband";
/// Adapters and ports looked at: four times what the largest servers have.
const DEVICES: usize = 64;
const PORTS: usize = 4;
const COUNTERS: [&str; 14] = [
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_discards",
    "port_xmit_constraint_errors",
    "port_rcv_constraint_errors",
    "port_xmit_wait",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
    "port_rcv_packets",
];
const HARDWARE: [&str; 9] = [
    "out_of_sequence",
    "packet_seq_err",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_slow_restart",
    "np_cnp_sent",
    "rp_cnp_handled",
    "np_ecn_marked_roce_packets",
];

pub(super) fn look(root: &Root, facts: &mut Facts) {
    let devices = root.names(CLASS);
    facts.count("devices", devices.as_ref_reading().map(|names| names.len() as f64));
    for device in devices.value().into_iter().flatten().take(DEVICES) {
        let at = |file: &str| root.text(&format!("{CLASS}/{device}/{file}"));
        for (key, file) in [("firmware", "fw_ver"), ("board", "board_id"), ("type", "hca_type"), ("guid", "node_guid")]
        {
            facts.text(&format!("device.{device}.{key}"), at(file));
        }
        facts.text(&format!("device.{device}.pci"), root.link_name(&format!("{CLASS}/{device}/device")));
        let ports = root.names(&format!("{CLASS}/{device}/ports"));
        for port in ports.value().into_iter().flatten().take(PORTS) {
            look_at(root, device, port, facts);
        }
    }
}

fn look_at(root: &Root, device: &str, port: &str, facts: &mut Facts) {
    let at = |file: &str| format!("{CLASS}/{device}/ports/{port}/{file}");
    let key = |fact: &str| format!("port.{device}/{port}.{fact}");
    facts.text(&key("state"), root.text(&at("state")).map(word));
    facts.text(&key("physical"), root.text(&at("phys_state")).map(word));
    facts.text(&key("layer"), root.text(&at("link_layer")));
    let rate = root.text(&at("rate"));
    facts.count(&key("rate_gbit"), rate.and_then(|text| number(text.split(' ').next().unwrap_or_default())));
    for counter in COUNTERS {
        facts.count(&key(counter), counted(root, &at(&format!("counters/{counter}"))));
    }
    for counter in HARDWARE {
        facts.count(&key(counter), counted(root, &at(&format!("hw_counters/{counter}"))));
    }
}

/// A port without this counter says `N/A (no PMA)` or EINVAL.
pub(crate) fn counted(root: &Root, path: &str) -> Reading<f64> {
    match root.text(path) {
        Reading::Value(text) if text.starts_with("N/A") => Reading::Absent,
        Reading::Failed(why) if why.contains("os error 22") => Reading::Absent,
        other => other.and_then(|text| number(&text)),
    }
}

/// `4: ACTIVE` is `ACTIVE`.
pub(crate) fn word(text: String) -> String {
    text.split_once(": ").map_or(text.clone(), |(_, word)| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Tree, number, reading_of, text};
    use super::*;

    #[test]
    fn a_port_of_a_real_node_is_read() {
        // Shape and values of an H100 node's tree.
        let port = "/sys/class/infiniband/mlx5_0/ports/1";
        let files: Vec<(String, &str)> = vec![
            ("/sys/class/infiniband/mlx5_0/fw_ver".into(), "28.41.1000\n"),
            ("/sys/class/infiniband/mlx5_0/board_id".into(), "MT_0000000838\n"),
            (format!("{port}/state"), "4: ACTIVE\n"),
            (format!("{port}/phys_state"), "5: LinkUp\n"),
            (format!("{port}/rate"), "400 Gb/sec (4X NDR)\n"),
            (format!("{port}/link_layer"), "InfiniBand\n"),
            (format!("{port}/counters/link_downed"), "0\n"),
            (format!("{port}/counters/port_rcv_errors"), "14\n"),
            (format!("{port}/counters/symbol_error"), "N/A (no PMA)\n"),
            (format!("{port}/counters/port_xmit_wait"), "many\n"),
            (format!("{port}/hw_counters/roce_adp_retrans"), "3\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let facts = Tree::new(&files).look(look);
        assert_eq!(number(&facts, "devices"), 1.0);
        assert_eq!(text(&facts, "device.mlx5_0.firmware"), "28.41.1000");
        assert_eq!(text(&facts, "port.mlx5_0/1.state"), "ACTIVE");
        assert_eq!(text(&facts, "port.mlx5_0/1.physical"), "LinkUp");
        assert_eq!(number(&facts, "port.mlx5_0/1.rate_gbit"), 400.0);
        assert_eq!(number(&facts, "port.mlx5_0/1.link_downed"), 0.0);
        assert_eq!(number(&facts, "port.mlx5_0/1.port_rcv_errors"), 14.0);
        assert_eq!(reading_of(&facts, "port.mlx5_0/1.symbol_error"), Reading::Absent);
        assert!(matches!(reading_of(&facts, "port.mlx5_0/1.port_xmit_wait"), Reading::Failed(_)));
        assert_eq!(number(&facts, "port.mlx5_0/1.roce_adp_retrans"), 3.0);
    }

    #[test]
    fn a_node_without_adapters_has_none_and_says_so() {
        assert_eq!(reading_of(&Tree::new(&[]).look(look), "devices"), Reading::Absent);
    }
}
