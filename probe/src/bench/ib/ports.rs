//! Which RDMA ports this node has, which of them can write to themselves, and by which address.

use std::net::Ipv6Addr;

use crate::collect::{RDMA, Root, word};
use crate::pair::perftest;

/// Adapters and ports of each that are looked at, and entries of a port's table of addresses.
const ADAPTERS: usize = 64;
const PORTS: usize = 4;
const GIDS: usize = 256;
const PCI: &str = "/sys/bus/pci/devices";

/// A port that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    adapter: String,
    number: String,
    /// Nothing on InfiniBand, which is addressed by LID.
    gid: Option<Gid>,
    /// CPUs near the adapter, as the kernel lists them; empty where it does not say.
    cpus: String,
    /// The GPU that is nearest on the bus, by its number there.
    gpu: Option<usize>,
}

/// An entry of a port's table of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Gid {
    index: usize,
    /// `RoCE v2`, `IB/RoCE v1`.
    kind: String,
    address: Ipv6Addr,
}

/// All ports as `mlx5_0/1`, each with what is needed to measure it, or with why that cannot be.
pub(super) fn find(root: &Root) -> Vec<(String, Result<Port, String>)> {
    let mut found = Vec::new();
    let names = |path: &str| root.names(path).value().cloned().unwrap_or_default();
    for adapter in names(RDMA).into_iter().take(ADAPTERS) {
        for number in names(&format!("{RDMA}/{adapter}/ports")).into_iter().take(PORTS) {
            found.push((format!("{adapter}/{number}"), Port::look(root, &adapter, &number)));
        }
    }
    found
}

impl Port {
    fn look(root: &Root, adapter: &str, number: &str) -> Result<Self, String> {
        let text = |file: &str| root.text(&format!("{RDMA}/{adapter}/{file}")).value().cloned().unwrap_or_default();
        let of_port = |file: &str| text(&format!("ports/{number}/{file}"));
        let state = word(of_port("state"));
        if state != "ACTIVE" {
            let physical = word(of_port("phys_state"));
            return Err(format!("is {} ({})", told(&state), told(&physical)));
        }
        if word(text("node_type")) == "RNIC" {
            return Err("speaks iWARP, which has no queue pairs without a connection manager".to_owned());
        }
        let gid = match of_port("link_layer").as_str() {
            "InfiniBand" => None,
            "Ethernet" => Some(gid(root, &format!("{RDMA}/{adapter}/ports/{number}"))),
            other => return Err(format!("has link layer {}, whose adapters cannot write to themselves", told(other))),
        };
        let gid = gid.map(|gid| gid.ok_or("has no address: its table of GIDs is empty")).transpose()?;
        let (adapter, number) = (adapter.to_owned(), number.to_owned());
        let gpu = nearest(root, &format!("{RDMA}/{adapter}/device"));
        Ok(Self { cpus: text("device/local_cpulist"), adapter, number, gid, gpu })
    }

    /// Adapter, port, index of its GID or `-`, CPUs, and GPU or `-`: words of the worker's command line.
    pub(super) fn words(&self) -> [String; 5] {
        let number = |of: Option<usize>| of.map_or("-".to_owned(), |number| number.to_string());
        let (gid, gpu) = (number(self.gid.as_ref().map(|gid| gid.index)), number(self.gpu));
        [self.adapter.clone(), self.number.clone(), gid, self.cpus.clone(), gpu]
    }

    /// The end of its metrics' names, `mlx5_0:1`.
    pub(super) fn suffix(&self) -> String {
        format!("{}:{}", self.adapter, self.number)
    }

    /// Where its files are.
    pub(super) fn folder(&self) -> String {
        format!("{RDMA}/{}/ports/{}", self.adapter, self.number)
    }

    /// By what it is addressed.
    pub(super) fn address(&self) -> String {
        let gid = |Gid { index, kind, address }: &Gid| {
            format!("gid={index} type={} address={address}", kind.replace(' ', "-"))
        };
        self.gid.as_ref().map_or("lid".to_owned(), gid)
    }

    pub(super) fn of_perftest(&self) -> perftest::Port {
        let gid = self.gid.as_ref().map(|gid| gid.index.to_string());
        perftest::Port { device: self.adapter.clone(), port: self.number.clone(), gid }
    }
}

fn told(word: &str) -> &str {
    if word.is_empty() { "unknown" } else { word }
}

/// The GPU that shares most of its way on the bus with the device at `path`, by its number in the order of the bus, as the driver is
/// told to count them. Nothing without a GPU, or where they share nothing.
fn nearest(root: &Root, path: &str) -> Option<usize> {
    let way = |path: &str| root.path(path).canonicalize().ok();
    let own = way(path)?;
    let mut devices = root.names(PCI).value().cloned().unwrap_or_default();
    // Addresses are hexadecimal: by their value as decimal numbers they would be in another order.
    devices.sort_unstable();
    let says = |device: &str, file: &str, start: &str| {
        root.text(&format!("{PCI}/{device}/{file}")).value().is_some_and(|text| text.starts_with(start))
    };
    // Display controllers of vendor 10de.
    let gpus = devices.iter().filter(|device| says(device, "vendor", "0x10de") && says(device, "class", "0x03"));
    let shared = |device: &String| {
        let other = way(&format!("{PCI}/{device}"))?;
        Some(own.components().zip(other.components()).take_while(|(a, b)| a == b).count())
    };
    let root_ports = own.components().position(|part| part.as_os_str().to_string_lossy().starts_with("pci"))?;
    let found = gpus.enumerate().filter_map(|(index, device)| Some((shared(device)?, index)));
    found
        .filter(|(shared, _)| *shared > root_ports)
        .max_by_key(|(shared, index)| (*shared, usize::MAX - index))
        .map(|(_, index)| index)
}

/// The entry to use: RoCE v2 before others, which no router forwards; then an IPv4 address before others, and link-local ones last.
fn gid(root: &Root, port: &str) -> Option<Gid> {
    let names = root.names(&format!("{port}/gids")).value().cloned().unwrap_or_default();
    let read = |name: String| {
        let address: Ipv6Addr = root.text(&format!("{port}/gids/{name}")).value()?.parse().ok()?;
        let kind = root.text(&format!("{port}/gid_attrs/types/{name}")).value().cloned().unwrap_or_default();
        (!address.is_unspecified()).then_some(Gid { index: name.parse().ok()?, kind, address })
    };
    let rank = |gid: &Gid| {
        let local = gid.address.is_unicast_link_local();
        (gid.kind != "RoCE v2", local, gid.address.to_ipv4_mapped().is_none(), gid.index)
    };
    names.into_iter().take(GIDS).filter_map(read).min_by_key(rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::Tree;

    const EMPTY: &str = "0000:0000:0000:0000:0000:0000:0000:0000\n";

    fn only(files: &[(&str, &str)]) -> Result<Port, String> {
        let tree = Tree::new(files);
        let mut found = find(&Root::at(tree.path()));
        assert_eq!(found.len(), 1);
        found.remove(0).1
    }

    #[test]
    fn an_infiniband_port_is_addressed_by_lid_and_measured_near_its_adapter() {
        let port = only(&[
            ("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n"),
            ("/sys/class/infiniband/mlx5_0/device/local_cpulist", "0-31,64-95\n"),
            ("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
            ("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
            ("/sys/class/infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:946d:ae03:0000:0001\n"),
        ])
        .unwrap();
        assert_eq!(port.words(), ["mlx5_0", "1", "-", "0-31,64-95", "-"]);
        assert_eq!((port.suffix(), port.address()), ("mlx5_0:1".to_owned(), "lid".to_owned()));
    }

    #[test]
    fn a_roce_port_uses_version_two_and_an_address_that_is_routed() {
        let port = "/sys/class/infiniband/mlx5_bond_0/ports/1";
        let file = |rest: &str| format!("{port}/{rest}");
        let files = [
            (file("state"), "4: ACTIVE\n"),
            (file("link_layer"), "Ethernet\n"),
            (file("gids/0"), "fe80:0000:0000:0000:0000:0000:0000:0001\n"),
            (file("gid_attrs/types/0"), "RoCE v2\n"),
            (file("gids/2"), "0000:0000:0000:0000:0000:ffff:0a00:0001\n"),
            (file("gid_attrs/types/2"), "IB/RoCE v1\n"),
            (file("gids/10"), "0000:0000:0000:0000:0000:ffff:0a00:0001\n"),
            (file("gid_attrs/types/10"), "RoCE v2\n"),
            (file("gids/11"), EMPTY),
            (file("gid_attrs/types/11"), "RoCE v2\n"),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = only(&files).unwrap();
        assert_eq!(found.words(), ["mlx5_bond_0", "1", "10", "", "-"]);
        assert_eq!(found.address(), "gid=10 type=RoCE-v2 address=::ffff:10.0.0.1");
    }

    #[test]
    fn the_gpu_behind_the_same_switch_is_the_nearest() {
        let gpu = |way: &str| [(format!("{way}/vendor"), "0x10de\n"), (format!("{way}/class"), "0x030200\n")];
        let ways = [
            "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0",
            "/sys/devices/pci0000:37/0000:37:01.0/0000:38:00.0/0000:39:00.0/0000:3a:00.0",
            "/sys/devices/pci0000:37/0000:37:01.0/0000:38:00.0/0000:39:01.0/0000:3b:00.0",
        ];
        let mut files: Vec<(String, &str)> = ways.iter().flat_map(|way| gpu(way)).collect();
        let adapter = "/sys/devices/pci0000:37/0000:37:01.0/0000:38:00.0/0000:39:01.0/0000:3c:00.0";
        files.push((format!("{adapter}/vendor"), "0x15b3\n"));
        files.push(("/sys/devices/pci0000:80/0000:81:00.0/vendor".to_owned(), "0x15b3\n"));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let tree = Tree::new(&files);
        let bus = tree.path().join("sys/bus/pci/devices");
        std::fs::create_dir_all(&bus).unwrap();
        for way in ways.iter().chain([&adapter]) {
            let name = way.rsplit('/').next().unwrap();
            std::os::unix::fs::symlink(format!("../../../..{way}"), bus.join(name)).unwrap();
        }
        let root = Root::at(tree.path());
        assert_eq!(nearest(&root, &format!("{PCI}/0000:3c:00.0")), Some(2));
        assert_eq!(nearest(&root, "/sys/devices/pci0000:80/0000:81:00.0"), None);
        assert_eq!(nearest(&root, "/sys/class/infiniband/rxe0/device"), None);
    }

    #[test]
    fn a_port_that_cannot_write_to_itself_says_why() {
        let of = |state: &str, kind: &str, layer: &str, gid: &str| {
            only(&[
                ("/sys/class/infiniband/d/node_type", kind),
                ("/sys/class/infiniband/d/ports/1/state", state),
                ("/sys/class/infiniband/d/ports/1/phys_state", "2: Polling\n"),
                ("/sys/class/infiniband/d/ports/1/link_layer", layer),
                ("/sys/class/infiniband/d/ports/1/gids/0", gid),
            ])
            .unwrap_err()
        };
        assert_eq!(of("1: DOWN\n", "1: CA\n", "InfiniBand\n", EMPTY), "is DOWN (Polling)");
        assert!(of("4: ACTIVE\n", "4: RNIC\n", "Ethernet\n", EMPTY).starts_with("speaks iWARP"));
        assert!(of("4: ACTIVE\n", "1: CA\n", "Ethernet\n", EMPTY).starts_with("has no address"));
        assert!(of("4: ACTIVE\n", "7: <unknown>\n", "Unspecified\n", EMPTY).starts_with("has link layer Unspecified"));
        assert_eq!(of("\n", "\n", "\n", EMPTY), "is unknown (Polling)");
    }

    #[test]
    fn a_node_without_adapters_has_no_port() {
        assert_eq!(find(&Root::at(Tree::new(&[]).path())), []);
    }
}
