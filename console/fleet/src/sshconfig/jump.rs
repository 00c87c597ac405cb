//! Over which hosts is a node reached: `ProxyJump`?

/// One hop: `[user@]host[:port]` or `ssh://[user@]host[:port]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Jump {
    /// Login name, if given.
    pub user: Option<String>,
    /// Host name, address or alias.
    pub host: String,
    /// Port, if given.
    pub port: Option<u16>,
}

impl Jump {
    /// Reads hops separated by commas, the first to be reached first; `none` is no hop at all.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Vec::new());
        }
        text.split(',').map(|hop| Self::parse(hop.trim())).collect()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("jump host {text:?}: {what}; expected [user@]host[:port]");
        let bare = text.strip_prefix("ssh://").unwrap_or(text);
        let (user, place) = match bare.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, bare),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, after)) if after.is_empty() || after.starts_with(':') => (host, after.strip_prefix(':')),
            Some(_) => return Err(wrong("a name in brackets may be followed only by a port")),
            // Several colons without brackets are an IPv6 address.
            None => match place.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (place, None),
            },
        };
        let odd = |word: &str| {
            word.is_empty() || word.starts_with('-') || word.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        if odd(host) || user.is_some_and(odd) {
            return Err(wrong("the name is not one word"));
        }
        let port = match port {
            None => None,
            Some(port) => Some(port.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong("the port is not one"))?),
        };
        Ok(Self { user: user.map(str::to_owned), host: host.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_with_users_ports_and_addresses_are_read() {
        let hop =
            |user: Option<&str>, host: &str, port| Jump { user: user.map(str::to_owned), host: host.to_owned(), port };
        assert_eq!(
            Jump::parse_list("a, root@b:22,ssh://c,[fe80::1]:23,fe80::2,u@x@d").unwrap(),
            [
                hop(None, "a", None),
                hop(Some("root"), "b", Some(22)),
                hop(None, "c", None),
                hop(None, "fe80::1", Some(23)),
                hop(None, "fe80::2", None),
                hop(Some("u@x"), "d", None)
            ]
        );
        assert!(Jump::parse_list("none").unwrap().is_empty());
        for bad in ["", "a,,b", "a:0", "a:x", "@a", "-oX", "[a]x", "a b"] {
            assert!(Jump::parse_list(bad).is_err(), "{bad}");
        }
    }
}
