//! Where exactly does a node's connection go? Inventory first, then the SSH configuration, then the defaults.

use std::path::{Path, PathBuf};

use crate::inventory::Node;
use crate::settings::{Settings, home};

/// A connection's end, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The name used in messages.
    pub(crate) node: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    /// Keys named for this node; the defaults when empty.
    pub(crate) identities: Vec<PathBuf>,
    /// Hops, outermost first; empty for a direct connection.
    pub(crate) jump: Vec<String>,
    /// The name under which the host key is recorded.
    pub(crate) key_name: String,
}

impl Target {
    pub(crate) fn of(node: &Node, settings: &Settings) -> Self {
        Self {
            node: node.name.clone(),
            host: node.host.clone(),
            port: if node.port == 0 { 22 } else { node.port },
            user: node.user.clone().unwrap_or_else(|| settings.user.clone()),
            identities: node.identity.iter().map(|path| expand(path)).collect(),
            jump: hops(node.jump.as_deref()),
            key_name: node.host.clone(),
        }
    }

    /// The target of one hop, `[user@]host[:port]`.
    pub(crate) fn hop(hop: &str, settings: &Settings) -> Self {
        let (user, rest) = match hop.rsplit_once('@') {
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (None, hop),
        };
        let (host, port) = split_port(rest);
        let node = Node { name: hop.to_owned(), host, port, user, ..Node::default() };
        Self::of(&node, settings)
    }
}

/// `none` switches jumping off, as in OpenSSH.
fn hops(jump: Option<&str>) -> Vec<String> {
    let jump = jump.unwrap_or_default();
    if jump.eq_ignore_ascii_case("none") {
        return Vec::new();
    }
    jump.split(',').map(str::trim).filter(|hop| !hop.is_empty()).map(str::to_owned).collect()
}

fn split_port(text: &str) -> (String, u16) {
    if let Some(rest) = text.strip_prefix('[')
        && let Some((host, after)) = rest.split_once(']')
    {
        let port = after.strip_prefix(':').and_then(|port| port.parse().ok()).unwrap_or(0);
        return (host.to_owned(), port);
    }
    match text.rsplit_once(':') {
        // More than one colon without brackets is an IPv6 address.
        Some((host, port)) if !host.contains(':') => match port.parse() {
            Ok(port) => (host.to_owned(), port),
            Err(_) => (text.to_owned(), 0),
        },
        _ => (text.to_owned(), 0),
    }
}

/// `~` and `~/…` under `$HOME`.
fn expand(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_give_user_host_and_port() {
        let settings = Settings { user: "me".into(), ..Settings::default() };
        let hop = Target::hop("ops@bastion:2200", &settings);
        assert_eq!((hop.user.as_str(), hop.host.as_str(), hop.port), ("ops", "bastion", 2200));
        let hop = Target::hop("[fe80::1]:2200", &settings);
        assert_eq!((hop.user.as_str(), hop.host.as_str(), hop.port), ("me", "fe80::1", 2200));
        assert_eq!(Target::hop("fe80::1", &settings).host, "fe80::1");
    }

    #[test]
    fn a_jump_of_none_is_no_jump() {
        assert!(hops(Some("none")).is_empty());
        assert_eq!(hops(Some("a, b@c:1")), ["a", "b@c:1"]);
    }
}
