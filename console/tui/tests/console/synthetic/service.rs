//! A fleet with a defective node, one in repair, two spares and one that came back.

use std::sync::Arc;

use muster_analysis::service::Service;
use muster_tui::Snapshot;
use muster_tui::snapshot::{FailureRow, Focus, HandedRow, NodeRow, ServicePast, ServiceRow};

use super::NOW_MS;

const DAY: u64 = 86_400_000;

fn row(state: Service, days: u64, (who, why): (&str, &str), swap: &str) -> ServiceRow {
    ServiceRow {
        state,
        since_ms: Some(NOW_MS - days * DAY),
        who: who.to_owned(),
        why: why.to_owned(),
        swap: swap.to_owned(),
        repeated: Arc::from([]),
        commands: Arc::from([]),
    }
}

fn hands(node: &str) -> Option<ServiceRow> {
    match node {
        "rack1-04" => Some(ServiceRow {
            repeated: Arc::from(["third time this GPU fails here (gpu:3, 1654922000123)".to_owned()]),
            commands: Arc::from(
                [
                    "scontrol update 'NodeName=rack1-04' State=DRAIN 'Reason=muster: slow (replaced by rack1-14)'",
                    "scontrol update 'NodeName=rack1-14' State=RESUME  # same leaf",
                ]
                .map(str::to_owned),
            ),
            ..row(Service::Defective, 0, ("", "slow"), "rack1-14 replaces it (same leaf)")
        }),
        "rack1-02" => Some(row(Service::InRepair, 3, ("kim", "RMA 4711"), "")),
        "rack1-14" => Some(row(Service::HotBuffer, 20, ("kim", "hall 7"), "it replaces rack1-04 (same leaf)")),
        "rack1-15" => {
            Some(row(Service::HotBuffer, 20, ("kim", "hall 7"), "it can replace nobody: it was never validated"))
        }
        "rack1-01" => Some(row(Service::InService, 6, ("ada", ""), "")),
        _ => None,
    }
}

/// What is kept of a node that failed three times at the same GPU.
fn past(needs: Option<Arc<[String]>>) -> ServicePast {
    let failure = |days: u64, said: &str, serial: Option<&str>| FailureRow {
        at_ms: NOW_MS - days * DAY,
        component: "gpu:3".to_owned(),
        serial: serial.map(str::to_owned),
        said: said.to_owned(),
        reason: "gpu-stream/triad:3 2.11 TB/s, 31 % below 63 peers (median 3.05 TB/s)".to_owned(),
    };
    let serial = Some("1654922000123");
    let handed = |days: u64, into, why: &str| HandedRow {
        at_ms: NOW_MS - days * DAY,
        into,
        who: "kim".to_owned(),
        why: why.to_owned(),
        swap: String::new(),
    };
    ServicePast {
        needs,
        failures: Arc::from([
            failure(3, "third time this GPU fails here", serial),
            failure(40, "", serial),
            failure(90, "", None),
        ]),
        handed: Arc::from([handed(3, "in repair", "RMA 4711"), handed(38, "in service", "")]),
    }
}

/// The same fleet with some of its nodes in other hands.
pub(crate) fn with_hands(mut snapshot: Snapshot) -> Snapshot {
    let of = |node: &Arc<NodeRow>| {
        let service = hands(&node.name).map(Arc::new);
        Arc::new(NodeRow { service, ..(**node).clone() })
    };
    snapshot.nodes = snapshot.nodes.iter().map(of).collect();
    snapshot.hands = Arc::from([(Service::Defective, 1), (Service::InRepair, 1), (Service::HotBuffer, 2)]);
    // Nothing of it is said in the message line.
    snapshot.messages = Arc::from([]);
    snapshot
}

/// The same with the node in repair in focus, and what its return needs, if that was read.
pub(crate) fn in_repair(snapshot: Snapshot, needs: Option<&[&str]>) -> Snapshot {
    let mut snapshot = with_hands(snapshot);
    let needs = needs.map(|needs| needs.iter().map(|why| (*why).to_owned()).collect());
    let focus = Focus { node: "rack1-02".to_owned(), service: Some(Arc::new(past(needs))), ..Focus::default() };
    snapshot.focus = Some(Arc::new(focus));
    snapshot
}

/// The same after a swap: another node took the place of the one in repair.
pub(crate) fn swapped(snapshot: Snapshot) -> Snapshot {
    let mut snapshot = in_repair(snapshot, Some(&[]));
    let of = |node: &Arc<NodeRow>| {
        let row = match node.name.as_str() {
            "rack1-02" => row(Service::InRepair, 3, ("kim", "RMA 4711"), "replaced by rack1-07 on 2026-11-18"),
            "rack1-07" => row(Service::InService, 3, ("kim", ""), "in place of rack1-02 since 2026-11-18"),
            _ => return node.clone(),
        };
        Arc::new(NodeRow { service: Some(Arc::new(row)), ..(**node).clone() })
    };
    snapshot.nodes = snapshot.nodes.iter().map(of).collect();
    let handed = HandedRow {
        at_ms: NOW_MS - 3 * DAY,
        into: "in repair",
        who: "kim".to_owned(),
        why: "RMA 4711".to_owned(),
        swap: "replaced by rack1-07".to_owned(),
    };
    let past = ServicePast { handed: Arc::from([handed]), ..past(Some(Arc::from([]))) };
    let focus = Focus { node: "rack1-02".to_owned(), service: Some(Arc::new(past)), ..Focus::default() };
    snapshot.focus = Some(Arc::new(focus));
    snapshot
}
