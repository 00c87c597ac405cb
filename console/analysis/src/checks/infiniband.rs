//! Are all InfiniBand and RoCE ports there, up, at their rate and without errors?

use super::check::{Ask, Found, some};
use super::compare::{Count, Lacking, Same};
use super::{Check, Gap, NodeFacts, Policy, Severity};

const fn same(key: &'static str) -> Same {
    Same { collector: "infiniband", key, lacking: Lacking::Skipped }
}

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "hca-count",
        area: "infiniband",
        title: "as many adapters as expected",
        severity: Severity::Critical,
        source: "GCM --expected-count; Crusoe HCAFellOffTheBus",
        next: "look for the adapter with lspci and in the kernel log; power-cycle, then reseat it",
        needs: &["infiniband"],
        ask: Ask::Count(Count { collector: "infiniband", key: "devices", expect: "hcas", per: 1.0, tolerance: None }),
    },
    Check {
        id: "ib-port",
        area: "infiniband",
        title: "every port that is up on the group's nodes is ACTIVE and LinkUp",
        severity: Severity::Critical,
        source: "AzNHC check_hw_ib; gpud",
        next: "look at the cable and the switch port; INIT means that no subnet manager has configured it",
        needs: &["infiniband"],
        ask: Ask::Equal(&[same("port.*.state"), same("port.*.physical")]),
    },
    Check {
        id: "ib-rate",
        area: "infiniband",
        title: "every InfiniBand port runs at the expected rate, or all at the same",
        severity: Severity::Critical,
        source: "AzNHC check_hw_ib (400); gpud",
        next: "reseat or replace cable and transceiver: a lane that failed to train lowers the rate",
        needs: &["infiniband"],
        ask: Ask::Node(rate),
    },
    Check {
        id: "ib-firmware-consistent",
        area: "infiniband",
        title: "firmware and board of each adapter are those of the group",
        severity: Severity::Warn,
        source: "imbue (28.39.1002)",
        next: "burn the firmware of the others with mlxfwmanager and reset the adapter",
        needs: &["infiniband"],
        ask: Ask::Equal(&[same("device.*.firmware"), same("device.*.board")]),
    },
    Check {
        id: "ib-link-downed",
        area: "infiniband",
        title: "no port lost its link since the counters were cleared",
        severity: Severity::Critical,
        source: "NVSentinel (any); soperator#481 (10)",
        next: "reseat or replace cable and transceiver; compare with the switch port's counters",
        needs: &["infiniband"],
        ask: Ask::Node(link_downed),
    },
    Check {
        id: "ib-errors",
        area: "infiniband",
        title: "no errors on any port since the counters were cleared",
        severity: Severity::Critical,
        source: "GCM PR#119 (0 warning, 100 critical)",
        next: "symbol and integrity errors come from the cable; clear the counters (perfquery -x) and look again",
        needs: &["infiniband"],
        ask: Ask::Node(errors),
    },
    Check {
        id: "ib-loopback-errors",
        area: "infiniband",
        title: "no adapter repeated or lost anything on the way to itself (ib-loopback)",
        severity: Severity::Critical,
        source: "none is due where no cable is; the limit is that of ib-errors",
        next: "run ib-loopback again with nothing else on the adapter; if they come back, reset it, then have it replaced",
        needs: &["infiniband"],
        ask: Ask::Node(loopback),
    },
];

/// Counters of broken links and lost packets; congestion (`port_xmit_wait`, discards) is not among them.
const ERRORS: [&str; 9] = [
    "symbol_error",
    "link_error_recovery",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
    "packet_seq_err",
    "local_ack_timeout_err",
];

fn ports<'a>(node: &NodeFacts<'a>) -> Result<Vec<&'a str>, Gap> {
    node.number("infiniband", "devices")?;
    let ports = node.instances("infiniband", "port.", ".state");
    if ports.is_empty() { Err(Gap::Absent("no port".to_owned())) } else { Ok(ports) }
}

fn rate(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let mut rates: Vec<(&str, f64)> = Vec::new();
    for port in ports(node)? {
        let text = |what: &str| node.text("infiniband", &format!("port.{port}.{what}"));
        // RoCE ports of management networks run at rates of their own; a port that is down has none.
        if text("layer").is_ok_and(|layer| layer == "InfiniBand") && text("state").is_ok_and(|s| s == "ACTIVE") {
            rates.push((port, node.number("infiniband", &format!("port.{port}.rate_gbit"))?));
        }
    }
    let label = node.labels.get("ib_rate_gbit").and_then(|text| text.trim().parse::<f64>().ok());
    let most = rates.iter().map(|(_, rate)| *rate).reduce(f64::max);
    let (Some(wanted), word) = (match label.or(policy.expected("ib_rate_gbit")) {
        Some(expected) => (Some(expected), "expected"),
        None => (most, "the fastest"),
    }) else {
        return Ok(Found::not_applicable("no active InfiniBand port"));
    };
    if rates.is_empty() {
        return Ok(Found::not_applicable("no active InfiniBand port"));
    }
    let slow =
        |(port, rate): &(&str, f64)| (*rate < wanted).then(|| format!("{port} at {rate} Gb/s, {word} {wanted} Gb/s"));
    let bad: Vec<String> = rates.iter().filter_map(slow).collect();
    Ok(Found::fail_if(&bad, format!("{} ports at {wanted} Gb/s", rates.len())))
}

fn link_downed(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let sums = sums(node, &["link_downed"])?;
    over(&sums, [0.0, policy.limit("ib_link_downed")], "times down")
}

fn errors(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let sums = sums(node, &ERRORS)?;
    over(&sums, [0.0, policy.limit("ib_errors")], "errors")
}

/// What grew while a port wrote to itself, as the probe tells it: `counters=17 packet_seq_err=+3`.
fn loopback(node: &NodeFacts<'_>, policy: &Policy) -> Result<Found, Gap> {
    let mut sums = Vec::new();
    for (_, port, line) in node.texts("port.", ".errors").filter(|(who, ..)| *who == "ib-loopback") {
        let words = || line.split_whitespace().filter_map(|word| word.split_once('='));
        let grown = words().filter_map(|(name, by)| Some((name, by.strip_prefix('+')?.parse::<f64>().ok()?)));
        let grown: Vec<(&str, f64)> = grown.filter(|(_, by)| by.is_finite() && *by > 0.0).collect();
        let most = grown.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("", |(name, _)| name);
        if words().any(|(name, read)| name == "counters" && read != "0") {
            sums.push((port.to_owned(), grown.iter().map(|(_, by)| by).sum(), most.to_owned()));
        }
    }
    if sums.is_empty() {
        // Without a look nobody knows whether there is an adapter.
        node.looked("infiniband")?;
        return Ok(Found::not_applicable("no port counted while it wrote to itself"));
    }
    over(&sums, [0.0, policy.limit("ib_errors")], "errors during ib-loopback")
}

/// Sum of the counters of each port, and the largest of them.
fn sums(node: &NodeFacts<'_>, counters: &[&str]) -> Result<Vec<(String, f64, String)>, Gap> {
    let mut all = Vec::new();
    for port in ports(node)? {
        let (mut sum, mut most, mut counted) = (0.0, (0.0, ""), false);
        for counter in counters {
            match node.number("infiniband", &format!("port.{port}.{counter}")) {
                Ok(count) => {
                    (sum, counted) = (sum + count, true);
                    most = if count > most.0 { (count, counter) } else { most };
                }
                Err(Gap::Absent(_)) => {}
                Err(gap) => return Err(gap),
            }
        }
        if counted {
            all.push((port.to_owned(), sum, most.1.to_owned()));
        }
    }
    if all.is_empty() { Err(Gap::Absent("no port counts them".to_owned())) } else { Ok(all) }
}

fn over(sums: &[(String, f64, String)], [warn, fail]: [f64; 2], what: &str) -> Result<Found, Gap> {
    let told = |limit: f64| -> Vec<String> {
        let over = sums.iter().filter(|(_, sum, _)| *sum > limit);
        over.map(|(port, sum, most)| format!("{port}: {sum:.0} {what}, most of them {most}")).collect()
    };
    let (bad, doubtful) = (told(fail), told(warn));
    Ok(match (bad.is_empty(), doubtful.is_empty()) {
        (false, _) => Found::fail(some(&bad)),
        (true, false) => Found::warn(some(&doubtful)),
        (true, true) => Found::pass(format!("none on {} ports", sums.len())),
    })
}

#[cfg(test)]
mod tests {
    use crate::State;
    use crate::checks::Policy;
    use crate::checks::testing::{Fleet, absent, number, text};

    fn fleet() -> Fleet {
        let mut facts = vec![("devices", number(2.0))];
        facts.extend([
            ("port.mlx5_0/1.state", text("ACTIVE")),
            ("port.mlx5_1/1.state", text("ACTIVE")),
            ("port.mlx5_0/1.layer", text("InfiniBand")),
            ("port.mlx5_1/1.layer", text("InfiniBand")),
            ("port.mlx5_0/1.rate_gbit", number(400.0)),
            ("port.mlx5_1/1.rate_gbit", number(400.0)),
            ("port.mlx5_0/1.link_downed", number(0.0)),
            ("port.mlx5_0/1.symbol_error", number(0.0)),
        ]);
        Fleet::new(4, "infiniband", &facts)
    }

    #[test]
    fn a_healthy_group_passes_and_a_node_without_adapters_is_not_asked() {
        let mut fleet = fleet();
        fleet.set(3, "infiniband", "devices", absent());
        for id in ["ib-port", "ib-rate", "ib-link-downed", "ib-errors"] {
            assert_eq!(fleet.ask(id)[0].state, State::Pass, "{id}");
        }
        let mut none = Fleet::new(2, "infiniband", &[("devices", absent())]);
        none.set(1, "infiniband", "devices", absent());
        for id in ["hca-count", "ib-port", "ib-rate", "ib-firmware-consistent", "ib-link-downed", "ib-errors"] {
            assert_eq!(none.ask(id)[0].state, State::NotApplicable, "{id}");
        }
    }

    #[test]
    fn a_port_that_trained_down_or_lost_its_link_is_named() {
        let mut fleet = fleet();
        fleet.set(1, "infiniband", "port.mlx5_1/1.rate_gbit", number(200.0));
        fleet.set(2, "infiniband", "port.mlx5_1/1.state", text("DOWN"));
        assert_eq!(fleet.ask("ib-rate")[1].said, "mlx5_1/1 at 200 Gb/s, the fastest 400 Gb/s");
        assert_eq!(fleet.ask("ib-port")[2].said, "port.mlx5_1/1.state is DOWN, 3 of 4 nodes have ACTIVE");
        let mut policy = Policy::default();
        policy.expect("ib_rate_gbit", 800.0);
        assert_eq!(fleet.ask_with("ib-rate", &policy)[0].state, State::Fail);
    }

    #[test]
    fn what_grows_while_a_port_writes_to_itself_is_named() {
        for (line, state, said) in [
            ("counters=17", State::Pass, "none on 1 ports"),
            (
                "counters=17 packet_seq_err=+3 local_ack_timeout_err=+1",
                State::Warn,
                "mlx5_1/1: 4 errors during ib-loopback, most of them packet_seq_err",
            ),
            (
                "counters=17 symbol_error=+5000",
                State::Fail,
                "mlx5_1/1: 5000 errors during ib-loopback, most of them symbol_error",
            ),
            ("counters=0", State::NotApplicable, "no port counted while it wrote to itself"),
            ("counters=3 symbol_error=+nan x=+inf \u{1b}", State::Pass, "none on 1 ports"),
        ] {
            let mut fleet = fleet();
            fleet.set(1, "ib-loopback", "port.mlx5_1/1.errors", text(line));
            let found = fleet.ask("ib-loopback-errors");
            assert_eq!((found[1].state, found[1].said.as_str()), (state, said), "{line}");
            assert_eq!(found[0].state, State::NotApplicable);
        }
    }

    #[test]
    fn counters_warn_from_the_first_and_fail_past_the_limit() {
        let mut fleet = fleet();
        fleet.set(1, "infiniband", "port.mlx5_0/1.port_rcv_errors", number(14.0));
        fleet.set(2, "infiniband", "port.mlx5_0/1.symbol_error", number(5000.0));
        fleet.set(3, "infiniband", "port.mlx5_0/1.link_downed", number(11.0));
        let found = fleet.ask("ib-errors");
        assert_eq!((found[1].state, found[2].state), (State::Warn, State::Fail));
        assert_eq!(found[2].said, "mlx5_0/1: 5000 errors, most of them symbol_error");
        assert_eq!(fleet.ask("ib-link-downed")[3].state, State::Fail);
    }
}
