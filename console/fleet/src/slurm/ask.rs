//! What do Slurm's own programs answer on this machine? Each gets ten seconds, and no more of an answer is read than fits.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use muster_wire::clean;

use super::{Listed, Malformed, from_json, from_text, leaves};
use crate::inventory::Inventory;

/// How long a program may take; one whose controller does not answer waits for minutes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer about nodes that are read: 65,533 of them at one kilobyte each.
const MOST: u64 = 128 << 20;

/// What a program said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is not installed here.
    Absent,
    /// It ended well.
    Text(String),
    /// It did not, in its words.
    Failed(String),
}

/// Runs one of Slurm's programs and reads at most `most` bytes; a longer answer is a failure, never a shorter answer.
#[must_use]
pub fn ask(program: &str, arguments: &[&str], most: u64) -> Said {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Said::Absent,
        Err(why) => return Said::Failed(why.to_string()),
    };
    let (out, err) =
        (child.stdout.take().map(|out| read(out, most)), child.stderr.take().map(|err| read(err, 1 << 16)));
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Said::Failed(format!("no answer within {} s", PATIENCE.as_secs()));
            }
        }
    };
    let bytes =
        |reader: Option<thread::JoinHandle<Vec<u8>>>| reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let (out, err) = (bytes(out), String::from_utf8_lossy(&bytes(err)).into_owned());
    if out.len() as u64 > most {
        return Said::Failed(format!("its answer is longer than {} kB", most >> 10));
    }
    if status.success() {
        return Said::Text(String::from_utf8_lossy(&out).into_owned());
    }
    let words = err.lines().find(|line| !line.trim().is_empty()).map(|line| clean(line.trim(), 200));
    Said::Failed(words.unwrap_or_else(|| status.to_string()))
}

fn read(from: impl Read + Send + 'static, most: u64) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut from = from.take(most + 1);
        let _ = from.read_to_end(&mut bytes);
        // A writer that nobody reads would never end.
        let _ = std::io::copy(&mut from.into_inner(), &mut std::io::sink());
        bytes
    })
}

/// How a reader takes an answer.
type Reader = fn(&str) -> Result<Vec<Listed>, Malformed>;

/// The ways to ask for all nodes, the best first: scontrol speaks JSON since 23.02, sinfo in 22.05 and 21.08, and a Slurm
/// without its JSON plugin speaks text.
const WAYS: [(&str, &[&str], Reader); 3] = [
    ("scontrol", &["-a", "show", "nodes", "--json"], from_json),
    ("sinfo", &["-a", "--json"], from_json),
    ("scontrol", &["-a", "-o", "show", "nodes"], from_text),
];

/// All nodes that Slurm has.
///
/// # Errors
/// When it is not there or does not tell, in its words.
pub fn listed() -> Result<Vec<Listed>, String> {
    let mut why = None;
    for (program, arguments, reader) in WAYS {
        match ask(program, arguments, MOST) {
            Said::Absent => why = why.or_else(|| Some(format!("{program} is not on the PATH of this machine"))),
            Said::Failed(words) => why = Some(format!("{program}: {words}")),
            Said::Text(text) => match reader(&text) {
                Ok(nodes) if !nodes.is_empty() => return Ok(nodes),
                Ok(_) => why = Some(format!("{program} lists no node")),
                Err(malformed) => why = Some(format!("{program}: {malformed}")),
            },
        }
    }
    Err(format!("Slurm does not list its nodes: {}", why.unwrap_or_default()))
}

/// The inventory that Slurm has: nodes, and their leaf switches where it knows a topology.
///
/// # Errors
/// As [`listed`].
pub fn scan() -> Result<Inventory, String> {
    let nodes = listed()?;
    // A Slurm without a topology says so and fails; then nobody has a leaf.
    let leaves = match ask("scontrol", &["show", "topology"], MOST) {
        Said::Text(text) => leaves(&text),
        Said::Absent | Said::Failed(_) => BTreeMap::new(),
    };
    Ok(Inventory::from_slurm(&nodes, &leaves))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_says_why_and_one_that_says_too_much_is_not_believed() {
        assert_eq!(ask("no-such-program-of-slurm", &[], 10), Said::Absent);
        assert_eq!(ask("sh", &["-c", "echo 12345"], 6), Said::Text("12345\n".to_owned()));
        assert!(matches!(ask("sh", &["-c", "echo 123456"], 6), Said::Failed(_)));
        let failed = ask("sh", &["-c", "echo; echo 'slurm_load_node error: x' >&2; exit 1"], 100);
        assert_eq!(failed, Said::Failed("slurm_load_node error: x".to_owned()));
    }
}
