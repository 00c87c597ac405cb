//! Of which node is a series?

use std::collections::BTreeMap;

use muster_wire::{clean, limits};

/// Labels that name a node, the surest first: an exporter's own word before the address at which it was asked.
const NODE: [&str; 6] = ["Hostname", "nodename", "node", "hostname", "kubernetes_node", "instance"];
/// Says which host name belongs to an address.
pub(super) const UNAME: &str = "node_uname_info";

/// Whether a series' node is read from this label.
pub(super) fn names(label: &str) -> bool {
    NODE.contains(&label)
}

/// The node's name; `None` where no label has one.
pub(super) fn node(labels: &BTreeMap<String, String>) -> Option<String> {
    let (label, value) =
        NODE.iter().find_map(|label| Some((*label, labels.get(*label).filter(|value| !value.is_empty())?)))?;
    let name = if label == "instance" { host(value) } else { value };
    let name = clean(name, limits::NAME_BYTES);
    (!name.is_empty()).then_some(name)
}

/// The address of a `node_uname_info`, and the host name that belongs to it.
pub(super) fn alias(labels: &BTreeMap<String, String>) -> Option<(String, String)> {
    let (address, name) = (labels.get("instance")?, labels.get("nodename").filter(|name| !name.is_empty())?);
    Some((clean(host(address), limits::NAME_BYTES), clean(name, limits::NAME_BYTES)))
}

/// Without the port, and without the brackets of an IPv6 address.
fn host(instance: &str) -> &str {
    let (host, port) = instance.rsplit_once(':').unwrap_or((instance, ""));
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    // `fe80::1` ends in no port.
    let host = if is_port && (!host.contains(':') || host.ends_with(']')) { host } else { instance };
    host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host)
}

/// The exporter that has a name: what is before the first underscore.
pub(super) fn exporter(name: &str) -> &str {
    name.split('_').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_called_as_its_exporter_calls_it_and_else_by_its_address_without_the_port() {
        let of = |labels: &[(&str, &str)]| {
            node(&labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(of(&[("instance", "10.0.0.7:9400"), ("Hostname", "n07")]).as_deref(), Some("n07"));
        assert_eq!(of(&[("instance", "n07.hall:9100")]).as_deref(), Some("n07.hall"));
        assert_eq!(of(&[("instance", "n07")]).as_deref(), Some("n07"));
        assert_eq!(of(&[("instance", "[fe80::1]:9100")]).as_deref(), Some("fe80::1"));
        assert_eq!(of(&[("instance", "fe80::1")]).as_deref(), Some("fe80::1"));
        assert_eq!(of(&[("instance", "n\u{1b}[31m7:9100")]).map(|name| name.contains('\u{1b}')), Some(false));
        assert_eq!(of(&[("job", "node")]), None);
    }
}
