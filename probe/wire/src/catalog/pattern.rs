//! Whether a name is one of a pattern's, and which component it names.

/// Components in a name: their numbers (none, one, or two for a link), or the RDMA port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub(super) first: Option<u32>,
    pub(super) second: Option<u32>,
    /// Adapter and number of the port.
    pub(super) port: Option<(&'a str, u32)>,
}

impl Named<'_> {
    fn push(&mut self, number: u32) {
        if self.first.is_none() {
            self.first = Some(number);
        } else if self.second.is_none() {
            self.second = Some(number);
        }
    }
}

/// The components in `name`; `None` where it is not of this pattern.
pub(super) fn matches<'a>(pattern: &str, name: &'a str) -> Option<Named<'a>> {
    let mut named = Named::default();
    let (mut pattern, mut name) = (pattern, name);
    while let Some((literal, rest)) = pattern.split_once('{') {
        let (placeholder, rest) = rest.split_once('}')?;
        name = name.strip_prefix(literal)?;
        if placeholder == "port" {
            named.port = Some(port(name)?);
            (pattern, name) = (rest, "");
            continue;
        }
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        let number: u32 = name[..digits].parse().ok()?;
        name = &name[digits..];
        match placeholder {
            "core" | "gpu" => named.push(number),
            "size" => name = ["KiB", "MiB", "GiB"].into_iter().find_map(|unit| name.strip_prefix(unit))?,
            _ => {}
        }
        pattern = rest;
    }
    (pattern == name).then_some(named)
}

/// An adapter and one of its ports, which a name ends with: `mlx5_0:1`.
fn port(name: &str) -> Option<(&str, u32)> {
    let (adapter, number) = name.split_once(':')?;
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let plain = number.bytes().all(|byte| byte.is_ascii_digit());
    (!adapter.is_empty() && adapter.bytes().all(known) && plain).then_some((adapter, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_of_its_pattern_alone() {
        let of = |first, second| Some(Named { first, second, port: None });
        let port = |adapter| Some(Named { port: Some((adapter, 1)), ..Named::default() });
        for (pattern, name, expected) in [
            ("triad", "triad", of(None, None)),
            ("triad", "triad-1t", None),
            ("triad-1t", "triad", None),
            ("speed:core{core}", "speed:core17", of(Some(17), None)),
            ("speed:core{core}", "speed:core", None),
            ("speed:core{core}", "speed:core1x", None),
            ("core_{core}_flops", "core_3_flops", of(Some(3), None)),
            ("gpu{gpu}-to-gpu{gpu}", "gpu7-to-gpu0", of(Some(7), Some(0))),
            ("all-reduce-{size}", "all-reduce-16MiB", of(None, None)),
            ("all-reduce-{size}", "all-reduce-16", None),
            ("{size}", "4GiB", of(None, None)),
            ("rtt-{n}", "rtt-4096", of(None, None)),
            ("copy:{gpu}", "copy:99999999999999999999", None),
            ("write-{size}:{port}", "write-8MiB:mlx5_0:1", port("mlx5_0")),
            ("write-{size}:{port}", "write-8MiB:rocep1s0f0-b.2:1", port("rocep1s0f0-b.2")),
            ("write-{size}:{port}", "write-8MiB:mlx5_0", None),
            ("write-{size}:{port}", "write-8MiB:mlx5_0:", None),
            ("write-{size}:{port}", "write-8MiB::1", None),
            ("write-{size}:{port}", "write-8MiB:mlx5/0:1", None),
            ("write-{size}:{port}", "write-8MiB:mlx5_0:+1", None),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn no_name_is_too_strange(name in "\\PC{0,40}") {
            for pattern in ["gpu{gpu}-to-gpu{gpu}", "{size}", "{port}", "x{broken"] {
                let _ = matches(pattern, &name);
            }
        }
    }
}
