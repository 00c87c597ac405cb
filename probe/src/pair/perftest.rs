//! What do two nodes reach over RDMA, asked of perftest's `ib_write_bw` on the nodes?
//!
//! The control connection of the visit keeps both ends in step and carries port and result: perftest itself knows no secret,
//! so its server lives for one measurement only. It tells a mean, so a direction is one value.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv6Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::counters;
use super::meet::{Limit, Links, TICK, give, take};
use crate::steps::Halt;

/// Program of perftest.
const PROGRAM: &str = "ib_write_bw";
/// Bytes of a message between two nodes.
const MESSAGE: u32 = 65_536;
/// Looks this often whether the server listens: what it says stays in its buffer.
const LOOK: Duration = Duration::from_millis(20);
/// Most that is read of what it says.
const OUTPUT: u64 = 64 << 10;
/// Perftest counts decimal bits where `--report_gbits` is given.
const GBIT: f64 = 1e9 / 8.0;
const DEVICES: &str = "/sys/class/infiniband";

/// Whether perftest is on this node.
pub(crate) fn installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file())
}

/// Abilities that a node tells of: an RDMA device, and perftest.
pub(crate) fn abilities() -> Vec<String> {
    let device = fs::read_dir(DEVICES).is_ok_and(|mut entries| entries.next().is_some());
    let named = [(device, muster_wire::RDMA), (installed(), muster_wire::PERFTEST)];
    named.into_iter().filter(|(has, _)| *has).map(|(_, name)| name.to_owned()).collect()
}

/// A port of an RDMA device, and the entry of its address table, as perftest wants them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) device: String,
    pub(crate) port: String,
    /// Nothing on InfiniBand, which is addressed by LID.
    pub(crate) gid: Option<String>,
}

/// The port that `address` belongs to: by the table of addresses, RoCE v2 before others; on InfiniBand by the adapter of its
/// interface.
fn port(devices: &Path, address: IpAddr, interface: &str) -> Option<Port> {
    let wanted = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut found: Vec<(bool, Port)> = Vec::new();
    for device in entries(devices) {
        let ports = devices.join(&device).join("ports");
        for port in entries(&ports) {
            for gid in entries(&ports.join(&port).join("gids")) {
                if told(&ports.join(&port).join("gids").join(&gid)).parse::<Ipv6Addr>() == Ok(wanted) {
                    let other = told(&ports.join(&port).join("gid_attrs/types").join(&gid)) != "RoCE v2";
                    found.push((other, Port { device: device.clone(), port: port.clone(), gid: Some(gid) }));
                }
            }
        }
        if !interface.is_empty() && devices.join(&device).join("device/net").join(interface).exists() {
            found.push((true, Port { device, port: "1".to_owned(), gid: None }));
        }
    }
    found.into_iter().min_by_key(|(other, port)| (*other, port.gid.is_none())).map(|(_, port)| port)
}

fn entries(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = found.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names
}

fn told(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Receives: runs the server, tells its port, and hears from the other end what arrived, bytes per second.
pub(super) fn serve(links: &mut Links, local: IpAddr, seconds: u32, limit: &Limit<'_>) -> Result<f64, Halt> {
    let start = |free| Running::start(&of(local)?, free, (MESSAGE, seconds), None).map(|run| (free, run));
    let mut server = free(local).and_then(start);
    let ready =
        server.as_mut().map_err(|halt| halt.clone()).and_then(|(free, run)| run.waits(*free, limit).map(|()| *free));
    give(&mut links.control, &ready.as_ref().copied().unwrap_or(0).to_be_bytes(), limit)?;
    ready?;
    let mut seen = [0; 8];
    take(&mut links.control, &mut seen, limit)?;
    Some(f64::from_be_bytes(seen))
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| Halt::Failed(format!("the other end's {PROGRAM} failed")))
}

/// Sends: runs the client once the other end's server waits, and tells it what perftest measured.
pub(super) fn send(
    links: &mut Links,
    (local, remote): (IpAddr, IpAddr),
    seconds: u32,
    limit: &Limit<'_>,
) -> Result<(), Halt> {
    let mut port = [0; 2];
    take(&mut links.control, &mut port, limit)?;
    let port = u16::from_be_bytes(port);
    if port == 0 {
        return Err(Halt::Failed(format!("the other end's {PROGRAM} does not listen")));
    }
    let client = of(local).and_then(|own| Running::start(&own, port, (MESSAGE, seconds), Some(remote)));
    let measured = client.and_then(|mut run| run.result(limit));
    let rate = measured.as_ref().copied().unwrap_or(f64::NAN);
    give(&mut links.control, &rate.to_be_bytes(), limit)?;
    measured.map(drop)
}

/// Lets a port write to itself, server and client on this node, which meet at `local`: messages of so many bytes for so many
/// seconds; mean bytes per second.
pub(crate) fn alone(local: IpAddr, port: &Port, what: (u32, u32), limit: &Limit<'_>) -> Result<f64, Halt> {
    let tcp = free(local)?;
    let mut server = Running::start(port, tcp, what, None)?;
    server.waits(tcp, limit)?;
    Running::start(port, tcp, what, Some(local))?.result(limit)
}

/// The RDMA port that has the address `local`.
fn of(local: IpAddr) -> Result<Port, Halt> {
    let interface = counters::interface(local).unwrap_or_default();
    port(Path::new(DEVICES), local, &interface)
        .ok_or_else(|| Halt::Failed(format!("no RDMA device has the address {local}")))
}

/// A TCP port that nobody uses just now.
fn free(local: IpAddr) -> Result<u16, Halt> {
    let failed = |e: std::io::Error| Halt::Failed(format!("no free port on {local}: {e}"));
    TcpListener::bind((local, 0)).and_then(|listener| listener.local_addr()).map(|at| at.port()).map_err(failed)
}

/// Perftest at work; killed when it is no longer wanted.
struct Running {
    child: Child,
    lines: Receiver<String>,
    last: String,
    /// Bytes of a message.
    message: u32,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only where it ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// The server, or the client of `peer`.
    fn start(
        Port { device, port, gid }: &Port,
        tcp: u16,
        (message, seconds): (u32, u32),
        peer: Option<IpAddr>,
    ) -> Result<Self, Halt> {
        let [tcp, size, seconds] = [tcp.into(), message, seconds].map(|number: u32| number.to_string());
        let mut command = Command::new(PROGRAM);
        command.args(["-d", device, "-i", port, "-p", &tcp, "-s", &size, "-F", "--report_gbits", "-D", &seconds]);
        if let Some(gid) = gid {
            command.args(["-x", gid]);
        }
        command.args(peer.map(|peer| peer.to_string()));
        let failed = |e: std::io::Error| Halt::Failed(format!("cannot start {PROGRAM}: {e}"));
        let mut child = command
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (post, lines) = channel();
        for stream in [child.stdout.take().map(boxed), child.stderr.take().map(boxed)].into_iter().flatten() {
            let post = post.clone();
            thread::spawn(move || {
                let lines = BufReader::new(stream.take(OUTPUT)).lines();
                let _ = lines.map_while(Result::ok).try_for_each(|line| post.send(line));
            });
        }
        Ok(Self { child, lines, last: String::new(), message })
    }

    /// The next line; none once it has ended.
    fn line(&mut self, limit: &Limit<'_>) -> Result<Option<String>, Halt> {
        loop {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => {
                    if !line.trim().is_empty() && !line.starts_with('-') {
                        line.trim().clone_into(&mut self.last);
                    }
                    return Ok(Some(line));
                }
                Err(RecvTimeoutError::Timeout) => limit.check()?,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    fn ended(&self) -> Halt {
        Halt::Failed(format!("{PROGRAM} ended early: {}", self.last))
    }

    /// Returns once the server listens on `tcp`.
    fn waits(&mut self, tcp: u16, limit: &Limit<'_>) -> Result<(), Halt> {
        while !["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| listens(&told(Path::new(table)), tcp)) {
            limit.check()?;
            if !matches!(self.child.try_wait(), Ok(None)) {
                while self.line(limit)?.is_some() {}
                return Err(self.ended());
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Mean bytes per second that the client tells.
    fn result(&mut self, limit: &Limit<'_>) -> Result<f64, Halt> {
        let mut table = false;
        while let Some(line) = self.line(limit)? {
            if table && let Some(rate) = average(&line, self.message) {
                return Ok(rate);
            }
            table |= line.trim_start().starts_with("#bytes") && line.contains("BW average[Gb/sec]");
        }
        Err(self.ended())
    }
}

fn boxed(stream: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(stream)
}

/// Whether the kernel's table of connections has a listener on `port`.
fn listens(table: &str, port: u16) -> bool {
    let (port, listening) = (format!(":{port:04X}"), "0A");
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some(listening)
    })
}

/// Bytes per second in a row `#bytes #iterations peak average …` of Gbit/s.
fn average(row: &str, message: u32) -> Option<f64> {
    let mut words = row.split_whitespace();
    (words.next()?.parse() == Ok(message)).then_some(())?;
    let rate: f64 = words.nth(2)?.parse().ok()?;
    (rate.is_finite() && rate > 0.0 && rate < 1e6).then_some(rate * GBIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of perftest 4.5 over soft-RoCE, shortened.
    const CLIENT: &str = "\
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : rxe0
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      2100             0.00               0.55   \t\t   0.001050
---------------------------------------------------------------------------------------
";

    #[test]
    fn the_average_is_read_and_nothing_else_is_taken_for_it() {
        let rates: Vec<f64> = CLIENT.lines().filter_map(|line| average(line, MESSAGE)).collect();
        assert_eq!(rates, [0.55e9 / 8.0]);
        for wrong in
            ["65536 100 0.0 nan 0.1", "65536 100 0.0 -1 0.1", "65536 100", "4096 1 2 3 4", "65536 1 0 1e9 0", ""]
        {
            assert_eq!(average(wrong, MESSAGE), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_listener_on_the_port_counts() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue
   0: 0100007F:4965 00000000:0000 0A 00000000:00000000 00:00000000
   1: 0100007F:4966 0100007F:4965 01 00000000:00000000 00:00000000";
        assert_eq!([0x4965, 0x4966, 0x4967].map(|port| listens(table, port)), [true, false, false]);
    }

    #[test]
    fn the_entry_with_the_address_is_chosen_and_roce_v2_before_v1() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        for (gid, address, kind) in [
            ("0", "fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2"),
            ("2", "0000:0000:0000:0000:0000:ffff:0a00:0001", "IB/RoCE v1"),
            ("10", "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2"),
        ] {
            write(&format!("mlx5_1/ports/1/gids/{gid}"), &format!("{address}\n"));
            write(&format!("mlx5_1/ports/1/gid_attrs/types/{gid}"), &format!("{kind}\n"));
        }
        write("mlx5_0/device/net/ib0/mtu", "2044\n");
        let of = |address: &str, interface| port(root.path(), address.parse().unwrap(), interface);
        let named = |device: &str, gid: Option<&str>| {
            Some(Port { device: device.into(), port: "1".into(), gid: gid.map(str::to_owned) })
        };
        assert_eq!(of("10.0.0.1", "eth0"), named("mlx5_1", Some("10")));
        assert_eq!(of("10.0.0.9", "ib0"), named("mlx5_0", None));
        assert_eq!(of("10.0.0.9", "eth0"), None);
    }
}
