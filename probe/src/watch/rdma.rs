//! InfiniBand and RoCE ports: bytes, waits for credits, congestion.

use super::look::Look;
use crate::collect::Root;

const CLASS: &str = "/sys/class/infiniband";
const DEVICES: usize = 64;
const PORTS: usize = 4;

/// File, metric, and what one of its units is in the metric's. Data is counted in words of four bytes.
const COUNTERS: [(&str, &str, f64); 8] = [
    ("counters/port_xmit_data", "rdma_tx_gbs", 4e-9),
    ("counters/port_rcv_data", "rdma_rx_gbs", 4e-9),
    ("counters/port_xmit_wait", "rdma_wait_per_s", 1.0),
    ("hw_counters/out_of_sequence", "rdma_out_of_sequence_pps", 1.0),
    ("hw_counters/np_ecn_marked_roce_packets", "ecn_pps", 1.0),
    ("hw_counters/np_cnp_sent", "cnp_pps", 1.0),
    ("counters/port_xmit_discards", "net_drops_pps", 1.0),
    ("counters/port_rcv_errors", "net_drops_pps", 1.0),
];

/// Speed of all ports that are up, in GB/s: a link that came up slower, or not at all, makes it less.
pub(super) fn speed(root: &Root) -> Option<f64> {
    let devices = root.names(CLASS);
    let ports = devices.value().into_iter().flatten().take(DEVICES).flat_map(|device| {
        let ports = root.names(&format!("{CLASS}/{device}/ports")).value().cloned().unwrap_or_default();
        ports.into_iter().take(PORTS).map(move |port| format!("{CLASS}/{device}/ports/{port}"))
    });
    let up = |port: &String| root.text(&format!("{port}/state")).value().is_some_and(|state| state.starts_with("4:"));
    // `200 Gb/sec (4X HDR)`.
    let rate = |port: String| {
        let text = root.text(&format!("{port}/rate"));
        text.value()?.split_whitespace().next()?.parse::<f64>().ok()
    };
    let mut known = ports.filter_map(|port| if up(&port) { rate(port) } else { Some(0.0) }).peekable();
    known.peek()?;
    Some(known.sum::<f64>() / 8.0)
}

pub(super) fn look(root: &Root, look: &mut Look) {
    let devices = root.names(CLASS);
    for device in devices.value().into_iter().flatten().take(DEVICES) {
        let ports = root.names(&format!("{CLASS}/{device}/ports"));
        for port in ports.value().into_iter().flatten().take(PORTS) {
            for (file, metric, unit) in COUNTERS {
                if let Some(total) = root.number(&format!("{CLASS}/{device}/ports/{port}/{file}")).value() {
                    look.count(metric, &format!("{device}/{port}/{file}"), total * unit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_four_bytes_become_bytes_and_a_missing_counter_is_no_metric() {
        let tree = tempfile::tempdir().unwrap();
        let port = tree.path().join("sys/class/infiniband/mlx5_0/ports/1");
        std::fs::create_dir_all(port.join("counters")).unwrap();
        let set = |words: &str| std::fs::write(port.join("counters/port_xmit_data"), words).unwrap();
        std::fs::write(port.join("counters/port_xmit_wait"), "N/A (no PMA)\n").unwrap();
        let (mut first, mut second) = (Look::at(0), Look::at(1_000_000_000));
        std::fs::write(port.join("rate"), "200 Gb/sec (4X HDR)\n").unwrap();
        std::fs::write(port.join("state"), "4: ACTIVE\n").unwrap();
        assert_eq!(speed(&Root::at(tree.path())), Some(25.0));
        std::fs::write(port.join("state"), "1: DOWN\n").unwrap();
        assert_eq!(speed(&Root::at(tree.path())), Some(0.0), "a port that is down is slow, and not unknown");
        set("1000\n");
        look(&Root::at(tree.path()), &mut first);
        set("2500001000\n");
        look(&Root::at(tree.path()), &mut second);
        assert_eq!(second.since(&first), [("rdma_tx_gbs", 10.0)]);
    }
}
