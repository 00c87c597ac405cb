//! Which error counters of a port grew while it wrote to itself: a healthy adapter loses nothing on the way to itself.

use crate::collect::{Root, counted};

use super::ports::Port;

/// Of the link and of the port, as InfiniBand defines them.
const LINK: [&str; 11] = [
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_xmit_discards",
    "port_xmit_constraint_errors",
    "port_rcv_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
];
/// Of the transport: what was sent again, refused or given up. The last five are those of soft-RoCE.
const TRANSPORT: [&str; 19] = [
    "packet_seq_err",
    "out_of_sequence",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "duplicate_request",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_slow_restart",
    "rx_icrc_encapsulated",
    "req_cqe_error",
    "req_remote_access_errors",
    "req_transport_retries_exceeded",
    "resp_cqe_error",
    "resp_remote_access_errors",
    "completer_retry_err",
    "retry_exceeded_err",
    "rcvd_seq_err",
    "out_of_seq_request",
    "send_err",
];

/// The counters that a port has.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<(&'static str, f64)>);

impl Errors {
    pub(super) fn read(root: &Root, port: &Port) -> Self {
        let of = |folder: &'static str| {
            let folder = format!("{}/{folder}", port.folder());
            move |name: &'static str| Some((name, *counted(root, &format!("{folder}/{name}")).value()?))
        };
        let (link, transport) = (of("counters"), of("hw_counters"));
        Self(LINK.into_iter().filter_map(link).chain(TRANSPORT.into_iter().filter_map(transport)).collect())
    }

    /// `counters=17 packet_seq_err=+3`: how many were read both times, and those that grew. One that is smaller now was set back
    /// meanwhile, and shows what came since.
    pub(super) fn since(&self, before: &Self) -> String {
        let both = self.0.iter().filter_map(|(name, now)| {
            let (_, then) = before.0.iter().find(|(known, _)| known == name)?;
            Some((*name, if now < then { *now } else { now - then }))
        });
        let both: Vec<(&str, f64)> = both.collect();
        let grown = both.iter().filter(|(_, by)| *by > 0.0).map(|(name, by)| format!(" {name}=+{by:.0}"));
        format!("counters={}{}", both.len(), grown.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_is_told_with_how_much() {
        let before =
            Errors(vec![("symbol_error", 3.0), ("packet_seq_err", 7.0), ("rcvd_seq_err", 9.0), ("link_downed", 1.0)]);
        let after =
            Errors(vec![("symbol_error", 3.0), ("packet_seq_err", 9.0), ("rcvd_seq_err", 2.0), ("send_err", 1.0)]);
        assert_eq!(after.since(&before), "counters=3 packet_seq_err=+2 rcvd_seq_err=+2");
        assert_eq!(Errors::default().since(&before), "counters=0");
    }
}
