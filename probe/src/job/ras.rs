//! What does NCCL's RAS say? Asked once, in the protocol's own words, with every answer bounded in bytes and time.
//!
//! `docs/userguide/source/troubleshooting/ras.rst` of NCCL: text commands, an answer, and the server closes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Where RAS listens unless the environment says otherwise.
pub(super) const PORT: u16 = 28_028;
/// Seconds that RAS is told to wait for its ranks.
const ASKED_S: u32 = 5;
const CONNECT: Duration = Duration::from_secs(2);
/// Longest wait for everything; tests hear servers that say nothing.
const LIMIT: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 15 });
/// Most bytes of an answer, and of a line before it.
const ANSWER: u64 = 8 << 20;
const LINE: u64 = 512;

/// Where the RAS of a process is, from `NCCL_RAS_ADDR`; only on this machine.
pub(super) fn address(word: Option<&str>, own: &[IpAddr]) -> Result<SocketAddr, String> {
    let Some(word) = word.map(str::trim).filter(|word| !word.is_empty()) else {
        return Ok((Ipv4Addr::LOCALHOST, PORT).into());
    };
    let by_name = word.strip_prefix("localhost").map(|rest| format!("127.0.0.1{rest}"));
    let word = by_name.as_deref().unwrap_or(word);
    let address = word.parse::<SocketAddr>().ok().or_else(|| Some((word.parse::<IpAddr>().ok()?, PORT).into()));
    match address {
        Some(address) if address.ip().is_loopback() || own.contains(&address.ip()) => Ok(address),
        Some(address) => Err(format!("NCCL_RAS_ADDR is {address}, which is not on this node: not asked")),
        None => Err(format!("NCCL_RAS_ADDR '{}' is no address: not asked", muster_wire::clean(word, 64))),
    }
}

/// One answer, in JSON where this version of NCCL has it.
pub(super) fn ask(address: SocketAddr) -> Result<Vec<u8>, String> {
    let until = Instant::now() + LIMIT;
    let mut client = Client::open(address, until).map_err(|why| format!("no RAS at {address}: {why}"))?;
    let talk = |client: &mut Client, json: bool| -> io::Result<bool> {
        client.command("CLIENT PROTOCOL 2")?;
        client.command(&format!("TIMEOUT {ASKED_S}"))?;
        Ok(!json || client.command("SET FORMAT json")?.eq_ignore_ascii_case("OK"))
    };
    let spoken = talk(&mut client, true);
    // Before 2.28.7 there is only the text, and some versions leave after a command that they do not know.
    if !matches!(spoken, Ok(true)) {
        client = Client::open(address, until).map_err(|why| format!("no RAS at {address}: {why}"))?;
        talk(&mut client, false).map_err(|why| format!("{address} does not answer as RAS does: {why}"))?;
    }
    client.status().map_err(|why| format!("RAS at {address}: {why}"))
}

struct Client {
    stream: BufReader<TcpStream>,
    until: Instant,
}

impl Client {
    fn open(address: SocketAddr, until: Instant) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECT)?;
        stream.set_write_timeout(Some(CONNECT))?;
        Ok(Self { stream: BufReader::new(stream), until })
    }

    /// The next read may take no longer than what is left.
    fn patience(&self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no end within {} s", LIMIT.as_secs())));
        }
        self.stream.get_ref().set_read_timeout(Some(left))
    }

    fn command(&mut self, command: &str) -> io::Result<String> {
        self.stream.get_mut().write_all(format!("{command}\n").as_bytes())?;
        self.patience()?;
        let mut line = String::new();
        self.stream.by_ref().take(LINE).read_line(&mut line)?;
        if !line.ends_with('\n') {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it left, or says more than a line"));
        }
        Ok(line.trim().to_owned())
    }

    fn status(&mut self) -> io::Result<Vec<u8>> {
        self.stream.get_mut().write_all(b"VERBOSE STATUS\n")?;
        let mut answer = Vec::new();
        let mut piece = [0; 16 << 10];
        loop {
            self.patience()?;
            match self.stream.read(&mut piece) {
                Ok(0) if answer.is_empty() => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it left without an answer"));
                }
                Ok(0) => return Ok(answer),
                Ok(count) => answer.extend_from_slice(&piece[..count]),
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) if matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(io::Error::new(
                        why.kind(),
                        format!("no end within {} s, after {} bytes", LIMIT.as_secs(), answer.len()),
                    ));
                }
                Err(why) => return Err(why),
            }
            if answer.len() as u64 > ANSWER {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "an answer of more than 8 MiB"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A server of some version: answers as long as it knows the commands.
    fn server(json: bool, leaves: bool, answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut stream = stream;
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 {
                        break;
                    }
                    let said = match line.trim() {
                        "VERBOSE STATUS" => {
                            let _ = stream.write_all(answer.as_bytes());
                            break;
                        }
                        line if line.starts_with("CLIENT") => "SERVER PROTOCOL 2",
                        line if line.starts_with("SET") && !json && leaves => break,
                        line if line.starts_with("SET") && !json => "ERROR: Unknown command",
                        _ => "OK",
                    };
                    if writeln!(stream, "{said}").is_err() {
                        break;
                    }
                }
            }
        });
        address
    }

    #[test]
    fn every_version_is_asked_in_words_that_it_knows() {
        for (json, leaves) in [(true, false), (false, false), (false, true)] {
            let answer = ask(server(json, leaves, "NCCL version 2.27\n")).unwrap();
            assert_eq!(answer, b"NCCL version 2.27\n", "{json} {leaves}");
        }
        assert!(ask(server(true, false, "")).unwrap_err().contains("without an answer"));
        let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        assert!(ask(nobody).unwrap_err().starts_with("no RAS at"));
    }

    #[test]
    fn a_job_cannot_send_the_probe_elsewhere() {
        let own: Vec<IpAddr> = vec!["10.0.0.7".parse().unwrap()];
        assert_eq!(address(None, &own).unwrap().to_string(), "127.0.0.1:28028");
        assert_eq!(address(Some("localhost:3"), &own).unwrap().to_string(), "127.0.0.1:3");
        assert_eq!(address(Some("10.0.0.7:4"), &own).unwrap().to_string(), "10.0.0.7:4");
        assert!(address(Some("10.0.0.8:22"), &own).unwrap_err().contains("not on this node"));
        assert!(address(Some("evil.example:80"), &own).unwrap_err().contains("no address"));
    }
}
