//! Asking processes for flight-recorder dumps: the only thing that is done to a job, and only when it was ordered.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::find::Found;
use super::process::{inside, user};
use super::words::is_own;
use crate::collect::Root;
use crate::watch::job::read;

/// Asks each rank that can be asked; what could not be done is said.
pub(super) fn ask(root: &Root, ranks: impl Iterator<Item = Found>) -> Vec<String> {
    let mut said = Vec::new();
    let (mut asked, mut without) = (0, 0);
    for found in ranks {
        let pipe = found.environment.as_ref().and_then(|words| {
            words.get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE").or_else(|| words.get("TORCH_FR_DUMP_PIPE_FILE"))
        });
        let result = match pipe {
            _ if is_own(&found.arguments) => signal(root, &found),
            Some(prefix) => write(root, &found, prefix),
            None => {
                without += 1;
                continue;
            }
        };
        match result {
            Ok(()) => asked += 1,
            Err(why) => said.push(format!("Process {}: not asked for a dump: {why}.", found.pid)),
        }
    }
    said.push(match (asked, without) {
        (0, 0) => "No process was asked for a dump.".to_owned(),
        (asked, 0) => format!("{asked} processes were asked for a flight-recorder dump."),
        (asked, without) => format!(
            "{asked} processes were asked for a flight-recorder dump; {without} have no pipe for it (TORCH_NCCL_DEBUG_INFO_PIPE_FILE)."
        ),
    });
    said
}

/// SIGUSR1, to a process that is still the same and catches it: others would die of it.
fn signal(root: &Root, found: &Found) -> Result<(), String> {
    let pid = i32::try_from(found.pid).ok().and_then(Pid::from_raw).ok_or("it has no number")?;
    let held = pidfd_open(pid, PidfdFlags::empty()).map_err(|why| why.to_string())?;
    if read(root, found.pid).is_none_or(|now| now.started != found.first.started) {
        return Err("it is gone".to_owned());
    }
    let status = root.text(&format!("/proc/{}/status", found.pid));
    let mask =
        |text: &String| text.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(|mask| mask.trim().to_owned());
    let caught = status.value().and_then(|text| u64::from_str_radix(&mask(text)?, 16).ok());
    if caught.is_none_or(|caught| caught & (1 << (libc::SIGUSR1 - 1)) == 0) {
        return Err("it does not wait for SIGUSR1".to_owned());
    }
    pidfd_send_signal(&held, Signal::USR1).map_err(|why| why.to_string())
}

/// A line into the pipe that PyTorch reads, if it is one and the process's own.
fn write(root: &Root, found: &Found, prefix: &str) -> Result<(), String> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let rank = found.place.rank.ok_or("its rank is not known")?;
    let path = inside(root, found.pid, &format!("{prefix}{rank}.pipe"));
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let is_own =
        |metadata: &std::fs::Metadata| metadata.file_type().is_fifo() && Some(metadata.uid()) == user(root, found.pid);
    let seen = std::fs::symlink_metadata(&path).map_err(|why| format!("{prefix}{rank}.pipe: {why}"))?;
    if !is_own(&seen) {
        return Err(format!("{prefix}{rank}.pipe is no pipe of its user"));
    }
    let mut pipe =
        std::fs::OpenOptions::new().write(true).custom_flags(flags).open(&path).map_err(|why| why.to_string())?;
    if !pipe.metadata().is_ok_and(|metadata| is_own(&metadata)) {
        return Err("the pipe was replaced".to_owned());
    }
    pipe.write_all(b"1\n").map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::words::Place;
    use super::*;

    #[test]
    fn a_process_that_would_die_of_the_signal_is_not_sent_it() {
        let root = Root::system();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let first = read(&root, child.id()).unwrap();
        let arguments = vec!["muster-probe".to_owned(), "train-ddp".to_owned()];
        let found = Found { pid: child.id(), first, arguments, environment: None, place: Place::default() };
        let said = ask(&root, [found].into_iter());
        assert!(said[0].contains("does not wait for SIGUSR1"), "{said:?}");
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
